//! The request without a token that asks a server for its challenge.
//!
//! Some servers name their metadata in the refusal alone (C3), so a sign-in that no refused request
//! has begun asks for one.

use http::{HeaderMap, HeaderValue, Method, header};
use narthex_oauth::challenge::Bearer;
use narthex_wire::{
    Revision,
    headers::{MCP_METHOD, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    meta_key, method,
};
use serde_json::{Value, json};
use url::Url;

use crate::{fetch::Fetcher, guard::Guard};

/// The answer of a server to a request without a token.
#[derive(Debug, Clone)]
pub(crate) enum FirstAnswer {
    /// The server asks for a sign-in, with this challenge if there is one of Bearer.
    Refused(Option<Bearer>),
    /// The server answers, so it needs no sign-in for this request.
    Open,
    /// Neither of both.
    Unclear,
}

impl FirstAnswer {
    /// The challenge of a refusal.
    pub(crate) fn challenge(&self) -> Option<&Bearer> {
        match self {
            Self::Refused(bearer) => bearer.as_ref(),
            Self::Open | Self::Unclear => None,
        }
    }
}

/// Asks a server, without a token, which revisions it speaks; one that knows no such question gets
/// the first message of a session. No server acts on either.
pub(crate) async fn ask(fetcher: &Fetcher, guard: &Guard, server: &Url) -> FirstAnswer {
    for (headers, body) in [discover(), initialize()] {
        let asked = fetcher.ask_server(guard, server, Method::POST, headers, body);
        let Some(answer) = asked.await else { return FirstAnswer::Unclear };
        if let Some(session) = answer.headers.get(MCP_SESSION_ID) {
            // Some servers open a session even for a request that they refuse.
            let headers = HeaderMap::from_iter([(MCP_SESSION_ID, session.clone())]);
            let ended = fetcher.ask_server(guard, server, Method::DELETE, headers, Vec::new());
            drop(ended.await);
        }
        let challenges = answer.headers.get_all(header::WWW_AUTHENTICATE).iter();
        let challenges: Vec<_> = challenges.filter_map(|value| value.to_str().ok()).collect();
        match answer.status {
            // Some servers refuse requests without a token in this way, too.
            401 | 403 => return FirstAnswer::Refused(Bearer::find(challenges)),
            200..=299 => return FirstAnswer::Open,
            _ => {}
        }
    }
    FirstAnswer::Unclear
}

/// The question of revision 2026-07-28.
fn discover() -> (HeaderMap, Vec<u8>) {
    let revision = Revision::LATEST.as_str();
    let mut headers = headers();
    headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(revision));
    headers.insert(MCP_METHOD, HeaderValue::from_static(method::SERVER_DISCOVER));
    let meta = json!({
        (meta_key::PROTOCOL_VERSION): revision,
        (meta_key::CLIENT_INFO): client(),
        (meta_key::CLIENT_CAPABILITIES): {},
    });
    (headers, message(method::SERVER_DISCOVER, &json!({"_meta": meta})))
}

/// The first message of older revisions.
fn initialize() -> (HeaderMap, Vec<u8>) {
    let revision = Revision::LEGACY_LATEST.as_str();
    let parameters = json!({
        "protocolVersion": revision, "capabilities": {}, "clientInfo": client(),
    });
    (headers(), message(method::INITIALIZE, &parameters))
}

fn client() -> Value {
    json!({"name": "narthex", "version": env!("CARGO_PKG_VERSION")})
}

fn message(method: &str, parameters: &Value) -> Vec<u8> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    message.to_string().into_bytes()
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    let (json, both) = ("application/json", "application/json, text/event-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(json));
    headers.insert(header::ACCEPT, HeaderValue::from_static(both));
    headers
}
