//! Reading `mcp.json`: accepted and refused texts, and the words of the refusals.

mod auth;
mod confinement;
mod documents;
mod entries;
mod exposed;
mod limits;
mod list;
mod properties;
mod secrets;
mod tolerant;

use std::path::Path;

use narthex_model::{
    CallErrorKind, ConfigFault, HttpTarget, ServerDefinition, StdioTarget, Target,
};
use narthex_registry::config::{
    ConfigFileError, Entry, Env, LoadContext, LoadedConfig, parse, parse_list, parse_settings,
};

/// The environment of every test here.
fn env(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/ada".to_owned()),
        "KEY" => Some("k-123".to_owned()),
        "EMPTY" => Some(String::new()),
        "LINE" => Some("k-123\n".to_owned()),
        "HOST" => Some("api.test".to_owned()),
        "SECRET" => Some("${secret:KEY}".to_owned()),
        "NESTED" => Some("${env:KEY}".to_owned()),
        _ => None,
    }
}

fn context() -> LoadContext<'static> {
    LoadContext {
        file: Path::new("/repo/mcp.json"),
        workspace_root: Path::new("/repo"),
        env: Env::Values(&env),
    }
}

fn load(text: &str) -> Result<LoadedConfig, ConfigFileError> {
    parse(text.as_bytes(), &context())
}

/// The one entry `x` of the strict document.
fn entry(json: &str) -> (Entry, Vec<String>) {
    only(load(&format!("{{\"servers\": {{\"x\": {json}}}}}")).unwrap())
}

/// The one entry `x` of the tolerant document.
fn foreign(json: &str) -> (Entry, Vec<String>) {
    only(load(&format!("{{\"mcpServers\": {{\"x\": {json}}}}}")).unwrap())
}

fn only(mut config: LoadedConfig) -> (Entry, Vec<String>) {
    assert_eq!(config.entries.len(), 1);
    (config.entries.remove(0), config.warnings.iter().map(ToString::to_string).collect())
}

fn server(entry: Entry) -> ServerDefinition {
    match entry {
        Entry::Server(server) => server,
        Entry::Fault(fault) => panic!("{}", fault.error),
    }
}

fn fault(entry: Entry) -> ConfigFault {
    match entry {
        Entry::Fault(fault) => fault,
        Entry::Server(server) => panic!("{server:?}"),
    }
}

fn stdio(entry: Entry) -> StdioTarget {
    match server(entry).target {
        Target::Stdio(stdio) => stdio,
        Target::Http(http) => panic!("{http:?}"),
    }
}

fn http(entry: Entry) -> HttpTarget {
    match server(entry).target {
        Target::Http(http) => http,
        Target::Stdio(stdio) => panic!("{stdio:?}"),
    }
}

/// The message of the fault of `json` as a strict entry.
fn refused(json: &str) -> String {
    fault(entry(json).0).error.message
}

/// Asserts that the strict entry `json` is refused in words that contain each of `parts`.
#[track_caller]
fn assert_refused(json: &str, parts: &[&str]) {
    let message = refused(json);
    for part in parts {
        assert!(message.contains(part), "{json}: `{part}` is not in: {message}");
    }
    assert!(message.starts_with("/repo/mcp.json: `servers.x"), "{message}");
}

/// Asserts that exactly one of `warnings` contains every part.
#[track_caller]
fn assert_warned(warnings: &[String], parts: &[&str]) {
    let told = |warning: &&String| parts.iter().all(|part| warning.contains(part));
    assert_eq!(warnings.iter().filter(told).count(), 1, "{parts:?} in {warnings:#?}");
}
