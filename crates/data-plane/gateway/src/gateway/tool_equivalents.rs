//! Acts of a run outside of calls that a tool of the built-in server could do as well. Each act is
//! counted, decided on and recorded as a call of that tool (D5, D13).

use std::sync::Arc;

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_model::{Alias, CallError, CallErrorKind, ErrorKind, Reader, TrafficLimits};
use narthex_policy::{Item, Permitted, Request};
use narthex_wire::Message;
use serde_json::{Value, json};

use crate::{
    Caller, Endpoint, Gateway, RunView,
    call::{admit::admit, authorize::Target, record::CallRecord, recording::unrecorded},
    refusal::{Refusal, kind_of},
    runs::run::Act,
};

/// Permission to do the work of a tool, recorded as a call of the tool. The call is open until this
/// value is dropped, and counts as abandoned without [`Self::ended`].
#[derive(Debug)]
pub struct DoneAlike {
    record: CallRecord,
    _permitted: Permitted<Request>,
    _act: Act,
}

/// The reason why a run may not do the work of a tool: the error that a call of the tool would get.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct NotAllowed {
    /// Kind of the failure.
    pub kind: ErrorKind,
    /// The message for a person.
    pub message: String,
    /// Kind of the failed call, if the failure is one of calls.
    pub call: Option<CallErrorKind>,
    /// The details for a program: the missing scopes and how to ask for them, or the rule.
    pub details: Option<Value>,
}

impl DoneAlike {
    /// Records success, or this failure.
    pub fn ended(mut self, failed: Option<CallErrorKind>) {
        self.record.finish(failed.map_or(Outcome::Ok, Outcome::Failed));
    }
}

impl Gateway {
    /// Decides whether a run may do the work of a built-in tool with these arguments. The limits,
    /// rules and grants of a call of the tool apply. A grant for a single call is used up.
    ///
    /// # Errors
    /// When a call of the tool would be refused.
    pub async fn permit_alike(
        &self,
        run: &Arc<RunView>,
        tool: &str,
        arguments: &Value,
    ) -> Result<DoneAlike, NotAllowed> {
        self.allowed_alike(run, tool, arguments).await.map_err(NotAllowed::from)
    }
}

impl Gateway {
    async fn allowed_alike(
        &self,
        run: &Arc<RunView>,
        tool: &str,
        arguments: &Value,
    ) -> Result<DoneAlike, Refusal> {
        let act = Act::of(run);
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params });
        let call = Message::parse(Bytes::from(call.to_string()), &self.shared.options.limits);
        let call = call.map_err(|error| Refusal::invalid(error.to_string()))?;
        let alias = Alias::built_in();
        let caller = Caller::new(run.clone(), Endpoint::Transparent(alias.clone()), None);
        let item = Item::Tool(tool.into());
        let open = Some(self.shared.calls.token());
        let told = self.shared.clean_item(&caller, &item);
        let record = self.shared.begin_record(&caller, Some(alias.clone()), &call, told, open);
        let mut record = record.map_err(unrecorded)?;
        let mut asked = Request::new(alias, call, item);
        let built_in = self.shared.built_in.get();
        let shown = built_in
            .and_then(|built_in| built_in.tools.shown(tool, asked.message.get("arguments")));
        asked.shown = shown.map(Into::into);
        match self.decide_alike(&caller, asked, &mut record).await {
            Ok(permitted) => Ok(DoneAlike { record, _permitted: permitted, _act: act }),
            Err(refusal) => {
                record.refused(&refusal);
                Err(refusal)
            }
        }
    }

    async fn decide_alike(
        &self,
        caller: &Caller,
        asked: Request,
        record: &mut CallRecord,
    ) -> Result<Permitted<Request>, Refusal> {
        record.admitted(admit(
            &self.shared.options.meters,
            &self.shared.metrics,
            caller,
            Some(&asked.alias),
            TrafficLimits::default,
            true,
        )?);
        let built_in = self.shared.built_in.get();
        let target =
            built_in.map_or(Target::of(None), |one| Target::built_in(&one.all, &one.gates));
        let permitted = self.shared.permit(caller, target, asked, &[]).await?;
        record.allowed(permitted.basis());
        record.set_sent(true);
        Ok(permitted)
    }
}

impl From<Refusal> for NotAllowed {
    fn from(refusal: Refusal) -> Self {
        match refusal.read_by(Reader::Run) {
            Refusal::Shaped(refusal) => Self::from(*refusal),
            Refusal::Call(error)
            | Refusal::Unsent(error)
            | Refusal::Forbidden(error, _)
            | Refusal::Own(error) => {
                let CallError { kind, message, details } = error;
                Self { kind: kind_of(kind), message, call: Some(kind), details }
            }
            Refusal::Kind(kind, message) => Self { kind, message, call: None, details: None },
            Refusal::Rpc { message, .. } => {
                Self { kind: ErrorKind::Invalid, message, call: None, details: None }
            }
            // Failures of servers are converted for their reader before.
            Refusal::Failed(_) | Refusal::Mismatch | Refusal::Cancelled => {
                let message = "it was cancelled".to_owned();
                Self { kind: ErrorKind::Conflict, message, call: None, details: None }
            }
        }
    }
}
