//! The settings of a server in words, without any value that may be a secret.

use std::time::Duration;

use narthex_model::{
    Confinement, Gates, HeaderSource, HttpTarget, NetworkAccess, SecretPlace, ServerAuth,
    ServerDefinition, StdioTarget, Target, TrafficLimits,
};
use url::Url;

/// A value that counts now.
pub(super) struct Value {
    /// The key, or the path of keys.
    pub(super) name: String,
    /// The keys of the entry that set it.
    pub(super) keys: &'static [&'static str],
    pub(super) words: String,
    /// The secret or the variables that the entry names in its place.
    pub(super) from: Option<String>,
}

/// The words for a value that is not shown.
const UNSEEN: &str = "set, and not shown";

fn value(keys: &'static [&'static str], words: impl Into<String>) -> Value {
    let name = keys.first().copied().unwrap_or_default().to_owned();
    Value { name, keys, words: words.into(), from: None }
}

/// All settings of a server, also those with their default.
pub(super) fn of(definition: &ServerDefinition) -> Vec<Value> {
    let mut all = vec![value(&["transport"], definition.transport().as_str())];
    match &definition.target {
        Target::Stdio(target) => all.extend(of_program(definition, target)),
        Target::Http(target) => all.extend(of_address(definition, target)),
    }
    all.extend(of_calls(definition));
    all.extend(of_callers(definition));
    all
}

fn of_program(definition: &ServerDefinition, target: &StdioTarget) -> Vec<Value> {
    let arguments = match target.args.len() {
        0 => "none".to_owned(),
        1 => "one, which the file has".to_owned(),
        count => format!("{count}, which the file has"),
    };
    let folder = target.working_dir.as_ref().map(|folder| folder.display().to_string());
    let confinement = target.confinement.as_deref();
    let mut all = vec![
        value(&["command"], target.command.as_str()),
        value(&["args"], arguments),
        value(&["cwd"], folder.unwrap_or_else(|| "the folder of the daemon".to_owned())),
        value(&["confinement"], confinement.map_or("none of its own".to_owned(), confined)),
    ];
    all.extend(target.env.keys().map(|name| {
        let place = SecretPlace::Variable(name.clone());
        let named = definition.named_secrets.iter().find(|secret| secret.place == place);
        let from = named.map(|secret| format!("the secret {}", secret.name));
        let words = if from.is_some() { "a secret" } else { UNSEEN };
        Value { name: format!("env.{name}"), from, ..value(&["env"], words) }
    }));
    all
}

fn of_address(definition: &ServerDefinition, target: &HttpTarget) -> Vec<Value> {
    let mut all = vec![
        value(&["url"], address(&target.url)),
        value(&["auth"], credentials(&target.auth)),
        value(&["autoRecover", "auto_recover"], yes(definition.recovers)),
    ];
    let source = |name: &str| {
        definition.header_sources.iter().find(|source| source.header.eq_ignore_ascii_case(name))
    };
    all.extend(target.headers.keys().map(|name| {
        let from = source(name).and_then(from);
        let words = if from.is_some() { "a value from elsewhere" } else { UNSEEN };
        Value { name: format!("headers.{name}"), from, ..value(&["headers"], words) }
    }));
    let of_auth = definition.named_secrets.iter().filter_map(|secret| match secret.place {
        SecretPlace::Auth(field) => Some((field.key(), &secret.name)),
        SecretPlace::Variable(_) | SecretPlace::Header(_) => None,
    });
    all.extend(of_auth.map(|(field, name)| Value {
        name: format!("auth.{field}"),
        from: Some(format!("the secret {name}")),
        ..value(&["auth"], "a secret")
    }));
    all
}

/// The origin of a header's value, by names alone.
fn from(source: &HeaderSource) -> Option<String> {
    match (&source.secret, &*source.variables) {
        (Some(secret), _) => Some(format!("the secret {secret}")),
        (None, []) => None,
        (None, variables) => Some(format!("the variables {} of the daemon", variables.join(", "))),
    }
}

/// The host of an address. Paths and queries of some servers hold secrets.
fn address(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return UNSEEN.to_owned() };
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let host = url.host_str().unwrap_or_default();
    let path = if matches!(url.path(), "" | "/") { "" } else { ", with a path that the file has" };
    format!("{}://{host}{port}{path}", url.scheme())
}

fn credentials(auth: &ServerAuth) -> String {
    match auth {
        ServerAuth::None => "none".to_owned(),
        ServerAuth::Unstated => "none is named; a sign-in if the server asks for one".to_owned(),
        ServerAuth::ApiKey(key) => format!("apiKey, in the header {}", key.header_name),
        ServerAuth::OAuth(oauth) => oauth.mode().to_owned(),
    }
}

fn confined(confinement: &Confinement) -> String {
    let mut words = Vec::new();
    if let Some(files) = &confinement.files {
        let (read, write) = (files.read.len(), files.write.len());
        words.push(format!("reads below {read} folders, writes below {write}"));
    }
    match &confinement.network {
        NetworkAccess::All => {}
        NetworkAccess::None => words.push("no network".to_owned()),
        NetworkAccess::Connect(ports) => words.push(format!("connects to {} ports", ports.len())),
    }
    if confinement.filters_system_calls {
        words.push("a filter of system calls".to_owned());
    }
    if let Some(memory) = confinement.limits.memory_mb {
        words.push(format!("{memory} MiB of memory"));
    }
    if words.is_empty() { "nothing is limited".to_owned() } else { words.join("; ") }
}

/// The settings of calls.
fn of_calls(definition: &ServerDefinition) -> Vec<Value> {
    let usual = |limit: Option<Duration>| {
        limit.map_or_else(
            || "that of the daemon".to_owned(),
            |limit| format!("{} ms", limit.as_millis()),
        )
    };
    let extends = definition.progress_extends;
    let extends =
        extends.map_or("not extended".to_owned(), |most| format!("to {} ms", most.as_millis()));
    let output = definition.output;
    let most = |limit: Option<std::num::NonZeroU64>, unit: &str| {
        limit.map_or_else(|| "that of the daemon".to_owned(), |limit| format!("{limit} {unit}"))
    };
    vec![
        value(&["timeoutMs", "timeout"], usual(definition.timeout)),
        value(&["progressExtends", "progress_extends"], extends),
        value(&["mountTimeout", "mount_timeout"], usual(definition.mount_timeout)),
        value(&["maxOutputTokens", "max_output_tokens"], most(output.tokens, "tokens")),
        value(&["maxOutputBytes", "max_output_bytes"], most(output.bytes, "bytes")),
        value(&["limits"], limits(&definition.traffic)),
    ]
}

fn limits(traffic: &TrafficLimits) -> String {
    let rate = traffic
        .rate()
        .map(|rate| format!("{} calls a {}, {} at once", rate.calls, rate.period, rate.burst));
    let open = traffic.concurrent_calls.map(|count| format!("{count} calls at the same time"));
    let day = traffic.calls_per_day.map(|count| format!("{count} calls a day"));
    let words: Vec<_> = [rate, open, day].into_iter().flatten().collect();
    if words.is_empty() { "none".to_owned() } else { words.join("; ") }
}

/// The settings of what callers see and may do.
fn of_callers(definition: &ServerDefinition) -> Vec<Value> {
    let exposed = &definition.exposed;
    let rule = |is_open: bool| if is_open { "all are visible" } else { "a rule hides some" };
    let flagged = if definition.shows_flagged { "callers get them" } else { "they wait" };
    let notifications = definition.notifications.iter().map(|name| name.as_str());
    let notifications = notifications.collect::<Vec<_>>().join(", ");
    let none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    vec![
        value(&["tools"], rule(exposed.tools.is_open())),
        value(&["resources"], rule(exposed.resources.is_open())),
        value(&["prompts"], rule(exposed.prompts.is_open())),
        value(&["tool_scopes", "prompt_scopes", "resource_scopes"], none(gates(&definition.gates))),
        value(&["notifications"], none(notifications)),
        value(&["disabled"], yes(definition.is_disabled)),
        value(&["pinDefinitions", "pin_definitions"], yes(definition.pins_definitions)),
        value(&["onFlagged", "on_flagged"], flagged),
    ]
}

/// The gates of tools and prompts by name, and the number of scopes of all gates.
fn gates(gates: &Gates) -> String {
    const SHOWN: usize = 10;
    let named = gates.by_name().map(|(name, scopes)| {
        let scopes: Vec<_> = scopes.iter().map(ToString::to_string).collect();
        format!("{name} requires {}", scopes.join(" and "))
    });
    let mut named: Vec<_> = named.collect();
    let more = named.len().saturating_sub(SHOWN);
    named.truncate(SHOWN);
    match (named.is_empty(), more) {
        (true, _) if gates.is_empty() => String::new(),
        (true, _) => "resources require scopes".to_owned(),
        (false, 0) => named.join("; "),
        (false, more) => format!("{}; {more} more", named.join("; ")),
    }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use narthex_model::{Alias, ApiKeyAuth, NamedSecret, Secret, SecretName};

    use super::*;

    const CANARY: &str = "canary-of-a-secret";

    fn shown(definition: &ServerDefinition) -> String {
        let line = |one: &Value| format!("{}: {} {:?}\n", one.name, one.words, one.from);
        of(definition).iter().map(line).collect()
    }

    /// S27, E147: no value of a variable, a header, a key, an argument or an address is shown.
    #[test]
    fn s27_settings_have_no_secret() {
        let alias = Alias::new("one").unwrap();
        let named = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), Secret::new(CANARY))).collect()
        };
        let program = StdioTarget {
            command: "uvx".to_owned(),
            args: vec![CANARY.to_owned(), "--fast".to_owned()],
            env: named(&["PLAIN", "TOKEN"]),
            working_dir: None,
            confinement: None,
        };
        let mut definition = ServerDefinition::new(alias.clone(), Target::Stdio(program));
        definition.named_secrets.push(NamedSecret {
            name: SecretName::new("GIT_TOKEN").unwrap(),
            key: "servers.one.env.TOKEN".to_owned(),
            place: SecretPlace::Variable("TOKEN".to_owned()),
            opened: None,
        });
        let text = shown(&definition);
        assert!(!text.contains(CANARY), "{text}");
        assert!(text.contains("env.TOKEN: a secret Some(\"the secret GIT_TOKEN\")"), "{text}");
        assert!(text.contains("env.PLAIN: set, and not shown None"), "{text}");
        assert!(text.contains("args: 2, which the file has"), "{text}");
        let address = HttpTarget {
            url: format!("https://user:{CANARY}@one.example.com:8443/{CANARY}?key={CANARY}"),
            is_sse: false,
            headers: named(&["X-Key"]),
            auth: ServerAuth::ApiKey(ApiKeyAuth {
                header_name: "X-Key".to_owned(),
                value_prefix: String::new(),
                key: Some(Secret::new(CANARY)),
            }),
        };
        let text = shown(&ServerDefinition::new(alias, Target::Http(address)));
        assert!(!text.contains(CANARY), "{text}");
        assert!(text.contains("https://one.example.com:8443, with a path"), "{text}");
    }
}
