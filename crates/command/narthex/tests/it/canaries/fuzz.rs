//! Faulty input that holds a value: bodies, headers and addresses of the route that takes secrets,
//! made by chance; objects of the catalog, requests of runs, and commands.

use narthex_testkit::canary::Canary;
use serde_json::{Value, json};

use super::world::{SCOPE, World};

const HOME: &str = "/api/workspaces/default";
/// Number of requests.
const ROUNDS: usize = 300;
/// Longer than any body of a secret that is taken.
const LONG: usize = 600 * 1024;

/// Random numbers that are the same in each run of the test (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) % most as u64).unwrap()
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Mostly the first, so that a request is rarely wrong in everything.
    fn mostly<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        if self.below(8) < 6 { &all[0] } else { self.one(all) }
    }
}

/// A body with the value that is hardly one of a secret: a frame, then bytes changed by chance.
fn body(chance: &mut Chance, value: &str) -> Vec<u8> {
    let quoted = json!(value).to_string();
    let frames = [
        format!("{{\"value\": {quoted}}}"),
        format!("{{\"value\": {quoted}, {quoted}: {quoted}}}"),
        format!("{{\"value\": {{\"value\": {quoted}}}}}"),
        format!("{{\"value\": [{quoted}]}}"),
        format!("{{\"value\": {value}}}"),
        format!("{{\"VALUE\": {quoted}}}"),
        format!("{{\"value\": {quoted}, \"value\": {quoted}}}"),
        format!("{{\"__proto__\": {{\"value\": {quoted}}}}}"),
        format!("{{\"value\": \"{value}\\ud800\\u0000\"}}"),
        format!("{{\"value\": 1e999, \"x\": {quoted}}}"),
        format!("{}{quoted}", "[".repeat(2000)),
        format!("{{\"value\": {quoted}}}{{\"value\": {quoted}}}"),
        format!("value={value}&value={value}"),
        format!("\u{feff}{{\"value\": {quoted}}}"),
        quoted,
    ];
    let frame = if chance.below(2) == 0 { &frames[0] } else { chance.one(&frames) };
    let mut bytes = frame.clone().into_bytes();
    for _ in 0..*chance.one(&[0, 0, 0, 1, 2, 4]) {
        let at = chance.below(bytes.len());
        match chance.below(4) {
            0 => bytes[at] = u8::try_from(chance.below(256)).unwrap(),
            1 => bytes.truncate(at.max(1)),
            2 => bytes.insert(at, *chance.one(b"\"\\{}[],:\0\n\xff")),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            bytes.push(b' ');
        }
    }
    if chance.below(40) == 0 {
        bytes.resize(bytes.len() + LONG, b' ');
    }
    bytes
}

impl World {
    /// X-E118: any request to the route, in any form, with the value anywhere in it.
    pub(super) fn broken_secrets(&mut self, canaries: &mut Vec<Canary>) {
        let canary = Canary::new("a value that is sent by chance");
        let (value, core) = (canary.value.clone(), canary.value[..33].to_owned());
        canaries.push(canary);
        let chance = &mut Chance(0x5eed);
        let tokens = [self.admin.clone(), self.client.clone(), core.clone(), String::new()];
        let (mut refused, mut taken) = (0, 0);
        for round in 0..ROUNDS {
            let method = *chance.mostly(&["PUT", "POST", "PATCH", "DELETE", "GET"]);
            let name = *chance.mostly(&["CHANCE", "lower", "A%00", "%ff", "A/B", &core]);
            let place = *chance.mostly(&["default", "nope", "%64efault"]);
            let query = match chance.below(16) {
                0 => format!("?value={core}"),
                1 => format!("?probe=1&value={core}&value={core}"),
                2 => format!("?=%{core}"),
                _ => String::new(),
            };
            let path = format!("/api/workspaces/{place}/secrets/{name}{query}");
            let kinds = ["application/json", "text/plain", "application/merge-patch+json", ""];
            let mut headers = format!("host: {}\r\n", self.host);
            let token = chance.mostly(&tokens);
            headers.push_str(&format!("authorization: Bearer {token}\r\n"));
            headers.push_str(&format!("content-type: {}\r\n", chance.mostly(&kinds)));
            match chance.below(10) {
                0 => headers.push_str(&format!("idempotency-key: {core}-{round}\r\n")),
                1 => headers.push_str(&format!("idempotency-key: {core} \u{e4}\r\n")),
                2 => headers.push_str(&format!("if-match: {core}\r\n")),
                3 => headers.push_str(&format!("cookie: narthex={core}\r\nx-any: {core}\r\n")),
                4 => headers.push_str(&format!("accept: {core}/{core}\r\n")),
                5 => headers.push_str(&format!("traceparent: 00-{core}-{core}-01\r\n")),
                6 => headers.push_str(&format!("origin: http://{core}.example\r\n")),
                7 => headers.push_str(&format!("content-encoding: {core}\r\n")),
                _ => {}
            }
            let body = body(chance, &value);
            let label = format!("answer to chance {round}");
            let (status, _, told) = self.exchange(&label, (method, &path), &headers, &body);
            assert!(status < 500, "{round} {method} {path}: {status} {told}");
            if status < 300 { taken += 1 } else { refused += 1 }
        }
        // Neither kind is rare, or nothing of it would be tried.
        assert!(refused > ROUNDS / 4 && taken > 5, "{refused} refused, {taken} taken");
    }

    /// X-M33: a value where the reference of a secret belongs is refused and not repeated. Nor is a
    /// scope that does not fit.
    pub(super) fn faulty_catalog(&mut self, canaries: &mut Vec<Canary>) {
        let canary = Canary::new("a value in an agent");
        let value = canary.value.clone();
        canaries.push(canary);
        let admin = self.admin.clone();
        let key = json!({ "api_key": { "kind": "secret", "required": true } });
        let server =
            json!({ "id": "closed", "url": "http://127.0.0.1:1/mcp", "config_schema": key });
        let (status, told) =
            self.ask("PUT", &format!("{HOME}/mcp-servers/closed"), &admin, "", &server.to_string());
        assert_eq!(status, 201, "{told}");
        for wrong in [
            json!(value),
            json!(format!("${{STDIO}}{value}")),
            json!(format!("${{{value}")),
            json!([value]),
            json!({ "$secret": value }),
            json!({ "$secret": [value] }),
        ] {
            let config = json!({ "api_key": wrong });
            let agent = json!({ "name": "wrong",
                                "mcpServers": { "a": { "ref": "closed", "config": config } } });
            let text = agent.to_string();
            for (method, path) in [
                ("POST", format!("{HOME}/agents")),
                ("PUT", format!("{HOME}/agents/wrong")),
                ("POST", format!("{HOME}/validate")),
                ("POST", format!("{HOME}/preview")),
                ("PUT", format!("{HOME}/agents/works/mcp-attachments/wrong")),
                ("PATCH", format!("{HOME}/agents/works")),
            ] {
                let text = if path.ends_with("/wrong") && path.contains("attach") {
                    agent["mcpServers"]["a"].to_string()
                } else {
                    text.clone()
                };
                let (status, told) = self.ask(method, &path, &admin, "", &text);
                // A preview reports faults.
                let is_told = path.ends_with("/preview") && status == 200;
                assert!((400..500).contains(&status) || is_told, "{method} {path}: {told}");
            }
            self.write("wrong.json", &text);
            for command in [&["agents", "apply", "-f", "wrong.json"][..], &["import", "wrong.json"]]
            {
                for format in [&[][..], &["--json"]] {
                    let done = self.command(&[command, format].concat(), None);
                    assert_ne!(done.code, Some(0), "{done:?}");
                }
            }
            self.write("wrong.json", "{}");
        }
        let scope = self.secret(SCOPE).to_owned();
        let bad: [Value; 4] = [
            json!({ "agent_name": "works", "scope": [scope] }),
            json!({ "agent_name": "works", "scope": { "context": "a\u{0}", scope.as_str(): 1 } }),
            json!({ "agent_name": "works", "scope": { "context": { "x": scope } }, "params": 1 }),
            json!({ "agent_name": "nosuch", "scope": { "context": scope } }),
        ];
        for request in bad {
            let text = request.to_string();
            let (status, told) = self.ask("POST", &format!("{HOME}/runs"), &admin, "", &text);
            assert!((400..500).contains(&status), "{text}: {told}");
        }
    }

    /// Commands that are used wrongly, or fail, with a value in their input.
    pub(super) fn wrong_commands(&mut self) {
        let scope = self.secret(SCOPE).to_owned();
        let long = scope.repeat(4000);
        for format in [&[][..], &["--json"]] {
            for (words, input) in [
                (&["secrets", "set", "lower"][..], scope.as_str()),
                (&["secrets", "set", "A", "--workspace", "nope"], &scope),
                (&["secrets", "set", "A"], &long),
                (&["secrets", "set", "A", &scope], ""),
                (&["agents", "apply", "-f", "-"], &scope),
                (&["import", "-"], &scope),
                (&["runs", "create", "-"], &scope),
            ] {
                let done = self.command(&[words, format].concat(), Some(input));
                assert_ne!(done.code, Some(0), "{words:?}: {done:?}");
            }
        }
    }
}
