//! Data that accompanies a new event, and the result of adding it.

use narthex_model::TurnOf;
use narthex_store::NewRest;

use crate::EventRow;

/// Data that is stored with an event, in the same step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// The id by which a repeated event of its kind is recognised.
    pub message_id: Option<&'a str>,
    /// The user who takes the turn of the session by the event (X-E81).
    pub turn: Option<&'a TurnOf>,
    /// The data for resuming the event's session, if it has no active run (O80).
    pub owed: Option<&'a NewRest>,
}

/// An event that was added.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The event. For a message that was stored before, the stored event.
    pub row: EventRow,
    /// True if the event is new.
    pub is_new: bool,
    /// The number of the turn that the event took; `None` if it took none.
    pub turn: Option<u64>,
}
