//! Everything that can be asked for, by every route and every command.

use narthex_http::ROUTES;
use narthex_testkit::canary::Canary;
use serde_json::{Value, json};

use super::world::{FORMER, PROMPT, SCOPE, SECRETS, World};
use crate::{support::fixture, world::modern};

const HOME: &str = "/api/workspaces/default";

/// A run that was created.
pub(super) struct Begun {
    run: String,
    session: String,
    pub(super) token: String,
    /// The folder of its sockets.
    pub(super) sockets: Option<String>,
}

impl World {
    /// Secrets, the catalog, and a binding to the environment of agents.
    pub(super) fn set_up(&mut self) {
        // With recorded contents, values could be in the audit, too.
        let on = ["workspaces", "change", "default", "--audit-contents", "on"];
        self.command(&on, None).succeeded();
        let former = self.secret(FORMER).to_owned();
        self.command(&["secrets", "set", "STDIO"], Some(&former)).succeeded();
        for name in SECRETS {
            let value = self.secret(name).to_owned();
            self.command(&["secrets", "set", name, "--json"], Some(&value)).succeeded();
        }
        let key = |name: &str| json!({ name: { "type": "string", "sensitive": true } });
        let mut stdio = key("API_KEY");
        stdio["CONTEXT"] = json!({ "type": "string", "sensitive": true });
        stdio["WHO"] = json!({ "type": "string" });
        let script = format!(
            "echo \"I hold $API_KEY\" >&2; tee -a '{}' | '{}' --stdio",
            self.tapped().display(),
            fixture().display()
        );
        let url = self.remote_url().to_owned();
        let unreached = "http://127.0.0.1:1/mcp";
        let servers = [
            json!({ "id": "stdio", "type": "stdio", "command": "sh", "args": ["-c", script],
                    "config_schema": stdio, "default_config": { "WHO": "stdio" } }),
            json!({ "id": "dies", "type": "stdio", "command": "sh",
                    "args": ["-c", "echo \"no login with $API_KEY\" >&2; exit 3"],
                    "config_schema": key("API_KEY") }),
            json!({ "id": "http", "url": url, "config_schema": key("api_key") }),
            json!({ "id": "keyed", "url": format!("{url}?key=${{env.CATALOG_URL_TOKEN}}"),
                    "auth": { "mode": "apiKey", "key": "${SIGNED}" } }),
            json!({ "id": "keyed-unreached",
                    "url": format!("{unreached}?key=${{env.CATALOG_URL_TOKEN}}"),
                    "auth": { "mode": "apiKey", "key": "${SIGNED}" } }),
            json!({ "id": "unreached", "url": unreached, "config_schema": key("api_key") }),
        ];
        let by = |server: &str, key: &str, secret: &str| {
            let config = json!({ key: format!("${{{secret}}}") });
            json!({ "ref": server, "config": config })
        };
        let mut works = json!({ "program": by("stdio", "API_KEY", "STDIO"),
                                "remote": by("http", "api_key", "HTTP"),
                                "keyed": { "ref": "keyed" } });
        works["program"]["config"]["CONTEXT"] = json!("${scope.context}");
        let mut fails = by("dies", "API_KEY", "DYING");
        fails["optional"] = json!(true);
        let agents = [
            json!({ "name": "works", "mcpServers": works }),
            json!({ "name": "dies", "mcpServers": { "dies": by("dies", "API_KEY", "DYING") } }),
            json!({ "name": "keyed", "mcpServers": { "far": { "ref": "keyed-unreached" } } }),
            json!({ "name": "lives-on", "mcpServers": { "dies": fails } }),
            json!({ "name": "unreached",
                    "mcpServers": { "far": by("unreached", "api_key", "UNREACHED") } }),
        ];
        for (kind, id, objects) in [("servers", "id", &servers[..]), ("agents", "name", &agents)] {
            for object in objects {
                let file = format!("{kind}-{}.json", object[id].as_str().unwrap());
                self.write(&file, &object.to_string());
                self.command(&[kind, "apply", "--file", &file], None).succeeded();
            }
        }
        let bind = ["env-bindings", "set", "GIT_KEY", "--secret", "BOUND", "--agent", "works"];
        self.command(&bind, None).succeeded();
    }

    pub(super) fn use_everything(&mut self, canaries: &mut Vec<Canary>) {
        let sockets = json!({ "sockets": true });
        let begun = self.begins("works", "answer that begins a run", sockets, 201).unwrap();
        let label = "answer in direct mode";
        let direct = self.begins("works", label, json!({ "direct": true }), 201).unwrap();
        for (name, run) in [("the run's token", &begun), ("the direct run's token", &direct)] {
            let canary = Canary::of(name, &run.token).allowed_in("answer that begins a run");
            canaries.push(canary.allowed_in(label));
        }
        for (agent, status) in
            [("dies", 503), ("unreached", 503), ("keyed", 503), ("lives-on", 201)]
        {
            self.begins(agent, "answer that fails", json!({}), status);
        }
        self.calls(&begun, canaries);
        self.calls_over_sockets(&begun);
        self.signs_in_to_a_server();
        self.signs_in(canaries);
        self.faulty_catalog(canaries);
        self.secrets_are_refused(canaries);
        self.broken_secrets(canaries);
        self.every_route(&begun);
        self.every_command(&begun);
    }

    fn begins(&mut self, agent: &str, label: &str, more: Value, status: u16) -> Option<Begun> {
        let (scope, prompt) = (self.secret(SCOPE).to_owned(), self.secret(PROMPT).to_owned());
        let mut document = json!({ "agent_name": agent, "prompt": prompt,
                                   "scope": { "context": scope } });
        for (key, value) in more.as_object().unwrap() {
            document[key] = value.clone();
        }
        let (token, path) = (self.admin.clone(), format!("{HOME}/runs"));
        let text = document.to_string();
        let key = format!("idempotency-key: {}\r\n", [agent, label].join("-").replace(' ', "-"));
        let answer = self.ask_for(label, ("POST", &path, &token), &key, &text);
        assert_eq!(answer.0, status, "{agent}: {answer:?}");
        // The stored answer for a repeated request has no value in it.
        self.ask_for("answer again", ("POST", &path, &token), &key, &text);
        let begun: Value = serde_json::from_str(&answer.1).unwrap();
        let text = |key: &str| begun[key].as_str().map(str::to_owned);
        let sockets = begun["endpoints"]["sockets"].as_str().map(str::to_owned);
        let (run, session, token) = (text("run_id")?, text("session_id")?, text("token")?);
        Some(Begun { run, session, token, sockets })
    }

    /// Servers that repeat their configuration, in results and errors.
    fn calls(&mut self, begun: &Begun, canaries: &[Canary]) {
        // A client may send any server each value that it knows or can find out.
        let said = |names: &[&str]| {
            let known = canaries.iter().filter(|canary| names.contains(&canary.name));
            known.map(|canary| canary.value.clone()).collect::<Vec<_>>()
        };
        let of_run = said(&["STDIO", "HTTP", "BOUND", "the run's token"]);
        let of_client = said(&["CANARY_ENV_TOKEN", "CANARY_HEADER_TOKEN", "CANARY_KEY_TOKEN"]);
        assert_eq!((of_run.len(), of_client.len()), (4, 3));
        let tools =
            ["mcp__program__environment", "mcp__remote__seen_headers", "mcp__keyed__seen_headers"];
        let own = ["with-env__environment"];
        let remote = ["with-header__seen_headers", "with-key__seen_headers"];
        let (run, client) = (begun.token.clone(), self.client.clone());
        let of_all = own.iter().chain(&remote).map(|name| format!("mcp__{name}"));
        let mut wanted: Vec<_> =
            tools.iter().map(|name| ((*name).to_owned(), run.clone())).collect();
        wanted.extend(of_all.map(|name| (name, client.clone())));
        for (tool, token) in wanted {
            let words = match token == run {
                // Values that are sent to it are in its input, which is searched.
                true if tool == tools[0] => &[][..],
                true => &of_run[..],
                false => &of_client[..],
            };
            let said = json!({ "name": tool, "arguments": { "said": words } });
            let text = modern(1, "tools/call", said).to_string();
            let headers = format!(
                "accept: application/json, text/event-stream\r\n\
                 mcp-protocol-version: 2026-07-28\r\n\
                 mcp-method: tools/call\r\nmcp-name: {tool}\r\n"
            );
            let (status, body) = self.ask("POST", "/mcp", &token, &headers, &text);
            assert_eq!(status, 200, "{tool}: {body}");
            // The tool's answer had a value, which was removed on the way.
            assert!(body.contains("[redacted]"), "{tool}: {body}");
        }
    }

    /// Bodies with a value that are no good.
    fn secrets_are_refused(&mut self, canaries: &[Canary]) {
        let value = canaries.iter().find(|canary| canary.name == "STDIO").unwrap().value.clone();
        let (path, token) = (format!("{HOME}/secrets/STDIO"), self.admin.clone());
        let quoted = json!(value).to_string();
        for body in [
            format!("{{\"value\": {quoted}, {quoted}: 1}}"),
            format!("{{\"value\": [{quoted}]}}"),
            format!("{{\"value\": {quoted}"),
            value,
        ] {
            let (status, answer) = self.ask("PUT", &path, &token, "", &body);
            assert!((400..500).contains(&status), "{answer}");
        }
    }

    /// Every route by every method, as an operator and as clients.
    fn every_route(&mut self, begun: &Begun) {
        let tokens = [self.admin.clone(), self.client.clone(), begun.token.clone()];
        for route in ROUTES {
            for method in route.methods.split(", ") {
                // A request that would remove objects which others need names absent objects.
                let is_read = ["GET", "HEAD"].contains(&method);
                let paths = if is_read {
                    filled(self, route.template, begun)
                } else {
                    absent(route.template)
                };
                for (path, token) in
                    paths.iter().flat_map(|path| tokens.iter().map(move |token| (path, token)))
                {
                    let (status, body) =
                        self.ask(method, path, token, "accept: application/json\r\n", "{}");
                    assert!(status < 500 || status == 503, "{method} {path}: {status} {body}");
                }
            }
        }
        let (path, token) = (format!("{HOME}/audit"), self.admin.clone());
        let headers = "accept: application/x-ndjson\r\n";
        let (status, exported) = self.ask("GET", &path, &token, headers, "");
        assert_eq!((status, exported.contains("session.run.direct")), (200, true), "{exported}");
        // The contents of those calls are there, in both directions.
        for kept in [r#"\"said\":[\"[redacted]\""#, r#""answer":{"#] {
            assert!(exported.contains(kept), "{kept}: {exported}");
        }
        for what in ["agents", "mcp-servers"] {
            let path = format!("{HOME}/{what}?view=merged");
            self.ask("GET", &path, &token, "", "");
        }
        let agent = json!({ "mcpServers": { "x": { "ref": "stdio",
            "config": { "API_KEY": "${STDIO}" } } } });
        for (path, body) in [
            ("preview", agent.clone()),
            ("preview", json!({ "agent": agent })),
            ("validate", json!({ "agents": [agent] })),
        ] {
            let text = body.to_string();
            self.ask("POST", &format!("{HOME}/{path}"), &token, "", &text);
        }
        for server in ["dying", "with-url", "with-header"] {
            let path = format!("/api/servers/{server}/test");
            let (status, body) = self.ask("POST", &path, &token, "", "");
            assert!(status < 500 || status == 503, "{body}");
            let path = format!("/api/servers/{server}/logs");
            let (_, logs) = self.ask("GET", &path, &token, "accept: application/json\r\n", "");
            assert!(server != "dying" || logs.contains("[redacted]"), "{logs}");
        }
    }

    /// Every command that shows something, as people and as scripts read it.
    fn every_command(&mut self, begun: &Begun) {
        let planted = self.planted_name().to_owned();
        let text = format!("message={planted}");
        let (run, session) = (&*begun.run, &*begun.session);
        let shown: [&[&str]; 31] = [
            &["status"],
            &["tools"],
            &["tools", &planted],
            &["call", &planted, "echo", &text],
            &["call", "with-env", "environment"],
            &["call", "dying", "echo"],
            &["mcp", "list"],
            &["mcp", "test", "dying"],
            &["mcp", "test", "with-url"],
            &["mcp", "logs", "dying"],
            &["mcp", "logs", &planted],
            &["mcp", "reload"],
            &["runs", "list"],
            &["runs", "show", run],
            &["runs", "end", session],
            &["servers", "list"],
            &["servers", "get", "stdio"],
            &["agents", "list"],
            &["agents", "get", "works"],
            &["agents", "attachments", "works"],
            &["capabilities", "list"],
            &["export"],
            &["secrets", "list"],
            &["env-bindings", "list"],
            &["audit", "list"],
            &["audit", "verify"],
            &["usage"],
            &["limits", "get"],
            &["workspaces", "list"],
            &["members", "list"],
            &["daemon", "status"],
        ];
        for words in shown {
            for format in [&[][..], &["--json"]] {
                self.command(&[words, format].concat(), None);
            }
        }
        self.wrong_commands();
        let copy = self.copy();
        self.command(&["backup", &copy], None).succeeded();
        self.command(&["audit", "export"], None).succeeded();
        self.command(&["secrets", "rotate-key"], None).succeeded();
        self.command(&["runs", "end", run], None).succeeded();
    }
}

/// A template with names that are there.
fn filled(world: &World, template: &str, begun: &Begun) -> Vec<String> {
    let id = match template.rsplit_once("/{id}").map(|(above, _)| above) {
        Some(above) if above.ends_with("/runs") => &begun.run,
        Some(above) if above.ends_with("/sessions") => &begun.session,
        Some(above) if above.ends_with("/mcp-servers") => "stdio",
        _ => "works",
    };
    let names = [world.planted_name(), "dying", "with-env", "with-url", "with-header"];
    // A stream, which begins with past events; a future one may never come.
    let all_events = "/api/workspaces/{workspace}/events";
    let query = if template == all_events { "?after=0" } else { "" };
    let fill = |name: &&str| {
        let path = template.replace("{workspace}", "default").replace("{id}", id) + query;
        path.replace("{alias}", name).replace("{name}", name).replace("{principal}", "admin")
    };
    let mut all: Vec<_> = names.iter().map(fill).collect();
    all.dedup();
    all
}

fn absent(template: &str) -> Vec<String> {
    let parts = template.split('/').map(|part| if part.starts_with('{') { "nope" } else { part });
    vec![parts.collect::<Vec<_>>().join("/")]
}
