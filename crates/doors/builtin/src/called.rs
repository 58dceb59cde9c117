//! One call of a tool, and the construction of results and errors.

use std::{borrow::Cow, fmt::Display, sync::Arc};

use narthex_audit::{Actor, ActorKind};
use narthex_control::{By, CatalogError, ControlError};
use narthex_events::{EventKind, EventPlace, EventRow, Events, EventsError};
use narthex_gateway::{BuiltInCall, BuiltInResult, Caller, RunView};
use narthex_model::{CallError, CallErrorKind, ErrorKind, SessionId};
use narthex_runs::SharingError;
use narthex_wire::Raw;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Platform, waiting::Waiting};

/// A call that has passed all checks and is handed to the tool. The caller is the run in `run`.
pub(crate) struct Called<'a> {
    pub(crate) platform: &'a Platform,
    /// The calls that wait for a message.
    pub(crate) waiting: &'a Waiting,
    /// The caller and the gateway's endpoint that it used.
    pub(crate) caller: &'a Caller,
    pub(crate) run: &'a Arc<RunView>,
    /// The arguments as they were sent; absent ones are `{}`.
    pub(crate) text: Vec<u8>,
    /// True if the client can lead its user to a web page.
    pub(crate) leads_to_pages: bool,
    /// The id of the request on the page to which the client says that it has led its user.
    pub(crate) asked: Option<String>,
    value: Value,
}

impl<'a> Called<'a> {
    pub(crate) fn new(
        (platform, waiting): (&'a Platform, &'a Waiting),
        call: &BuiltInCall<'a>,
        text: Vec<u8>,
        value: Value,
    ) -> Self {
        let asked = call.asked.and_then(Raw::as_str).map(Cow::into_owned);
        let (caller, leads_to_pages) = (call.caller, call.leads_to_pages);
        let run = &caller.run;
        Self { platform, waiting, caller, run, text, leads_to_pages, asked, value }
    }

    /// The arguments, which match the tool's schema.
    pub(crate) fn arguments<T: DeserializeOwned>(&mut self) -> Result<T, CallError> {
        serde_json::from_value(with_whole_numbers(self.value.take())).map_err(|error| {
            CallError::new(CallErrorKind::InvalidArguments, format!("`arguments`: {error}"))
        })
    }

    /// The session of the run.
    pub(crate) fn session(&self) -> Result<SessionId, CallError> {
        self.platform.runs.session_of(self.run).ok_or_else(no_session)
    }

    /// Fails if the run has no session, since then no one would receive its requests.
    pub(crate) async fn can_be_told(&self) -> Result<(), CallError> {
        let found = self.platform.runs.has_session(self.run).await;
        match found.map_err(|error| of_kind(error.kind(), error))? {
            true => Ok(()),
            false => Err(no_session()),
        }
    }

    /// The run as an actor, for the audit.
    pub(crate) fn actor(&self) -> By {
        Actor::new(ActorKind::Run, self.run.id.to_text())
    }

    /// Stores an event of the session, which all followers of the session receive.
    pub(crate) async fn tell(
        &self,
        kind: EventKind,
        payload: Value,
        message_id: Option<&str>,
    ) -> Result<EventRow, CallError> {
        let place = EventPlace {
            workspace: self.run.workspace.clone(),
            session: self.session()?,
            run: Some(self.run.id),
        };
        let told = self.events()?.append(&place, kind, &payload, message_id).await;
        told.map_err(|error| of_events(&error))
    }

    /// The store of session events.
    pub(crate) fn events(&self) -> Result<&'a Events, CallError> {
        self.platform.control.events().ok_or_else(|| {
            let text = "this process stores no sessions";
            CallError::new(CallErrorKind::ServerError, text)
        })
    }
}

/// Turns whole numbers into integers, since many clients send all numbers as floating-point
/// numbers. A number outside the range of integers becomes the nearest one.
fn with_whole_numbers(mut arguments: Value) -> Value {
    let members = arguments.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut);
    for number in members.filter(|value| value.is_f64()) {
        let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0) else { continue };
        let nearest = if float < 0.0 { i64::MIN } else { i64::MAX };
        *number = format!("{float:.0}").parse().unwrap_or(nearest).into();
    }
    arguments
}

fn no_session() -> CallError {
    let text = "this run belongs to no session, so no one receives what it reports";
    coded(CallErrorKind::ServerError, "no_session", text)
}

/// A result with a text for models and the same contents for programs.
pub(crate) fn said(text: impl Into<String>, structured: Value) -> BuiltInResult {
    BuiltInResult { text: text.into(), structured, is_told: false, to_page: None }
}

/// A failure with a code for programs.
pub(crate) fn coded(kind: CallErrorKind, code: &str, text: impl Into<String>) -> CallError {
    CallError { details: Some(json!({ "code": code })), ..CallError::new(kind, text) }
}

/// The error for arguments that do not match: it names each place and its fault.
pub(crate) fn invalid(faults: Vec<(String, String)>) -> CallError {
    let told = |(place, message): &(String, String)| match place.is_empty() {
        true => message.clone(),
        false => format!("`{place}`: {message}"),
    };
    let text = faults.iter().map(told).collect::<Vec<_>>().join("; ");
    let fault = |(place, message): (String, String)| {
        let field = if place.is_empty() { "arguments" } else { &*place };
        json!({"field": field, "message": message})
    };
    let errors: Vec<_> = faults.into_iter().map(fault).collect();
    CallError {
        details: Some(json!({ "code": "invalid_arguments", "errors": errors })),
        ..CallError::new(CallErrorKind::InvalidArguments, text)
    }
}

/// The error for a failure of the control plane.
pub(crate) fn failed(error: &ControlError) -> CallError {
    match error {
        ControlError::Catalog(CatalogError::Refused(faults)) => {
            let told = |fault: &narthex_control::FieldError| {
                (fault.field.clone(), format!("{}; {}", fault.message, fault.remedy))
            };
            invalid(faults.iter().map(told).collect())
        }
        ControlError::Grant(grant) => coded(grant.kind().into(), grant.code(), grant.to_string()),
        error => of_kind(error.kind(), error),
    }
}

pub(crate) fn of_events(error: &EventsError) -> CallError {
    of_kind(error.kind(), error)
}

/// The error for a failure of shares, with its code.
pub(crate) fn of_sharing(error: &SharingError) -> CallError {
    coded(error.kind().into(), error.code(), error.to_string())
}

/// The error for a failure of this kind, with the failure's text.
pub(crate) fn of_kind(kind: ErrorKind, error: impl Display) -> CallError {
    coded(kind.into(), kind.as_str(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_m3_numbers_without_a_fraction_are_whole() {
        let given = json!({
            "a": 5000.0, "b": -2.0, "c": 1e20, "d": -1e300, "e": 1.5, "f": {"g": 2.0}, "h": 7,
        });
        let wanted = json!({
            "a": 5000, "b": -2, "c": i64::MAX, "d": i64::MIN, "e": 1.5, "f": {"g": 2.0}, "h": 7,
        });
        assert_eq!(with_whole_numbers(given), wanted);
    }
}
