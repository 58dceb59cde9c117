//! What desktop clients keep their servers in, `{"mcpServers": {…}}`, pasted as a file: each of
//! them becomes a server of the catalog (X-M12, D7).

use narthex_model::{SecretReference, UnknownKey, written::is_variable_name};
use serde_json::{Map, Value, json};

use crate::DocumentError;

/// Servers, and what of them was written in another way, in words for people.
#[derive(Debug)]
pub struct Pasted {
    /// Servers of the catalog.
    pub servers: Vec<Value>,
    /// In words for people.
    pub notices: Vec<String>,
}

/// The members under which clients keep their servers.
const PLACES: [&str; 2] = ["mcpServers", "servers"];

/// The member with the headers of a server.
const HEADERS: &str = "headers";

/// What stands before a token in the header that has it (RFC 6750 §2.1).
const BEARER: &str = "Bearer ";

/// Takes the servers out; `None` if this is one server.
///
/// # Errors
/// When a part cannot be used; the message names its place.
pub fn take_out(document: &Value) -> Result<Option<Pasted>, DocumentError> {
    let Some(fields) = document.as_object() else { return Ok(None) };
    let Some(place) = PLACES.into_iter().find(|place| fields.contains_key(*place)) else {
        return Ok(None);
    };
    if let Some(other) = fields.keys().find(|key| *key != place && !key.starts_with('$')) {
        let at = narthex_model::json::shortened(other);
        return Err(invalid(&at, &format!("leave nothing here but `{place}`")));
    }
    let mut pasted = Pasted { servers: Vec::new(), notices: Vec::new() };
    for (alias, entry) in object(&fields[place], place)? {
        let at = format!("{place}.{}", narthex_model::json::shortened(alias));
        let mut server = object(entry, &at)?.clone();
        if server.get("id").is_some_and(|id| id.as_str() != Some(alias)) {
            return Err(invalid(&format!("{at}.id"), "leave it out: the name is the id"));
        }
        server.insert("id".to_owned(), alias.clone().into());
        rewrite(&mut server, &at, &mut pasted.notices)?;
        pasted.servers.push(server.into());
    }
    Ok(Some(pasted))
}

/// Writes `${VAR}` as the catalog does. A secret stands in a variable or a header, as a whole.
fn rewrite(
    server: &mut Map<String, Value>,
    at: &str,
    notices: &mut Vec<String>,
) -> Result<(), DocumentError> {
    // The catalog itself knows no `headers`, so it could not name them.
    for key in server.keys().filter(|key| *key != HEADERS) {
        if UnknownKey::new(key, &[HEADERS]).meant().is_some() {
            let at = format!("{at}.{}", narthex_model::json::shortened(key));
            return Err(invalid(&at, &format!("did you mean `{HEADERS}`?")));
        }
    }
    let at_env = format!("{at}.env");
    if let Some(env) = server.get_mut("env").filter(|env| !env.is_null()) {
        object(env, &at_env)?;
        for (key, written) in env.as_object_mut().into_iter().flatten() {
            let (text, notice) = value(written, &format!("{at_env}.{key}"), true)?;
            notices.extend(notice);
            *written = text.into();
        }
    }
    if let Some(given) = server.remove(HEADERS).filter(|given| !given.is_null()) {
        headers(server, &given, &format!("{at}.headers"), notices)?;
    }
    if let Some(url) = server.get_mut("url") {
        let (text, notice) = value(url, &format!("{at}.url"), false)?;
        notices.extend(notice);
        *url = text.into();
    }
    for (index, arg) in
        server.get_mut("args").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        let (text, notice) = value(arg, &format!("{at}.args[{index}]"), false)?;
        notices.extend(notice);
        *arg = text.into();
    }
    Ok(())
}

/// Headers are configuration of the catalog, except for a token, which is authentication.
fn headers(
    server: &mut Map<String, Value>,
    given: &Value,
    at: &str,
    notices: &mut Vec<String>,
) -> Result<(), DocumentError> {
    let mut config = Map::new();
    for (name, written) in object(given, at)? {
        let at = format!("{at}.{name}");
        let token = written.as_str().and_then(|text| text.strip_prefix(BEARER));
        if let Some(token) = token.filter(|token| SecretReference::parse(token).is_ok())
            && name.eq_ignore_ascii_case("authorization")
        {
            notices.push(format!("{at}: `{token}` is read as the secret of that name"));
            let auth = json!({ "mode": "apiKey", "key": token, "headerName": "Authorization",
                               "valuePrefix": BEARER });
            server.insert("auth".to_owned(), auth);
            continue;
        }
        let (text, notice) = value(written, &at, true)?;
        notices.extend(notice);
        config.insert(name.clone(), text.into());
    }
    if !config.is_empty() {
        server.insert("verbatim_headers".to_owned(), true.into());
        server.insert("default_config".to_owned(), config.into());
    }
    Ok(())
}

/// A value as the catalog writes it, and what to tell people of it. `${VAR}` alone is a secret of
/// the workspace where there may be one; else, and inside a longer text, a variable of the daemon.
fn value(
    written: &Value,
    at: &str,
    may_be_secret: bool,
) -> Result<(String, Option<String>), DocumentError> {
    let written = match written {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => written.to_string(),
        _ => return Err(invalid(at, "a text belongs here")),
    };
    if may_be_secret && SecretReference::parse(&written).is_ok() {
        let notice = format!("{at}: `{written}` is read as the secret of that name");
        return Ok((written, Some(notice)));
    }
    let rewritten = rewritten(&written);
    let notice = (rewritten != written).then(|| {
        format!("{at}: `{written}` is read as `{rewritten}`, with variables of the daemon")
    });
    Ok((rewritten, notice))
}

fn rewritten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let name = after.split_once('}').filter(|(name, _)| is_variable_name(name));
        match name {
            Some((name, behind)) => {
                out.push_str(&format!("${{env.{name}}}"));
                rest = behind;
            }
            None => {
                // Not a variable: text, as it was.
                out.push_str("$${");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn object<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>, DocumentError> {
    value.as_object().ok_or_else(|| invalid(at, "an object belongs here"))
}

fn invalid(at: &str, remedy: &str) -> DocumentError {
    DocumentError::Invalid(format!("`{at}` cannot be used; {remedy}"))
}

#[cfg(test)]
mod tests {

    use super::*;

    /// X-M12, D7: what is pasted is as many servers as stand in it, and what is read in another way
    /// is told.
    #[test]
    fn x_m12_servers_of_a_desktop_client_are_taken_out() {
        let document = json!({ "mcpServers": {
            "docs": { "url": "https://${HOST}/mcp", "headers": {
                "authorization": "Bearer ${TOKEN}", "x-key": "${DOCS_KEY}" } },
            "github": { "command": "npx", "args": ["-y", "x", "${HOME}/x"],
                        "env": { "TOKEN": "${GITHUB_TOKEN}", "PORT": 80 } } } });
        let Pasted { servers, notices } = take_out(&document).unwrap().unwrap();
        assert_eq!(
            servers,
            [
                json!({ "id": "docs", "url": "https://${env.HOST}/mcp", "verbatim_headers": true,
                    "default_config": { "x-key": "${DOCS_KEY}" },
                    "auth": { "mode": "apiKey", "key": "${TOKEN}", "headerName": "Authorization",
                              "valuePrefix": "Bearer " } }),
                json!({ "id": "github", "command": "npx", "args": ["-y", "x", "${env.HOME}/x"],
                    "env": { "TOKEN": "${GITHUB_TOKEN}", "PORT": "80" } }),
            ]
        );
        assert_eq!(notices.len(), 5, "{notices:?}");
        assert!(notices[0].starts_with("mcpServers.docs.headers.authorization"), "{notices:?}");
    }

    #[test]
    fn x_m12_one_server_is_left_as_it_is() {
        for one in [json!({ "id": "a", "command": "npx" }), json!([]), json!(null)] {
            assert!(take_out(&one).unwrap().is_none(), "{one}");
        }
    }

    #[test]
    fn x_m12_what_cannot_be_used_is_named() {
        for (document, place) in [
            (json!({ "mcpServers": [] }), "`mcpServers`"),
            (json!({ "mcpServers": { "a": 1 } }), "`mcpServers.a`"),
            (json!({ "mcpServers": { "a": { "id": "b" } } }), "`mcpServers.a.id`"),
            (json!({ "mcpServers": { "a": { "env": { "B": {} } } } }), "`mcpServers.a.env.B`"),
            (json!({ "mcpServers": { "a": { "args": [{}] } } }), "`mcpServers.a.args[0]`"),
            (json!({ "mcpServers": {}, "theme": "dark" }), "`theme`"),
            (
                json!({ "mcpServers": { "a": { "url": "https://a.test", "hedaers": {} } } }),
                "`mcpServers.a.hedaers` cannot be used; did you mean `headers`?",
            ),
        ] {
            let error = take_out(&document).unwrap_err();
            assert!(error.to_string().starts_with(place), "{error}");
        }
    }
}
