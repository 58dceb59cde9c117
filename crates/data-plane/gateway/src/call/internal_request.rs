//! Requests and notifications that the gateway itself sends to a server, for one caller or on a
//! shared link. They are counted, decided on and recorded like calls.

use narthex_audit::Outcome;
use narthex_policy::{Permitted, Request};
use narthex_registry::ServerKey;
use narthex_upstream::{Asking, Link, LinkError};
use narthex_wire::{Message, Raw};
use tokio::time::timeout;

use crate::{
    Caller,
    call::{admit::admit, authorize::Target, record::CallRecord, recording::unrecorded},
    refusal::Refusal,
    runs::run::RunRow,
    shared::Shared,
    standing::Standing,
};

/// Proof that policy allowed a caller's request to a server, and its place in the record. An errand
/// that is dropped before its end counts as abandoned.
#[derive(Debug)]
pub(crate) struct Errand {
    record: CallRecord,
    permitted: Permitted<Request>,
}

impl Shared {
    /// Counts a caller's request to a server against the limits, and asks policy for a decision.
    ///
    /// # Errors
    /// When a limit or policy refuses, or the request cannot be recorded. The refusal is in the
    /// record.
    pub(crate) async fn errand(
        &self,
        caller: &Caller,
        request: Request,
    ) -> Result<Errand, Refusal> {
        let mut record = self.errand_record(caller, &request)?;
        let row = self.snapshot(&caller.run).get(request.alias.as_str());
        let definition = row.as_ref().and_then(|row| row.definition.as_ref());
        let configured = || definition.map(|one| one.traffic).unwrap_or_default();
        match admit(
            &self.options.meters,
            &self.metrics,
            caller,
            Some(&request.alias),
            configured,
            true,
        ) {
            Ok(admission) => record.admitted(admission),
            Err(refusal) => {
                record.refused(&refusal);
                return Err(refusal);
            }
        }
        self.allowed(caller, row.as_ref(), request, record).await
    }

    /// Asks policy for a decision on a part of a caller's request to a server. The whole request is
    /// counted and sent elsewhere.
    ///
    /// # Errors
    /// The errors of [`Shared::errand`], except for limits.
    pub(crate) async fn part_of_errand(
        &self,
        caller: &Caller,
        request: Request,
    ) -> Result<Errand, Refusal> {
        let record = self.errand_record(caller, &request)?;
        let row = self.snapshot(&caller.run).get(request.alias.as_str());
        self.allowed(caller, row.as_ref(), request, record).await
    }

    fn errand_record(&self, caller: &Caller, request: &Request) -> Result<CallRecord, Refusal> {
        let server = Some(request.alias.clone());
        let item = self.clean_item(caller, &request.item);
        // The end of the gateway does not wait for an errand: later steps would not outlast the
        // gateway.
        let record = self.begin_record(caller, server, &request.message, item, None);
        record.map_err(unrecorded)
    }

    async fn allowed(
        &self,
        caller: &Caller,
        row: Option<&RunRow>,
        request: Request,
        mut record: CallRecord,
    ) -> Result<Errand, Refusal> {
        match self.permit(caller, Target::of(row.map(|row| &***row)), request, &[]).await {
            Ok(permitted) => {
                record.allowed(permitted.basis());
                record.set_sent(true);
                Ok(Errand { record, permitted })
            }
            Err(refusal) => {
                record.refused(&refusal);
                Err(refusal)
            }
        }
    }

    /// Sends a server a request whose answer is only a confirmation.
    pub(crate) async fn ask(
        &self,
        server: &ServerKey,
        link: &Link,
        asking: Asking,
        members: &[u8],
    ) -> Result<(), Refusal> {
        self.asked(server, link, asking, members).await.map(|_| ())
    }

    /// Sends a server a request, within the time limit of calls to that server; returns the answer.
    pub(crate) async fn asked(
        &self,
        server: &ServerKey,
        link: &Link,
        asking: Asking,
        members: &[u8],
    ) -> Result<Message, Refusal> {
        let within = self.patience(server);
        let asked = timeout(within, Box::pin(link.ask(asking, members))).await;
        let answer = asked.unwrap_or_else(|_late| Err(LinkError::Deadline(within.as_millis())));
        let answer = answer.map_err(|error| Refusal::failed(&error, link.name()))?;
        let Some(code) = answer.error_code() else { return Ok(answer) };
        let text = answer.get("message").and_then(Raw::as_str).unwrap_or_default();
        Err(Refusal::rpc(code, text))
    }
}

impl Errand {
    /// Sends the request as a notification.
    ///
    /// # Errors
    /// When the server does not take it. The failure is in the record.
    pub(crate) async fn notify(self, link: &Link) -> Result<(), Refusal> {
        let Self { mut record, permitted } = self;
        let sent = match record.booked() {
            Ok(booked) => {
                let sent = link.notify(permitted, booked).await;
                sent.map_err(|error| Refusal::failed(&error, link.name()))
            }
            Err(refusal) => Err(refusal),
        };
        match &sent {
            Ok(()) => record.finish(Outcome::Ok),
            Err(refusal) => {
                record.set_sent(!refusal.is_unsent());
                record.refused(refusal);
            }
        }
        sent
    }

    /// The permission, for a stream or subscription that stays open.
    pub(crate) fn standing(&self) -> Standing {
        Standing::of(&self.permitted)
    }

    /// Records success.
    pub(crate) fn done(mut self) {
        self.record.finish(Outcome::Ok);
    }

    /// Records the outcome, and returns it.
    pub(crate) fn end<T>(mut self, done: Result<T, Refusal>) -> Result<T, Refusal> {
        match &done {
            Ok(_) => self.record.finish(Outcome::Ok),
            Err(refusal) => self.record.refused(refusal),
        }
        done
    }
}
