//! One request from a door to its answer, in named steps.
//!
//! A request is identified and classified. One for a server is routed and admitted, gets a link and
//! a record, and is prepared, authorized and forwarded. The [`Answering`] finishes it, and ends its
//! record, as it is polled. A step that refuses ends the call, except that [`retry`] tries once
//! more where the server certainly did nothing.

pub(crate) mod admit;
pub(crate) mod again;
pub(crate) mod answering;
pub(crate) mod authorize;
mod built_in;
pub(crate) mod connect;
pub(crate) mod contents;
pub(crate) mod finish;
mod follow;
pub(crate) mod forward;
mod handshake;
pub(crate) mod identify;
mod inbound;
pub(crate) mod internal_request;
mod listen;
pub(crate) mod own_answer;
pub(crate) mod parked;
pub(crate) mod prepare;
pub(crate) mod record;
pub(crate) mod recording;
mod refused;
mod renewal;
pub(crate) mod request_facts;
pub(crate) mod results;
pub(crate) mod retry;
pub(crate) mod review_refusal;
pub(crate) mod rounds;
pub(crate) mod route;
pub(crate) mod routed;
mod sign_in;
mod task_list;

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::Bytes;
use narthex_traffic::Admission;
use narthex_wire::Message;

use self::{
    admit::Unfound,
    again::Tried,
    connect::Target,
    forward::Sent,
    identify::{Call, Identity, Place},
    own_answer::result,
    parked::ParkedId,
    routed::Routed,
};
use crate::{Answering, Caller, refusal::Refusal, runs::run::Act, shared::Shared, view::Handling};

impl Shared {
    /// Answers one request.
    pub(crate) async fn call(self: &Arc<Self>, caller: &Caller, request: Message) -> Answering {
        let identity = Identity::of(&request);
        let (handling, place) = match self.classify(caller, &identity, &request) {
            Ok(classified) => classified,
            Err(refusal) => return identity.refuse(caller, refusal),
        };
        let act = handling.is_act().then(|| Act::of(&caller.run));
        let asked = request.clone();
        let watched = self.watched_list(caller, handling, place, &request);
        let answered = match place {
            Place::BuiltIn => Box::pin(self.built_in(caller, handling, request)).await,
            Place::Gateway => self.answer_itself(caller, handling, request).await,
            Place::Server => self.call_server(caller, handling, request).await,
        };
        let is_ok = answered.is_ok();
        let refuse = |refusal| self.refuse(caller, &asked, &identity, refusal);
        let answering = answered.unwrap_or_else(refuse);
        // A recorded request is reported to watchers where its record ends.
        answering.with_act(act).told(watched, is_ok)
    }

    /// Answers requests that need no server. The future is boxed, so that forwarded calls do not
    /// carry the memory that it needs.
    fn answer_itself<'a>(
        self: &'a Arc<Self>,
        caller: &'a Caller,
        handling: Handling,
        request: Message,
    ) -> Boxed<'a, Result<Answering, Refusal>> {
        Box::pin(async move {
            match handling {
                Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
                Handling::Discover => self.discover(caller, &request).await,
                Handling::List(kind) => self.list(caller, kind, &request).await,
                Handling::SetLevel => self.set_level(caller, request).await,
                Handling::Subscribe { is_start } => self.subscribe(caller, is_start, request).await,
                Handling::Listen => self.listen(caller, request).await,
                Handling::TaskList => self.task_list(caller, &request).await,
                Handling::Tool
                | Handling::Prompt
                | Handling::Resource
                | Handling::Complete
                | Handling::Task
                | Handling::Vendor => self.call_server(caller, handling, request).await,
            }
        })
    }

    /// Has a server answer a request.
    pub(crate) async fn call_server(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let call = self.open(caller, handling, request)?;
        let (target, admission) = match call.unless_given_up(pin!(self.find(&call))).await {
            Ok(Found::Server(target, admission)) => (target, admission),
            Ok(Found::Parked(parked)) => {
                let (routed, id) = *parked;
                let resumed = Box::pin(self.resume(caller, routed, id)).await;
                return resumed.map_err(|refusal| self.unfound(&call, refusal.into()));
            }
            Err(unfound) => return Err(self.unfound(&call, unfound)),
        };
        let mut tried = self.record(&call, &target, admission)?;
        match self.send(&call, target, &mut tried).await {
            Ok(sent) => Ok(self.finish(call, tried, sent)),
            Err(refusal) => Box::pin(self.retry(call, tried, refusal)).await,
        }
    }

    /// Finds the server of a call, and counts the call.
    async fn find(self: &Arc<Self>, call: &Call<'_>) -> Result<Found, Unfound> {
        let routed = self.route(call).await?;
        if let Some(id) = self.parked_call(call.caller, &routed)? {
            return Ok(Found::Parked(Box::new((routed, id))));
        }
        let admission = self.admitted(call.caller, &routed)?;
        let target = self.connect(call, routed).await?;
        Ok(Found::Server(target, admission))
    }

    /// Sends a call to its server, once policy allows it.
    async fn send(
        self: &Arc<Self>,
        call: &Call<'_>,
        target: Target,
        tried: &mut Tried,
    ) -> Result<Sent, Refusal> {
        let sent = {
            let sending = pin!(async {
                let (mut prepared, request) = self.prepare(call, target, tried)?;
                let (row, payment) = (&prepared.row, &mut tried.payment);
                let permitted = self.authorize(call.caller, row, request, payment).await?;
                prepared.allowed(&permitted);
                self.forward(call, prepared, permitted).await
            });
            call.unless_given_up(sending).await
        };
        sent.inspect_err(|refusal| tried.record.set_sent(!refusal.is_unsent()))
    }
}

/// A boxed future.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The result of the search for the server of a call.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and the large one is usual")]
enum Found {
    /// A call for a server.
    Server(Target, Admission),
    /// The retry of a call that waits for its client.
    Parked(Box<(Routed, ParkedId)>),
}
