//! A client with one URL and no token, against the built program: it registers, its human lets it
//! in by a browser, it calls, and its access is taken away.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};
use url::{Url, form_urlencoded::Serializer};

use crate::support::{Daemon, Place, SOON};

/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://127.0.0.1:1/callback";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// The door of a daemon, as a client and a browser reach it.
struct Door {
    origin: String,
    _daemon: Daemon,
}

/// An answer: its status, its head and its body.
#[derive(Debug)]
struct Page {
    status: u16,
    head: String,
    body: String,
}

fn encoded(fields: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split(end).next().unwrap()
}

impl Page {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The value of a header.
    fn header(&self, name: &str) -> &str {
        let named = |line: &&str| {
            line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        let line = self.head.lines().find(named).unwrap_or_else(|| panic!("{self:?}"));
        line.split_once(':').unwrap().1.trim()
    }
}

impl Door {
    /// A daemon in which a click of this machine is enough.
    fn open(place: &Place) -> Self {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = place.start_with(&words, |command| {
            command.env("NARTHEX_OAUTH_LOCAL_CLICK", "true");
        });
        let url = daemon.event("listening")["url"].as_str().unwrap().to_owned();
        daemon.event("ready");
        let port = Url::parse(&url).unwrap().port().unwrap();
        Self { origin: format!("http://localhost:{port}"), _daemon: daemon }
    }

    /// Sends a request with further lines of its head.
    fn send(&self, method: &str, path: &str, head: &str, body: &str) -> Page {
        let host = self.origin.strip_prefix("http://").unwrap();
        let port = host.rsplit(':').next().unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{head}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Page { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn form(&self, path: &str, fields: &[(&str, &str)], head: &str) -> Page {
        self.send("POST", path, &format!("{FORM}{head}"), &encoded(fields))
    }

    /// Registers a client, lets it in, and returns its id with its tokens.
    fn let_in(&self) -> (String, Value) {
        let body = json!({
            "client_name": "Desk",
            "redirect_uris": ["http://127.0.0.1/callback"],
            "token_endpoint_auth_method": "none",
        });
        let json = "Content-Type: application/json\r\n";
        let registered = self.send("POST", "/register", json, &body.to_string());
        assert_eq!(registered.status, 201, "{registered:?}");
        let client = registered.json()["client_id"].as_str().unwrap().to_owned();
        let query = encoded(&[
            ("response_type", "code"),
            ("client_id", &client),
            ("redirect_uri", REDIRECT),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("resource", &format!("{}/mcp", self.origin)),
        ]);
        let shown = self.send("GET", &format!("/authorize?{query}"), "", "");
        assert_eq!(shown.status, 200, "{shown:?}");
        let cookie = shown.header("set-cookie").split(';').next().unwrap();
        let path = format!("/consent/{}", between(&shown.body, "action=\"/consent/", "\""));
        let csrf = between(&shown.body, "name=\"csrf\" value=\"", "\"");
        let fields = [("csrf", csrf), ("decision", "approve"), ("servers", "live")];
        let head = format!("Origin: {}\r\nCookie: {cookie}\r\n", self.origin);
        let answered = self.form(&path, &fields, &head);
        assert_eq!(answered.status, 303, "{answered:?}");
        let back = Url::parse(answered.header("location")).unwrap();
        let (_, code) = back.query_pairs().find(|(name, _)| name == "code").unwrap();
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", &*client),
            ("code", &*code),
            ("code_verifier", VERIFIER),
        ];
        let given = self.form("/token", &fields, "");
        assert_eq!(given.status, 200, "{given:?}");
        (client, given.json())
    }

    /// Calls with an access token.
    fn call(&self, path: &str, tokens: &Value) -> Page {
        let token = tokens["access_token"].as_str().unwrap();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta }
        });
        let head = format!(
            "Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
        );
        self.send("POST", path, &head, &body.to_string())
    }
}

/// I-M7: a client without a token gets one from its human, lists the tools of the live
/// configuration, and loses its access when an operator revokes it.
#[test]
fn i_m7_a_client_with_one_url_signs_its_human_in() {
    let place = Place::new();
    let door = Door::open(&place);
    let refused = door.send("POST", "/mcp", "", "");
    assert_eq!(refused.status, 401, "{refused:?}");
    let challenge = refused.header("www-authenticate");
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", door.origin);
    assert!(challenge.contains(&metadata), "{challenge}");
    let (client, tokens) = door.let_in();
    let listed = door.call("/mcp", &tokens);
    assert_eq!(listed.status, 200, "{listed:?}");
    assert!(listed.body.contains("mcp__fixture__echo"), "{listed:?}");
    assert_eq!(door.call("/mcp/fixture", &tokens).status, 401);

    let all = place.run(["clients", "list", "--json"]).succeeded().json();
    let known = &all["data"]["items"][0];
    assert_eq!((&known["program"], &known["created_by"]), (&json!(client), &json!("admin")));
    let table = place.run(["clients", "list"]).succeeded().stdout;
    assert!(table.contains("all servers"), "{table}");
    let id = known["id"].as_str().unwrap();
    let shown = place.run(["clients", "show", id]).succeeded().stdout;
    assert!(shown.contains(&client), "{shown}");
    place.run(["clients", "revoke", id]).succeeded();
    assert_eq!(door.call("/mcp", &tokens).status, 401);
    let token = tokens["refresh_token"].as_str().unwrap();
    let fields =
        [("grant_type", "refresh_token"), ("client_id", &*client), ("refresh_token", token)];
    let renewed = door.form("/token", &fields, "");
    assert_eq!(renewed.json()["error"], "invalid_grant", "{renewed:?}");
    // Nothing on the disk gives access.
    for file in ["data/store.db", "data/store.db-wal"] {
        let Ok(bytes) = fs_err::read(place.path(file)) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for secret in [token, tokens["access_token"].as_str().unwrap()] {
            assert!(!text.contains(secret), "{file}");
        }
    }
}
