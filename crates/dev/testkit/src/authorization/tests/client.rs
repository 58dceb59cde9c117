//! A small OAuth client for these tests.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::authorization::{
    AuthorizationFixture, ClientSettings, Quirks, Settings, coded, form, form_of,
};

pub(super) const REDIRECT: &str = "http://127.0.0.1:1/oauth/callback/one";
const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters";

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A fixture, and the way to it.
pub(super) struct Peer {
    pub(super) fixture: AuthorizationFixture,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Peer {
    pub(super) fn start(settings: Settings) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { fixture: AuthorizationFixture::start(settings), http }
    }

    /// One with these quirks and the public client `narthex`.
    pub(super) fn with(quirks: Quirks) -> Self {
        let clients = vec![ClientSettings::public("narthex", &[REDIRECT])];
        Self::start(Settings { clients, ..Settings::with(quirks) })
    }

    pub(super) async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body)).unwrap();
        let (parts, body) = self.http.request(request).await.unwrap().into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    /// True if an address closes the connection without an answer.
    pub(super) async fn is_hung_up(&self, method: &str, url: &str) -> bool {
        let request = Request::builder().method(method).uri(url).body(Full::default()).unwrap();
        self.http.request(request).await.is_err()
    }

    pub(super) async fn get(&self, url: &str) -> Answer {
        self.send("GET", url, &[], String::new()).await
    }

    /// A well-known address at the MCP server's origin or the first issuer's one.
    pub(super) async fn well_known(&self, origin: &str, rest: &str) -> Answer {
        self.get(&format!("{origin}/.well-known/{rest}")).await
    }

    pub(super) async fn register(&self, body: &Value) -> Answer {
        let url = format!("{}/register", self.fixture.issuer(0));
        let headers = [("content-type", "application/json")];
        self.send("POST", &url, &headers, body.to_string()).await
    }

    /// A request to an endpoint of the first issuer that takes forms.
    pub(super) async fn form(&self, name: &str, fields: &[(&str, &str)]) -> Answer {
        let url = format!("{}/{name}", self.fixture.issuer(0));
        self.form_at(&url, fields, None).await
    }

    /// The same at any address, with a header `Authorization`.
    pub(super) async fn form_at(
        &self,
        url: &str,
        fields: &[(&str, &str)],
        authorization: Option<&str>,
    ) -> Answer {
        let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
        headers.extend(authorization.map(|value| ("authorization", value)));
        self.send("POST", url, &headers, form_of(fields.iter().copied())).await
    }

    /// The address at the first issuer to which a client sends the browser.
    pub(super) fn link(&self, client: &str, more: &[(&str, &str)]) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("state", "s-1"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        fields.extend(more);
        format!("{}/authorize?{}", self.fixture.issuer(0), form_of(fields))
    }

    /// A parameter of the redirect back.
    pub(super) fn back(&self, link: &str, name: &str) -> Option<String> {
        parameter(&self.fixture.browse(link).unwrap(), name)
    }

    /// The answer to the code of a link, as the client `narthex`.
    pub(super) async fn redeem(&self, link: &str) -> Answer {
        let code = self.back(link, "code").unwrap();
        self.redeem_code(&code, "narthex").await
    }

    pub(super) async fn redeem_code(&self, code: &str, client: &str) -> Answer {
        let fields = code_fields(code);
        self.form("token", &[&fields[..], &[("client_id", client)]].concat()).await
    }

    /// Tokens for the MCP server, as the client `narthex`.
    pub(super) async fn tokens(&self) -> Value {
        let link = self.link("narthex", &[("resource", &self.fixture.url)]);
        let answer = self.redeem(&link).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    pub(super) async fn refresh(&self, token: &Value, more: &[(&str, &str)]) -> Answer {
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str().unwrap()),
            ("client_id", "narthex"),
        ];
        fields.extend(more);
        self.form("token", &fields).await
    }

    /// Calls a tool.
    pub(super) async fn call(&self, token: &Value, tool: &str) -> Answer {
        let params = json!({"name": tool, "arguments": {}});
        self.rpc(token.as_str(), "tools/call", params).await
    }

    pub(super) async fn rpc(&self, token: Option<&str>, method: &str, params: Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(bearer.as_deref().map(|value| ("authorization", value)));
        self.send("POST", &self.fixture.url, &headers, message.to_string()).await
    }
}

/// The form for a code, without the client.
pub(super) fn code_fields(code: &str) -> [(&str, &str); 4] {
    [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ]
}

pub(super) fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", coded(id), coded(secret))))
}

pub(super) fn parameter(url: &str, name: &str) -> Option<String> {
    let mut found = form(url.split_once('?')?.1).into_iter().filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value)
}

/// The origin of the MCP server.
pub(super) fn origin(fixture: &AuthorizationFixture) -> String {
    fixture.url.trim_end_matches("/mcp").to_owned()
}
