//! The protected MCP server: Streamable HTTP with three tools, and the challenges of OAuth.

use serde_json::{Value, json};

use super::{answer::Answer, asked::Asked, books::Grant, metadata::ELSEWHERE, site::Site};

/// Revisions with a handshake that the server speaks, the preferred one first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The stateless revision.
const STATELESS: &str = "2026-07-28";
/// The tool that needs a scope of its own, which has the same name.
const ADMIN: &str = "admin";

/// The reason why a request is refused.
enum Denial {
    Missing,
    Invalid(&'static str),
    Insufficient { needed: Vec<String>, missing: Vec<String> },
}

/// Answers a request to the MCP server with this path.
pub(super) fn answer(site: &mut Site, path: &str, asked: &Asked) -> Answer {
    let message = asked.json();
    let method = message["method"].as_str().unwrap_or_default();
    let is_call = method == "tools/call";
    let quirks = site.quirks();
    let is_open = !is_call && (quirks.handshake_is_open || quirks.hides_401_in_200);
    let holder = allowed(site, path, asked).cloned();
    let holder = match holder {
        Ok(holder) => Some(holder),
        Err(_) if is_open => None,
        Err(Denial::Missing | Denial::Invalid(_)) if site.quirks().hides_401_in_200 => {
            return result(&message, hidden());
        }
        Err(denial) => return refused(site, path, &denial),
    };
    match asked.method.as_str() {
        "POST" if message.get("id").is_none() => Answer::empty(202),
        "POST" => spoken(site, &message, holder.as_ref()),
        _ => Answer::text(405, "no stream and no session").header("allow", "POST"),
    }
}

/// The rights of the request's token, if they suffice.
fn allowed<'s>(site: &'s Site, path: &str, asked: &Asked) -> Result<&'s Grant, Denial> {
    let message = asked.json();
    let Some(token) = asked.bearer() else { return Err(Denial::Missing) };
    let holder = site.holder(token).filter(|_| !site.quirks().refuses_all_tokens);
    let grant = holder.ok_or(Denial::Invalid("The access token is not alive"))?;
    let own = [site.resource(path), format!("{}{path}", site.origins[0])];
    if !grant.audience.iter().any(|one| own.contains(one)) {
        return Err(Denial::Invalid("The access token is for another resource"));
    }
    let mut needed = site.settings.required_scopes.clone();
    if message["method"] == "tools/call" && message["params"]["name"] == ADMIN {
        needed.push(ADMIN.to_owned());
    }
    let missing = needed.iter().filter(|scope| !grant.scopes.contains(scope));
    let missing: Vec<_> = missing.cloned().collect();
    if missing.is_empty() { Ok(grant) } else { Err(Denial::Insufficient { needed, missing }) }
}

fn refused(site: &Site, path: &str, denial: &Denial) -> Answer {
    let quirks = site.quirks();
    let mut parts = Vec::new();
    if !(quirks.challenge_without_metadata || quirks.no_resource_metadata) {
        let origin = &site.origins[0];
        let between = if quirks.resource_metadata_elsewhere { ELSEWHERE } else { "" };
        let url = match quirks.metadata_only_at_root {
            true => format!("{origin}/.well-known/oauth-protected-resource"),
            false => format!("{origin}/.well-known/oauth-protected-resource{between}{path}"),
        };
        parts.push(format!("resource_metadata=\"{url}\""));
    }
    let required = site.settings.required_scopes.join(" ");
    let (status, code, text, scope) = match denial {
        Denial::Missing => (401, "", "A token is required", required),
        Denial::Invalid(text) => (401, "invalid_token", *text, required),
        Denial::Insufficient { needed, missing } => {
            let list = if quirks.challenge_names_missing_only { missing } else { needed };
            (403, "insufficient_scope", "More scopes are required", list.join(" "))
        }
    };
    if !(status == 401 && quirks.challenge_without_scope) {
        parts.push(format!("scope=\"{scope}\""));
    }
    if !code.is_empty() {
        parts.push(format!("error=\"{code}\", error_description=\"{text}\""));
    }
    let bearer = format!("Bearer {}", parts.join(", "));
    let challenges = match status {
        401 if quirks.no_challenge => Vec::new(),
        401 if quirks.no_bearer_challenge => vec!["Basic realm=\"fixture\"".to_owned()],
        401 if quirks.several_challenges => vec![
            "Negotiate".to_owned(),
            format!("Digest realm=\"a, Bearer b=\\\"c\\\"\", nonce=\"d\", {bearer}"),
        ],
        _ => vec![bearer.trim_end().to_owned()],
    };
    let answer = Answer::json(status, &json!({"error": code, "error_description": text}));
    challenges.iter().fold(answer, |answer, one| answer.header("www-authenticate", one))
}

/// A tool error that tells about a dead token.
fn hidden() -> Value {
    let text = "HTTP 401: invalid_token (the access token is missing or not alive)";
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

fn spoken(site: &mut Site, message: &Value, holder: Option<&Grant>) -> Answer {
    let is_stateless = site.settings.is_stateless;
    match message["method"].as_str().unwrap_or_default() {
        "initialize" if !is_stateless => result(message, initialized(message)),
        "server/discover" if is_stateless => {
            let found = json!({"supportedVersions": [STATELESS], "capabilities": {"tools": {}}});
            result(message, cacheable(true, found))
        }
        "server/discover" => {
            let error = json!({"code": -32000, "message": "the server is not initialized"});
            Answer::json(400, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
        }
        "ping" => result(message, json!({})),
        "tools/list" => result(message, cacheable(is_stateless, tools())),
        "tools/call" => called(site, message, holder),
        method => {
            let error = json!({"code": -32601, "message": format!("no method {method}")});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            Answer::json(if is_stateless { 404 } else { 200 }, &body)
        }
    }
}

fn initialized(message: &Value) -> Value {
    let wanted = message["params"]["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == wanted).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "narthex-protected-fixture", "version": "1"},
    })
}

fn tools() -> Value {
    let tool = |name: &str, description: &str| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        json!({"name": name, "description": description, "inputSchema": schema})
    };
    json!({"tools": [
        tool("whoami", "Tells whose token called."),
        tool("echo", "Returns its text."),
        tool(ADMIN, "Needs the scope of its name."),
    ]})
}

fn called(site: &mut Site, message: &Value, holder: Option<&Grant>) -> Answer {
    let is_stateless = site.settings.is_stateless;
    // Calls are never open to clients without a token.
    let Some(holder) = holder else { return Answer::empty(401) };
    let parameters = &message["params"];
    let text = match parameters["name"].as_str().unwrap_or_default() {
        "whoami" => holder.subject.as_str(),
        "echo" => {
            let arguments = &parameters["arguments"];
            // The load generator has another name for it.
            arguments["text"].as_str().or(arguments["message"].as_str()).unwrap_or_default()
        }
        ADMIN => "done",
        name => {
            let error = json!({"code": -32602, "message": format!("no tool {name}")});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Answer::json(200, &body);
        }
    };
    let value = json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": {
            "subject": holder.subject,
            "client": holder.client,
            "scopes": holder.scopes,
            "issuer": site.issuer(holder.issuer),
        },
    });
    site.books.counts.calls += 1;
    result(message, complete(is_stateless, value))
}

/// A result with the marks of the stateless revision, if it is that one.
fn complete(is_stateless: bool, mut value: Value) -> Value {
    if is_stateless {
        value["resultType"] = "complete".into();
    }
    value
}

/// A result that a client may store for itself, if the revision is the stateless one.
fn cacheable(is_stateless: bool, mut value: Value) -> Value {
    if is_stateless {
        value["ttlMs"] = 60_000.into();
        value["cacheScope"] = "private".into();
    }
    complete(is_stateless, value)
}

fn result(message: &Value, value: Value) -> Answer {
    Answer::json(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": value}))
}
