//! Tokens of OAuth: those of a server to which a person signs in, and those of a client that a
//! human lets in at the door.

use std::time::SystemTime;

use narthex_testkit::canary::Canary;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::{
    ways_in::{Browser, FORM, JSON},
    world::World,
};
use crate::{support::SOON, world::modern};

/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://127.0.0.1:1/callback";
const WHOAMI: &str = "mcp__hosted__whoami";

fn form(fields: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn between<'t>(text: &'t str, start: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split(['"', '&', '\r']).next().unwrap()
}

impl World {
    /// Signs in to the server as a person, calls, and calls again with a renewed token.
    pub(super) fn signs_in_to_a_server(&mut self) {
        let url = self.until_hosted(|row| row["authUrl"].as_str().map(str::to_owned));
        let back = self.hosted.browse(&url).unwrap();
        let path = back[back.find("/oauth/").unwrap()..].to_owned();
        let host = format!("host: {}\r\n", self.host);
        let label = "answer after a sign-in to a server";
        let (status, _, page) = self.exchange(label, ("GET", &path), &host, b"");
        assert_eq!(status, 200, "{page}");
        self.until_hosted(|row| (row["status"] == "ready").then_some(()));
        // A second answer with the same code.
        let (status, _, page) = self.exchange(label, ("GET", &path), &host, b"");
        assert!((400..500).contains(&status), "{page}");
        let client = self.client.clone();
        self.whoami(&client, 200);
        self.hosted.end_access_tokens();
        self.whoami(&client, 200);
        assert!(self.hosted.counts().refreshes > 0);
    }

    /// All tokens, codes and secrets of that server so far.
    pub(super) fn tokens(&self) -> Vec<Canary> {
        self.hosted.canaries()
    }

    /// Waits for a fact of the server's row.
    fn until_hosted<T>(&mut self, found: impl Fn(&Value) -> Option<T>) -> T {
        let began = SystemTime::now();
        loop {
            let list = self.command(&["mcp", "list", "--json"], None).succeeded().json();
            let rows = list["data"]["mounts"].as_array().unwrap();
            let row = rows.iter().find(|row| row["name"] == "hosted").unwrap();
            if let Some(found) = found(row) {
                return found;
            }
            assert!(began.elapsed().unwrap() < SOON, "{row}");
        }
    }

    fn whoami(&mut self, token: &str, status: u16) {
        let text = modern(1, "tools/call", json!({ "name": WHOAMI, "arguments": {} })).to_string();
        let headers = format!(
            "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\nmcp-name: {WHOAMI}\r\n"
        );
        let answer = self.ask("POST", "/mcp", token, &headers, &text);
        assert_eq!(answer.0, status, "{answer:?}");
        assert!(!answer.1.contains("auth_unavailable"), "{answer:?}");
    }

    /// Lets a client in by the browser of a human. Its secret, code and tokens are each in the one
    /// answer that gives them.
    pub(super) fn lets_a_client_in(&mut self, browser: &Browser, canaries: &mut Vec<Canary>) {
        let body = json!({ "client_name": "Desk", "redirect_uris": ["http://127.0.0.1/callback"],
                           "token_endpoint_auth_method": "client_secret_post" });
        let label = "answer that registers a client";
        let (status, _, known) =
            self.browse(browser, label, ("POST", "/register"), JSON, &body.to_string());
        assert_eq!(status, 201, "{known}");
        let known: Value = serde_json::from_str(&known).unwrap();
        let text = |from: &Value, name: &str| from[name].as_str().unwrap().to_owned();
        let (id, secret) = (text(&known, "client_id"), text(&known, "client_secret"));
        canaries.push(Canary::of("a client's secret", &secret).allowed_in(label));
        let code = self.consents(browser, &id, canaries);
        let redeem = form(&[
            ("grant_type", "authorization_code"),
            ("client_id", &id),
            ("client_secret", &secret),
            ("code", &code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ]);
        let label = "answer with tokens";
        let given = self.browse(browser, label, ("POST", "/token"), FORM, &redeem).2;
        let given: Value = serde_json::from_str(&given).unwrap();
        let (access, refresh) = (text(&given, "access_token"), text(&given, "refresh_token"));
        canaries.push(Canary::of("a client's access token", &access).allowed_in(label));
        canaries.push(Canary::of("a client's refresh token", &refresh).allowed_in(label));
        self.whoami(&access, 200);
        for wrong in [&refresh, &code, &secret] {
            self.whoami(wrong, 401);
        }
        let in_query = format!("/mcp?access_token={access}");
        let (status, _, _) = self.browse(browser, "answer to a query", ("GET", &in_query), "", "");
        assert!((400..500).contains(&status), "{status}");
        let with_a_wrong_secret = form(&[
            ("grant_type", "refresh_token"),
            ("client_id", &id),
            ("client_secret", &access),
            ("refresh_token", &refresh),
        ]);
        let label = "answer to a wrong secret";
        let (status, _, refused) =
            self.browse(browser, label, ("POST", "/token"), FORM, &with_a_wrong_secret);
        assert_eq!(status, 401, "{refused}");
        // A second use of the code ends all of its tokens.
        let label = "answer to a used code";
        let (status, _, refused) = self.browse(browser, label, ("POST", "/token"), FORM, &redeem);
        assert_eq!(status, 400, "{refused}");
        self.whoami(&access, 401);
    }

    /// Answers the page of consent. Returns the code.
    fn consents(&mut self, browser: &Browser, id: &str, canaries: &mut Vec<Canary>) -> String {
        let resource = format!("{}/mcp", browser.origin);
        let query = form(&[
            ("response_type", "code"),
            ("client_id", id),
            ("redirect_uri", REDIRECT),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ]);
        let (label, path) = ("answer with the page of consent", format!("/authorize?{query}"));
        let (status, _, page) = self.browse(browser, label, ("GET", &path), "", "");
        assert_eq!(status, 200, "{page}");
        let token = between(&page, "action=\"/consent/").to_owned();
        canaries.push(Canary::of("a page of consent", &token).allowed_in(label));
        let csrf = between(&page, "name=\"csrf\" value=\"");
        let fields = form(&[("csrf", csrf), ("decision", "approve"), ("servers", "live")]);
        let (label, path) = ("answer with a code", format!("/consent/{token}"));
        let (status, head, page) = self.browse(browser, label, ("POST", &path), FORM, &fields);
        assert_eq!(status, 303, "{page}");
        let code = between(&head, "code=").to_owned();
        canaries.push(Canary::of("a client's code", &code).allowed_in(label));
        code
    }
}
