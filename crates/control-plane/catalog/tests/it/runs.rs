//! Runs: parameters, scope, agents that are off, isolation of runs, the same result again.

use narthex_catalog::{FaultCode, ServerEntry};
use serde_json::{Value, json};

use crate::world::{World, agent, reasons, text};

fn with_params(schema: Value, params: Value) -> World {
    let mut world = World::new(&[]).params(params);
    world.agent = agent(&json!({ "params_schema": schema }));
    world
}

/// O85: parameters are held against the agent's schema, in both forms, with all faults.
#[test]
fn o85_parameters_fit_the_agents_schema() {
    let short = json!({ "topic": { "type": "string", "required": true },
                        "depth": { "type": "integer", "minimum": 1, "required": false } });
    let full = json!({ "type": "object", "required": ["topic"], "additionalProperties": false,
        "properties": { "topic": { "type": "string" },
                        "depth": { "type": "integer", "minimum": 1 } } });
    for schema in [short, full] {
        assert!(with_params(schema.clone(), json!({ "topic": "x", "depth": 2 })).resolve().is_ok());
        let bad = json!({ "depth": 0, "canary-value": 1 });
        let faults = with_params(schema.clone(), bad).faults();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults.iter().all(|fault| fault.code == FaultCode::ParamsInvalid));
        assert!(faults.iter().any(|fault| fault.path == "run.params.depth"));
        let faults = with_params(schema, json!({ "topic": { "canary": 1 } })).faults();
        assert!(!faults[0].to_string().contains("canary"), "{}", faults[0]);
    }
    assert!(with_params(json!({}), json!({})).resolve().is_ok());
    let mut world = World::new(&[]).params(json!({ "anything": 1 }));
    world.agent = agent(&json!({}));
    assert!(world.resolve().is_ok());
}

/// O85: a parameter may be called like a keyword of schemas.
#[test]
fn o85_the_short_form_may_name_anything() {
    for name in ["type", "properties", "required"] {
        let schema = json!({ name: { "type": "string", "required": true } });
        assert!(with_params(schema.clone(), json!({ name: "x" })).resolve().is_ok(), "{name}");
        let codes = with_params(schema, json!({ name: 1 })).codes();
        assert_eq!(codes, [FaultCode::ParamsInvalid], "{name}");
    }
}

/// S9, S31: a schema fetches nothing, and no pattern takes exponential time.
#[test]
fn s9_a_params_schema_with_remote_references_is_refused() {
    for schema in [
        json!({ "type": "object", "$ref": "http://127.0.0.1:1/schema.json" }),
        json!({ "type": "object", "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(?=a)b" } } }),
        json!({ "type": "objekt" }),
        json!([]),
    ] {
        let value = json!({ "name": "x", "params_schema": schema.clone() });
        let code = if schema.is_array() { "TypeWrong" } else { "ValueInvalid" };
        let refused = reasons(narthex_catalog::Agent::parse(&text(&value), None));
        assert_eq!(refused, [format!("params_schema: {code}")], "{value}");
    }
    let slow = json!({ "a": { "type": "string", "pattern": "^(a+)+$" } });
    let world = with_params(slow, json!({ "a": format!("{}b", "a".repeat(5000)) }));
    assert_eq!(world.codes(), [FaultCode::ParamsInvalid]);
}

/// O51: an agent that is disabled has a plan and no runs.
#[test]
fn o51_inactive_agents_have_no_runs() {
    let mut world = World::new(&[]);
    world.agent = agent(&json!({ "active": false }));
    assert!(world.plan_codes().is_empty());
    assert_eq!(world.codes(), [FaultCode::AgentInactive]);
}

/// O94: a server's schema for the scope is checked.
#[test]
fn o94_a_servers_scope_schema_is_checked() {
    let entry = json!({ "id": "s", "url": "https://s.test", "scope_schema": {
        "tenant": { "type": "string", "required": true }, "level": { "type": "integer" } } });
    let world = World::new(&[entry]).using(json!({ "a": { "ref": "s" } }));
    assert_eq!(world.codes(), [FaultCode::MissingRequiredMcpConfig]);
    assert!(world.clone().scope(json!({ "tenant": "t", "other": [] })).resolve().is_ok());
    let faults = world.scope(json!({ "tenant": "t", "level": "canary" })).faults();
    assert_eq!(
        (faults[0].code, faults[0].path.as_str()),
        (FaultCode::TypeWrong, "run.scope.level")
    );
    assert!(!faults[0].to_string().contains("canary"));
}

/// O94: a key of the scope that no server takes causes a warning with the key that was meant; if a
/// server's schema is closed, the key refuses the run.
#[test]
fn o94_a_misspelt_scope_key_is_reported() {
    let url = "https://${scope.tenant}.docs.test/mcp";
    let closed = |additional: bool| {
        json!({ "id": "s", "url": url, "config_schema": { "partition": {}, "deep": {} },
            "scope_schema": { "region": { "type": "string" },
                              "additionalProperties": additional } })
    };
    let config = json!({ "partition": "${scope.team_partition}", "deep": "${scope.a.b}" });
    let world = |additional| {
        let servers = json!({ "kg": { "ref": "s", "config": config } });
        World::new(&[closed(additional)]).using(servers)
    };
    let known = json!({ "tenant": "t", "team_partition": "x", "region": "eu", "a": { "b": "c" } });
    for additional in [true, false] {
        let run = world(additional).scope(known.clone()).given().unwrap();
        assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    }
    let wrong = json!({ "tenant": "t", "team_partitoin": "canary", "workflow": 1 });
    let run = world(true).scope(wrong.clone()).given().unwrap();
    let told: Vec<_> =
        run.warnings.iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("run.scope.team_partitoin:"), "{told:?}");
    assert!(told[0].ends_with("did you mean `team_partition`?"), "{told:?}");
    assert!(told[1].contains("`workflow`") && !told[1].contains("did you mean"), "{told:?}");
    assert!(!format!("{told:?}").contains("canary"));
    let faults = world(false).scope(wrong.clone()).given().unwrap_err();
    let faults: Vec<_> = faults.iter().map(|fault| (fault.code, fault.path.as_str())).collect();
    let unknown = |path| (FaultCode::UnknownField, path);
    assert_eq!(faults, [unknown("run.scope.team_partitoin"), unknown("run.scope.workflow")]);
    // A key that children of the agent take is theirs, and no mistake.
    let of_children = json!({ "tenant": "t", "team_partition": "x", "workflow": 1 });
    let run = world(false).scope(of_children).of_children("workflow").given().unwrap();
    assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    // An empty value narrows as little as a missing one.
    for empty in ["", "  "] {
        let given = json!({ "tenant": "t", "team_partition": empty, "workflow": empty });
        let run = world(false).scope(given).of_children("workflow").given().unwrap();
        let told: Vec<_> = run.warnings.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(told, ["run.scope.team_partition", "run.scope.workflow"]);
        assert!(run.warnings[0].message.contains("it limits nothing"), "{:?}", run.warnings);
    }
    // An inherited key is not a given one.
    assert!(world(false).scope(wrong).resolve().is_ok());
    // A JSON Schema with the same meaning; its normal form is the short one.
    let schema = json!({ "type": "object", "properties": { "region": { "type": "string" } },
        "required": ["region"], "additionalProperties": false });
    let entry = json!({ "id": "s", "url": "https://s.test", "scope_schema": schema });
    let entry = ServerEntry::parse(&text(&entry), None).unwrap().value;
    let normal = json!({ "region": { "type": "string", "required": true },
                         "additionalProperties": false });
    assert_eq!(json!(entry.scope_schema), normal);
    let again = json!({ "id": "s", "url": "https://s.test", "scope_schema": normal });
    let again = ServerEntry::parse(&text(&again), None).unwrap().value;
    assert_eq!(again.scope_schema, entry.scope_schema);
}

/// O26, O27: two runs of one server with different scopes share no value.
#[test]
fn o26_runs_do_not_share_values() {
    let base =
        World::one(json!({ "partition": {} }), json!({}), json!({ "partition": "${scope.team}" }));
    let alpha = base.clone().scope(json!({ "team": "alpha" }));
    let beta = base.clone().scope(json!({ "team": "beta" }));
    assert_eq!(alpha.carried("a")["x-partition"], "alpha");
    assert_eq!(beta.carried("a")["x-partition"], "beta");
    assert!(base.carried("a").is_empty());
}

/// O90: a default of the catalog isolates by session with no edit of any agent.
#[test]
fn o90_a_default_isolates_by_session() {
    let world = World::one(
        json!({ "partition": {} }),
        json!({ "partition": "${runtime.session_id}" }),
        json!({}),
    );
    assert_eq!(world.carried("a")["x-partition"], "ses_0a1b2c3d4e5f");
}

/// X-M39, X-M42, D9, X-E113: secrets that are not set are reported with agent, server, field and
/// name.
#[test]
fn x_m42_missing_secrets_are_named() {
    let schema = json!({ "key": { "kind": "secret" } });
    let world = World::one(schema, json!({}), json!({ "key": "${API_KEY}" }));
    assert_eq!(world.plan_codes(), [FaultCode::SecretNotSet]);
    let fault = &world.faults()[0];
    for part in ["agent `reader`", "`API_KEY`", "`key`", "`a`"] {
        assert!(fault.message.contains(part), "{fault}");
    }
    assert_eq!(fault.path, "agents.reader.mcpServers.a.config.key");
    let set = world.secret("API_KEY", "v");
    assert_eq!(set.run().secrets(), set.plan(|plan| plan.secrets()));
    assert_eq!(set.run().secrets()[0].name.as_str(), "API_KEY");
}

/// D9, O60: faults of parameters, levels and values are reported together.
#[test]
fn d9_a_refused_run_reports_all_faults_together() {
    let mut world = World::one(
        json!({ "k": { "required": true }, "n": { "type": "number" } }),
        json!({}),
        json!({ "k": "${scope.k}", "n": "${scope.n}" }),
    )
    .including("cap", json!({ "b": { "ref": "nothing" } }))
    .scope(json!({ "n": "many" }));
    world.agent = agent(&json!({
        "capabilities": ["cap", "gone"], "active": false,
        "params_schema": { "topic": { "required": true } },
        "mcpServers": { "a": { "ref": "s", "config": { "k": "${scope.k}", "n": "${scope.n}" } } },
    }));
    assert_eq!(
        world.codes(),
        [
            FaultCode::CapabilityMissing,
            FaultCode::AgentInactive,
            FaultCode::ParamsInvalid,
            FaultCode::MissingRequiredMcpConfig,
            FaultCode::TypeWrong,
            FaultCode::McpRefResolutionFailed,
        ]
    );
}

/// S31: no schema causes endless or exponential work, and no text endless faults.
#[test]
fn s31_schemas_and_faults_are_bounded() {
    let mut doubling = json!({ "type": "object", "$ref": "#/$defs/n0", "$defs": {} });
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/n{}", n + 1) });
        doubling["$defs"][format!("n{n}")] = json!({ "allOf": [next, next] });
    }
    doubling["$defs"]["n40"] = json!({});
    for schema in [
        doubling,
        json!({ "type": "object", "$ref": "#" }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/a" } } }),
        json!({ "type": "object", "$ref": "#/$defs/a", "$defs": {
                "a": { "not": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "type": "object", "$dynamicRef": "#x", "$dynamicAnchor": "x" }),
        json!({ "type": "object", "$ref": "#x", "$anchor": "x" }),
    ] {
        let value = json!({ "name": "x", "params_schema": schema });
        let refused = reasons(narthex_catalog::Agent::parse(&text(&value), None));
        assert_eq!(refused, ["params_schema: ValueInvalid"], "{value}");
    }
    let shared = json!({ "type": "object", "$defs": { "id": { "type": "string" } },
        "properties": { "a": { "$ref": "#/$defs/id" }, "b": { "$ref": "#/$defs/id" } } });
    assert!(with_params(shared.clone(), json!({ "a": "x", "b": "y" })).resolve().is_ok());
    assert_eq!(with_params(shared, json!({ "a": 1, "b": 2 })).codes().len(), 2);

    let items =
        json!({ "type": "object", "properties": { "a": { "items": { "type": "string" } } } });
    assert_eq!(with_params(items, json!({ "a": vec![1; 5000] })).codes().len(), 100);
    let unknown: Value = (0..5000).map(|n| (format!("key{n}"), json!(1))).collect();
    let faults = narthex_catalog::Agent::parse(&text(&unknown), None).unwrap_err();
    assert_eq!(faults.iter().count(), 1000);
}

/// O94: a JSON Schema without its type is named as one, and no key of it is refused.
#[test]
fn o94_a_scope_schema_without_a_type_is_one_fault() {
    let schema = json!({ "properties": { "tenant": { "type": "string" } },
                         "required": ["tenant"], "additionalProperties": false });
    let entry = json!({ "id": "s", "url": "https://s.test", "scope_schema": schema });
    let faults = ServerEntry::parse(&text(&entry), None).unwrap_err();
    let told: Vec<_> = faults.iter().map(|one| (one.path.as_str(), one.remedy.as_str())).collect();
    assert_eq!(told, [("scope_schema", "add `\"type\": \"object\"`")]);
}

/// O16: the fault of a missing value names the misspelt key under which it was given.
#[test]
fn o16_a_missing_value_names_the_key_that_was_misspelt() {
    let schema = json!({ "k": { "required": true } });
    let of_scope = |required: bool| {
        let entry = json!({ "id": "s", "url": "https://s.test", "config_schema": schema,
            "scope_schema": { "context_id": { "type": "string", "required": required } } });
        let config = json!({ "a": { "ref": "s", "config": { "k": "${scope.context_id}" } } });
        World::new(&[entry]).using(config).scope(json!({ "contextid": "canary" }))
    };
    let world = World::one(schema.clone(), json!({}), json!({ "k": "${params.topic}" }));
    let params = world.params(json!({ "tpic": "canary" }));
    let by_schema = with_params(
        json!({ "type": "object", "properties": { "topic": {} }, "required": ["topic"] }),
        json!({ "tpic": "canary" }),
    );
    for (world, remedy) in [
        (of_scope(false), "the run's `scope` gives `contextid`; did you mean `context_id`?"),
        (of_scope(true), "the run's `scope` gives `contextid`; did you mean `context_id`?"),
        (params, "the run's `params` gives `tpic`; did you mean `topic`?"),
        (by_schema, "the run's `params` gives `tpic`; did you mean `topic`?"),
    ] {
        for fault in world.faults() {
            assert_eq!(fault.remedy, remedy);
            assert!(!fault.to_string().contains("canary"), "{fault}");
        }
    }
}

/// O68: the remedies of two variables that may not be used are one, and a variable that is allowed
/// and not set is not to be allowed again.
#[test]
fn o68_one_remedy_allows_all_variables() {
    let entry = json!({ "id": "s", "url": "https://${env.FOO}.test",
                        "auth": { "mode": "apiKey", "key": "${env.BAR}" } });
    let world = World::new(&[entry]).using(json!({ "a": { "ref": "s" } }));
    let remedies: Vec<_> = world.faults().into_iter().map(|fault| fault.remedy).collect();
    assert_eq!(remedies.len(), 2, "{remedies:?}");
    for remedy in remedies {
        assert_eq!(remedy, "allow BAR,FOO, or store the values as secrets");
    }
    let unset = world.unset("FOO").unset("BAR").faults();
    assert_eq!(unset.len(), 2, "each variable is named: {unset:?}");
    for fault in unset {
        assert!(fault.remedy.starts_with("set the allowed variable `"), "{fault}");
        assert!(fault.remedy.contains("restart the daemon"), "{fault}");
    }
}
