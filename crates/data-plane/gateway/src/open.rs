//! A call from its arrival to its answer, through all its tries.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use narthex_policy::Payment;
use narthex_upstream::Link;
use narthex_wire::{Message, rpc};

use crate::{
    Caller, clock::CallClock, pipeline::id_of, record::CallRecord, refusal::Refusal, run::RunRow,
    session::OpenCall,
};

/// The parts that a second try needs.
pub(crate) struct FirstTry {
    pub(crate) asked: Message,
    pub(crate) row: RunRow,
    /// The link that it was to go over.
    pub(crate) lost: Arc<Link>,
    /// True if its tool has an output schema.
    pub(crate) is_shaped: bool,
}

/// A call that is open, through all its tries.
pub(crate) struct Open {
    pub(crate) record: CallRecord,
    /// The handle by which its session's client can cancel it.
    pub(crate) open_call: Option<OpenCall>,
    /// Since when it is open.
    pub(crate) clock: CallClock,
    /// The share of grants for a single call that its tries have.
    pub(crate) payment: Payment,
}

/// A try that did not get to an answer.
pub(crate) struct Failed {
    pub(crate) refusal: Refusal,
    pub(crate) open: Open,
}

/// Registers a session's call, so that the client can give it up from here on.
pub(crate) fn open_call(caller: &Caller, request: &Message) -> Result<Option<OpenCall>, Refusal> {
    let Some(session) = &caller.session else { return Ok(None) };
    let Some(call) = session.open_call(id_of(request)) else {
        return Err(Refusal::rpc(rpc::code::INVALID_REQUEST, "a request with this id is open"));
    };
    // A call that ends with its session must not begin after it.
    if session.closed().is_cancelled() {
        call.cancelled.cancel();
    }
    Ok(Some(call))
}

/// Runs a step until it is done, the client cancels the call, or the session or run ends. A modern
/// client cancels a call by dropping it.
///
/// The step is pinned by its caller and not moved here: it is large, and each call takes three.
pub(crate) async fn unless_given_up<T>(
    caller: &Caller,
    call: Option<&OpenCall>,
    mut step: Pin<&mut impl Future<Output = Result<T, Refusal>>>,
) -> Result<T, Refusal> {
    if call.is_some_and(|call| call.cancelled.is_cancelled()) {
        return Err(Refusal::Cancelled);
    }
    let mut over = pin!(None);
    poll_fn(|context| {
        // First, since most steps are over at once, and nothing has to be waited for then.
        if let Poll::Ready(done) = step.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if over.is_none() {
            let token = call.map_or_else(|| caller.run.calls_end(), |call| &call.cancelled);
            over.set(Some(token.cancelled()));
        }
        let over = over.as_mut().as_pin_mut().map(|over| over.poll(context));
        match over {
            Some(Poll::Ready(())) => Poll::Ready(Err(Refusal::Cancelled)),
            _ => Poll::Pending,
        }
    })
    .await
}
