//! Reasons why the gateway refuses a request, and their codes at each door (D24).

mod absent;
mod failing;

use std::sync::Arc;

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_model::{CallError, CallErrorKind, ErrorKind, Reader, WantedSignIn};
use narthex_wire::{Era, rpc};

use self::failing::Failing;
pub(crate) use self::{
    absent::{not_found, unknown_server, with_cause},
    failing::{unusable, withheld},
};

/// The reason why a request is answered without a server, or instead of one.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    /// A failed `tools/call`: a result that the model can read (D16). For other methods it
    /// becomes an error of the matching kind.
    Call(CallError),
    /// A failed call like `Call`, of a request that the server certainly did not see.
    Unsent(CallError),
    /// A server that does not work. The text of the failure depends on its reader.
    Failed(Box<Failing>),
    /// A failed call that a rule of the workspace forbids, with the rule's id.
    Forbidden(CallError, Arc<str>),
    /// The error of a tool of the built-in server itself: no check has refused the call.
    Own(CallError),
    /// The refusal of a call to a tool with an output schema: clients check all structured content
    /// of a result against it, also in one that is an error.
    Shaped(Box<Refusal>),
    /// The server answered that the headers and the body of a request disagree, and did nothing.
    Mismatch,
    /// A protocol error.
    Rpc {
        code: i64,
        message: String,
        /// Further data, as JSON.
        data: Option<Bytes>,
    },
    /// A protocol error of the gateway, by kind.
    Kind(ErrorKind, String),
    /// The caller took the request back and waits for no answer.
    Cancelled,
}

impl Refusal {
    pub(crate) fn rpc(code: i64, message: impl Into<String>) -> Self {
        Self::Rpc { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::rpc(rpc::code::INVALID_PARAMS, message)
    }

    pub(crate) fn unknown_method(name: &str) -> Self {
        let shown: String = name.chars().take(100).collect();
        Self::rpc(rpc::code::METHOD_NOT_FOUND, format!("method `{shown}` is not known here"))
    }

    pub(crate) fn call(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self::Call(CallError::new(kind, message))
    }

    /// The answer to a call whose session has ended, which its client may not know.
    pub(crate) fn session_over() -> Self {
        let text = "the session has ended before the call was answered; open one with initialize";
        Self::rpc(rpc::code::LEGACY_SESSION_NOT_FOUND, text)
    }

    /// Answer to a call whose run has ended.
    pub(crate) fn run_over() -> Self {
        let text = "the run has ended before the call was answered";
        Self::Kind(ErrorKind::Conflict, text.to_owned())
    }

    /// True if the refusal means "not found".
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::Call(error) => error.kind == CallErrorKind::ToolNotFound,
            Self::Rpc { code, .. } => *code == rpc::code::INVALID_PARAMS,
            Self::Shaped(refusal) => refusal.is_absence(),
            Self::Unsent(_)
            | Self::Failed(_)
            | Self::Forbidden(..)
            | Self::Own(_)
            | Self::Mismatch
            | Self::Kind(..)
            | Self::Cancelled => false,
        }
    }

    /// True if the server certainly did not see the refused request: policy and the gateway refuse
    /// before the request is sent.
    pub(crate) fn is_unsent(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Forbidden(..) | Self::Rpc { .. } | Self::Kind(..) => true,
            Self::Failed(failing) => failing.is_unsent() || is_before_sending(failing.kind()),
            Self::Call(error) => is_before_sending(error.kind),
            Self::Shaped(refusal) => refusal.is_unsent(),
            Self::Own(_) | Self::Mismatch | Self::Cancelled => false,
        }
    }

    /// True if a server failed and certainly did not see the request.
    pub(crate) fn is_unseen(&self) -> bool {
        match self {
            Self::Unsent(_) => true,
            Self::Failed(failing) => failing.is_unsent(),
            Self::Call(_)
            | Self::Forbidden(..)
            | Self::Own(_)
            | Self::Shaped(_)
            | Self::Mismatch
            | Self::Rpc { .. }
            | Self::Kind(..)
            | Self::Cancelled => false,
        }
    }

    /// True if the caller sent arguments that no server can take.
    pub(crate) fn is_callers_fault(&self) -> bool {
        self.call_kind() == Some(CallErrorKind::InvalidArguments)
    }

    /// The check that refused the request, if it is one that a request passes before it is sent
    /// (D13).
    pub(crate) fn check(&self) -> Option<&'static str> {
        let [attached, exposed, definitions, rules, grants] = narthex_policy::CHECKS;
        match self {
            Self::Kind(ErrorKind::NotFound, _) => Some(attached),
            Self::Call(_) | Self::Unsent(_) | Self::Failed(_) => match self.call_kind()? {
                CallErrorKind::ToolNotFound => Some(exposed),
                CallErrorKind::DefinitionChanged => Some(definitions),
                CallErrorKind::PermissionRequired => Some(grants),
                _ => None,
            },
            Self::Forbidden(..) => Some(rules),
            Self::Shaped(refusal) => refusal.check(),
            Self::Own(_) | Self::Mismatch | Self::Rpc { .. } | Self::Kind(..) | Self::Cancelled => {
                None
            }
        }
    }

    /// The rule of the workspace that refused.
    pub(crate) fn rule(&self) -> Option<&Arc<str>> {
        match self {
            Self::Forbidden(_, rule) => Some(rule),
            Self::Shaped(refusal) => refusal.rule(),
            Self::Call(_)
            | Self::Unsent(_)
            | Self::Failed(_)
            | Self::Own(_)
            | Self::Mismatch
            | Self::Rpc { .. }
            | Self::Kind(..)
            | Self::Cancelled => None,
        }
    }

    /// Marks the refusal as one of a tool with an output schema, if `is_shaped`. Called only when
    /// no further try is made.
    pub(crate) fn shaped(self, is_shaped: bool) -> Self {
        match self {
            Self::Call(_)
            | Self::Unsent(_)
            | Self::Failed(_)
            | Self::Forbidden(..)
            | Self::Own(_)
                if is_shaped =>
            {
                Self::Shaped(Box::new(self))
            }
            other => other,
        }
    }

    /// The refusal without a further try: hides a mistake of the gateway from the caller.
    pub(crate) fn settled(self) -> Self {
        match self {
            Self::Mismatch => {
                let text = "the server does not accept the headers of this call, even after its \
                            tools were listed again";
                Self::call(CallErrorKind::ServerError, text)
            }
            other => other,
        }
    }

    /// Kind of the failed call, unless the error is a tool's own.
    pub(crate) fn call_kind(&self) -> Option<CallErrorKind> {
        match self {
            Self::Call(error) | Self::Unsent(error) | Self::Forbidden(error, _) => Some(error.kind),
            Self::Failed(failing) => Some(failing.kind()),
            Self::Shaped(refusal) => refusal.call_kind(),
            Self::Own(_) | Self::Mismatch | Self::Rpc { .. } | Self::Kind(..) | Self::Cancelled => {
                None
            }
        }
    }

    /// The server that waits for the sign-in of a person, with the sign-in.
    pub(crate) fn sign_in(&self) -> Option<(&str, &WantedSignIn)> {
        match self {
            Self::Failed(failing) => failing.sign_in(),
            Self::Shaped(refusal) => refusal.sign_in(),
            _ => None,
        }
    }

    /// The refusal in the words that this reader may have.
    pub(crate) fn read_by(self, reader: Reader) -> Self {
        match self {
            Self::Failed(failing) if failing.is_unsent() => Self::Unsent(failing.read_by(reader)),
            Self::Failed(failing) => Self::Call(failing.read_by(reader)),
            Self::Shaped(refusal) => Self::Shaped(Box::new(refusal.read_by(reader))),
            other => other,
        }
    }
}

/// True if failures of this kind are those of policy or of the gateway, before the request is sent.
fn is_before_sending(kind: CallErrorKind) -> bool {
    matches!(
        kind,
        CallErrorKind::ToolNotFound
            | CallErrorKind::DefinitionChanged
            | CallErrorKind::PermissionRequired
    )
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// The HTTP status of an error answer. In a legacy session every answer is 200: a 404 would make
/// clients believe that the session is gone.
pub(crate) fn status_of_code(code: i64, era: Era) -> u16 {
    match (era, code) {
        (Era::Legacy, _) => 200,
        (Era::Modern, rpc::code::METHOD_NOT_FOUND) => 404,
        (
            Era::Modern,
            rpc::code::HEADER_MISMATCH
            | rpc::code::MISSING_CLIENT_CAPABILITY
            | rpc::code::UNSUPPORTED_VERSION,
        ) => 400,
        (Era::Modern, _) => 200,
    }
}

pub(crate) fn status_of_kind(kind: ErrorKind, era: Era) -> u16 {
    if era == Era::Legacy {
        return 200;
    }
    match kind {
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Bug | ErrorKind::Conflict => 200,
        ErrorKind::Unauthenticated => 401,
        ErrorKind::Denied => 403,
        ErrorKind::Exhausted => 429,
        ErrorKind::Unavailable => 503,
        ErrorKind::Timeout => 504,
    }
}

/// The kind of an error that is no tool result.
pub(crate) fn kind_of(kind: CallErrorKind) -> ErrorKind {
    match kind {
        CallErrorKind::PermissionRequired => ErrorKind::Denied,
        CallErrorKind::ToolNotFound => ErrorKind::NotFound,
        CallErrorKind::InvalidArguments => ErrorKind::Invalid,
        CallErrorKind::LimitExceeded => ErrorKind::Exhausted,
        CallErrorKind::Timeout => ErrorKind::Timeout,
        CallErrorKind::DefinitionChanged => ErrorKind::Conflict,
        CallErrorKind::AuthUnavailable
        | CallErrorKind::TransportError
        | CallErrorKind::ServerError
        | CallErrorKind::ServerDisabled
        | CallErrorKind::SecretCleared => ErrorKind::Unavailable,
    }
}

/// The recorded outcome of a call that the gateway answered itself.
pub(crate) fn outcome_of_refusal(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::Call(error)
        | Refusal::Unsent(error)
        | Refusal::Forbidden(error, _)
        | Refusal::Own(error) => Outcome::Failed(error.kind),
        Refusal::Failed(failing) => Outcome::Failed(failing.kind()),
        Refusal::Shaped(refusal) => outcome_of_refusal(refusal),
        Refusal::Rpc { code, .. } => Outcome::RpcError(*code),
        Refusal::Mismatch => Outcome::RpcError(rpc::code::HEADER_MISMATCH),
        Refusal::Kind(..) => Outcome::Denied,
        Refusal::Cancelled => Outcome::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use narthex_wire::{Raw, method};
    use serde_json::json;

    use super::*;

    /// D28: a model never reads the part of a refusal that is for operators. This holds at each
    /// door, in each kind and era, in the text and beside it.
    #[test]
    fn d28_no_refusal_names_a_command_or_route_of_operators() {
        const SAID: &str = "it failed; mend it with `narthex grants create x`, or at POST /api/x";
        let error = |kind| CallError {
            details: Some(json!({ "errors": [{ "remedy": SAID, "field": "a" }] })),
            ..CallError::new(kind, SAID)
        };
        let kinds = CallErrorKind::ALL.into_iter().flat_map(|kind| {
            let rule = || "rule".into();
            let of_call = [Refusal::Call(error(kind)), Refusal::Unsent(error(kind))];
            let shaped = Refusal::Own(error(kind)).shaped(true);
            let others = [Refusal::Forbidden(error(kind), rule()), Refusal::Own(error(kind))];
            of_call.into_iter().chain(others).chain([shaped])
        });
        let own = ErrorKind::ALL.into_iter().map(|kind| Refusal::Kind(kind, SAID.to_owned()));
        let own = own.chain([Refusal::rpc(-32000, SAID), Refusal::invalid(SAID)]);
        let methods = [method::TOOLS_CALL, method::RESOURCES_READ, method::PROMPTS_GET];
        let doors = methods.map(|name| [(name, Era::Legacy), (name, Era::Modern)]);
        let doors = doors.as_flattened();
        let all = kinds
            .chain(own)
            .flat_map(|refusal| doors.iter().map(move |door| (refusal.clone(), *door)));
        for (refusal, (name, era)) in all {
            let to = (era, Reader::Operator);
            let mut answering = refusal.into_answering(Raw::new(b"1"), name, to);
            let payload = answering.take_answer().unwrap().payload.into_bytes();
            let text = String::from_utf8(payload.to_vec()).unwrap();
            assert!(text.contains("it failed"), "{text}");
            let has = |mark: &&str| text.contains(mark);
            let found = ["narthex ", "grants create", "/api/"].into_iter().find(|mark| has(mark));
            assert_eq!(found, None, "{name} {era:?}: {text}");
        }
    }

    /// X-E122: a request that a run may not make for want of a grant is recorded as refused by that
    /// check. This holds also if it is otherwise known that no server has seen the call.
    #[test]
    fn a_call_refused_for_a_missing_grant_names_its_check() {
        let error = |kind| CallError::new(kind, "no");
        for refusal in [Refusal::Call, Refusal::Unsent] {
            let of = |kind| refusal(error(kind)).check();
            assert_eq!(of(CallErrorKind::PermissionRequired), Some("grants"));
            assert_eq!(of(CallErrorKind::DefinitionChanged), Some("definitions"));
            assert_eq!(of(CallErrorKind::TransportError), None);
        }
        assert_eq!(Refusal::Own(error(CallErrorKind::PermissionRequired)).check(), None);
    }
}
