//! Parts of its servers that a run is frozen to (D10).

use hyper::StatusCode;
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};

use super::{HOME, noting_server, request};
use crate::{
    runs::Operator,
    world::{Client, Reply, SOON, World, call, initialize, legacy, modern},
};

const DYNAMIC: &str = "dynamic_tool";

impl Operator<'_> {
    /// The catalog with an agent of one server over HTTP.
    pub(super) async fn has_docs(&self, server: &Running) {
        self.put("mcp-servers/docs", &json!({ "id": "docs", "url": server.url })).await;
        let attached = json!({ "docs": { "ref": "docs" } });
        self.put("agents/docs", &json!({ "name": "docs", "mcpServers": attached })).await;
    }

    pub(super) async fn begin_docs(&self) -> String {
        let begun = self.begin(&json!({ "agent_name": "docs" })).await;
        begun["token"].as_str().unwrap().to_owned()
    }

    /// Waits until a new run has the tool that the server has added.
    async fn next_run_has_it(&self) {
        let waiting = async {
            loop {
                let token = self.begin_docs().await;
                if names(&Seen::new(self.0, &token, "/mcp/docs").list().await).contains(DYNAMIC) {
                    let mut seen = Seen::new(self.0, &token, "/mcp");
                    assert!(names(&seen.list().await).contains("mcp__docs__dynamic_tool"));
                    return;
                }
            }
        };
        tokio::time::timeout(SOON, waiting).await.expect("no run has what was added");
    }
}

fn names(reply: &Reply) -> String {
    let answer = reply.json();
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert!(tools.len() > 1, "{answer}");
    tools.iter().map(|tool| format!(" {}", tool["name"].as_str().unwrap())).collect()
}

/// A client of one era at one endpoint.
pub(super) struct Seen {
    client: Client,
    pub(super) prefix: &'static str,
}

impl Seen {
    pub(super) fn new(world: &World, token: &str, path: &str) -> Self {
        let prefix = if path == "/mcp" { "mcp__docs__" } else { "" };
        Self { client: world.client_as(path, token), prefix }
    }

    pub(super) async fn in_session(mut self, capabilities: Value) -> Self {
        let reply = self.client.post(&[], initialize(capabilities).to_string()).await;
        self.client.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
        self
    }

    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Reply {
        match self.client.session {
            Some(_) => self.client.post(&[], legacy(1, method, params).to_string()).await,
            None => self.client.modern(&modern(1, method, params)).await,
        }
    }

    pub(super) async fn list(&mut self) -> Reply {
        self.ask("tools/list", json!({})).await
    }

    /// Checks that the first tools work, and that a tool which was added later is absent.
    async fn is_frozen(&mut self) {
        let listed = names(&self.list().await);
        assert!(!listed.contains(DYNAMIC) && listed.contains("echo"), "{listed}");
        let wanted = format!("{}{DYNAMIC}", self.prefix);
        let reply = self.ask("tools/call", call(&wanted, json!({}))).await;
        assert_eq!(reply.kind(), "tool_not_found", "{reply:?}");
        let wanted = format!("{}echo", self.prefix);
        let reply = self.ask("tools/call", call(&wanted, json!({ "message": "x" }))).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");
    }
}

/// A resource that the fixture lists only at times, and a resource that only a template of that
/// kind covers.
const LATER: [&str; 2] = ["test://dynamic-resource", "test://dynamic/5"];

fn is_refused(reply: &Reply) -> bool {
    reply.json()["error"].is_object()
}

impl Seen {
    async fn reads(&mut self, uri: &str) -> Reply {
        self.ask("resources/read", json!({ "uri": uri })).await
    }

    async fn lists_no_later_resources(&mut self) {
        for method in ["resources/list", "resources/templates/list"] {
            let listed = self.ask(method, json!({})).await.json().to_string();
            assert!(listed.contains("test://"), "{listed}");
            assert!(!listed.contains("dynamic") && !listed.contains("ninth"), "{listed}");
        }
    }

    /// Waits until narthex knows what the server has listed on this client's link.
    async fn is_denied(&mut self, uri: &str) {
        let denied = async { while !is_refused(&self.reads(uri).await) {} };
        tokio::time::timeout(SOON, denied).await.unwrap_or_else(|_| panic!("{uri} can be read"));
    }

    /// Resources that were there from the start can be read, also by template; later ones are
    /// neither listed, nor read, nor followed.
    async fn has_frozen_resources(&mut self) {
        self.lists_no_later_resources().await;
        for uri in LATER {
            self.is_denied(uri).await;
        }
        self.lists_no_later_resources().await;
        for uri in ["test://static-text", "test://template/9/data"] {
            let reply = self.reads(uri).await.json();
            assert_eq!(reply["result"]["contents"][0]["uri"], uri, "{reply}");
        }
        if self.client.session.is_some() {
            for (uri, is_there) in [(LATER[0], false), ("test://watched-resource", true)] {
                let reply = self.ask("resources/subscribe", json!({ "uri": uri })).await;
                assert_eq!(is_refused(&reply), !is_there, "{uri} {reply:?}");
            }
        }
    }
}

/// Clients of all kinds at both kinds of endpoint.
pub(super) async fn all_kinds(world: &World, token: &str) -> Vec<Seen> {
    let mut all = Vec::new();
    for path in ["/mcp", "/mcp/docs"] {
        let seen = || Seen::new(world, token, path);
        all.push(seen());
        all.push(seen().in_session(json!({})).await);
        all.push(seen().in_session(json!({ "sampling": {} })).await);
    }
    all
}

/// D10, S23, X-M49, X-M50, A-3: a tool that a server adds while a run lives is neither listed there
/// nor called; the next run has it.
#[tokio::test(flavor = "multi_thread")]
async fn d10_a_tool_that_a_server_adds_is_only_in_the_next_run() {
    let (world, server) = (World::operated(&json!({})).await, fixture().await);
    let operator = Operator(&world);
    operator.has_docs(&server).await;
    let token = operator.begin_docs().await;
    let mut clients = all_kinds(&world, &token).await;
    for client in &mut clients {
        client.is_frozen().await;
    }
    server.fixture.toggle_dynamic_tool();
    operator.next_run_has_it().await;
    for client in &mut clients {
        client.is_frozen().await;
    }
    let mut prompts = Seen::new(&world, &token, "/mcp/docs");
    server.fixture.toggle_dynamic_prompt();
    let listed = prompts.ask("prompts/list", json!({})).await.json();
    assert!(!listed.to_string().contains("dynamic_prompt"), "{listed}");
    let asked = prompts.ask("prompts/get", json!({ "name": "dynamic_prompt" })).await;
    assert_eq!(asked.code(), Some(-32602), "{asked:?}");
}

/// D10, D5: resources and templates that a server lists later are neither listed nor read in a run,
/// on no kind of link, also after a restart; the next run has them.
#[tokio::test(flavor = "multi_thread")]
async fn d10_resources_freeze_too() {
    let (world, server) = (World::operated(&json!({})).await, fixture().await);
    let operator = Operator(&world);
    operator.has_docs(&server).await;
    let token = operator.begin_docs().await;
    let mut clients = all_kinds(&world, &token).await;
    for client in &mut clients {
        // Opens the client's link, on which the server lists for the first time.
        assert!(!is_refused(&client.reads("test://static-text").await));
        assert!(is_refused(&client.reads(LATER[0]).await));
    }
    server.fixture.toggle_dynamic_resources();
    for client in &mut clients {
        client.has_frozen_resources().await;
    }
    let next = operator.begin_docs().await;
    for path in ["/mcp", "/mcp/docs"] {
        let mut seen = Seen::new(&world, &next, path);
        let listed = seen.ask("resources/list", json!({})).await.json().to_string();
        assert!(listed.contains(LATER[0]), "{listed}");
        assert!(!is_refused(&seen.reads(LATER[0]).await));
    }
    drop(clients);
    let world = World::operated_in(world.stop().await).await;
    for mut client in all_kinds(&world, &token).await {
        client.has_frozen_resources().await;
    }
}

/// D10, A-3: a run's frozen lists outlive the daemon, even if the server has changed meanwhile.
/// Runs with servers of their own are frozen, too.
#[tokio::test(flavor = "multi_thread")]
async fn d10_first_lists_outlive_the_daemon() {
    let (world, server) = (World::operated(&json!({})).await, fixture().await);
    let operator = Operator(&world);
    operator.has_docs(&server).await;
    let token = operator.begin_docs().await;
    let own = json!({ "servers": { "docs": { "transport": "http", "url": server.url } } });
    let own = operator.begin(&own).await["token"].as_str().unwrap().to_owned();
    // A list for clients that the server may ask something is stored from its first time on.
    let able = json!({ "sampling": {} });
    let session = Seen::new(&world, &token, "/mcp/docs").in_session(able.clone());
    session.await.is_frozen().await;
    let dir = world.stop().await;
    server.fixture.toggle_dynamic_tool();
    let world = World::operated_in(dir).await;
    for token in [&token, &own] {
        for path in ["/mcp", "/mcp/docs"] {
            Seen::new(&world, token, path).is_frozen().await;
        }
    }
    for path in ["/mcp", "/mcp/docs"] {
        let session = Seen::new(&world, &token, path).in_session(able.clone());
        session.await.is_frozen().await;
    }
    Operator(&world).next_run_has_it().await;
}

pub(super) async fn fixture() -> Running {
    Running::http(Options::default()).await.unwrap()
}

/// D10, D16, D17: a server that a run has, and that cannot start after a restart, is not absent:
/// calls say why, and all other servers work.
#[tokio::test(flavor = "multi_thread")]
async fn d10_calls_of_a_server_that_fails_after_a_restart_name_the_cause() {
    let (world, server) = (World::operated(&json!({})).await, fixture().await);
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut off = noting_server(&world);
    off["id"] = json!("off");
    operator.put("mcp-servers/off", &off).await;
    operator.put("mcp-servers/docs", &json!({ "id": "docs", "url": server.url })).await;
    operator.put("secrets/OTHER", &json!({ "value": "other" })).await;
    let mut agent = super::reader();
    agent["mcpServers"]["off"] = agent["mcpServers"]["library"].clone();
    agent["mcpServers"]["off"]["ref"] = json!("off");
    agent["mcpServers"]["off"]["config"]["API_TOKEN"] = json!("${OTHER}");
    agent["mcpServers"]["docs"] = json!({ "ref": "docs" });
    agent["mcpServers"]["beside"] = agent["mcpServers"]["off"].clone();
    agent["mcpServers"]["beside"]["ref"] = json!("notes");
    operator.put("agents/reader", &agent).await;
    let token = operator.begin(&request()).await["token"].as_str().unwrap().to_owned();

    let world = World::operated_in(world.stop().await).await;
    let operator = Operator(&world);
    let cleared = operator.ask("DELETE", &format!("{HOME}/secrets/LIBRARY_TOKEN"), "").await;
    assert_eq!(cleared.status, StatusCode::OK);
    off["disabled"] = json!(true);
    operator.put("mcp-servers/off", &off).await;
    drop(server);
    let expected = [("library", "secret_cleared"), ("off", "server_disabled")];
    let said = json!({ "message": "x" });
    for (alias, kind) in expected.into_iter().chain([("docs", "transport_error")]) {
        let mut one = world.client_as(&format!("/mcp/{alias}"), &token);
        let reply = one.modern(&modern(1, "tools/call", call("echo", said.clone()))).await;
        assert_eq!(reply.kind(), kind, "{alias} {reply:?}");
    }
    for (alias, kind) in expected {
        let mut all = world.client_as("/mcp", &token);
        let tool = format!("mcp__{alias}__echo");
        let reply = all.modern(&modern(1, "tools/call", call(&tool, said.clone()))).await;
        assert_eq!(reply.kind(), kind, "{alias} {reply:?}");
    }
    let mut beside = world.client_as("/mcp/beside", &token);
    let reply = beside.modern(&modern(1, "tools/call", call("echo", said))).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");
}
