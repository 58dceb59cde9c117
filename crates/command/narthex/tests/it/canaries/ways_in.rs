//! Ways in besides a token over HTTP: pages and ceremonies of the sign-in, providers, and sockets.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
    thread,
};

use narthex_testkit::{authenticator::Authenticator, canary::Canary};
use serde_json::{Value, json};

use super::{use_all::Begun, world::World};
use crate::{support::SOON, world::modern};

pub(super) const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";
pub(super) const JSON: &str = "content-type: application/json\r\n";

/// OpenID providers that repeat everything that they get, wherever it might be read, and a
/// collector of traces.
pub(super) struct Provider {
    pub(super) url: String,
    heard: Arc<Mutex<Heard>>,
}

/// The requests that came, as they came.
#[derive(Default)]
struct Heard {
    asked: String,
    traces: Vec<u8>,
}

impl Provider {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::<Mutex<Heard>>::default();
        let (base, all) = (url.clone(), heard.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (base, all) = (base.clone(), all.clone());
                // The client may go away in the middle, or never say anything.
                thread::spawn(move || drop(answer(stream, &base, &all)));
            }
        });
        Self { url, heard }
    }

    fn was_told(&self) -> String {
        self.heard.lock().unwrap().asked.clone()
    }

    pub(super) fn traces(&self) -> Vec<u8> {
        self.heard.lock().unwrap().traces.clone()
    }
}

fn answer(mut stream: TcpStream, base: &str, heard: &Mutex<Heard>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if reader.read_line(&mut head)? == 0 || head[start..].trim().is_empty() {
            break;
        }
        let line = head[start..].to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let all = format!("{head}{}", String::from_utf8_lossy(&body));
    let path = head.split(' ').nth(1).unwrap_or_default();
    if path.ends_with("/v1/traces") {
        heard.lock().unwrap().traces.extend(head.bytes().chain(body));
        return write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    }
    heard.lock().unwrap().asked.push_str(&all);
    let name = path.split('/').nth(1).unwrap_or_default();
    let issuer = format!("{base}/{name}");
    let (status, document) = if path.contains("/.well-known/") {
        let metadata = json!({ "issuer": issuer, "authorization_endpoint": format!("{issuer}/auth"),
            "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported":
                [if name == "file" { "client_secret_post" } else { "client_secret_basic" }] });
        ("200 OK", metadata)
    } else if path.ends_with("/token") && name == "file" {
        ("400 Bad Request", json!({ "error": all, "error_description": all }))
    } else {
        ("200 OK", json!({ "error": all, "id_token": all, "access_token": all, "keys": [all] }))
    };
    let text = document.to_string();
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{text}"
    )
}

/// The origin of a browser, and the cookie and token that it stores and sends.
pub(super) struct Browser {
    pub(super) origin: String,
    cookie: String,
    csrf: String,
}

impl Browser {
    fn headers(&self) -> String {
        let Self { origin, cookie, csrf } = self;
        let host = origin.strip_prefix("http://").unwrap();
        format!(
            "host: {host}\r\norigin: {origin}\r\nsec-fetch-site: same-origin\r\n\
             cookie: {cookie}\r\nx-narthex-csrf: {csrf}\r\n"
        )
    }

    fn keep(&mut self, head: &str) {
        for line in head.lines() {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("set-cookie") {
                value.split(';').next().unwrap().clone_into(&mut self.cookie);
            }
        }
    }

    fn value(&self) -> &str {
        self.cookie.split_once('=').unwrap().1
    }
}

impl World {
    /// A human by link, passkey and providers, each of whose proofs is shown once and nowhere else.
    pub(super) fn signs_in(&mut self, canaries: &mut Vec<Canary>) {
        let admin = self.admin.clone();
        let made = json!({ "name": "ada", "is_operator": true }).to_string();
        self.ask("POST", "/api/principals", &admin, "", &made);
        let path = "/api/principals/ada/sign-in-links";
        let label = "answer with a link";
        let (status, made) = self.ask_for(label, ("POST", path, &admin), "", "");
        assert!((200..300).contains(&status), "{made}");
        let made: Value = serde_json::from_str(&made).unwrap();
        let url = made["url"].as_str().unwrap();
        let at = url.find("/signin").unwrap();
        let (origin, link) = (url[..at].to_owned(), url[at..].to_owned());
        canaries.push(Canary::of("a link", link.rsplit('/').next().unwrap()).allowed_in(label));
        let mut browser = Browser { origin, cookie: String::new(), csrf: String::new() };
        self.browse(&browser, "answer to a look", ("GET", &link), "", "");
        let signed_in = "answer that signs in";
        let (status, head, _) = self.browse(&browser, signed_in, ("POST", &link), FORM, "");
        assert_eq!(status, 303, "{head}");
        browser.keep(&head);
        canaries.push(Canary::of("a session", browser.value()).allowed_in(signed_in));
        let page = "answer with the page";
        let (_, _, text) = self.browse(&browser, page, ("GET", "/signin"), "", "");
        let csrf = text.split_once("data-csrf=\"").unwrap().1.split('"').next().unwrap();
        csrf.clone_into(&mut browser.csrf);
        canaries.push(Canary::of("a page's token", csrf).allowed_in(page));
        self.passkey(&browser, canaries);
        self.lets_a_client_in(&browser, canaries);
        let (status, _, me) =
            self.browse(&browser, "answer to a human", ("GET", "/api/me"), "", "");
        assert_eq!((status, me.contains("ada")), (200, true), "{me}");
        for provider in ["corp", "file"] {
            self.provider(&browser.origin, provider, canaries);
        }
        self.tokens_are_swapped(&browser, &link);
        let form = format!("csrf={}", browser.csrf);
        self.browse(&browser, "answer that signs out", ("POST", "/signout"), FORM, &form);
    }

    pub(super) fn browse(
        &mut self,
        browser: &Browser,
        label: &str,
        (method, path): (&str, &str),
        headers: &str,
        body: &str,
    ) -> (u16, String, String) {
        let headers = format!("{}{headers}", browser.headers());
        self.exchange(label, (method, path), &headers, body.as_bytes())
    }

    /// Makes a passkey and signs in with it.
    fn passkey(&mut self, browser: &Browser, canaries: &mut Vec<Canary>) {
        let mut authenticator = Authenticator::new(&browser.origin);
        let begin = |world: &mut Self, path| {
            let (_, _, text) =
                world.browse(browser, "answer with a ceremony", ("POST", path), JSON, "{}");
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let begun = begin(self, "/signin/passkeys/new");
        let credential = authenticator.create(&begun["options"]);
        let ceremony = &begun["ceremony"];
        let made = json!({ "ceremony": ceremony, "credential": credential, "label": "phone" });
        let (status, _, text) = self.browse(
            browser,
            "answer to a passkey",
            ("POST", "/signin/passkeys"),
            JSON,
            &made.to_string(),
        );
        assert_eq!(status, 201, "{text}");
        let begun = begin(self, "/signin/passkey/begin");
        let ceremony = begun["ceremony"].as_str().unwrap();
        canaries.push(Canary::of("a ceremony", ceremony).allowed_in("answer with a ceremony"));
        let credential = authenticator.get(&begun["options"]);
        let shown = json!({ "ceremony": ceremony, "credential": credential }).to_string();
        let mut other =
            Browser { origin: browser.origin.clone(), cookie: String::new(), csrf: String::new() };
        let label = "answer that signs in by passkey";
        let path = "/signin/passkey/finish";
        let (status, head, text) = self.browse(&other, label, ("POST", path), JSON, &shown);
        assert_eq!(status, 200, "{text}");
        other.keep(&head);
        canaries.push(Canary::of("a session by passkey", other.value()).allowed_in(label));
        // A second time, and with the answer broken off.
        for body in [&shown, &shown[..shown.len() / 2]] {
            let (status, _, text) =
                self.browse(&other, "answer to a bad passkey", ("POST", path), JSON, body);
            assert!((400..500).contains(&status), "{text}");
        }
    }

    /// Signs in at a provider that repeats narthex's password in its answers.
    fn provider(&mut self, origin: &str, name: &str, canaries: &mut Vec<Canary>) {
        let begin = format!("/signin/oidc/{name}");
        let mut browser =
            Browser { origin: origin.to_owned(), cookie: String::new(), csrf: String::new() };
        let label = "answer that leads to a provider";
        let (status, head, text) = self.browse(&browser, label, ("GET", &begin), "", "");
        assert_eq!(status, 303, "{text}");
        browser.keep(&head);
        let state = head.split_once("state=").unwrap().1;
        let state = state.split(['&', '\r']).next().unwrap().to_owned();
        canaries.push(Canary::of("an attempt", browser.value()).allowed_in(label));
        canaries.push(Canary::of("a state", &state).allowed_in(label));
        let code = Canary::plain("a code");
        let issuer = format!("{}/{name}", self.provider.url);
        let back = format!("{begin}/callback?code={}&state={state}&iss={issuer}", code.value);
        canaries.push(code);
        let (status, _, text) =
            self.browse(&browser, "answer after a provider", ("GET", &back), "", "");
        assert!((400..600).contains(&status), "{text}");
        assert!(self.provider.was_told().contains(&format!("POST /{name}/token")), "not asked");
    }

    /// Each proof where another kind is asked for.
    fn tokens_are_swapped(&mut self, browser: &Browser, link: &str) {
        let session = browser.value().to_owned();
        let once = link.rsplit('/').next().unwrap().to_owned();
        for token in [&session, &once, &browser.csrf] {
            let (status, _) = self.ask("GET", "/api/me", token, "", "");
            assert_eq!(status, 401);
        }
        for token in [self.admin.clone(), self.client.clone(), once] {
            let cookie = format!("narthex={token}");
            let (origin, csrf) = (browser.origin.clone(), browser.csrf.clone());
            let wrong = Browser { origin, cookie, csrf };
            let (status, _, _) =
                self.browse(&wrong, "answer to a wrong cookie", ("GET", "/api/me"), "", "");
            assert_eq!(status, 401);
            let path = format!("/signin/link/{token}");
            self.browse(&wrong, "answer to a wrong link", ("POST", &path), FORM, "");
        }
    }

    /// Makes the same calls over the sockets of a run, line by line as `socat` does.
    pub(super) fn calls_over_sockets(&mut self, begun: &Begun) {
        let folder = begun.sockets.clone().unwrap();
        for (socket, tool) in [
            ("mcp", "mcp__program__environment"),
            ("program", "environment"),
            ("remote", "seen_headers"),
            ("keyed", "seen_headers"),
        ] {
            let mut stream = UnixStream::connect(format!("{folder}/{socket}.sock")).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let said = json!({ "name": tool, "arguments": {} });
            let good = modern(1, "tools/call", said).to_string();
            for line in [&*good, "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\"", "[]", &good] {
                writeln!(stream, "{line}").unwrap();
                let mut told = String::new();
                reader.read_line(&mut told).unwrap();
                self.everything.note(format!("answer of a socket {socket}"), told.as_bytes());
                assert!(line != good || told.contains("[redacted]"), "{socket}: {told}");
            }
        }
    }
}
