//! Data that accompanies a new event, and the result of adding one.

use narthex_model::TurnOf;
use narthex_store::NewRest;

use crate::EventRow;

/// Data that is stored with an event, in the same step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// The id by which a second event of its kind is recognised as the same.
    pub message_id: Option<&'a str>,
    /// The user who takes the turn of the session with it (X-E81).
    pub turn: Option<&'a TurnOf>,
    /// The data for resuming the session that the event is for, unless a run of it is active (O80).
    pub owed: Option<&'a NewRest>,
}

/// An event that was added.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The event; of a message that was there already, as it was then.
    pub row: EventRow,
    /// True if it is new.
    pub is_new: bool,
    /// The number of the turn that was taken with it; `None` if none was.
    pub turn: Option<u64>,
}
