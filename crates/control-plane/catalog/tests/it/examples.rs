//! The JSON that other systems of this kind write is accepted, and means the same.

use narthex_catalog::{
    Agent, Capability, EntryAuth, OpenError, Parsed, RunKind, RunRequest, ServerEntry, Shape,
};
use narthex_model::{AgentName, CapabilityName};
use serde_json::{Value, json};

use crate::world::{World, agent, capability, reasons, server, text};

macro_rules! data {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../data/", $name))).unwrap()
    };
}

fn entries() -> Vec<Value> {
    vec![
        data!("docs.json"),
        data!("orchestrator.json"),
        data!("linear.json"),
        data!("oauth.json"),
        data!("script.json"),
        data!("secret.json"),
        data!("scope.json"),
        data!("image.json"),
        data!("remote.json"),
    ]
}

/// O1, O4, O44, O92, O93, O94, O95, X-M9, X-M17: all shapes and schemas are read, and written
/// as one.
#[test]
fn o1_every_entry_is_accepted_and_has_a_normal_form() {
    for value in entries() {
        let entry = server(&value);
        let written = serde_json::to_value(&entry).unwrap();
        assert_eq!(server(&written), entry, "{written}");
        assert_eq!(serde_json::to_value(server(&written)).unwrap(), written);
    }
}

/// O6, O27, O48, O50: references, overrides, removals and bare references are read.
#[test]
fn o6_every_attachment_is_accepted_and_has_a_normal_form() {
    for value in
        [data!("agent-override.json"), data!("agent-bare.json"), data!("agent-header.json")]
    {
        let read = agent(&value);
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(agent(&written), read);
    }
    let read = capability("papers", &data!("capability.json"));
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!(capability("papers", &written), read);
    assert!(Capability::parse(&text(&written), None).is_ok());
}

/// O7, O8, O24, O9, O86: entry, capability and override together, as a runner gets them.
#[test]
fn o24_a_runner_gets_entry_capability_and_override_merged() {
    let world = World::new(&entries())
        .using(data!("agent-override.json")["mcpServers"].clone())
        .including("papers", data!("capability.json")["mcpServers"].clone())
        .env("DOCS_KEY", "canary")
        .scope(data!("run.json")["scope"].clone());
    assert_eq!(
        world.payload(),
        json!({
            "run_id": "run_0a1b2c3d4e5f", "session_id": "ses_0a1b2c3d4e5f",
            "agent_name": "reader",
            "resolved_mcp_servers": { "library": {
                "type": "http", "url": "http://localhost:9501/mcp",
                "config": { "context_id": "ctx-9", "run": "run_0a1b2c3d4e5f", "read_only": true },
            } },
        })
    );
}

/// O14, O28, O64: the URL of the special server is filled in at the end.
#[test]
fn o28_the_url_of_the_special_server_comes_from_the_runner() {
    let world = World::new(&entries()).using(data!("agent-header.json")["mcpServers"].clone());
    let payload = world.payload();
    let orchestrator = &payload["resolved_mcp_servers"]["orchestrator"];
    assert_eq!(orchestrator["url"], "http://127.0.0.1:54321/mcp");
    let headers = world.carried("orchestrator");
    assert_eq!(headers["x-run-id"], "run_0a1b2c3d4e5f");
    assert_eq!(headers["X-Agent-Tags"], "internal,research");
}

/// O16, O61: refusals have a plain text and a code.
#[test]
fn o61_refusals_have_both_forms() {
    let world = World::new(&entries())
        .including("papers", data!("capability.json")["mcpServers"].clone())
        .env("DOCS_KEY", "canary");
    let body = json!(world.resolve().unwrap_err().rejection());
    let message = "Missing required value: scope.context_id for config key 'context_id'";
    assert_eq!(body["error"], message);
    assert_eq!(body["code"], "missing_required_mcp_config");
    assert_eq!(body["server_name"], "library");
    assert_eq!(body["missing_fields"], json!(["context_id"]));

    let world = World::new(&entries()).using(json!({ "library": { "ref": "dox" } }));
    let body = json!(world.resolve().unwrap_err().rejection());
    assert_eq!(body["error"], "MCP server 'library' refers to unknown registry entry 'dox'");
    assert_eq!(body["code"], "mcp_ref_resolution_failed");
    assert_eq!((&body["server_name"], &body["ref"]), (&json!("library"), &json!("dox")));
    assert_eq!(body["errors"][0]["remedy"], "did you mean `docs`?");
}

/// Parameters under either name, the prompt at the top or inside.
#[test]
fn both_forms_of_a_run_request_are_accepted() {
    let reader = AgentName::new("reader").unwrap();
    for value in [data!("run.json"), data!("run-inside.json")] {
        let Parsed { value: request, .. } = RunRequest::parse(&text(&value)).unwrap();
        assert_eq!(request.kind, RunKind::StartSession);
        assert_eq!(request.agent_name.as_ref(), Some(&reader));
        assert_eq!(request.prompt.as_deref(), Some("Summarise the papers"));
        assert_eq!(request.scope.values()["context_id"], "ctx-9");
        let schema =
            json!({ "params_schema": { "topic": { "type": "string", "required": true } } });
        let params = request.params_for(&agent(&schema));
        assert_eq!(Value::Object(params), json!({ "topic": "auth" }));
    }
    let inside = RunRequest::parse(&text(&data!("run-inside.json"))).unwrap().value;
    let schema = json!({ "params_schema": { "prompt": { "type": "string" }, "topic": {} } });
    assert_eq!(inside.params_for(&agent(&schema)).len(), 2);
}

/// X-M18, X-D1, X-E9, X-M16, X-E7: a manifest is a config schema, and its tool scopes are sets.
#[test]
fn x_m17_a_manifest_is_a_config_schema() {
    let entry = server(&data!("linear.json"));
    assert_eq!((entry.id.as_str(), entry.name.as_str()), ("linear", "Issues"));
    let schema = entry.config_schema.as_ref().unwrap();
    assert!(schema["LINEAR_API_KEY"].required && schema["LINEAR_API_KEY"].is_hidden());
    let scopes =
        |tool: &str| entry.tool_scopes[tool].iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(scopes("create_issue"), ["linear.write"]);
    assert_eq!(scopes("search_issues"), ["linear.read"]);
    let by_default = server(&json!({ "name": "x", "command": "x",
        "manifest": { "env": { "A": { "kind": "value" } } } }));
    assert!(by_default.config_schema.unwrap()["A"].required);

    let world = World::new(&[data!("linear.json")]).secret("LINEAR_API_KEY", "k").using(json!({
        "linear": { "ref": "linear", "config": {
            "LINEAR_API_KEY": "${LINEAR_API_KEY}", "LINEAR_WORKSPACE_ID": "org" } } }));
    let variables = world.carried("linear");
    assert_eq!(variables["LINEAR_API_KEY"], "k");
    assert_eq!(variables["LINEAR_WORKSPACE_ID"], "org");
}

/// O92, X-M13, O95: OAuth in both spellings is read; a server that cannot be started is not
/// started.
#[test]
fn o92_reserved_forms_are_read() {
    let entry = server(&data!("oauth.json"));
    let EntryAuth::ClientCredentials(auth) = &entry.auth else { panic!("{:?}", entry.auth) };
    assert_eq!((auth.scopes.len(), auth.token_url.as_deref()), (2, Some("https://id.test/t")));
    assert_eq!(server(&data!("remote.json")).auth.mode(), "authorizationCode");
    assert!(matches!(server(&data!("image.json")).shape, Shape::Stdio(_)));

    let mut world = World::new(&entries()).using(json!({ "files": { "ref": "files" } }));
    world.project_dir = Some("/home/p".to_owned());
    let refused = world.definition("files").unwrap_err();
    assert!(matches!(refused, OpenError::NotStarted { .. }), "{refused}");
    assert_eq!(
        world.payload()["resolved_mcp_servers"]["files"],
        json!({ "type": "stdio", "script": "file-server", "config": { "dir": "/home/p" } })
    );
}

/// O93: a secret's name in other systems' spelling is read as narthex's, with a warning.
#[test]
fn o93_names_of_secrets_are_converted_with_a_warning() {
    let parsed = ServerEntry::parse(&text(&data!("secret.json")), None).unwrap();
    assert!(parsed.warnings[0].message.contains("JIRA_KEY"), "{:?}", parsed.warnings);
    let world =
        World::new(&entries()).using(json!({ "jira": { "ref": "jira" } })).secret("JIRA_KEY", "k");
    assert_eq!(world.carried("jira")["x-api-key"], "k");
    let required = world.plan(|plan| plan.secrets());
    assert_eq!(required.len(), 1);
    assert_eq!(
        (required[0].name.as_str(), required[0].field.as_str()),
        ("JIRA_KEY", "config.api_key")
    );
}

/// O1: the id in the address wins, and another one inside is refused.
#[test]
fn o1_ids_do_not_change() {
    let id = narthex_model::ServerId::new("docs").unwrap();
    let mut value = data!("docs.json");
    assert!(ServerEntry::parse(&text(&value), Some(&id)).is_ok());
    value.as_object_mut().unwrap().remove("id");
    assert_eq!(ServerEntry::parse(&text(&value), Some(&id)).unwrap().value.id, id);
    value["id"] = json!("other");
    assert_eq!(reasons(ServerEntry::parse(&text(&value), Some(&id))), ["id: ValueInvalid"]);
    let name = CapabilityName::new("x").unwrap();
    let renamed = Capability::parse(b"{\"name\":\"y\"}", Some(&name));
    assert_eq!(reasons(renamed), ["name: ValueInvalid"]);
    assert_eq!(reasons(Agent::parse(b"{}", None)), ["name: FieldMissing"]);
}
