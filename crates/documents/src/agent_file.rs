//! An `agent.yaml` with its servers inside, in `mcp.servers` (R-M4, R-M5, R-M8), or with the names
//! of some of the catalog (R-E22): taken apart into servers and an agent that attaches them.

use narthex_cli::duration;
use narthex_model::{SecretName, json::shortened};
use serde_json::{Map, Value, json};

use crate::DocumentError;

/// An agent, and what stood inside it.
#[derive(Debug)]
pub struct TakenApart {
    /// The agent, which attaches them.
    pub agent: Value,
    /// Servers of the catalog, named after the agent, so that no other's is overwritten.
    pub servers: Vec<Value>,
    /// What was written in another way, in words for people (D7).
    pub notices: Vec<String>,
}

/// Takes out `mcp`, if it is there.
///
/// # Errors
/// When a part of it cannot be used; the message names its place.
pub fn take_apart(mut agent: Value) -> Result<TakenApart, DocumentError> {
    let mut notices = Vec::new();
    let mut servers = Vec::new();
    let Some(mcp) = agent.as_object_mut().and_then(|fields| fields.remove("mcp")) else {
        return Ok(TakenApart { agent, servers, notices });
    };
    if let Value::Array(names) = &mcp {
        attach_all(&mut agent, names)?;
        return Ok(TakenApart { agent, servers, notices });
    }
    let name = agent["name"].as_str().unwrap_or_default().to_owned();
    let empty = Map::new();
    let inner = if mcp.is_null() { &empty } else { only(&mcp, "mcp", &["servers"])? };
    let inline = match inner.get("servers") {
        None | Some(Value::Null) => &empty,
        Some(servers) => object(servers, "mcp.servers")?,
    };
    if inline.is_empty() {
        notices.push(format!("the agent {name} has `mcp` without a server"));
    }
    for (alias, entry) in inline {
        let (entry, told) = server(&name, alias, entry)?;
        notices.extend(told);
        attach(&mut agent, alias, &entry["id"], &format!("mcp.servers.{}", shortened(alias)))?;
        servers.push(entry);
    }
    Ok(TakenApart { agent, servers, notices })
}

/// `mcp` as a list: servers of the catalog, each attached under its own name (R-E22).
fn attach_all(agent: &mut Value, names: &[Value]) -> Result<(), DocumentError> {
    for (at, name) in names.iter().enumerate() {
        let at = format!("mcp[{at}]");
        let alias =
            name.as_str().ok_or_else(|| invalid(&at, "the name of a server belongs here"))?;
        attach(agent, alias, name, &at)?;
    }
    Ok(())
}

fn attach(agent: &mut Value, alias: &str, id: &Value, at: &str) -> Result<(), DocumentError> {
    let attached = &mut agent["mcpServers"];
    if attached.is_null() {
        *attached = json!({});
    }
    let is_new = match attached.as_object_mut() {
        Some(attached) => attached.insert(alias.to_owned(), json!({ "ref": id })).is_none(),
        None => return Err(invalid("mcpServers", "an object belongs here")),
    };
    is_new.then_some(()).ok_or_else(|| invalid(at, "the agent has this alias before"))
}

fn server(agent: &str, alias: &str, entry: &Value) -> Result<(Value, Vec<String>), DocumentError> {
    let at = format!("mcp.servers.{}", shortened(alias));
    let known = ["command", "args", "env", "transport_type", "timeout", "max_output_tokens"];
    let fields = only(entry, &at, &known)?;
    let mut made = json!({ "id": format!("{agent}-{alias}"), "name": alias, "type": "stdio" });
    for (key, value) in fields {
        match key.as_str() {
            "transport_type" if value == "stdio" => {}
            "transport_type" => return Err(invalid(&format!("{at}.{key}"), "write `stdio`")),
            "timeout" => made["timeoutMs"] = timeout(value, &at)?,
            "max_output_tokens" => made["maxOutputTokens"] = value.clone(),
            "env" => {}
            _ => made[key] = value.clone(),
        }
    }
    let mut notices = Vec::new();
    let mut env = Map::new();
    if let Some(given) = fields.get("env").filter(|env| !env.is_null()) {
        for (key, value) in object(given, &format!("{at}.env"))? {
            let (text, notice) = self::value(value, &format!("{at}.env.{key}"), true)?;
            notices.extend(notice);
            env.insert(key.clone(), text.into());
        }
    }
    made["default_config"] = env.into();
    Ok((made, notices))
}

/// A value as the catalog writes it, and what to tell people of it. `${VAR}` alone is a secret of
/// the workspace where there may be one; else, and inside a longer text, a variable of the daemon.
pub(super) fn value(
    written: &Value,
    at: &str,
    may_be_secret: bool,
) -> Result<(String, Option<String>), DocumentError> {
    let written = match written {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => written.to_string(),
        _ => return Err(invalid(at, "a text belongs here")),
    };
    if may_be_secret && is_secret(&written) {
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
        let name = after.split_once('}').filter(|(name, _)| is_name(name));
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

pub(super) fn is_secret(text: &str) -> bool {
    let inside = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|name| SecretName::new(name).is_ok())
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Seconds, or a text with its unit.
fn timeout(value: &Value, at: &str) -> Result<Value, DocumentError> {
    let ms = match value {
        Value::String(text) => {
            duration(text).ok().and_then(|time| u64::try_from(time.as_millis()).ok())
        }
        Value::Number(seconds) => seconds.as_u64().and_then(|seconds| seconds.checked_mul(1000)),
        _ => None,
    };
    let wrong = || invalid(&format!("{at}.timeout"), "write a time such as `30s`");
    ms.map(Value::from).ok_or_else(wrong)
}

fn only<'v>(
    value: &'v Value,
    at: &str,
    known: &[&str],
) -> Result<&'v Map<String, Value>, DocumentError> {
    let fields = object(value, at)?;
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(fields),
        Some(key) => {
            let place = format!("{at}.{}", shortened(key));
            Err(invalid(&place, &format!("the keys here are `{}`", known.join("`, `"))))
        }
    }
}

pub(super) fn object<'v>(
    value: &'v Value,
    at: &str,
) -> Result<&'v Map<String, Value>, DocumentError> {
    value.as_object().ok_or_else(|| invalid(at, "an object belongs here"))
}

pub(super) fn invalid(at: &str, remedy: &str) -> DocumentError {
    DocumentError::Invalid(format!("`{at}` cannot be used; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-M4, R-M5: servers of an agent become servers of the catalog that it attaches.
    #[test]
    fn r_m4_servers_inside_an_agent_are_taken_out() {
        let agent = json!({ "name": "helper", "mcp": { "servers": { "github": {
            "command": "npx", "args": ["-y", "x"], "transport_type": "stdio", "timeout": "15s",
            "max_output_tokens": 2048,
            "env": { "TOKEN": "${TOKEN}", "URL": "https://${HOST}/${p}?a=${", "PORT": 80 } } } } });
        let TakenApart { agent, servers, notices } = take_apart(agent).unwrap();
        let attached =
            json!({ "name": "helper", "mcpServers": { "github": { "ref": "helper-github" } } });
        assert_eq!(agent, attached);
        assert_eq!(
            servers,
            [json!({ "id": "helper-github", "name": "github", "type": "stdio",
            "command": "npx", "args": ["-y", "x"], "timeoutMs": 15000, "maxOutputTokens": 2048,
            "default_config": { "TOKEN": "${TOKEN}", "PORT": "80",
                "URL": "https://${env.HOST}/${env.p}?a=$${" } })]
        );
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices.iter().any(|text| text.contains("`${TOKEN}` is read as the secret")));
    }

    /// R-M8: `mcp: {}` is a mark that there are none.
    #[test]
    fn r_m8_no_servers_are_no_fault() {
        for mcp in [json!({}), json!(null), json!({ "servers": {} })] {
            let apart = take_apart(json!({ "name": "a", "mcp": mcp })).unwrap();
            assert_eq!((apart.agent, apart.servers.len()), (json!({ "name": "a" }), 0));
            assert_eq!(apart.notices.len(), 1);
        }
        assert!(take_apart(json!({ "name": "a" })).unwrap().notices.is_empty());
    }

    /// R-E22: a list of names attaches servers of the catalog, beside what is attached otherwise.
    #[test]
    fn r_e22_a_list_of_names_attaches_them() {
        let agent = json!({ "name": "a", "mcp": ["github", "docs"],
            "mcpServers": { "library": { "ref": "docs" } } });
        let apart = take_apart(agent).unwrap();
        let attached = json!({ "github": { "ref": "github" }, "docs": { "ref": "docs" },
            "library": { "ref": "docs" } });
        assert_eq!(apart.agent, json!({ "name": "a", "mcpServers": attached }));
        assert!(apart.servers.is_empty() && apart.notices.is_empty());
    }

    #[test]
    fn r_m4_what_cannot_be_used_is_named() {
        let with = |server: Value| json!({ "name": "a", "mcp": { "servers": { "s": server } } });
        for (agent, place) in [
            (json!({ "name": "a", "mcp": { "server": {} } }), "`mcp.server`"),
            (json!({ "name": "a", "mcp": "github" }), "`mcp`"),
            (json!({ "name": "a", "mcp": ["github", 1] }), "`mcp[1]`"),
            (json!({ "name": "a", "mcp": ["github", "github"] }), "`mcp[1]`"),
            (with(json!({ "comand": "x" })), "`mcp.servers.s.comand`"),
            (with(json!({ "transport_type": "http" })), "`mcp.servers.s.transport_type`"),
            (with(json!({ "timeout": "soon" })), "`mcp.servers.s.timeout`"),
            (with(json!({ "env": { "A": [] } })), "`mcp.servers.s.env.A`"),
            (with(json!(3)), "`mcp.servers.s`"),
        ] {
            let error = take_apart(agent).unwrap_err();
            assert!(error.to_string().starts_with(place), "{error}");
        }
        let mut both = with(json!({ "command": "x" }));
        both["mcpServers"] = json!({ "s": { "ref": "t" } });
        let error = take_apart(both).unwrap_err().to_string();
        assert!(error.starts_with("`mcp.servers.s`") && error.contains("before"), "{error}");
    }
}
