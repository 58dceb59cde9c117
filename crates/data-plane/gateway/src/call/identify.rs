//! Identifies a request and classifies it: how and where it is answered (the first two steps).

use std::{
    borrow::Cow,
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
};

use bytes::Bytes;
use narthex_policy::Item;
use narthex_run_events::Open;
use narthex_wire::{Message, Raw, rpc};

use crate::{
    Answering, Caller, Endpoint,
    clock::CallClock,
    names::{id_of, name_of, own_alias},
    refusal::Refusal,
    session::OpenCall,
    shared::Shared,
    view::{Handling, check_decided, handling, is_like_known, known_name},
};

/// The parts of a request that every answer to it needs.
pub(crate) struct Identity {
    /// The caller's id, as JSON.
    pub(crate) id: Bytes,
    /// The method.
    pub(crate) name: Cow<'static, str>,
}

/// The part that answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The built-in server.
    BuiltIn,
    /// The gateway itself.
    Gateway,
    /// A server of the run.
    Server,
}

/// A call to a server, through all its tries.
pub(crate) struct Call<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) handling: Handling,
    /// The request as its caller sent it.
    pub(crate) asked: Message,
    /// The time since which the call is open.
    pub(crate) clock: CallClock,
    /// The handle by which the session's client can cancel the call.
    pub(crate) open_call: Option<OpenCall>,
}

impl Identity {
    pub(crate) fn of(request: &Message) -> Self {
        Self { id: id_of(request), name: name_of(request) }
    }

    /// The answer to a refused request.
    pub(crate) fn refuse(&self, caller: &Caller, refusal: Refusal) -> Answering {
        let to = (caller.era(), caller.run.reader());
        explained(refusal, caller).into_answering(Raw::new(&self.id), &self.name, to)
    }
}

impl Shared {
    /// Looks up how and by which part a request is answered.
    ///
    /// # Errors
    /// When no request may have this method in the caller's era, or when a part that policy reads
    /// can be read in two ways. Attempts to get past a decision are in the record (S12).
    pub(crate) fn classify(
        &self,
        caller: &Caller,
        identity: &Identity,
        request: &Message,
    ) -> Result<(Handling, Place), Refusal> {
        let Some(handling) = handling(&identity.name, caller.era()) else {
            return Err(self.unknown(caller, request, &identity.name));
        };
        if let Err(fault) = check_decided(handling, request) {
            let refusal = Refusal::invalid(fault.to_string());
            return Err(self.refused(caller, handling, request, refusal));
        }
        let is_built_in = match own_alias(caller) {
            Some(alias) => caller.run.is_built_in(alias),
            None => self.is_built_in_call(caller, handling, request),
        };
        let place = match handling {
            _ if is_built_in => Place::BuiltIn,
            Handling::List(_) | Handling::TaskList if caller.endpoint == Endpoint::Aggregated => {
                Place::Gateway
            }
            Handling::List(_)
            | Handling::TaskList
            | Handling::Tool
            | Handling::Prompt
            | Handling::Resource
            | Handling::Complete
            | Handling::Task
            | Handling::Vendor => Place::Server,
            Handling::Ping
            | Handling::Discover
            | Handling::SetLevel
            | Handling::Subscribe { .. }
            | Handling::Listen => Place::Gateway,
        };
        Ok((handling, place))
    }

    /// The refusal of an unknown method. A method that nearly spells a known one is recorded: the
    /// caller may try to get past a check (S12).
    fn unknown(&self, caller: &Caller, request: &Message, name: &str) -> Refusal {
        let refusal = Refusal::unknown_method(name);
        match known_name(name).is_none() && is_like_known(name) {
            true => self.refused(caller, Handling::Vendor, request, refusal),
            false => refusal,
        }
    }

    /// Starts to report to the run's watchers a list for which no server is asked.
    pub(crate) fn watched_list(
        &self,
        caller: &Caller,
        handling: Handling,
        place: Place,
        request: &Message,
    ) -> Option<Box<Open>> {
        let is_list = matches!(handling, Handling::List(_) | Handling::TaskList);
        let is_own = is_list && place != Place::Server;
        is_own.then(|| self.watched(caller, own_alias(caller), request, &Item::Server)).flatten()
    }

    /// Opens a call to a server: from here on its client can give the call up.
    ///
    /// # Errors
    /// When the session has an open call of the same id. The refusal is in the record.
    pub(crate) fn open<'a>(
        &self,
        caller: &'a Caller,
        handling: Handling,
        asked: Message,
    ) -> Result<Call<'a>, Refusal> {
        let clock = CallClock::start();
        match open_call(caller, &asked) {
            Ok(open_call) => Ok(Call { caller, handling, asked, clock, open_call }),
            Err(refusal) => Err(self.refused(caller, handling, &asked, refusal)),
        }
    }
}

impl Call<'_> {
    /// Runs a step until it is done, the client cancels the call, or the session or run ends. A
    /// modern client cancels a call by dropping it.
    ///
    /// The caller pins the step, so that it is not moved here: it is large, and each call takes
    /// two.
    pub(crate) async fn unless_given_up<T, E: From<Refusal>>(
        &self,
        mut step: Pin<&mut impl Future<Output = Result<T, E>>>,
    ) -> Result<T, E> {
        let call = self.open_call.as_ref();
        if call.is_some_and(|call| call.cancelled.is_cancelled()) {
            return Err(Refusal::Cancelled.into());
        }
        let mut over = pin!(None);
        poll_fn(|context| {
            // The step is polled first: most steps are ready at once and need no wait.
            if let Poll::Ready(done) = step.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            if over.is_none() {
                let run_over = || self.caller.run.calls_end();
                let token = call.map_or_else(run_over, |call| &call.cancelled);
                over.set(Some(token.cancelled()));
            }
            let over = over.as_mut().as_pin_mut().map(|over| over.poll(context));
            match over {
                Some(Poll::Ready(())) => Poll::Ready(Err(Refusal::Cancelled.into())),
                _ => Poll::Pending,
            }
        })
        .await
    }
}

/// Returns the refusal. A caller that did not itself give up the call gets an explanation instead.
fn explained(refusal: Refusal, caller: &Caller) -> Refusal {
    match (refusal, &caller.session) {
        (Refusal::Cancelled, Some(session)) if session.closed().is_cancelled() => {
            Refusal::session_over()
        }
        (Refusal::Cancelled, None) if caller.run.has_ended() => Refusal::run_over(),
        (refusal, _) => refusal,
    }
}

/// Registers a session's call.
fn open_call(caller: &Caller, request: &Message) -> Result<Option<OpenCall>, Refusal> {
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
