//! The table of settings, and the layers with their values.

use std::{borrow::Cow, collections::BTreeMap};

use narthex_model::{meant_hint, written};
use toml::{Table, Value};

pub(crate) use super::given::Given;

/// The type of a setting's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    /// A whole number above zero.
    Number,
    /// A duration such as `500ms`, `30s`, `5m`.
    Duration,
    /// A list, separated by commas in variables and flags.
    List,
    /// `true` or `false`.
    Flag,
    /// `true` or `false`, or a word.
    FlagOrWord,
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its place in the file.
    pub(crate) path: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) shape: Shape,
}

const fn key(path: &'static str, variable: &'static str, shape: Shape) -> Key {
    Key { path, variable, shape }
}

/// Every setting that there is.
pub(crate) const KEYS: &[Key] = &[
    key("listen", "NARTHEX_LISTEN", Shape::Text),
    key("data", "NARTHEX_DATA", Shape::Text),
    key("daemon_url", "NARTHEX_DAEMON_URL", Shape::Text),
    key("token_file", "NARTHEX_TOKEN_FILE", Shape::Text),
    key("ca_file", "NARTHEX_CA_FILE", Shape::Text),
    key("daemon_fingerprint", "NARTHEX_DAEMON_FINGERPRINT", Shape::Text),
    key("config", "NARTHEX_CONFIG", Shape::Text),
    key("servers", "NARTHEX_SERVERS", Shape::Text),
    key("default_servers", "NARTHEX_DEFAULT_SERVERS", Shape::Text),
    key("registry", "NARTHEX_REGISTRY", Shape::Text),
    key("releases", "NARTHEX_RELEASES", Shape::Text),
    key("confinement", "NARTHEX_CONFINEMENT", Shape::Text),
    key("tools", "NARTHEX_TOOLS", Shape::List),
    key("catalog.env", "NARTHEX_CATALOG_ENV", Shape::List),
    key("synthetic_tools", "NARTHEX_SYNTHETIC_TOOLS", Shape::Flag),
    key("store.url", super::STORE_URL, Shape::Text),
    key("vault.keychain", "NARTHEX_VAULT_KEYCHAIN", Shape::FlagOrWord),
    key("vault.key_command.load", "NARTHEX_VAULT_KEY_COMMAND_LOAD", Shape::List),
    key("vault.key_command.store", "NARTHEX_VAULT_KEY_COMMAND_STORE", Shape::List),
    key("grants.require_proof", "NARTHEX_GRANTS_REQUIRE_PROOF", Shape::Flag),
    key("grants.request_lifetime", "NARTHEX_GRANTS_REQUEST_LIFETIME", Shape::Duration),
    key("log.level", "NARTHEX_LOG", Shape::Text),
    key("log.format", "NARTHEX_LOG_FORMAT", Shape::Text),
    key("limits.message_bytes", "NARTHEX_LIMITS_MESSAGE_BYTES", Shape::Number),
    key("limits.sessions", "NARTHEX_LIMITS_SESSIONS", Shape::Number),
    key("limits.parked_calls", "NARTHEX_LIMITS_PARKED_CALLS", Shape::Number),
    key("limits.connections", "NARTHEX_LIMITS_CONNECTIONS", Shape::Number),
    key("limits.processes", "NARTHEX_LIMITS_PROCESSES", Shape::Number),
    key("limits.name_length", "NARTHEX_LIMITS_NAME_LENGTH", Shape::Number),
    key("limits.output_tokens", "NARTHEX_LIMITS_OUTPUT_TOKENS", Shape::Number),
    key("limits.shares_bytes", "NARTHEX_LIMITS_SHARES_BYTES", Shape::Number),
    key("limits.body_bytes", "NARTHEX_LIMITS_BODY_BYTES", Shape::Number),
    key("limits.api_body_bytes", "NARTHEX_LIMITS_API_BODY_BYTES", Shape::Number),
    key("limits.replay_bytes", "NARTHEX_LIMITS_REPLAY_BYTES", Shape::Number),
    key("limits.followed", "NARTHEX_LIMITS_FOLLOWED", Shape::Number),
    key("limits.questions", "NARTHEX_LIMITS_QUESTIONS", Shape::Number),
    key("timeouts.probe", "NARTHEX_TIMEOUTS_PROBE", Shape::Duration),
    key("timeouts.connect", "NARTHEX_TIMEOUTS_CONNECT", Shape::Duration),
    key("timeouts.list", "NARTHEX_TIMEOUTS_LIST", Shape::Duration),
    key("timeouts.install", "NARTHEX_TIMEOUTS_INSTALL", Shape::Duration),
    key("timeouts.mount", "NARTHEX_TIMEOUTS_MOUNT", Shape::Duration),
    key("timeouts.call", "NARTHEX_TIMEOUTS_CALL", Shape::Duration),
    key("timeouts.input", "NARTHEX_TIMEOUTS_INPUT", Shape::Duration),
    key("timeouts.idle_stop", "NARTHEX_TIMEOUTS_IDLE_STOP", Shape::Duration),
    key("http.allowed_hosts", "NARTHEX_HTTP_ALLOWED_HOSTS", Shape::List),
    key("http.allowed_origins", "NARTHEX_HTTP_ALLOWED_ORIGINS", Shape::List),
    key("http.public_url", "NARTHEX_HTTP_PUBLIC_URL", Shape::Text),
    key("oauth.door", "NARTHEX_OAUTH_DOOR", Shape::Text),
    key("oauth.local_click", "NARTHEX_OAUTH_LOCAL_CLICK", Shape::Flag),
    key("oauth.redirect_uris", "NARTHEX_OAUTH_REDIRECT_URIS", Shape::List),
    key("oauth.document_hosts", "NARTHEX_OAUTH_DOCUMENT_HOSTS", Shape::List),
    key("oauth.client_metadata_url", "NARTHEX_OAUTH_CLIENT_METADATA_URL", Shape::Text),
    key("tls.cert", "NARTHEX_TLS_CERT", Shape::Text),
    key("tls.key", "NARTHEX_TLS_KEY", Shape::Text),
    key("tls.self_signed", "NARTHEX_TLS_SELF_SIGNED", Shape::Flag),
    key("proxy.http", "NARTHEX_PROXY_HTTP", Shape::Text),
    key("proxy.https", "NARTHEX_PROXY_HTTPS", Shape::Text),
    key("proxy.direct", "NARTHEX_PROXY_DIRECT", Shape::List),
    key("outbound.allowed_hosts", "NARTHEX_OUTBOUND_ALLOWED_HOSTS", Shape::List),
    key("telemetry.otlp_endpoint", "NARTHEX_OTLP_ENDPOINT", Shape::Text),
    key("telemetry.service_name", "NARTHEX_OTLP_SERVICE_NAME", Shape::Text),
];

/// The section in which each member is a provider.
const OIDC: &str = "signin.oidc";

/// The section in which each member is an issuer of the company.
const ISSUERS: &str = "oauth.issuers";

/// The section in which each member is a registered app.
const CLIENTS: &str = "oauth.clients";

/// The section in which each member is an executor.
const EXECUTORS: &str = "executors";

/// Values by the path of their setting. Later layers replace earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    given: BTreeMap<&'static str, Given>,
    /// The file's OpenID providers, which have names of their own, and the file.
    pub(crate) oidc: Option<(String, Table)>,
    /// The file's issuers, likewise.
    pub(crate) issuers: Option<(String, Table)>,
    /// The file's registered apps, likewise.
    pub(crate) clients: Option<(String, Table)>,
    /// The file's executors, likewise.
    pub(crate) executors: Option<(String, Table)>,
    pub(crate) faults: Vec<String>,
}

impl Layers {
    pub(crate) fn get(&self, path: &str) -> Option<&Given> {
        self.given.get(path)
    }

    /// The place of each value that is given, by the path of its setting.
    pub(crate) fn sources(&self) -> BTreeMap<&'static str, String> {
        self.given.iter().map(|(path, given)| (*path, given.source.clone())).collect()
    }

    /// Adds the file's values.
    pub(crate) fn add_file(&mut self, name: &str, table: &Table) {
        self.add_table(name, "", table);
    }

    fn add_table(&mut self, name: &str, prefix: &str, table: &Table) {
        for (member, value) in table {
            let path = format!("{prefix}{member}");
            let is_section = path == EXECUTORS
                || KEYS
                    .iter()
                    .map(|key| key.path)
                    .chain([OIDC, ISSUERS, CLIENTS])
                    .any(|known| known.starts_with(&format!("{path}.")));
            if let Some(key) = KEYS.iter().find(|key| key.path == path) {
                self.add(key, value.clone(), format!("{name}: `{path}`"));
            } else if path == OIDC
                && let Value::Table(providers) = value
            {
                self.oidc = Some((name.to_owned(), providers.clone()));
            } else if path == ISSUERS
                && let Value::Table(issuers) = value
            {
                self.issuers = Some((name.to_owned(), issuers.clone()));
            } else if path == CLIENTS
                && let Value::Table(clients) = value
            {
                self.clients = Some((name.to_owned(), clients.clone()));
            } else if path == EXECUTORS
                && let Value::Table(executors) = value
            {
                self.executors = Some((name.to_owned(), executors.clone()));
            } else if let (true, Value::Table(section)) = (is_section, value) {
                self.add_table(name, &format!("{path}."), section);
            } else if is_section {
                self.faults.push(format!("{name}: `{path}` is a section: write it as [{path}]"));
            } else if let Some(setting) = misplaced(prefix, member, value) {
                let section = prefix.trim_end_matches('.');
                self.faults.push(format!(
                    "{name}: `{setting}` is below `[{section}]`, which has no such setting: move \
                     the line above the first section"
                ));
            } else {
                let hint = meant_hint(&path, KEYS.iter().map(|key| key.path));
                self.faults.push(format!("{name}: `{path}` is not a setting{hint}"));
            }
        }
    }

    /// Adds the values of the environment.
    pub(crate) fn add_environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for key in KEYS {
            // Scripts unset a variable by an empty value.
            let Some(text) = env(key.variable).filter(|text| !text.is_empty()) else { continue };
            let value = match key.shape {
                Shape::Text | Shape::Duration => Value::String(text),
                Shape::Number => match text.parse() {
                    Ok(number) => Value::Integer(number),
                    Err(_) => Value::String(text),
                },
                Shape::Flag | Shape::FlagOrWord => match text.parse() {
                    Ok(flag) => Value::Boolean(flag),
                    Err(_) => Value::String(text),
                },
                Shape::List => parts(&text),
            };
            self.add(key, value, key.variable.to_owned());
        }
    }

    /// Adds a flag's value, which has the type of the setting already.
    pub(crate) fn add_flag(&mut self, path: &str, flag: &str, value: Option<String>) {
        let (Some(key), Some(value)) = (KEYS.iter().find(|key| key.path == path), value) else {
            return;
        };
        let value = match key.shape {
            Shape::List => parts(&value),
            Shape::Flag => Value::Boolean(value == "true"),
            _ => Value::String(value),
        };
        self.add(key, value, flag.to_owned());
    }

    fn add(&mut self, key: &Key, value: Value, source: String) {
        match fault(key.shape, &value).map(|wanted| at_most(wanted, key.shape, &value)) {
            Some(wanted) => self.faults.push(format!("{source} must be {wanted}")),
            None => {
                self.given.insert(key.path, Given { value, source });
            }
        }
    }
}

/// The setting that was meant if a member of a section is a top-level one: TOML takes a line for a
/// member of the section above it.
fn misplaced(prefix: &str, member: &str, value: &Value) -> Option<String> {
    if prefix.is_empty() {
        return None;
    }
    let names: Vec<String> = match value {
        Value::Table(inner) => inner.keys().map(|key| format!("{member}.{key}")).collect(),
        _ => vec![member.to_owned()],
    };
    names.into_iter().find(|name| KEYS.iter().any(|key| key.path == name))
}

/// The parts of a list in one text. A text without any is a list of none.
fn parts(text: &str) -> Value {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
}

/// The expected type, with the greatest number for a number that is too large.
fn at_most(wanted: &'static str, shape: Shape, value: &Value) -> Cow<'static, str> {
    let is_number = value.as_str().is_some_and(written::is_digits);
    match shape == Shape::Number && is_number {
        true => Cow::Owned(format!("{wanted} and at most {}", i64::MAX)),
        false => Cow::Borrowed(wanted),
    }
}

/// The expected type, if the value does not fit.
fn fault(shape: Shape, value: &Value) -> Option<&'static str> {
    match (shape, value) {
        (Shape::Text, Value::String(_)) => None,
        (Shape::Text, _) => Some("a text"),
        (Shape::Number, Value::Integer(number)) if *number > 0 => None,
        (Shape::Number, _) => Some("a whole number above 0"),
        (Shape::Duration, Value::String(text)) if narthex_client::cli::duration(text).is_ok() => {
            None
        }
        (Shape::Duration, _) => Some("a duration such as \"500ms\", \"30s\" or \"5m\""),
        (Shape::List, Value::Array(items)) if items.iter().all(Value::is_str) => None,
        (Shape::List, _) => Some("a list of texts"),
        (Shape::Flag, Value::Boolean(_)) => None,
        (Shape::Flag, _) => Some("true or false"),
        (Shape::FlagOrWord, Value::Boolean(_) | Value::String(_)) => None,
        (Shape::FlagOrWord, _) => Some("true, false or a word"),
    }
}
