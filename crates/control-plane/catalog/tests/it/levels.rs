//! Rules between levels: order, removal, disagreement, required keys, optional servers.

use narthex_catalog::{FaultCode, Isolation, ServerEntry, users_of};
use narthex_model::ServerId;
use serde_json::{Value, json};

use crate::world::{World, refused, server, text};

fn plain(keys: &[&str]) -> Value {
    keys.iter().map(|key| ((*key).to_owned(), json!({ "type": "json" }))).collect()
}

/// D6, O7, O43, X-E117: schema, `default_config`, capability, agent; the later replaces whole
/// values.
#[test]
fn d6_the_later_level_wins_key_by_key() {
    let schema = json!({
        "a": { "default": "schema" }, "b": { "default": "schema" }, "c": { "default": "schema" },
        "d": { "default": "schema" }, "deep": { "type": "json", "default": { "x": 1, "y": 1 } },
    });
    let defaults = json!({ "b": "server", "c": "server", "d": "server" });
    let world = World::one(schema, defaults, json!({ "d": "agent", "deep": { "y": 2 } }))
        .including("cap", json!({ "a": { "ref": "s", "config": { "c": "cap", "d": "cap" } } }));
    assert_eq!(
        world.payload()["resolved_mcp_servers"]["a"]["config"],
        json!({ "a": "schema", "b": "server", "c": "cap", "d": "agent", "deep": { "y": 2 } })
    );
}

/// O8: null removes a key at any level, and never arrives.
#[test]
fn o8_null_removes_a_key_at_any_level() {
    let world = World::one(
        plain(&["a", "b", "c"]),
        json!({ "a": 1, "b": 1, "c": 1 }),
        json!({ "a": null, "c": 2 }),
    )
    .including("cap", json!({ "a": { "ref": "s", "config": { "b": null, "c": null } } }));
    let config = &world.payload()["resolved_mcp_servers"]["a"]["config"];
    assert_eq!(*config, json!({ "c": 2 }));
    assert!(!world.carried("a").contains_key("x-a"));
}

/// D6: a required key that is removed, or that no level sets, refuses.
#[test]
fn d6_required_keys_cannot_be_removed() {
    let schema = json!({ "a": { "required": true }, "b": { "required": true } });
    let world = World::one(schema, json!({ "a": "x" }), json!({ "a": null }));
    assert_eq!(world.plan_codes(), [FaultCode::MissingRequiredMcpConfig; 2]);
    let faults = world.faults();
    assert_eq!(faults[0].path, "agents.reader.mcpServers.a.config.a");
    assert!(faults[0].message.contains("agent `reader` removes it"), "{}", faults[0]);
    assert_eq!(faults[1].path, "servers.s.config_schema.b");
}

/// D6, O101: two capabilities with different values is an error naming both, unless the agent
/// settles it.
#[test]
fn d6_different_values_of_two_capabilities_are_an_error() {
    let base = World::one(plain(&["k"]), json!({}), json!({}));
    let one = |value: Value| json!({ "a": { "ref": "s", "config": { "k": value } } });
    let disagreeing = base.clone().including("one", one(json!(1))).including("two", one(json!(2)));
    assert_eq!(disagreeing.plan_codes(), [FaultCode::ValueConflict]);
    let fault = &disagreeing.faults()[0];
    assert!(fault.message.contains("capability `one` and capability `two`"), "{fault}");

    let preview = disagreeing.plan(|plan| plan.preview());
    let conflicts = &preview["mcpServers"]["a"]["config"]["k"]["conflicts"];
    assert_eq!(conflicts[1]["origin"], json!({ "level": "capability", "name": "two" }));

    let null = base.clone().including("one", one(json!(1))).including("two", one(Value::Null));
    assert_eq!(null.plan_codes(), [FaultCode::ValueConflict]);
    let same = base.including("one", one(json!(1))).including("two", one(json!(1)));
    assert_eq!(same.carried("a")["x-k"], "1");

    for (settled, expected) in [(json!(3), json!({ "k": 3 })), (Value::Null, json!({}))] {
        let settled = World { agent: disagreeing.agent.clone(), ..disagreeing.clone() }
            .using(json!({ "a": { "ref": "s", "config": { "k": settled } } }));
        assert_eq!(settled.payload()["resolved_mcp_servers"]["a"]["config"], expected);
    }
}

/// O46, X-E117: one alias is one server.
#[test]
fn o46_one_alias_with_two_servers_names_both() {
    let servers = ["s", "t"].map(|id| json!({ "id": id, "url": "https://s.test/mcp" }));
    let world = World::new(&servers)
        .using(json!({ "a": { "ref": "t" } }))
        .including("cap", json!({ "a": { "ref": "s" } }));
    assert_eq!(world.plan_codes(), [FaultCode::AliasConflict]);
    let told = world.faults()[0].to_string();
    assert!(told.contains("`s` in capability `cap` and `t` in agent `reader`"), "{told}");
}

/// O6, X-M8: several aliases may use one server, each with its own configuration.
#[test]
fn o6_one_server_under_two_aliases() {
    let world = World::one(plain(&["k"]), json!({}), json!({ "k": 1 })).using(json!({
        "a": { "ref": "s", "config": { "k": 1 } }, "b": { "ref": "s", "config": { "k": 2 } } }));
    assert_eq!(
        (world.carried("a")["x-k"].as_str(), world.carried("b")["x-k"].as_str()),
        ("1", "2")
    );
}

/// O45: a capability that does not exist is named with the agent.
#[test]
fn o45_a_missing_capability_names_both() {
    let mut world = World::one(plain(&[]), json!({}), json!({})).including("cap", json!({}));
    world.catalog.capabilities.clear();
    let fault = &world.faults()[0];
    assert_eq!(fault.code, FaultCode::CapabilityMissing);
    assert_eq!(fault.path, "agents.reader.capabilities[0]");
    assert!(fault.message.contains("`reader`") && fault.message.contains("`cap`"), "{fault}");
}

/// O10, X-E117: a changed URL changes every user of it, with no other edit.
#[test]
fn o10_a_changed_url_reaches_every_user() {
    let mut world = World::one(plain(&[]), json!({}), json!({}))
        .including("cap", json!({ "b": { "ref": "s" } }));
    let changed = server(&json!({ "id": "s", "url": "https://moved.test/mcp" }));
    world.catalog.servers.insert(changed.id.clone(), changed);
    let payload = world.payload();
    for alias in ["a", "b"] {
        assert_eq!(payload["resolved_mcp_servers"][alias]["url"], "https://moved.test/mcp");
    }
}

/// O41: the users of a server are known before it is deleted.
#[test]
fn o41_users_of_a_server_are_found() {
    let world = World::one(plain(&[]), json!({}), json!({}))
        .including("cap", json!({ "b": { "ref": "s" } }));
    let users = |id: &str| {
        let id = ServerId::new(id).unwrap();
        users_of(&id, world.catalog.capabilities.values(), [&world.agent])
    };
    assert_eq!(users("s"), ["capabilities.cap.mcpServers.b", "agents.reader.mcpServers.a"]);
    assert!(users("t").is_empty());
}

/// D17: a run works without an optional server, and reports why.
#[test]
fn d17_an_optional_server_is_left_out() {
    let schema = json!({ "k": { "required": true } });
    let config = json!({ "k": "${scope.k}" });
    let world = World::one(schema, json!({}), config.clone());
    assert_eq!(world.codes(), [FaultCode::MissingRequiredMcpConfig]);
    let optional =
        world.clone().using(json!({ "a": { "ref": "s", "config": config, "optional": true },
                       "b": { "ref": "s", "config": { "k": "x" } } }));
    let run = optional.run();
    assert_eq!(run.servers.keys().map(ToString::to_string).collect::<Vec<_>>(), ["b"]);
    assert_eq!(run.skipped[0].alias.as_str(), "a");
    assert_eq!(run.skipped[0].faults[0].code, FaultCode::MissingRequiredMcpConfig);
    assert!(optional.clone().scope(json!({ "k": "x" })).run().skipped.is_empty());

    // A capability sets it for itself; the agent overrides it.
    let attached = json!({ "c": { "ref": "nothing", "optional": true } });
    let by_capability = optional.including("cap", attached);
    assert_eq!(by_capability.run().skipped.len(), 2);
    let overruled = by_capability.using(json!({ "c": { "ref": "nothing", "optional": false } }));
    assert_eq!(overruled.codes(), [FaultCode::McpRefResolutionFailed]);
}

/// O32, O101, O29, O50: the preview shows the origin of each value and the values that it
/// overrides.
#[test]
fn o101_the_preview_shows_origins_and_hides_secrets() {
    let schema = json!({ "k": { "required": true }, "key": { "sensitive": true } });
    let world = World::one(
        schema,
        json!({ "k": "default", "key": "canary-literal" }),
        json!({ "k": "${scope.k}", "key": "${env.CANARY}" }),
    )
    .env("CANARY", "canary-env");
    let preview = world.plan(|plan| plan.preview());
    let config = &preview["mcpServers"]["a"]["config"];
    assert_eq!(config["k"]["value"], "${scope.k}");
    assert_eq!(config["k"]["origin"], json!({ "level": "agent", "name": "reader" }));
    assert_eq!(
        config["k"]["overrides"],
        json!([{ "origin": { "level": "default_config", "name": "s" }, "value": "default" }])
    );
    assert_eq!((&config["k"]["header"], &config["k"]["required"]), (&json!("x-k"), &json!(true)));
    assert_eq!(config["key"]["value"], "${env.CANARY}");
    assert!(!preview.to_string().contains("canary"), "{preview}");

    let world = world.scope(json!({ "k": "seen" })).secret("KEY", "canary-secret");
    let shown = world.run().shown();
    assert_eq!(shown["mcpServers"]["a"]["config"]["k"]["value"], "seen");
    assert!(!shown.to_string().contains("canary"), "{shown}");
    let world =
        world.using(json!({ "a": { "ref": "s", "config": { "key": "${KEY}", "k": "x" } } }));
    let (preview, run) = (world.plan(|plan| plan.preview()), world.run());
    assert_eq!(preview["mcpServers"]["a"]["config"]["key"]["value"], json!({ "$secret": "KEY" }));
    for told in [preview.to_string(), run.shown().to_string(), format!("{run:?}")] {
        assert!(!told.contains("canary"), "{told}");
    }
}

/// O29: a literal in a sensitive key works, with a warning that does not show it.
#[test]
fn o29_a_literal_in_a_sensitive_key_causes_a_warning() {
    let schema = json!({ "key": { "sensitive": true } });
    let warned = |value: Value| {
        let world = World::one(schema.clone(), json!({}), json!({ "key": value }));
        world.env("E", "x").secret("KEY", "x").warnings()
    };
    let warnings = warned(json!("canary"));
    assert_eq!(warnings[0].path, "agents.reader.mcpServers.a.config.key");
    assert!(!warnings[0].message.contains("canary"));
    for fine in [json!("${KEY}"), json!("${env.E}"), Value::Null] {
        assert_eq!(warned(fine), []);
    }
}

/// D5, X-M43: a level narrows which tools are shown, and none widens the rule of another.
#[test]
fn d5_each_level_narrows_the_tools() {
    let entry = json!({ "id": "s", "url": "https://s.test/mcp", "tools": { "deny": ["get_key"] } });
    let world = World::new(&[entry])
        .including("c", json!({ "a": { "ref": "s", "tools": ["get_*"] } }))
        .using(json!({ "a": { "ref": "s", "tools": { "allow": ["*"], "deny": ["get_old"] } } }));
    let shown = world.definition("a").unwrap().exposed;
    let names = ["get_user", "get_key", "get_old", "set_user"];
    assert_eq!(names.map(|name| shown.tools.lets(name)), [true, false, false, false]);
    let preview = world.plan(|plan| plan.preview());
    let written = json!([{ "allow": ["get_*"] }, { "allow": ["*"], "deny": ["get_old"] }]);
    assert_eq!(preview["mcpServers"]["a"]["tools"], written);
    let open = World::new(&[json!({ "id": "s", "url": "https://s.test/mcp" })])
        .using(json!({ "a": { "ref": "s" } }));
    assert!(open.definition("a").unwrap().exposed.is_everything());
}

/// D12, O91, X-M46: the sharing of a server by runs, by its shape and by its own setting.
#[test]
fn d12_programs_belong_to_a_run_unless_they_are_shared() {
    let isolation = |further: &[(&str, &str)]| {
        let mut entry = json!({ "id": "s" });
        for (key, value) in further {
            entry[*key] = json!(value);
        }
        let world = World::new(&[entry]).using(json!({ "a": { "ref": "s" } }));
        let run = world.run();
        run.servers.values().next().unwrap().isolation()
    };
    let (url, program) = (("url", "https://s.test"), ("command", "x"));
    assert_eq!(isolation(&[url]), Isolation::Shared);
    assert_eq!(isolation(&[program]), Isolation::Run);
    assert_eq!(isolation(&[("image", "ghcr.io/o/s:1")]), Isolation::Run);
    assert_eq!(isolation(&[url, ("isolation", "run")]), Isolation::Run);
    assert_eq!(isolation(&[program, ("isolation", "shared")]), Isolation::Shared);
    let entry = text(&json!({ "id": "s", "command": "x", "isolation": "none" }));
    assert_eq!(refused(ServerEntry::parse(&entry, None)), [FaultCode::ValueInvalid].into());
}

/// X-M19, X-E21: an attachment sends a secret only in keys that the server declares as secret: not
/// in a new header, nor in an undeclared key.
#[test]
fn x_m19_a_secret_goes_only_where_the_server_takes_one() {
    let schema = json!({
        "api_key": { "kind": "secret" }, "token": { "sensitive": true }, "plain": {},
        "value": { "kind": "value" }, "held": {},
    });
    let defaults = json!({ "X-Own": { "$secret": "KEY" }, "held": { "$secret": "KEY" } });
    for (key, is_taken) in [
        ("api_key", true),
        ("token", true),
        ("held", true),
        ("X-Own", true),
        ("plain", false),
        ("value", false),
        ("X-Foo", false),
        ("X-API-Token", false),
    ] {
        let config: Value = [(key.to_owned(), json!({ "$secret": "KEY" }))].into_iter().collect();
        let world = World::one(schema.clone(), defaults.clone(), config.clone());
        let is_refused = |world: &World| world.plan_codes().contains(&FaultCode::SecretMisplaced);
        assert_eq!(is_refused(&world), !is_taken, "{key}");
        let attached = json!({ "a": { "ref": "s", "config": config } });
        let by_capability =
            World::one(schema.clone(), defaults.clone(), json!({})).including("cap", attached);
        assert_eq!(is_refused(&by_capability), !is_taken, "{key} of a capability");
    }
}

/// D8: a header that differs from a declared key by its spelling alone is that key, misspelt.
#[test]
fn d8_a_misspelt_declared_key_is_not_sent_as_a_header() {
    let schema = json!({ "read_only": { "type": "boolean" } });
    for key in ["read-only", "Read-Only", "READ-only"] {
        let config: Value = [(key.to_owned(), json!("x"))].into_iter().collect();
        let world = World::one(schema.clone(), json!({}), config);
        assert_eq!(world.plan_codes(), [FaultCode::KeyUndeclared], "{key}");
        assert!(world.faults()[0].remedy.contains("read_only"));
    }
    let tags = World::one(schema, json!({}), json!({ "X-Agent-Tags": "a" }));
    assert_eq!(tags.plan_codes(), []);
}
