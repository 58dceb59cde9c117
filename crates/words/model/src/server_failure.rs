//! Why a server does not work, for two audiences (D28).
//!
//! Operators read the cause: it may hold a command, an argument, a path, an address or a line of
//! the server's standard error. The agent of a run reads words that are fixed here. The cause has
//! no `Display` and no `Serialize`, so a text or a document has to name its reader.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::{CallError, CallErrorKind, error::AUTH_URL};

/// The reader of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The operator of the daemon, or the operator's own client.
    Operator,
    /// The agent of a run, whose answers a model reads.
    Run,
}

/// Why a server does not work.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFailure {
    /// The kind of failure, for every reader.
    pub kind: CallErrorKind,
    cause: Arc<str>,
    details: Option<Arc<Value>>,
    words: Option<&'static str>,
    answer: Option<HttpAnswer>,
    sign_in: Option<Arc<WantedSignIn>>,
}

/// The sign-in of a person for which a server waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedSignIn {
    /// The address at which the person signs in, if one is open.
    pub address: Option<String>,
    /// The scopes that the server asks for, if it named them.
    pub scopes: Vec<String>,
    /// True if the human who drives the caller's run signs in for this run. Otherwise an operator
    /// signs in for all callers.
    pub is_callers: bool,
}

impl WantedSignIn {
    /// The address for this reader: a run gets no address that is an operator's to open.
    #[must_use]
    pub fn address_for(&self, reader: Reader) -> Option<&str> {
        let may_read = reader == Reader::Operator || self.is_callers;
        self.address.as_deref().filter(|_| may_read)
    }

    /// More for a program: `scopes` and `auth_url`, each if there is one.
    fn details(&self, reader: Reader) -> Value {
        let mut details = json!({});
        if !self.scopes.is_empty() {
            details["scopes"] = json!(self.scopes);
        }
        if let Some(address) = self.address_for(reader) {
            details[AUTH_URL] = address.into();
        }
        details
    }
}

/// The answer of HTTP by which a server refused a request. Holds no words of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The time until the server takes requests again, if it named one.
    pub retry_after: Option<Duration>,
    /// The code of the JSON-RPC error in the body.
    pub code: Option<i64>,
}

impl HttpAnswer {
    /// The answer for programs: `status`, `retry_after_ms` and `code`.
    #[must_use]
    pub fn details(self) -> Value {
        let mut details = json!({ "status": self.status });
        if let Some(wait) = self.retry_after {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            details["retry_after_ms"] = ms.into();
        }
        if let Some(code) = self.code {
            details["code"] = code.into();
        }
        details
    }
}

/// The end of a text for a run whose operator finds more in the logs of the server.
const LOGS: &str = "; an operator can read its logs";

impl ServerFailure {
    /// A failure with its cause, which only operators read. The cause holds no secret.
    #[must_use]
    pub fn new(kind: CallErrorKind, cause: impl Into<Arc<str>>) -> Self {
        let cause = cause.into();
        Self { kind, cause, details: None, words: None, answer: None, sign_in: None }
    }

    /// A failure whose message and details are for operators.
    #[must_use]
    pub fn of_operators(error: CallError) -> Self {
        let CallError { kind, message, details } = error;
        Self { details: details.map(Arc::new), ..Self::new(kind, message) }
    }

    /// The failure as one of another kind.
    #[must_use]
    pub fn with_kind(self, kind: CallErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// The failure with these words for runs, instead of those of its kind.
    #[must_use]
    pub fn telling_runs(self, words: &'static str) -> Self {
        Self { words: Some(words), ..self }
    }

    /// The failure of a server that refused a request by this answer.
    #[must_use]
    pub fn with_answer(self, answer: Option<HttpAnswer>) -> Self {
        Self { answer, ..self }
    }

    /// The failure of a server that waits for the sign-in of a person.
    #[must_use]
    pub fn with_sign_in(self, sign_in: Option<WantedSignIn>) -> Self {
        let words = if sign_in.is_some() { Some(SIGN_IN) } else { self.words };
        Self { sign_in: sign_in.map(Arc::new), words, ..self }
    }

    /// The sign-in for which the server waits.
    #[must_use]
    pub fn sign_in(&self) -> Option<&WantedSignIn> {
        self.sign_in.as_deref()
    }

    /// The cause. For operators, logs and tests only.
    #[must_use]
    pub fn operator_cause(&self) -> &str {
        &self.cause
    }

    /// The failure as operators read it.
    #[must_use]
    pub fn for_operators(&self) -> CallError {
        self.read_by(Reader::Operator)
    }

    /// The failure as this reader reads it.
    #[must_use]
    pub fn read_by(&self, reader: Reader) -> CallError {
        let message = match reader {
            Reader::Operator => self.cause.to_string(),
            Reader::Run => format!("{}{}", self.words(reader), self.hint(reader)),
        };
        CallError { kind: self.kind, message, details: self.details(reader) }
    }

    /// The failure in words for this reader: the start of a text that [`Self::hint`] ends.
    #[must_use]
    pub fn words(&self, reader: Reader) -> Cow<'_, str> {
        let retry_after = self.answer.and_then(|answer| answer.retry_after);
        match (reader, self.words, retry_after) {
            (Reader::Operator, ..) => Cow::Borrowed(&self.cause),
            (Reader::Run, Some(words), _) => Cow::Borrowed(words),
            (Reader::Run, None, Some(wait)) => {
                let (words, seconds) = (of_kind(self.kind), wait.as_secs());
                Cow::Owned(format!("{words}; try again after {seconds} s"))
            }
            (Reader::Run, None, None) => Cow::Borrowed(of_kind(self.kind)),
        }
    }

    /// Where more is found: for runs, unless their own words say all there is to know.
    #[must_use]
    pub fn hint(&self, reader: Reader) -> &'static str {
        let has_logs = match self.kind {
            CallErrorKind::ServerDisabled
            | CallErrorKind::SecretCleared
            | CallErrorKind::PermissionRequired
            | CallErrorKind::LimitExceeded => false,
            CallErrorKind::AuthUnavailable
            | CallErrorKind::TransportError
            | CallErrorKind::Timeout
            | CallErrorKind::ServerError
            | CallErrorKind::ToolNotFound
            | CallErrorKind::InvalidArguments
            | CallErrorKind::DefinitionChanged => self.words.is_none(),
        };
        if reader == Reader::Run && has_logs { LOGS } else { "" }
    }

    /// More for a program, as far as this reader may know it.
    #[must_use]
    pub fn details(&self, reader: Reader) -> Option<Value> {
        let sign_in = self.sign_in.as_ref().map(|sign_in| sign_in.details(reader));
        let answer = sign_in.or_else(|| self.answer.map(HttpAnswer::details));
        match reader {
            Reader::Operator => self.details.as_deref().cloned().or(answer),
            Reader::Run => answer,
        }
    }
}

/// The words for runs of a server that waits for the sign-in of a person.
const SIGN_IN: &str = "a person must sign in to it first";

/// The words for runs of a failure of this kind.
fn of_kind(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::TransportError => "the connection to it failed",
        CallErrorKind::AuthUnavailable => "it refuses the credential that narthex has",
        CallErrorKind::Timeout => "it did not answer in time",
        CallErrorKind::ServerDisabled => "it is disabled",
        CallErrorKind::SecretCleared => {
            "a secret that it needs was cleared; a human sets it and starts a new run"
        }
        CallErrorKind::LimitExceeded => "it accepts no more requests for now",
        CallErrorKind::PermissionRequired => "this run is not allowed to use it",
        CallErrorKind::ServerError => "it answered with an error",
        CallErrorKind::ToolNotFound
        | CallErrorKind::InvalidArguments
        | CallErrorKind::DefinitionChanged => "it cannot be used",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: &str = "cannot start `/opt/secret-tool --key`: stderr said no";

    fn limited() -> HttpAnswer {
        HttpAnswer { status: 429, retry_after: Some(Duration::from_secs(3)), code: None }
    }

    /// D28: of a failure of any kind a run reads no word of the cause and of its details.
    #[test]
    fn d28_a_run_never_reads_the_cause_of_a_server_failure() {
        for kind in CallErrorKind::ALL {
            let details = Some(json!({ "file": CAUSE }));
            let error = CallError { details, ..CallError::new(kind, CAUSE) };
            let waits = ServerFailure::new(kind, CAUSE).with_answer(Some(limited()));
            for failure in [ServerFailure::of_operators(error.clone()), waits] {
                let read = failure.read_by(Reader::Run);
                let text = format!("{read:?} {}", failure.words(Reader::Run));
                assert!(!text.contains("stderr") && !text.contains("/opt"), "{text}");
                assert!(read.kind == kind && !read.message.is_empty(), "{read:?}");
                assert_eq!(failure.for_operators().message, CAUSE);
            }
            assert_eq!(ServerFailure::of_operators(error.clone()).for_operators(), error);
        }
    }

    /// R9: a run reads the scopes, and the address only if its own human signs in there.
    #[test]
    fn door_r9_a_run_gets_no_address_that_an_operator_opens() {
        let address = Some("https://as.example.com/authorize?state=s".to_owned());
        let failure = |is_callers| {
            let scopes = vec!["write".to_owned()];
            let sign_in = WantedSignIn { address: address.clone(), scopes, is_callers };
            ServerFailure::new(CallErrorKind::AuthUnavailable, CAUSE).with_sign_in(Some(sign_in))
        };
        let operators = failure(false);
        let read = operators.read_by(Reader::Run);
        assert_eq!(read.message, "a person must sign in to it first");
        assert_eq!(read.details, Some(json!({ "scopes": ["write"] })));
        let all = json!({ "scopes": ["write"], "auth_url": address.as_deref() });
        assert_eq!(operators.for_operators().details, Some(all.clone()));
        assert_eq!(failure(true).read_by(Reader::Run).details, Some(all));
    }

    #[test]
    fn a_run_reads_who_knows_the_cause_and_when_to_retry() {
        let read = |failure: ServerFailure| failure.read_by(Reader::Run);
        let down = read(ServerFailure::new(CallErrorKind::TransportError, CAUSE));
        assert_eq!(down.message, "the connection to it failed; an operator can read its logs");
        let off = read(ServerFailure::new(CallErrorKind::ServerDisabled, CAUSE));
        assert_eq!(off.message, "it is disabled");
        let limit = ServerFailure::new(CallErrorKind::LimitExceeded, CAUSE);
        let limit = read(limit.with_answer(Some(limited())));
        assert_eq!(limit.message, "it accepts no more requests for now; try again after 3 s");
        assert_eq!(limit.details, Some(json!({ "status": 429, "retry_after_ms": 3000 })));
        let asked = ServerFailure::new(CallErrorKind::AuthUnavailable, CAUSE);
        assert_eq!(read(asked.telling_runs("a person signs in")).message, "a person signs in");
    }
}
