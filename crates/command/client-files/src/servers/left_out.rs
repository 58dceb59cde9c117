//! Fields of entries that narthex does not keep, with the consequence in words.

use serde_json::Value;

use super::LeftOut;
use super::dialect::Dialect;

/// Fields that say nothing about how a server runs.
const FOR_PEOPLE: [&str; 12] = [
    "name",
    "description",
    "display_name",
    "title",
    "icon",
    "bundled",
    "gallery",
    "version",
    "metadata",
    "source",
    "timestamp",
    "$schema",
];

/// Fields by which a client asks less or signs in by itself.
const APPROVALS: [&str; 6] =
    ["autoApprove", "alwaysAllow", "trust", "allowedTools", "tools", "approval_mode"];
const SIGN_INS: [&str; 6] =
    ["oauth", "auth", "headersHelper", "oauth_client_id", "authProviderType", "oauth_scopes"];

/// The note on a field; `None` if the field has no content, or changes nothing.
pub(super) fn left_out(dialect: &Dialect, field: &str, value: &Value) -> Option<LeftOut> {
    let is_empty = match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    if is_empty || FOR_PEOPLE.contains(&field) {
        return None;
    }
    Some(LeftOut { field: shown(field), words: words(dialect, field).to_owned() })
}

fn words(dialect: &Dialect, field: &str) -> &'static str {
    let addresses = dialect.urls.iter().map(|(field, _)| *field);
    let mut of_transport =
        [dialect.command, dialect.env, "args", "headers"].into_iter().chain(addresses);
    match field {
        "envFile" => "narthex reads no such file; put its variables into `env`",
        "env_vars" => "the variable of another machine is not there",
        _ if APPROVALS.contains(&field) => "each client asks for approvals by itself",
        _ if SIGN_INS.contains(&field) => "the sign-in of the client is its own",
        _ if of_transport.any(|other| other == field) => "the transport does not use it",
        _ => "narthex has no such setting",
    }
}

/// A name for a message.
pub(super) fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect()
}
