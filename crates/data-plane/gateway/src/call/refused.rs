//! The answer to a refused request.

use std::time::Duration;

use bytes::Bytes;
use narthex_model::{CallError, CallErrorKind, Reader, for_models};
use narthex_wire::{Era, Raw, method, rpc};
use serde_json::json;

use crate::{
    Answering, RefusedCall,
    refusal::{Refusal, kind_of, status_of_code, status_of_kind},
};

impl Refusal {
    /// The answer to a request, in the caller's era and with the details that its reader may have.
    pub(crate) fn into_answering(
        self,
        id: Raw<'_>,
        name: &str,
        (era, reader): (Era, Reader),
    ) -> Answering {
        let settled = self.settled();
        let is_unsent = settled.is_unsent();
        let refused = settled.call_kind().map(|kind| RefusedCall { kind, is_unsent });
        settled.read_by(reader).answering(id, name, era).refused(refused)
    }

    fn answering(self, id: Raw<'_>, name: &str, era: Era) -> Answering {
        let (refusal, is_shaped) = match self {
            Self::Shaped(refusal) => (*refusal, true),
            refusal => (refusal, false),
        };
        match refusal {
            Self::Shaped(refusal) => refusal.answering(id, name, era),
            Self::Call(error)
            | Self::Unsent(error)
            | Self::Forbidden(error, _)
            | Self::Own(error)
                if name == method::TOOLS_CALL =>
            {
                let result = rpc::tool_error_result(&error.for_models(), era, is_shaped);
                Answering::ready(rpc::result_response(id, &Bytes::from(result)), 200)
            }
            Self::Call(error)
            | Self::Unsent(error)
            | Self::Forbidden(error, _)
            | Self::Own(error) => {
                let (kind, error) = (kind_of(error.kind), error.for_models());
                let mut data = json!({ "kind": error.kind });
                if let Some(details) = &error.details {
                    data["details"] = details.clone();
                }
                let (code, data) = (rpc::code_for(kind), data.to_string());
                let payload =
                    rpc::error_response(Some(id), code, &error.text(), Some(data.as_bytes()));
                let answering = Answering::ready(payload, status_of_kind(kind, era));
                answering.retry_after(retry_after(&error))
            }
            Self::Rpc { code, message, data } => {
                // The legacy revisions have their own code for an absent resource.
                let is_absent = name == method::RESOURCES_READ && data.is_some();
                let code = match (era, code) {
                    (Era::Legacy, rpc::code::INVALID_PARAMS) if is_absent => {
                        rpc::code::LEGACY_RESOURCE_NOT_FOUND
                    }
                    (_, code) => code,
                };
                let message = for_models(&message);
                let payload = rpc::error_response(Some(id), code, &message, data.as_deref());
                Answering::ready(payload, status_of_code(code, era))
            }
            Self::Kind(kind, message) => {
                let (code, message) = (rpc::code_for(kind), for_models(&message));
                let payload = rpc::error_response(Some(id), code, &message, None);
                Answering::ready(payload, status_of_kind(kind, era))
            }
            // `into_answering` names the reader first; the words for runs are safe for every one.
            Self::Failed(failing) => {
                let read = Self::Call(failing.read_by(Reader::Run));
                read.answering(id, name, era)
            }
            Self::Mismatch | Self::Cancelled => Answering::nothing(),
        }
    }
}

/// The time until there is room again, if a limit was reached, or until the server works again.
fn retry_after(error: &CallError) -> Option<Duration> {
    let wait = error.details.as_ref()?.get("retry_after_ms")?.as_u64()?;
    let is_later =
        matches!(error.kind, CallErrorKind::LimitExceeded | CallErrorKind::TransportError);
    is_later.then(|| Duration::from_millis(wait))
}
