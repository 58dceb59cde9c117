//! Decisions are made on the message that arrives at the server: no part of `params` has two
//! meanings (S12, S18).

use narthex_audit::{Audit, AuditSettings};
use narthex_gateway::{Endpoint, GatewayOptions};
use narthex_model::{NameRule, ServerDefinition, UriRule};
use narthex_registry::config::Entry;
use narthex_testkit::peer::{Peer, Seen, event, events_of, result};
use narthex_wire::{Limits, Message};
use serde_json::{Value, json};

use super::world::{SOON, World, finish, http_server, transparent};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientCapabilities":
        {"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// Parameters that name a denied subject, or a task of another caller, in a way that some servers
/// read and others do not.
const LISTENS: [&str; 12] = [
    r#""notifications":{"taskIds":[],"taskIds":["denied"]}"#,
    r#""notifications":{"taskIds":[],"task\u0049ds":["denied"]}"#,
    r#""notifications":{"TaskIds":["denied"]}"#,
    r#""notifications":{"taskIds ":["denied"]}"#,
    r#""notifications":{"taskIds\u0000":["denied"]}"#,
    r#""notifications":{"taskIds":"denied"}"#,
    r#""notifications":{"taskIds":{"0":"denied"}}"#,
    r#""notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["test://denied"]}"#,
    r#""notifications":{"ResourceSubscriptions":["test://denied"]}"#,
    r#""notifications":{"resourceSubscriptions":[["test://denied"]]}"#,
    r#""notifications":{},"Notifications":{"resourceSubscriptions":["test://denied"]}"#,
    r#""notifications":[{"resourceSubscriptions":["test://denied"]}]"#,
];
const COMPLETIONS: [&str; 8] = [
    r#""ref":{"type":"ref/prompt","name":"ok","Name":"denied"}"#,
    r#""ref":{"type":"ref/prompt","name":"ok","name ":"denied"}"#,
    r#""ref":{"type":"ref/prompt","name":"ok","name":"denied"}"#,
    r#""ref":{"type":"ref/prompt","name":"ok","uri":["test://denied"]}"#,
    r#""ref":{"type":"ref/resource","uri":"test://ok","URI":"test://denied"}"#,
    r#""ref":{"type":"ref/prompt","name":"ok","Type":"ref/resource","uri":"test://denied"}"#,
    r#""ref":{"type":"ref/resource","uri":"test://ok","uri\u0009":"test://denied"}"#,
    r#""ref":[{"type":"ref/prompt","name":"denied"}]"#,
];

fn parse(method: &str, members: &str) -> Message {
    let params = format!(r#"{{{members},"argument":{{"name":"a","value":""}},{META}}}"#);
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    Message::parse(text.into(), &Limits::default()).unwrap()
}

async fn peer() -> Peer {
    let tag = |seen: &Seen| json!({"io.modelcontextprotocol/subscriptionId": seen.body["id"]});
    Peer::modern(move |seen| match seen.rpc() {
        "server/discover" => {
            let able = json!({"prompts": {}, "resources": {"subscribe": true}, "completions": {}});
            let versions = json!(["2026-07-28"]);
            Some(result(seen, &json!({"supportedVersions": versions, "capabilities": able})))
        }
        "prompts/list" => {
            Some(result(seen, &json!({"prompts": [{"name": "ok"}, {"name": "denied"}]})))
        }
        "resources/list" => Some(result(seen, &json!({"resources": []}))),
        "resources/templates/list" => Some(result(seen, &json!({"resourceTemplates": []}))),
        "completion/complete" => Some(result(seen, &json!({"completion": {"values": []}}))),
        "subscriptions/listen" => {
            let acknowledged = "notifications/subscriptions/acknowledged";
            let params = json!({"notifications": {}, "_meta": tag(seen)});
            let told = json!({"jsonrpc": "2.0", "method": acknowledged, "params": params});
            let end = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {}});
            Some(events_of(&[event(&told), event(&end)]))
        }
        _ => None,
    })
    .await
}

fn server(peer: &Peer) -> ServerDefinition {
    let mut definition = http_server("raw", &peer.url);
    definition.exposed.prompts = NameRule::new(None, &["denied"]);
    definition.exposed.resources = UriRule::new(None, &["test://denied*"]);
    definition
}

/// S12, S18: a message that a server may read otherwise than the decision is refused unchanged,
/// with the member at fault, and is in the record. The record of a stream names its subjects.
#[tokio::test]
async fn s18_a_message_that_a_server_may_read_otherwise_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
    let peer = peer().await;
    let entries = vec![Entry::Server(server(&peer))];
    let world = World::recorded(entries, GatewayOptions::default(), None, audit.clone());
    world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
    let listens = LISTENS.map(|members| ("subscriptions/listen", members));
    let completions = COMPLETIONS.map(|members| ("completion/complete", members));
    for endpoint in [transparent("raw"), Endpoint::Aggregated] {
        let caller = world.modern_caller(endpoint);
        for (method, members) in listens.iter().chain(&completions) {
            let answering = world.gateway.call(&caller, parse(method, members)).await;
            let answer = finish(answering).await;
            assert_eq!(answer["error"]["code"], -32602, "{members}: {answer}");
            let text = answer["error"]["message"].as_str().unwrap();
            assert!(text.contains("`params"), "{members}: {text}");
        }
    }
    let caller = world.modern_caller(transparent("raw"));
    for (method, members) in [
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"ok"}"#),
        ("subscriptions/listen", r#""notifications":{"resourceSubscriptions":["test://fine"]}"#),
    ] {
        let answer = finish(world.gateway.call(&caller, parse(method, members)).await).await;
        assert!(answer["result"].is_object(), "{members}: {answer}");
    }
    let arrived: Vec<_> = peer.seen().into_iter().map(|seen| seen.body.to_string()).collect();
    assert!(!arrived.iter().any(|text| text.contains("denied")), "{arrived:?}");
    for good in [r#""name":"ok""#, r#"["test://fine"]"#] {
        assert!(arrived.iter().any(|text| text.contains(good)), "{arrived:?}");
    }
    audit.flush().await;
    let text = fs_err::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let calls: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = calls.iter().filter(|call| call["outcome"] == "rpc_error").count();
    assert_eq!(refused, 2 * (LISTENS.len() + COMPLETIONS.len()), "{text}");
    assert!(text.contains("test://fine"), "{text}");
    world.gateway.drain().await;
}
