//! Servers of the catalog as people write them: barely valid ones, pasted entries, manifests.

use narthex_catalog::{Agent, FaultCode, Faults, ServerEntry};
use serde_json::{Value, json};

use crate::world::{World, refused, server, text};

/// An entry with these members.
fn entry(members: &Value) -> Value {
    let mut entry = json!({ "id": "x" });
    entry.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    entry
}

/// The places of the faults, in order, with their codes.
#[track_caller]
fn faults(value: &Value) -> Vec<(String, FaultCode)> {
    let faults: Faults = ServerEntry::parse(&text(value), None).expect_err("it is refused");
    let mut found: Vec<_> =
        faults.iter().map(|fault| (fault.path.to_string(), fault.code)).collect();
    found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    found
}

/// X-E3, X-E4, X-E5, X-M10, X-M11: the longest that is taken, and one more, which is not.
#[test]
fn x_e3_entries_beyond_their_limits_are_refused() {
    let of = |count: usize| "a".repeat(count);
    for (fits, too_long, place) in [
        (json!({ "image": of(512) }), json!({ "image": of(513) }), "image"),
        (json!({ "command": of(64) }), json!({ "command": of(65) }), "command"),
        (
            json!({ "command": "x", "args": vec![of(256); 32] }),
            json!({ "command": "x", "args": vec![of(1); 33] }),
            "args",
        ),
        (
            json!({ "command": "x", "args": [of(256)] }),
            json!({ "command": "x", "args": [of(257)] }),
            "args[0]",
        ),
    ] {
        assert!(ServerEntry::parse(&text(&entry(&fits)), None).is_ok(), "{place}");
        let found = faults(&entry(&too_long));
        assert_eq!(found, [(place.to_owned(), FaultCode::ValueInvalid)], "{place}");
    }
    for fits in ["npx", "./bin/server-1.2", "/usr/bin/python3", "A_b"] {
        assert_eq!(server(&entry(&json!({ "command": fits }))).id.as_str(), "x");
    }
    for wrong in ["a b", "a;b", "a|b", "$(a)", "a&b", "a>b", "`a`", "a\nb", "ä"] {
        let found = faults(&entry(&json!({ "command": wrong })));
        assert_eq!(found, [("command".to_owned(), FaultCode::ValueInvalid)], "{wrong}");
    }
    let not_texts = json!({ "command": "x", "args": [{}, "ok", ["a"]] });
    let found = faults(&entry(&not_texts));
    let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["args[0]", "args[2]"]);
}

/// O4, O44: a schema keeps all members that are written for a key, and absent members have their
/// defaults.
#[test]
fn o4_a_config_schema_keeps_all_members_of_a_key() {
    let said = json!({ "type": "integer", "kind": "value", "label": "Depth", "required": true,
        "description": "how far", "sensitive": true, "internal": true, "example": 3,
        "enum": [1, 2, 3], "default": 2, "header": "X-Depth" });
    let schema = json!({ "depth": said, "plain": {} });
    let read = server(&entry(&json!({ "url": "https://x.test", "config_schema": schema })));
    let shown = json!(read)["config_schema"].clone();
    assert_eq!(shown["depth"], said);
    let plain =
        json!({ "type": "string", "required": false, "sensitive": false, "internal": false });
    assert_eq!(shown["plain"], plain);
    let wrong = json!({ "type": "float", "required": 1, "description": [], "label": {} });
    let wrong = json!({ "url": "https://x.test", "config_schema": { "k": wrong } });
    let places: Vec<_> = faults(&entry(&wrong)).into_iter().map(|(place, _)| place).collect();
    let expected = ["description", "label", "required", "type"];
    assert_eq!(places, expected.map(|key| format!("config_schema.k.{key}")));
}

/// D13: gates, patterns and limits that calls of the built-in server's tools do not pass are
/// refused where they are written.
#[test]
fn d13_the_built_in_server_takes_no_gates_and_patterns() {
    let url = "${runner.orchestrator_mcp_url}";
    for (name, value) in [
        ("tool_scopes", json!({ "start_agent": "agents.start" })),
        ("resource_scopes", json!({ "*": "a.b" })),
        ("prompt_scopes", json!({ "p": "a.b" })),
        ("tools", json!({ "deny": ["start_*"] })),
        ("limits", json!({ "concurrent_calls": 1 })),
    ] {
        let mut said = json!({ "url": url });
        said[name] = value;
        assert_eq!(faults(&entry(&said)), [(name.to_owned(), FaultCode::ValueInvalid)], "{name}");
        said["url"] = json!("https://x.test/mcp");
        server(&entry(&said));
    }
    let said = json!({ "url": url, "manifest": { "tool_scopes": { "spawn_session": "a.b" } } });
    let place = "manifest.tool_scopes".to_owned();
    assert_eq!(faults(&entry(&said)), [(place, FaultCode::ValueInvalid)]);
    let tools = json!({ "crew": { "ref": "x", "tools": { "deny": ["start_agent"] } } });
    let world = World::new(&[entry(&json!({ "url": url }))]).using(tools);
    let found = world.faults();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].path.ends_with("mcpServers.crew.tools"), "{found:?}");
    assert!(found[0].remedy.contains("narthex/spawn_session"), "{found:?}");
}

/// X-E6, X-M13: the kind may be left out, or agrees with the shape.
#[test]
fn x_e6_the_kind_follows_from_the_shape() {
    let kind = |members: Value| json!(server(&entry(&members)))["type"].clone();
    assert_eq!(kind(json!({ "command": "x" })), "stdio");
    assert_eq!(kind(json!({ "command": "x", "kind": "stdio" })), "stdio");
    assert_eq!(kind(json!({ "image": "a/b:1", "kind": "stdio" })), "stdio");
    let remote = json!({ "url": "https://x.test/mcp", "kind": "remote_oauth" });
    assert_eq!(kind(remote.clone()), "http");
    assert_eq!(server(&entry(&remote)).auth.mode(), "authorizationCode");
    assert_eq!(server(&entry(&json!({ "url": "https://x.test/mcp" }))).auth.mode(), "none");
    for (wrong, code) in [
        (json!({ "command": "x", "kind": "remote" }), FaultCode::ValueInvalid),
        (json!({ "command": "x", "kind": "remote_oauth" }), FaultCode::FieldsExclude),
        (json!({ "url": "https://x.test/mcp", "kind": "stdio" }), FaultCode::FieldsExclude),
    ] {
        assert_eq!(faults(&entry(&wrong)), [("kind".to_owned(), code)], "{wrong}");
    }
}

/// X-M12, D7: an entry as desktop clients have it is one of the catalog: a variable that is a
/// reference is a secret, others are values, and a reference inside a text is refused.
#[test]
fn x_m12_an_entry_of_a_desktop_client_is_accepted() {
    let pasted = json!({ "command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"],
        "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}", "LOG_LEVEL": "warn" } });
    let world = World::new(&[entry(&pasted)]).using(json!({ "github": { "ref": "x" } }));
    let secrets = world.plan(|plan| plan.secrets());
    assert_eq!(secrets.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["GITHUB_TOKEN"]);
    let carried = world.secret("GITHUB_TOKEN", "k").carried("github");
    let variables: Vec<_> = carried.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(variables, [("GITHUB_TOKEN", "k"), ("LOG_LEVEL", "warn")]);

    let inside = json!({ "command": "npx", "env": { "URL": "https://${TOKEN}@x.test" } });
    let misplaced = ("env.URL".to_owned(), FaultCode::SecretMisplaced);
    assert_eq!(faults(&entry(&inside)), [misplaced]);
    let many = json!({ "mcpServers": { "github": pasted } });
    assert!(
        refused(ServerEntry::parse(&text(&entry(&many)), None)).contains(&FaultCode::UnknownField)
    );
}

/// X-M35: a value that a server composes of several secrets arrives as several variables; a text
/// around a secret is refused at every level, when it is saved.
#[test]
fn x_m35_a_value_composed_of_secrets_is_refused_when_saved() {
    let schema = json!({ "DB_HOST": {}, "DB_USER": { "kind": "secret" },
                         "DB_PASSWORD": { "kind": "secret" } });
    let postgres = entry(&json!({ "command": "x", "config_schema": schema }));
    let world = World::new(std::slice::from_ref(&postgres))
        .using(json!({ "db": { "ref": "x", "config": { "DB_HOST": "db.test",
            "DB_USER": "${DB_USER}", "DB_PASSWORD": "${DB_PASSWORD}" } } }))
        .secret("DB_USER", "ada")
        .secret("DB_PASSWORD", "p:@/");
    let carried = world.carried("db");
    let variables: Vec<_> = carried.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(variables, [("DB_HOST", "db.test"), ("DB_PASSWORD", "p:@/"), ("DB_USER", "ada")]);

    let composed = "postgres://${DB_USER}:${DB_PASSWORD}@db.test/";
    let mut in_entry = postgres;
    in_entry["default_config"] = json!({ "DB_HOST": composed });
    assert_eq!(
        faults(&in_entry),
        [("default_config.DB_HOST".to_owned(), FaultCode::SecretMisplaced)]
    );
    let in_agent = json!({ "name": "a", "mcpServers": {
        "db": { "ref": "x", "config": { "DB_HOST": composed } } } });
    let found = refused(Agent::parse(&text(&in_agent), None));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [FaultCode::SecretMisplaced]);
}

/// X-E8, X-E9, X-E12, X-M16: a manifest is an object of objects, its names are those of variables,
/// each has a kind, and all faults are reported at once; `env` or `tool_scopes` may be absent.
#[test]
fn x_e8_manifests_are_read_strictly() {
    let with = |manifest: Value| entry(&json!({ "command": "x", "manifest": manifest }));
    for (manifest, place) in [
        (json!([]), "manifest"),
        (json!("env"), "manifest"),
        (json!({ "env": [] }), "manifest.env"),
        (json!({ "tool_scopes": [] }), "manifest.tool_scopes"),
        (json!({ "env": { "A": "value" } }), "manifest.env.A"),
    ] {
        assert_eq!(faults(&with(manifest)), [(place.to_owned(), FaultCode::TypeWrong)], "{place}");
    }
    let wrong = json!({
        "env": { "lower": { "kind": "value" }, "9A": { "kind": "value" }, "NO_KIND": {},
                 "OTHER": { "kind": "password" }, "ODD": { "kind": "value", "requird": true } },
        "tool_scopes": { "t": "nodot", "u": ["a.b", 1] }, "scopes": {},
    });
    let found = faults(&with(wrong));
    let mut places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    // A key that is no name of a variable cannot travel as one, either.
    places.dedup();
    let expected = [
        "manifest.env.9A",
        "manifest.env.NO_KIND.kind",
        "manifest.env.ODD.requird",
        "manifest.env.OTHER.kind",
        "manifest.env.lower",
        "manifest.scopes",
        "manifest.tool_scopes.t",
        "manifest.tool_scopes.u[1]",
    ];
    assert_eq!(places, expected);
    let longest = "A".repeat(64);
    let schema = server(&with(json!({ "env": {
        &longest: { "kind": "secret", "description": "what for" },
        "_B": { "kind": "value", "required": false } } })));
    let schema = schema.config_schema.unwrap();
    assert!(schema[&longest].required && schema[&longest].is_hidden() && !schema["_B"].required);
    assert_eq!(schema[&longest].description.as_deref(), Some("what for"));
    let neither = server(&with(json!({})));
    assert!(neither.config_schema.unwrap().is_empty() && neither.tool_scopes.is_empty());
    let too_long = json!({ "env": { "A".repeat(65): { "kind": "value" } } });
    assert_eq!(faults(&with(too_long)).len(), 1);
}

/// X-E10, X-E11, X-D1, X-M18: a tool of any name can require scopes, one as a text or several as a
/// list, which may be empty.
#[test]
fn x_e10_tools_of_any_name_require_scopes() {
    let scopes = json!({ "create-issue": "a.b", "v1.issues/list": ["a.c", "a.b", "a.c"],
                         "größe": [], "_ok": ["a.b"] });
    for value in [
        json!({ "command": "x", "tool_scopes": scopes }),
        json!({ "command": "x", "manifest": { "tool_scopes": scopes } }),
    ] {
        let entry = server(&entry(&value));
        let of = |tool: &str| -> Vec<&str> {
            entry.tool_scopes[tool].iter().map(|scope| scope.as_str()).collect()
        };
        assert_eq!((of("create-issue"), of("v1.issues/list")), (vec!["a.b"], vec!["a.b", "a.c"]));
        assert_eq!((of("größe"), of("_ok")), (vec![], vec!["a.b"]));
    }
    for wrong in [json!(1), json!({}), json!(null), json!([["a.b"]]), json!("A.b"), json!("")] {
        let value = json!({ "command": "x", "tool_scopes": { "t": wrong } });
        let found = faults(&entry(&value));
        assert!(found.len() == 1 && found[0].0.starts_with("tool_scopes.t"), "{value} {found:?}");
    }
}

/// O71: the values of an attachment are flat in `config`. Headers have no block of their own, and
/// an object is no value for a key that is a text.
#[test]
fn o71_config_is_flat() {
    let nested = json!({ "name": "a", "mcpServers": {
        "s": { "ref": "s", "headers": { "X-Team": "1" } } } });
    let found = refused(Agent::parse(&text(&nested), None));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [FaultCode::InlineServer]);
    let nested = entry(&json!({ "url": "https://x.test", "headers": { "X-Team": "1" } }));
    assert_eq!(faults(&nested), [("headers".to_owned(), FaultCode::UnknownField)]);
    let world = |config: Value| World::one(json!({ "team": {} }), json!({}), config);
    let inside = world(json!({ "headers": { "X-Team": "1" } }));
    assert_eq!(inside.plan_codes(), [FaultCode::KeyUndeclared]);
    assert_eq!(world(json!({ "team": { "X-Team": "1" } })).plan_codes(), [FaultCode::TypeWrong]);
    assert_eq!(world(json!({ "X-Team": "1" })).carried("a")["X-Team"], "1");
}

/// Equal documents have equal normal forms, whatever the order of keys in their values: they are
/// compared as texts.
#[test]
fn normal_forms_do_not_depend_on_the_order_of_keys() {
    let normal = |value: &str| {
        let text = format!(
            r#"{{"name":"a","mcpServers":{{"s":{{"ref":"s","config":{{"key":{value}}}}}}}}}"#
        );
        serde_json::to_string(&Agent::parse(text.as_bytes(), None).unwrap().value).unwrap()
    };
    for (one, other) in [
        (r#"{"b":1,"a":{"d":2,"c":[]}}"#, r#"{"a":{"c":[],"d":2},"b":1}"#),
        (r#"{"b":"${scope.x}","a":{"d":2,"c":1}}"#, r#"{"a":{"c":1,"d":2},"b":"${scope.x}"}"#),
    ] {
        assert_eq!(normal(one), normal(other));
    }
}
