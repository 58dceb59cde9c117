//! The OpenAPI document of all served routes, made once of four sources. The table of routes has
//! the access rules, and [`operations`] has the purpose of each route. The types in `shapes` have
//! the schemas. Files of JSON in its folder have parameters and headers.
//!
//! Tests of the door compare the document with the daemon: each route and method is described and
//! nothing else, and every answer that a test gets is a described one.
//!
//! Imports no other module of this crate but `shapes`. `document` gives it the routes.

mod access;
mod operation;
mod operations;
mod security;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

pub use self::access::Access;
pub(crate) use self::access::Place;
use self::operation::{Answer, Content, JSON, Operation, meaning, of};
use crate::shapes::{self, Schemas, Shape};

const PARAMETERS: &str = include_str!("openapi/parameters.json");
const HEADERS: &str = include_str!("openapi/headers.json");

const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";
const PROBLEM: &str = "application/problem+json";

/// The schema and the description of a name in braces, by the segment in front of it.
const SEGMENTS: [(&str, Shape, &str); 41] = [
    ("mcp", of::<shapes::Alias>(), "A server of the run."),
    ("p", of::<shapes::ProfileName>(), "A profile."),
    ("w", of::<shapes::WorkspaceId>(), "The workspace of the run."),
    ("{workspace}", of::<shapes::Alias>(), "A server of the run."),
    ("profiles", of::<shapes::ProfileRef>(), "The profile."),
    (
        "vfs",
        of::<shapes::VfsPath>(),
        "The rest of the path: a path of the namespace without its first slash.",
    ),
    ("oauth-protected-resource", of::<shapes::ResourcePath>(), "The endpoint."),
    ("oauth-authorization-server", of::<shapes::ResourcePath>(), "The endpoint."),
    ("openid-configuration", of::<shapes::ResourcePath>(), "The endpoint."),
    ("consent", of::<shapes::ConsentToken>(), "The token of the page."),
    ("clients", of::<shapes::McpClientId>(), "The client."),
    ("link", of::<shapes::SignInToken>(), "The token of the link."),
    ("oidc", of::<shapes::ProviderName>(), "The provider."),
    ("servers", of::<shapes::ServerName>(), "The server."),
    ("callback", of::<shapes::ServerName>(), "The server."),
    ("authorize", of::<shapes::DeviceSignInId>(), "The sign-in."),
    ("versions", of::<shapes::RegistryVersion>(), "The version, or `latest`."),
    ("principals", of::<shapes::PrincipalRef>(), "The id or the name of a human or a service."),
    ("passkeys", of::<shapes::PasskeyId>(), "The passkey."),
    ("workspaces", of::<shapes::WorkspaceId>(), "The workspace."),
    ("users", of::<shapes::PrincipalRef>(), "The human by id or name; `me` is the caller."),
    ("mcp-tokens", of::<shapes::ObjectName>(), "The server of the catalog."),
    ("connections", of::<shapes::ObjectName>(), "The server of the catalog."),
    ("members", of::<shapes::PrincipalRef>(), "The id or the name of a human or a service."),
    ("service-tokens", of::<shapes::TokenId>(), "The token."),
    ("mcp-clients", of::<shapes::McpClientId>(), "The client."),
    ("secrets", of::<shapes::SecretName>(), "The secret."),
    ("env-bindings", of::<shapes::EnvBindingId>(), "The binding."),
    ("grants", of::<shapes::GrantId>(), "The grant."),
    ("grant-requests", of::<shapes::GrantRequestId>(), "The request."),
    ("mcp-servers", of::<shapes::Alias>(), "The server."),
    ("tools", of::<shapes::ToolName>(), "The tool, by the server's own name."),
    ("capabilities", of::<shapes::ObjectName>(), "The capability."),
    ("agents", of::<shapes::ObjectName>(), "The agent."),
    ("mcp-attachments", of::<shapes::Alias>(), "The alias of the attachment."),
    ("runs", of::<shapes::RunId>(), "The run."),
    ("sessions", of::<shapes::SessionId>(), "The session."),
    ("channels", of::<shapes::ChannelName>(), "The channel."),
    ("webhooks", of::<shapes::ChannelName>(), "The webhook."),
    ("shares", of::<shapes::ShareId>(), "The share."),
    ("comments", of::<shapes::ThreadId>(), "The thread of comments."),
];

/// All described operations, with or without a route: paths with a method each. `HEAD` is not
/// listed, as it goes with `GET`.
#[cfg(test)]
pub(crate) fn operations() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = operations::OPERATIONS.iter().flat_map(|(_, all)| all.iter());
    all.map(|one| (one.template, one.method))
}

/// One text that is embedded here, and read by tests.
fn embedded(text: &'static str) -> Map<String, Value> {
    serde_json::from_str(text).expect("the files beside this one are JSON, as a test sees")
}

/// The document of these places. A method without a description is left out.
///
/// # Panics
/// When a file beside this one is no JSON, as a test would have seen.
pub(crate) fn document(places: impl IntoIterator<Item = Place>) -> Value {
    let mut paths = Map::new();
    for route in &places.into_iter().collect::<Vec<_>>() {
        let place = paths.entry(route.template).or_insert_with(|| json!({}));
        for method in route.methods.split(", ") {
            if let Some(described) = operation(route, method) {
                place[method.to_ascii_lowercase()] = described;
            }
        }
        let named = parameters_in(route.template);
        if !named.is_empty() {
            place["parameters"] = json!(named);
        }
    }
    let mut document = described(paths, &schemas());
    // One text, whatever other crates ask of maps.
    document.sort_all_objects();
    document
}

/// The schemas of all bodies, answers and names in paths.
fn schemas() -> Map<String, Value> {
    let mut typed = Schemas::new();
    for one in operations::OPERATIONS.iter().flat_map(|(_, all)| *all) {
        one.body.iter().for_each(|body| typed.add_body(body.schema));
        let answers = one.answers.iter().flatten().flat_map(|answer| answer.content.schemas());
        answers.chain([one.refusal]).for_each(|shape| typed.add_answer(shape));
    }
    let segments = SEGMENTS.iter().map(|(_, shape, _)| *shape);
    segments.chain([of::<shapes::McpError>()]).for_each(|shape| typed.add_answer(shape));
    typed.all()
}

fn described(paths: Map<String, Value>, schemas: &Map<String, Value>) -> Value {
    let tags: Vec<_> =
        operations::OPERATIONS.iter().map(|(name, _)| json!({ "name": name })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "narthex",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of the daemon. Refusals are problem details (RFC 9457).",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": embedded(PARAMETERS),
            "headers": headers(),
            "securitySchemes": security::schemes(),
        },
    })
}

fn headers() -> Map<String, Value> {
    let mut all = embedded(HEADERS);
    for header in all.values_mut().filter_map(Value::as_object_mut) {
        // The name is in the reference to the header.
        header.remove("name");
    }
    all
}

/// Returns `None` for an operation without a description.
fn operation(route: &Place, method: &str) -> Option<Value> {
    let is_head = method == "HEAD";
    let (tag, said) = operations::find(if is_head { "GET" } else { method }, route.template)?;
    let id = if is_head { format!("{}_head", said.id) } else { said.id.to_owned() };
    let named = said.parameters.iter();
    let keyed = is_keyed(route, method).then_some(&"idempotency_key");
    let parameters: Vec<_> = named.chain(keyed).map(|name| reference("parameters", name)).collect();
    let mut described = json!({
        "operationId": id,
        "summary": said.summary,
        "description": security::words(route.access),
        "tags": [tag],
        "security": security::needed(route.access, method),
        "responses": responses(route, method, said),
    });
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(body) = said.body {
        let schema = json!({ "schema": reference("schemas", &body.schema.name()) });
        let content: Map<_, _> =
            body.media.iter().map(|media| ((*media).to_owned(), schema.clone())).collect();
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    Some(described)
}

/// True for a write that can be repeated with a key (X-E104).
fn is_keyed(route: &Place, method: &str) -> bool {
    let is_read = matches!(method, "GET" | "HEAD");
    match route.access {
        Access::Open | Access::Own(_) | Access::Client => false,
        Access::Shared
        | Access::Whole
        | Access::Operator
        | Access::Known
        | Access::Member(_)
        | Access::Starter(_)
        | Access::OwnRun => !is_read,
    }
}

fn responses(route: &Place, method: &str, said: &Operation) -> Map<String, Value> {
    let (is_head, is_keyed) = (method == "HEAD", is_keyed(route, method));
    let mut all = Map::new();
    let mut refused = problems(route, said);
    if is_keyed {
        // The whole body is read for the key, whatever is done with it.
        refused.extend([400, 408, 413]);
    }
    for status in refused {
        let mut response = json!({ "description": meaning(status) });
        if !is_head {
            response["content"] = refusal(route, said);
        }
        match (status, route.access) {
            (429, _) => response["headers"] = referred(&["RetryAfter"]),
            (401, Access::Own(_)) => {}
            (401, _) | (400 | 403, Access::Client) => {
                response["headers"] = referred(&["WwwAuthenticate"]);
            }
            _ => {}
        }
        all.insert(status.to_string(), response);
    }
    for answer in said.answers.iter().flatten() {
        let mut response = json!({ "description": done(answer.status) });
        let content = content(answer);
        if !is_head && !content.is_empty() {
            response["content"] = json!(content);
        }
        let replayed = is_keyed.then_some("IdempotencyReplayed");
        let headers: Vec<_> = answer.headers.iter().copied().chain(replayed).collect();
        if !headers.is_empty() {
            response["headers"] = referred(&headers);
        }
        all.insert(answer.status.to_string(), response);
    }
    all
}

fn done(status: u16) -> &'static str {
    match status {
        200 => "the request succeeded",
        201 => "the object was created",
        202 => "the request was accepted",
        204 => "done; the answer has no body",
        303 => "the browser is redirected to `Location`",
        304 => "the copy that `If-None-Match` names is still right; the answer has no body",
        _ => meaning(status),
    }
}

/// The possible problems: those of the operation, and those of its kind of route.
fn problems(route: &Place, said: &Operation) -> BTreeSet<u16> {
    let mut all = BTreeSet::from([403]);
    all.extend(said.problems);
    let is_api = ["/api/", "/v0.1/"].iter().any(|start| route.template.starts_with(start));
    match route.access {
        Access::Open => {}
        Access::Own(_) => {
            all.insert(404);
        }
        Access::Client => all.extend([401, 404]),
        Access::Shared | Access::Whole => all.extend([401, 500, 503]),
        Access::Operator
        | Access::Known
        | Access::Member(_)
        | Access::Starter(_)
        | Access::OwnRun => {
            // A process may have no control plane, or no store.
            all.extend([401, 409, 500, 503, 504]);
        }
    }
    if is_api {
        all.insert(422);
    }
    if is_api && route.template.contains('{') {
        all.insert(404);
    }
    if is_api && said.body.is_some() {
        all.extend([400, 408, 413, 415]);
    }
    all
}

/// The body of a refusal. Browsers get a page, and a reader of MCP messages gets a JSON-RPC error
/// if the request was a message.
fn refusal(route: &Place, said: &Operation) -> Value {
    let refer = |shape: Shape| reference("schemas", &shape.name());
    let mut content = json!({ PROBLEM: { "schema": refer(said.refusal) } });
    let reads_json = said.body.is_some_and(|body| body.media.contains(&JSON));
    match route.access {
        Access::Own(_) if !reads_json => {
            content["text/html"] = json!({ "schema": { "type": "string" } });
        }
        Access::Client => {
            content[JSON] = json!({ "schema": refer(Shape::of::<shapes::McpError>()) });
        }
        _ => {}
    }
    content
}

fn content(answer: &Answer) -> Map<String, Value> {
    let refer = |schema: Shape| reference("schemas", &schema.name());
    let schema = |name| json!({ "schema": refer(name) });
    let text = |media| match media {
        // Messages of others, which have their own description.
        JSON | EVENTS => json!({}),
        _ => json!({ "schema": { "type": "string" } }),
    };
    // The data of each event; a stream as a whole has no schema.
    let events = |name| json!({ "x-event": refer(name) });
    let media: Vec<(&str, Value)> = match answer.content {
        Content::None => Vec::new(),
        Content::Json(name) => vec![(JSON, schema(name))],
        Content::Either(one, other) => {
            let either = [refer(one), refer(other)];
            vec![(JSON, json!({ "schema": { "oneOf": either } }))]
        }
        Content::Events(event) => vec![(EVENTS, events(event))],
        Content::JsonOrEvents(name, event) => vec![(JSON, schema(name)), (EVENTS, events(event))],
        Content::JsonOrLines(name) => vec![(JSON, schema(name)), (LINES, text(LINES))],
        Content::File => vec![("*/*", json!({}))],
        Content::Text(all) => all.iter().map(|media| (*media, text(*media))).collect(),
    };
    media.into_iter().map(|(media, described)| (media.to_owned(), described)).collect()
}

/// Headers under the names that they have in a message.
fn referred(names: &[&str]) -> Value {
    let all = embedded(HEADERS);
    let named = |name: &&str| {
        let own = all.get(*name).and_then(|header| header["name"].as_str()).unwrap_or(name);
        (own.to_owned(), reference("headers", name))
    };
    Value::Object(names.iter().map(named).collect())
}

/// The parameters for the names in braces of a path.
fn parameters_in(template: &str) -> Vec<Value> {
    let segments: Vec<&str> = template.split('/').collect();
    let named = segments.windows(2).filter_map(|pair| {
        let name = pair[1].strip_prefix('{')?.strip_suffix('}')?;
        let (_, schema, words) = SEGMENTS.iter().find(|(before, ..)| *before == pair[0])?;
        Some(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": words,
            "schema": reference("schemas", &schema.name()),
        }))
    });
    named.collect()
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}
