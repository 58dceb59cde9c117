//! The readers of the cause of a server's failure (D28).

use std::{collections::BTreeMap, sync::Arc};

use narthex_gateway::{Endpoint, GatewayOptions, RunToken, RunView};
use narthex_model::{ServerDefinition, StdioTarget, Target, WorkspaceId};
use narthex_policy::RunPolicy;
use narthex_registry::{MountOptions, Mountable, config::Entry};
use serde_json::{Value, json};

use super::{
    scripted::Scripts,
    world::{SOON, World, alias, finish, initialize, transparent},
};

/// A word of commands, arguments and lines of standard error, and of nothing else.
const MARK: &str = "hush";
const REQUESTS: [(&str, &str); 4] = [
    ("tools/call", r#"{"name":"act","arguments":{}}"#),
    ("tools/list", "{}"),
    ("resources/read", r#"{"uri":"test://a"}"#),
    ("prompts/get", r#"{"name":"a"}"#),
];

/// A server that ends with its first call and at each later start, and a server that does not
/// start.
fn servers(scripts: &Scripts) -> [ServerDefinition; 2] {
    let ends = r#"echo "Error: hush has no licence" >&2; exit 7"#;
    let again = format!(r#"[ -s "$PIDS" ] && {{ {ends}; }}"#);
    let called = format!("case $line in *tools/call*) {ends} ;; esac");
    let target = Target::Stdio(StdioTarget {
        command: "/opt/hush/server".to_owned(),
        args: vec!["--hush".to_owned()],
        env: BTreeMap::new(),
        working_dir: None,
        confinement: None,
    });
    [scripts.server("mine", [&again, &called, ""]), ServerDefinition::new(alias("broken"), target)]
}

/// The answers to callers of the run, by server.
async fn answers(world: &World) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for name in ["mine", "broken"] {
        let caller = world.modern_caller(transparent(name));
        for (method, params) in REQUESTS {
            let params = params.parse().unwrap();
            all.push((name, world.ask(&caller, method, params).await));
        }
        let (endpoint, asked) = (transparent(name), initialize("2025-11-25", json!({})));
        let (answering, session) = world.gateway.initialize(&world.run, &endpoint, &asked).await;
        assert!(session.is_none(), "{name}");
        all.push((name, finish(answering).await));
    }
    all
}

async fn at_aggregated(world: &World) -> String {
    let caller = world.modern_caller(Endpoint::Aggregated);
    let mut text = String::new();
    for (method, params) in [
        ("tools/call", json!({ "name": "mcp__mine__act", "arguments": {} })),
        ("tools/call", json!({ "name": "mcp__broken__act", "arguments": {} })),
        ("server/discover", json!({})),
        ("tools/list", json!({})),
    ] {
        text.push_str(&world.ask(&caller, method, params).await.to_string());
    }
    text
}

/// D28: a run gets the names of its own servers that ended or did not start. The answer to each
/// request has the kind of failure, and names the place where the cause is shown.
#[tokio::test]
async fn d28_a_run_does_not_read_the_cause_of_its_failed_servers() {
    let scripts = Scripts::new();
    let mut world = World::over(Vec::new(), GatewayOptions::default());
    let options = MountOptions { timeout: SOON, is_strict: false, holder: None };
    let set = servers(&scripts).map(|own| Mountable::new(Arc::new(own)));
    let set = world.gateway.registry().mount(set.into(), &options).await.unwrap();
    let faults = set.faults().to_vec();
    assert_eq!((set.mounts().len(), faults.len()), (1, 1), "{faults:?}");
    let token = RunToken::generate().unwrap();
    let policy = RunPolicy::default();
    let run = RunView::with_servers(&token, WorkspaceId::default(), policy, set);
    world.run = Arc::new(run.with_failed(faults));
    world.gateway.begin_run(&world.run).unwrap();
    let all = answers(&world).await;
    assert_eq!(all.len(), 2 * (REQUESTS.len() + 1));
    for (name, answer) in &all {
        let text = answer.to_string();
        assert!(!text.contains(MARK) && !text.contains("exit"), "{name}: {text}");
        assert!(text.contains("transport_error"), "{name}: {text}");
        let is_named = text.contains(&format!("server `{name}`"));
        assert!(is_named && text.contains("an operator can read its logs"), "{name}: {text}");
    }
    let text = at_aggregated(&world).await;
    assert!(!text.contains(MARK), "{text}");
    world.gateway.drain().await;
}

/// Clients of the daemon's own run are the operator's, and read the cause.
#[tokio::test]
async fn clients_of_the_daemons_own_run_read_the_cause() {
    let scripts = Scripts::new();
    let entries = servers(&scripts).map(Entry::Server);
    let world = World::over(entries.into(), GatewayOptions::default());
    world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
    for (name, answer) in answers(&world).await {
        assert!(answer.to_string().contains(MARK), "{name}: {answer}");
    }
    world.gateway.drain().await;
}
