//! A call on its way back to the caller.

use narthex_wire::Payload;

/// One thing to tell the caller.
#[derive(Debug)]
pub enum Step {
    /// A notification, or a request of the server (legacy), that belongs to the call.
    Message(Payload),
    /// The server wants the caller to come back later for the rest (legacy, 2025-11-25).
    Break {
        /// After how many milliseconds, if the server said so.
        retry_ms: Option<u64>,
    },
    /// The last one.
    Answer(Answer),
}

/// The result or error that ends a call.
#[derive(Debug)]
pub struct Answer {
    /// The JSON-RPC message.
    pub payload: Payload,
    /// The HTTP status that goes with it where the door is HTTP and nothing was sent before.
    pub status: u16,
}

/// A call that is being answered. Dropping it before the answer gives the call up: the server is
/// told to cancel, and the record says so.
#[derive(Debug)]
pub struct Answering {
    state: State,
}

#[derive(Debug)]
enum State {
    Ready(Option<Answer>),
}

impl Answering {
    /// An answer that is known at once.
    #[must_use]
    pub fn ready(payload: Payload, status: u16) -> Self {
        Self { state: State::Ready(Some(Answer { payload, status })) }
    }

    /// The next step; `None` after the answer. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Step> {
        match &mut self.state {
            State::Ready(answer) => answer.take().map(Step::Answer),
        }
    }
}
