//! Servers that each person signs in to, on agents that act for no one person.

use narthex_catalog::{Agent, FaultCode};
use narthex_model::{AgentType, OauthOnOrchestrators};
use serde_json::{Value, json};

use crate::world::{World, agent, refused, text};

/// The server `mail`, to which each person signs in, attached by the agent and by a capability, and
/// another server with one key for all.
fn attached(agent_type: AgentType) -> World {
    let mail = json!({ "id": "mail", "url": "https://mail.test/mcp", "kind": "remote_oauth" });
    let open = json!({ "id": "open", "url": "https://open.test/mcp" });
    let mut world = World::new(&[mail, open])
        .including("post", json!({ "box": { "ref": "mail" }, "free": { "ref": "open" } }))
        .using(json!({ "own": { "ref": "mail" }, "open": { "ref": "open" } }));
    world.agent.agent_type = agent_type;
    world
}

/// X-M15: an agent has a type; without one it is a worker, and its normal form leaves the type out.
#[test]
fn x_m15_agents_have_a_type() {
    let read = |value: &Value| agent(value).agent_type;
    assert_eq!(read(&json!({})), AgentType::Worker);
    for one in AgentType::ALL {
        let read = agent(&json!({ "agent_type": one.as_str() }));
        assert_eq!(read.agent_type, one);
        let written = serde_json::to_value(&read).unwrap();
        let shown = written.get("agent_type").and_then(Value::as_str);
        assert_eq!(shown, (one != AgentType::Worker).then_some(one.as_str()));
        assert_eq!(agent(&written), read);
    }
    for wrong in [json!("Worker"), json!("boss"), json!(""), json!(1)] {
        let value = json!({ "name": "a", "agent_type": wrong });
        let codes = refused(Agent::parse(&text(&value), None));
        assert!(
            codes.contains(&FaultCode::ValueInvalid) || codes.contains(&FaultCode::TypeWrong),
            "{wrong}: {codes:?}"
        );
    }
}

/// X-M15, X-E31: while the setting is `off`, each attachment is a fault, at its place, which names
/// the setting and the remedy; workers are not affected.
#[test]
fn x_e31_only_worker_agents_may_attach_oauth_servers() {
    assert_eq!(attached(AgentType::Worker).plan_codes(), []);
    for agent_type in [AgentType::Orchestrator, AgentType::Scheduled] {
        let mut world = attached(agent_type);
        assert_eq!(world.plan_codes(), [FaultCode::OauthNotAllowed; 2]);
        // A run is refused for the same reason (D9).
        let faults = world.faults();
        let places: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        let expected = ["capabilities.post.mcpServers.box.ref", "agents.reader.mcpServers.own.ref"];
        assert_eq!(places, expected);
        for fault in &faults {
            assert!(fault.message.contains("agent `reader`"), "{fault}");
            assert!(fault.message.contains(agent_type.as_str()), "{fault}");
            assert!(fault.message.contains("`oauth_on_orchestrators`"), "{fault}");
            assert!(fault.remedy.contains("`on_attended`"), "{fault}");
        }
        for allowed in [OauthOnOrchestrators::OnAttended, OauthOnOrchestrators::On] {
            world.catalog.oauth_on_orchestrators = allowed;
            assert_eq!(world.plan_codes(), []);
            let run = world.run();
            let per_user: Vec<_> =
                run.servers.values().map(|server| server.is_per_user()).collect();
            assert_eq!(per_user, [true, false, false, true], "{:?}", run.servers.keys());
        }
    }
}

/// D17: an optional attachment is refused when it is saved, and left out of a run.
#[test]
fn x_e31_a_run_omits_an_optional_oauth_server() {
    let mut world =
        attached(AgentType::Scheduled).using(json!({ "own": { "ref": "mail", "optional": true } }));
    world.agent.capabilities.clear();
    world.agent.agent_type = AgentType::Scheduled;
    assert_eq!(world.plan_codes(), [FaultCode::OauthNotAllowed]);
    let run = world.run();
    assert!(run.servers.is_empty());
    assert_eq!(run.skipped[0].faults[0].code, FaultCode::OauthNotAllowed);
}
