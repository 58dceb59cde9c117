//! The meaning of placeholders, their permitted places, and the result without a value.

use narthex_catalog::{FaultCode, ServerEntry};
use serde_json::{Value, json};

use crate::world::{World, refused, text};

/// One key of type JSON, set by the agent.
fn one(value: Value) -> World {
    World::one(json!({ "k": { "type": "json" } }), json!({}), json!({ "k": value }))
}

#[track_caller]
fn value(world: &World) -> Value {
    world.payload()["resolved_mcp_servers"]["a"]["config"]["k"].clone()
}

/// O11, O13, O15, O72, O52: five sources.
#[test]
fn o11_placeholders_have_five_sources() {
    let text = "${params.p}|${scope.s}|${env.E}|${runtime.run_id}|${runtime.session_id}|\
                ${runner.orchestrator_mcp_url}";
    let world =
        one(json!(text)).params(json!({ "p": "P" })).scope(json!({ "s": "S" })).env("E", "V");
    assert_eq!(value(&world), "P|S|V|run_0a1b2c3d4e5f|ses_0a1b2c3d4e5f|http://127.0.0.1:54321/mcp");
}

/// O12: parameters are known at agent level alone.
#[test]
fn o12_parameters_are_allowed_only_in_agents() {
    let entry = json!({ "id": "s", "url": "https://s.test", "config_schema": { "k": {} },
                        "default_config": { "k": "${params.p}" } });
    let codes = refused(ServerEntry::parse(&text(&entry), None));
    assert!(codes.contains(&FaultCode::PlaceholderNotAllowed));
    let entry = json!({ "id": "s", "url": "https://s.test",
                        "config_schema": { "k": { "default": "${params.p}" } } });
    let codes = refused(ServerEntry::parse(&text(&entry), None));
    assert!(codes.contains(&FaultCode::PlaceholderNotAllowed));
    let capability = json!({ "name": "c", "mcpServers": {
        "a": { "ref": "s", "config": { "k": ["x${params.p}"] } } } });
    let codes = refused(narthex_catalog::Capability::parse(&text(&capability), None));
    assert!(codes.contains(&FaultCode::PlaceholderNotAllowed));
}

/// O52, O54, O65: inside objects and lists, several in a text; types stay.
#[test]
fn o65_a_whole_placeholder_keeps_its_type_and_a_part_becomes_json_text() {
    let scope = json!({ "n": 7, "f": 1.5, "yes": true, "list": [1, "x"], "object": { "a": null } });
    for (written, expected) in [
        (json!("${scope.n}"), json!(7)),
        (json!("${scope.yes}"), json!(true)),
        (json!("${scope.object}"), json!({ "a": null })),
        (json!("n=${scope.n} f=${scope.f} yes=${scope.yes}"), json!("n=7 f=1.5 yes=true")),
        (json!("${scope.list}${scope.object}"), json!("[1,\"x\"]{\"a\":null}")),
        (
            json!({ "a": ["${scope.n}", { "b": "x${scope.n}" }], "c": 1.0 }),
            json!({ "a": [7, { "b": "x7" }], "c": 1.0 }),
        ),
        (json!([false, null, 3]), json!([false, null, 3])),
    ] {
        assert_eq!(value(&one(written).scope(scope.clone())), expected);
    }
}

/// O55: the key is all text after the first dot, and then a path.
#[test]
fn o55_keys_with_dots() {
    let world = one(json!("${scope.a.b}"));
    assert_eq!(value(&world.clone().scope(json!({ "a.b": 1, "a": { "b": 2 } }))), 1);
    assert_eq!(value(&world.clone().scope(json!({ "a": { "b": 2 } }))), 2);
    for missing in [json!({ "a": { "c": 2 } }), json!({ "a": [1] }), json!({ "a": "b" })] {
        assert!(world.clone().scope(missing).run().servers.values().all(|s| s.config.is_empty()));
    }
}

/// O16, O17, O57, O59, O9: a missing required value refuses, a missing optional one is left out,
/// and nothing falls back.
#[test]
fn o59_an_unresolved_override_does_not_fall_back() {
    let schema =
        |required: bool| json!({ "k": { "type": "string", "required": required, "default": "x" } });
    for written in ["${scope.k}", "Bearer ${scope.k}", "${scope.k}${runtime.run_id}"] {
        let world = World::one(schema(true), json!({ "k": "wide" }), json!({ "k": written }));
        let faults = world.faults();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].code, FaultCode::MissingRequiredMcpConfig);
        assert_eq!(faults[0].message, "Missing required value: scope.k for config key 'k'");
        assert_eq!(faults[0].path, "agents.reader.mcpServers.a.config.k");

        let world = World::one(schema(false), json!({ "k": "wide" }), json!({ "k": written }));
        let run = world.run();
        let server = run.servers.values().next().unwrap();
        assert!(server.config.is_empty());
        assert_eq!(server.omitted[0].missing, ["scope.k"]);
    }
}

/// O58: an empty text is a value, and null counts as missing; a required value must not be empty.
#[test]
fn o58_empty_is_present_and_null_is_missing() {
    let schema = json!({ "k": { "required": true, "sensitive": true } });
    let world = World::one(schema, json!({}), json!({ "k": "${scope.k}" }));
    for missing in [json!({ "k": "" }), json!({ "k": "   " }), json!({ "k": null })] {
        let codes = world.clone().scope(missing).codes();
        assert_eq!(codes, [FaultCode::MissingRequiredMcpConfig]);
    }
    for blank in ["", "  "] {
        let schema = json!({ "k": { "required": true } });
        let written = World::one(schema, json!({}), json!({ "k": blank }));
        assert_eq!(written.codes(), [FaultCode::MissingRequiredMcpConfig], "{blank:?}");
    }
    let world = World::one(json!({ "k": {} }), json!({}), json!({ "k": "${scope.k}" }));
    let run = world.scope(json!({ "k": "" })).run();
    assert_eq!(run.servers.values().next().unwrap().config.len(), 1);
}

/// O62, O63, S30: a filled-in value is never read again.
#[test]
fn o62_values_are_not_scanned_again() {
    let world = one(json!("${params.p}${scope.s}"))
        .env("CANARY", "canary")
        .secret("CANARY", "canary")
        .params(json!({ "p": "${env.CANARY}$" }))
        .scope(json!({ "s": "{env.CANARY}${CANARY}${scope.s}" }));
    assert_eq!(value(&world), "${env.CANARY}${env.CANARY}${CANARY}${scope.s}");
}

/// O63: `$${` is the way to write `${`.
#[test]
fn o63_a_doubled_dollar_escapes_a_placeholder() {
    for (written, expected) in
        [("$${scope.x}", "${scope.x}"), ("a$${b", "a${b"), ("$$ $", "$$ $"), ("$$${x}", "$${x}")]
    {
        assert_eq!(value(&one(json!(written))), expected, "{written}");
    }
}

/// O56, D7, O70, A-1: unknown sources, keys and the other dialect are refused when they are saved,
/// each with its remedy.
#[test]
fn o56_unknown_placeholders_are_refused() {
    for (written, remedy) in [
        ("${nothing.x}", "`params.`"),
        ("${runtime.time}", "`runtime.run_id`"),
        ("${runner.secret}", "`runner.orchestrator_mcp_url`"),
        ("${env:HOME}", "`${env.HOME}`"),
        ("${workspaceRoot}", "the path of the folder on"),
        ("${input:key}", "write the value itself"),
        ("${env.A-B}", "after `env.`"),
        ("${scope.}", "a key after the dot"),
        ("${scope.${env.X}}", "a key after the dot"),
        ("${scope.x", "close"),
        ("${}", "`params.`"),
    ] {
        let agent = json!({ "name": "x", "mcpServers": {
            "a": { "ref": "s", "config": { "k": [{ "deep": written }] } } } });
        let faults = narthex_catalog::Agent::parse(&text(&agent), None).unwrap_err();
        let fault = faults.iter().next().unwrap();
        assert_eq!(fault.code, FaultCode::PlaceholderInvalid, "{written}");
        assert_eq!(fault.path, "mcpServers.a.config.k[0].deep");
        assert!(fault.remedy.contains(remedy), "{written}: {}", fault.remedy);
    }
}

/// O67, D7: texts that a model sees are never filled in, and must not look like templates.
#[test]
fn o67_no_placeholders_in_texts_of_models() {
    for key in ["env", "scope"] {
        let agent = json!({ "name": "x", "system_prompt": format!("Use ${{{key}.KEY}}.") });
        let codes = refused(narthex_catalog::Agent::parse(&text(&agent), None));
        assert!(codes.contains(&FaultCode::PlaceholderNotAllowed));
        let capability = json!({ "name": "x", "text": format!("Use ${{{key}.KEY}}.") });
        let codes = refused(narthex_catalog::Capability::parse(&text(&capability), None));
        assert!(codes.contains(&FaultCode::PlaceholderNotAllowed));
    }
    let request = json!({ "agent_name": "x", "prompt": "Explain ${env.HOME}" });
    let request = narthex_catalog::RunRequest::parse(&text(&request)).unwrap().value;
    assert_eq!(request.prompt.as_deref(), Some("Explain ${env.HOME}"));
}

/// O68, A-1: only variables on the allowlist, also where the key is optional.
#[test]
fn o68_variables_need_an_allowlist() {
    let world = one(json!("${env.HOME}"));
    assert_eq!(world.plan_codes(), [FaultCode::EnvNotAllowed]);
    assert_eq!(world.codes(), [FaultCode::EnvNotAllowed]);
    let allowed = world.unset("HOME");
    assert!(allowed.plan_codes().is_empty());
    assert!(allowed.run().servers.values().all(|server| server.config.is_empty()));
}

/// O69: parameters, which the model steers, set no sensitive or internal key.
#[test]
fn o69_parameters_set_no_sensitive_keys() {
    for schema in
        [json!({ "sensitive": true }), json!({ "internal": true }), json!({ "kind": "secret" })]
    {
        let world = World::one(json!({ "k": schema }), json!({}), json!({ "k": "${params.p}" }));
        assert!(world.plan_codes().contains(&FaultCode::PlaceholderNotAllowed), "{schema}");
    }
    assert!(one(json!("${params.p}")).plan_codes().is_empty());
}

/// O60, D9: every fault of every server at once.
#[test]
fn o60_faults_of_all_servers_are_reported_together() {
    let schema = json!({ "k": { "required": true }, "l": { "required": true } });
    let config = json!({ "k": "${scope.one} ${scope.two}", "l": "${scope.three}" });
    let world = World::one(schema, json!({}), json!({})).using(json!({
        "a": { "ref": "s", "config": config }, "b": { "ref": "s", "config": config } }));
    let missing: Vec<String> = world.faults().iter().map(|fault| fault.message.clone()).collect();
    assert_eq!(missing.len(), 6);
    let body = json!(world.resolve().unwrap_err().rejection());
    assert_eq!(body["missing_fields"], json!(["k", "l"]));
    assert_eq!(body["errors"].as_array().unwrap().len(), 6);
}

/// S31: repeating a large value cannot make a run's configuration large.
#[test]
fn s31_values_are_limited() {
    let half = "x".repeat(40 << 10);
    let world = one(json!("${scope.v}${scope.v}")).scope(json!({ "v": half }));
    assert_eq!(world.codes(), [FaultCode::LimitExceeded]);
    let many: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("k{n}"), json!(["${scope.v}"]))).collect();
    let world = World::one(
        many.keys().map(|key| (key.clone(), json!({ "type": "json" }))).collect(),
        json!({}),
        many.into(),
    );
    let faults = world.scope(json!({ "v": "x".repeat(60 << 10) })).faults();
    assert!(faults.iter().any(|fault| fault.code == FaultCode::LimitExceeded));
}
