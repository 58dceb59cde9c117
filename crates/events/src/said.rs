//! What comes along with an event that somebody tells, and what comes of it.

use narthex_model::TurnOf;
use narthex_store::NewRest;

use crate::EventRow;

/// What comes with an event, at the same moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// By what a second one of its kind is known to be the same.
    pub message_id: Option<&'a str>,
    /// Who takes the turn of the session with it (X-E81).
    pub turn: Option<&'a TurnOf>,
    /// With what a session is to go on for which it is, unless a run of that goes on (O80).
    pub owed: Option<&'a NewRest>,
}

/// An event that somebody has told.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The event; of a message that was there already, as it was then.
    pub row: EventRow,
    /// Whether it is new.
    pub is_new: bool,
    /// The number of the turn that was taken with it; `None` if none was.
    pub turn: Option<u64>,
}
