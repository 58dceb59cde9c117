//! Every message that arrives at a server has passed the gates, and is in the record once. This
//! holds for all shapes and spellings of the message, in either era (S12, S14, S32).
#![expect(clippy::excessive_nesting, reason = "one table of shapes, spellings, gates and eras")]

use std::{collections::BTreeMap, sync::Arc};

use narthex_audit::{Audit, AuditSettings};
use narthex_cedar::RuleSet;
use narthex_gateway::{Caller, GatewayOptions, RunToken, RunView};
use narthex_model::{
    Gates, NameRule, NotificationName, ServerDefinition, ServerId, ToolScope, WorkspaceId,
};
use narthex_policy::{Actors, Authority, Grants, RunPolicy, WorkspaceRules};
use narthex_registry::{
    FirstLists, HeldBack, HeldNames, MountOptions, Mountable, PinnedServer, Sharing, config::Entry,
};
use narthex_testkit::{
    fixture::{Eras, Options, Running},
    messages::{Era, message},
};
use narthex_upstream::Listed;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::traffic::limits;
use super::world::{SOON, World, alias, finish, http_server, parse, transparent};

/// The gates, each in front of a server with the gate's name.
const GATES: [&str; 7] =
    ["open", "denied", "ungranted", "ruled", "limited", "quarantined", "disabled"];
/// The tool that each gate is closed for.
const TOOL: &str = "echo";
/// Spellings that some server may read as `tools/call`.
const DISGUISES: [&str; 6] = [
    "Tools/Call",
    "TOOLS/CALL",
    " tools/call",
    "tools/call ",
    "tool\u{17f}/call",
    "tools/call\u{a0}",
];

struct Gated {
    world: World,
    audit: Audit,
    fixtures: BTreeMap<&'static str, Running>,
    dir: TempDir,
}

fn behind(gate: &'static str, fixture: &Running) -> ServerDefinition {
    let mut definition = http_server(gate, &fixture.url);
    match gate {
        "denied" => definition.exposed.tools = NameRule::new(None, &[TOOL]),
        "ungranted" => {
            let scopes = [ToolScope::new("acme.write").unwrap()].into();
            let tools = [(TOOL.to_owned(), scopes)].into();
            definition.gates = Gates::new(tools, &BTreeMap::new(), BTreeMap::new()).into();
        }
        "limited" => {
            definition.traffic = limits(&json!({"calls_per_day": 1}));
        }
        "disabled" => definition.is_disabled = true,
        "open" => {
            let listed = ["acme/listed"].map(|name| NotificationName::new(name).unwrap());
            definition.notifications = listed.into();
        }
        _ => {}
    }
    definition
}

impl Gated {
    async fn of(eras: Eras) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
        let mut fixtures = BTreeMap::new();
        for gate in GATES {
            let options = Options { eras, records_messages: true, ..Options::default() };
            fixtures.insert(gate, Running::http(options).await.unwrap());
        }
        let entries = vec![Entry::Server(behind("disabled", &fixtures["disabled"]))];
        let mut world = World::recorded(entries, GatewayOptions::default(), None, audit.clone());
        let is_settled = |snapshot: &narthex_registry::Snapshot| snapshot.is_settled();
        world.gateway.registry().wait_until(SOON, is_settled).await;
        let own = GATES.into_iter().filter(|gate| *gate != "disabled");
        world.run = run(&world, own.map(|gate| behind(gate, &fixtures[gate])).collect()).await;
        Self { world, audit, fixtures, dir }
    }

    /// The callers' messages that arrived at each server, sorted.
    fn arrived(&self) -> Vec<(&'static str, String)> {
        let own = [
            "initialize",
            "server/discover",
            "notifications/initialized",
            "ping",
            "subscriptions/listen",
            "",
        ];
        let is_own = |method: &str| own.contains(&method) || method.ends_with("/list");
        let of = |(gate, fixture): (&&'static str, &Running)| {
            let all = fixture.fixture.arrived().into_iter().map(|message| message.method);
            let of_callers = all.filter(|method| !is_own(method));
            of_callers.map(|method| (*gate, method)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.fixtures.iter().flat_map(of).collect();
        all.sort();
        all
    }

    /// The calls in the record: their servers, methods and outcomes.
    async fn recorded(&self) -> Vec<(String, String, String)> {
        self.audit.flush().await;
        let text = fs_err::read_to_string(self.dir.path().join("audit.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let calls = lines.filter(|line| line["details"]["method"].is_string());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .map(|call| {
                let details = &call["details"];
                (text(&call["server"]), text(&details["method"]), text(&call["outcome"]))
            })
            .collect()
    }
}

/// A run without a principal that has all these servers for itself. Its workspace forbids the tool
/// of `ruled`, and the tool of one server is under review.
async fn run(world: &World, own: Vec<ServerDefinition>) -> Arc<RunView> {
    let rules = Arc::<WorkspaceRules>::default();
    let rule = format!(r#"@id("no") forbid(principal, action, resource == Tool::"ruled/{TOOL}");"#);
    let set = RuleSet::compile(&rule).unwrap_or_else(|faults| panic!("{faults}"));
    rules.set(Some(Box::new(set)));
    let mountable = |own| Mountable { sharing: Sharing::Only(1), ..Mountable::new(Arc::new(own)) };
    let set = own.into_iter().map(mountable).collect();
    let options = MountOptions { timeout: SOON, ..MountOptions::default() };
    let set = world.gateway.registry().mount(set, &options).await.unwrap();
    let (held_server, mut held) = (alias("quarantined"), HeldNames::default());
    held.add(&held_server, Listed::Tool, TOOL);
    let id = ServerId::new("quarantined").unwrap();
    let pinned = PinnedServer { id, shows_flagged: false };
    let first = FirstLists::of(&set).without(&held);
    let token = RunToken::generate().unwrap();
    let actors = Actors { run: Some(token.run_id()), ..Actors::default() };
    let (workspace, policy) = (WorkspaceId::default(), RunPolicy::AllAttached);
    let run = RunView::with_servers(&token, workspace, policy, set)
        .with_authority(Authority::new(actors, Arc::<Grants>::default(), rules))
        .frozen_to(first)
        .with_held_back(HeldBack::new([(held_server, pinned)].into(), held));
    let run = Arc::new(run);
    world.gateway.begin_run(&run).unwrap();
    run
}

fn era(caller: &Caller) -> Era {
    if caller.session.is_some() { Era::Legacy } else { Era::Modern }
}

fn call() -> Value {
    json!({"name": TOOL, "arguments": {"message": "x"}})
}

impl Gated {
    /// A caller of each era at the endpoint of a server. A server that is disabled opens no
    /// session, so it has no legacy caller.
    async fn callers(&self, gate: &str) -> Vec<Caller> {
        let endpoint = transparent(gate);
        match gate {
            "disabled" => vec![self.world.modern_caller(endpoint)],
            _ => self.world.both_callers(&endpoint).await.into(),
        }
    }

    async fn request(&self, caller: &Caller, method: &str, params: Value) -> Value {
        let request = parse(&message(era(caller), Some(7), method, params));
        finish(self.world.gateway.call(caller, request).await).await
    }

    async fn notify(&self, caller: &Caller, method: &str, params: Value) {
        let notice = parse(&message(era(caller), None, method, params));
        self.world.gateway.notify(caller, notice).await;
    }
}

/// S12, S14: a call of a closed gate's tool gets to no server, as a request or as a notification.
/// This holds in each spelling, for clients and servers of each era. A method that is not spelt
/// like a method of the protocol is unknown, behind an open gate too.
#[tokio::test]
async fn s14_a_call_refused_by_a_gate_reaches_no_server_in_any_shape_or_spelling() {
    for eras in [Eras::Legacy, Eras::Modern, Eras::Both] {
        let gated = Gated::of(eras).await;
        for gate in GATES {
            for caller in gated.callers(gate).await {
                if gate == "limited" {
                    // This is the one call of the day.
                    gated.request(&caller, "acme/first", json!({})).await;
                }
                for method in ["tools/call"].iter().chain(&DISGUISES) {
                    gated.notify(&caller, method, call()).await;
                    if gate != "open" || *method != "tools/call" {
                        let answer = gated.request(&caller, method, call()).await;
                        let is_error = answer["error"].is_object()
                            || answer["result"]["isError"] == json!(true);
                        assert!(is_error, "{eras:?} {gate} {method:?}: {answer}");
                    }
                }
                for method in ["initialize", "Ping", "resources/read", "notifications/Cancelled"] {
                    gated.notify(&caller, method, json!({"uri": "test://static-text"})).await;
                }
                for method in ["notifications/cancelled", "Notifications/acme", "Initialize"] {
                    let answer = gated.request(&caller, method, json!({"requestId": 1})).await;
                    assert_eq!(answer["error"]["code"], -32601, "{eras:?} {gate}: {answer}");
                }
            }
        }
        assert_eq!(gated.arrived(), [("limited", "acme/first".to_owned())], "{eras:?}");
        // Each attempt is in the record, as refused.
        let recorded = gated.recorded().await;
        let is_disguised =
            |(_, method, _): &&(String, String, String)| DISGUISES.contains(&method.as_str());
        let disguised: Vec<_> = recorded.iter().filter(is_disguised).collect();
        assert!(disguised.iter().all(|(_, _, outcome)| outcome != "ok"), "{disguised:?}");
        let callers = 2 * GATES.len() - 1;
        assert_eq!(disguised.len(), callers * DISGUISES.len() * 2, "{eras:?}");
        gated.world.gateway.drain().await;
    }
}

/// S14, S32: a vendor's additions to the protocol pass the same gates as a call, and are in the
/// record once for each message that arrives.
#[tokio::test]
async fn s32_each_message_that_reaches_a_server_is_recorded_once() {
    for eras in [Eras::Legacy, Eras::Modern, Eras::Both] {
        let gated = Gated::of(eras).await;
        let mut expected = Vec::new();
        for gate in GATES {
            for (index, caller) in gated.callers(gate).await.iter().enumerate() {
                let mut arrives = Vec::new();
                gated.request(caller, "acme/act", json!({})).await;
                arrives.push("acme/act");
                gated.notify(caller, "notifications/acme/said", json!({})).await;
                arrives.push("notifications/acme/said");
                for name in ["acme/listed", "acme/unlisted", "$/cancelRequest"] {
                    gated.notify(caller, name, json!({"id": 1})).await;
                }
                if gate == "open" {
                    gated.request(caller, "tools/call", call()).await;
                    arrives.extend(["acme/listed", "tools/call"]);
                }
                // The first belongs to no question, and only servers send the second.
                gated.notify(caller, "notifications/progress", json!({"progressToken": 1})).await;
                gated.notify(caller, "notifications/message", json!({"data": 1})).await;
                match (gate, index) {
                    ("disabled", _) => arrives.clear(),
                    ("limited", 0) => arrives.truncate(1),
                    ("limited", _) => arrives.clear(),
                    _ => {}
                }
                expected.extend(arrives.into_iter().map(|method| (gate, method.to_owned())));
            }
        }
        expected.sort();
        assert_eq!(gated.arrived(), expected, "{eras:?}");
        let recorded = gated.recorded().await;
        // The fixture answers that it does not know this method.
        let has_arrived = |(_, method, outcome): &&(String, String, String)| {
            !method.ends_with("/list")
                && (outcome == "ok" || (method == "acme/act" && outcome == "rpc_error"))
        };
        let mut sent: Vec<_> = recorded
            .iter()
            .filter(has_arrived)
            .map(|(server, method, _)| (server.as_str(), method.clone()))
            .collect();
        sent.sort();
        assert_eq!(sent, expected, "{eras:?}: {recorded:?}");
        gated.world.gateway.drain().await;
    }
}
