//! What the gateway asks a server for a caller on a link that several share: decided on and
//! recorded like a call.

use narthex_audit::Outcome;
use narthex_policy::{Permitted, Request};
use narthex_registry::ServerKey;
use narthex_upstream::{Link, LinkError};
use narthex_wire::{Message, Raw};
use tokio::time::timeout;

use crate::{
    Caller,
    gateway::Shared,
    grants::{Standing, Target},
    pipeline::unrecorded,
    record::CallRecord,
    refusal::Refusal,
};

/// Proof that policy allowed what a caller wants of a server, and its place in the record.
/// Dropped before its end, it was abandoned.
#[derive(Debug)]
pub(crate) struct Errand {
    record: CallRecord,
    permitted: Permitted<Request>,
}

impl Shared {
    /// Has policy decide on what a caller wants of a server.
    pub(crate) async fn errand(
        &self,
        caller: &Caller,
        request: Request,
    ) -> Result<Errand, Refusal> {
        let server = Some(request.alias.clone());
        let item = self.clean_item(caller, &request.item);
        // The end of the gateway does not wait for it: what follows would not live longer.
        let record = self.begin_record(caller, server, &request.message, item, None);
        let mut record = record.map_err(unrecorded)?;
        let row = self.snapshot(&caller.run).get(request.alias.as_str()).cloned();
        match self.permit(caller, Target::of(row.as_deref()), request, &[]).await {
            Ok(permitted) => {
                record.allowed(permitted.basis());
                Ok(Errand { record, permitted })
            }
            Err(refusal) => {
                record.refused(&refusal);
                Err(refusal)
            }
        }
    }

    /// Asks a server something whose answer says nothing but that it was done.
    pub(crate) async fn ask(
        &self,
        server: &ServerKey,
        link: &Link,
        name: &str,
        members: &[u8],
    ) -> Result<(), Refusal> {
        self.asked(server, link, name, members).await.map(|_| ())
    }

    /// Asks a server something, within the time that its calls have.
    pub(crate) async fn asked(
        &self,
        server: &ServerKey,
        link: &Link,
        name: &str,
        members: &[u8],
    ) -> Result<Message, Refusal> {
        let within = self.patience(server);
        let asked = timeout(within, Box::pin(link.ask(name, members))).await;
        let answer = asked.unwrap_or_else(|_late| Err(LinkError::Deadline(within.as_millis())))?;
        let Some(code) = answer.error_code() else { return Ok(answer) };
        let text = answer.get("message").and_then(Raw::as_str).unwrap_or_default();
        Err(Refusal::rpc(code, text))
    }
}

impl Errand {
    /// What allows it, for what stays open.
    pub(crate) fn standing(&self) -> Standing {
        Standing::of(&self.permitted)
    }

    /// Records that it was done.
    pub(crate) fn done(mut self) {
        self.record.finish(Outcome::Ok);
    }

    /// Records how it ended.
    pub(crate) fn end<T>(mut self, done: Result<T, Refusal>) -> Result<T, Refusal> {
        match &done {
            Ok(_) => self.record.finish(Outcome::Ok),
            Err(refusal) => self.record.refused(refusal),
        }
        done
    }
}
