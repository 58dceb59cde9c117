//! Failures of servers, with the details that each reader may have (D28).

use std::{borrow::Cow, sync::Arc};

use narthex_model::{CallError, CallErrorKind, Reader, ServerFailure, ServerState, WantedSignIn};
use narthex_registry::{OpenError, ServerRow};
use narthex_upstream::LinkError;

use super::Refusal;

/// A failure of a server, from which [`Failing::read_by`] alone makes a text.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    server: Arc<str>,
    when: When,
    failure: ServerFailure,
    is_unsent: bool,
}

/// The point of the call at which its server failed.
#[derive(Debug, Clone, Copy)]
enum When {
    /// The server is in `error`.
    Down,
    /// The run may not use the server.
    Unusable,
    /// A person has to sign in first.
    Authenticating,
    /// The connection was lost.
    Lost {
        /// The next attempt is not due yet.
        is_backing_off: bool,
    },
    /// A link for this caller alone was opened.
    Opening,
    /// The call was sent.
    Sent {
        /// The server may have acted on the call.
        may_have_acted: bool,
    },
}

impl Failing {
    pub(crate) fn kind(&self) -> CallErrorKind {
        self.failure.kind
    }

    /// True if the server certainly did not see the request.
    pub(super) fn is_unsent(&self) -> bool {
        self.is_unsent
    }

    /// The server that waits for the sign-in of a person, with the sign-in.
    pub(super) fn sign_in(&self) -> Option<(&str, &WantedSignIn)> {
        Some((&*self.server, self.failure.sign_in()?))
    }

    /// The error for this reader.
    pub(crate) fn read_by(&self, reader: Reader) -> CallError {
        let Self { server, when, failure, is_unsent: _ } = self;
        let before = match (when, reader) {
            (When::Down, _) => format!("server `{server}` is down: "),
            (When::Unusable, _) => format!("server `{server}` cannot be used: "),
            (When::Authenticating, _) => format!("server `{server}` cannot be used yet: "),
            (When::Lost { .. }, _) => format!("server `{server}` is reconnecting: "),
            (When::Opening, _) => format!("server `{server}` could not be opened for you: "),
            // The cause names the server by itself.
            (When::Sent { .. }, Reader::Operator) => String::new(),
            (When::Sent { .. }, Reader::Run) => format!("server `{server}` failed: "),
        };
        let after = match when {
            When::Lost { is_backing_off: true } => "; narthex tries again by itself",
            When::Sent { may_have_acted: true } => "; the call may have taken effect at the server",
            When::Down
            | When::Unusable
            | When::Authenticating
            | When::Lost { .. }
            | When::Opening
            | When::Sent { .. } => "",
        };
        let (words, hint) = (failure.words(reader), failure.hint(reader));
        let details = match failure.sign_in() {
            Some(_) => failure.details(reader).map(|mut details| {
                details["server"] = (&**server).into();
                details
            }),
            // Details for operators name files; rows have these.
            None => failure.details(Reader::Run),
        };
        CallError { kind: failure.kind, message: format!("{before}{words}{after}{hint}"), details }
    }
}

impl Refusal {
    /// A call whose link failed.
    pub(crate) fn failed(error: &LinkError, server: &str) -> Self {
        // The text is the gateway's or the caller's own.
        if let LinkError::Deadline(_) | LinkError::Request(_) = error {
            let call = CallError::new(error.call_kind(), error.to_string());
            return if error.is_unsent() { Self::Unsent(call) } else { Self::Call(call) };
        }
        let failure = ServerFailure::new(error.call_kind(), error.to_string());
        let when = When::Sent { may_have_acted: error.may_have_acted() };
        let failure = failure.with_answer(error.answer()).with_sign_in(error.wanted_sign_in());
        Self::failing(server, when, failure, error.is_unsent())
    }

    /// A caller whose own link to a server could not be opened.
    pub(crate) fn unopened(error: OpenError, server: &str) -> Self {
        let text = |what: String| format!("server `{server}` could not be opened for you: {what}");
        match error {
            OpenError::Forgotten(failure) => Self::failing(server, When::Opening, failure, true),
            OpenError::Failed(failure) => Self::failing(server, When::Opening, failure, false),
            OpenError::Full(most) => {
                let what = format!(
                    "server `{server}` has reached its limit of {most} processes; try again later"
                );
                Self::call(CallErrorKind::LimitExceeded, text(what))
            }
            OpenError::Unknown(name) => {
                let what = format!("there is no server `{name}`");
                Self::call(CallErrorKind::TransportError, text(what))
            }
        }
    }

    fn failing(server: &str, when: When, failure: ServerFailure, is_unsent: bool) -> Self {
        Self::Failed(Box::new(Failing { server: server.into(), when, failure, is_unsent }))
    }
}

/// The reason why calls cannot go to a server.
pub(crate) fn unusable(row: &ServerRow) -> Refusal {
    let name = &*row.name;
    let refused = |kind, text| Refusal::Unsent(CallError::new(kind, text));
    let down = |when, failure| Refusal::failing(name, when, failure, true);
    match row.state {
        ServerState::Disabled => {
            refused(CallErrorKind::ServerDisabled, format!("server `{name}` is disabled"))
        }
        ServerState::Error => match &row.error {
            Some(failure) if failure.kind == CallErrorKind::PermissionRequired => {
                down(When::Unusable, failure.clone())
            }
            Some(failure) => down(When::Down, failure.clone()),
            None => refused(CallErrorKind::TransportError, format!("server `{name}` is down")),
        },
        ServerState::Authenticating => {
            let kind = CallErrorKind::AuthUnavailable;
            let what = row.error.clone().unwrap_or_else(sign_in);
            down(When::Authenticating, what.with_kind(kind))
        }
        // The connection was lost, and is not back yet: the cause is that of the last attempt.
        ServerState::Connecting if row.loss.is_some() => {
            let lost = || {
                let words = "its connection was lost";
                ServerFailure::new(CallErrorKind::TransportError, words).telling_runs(words)
            };
            let failure = row.health.last_failure();
            let failure = failure.map_or_else(lost, |failure| failure.what.clone());
            let kind = match failure.kind {
                kind @ CallErrorKind::AuthUnavailable => kind,
                _ => CallErrorKind::TransportError,
            };
            let when = When::Lost { is_backing_off: row.is_backing_off };
            down(when, failure.with_kind(kind))
        }
        ServerState::Connecting | ServerState::Ready => refused(
            CallErrorKind::TransportError,
            format!("server `{name}` is still connecting; try again"),
        ),
    }
}

/// Words for an endpoint's instructions, about a server that the run does not have now.
pub(crate) fn withheld(row: &ServerRow, reader: Reader) -> Cow<'_, str> {
    match &row.error {
        Some(failure) => failure.words(reader),
        None => Cow::Borrowed(SIGN_IN),
    }
}

const SIGN_IN: &str = "a person must sign in first";

fn sign_in() -> ServerFailure {
    ServerFailure::new(CallErrorKind::AuthUnavailable, SIGN_IN).telling_runs(SIGN_IN)
}

#[cfg(test)]
mod tests {
    use narthex_model::Alias;
    use narthex_upstream::CredentialFault;

    use super::*;

    const CAUSE: &str = "cannot start `/opt/tool --key`: stderr said no";

    fn refused_by(status: u16) -> LinkError {
        let (text, code) = (CAUSE.to_owned(), Some(-32000));
        LinkError::Status { status, text, retry_after: None, code }
    }

    fn texts(refusal: Refusal) -> [String; 2] {
        let Refusal::Failed(failing) = refusal else { panic!("{refusal:?}") };
        [Reader::Operator, Reader::Run].map(|reader| failing.read_by(reader).message)
    }

    /// D28: a run gets the name of a failed server, the kind and the place of the cause. It gets no
    /// word of the cause, at no point of a call; operators get the cause.
    #[test]
    fn d28_a_run_does_not_read_the_cause_of_a_failed_server() {
        let failure = |kind| ServerFailure::new(kind, CAUSE);
        let of_link = |error: LinkError| Refusal::failed(&error, "files");
        let row = |kind| {
            let alias = Alias::new("files").unwrap();
            unusable(&ServerRow::failed(alias, failure(kind)))
        };
        let kinds = CallErrorKind::ALL.into_iter();
        let rows = kinds.clone().map(row);
        let opening = kinds.flat_map(|kind| {
            let errors = [OpenError::Failed(failure(kind)), OpenError::Forgotten(failure(kind))];
            errors.map(|error| Refusal::unopened(error, "files"))
        });
        let links = [
            LinkError::Closed(CAUSE.into()),
            LinkError::Unread(CAUSE.into()),
            LinkError::BrokenOff(Arc::new(LinkError::Closed(CAUSE.into()))),
            refused_by(502),
            refused_by(429),
            LinkError::Protocol(CAUSE.to_owned()),
            LinkError::Refused { code: -32000, text: CAUSE.to_owned() },
        ];
        for refusal in rows.chain(opening).chain(links.map(of_link)) {
            let [operator, run] = texts(refusal);
            assert!(operator.contains("stderr said no"), "{operator}");
            assert!(run.contains("`files`"), "{run}");
            assert!(!run.contains("stderr") && !run.contains("/opt"), "{run}");
        }
        let Refusal::Failed(limit) = of_link(refused_by(429)) else { panic!() };
        let read = limit.read_by(Reader::Run);
        let expected = serde_json::json!({"status": 429, "code": -32000});
        assert_eq!(read.details, Some(expected), "the status is no word of the server");
    }

    /// R9: the error of a server that waits for a sign-in names the server, the scopes, and the
    /// address to those who may open it.
    #[test]
    fn door_r9_a_call_that_needs_a_sign_in_names_the_server_and_the_scopes() {
        let link = |has_holder| {
            let fault = CredentialFault::NeedsConsent {
                why: CAUSE.to_owned(),
                address: Some("https://as.example.com/api/authorize?state=s".to_owned()),
                scopes: vec!["write".to_owned()],
            };
            LinkError::SignIn { fault: Arc::new(fault), is_step_up: true, has_holder }
        };
        let read = |has_holder, reader| {
            let Refusal::Failed(failing) = Refusal::failed(&link(has_holder), "mail") else {
                panic!("it failed in another way")
            };
            failing.read_by(reader).for_models()
        };
        let run = read(false, Reader::Run);
        assert_eq!(run.kind, CallErrorKind::AuthUnavailable);
        let expected = serde_json::json!({"server": "mail", "scopes": ["write"]});
        assert_eq!(run.details, Some(expected));
        assert_eq!(run.text(), "server `mail` failed: a person must sign in to it first");
        for read in [read(true, Reader::Run), read(false, Reader::Operator)] {
            let text = read.text().into_owned();
            assert!(text.ends_with("https://as.example.com/api/authorize?state=s"), "{text}");
            let details = read.details.unwrap();
            assert_eq!(details["auth_url"], "https://as.example.com/api/authorize?state=s");
        }
    }

    #[test]
    fn a_run_reads_that_a_failed_call_may_have_taken_effect() {
        let closed = Refusal::failed(&LinkError::Closed(CAUSE.into()), "files");
        let [operator, run] = texts(closed);
        let acted = "; the call may have taken effect at the server";
        assert_eq!(operator, format!("the connection to the server has ended: {CAUSE}{acted}"));
        let told = "server `files` failed: the connection to it failed";
        assert_eq!(run, format!("{told}{acted}; an operator can read its logs"));
    }
}
