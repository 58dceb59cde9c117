//! The definition of a server, and the state of its connection.

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    Alias, CallError, Confinement, Exposed, Gates, HeaderSource, NamedSecret, NotificationName,
    Secret, ServerAuth, TrafficLimits,
    package::{self, UnpinnedPackage},
};

/// The state of a connection (decision D21): exactly these five.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Starting, shaking hands, or listing.
    Connecting,
    /// Waiting for a human to consent at the server's authorization server.
    Authenticating,
    /// Usable.
    Ready,
    /// Failed; the row has the reason.
    Error,
    /// Disabled by a person.
    Disabled,
}

impl ServerState {
    /// The state's spelling in JSON, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Authenticating => "authenticating",
            Self::Ready => "ready",
            Self::Error => "error",
            Self::Disabled => "disabled",
        }
    }

    /// True if a start has ended, good or bad.
    #[must_use]
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Connecting)
    }
}

/// The transport to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// A child process speaking newline-delimited JSON-RPC.
    Stdio,
    /// Streamable HTTP, or the older HTTP+SSE if the server speaks only that.
    Http,
    /// HTTP+SSE of revision 2024-11-05, by the configuration's own word.
    Sse,
}

impl TransportKind {
    /// The transport's spelling in JSON and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// One server as configured, with every placeholder expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerDefinition {
    /// The name under which it is attached.
    pub alias: Alias,
    /// The target of its connection.
    pub target: Target,
    /// Limit of one call from its acceptance to its answer; `None` means the default. Already
    /// clamped to 1..=600000 ms (E86).
    pub timeout: Option<Duration>,
    /// Longest time of a call which progress may extend: each progress message starts `timeout`
    /// anew. `None`: progress extends nothing. Already clamped to 1..=3600000 ms.
    pub progress_extends: Option<Duration>,
    /// Limit of the whole of mounting, from the start to the last list, without downloads; `None`
    /// means the default of the connecting code.
    pub mount_timeout: Option<Duration>,
    /// True if a server over HTTP that was merely unreachable is probed until it is back. Otherwise
    /// its error stays until a person acts (E34).
    pub recovers: bool,
    /// The limits of its results' length.
    pub output: OutputLimits,
    /// The limits of its traffic (O100).
    pub traffic: TrafficLimits,
    /// The filter of the items that callers may see.
    pub exposed: Box<Exposed>,
    /// The items that require tool scopes (D14).
    pub gates: Box<Gates>,
    /// Notifications outside `notifications/` that clients may send to it, by their exact names.
    pub notifications: Box<[NotificationName]>,
    /// True if the configuration itself switches the server off: its row starts as `disabled`.
    pub is_disabled: bool,
    /// True if its definitions are pinned: only its first definitions are visible, and those that a
    /// human has accepted since (D10). Only for a server of the live configuration.
    pub pins_definitions: bool,
    /// True if its first definitions are visible although they are flagged; only where definitions
    /// are pinned (S22).
    pub shows_flagged: bool,
    /// The filled-in values of environment variables whose names mark a secret, from the whole
    /// entry.
    pub filled_in: Vec<Secret>,
    /// The sources of the values of its headers.
    pub header_sources: Vec<HeaderSource>,
    /// The secrets that the entry names by `${secret:NAME}`.
    pub named_secrets: Vec<NamedSecret>,
    /// The file with its entry, if changes of that file count only once a human has approved them
    /// (D27).
    pub approved_in: Option<Arc<Path>>,
}

/// The most text of one result (D23). `None` means no limit of this kind, or the default of the
/// code that applies it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputLimits {
    /// Tokens, by estimate.
    pub tokens: Option<NonZeroU64>,
    /// Bytes of text.
    pub bytes: Option<NonZeroU64>,
}

impl ServerDefinition {
    /// A server with nothing set but where it is.
    #[must_use]
    pub fn new(alias: Alias, target: Target) -> Self {
        Self {
            alias,
            target,
            timeout: None,
            progress_extends: None,
            mount_timeout: None,
            recovers: true,
            output: OutputLimits::default(),
            traffic: TrafficLimits::default(),
            exposed: Box::default(),
            gates: Box::default(),
            notifications: Box::default(),
            is_disabled: false,
            pins_definitions: false,
            shows_flagged: false,
            filled_in: Vec::new(),
            header_sources: Vec::new(),
            named_secrets: Vec::new(),
            approved_in: None,
        }
    }

    /// The packages without a fixed version that starting it downloads.
    #[must_use]
    pub fn unpinned_packages(&self) -> Vec<UnpinnedPackage> {
        match &self.target {
            Target::Stdio(target) => package::unpinned(&target.command, &target.args),
            Target::Http(_) => Vec::new(),
        }
    }

    /// True if clients may send it a notification of this name, which is none of the protocol's.
    #[must_use]
    pub fn takes_notification(&self, name: &str) -> bool {
        self.notifications.iter().any(|listed| listed.as_str() == name)
    }

    /// The transport that the configuration names.
    #[must_use]
    pub fn transport(&self) -> TransportKind {
        match &self.target {
            Target::Stdio(_) => TransportKind::Stdio,
            Target::Http(http) if http.is_sse => TransportKind::Sse,
            Target::Http(_) => TransportKind::Http,
        }
    }

    /// True if a person signs in to the server, so that a connection is theirs alone (X-M14).
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        matches!(&self.target, Target::Http(target) if target.auth.is_per_user())
    }

    /// True if a person must sign in to the server before any connection (D17).
    #[must_use]
    pub fn awaits_consent(&self) -> bool {
        matches!(&self.target, Target::Http(target) if target.auth.awaits_consent())
    }

    /// The values that must never be shown (D22): keys, and all values under a name that marks a
    /// secret or from such a variable. Of `Bearer abc` the part after the scheme counts by itself,
    /// too.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.filled_in.clone();
        match &self.target {
            Target::Stdio(target) => {
                let told = target.env.iter().filter(|(name, _)| is_secret_variable(name));
                secrets.extend(told.map(|(_, value)| value.clone()));
            }
            Target::Http(target) => {
                let told = target.headers.iter().filter(|(name, _)| is_secret_header(name));
                secrets.extend(told.map(|(_, value)| value.clone()));
                secrets.extend(target.auth.secrets().into_iter().cloned());
                secrets.extend(crate::userinfo::secrets_of(&target.url));
                let credential = |secret: &Secret| {
                    let (_scheme, rest) = secret.expose().split_once(' ')?;
                    Some(Secret::new(rest.trim()))
                };
                secrets.extend(secrets.iter().filter_map(credential).collect::<Vec<_>>());
            }
        }
        secrets
    }
}

/// True if an environment variable of this name holds a secret.
#[must_use]
pub fn is_secret_variable(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "PRIVATE", "CREDENTIAL"];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part)) || name.split(['_', '-']).any(|word| word == "KEY")
}

/// True if a config key of this name, without further knowledge, holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    is_secret_variable(name) || is_secret_header(name)
}

/// True if a header of this name holds a secret.
fn is_secret_header(name: &str) -> bool {
    const PARTS: [&str; 5] = ["authorization", "cookie", "token", "secret", "key"];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// The target of a server's connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A program to start.
    Stdio(StdioTarget),
    /// A URL to call.
    Http(HttpTarget),
}

/// A program to start.
#[derive(Clone, PartialEq)]
pub struct StdioTarget {
    /// The program, looked up in PATH.
    pub command: String,
    /// Its arguments, one element each.
    pub args: Vec<String>,
    /// Declared environment, which comes on top of the safe base (D22). Values may be secret.
    pub env: BTreeMap<String, Secret>,
    /// The working folder of the program; `None` means the daemon's folder.
    pub working_dir: Option<PathBuf>,
    /// The limits of the program on the machine; `None` leaves that to the code that starts it.
    pub confinement: Option<Box<Confinement>>,
}

impl HttpTarget {
    /// The names of the headers that come out empty, or as a mere scheme such as `Bearer `: what
    /// they were filled in from is empty (R-E47).
    pub fn empty_headers(&self) -> impl Iterator<Item = &str> {
        let is_empty = |value: &str| {
            let words = value.trim_end();
            words.is_empty() || (words.len() < value.len() && !words.contains(' '))
        };
        let empty = self.headers.iter().filter(move |(_, value)| is_empty(value.expose()));
        empty.map(|(name, _)| name.as_str())
    }
}

impl fmt::Debug for StdioTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments can carry secrets too, so only their number is shown.
        f.debug_struct("StdioTarget")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("working_dir", &self.working_dir)
            .field("confinement", &self.confinement)
            .finish()
    }
}

/// A URL to call.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpTarget {
    /// Absolute, `http` or `https`.
    pub url: String,
    /// True if the configuration names HTTP+SSE of 2024-11-05.
    pub is_sse: bool,
    /// Static headers on each request. Values may be secret.
    pub headers: BTreeMap<String, Secret>,
    /// The authentication of requests.
    pub auth: ServerAuth,
}

/// An entry of a configuration that cannot be used, kept as an `error` row (E117).
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigFault {
    /// The entry's name as written; it may not even be a valid alias.
    pub name: String,
    /// The fault, its place and its remedy.
    pub error: CallError,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiKeyAuth;

    fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, Secret> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
    }

    fn secrets(target: Target) -> Vec<String> {
        let alias = Alias::new("x").unwrap();
        let definition = ServerDefinition::new(alias, target);
        definition.secrets().iter().map(|secret| secret.expose().to_owned()).collect()
    }

    /// E32, D21, R-E8: five states, each with one spelling and no number.
    #[test]
    fn e32_there_are_exactly_five_states() {
        use ServerState::{Authenticating, Connecting, Disabled, Error, Ready};
        let all = [Connecting, Authenticating, Ready, Error, Disabled];
        let spelled = all.map(|state| match state {
            // A sixth would not compile.
            Connecting | Authenticating | Ready | Error | Disabled => {
                serde_json::to_value(state).unwrap()
            }
        });
        assert_eq!(spelled, ["connecting", "authenticating", "ready", "error", "disabled"]);
        assert_eq!(all.map(ServerState::as_str).as_slice(), spelled);
    }

    /// D22: a variable's name decides if its value is secret.
    #[test]
    fn d22_secret_variables_are_known_by_name() {
        let env = named(&[
            ("GITHUB_TOKEN", "a"),
            ("api_key", "b"),
            ("LANG", "c"),
            ("OPENAI_KEY", "d"),
            ("KEYBOARD", "e"),
            ("pgPassword", "f"),
        ]);
        let target = StdioTarget {
            command: "x".to_owned(),
            args: Vec::new(),
            env,
            working_dir: None,
            confinement: None,
        };
        assert_eq!(secrets(Target::Stdio(target)), ["a", "d", "b", "f"]);
    }

    /// D22: keys and credential headers are secret, with and without their scheme.
    #[test]
    fn d22_keys_and_credential_headers_are_secret() {
        let auth = ApiKeyAuth {
            header_name: "X".to_owned(),
            value_prefix: String::new(),
            key: Some(Secret::new("key")),
        };
        let target = HttpTarget {
            url: "http://localhost".to_owned(),
            is_sse: false,
            headers: named(&[("Authorization", "Bearer abc"), ("Accept-Language", "de")]),
            auth: ServerAuth::ApiKey(auth),
        };
        assert_eq!(secrets(Target::Http(target)), ["Bearer abc", "key", "abc"]);
    }
}
