//! Rules of a server's schema: kinds, types, constraints, undeclared keys, and carriers of keys.

use narthex_catalog::{EnvValue, Surroundings};
use narthex_catalog::{FaultCode, ServerEntry, check_capability, check_server};
use serde_json::{Value, json};

use crate::world::{World, capability, object, refused, server, text};

fn http(schema: Value, config: Value) -> World {
    World::one(schema, json!({}), config)
}

fn stdio(entry: Value, config: Value) -> World {
    let mut entry = entry;
    entry["id"] = json!("s");
    entry["command"] = json!("x");
    World::new(&[entry]).using(json!({ "a": { "ref": "s", "config": config } }))
}

/// D8, O25, O86: the header of a key.
#[test]
fn d8_keys_become_headers() {
    let schema = json!({ "context_id": {}, "LINEAR_ID": {}, "X-Team": {},
                         "key": { "header": "Authorization" } });
    let config = json!({ "context_id": "1", "LINEAR_ID": "2", "X-Team": "3", "key": "4" });
    let headers = http(schema, config).carried("a");
    let names: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(
        names,
        [("Authorization", "4"), ("X-Team", "3"), ("x-context-id", "1"), ("x-linear-id", "2"),]
    );
    let entry = json!({ "id": "s", "url": "https://s.test", "verbatim_headers": true });
    let world =
        World::new(&[entry]).using(json!({ "a": { "ref": "s", "config": { "context_id": "1" } } }));
    assert_eq!(world.carried("a")["context_id"], "1");
}

/// D8, O25, O95: the variable of a key.
#[test]
fn d8_keys_become_variables() {
    let schema = json!({ "config_schema": { "dir": {}, "key": { "env": "API_KEY" } } });
    let variables = stdio(schema, json!({ "dir": "/x", "key": "k" })).carried("a");
    assert_eq!((variables["dir"].as_str(), variables["API_KEY"].as_str()), ("/x", "k"));
    let bad = json!({ "id": "s", "command": "x", "config_schema": { "a-b": {} } });
    assert!(refused(ServerEntry::parse(&text(&bad), None)).contains(&FaultCode::CarrierInvalid));
}

/// O87: no two things set one header or variable.
#[test]
fn o87_no_header_or_variable_is_set_twice() {
    for entry in [
        json!({ "config_schema": { "a_b": {}, "X-A-B": {} } }),
        json!({ "config_schema": { "X-A": {}, "x-a": {} } }),
        json!({ "config_schema": { "a": { "header": "X-B" }, "b": {} } }),
        json!({ "default_config": { "X-A": 1, "x-a": 2 } }),
    ] {
        let mut entry = entry;
        entry["id"] = json!("s");
        entry["url"] = json!("https://s.test");
        assert!(
            refused(ServerEntry::parse(&text(&entry), None)).contains(&FaultCode::CarrierConflict)
        );
    }
    // Undeclared headers of an agent can meet a declared one.
    let world = http(json!({ "a_b": {} }), json!({ "a_b": "1", "X-A-B": "2" }));
    assert_eq!(world.plan_codes(), [FaultCode::CarrierConflict]);
    let removed = http(json!({ "a_b": {} }), json!({ "a_b": null, "X-A-B": "2" }));
    assert_eq!(removed.carried("a")["X-A-B"], "2");
}

/// O88, D8: headers that belong to others, and to the authentication.
#[test]
fn o88_reserved_headers_are_refused() {
    for name in [
        "Host",
        "Content-Length",
        "Mcp-Session-Id",
        "MCP-Method",
        "Transfer-Encoding",
        "Proxy-Authorization",
        "Upgrade",
    ] {
        let entry = json!({ "id": "s", "url": "https://s.test",
                            "config_schema": { "k": { "header": name } } });
        let codes = refused(ServerEntry::parse(&text(&entry), None));
        assert!(codes.contains(&FaultCode::CarrierInvalid), "{name}");
        if name.contains('-') {
            let world = http(json!({}), json!({ name: "x" }));
            assert_eq!(world.plan_codes(), [FaultCode::CarrierInvalid], "{name}");
        }
    }
    for (auth, header) in [
        (json!({ "mode": "authorizationCode" }), "authorization"),
        (json!({ "mode": "apiKey", "key": "${K}", "headerName": "X-Key" }), "x-key"),
        (json!({ "mode": "apiKey", "key": "${K}" }), "Authorization"),
    ] {
        let entry = json!({ "id": "s", "url": "https://s.test", "auth": auth,
                            "config_schema": { "k": { "header": header } } });
        let codes = refused(ServerEntry::parse(&text(&entry), None));
        assert!(codes.contains(&FaultCode::CarrierInvalid), "{header}");
    }
}

/// O88: a value that a header cannot carry is refused when it is saved, and not in each run.
#[test]
fn o88_literals_that_cannot_travel_are_refused_when_saved() {
    for (value, is_fine) in [
        ("plain", true),
        ("Bearer ${scope.v}", true),
        ("\u{e4}", false),
        ("\u{e4} ${scope.v}", false),
        ("a\nb", false),
    ] {
        let world = http(json!({ "k": {} }), json!({ "k": value }));
        let found = world.plan_codes();
        assert_eq!(found.is_empty(), is_fine, "{value:?}: {found:?}");
        assert!(found.iter().all(|code| *code == FaultCode::CarrierInvalid), "{value:?}");
        let by_server =
            json!({ "id": "s", "url": "https://s.test", "default_config": { "k": value } });
        let world = World::new(&[by_server]).using(json!({ "a": { "ref": "s" } }));
        assert_eq!(world.plan_codes().is_empty(), is_fine, "{value:?}");
    }
    let schema = json!({ "config_schema": { "k": {} } });
    assert_eq!(stdio(schema, json!({ "k": "\u{e4}" })).plan_codes(), []);
}

/// O101, O50: a literal under a name that suggests a credential is hidden and warned of, even if
/// the server declares the key as a plain one.
#[test]
fn o101_a_credential_in_a_declared_plain_key_is_hidden() {
    for schema in [
        json!({ "api_key": {}, "team": {} }),
        json!({ "api_key": { "kind": "value" }, "team": {} }),
    ] {
        let world = http(schema, json!({ "api_key": "canary-5d", "team": "one" }));
        let shown = world.plan(|plan| plan.preview());
        let config = &shown["mcpServers"]["a"]["config"];
        assert_eq!(
            (&config["api_key"]["value"], &config["api_key"]["hidden"]),
            (&json!("(hidden)"), &json!(true))
        );
        assert_eq!(config["team"]["value"], "one");
        let warned = world.warnings();
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert_eq!(warned[0].path, "agents.reader.mcpServers.a.config.api_key");
    }
    let entry = json!({ "id": "s", "url": "https://s.test",
        "config_schema": { "api_key": {}, "pin_key": { "default": "canary" } },
        "default_config": { "api_key": "canary-5d" } });
    let warned = ServerEntry::parse(&text(&entry), None).unwrap().warnings;
    let mut places: Vec<_> = warned.into_iter().map(|one| one.path).collect();
    places.sort();
    assert_eq!(places, ["config_schema.pin_key.default", "default_config.api_key"]);
}

/// O88, S4: a value never ends its header, nor a variable.
#[test]
fn o88_values_that_cannot_travel_are_refused() {
    for value in ["a\r\nX-Evil: 1", "a\nb", "\u{7f}", "ä", "a\0b"] {
        let world = http(json!({ "k": {} }), json!({ "k": "x${scope.v}" }));
        let faults = world.scope(json!({ "v": value })).faults();
        assert_eq!(faults[0].code, FaultCode::CarrierInvalid, "{value:?}");
        assert!(!faults[0].to_string().contains("Evil"));
    }
    let world = http(json!({ "k": {} }), json!({ "k": "${env.E}" })).env("E", "key\n");
    assert_eq!(world.codes(), [FaultCode::CarrierInvalid]);
    let long = "x".repeat((8 << 10) + 1);
    let world = http(json!({ "k": {} }), json!({ "k": "${scope.v}" })).scope(json!({ "v": long }));
    assert_eq!(world.codes(), [FaultCode::CarrierInvalid]);
    let schema = json!({ "config_schema": { "k": {} } });
    let world = stdio(schema, json!({ "k": "${scope.v}" }));
    assert_eq!(world.clone().scope(json!({ "v": "a\0b" })).codes(), [FaultCode::CarrierInvalid]);
    assert_eq!(world.scope(json!({ "v": "a\nä" })).carried("a")["k"], "a\nä");
}

/// X-M19, X-M33, X-M34, X-M38, X-E22, X-E113, D7: values that each kind accepts.
#[test]
fn x_m19_each_kind_accepts_only_its_values() {
    let kind = |kind: &str, required: bool| json!({ "k": { "kind": kind, "required": required } });
    let codes = |schema: Value, value: Value| {
        http(schema, json!({ "k": value })).secret("KEY", "v").plan_codes()
    };
    assert_eq!(codes(kind("secret", true), json!("${KEY}")), []);
    assert_eq!(codes(kind("secret", true), json!({ "$secret": "KEY" })), []);
    assert_eq!(codes(kind("secret", true), json!("v")), [FaultCode::SecretMisplaced]);
    assert_eq!(
        codes(kind("secret", true), json!("${env.E}")).first(),
        Some(&FaultCode::SecretMisplaced)
    );
    assert_eq!(codes(kind("value", true), json!("${KEY}")), [FaultCode::SecretMisplaced]);
    assert_eq!(codes(kind("secret", false), json!("")), []);
    assert_eq!(codes(kind("secret", true), json!("")), [FaultCode::SecretMisplaced]);
    assert!(http(kind("secret", false), json!({ "k": "" })).carried("a").is_empty());

    for partial in ["prefix-${KEY}", "${KEY}-suffix", " ${KEY}", "${KEY}${KEY}", "${env.E}${KEY}"] {
        let value = json!({ "name": "x", "mcpServers": {
            "a": { "ref": "s", "config": { "k": partial, "deep": { "k": "${KEY}" } } } } });
        let faults = narthex_catalog::Agent::parse(&text(&value), None).unwrap_err();
        let codes: Vec<FaultCode> = faults.iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [FaultCode::SecretMisplaced; 2], "{partial}");
    }
}

/// O44, X-M40, O4: types and constraints, on written and on filled-in values.
#[test]
fn x_m40_values_fit_type_pattern_and_enum() {
    let written = |schema: Value, value: Value| {
        http(json!({ "k": schema }), json!({ "k": value })).plan_codes().first().copied()
    };
    let filled = |schema: Value, value: Value| {
        let world = http(json!({ "k": schema }), json!({ "k": "${scope.v}" }));
        let found = world.scope(json!({ "v": value })).resolve();
        found.err().map(|faults| faults.iter().next().unwrap().code)
    };
    let wrong = Some(FaultCode::TypeWrong);
    let invalid = Some(FaultCode::ValueInvalid);
    for (kind, value, on_save, on_run) in [
        ("string", json!("x"), None, None),
        ("string", json!(1), wrong, None),
        ("string", json!({}), wrong, wrong),
        ("number", json!(1.5), None, None),
        ("number", json!("1.5"), wrong, None),
        ("number", json!("x"), wrong, wrong),
        ("integer", json!(2), None, None),
        ("integer", json!(2.5), wrong, wrong),
        ("boolean", json!(true), None, None),
        ("boolean", json!("true"), wrong, None),
        ("boolean", json!("yes"), wrong, wrong),
        ("json", json!([1]), None, None),
    ] {
        let schema = json!({ "type": kind });
        assert_eq!(written(schema.clone(), value.clone()), on_save, "{kind} {value}");
        assert_eq!(filled(schema, value.clone()), on_run, "{kind} {value}");
    }
    for (schema, good, bad) in [
        (json!({ "enum": ["eu", "us"] }), json!("eu"), json!("canary")),
        (json!({ "pattern": "^ws-[0-9]+$" }), json!("ws-1"), json!("canary")),
        (json!({ "regex": "^ws-[0-9]+$" }), json!("ws-1"), json!("canary")),
        (json!({ "type": "integer", "enum": [1, 2] }), json!(1), json!(3)),
    ] {
        assert_eq!(
            (written(schema.clone(), good.clone()), filled(schema.clone(), good)),
            (None, None)
        );
        assert_eq!(written(schema.clone(), bad.clone()), invalid);
        assert_eq!(filled(schema.clone(), bad.clone()), invalid);
        let world = http(json!({ "k": schema }), json!({ "k": bad }));
        assert!(!world.faults()[0].to_string().contains("canary"));
    }
    let by_env = http(json!({ "k": { "pattern": "^a+$" } }), json!({ "k": "${env.E}" }));
    assert_eq!(by_env.clone().env("E", "b").codes(), [FaultCode::ValueInvalid]);
    assert_eq!(by_env.env("E", "aa").carried("a")["x-k"], "aa");
}

/// X-M40: `regex` is `pattern`, is reported under its own name, and is stored as `pattern`.
#[test]
fn x_m40_regex_is_another_word_for_pattern() {
    let entry = |key: Value| {
        let entry = json!({ "id": "s", "url": "https://s.test", "config_schema": { "k": key } });
        ServerEntry::parse(&text(&entry), None)
    };
    let stored = json!(entry(json!({ "regex": "^a+$" })).unwrap().value);
    assert_eq!(stored["config_schema"]["k"]["pattern"], "^a+$");
    assert_eq!(stored["config_schema"]["k"].get("regex"), None);
    for (key, place) in [
        (json!({ "regex": "(" }), "config_schema.k.regex"),
        (json!({ "regex": "a", "type": "integer" }), "config_schema.k.regex"),
        (json!({ "regex": "a", "pattern": "a" }), "config_schema.k.regex"),
    ] {
        let faults = entry(key).unwrap_err();
        assert_eq!(faults.iter().next().unwrap().path, place);
    }
}

/// O65: JSON travels as JSON text, and a text never turns into another type.
#[test]
fn o65_json_travels_as_json() {
    let world = http(json!({ "k": { "type": "json" } }), json!({ "k": "${scope.v}" }));
    for (value, expected) in [
        (json!({ "a": [1, true] }), "{\"a\":[1,true]}"),
        (json!("{\"admin\":true}"), "\"{\\\"admin\\\":true}\""),
        (json!(1.5), "1.5"),
    ] {
        assert_eq!(world.clone().scope(json!({ "v": value })).carried("a")["x-k"], expected);
    }
    let by_env = http(json!({ "k": { "type": "json" } }), json!({ "k": "${env.E}" }));
    assert_eq!(by_env.clone().env("E", "{\"a\": 1}").carried("a")["x-k"], "{\"a\":1}");
    assert_eq!(by_env.env("E", "{").codes(), [FaultCode::TypeWrong]);
}

/// X-E21: undeclared keys of a server are refused, with the key that was meant.
#[test]
fn x_e21_undeclared_keys_are_refused() {
    let world = http(json!({ "context_id": {} }), json!({ "contextid": "x" }));
    assert_eq!(world.plan_codes(), [FaultCode::KeyUndeclared]);
    assert_eq!(world.faults()[0].remedy, "did you mean `context_id`?");
    assert!(http(json!({ "context_id": {} }), json!({ "X-Team": "x" })).plan_codes().is_empty());
    let removed = http(json!({ "context_id": {} }), json!({ "contextid": null }));
    assert_eq!(removed.plan_codes(), [FaultCode::KeyUndeclared]);
}

/// S2, X-E21: no agent or capability brings a variable that the catalog does not know.
#[test]
fn s2_no_variable_is_smuggled_into_a_program() {
    for name in ["LD_PRELOAD", "NODE_OPTIONS", "PATH", "PYTHONPATH", "ANYTHING"] {
        for entry in [
            json!({}),
            json!({ "config_schema": { "A": {} } }),
            json!({ "manifest": { "env": {} } }),
        ] {
            let world = stdio(entry, json!({ name: "x" }));
            assert_eq!(world.plan_codes(), [FaultCode::KeyUndeclared], "{name}");
        }
    }
    let known = stdio(json!({ "env": { "LOG": "warn" } }), json!({ "LOG": "debug" }));
    assert_eq!(known.carried("a")["LOG"], "debug");
    // The same if the server itself sets such a variable or declares it, under any key.
    for (entry, key) in [
        (json!({ "env": { "PATH": "/opt/bin" } }), "PATH"),
        (json!({ "config_schema": { "NODE_OPTIONS": {} } }), "NODE_OPTIONS"),
        (json!({ "config_schema": { "libs": { "env": "LD_LIBRARY_PATH" } } }), "libs"),
    ] {
        let world = stdio(entry.clone(), json!({ key: "x" }));
        assert_eq!(world.plan_codes(), [FaultCode::CarrierInvalid], "{key}");
        assert!(stdio(entry, json!({})).plan_codes().is_empty(), "{key}");
    }
}

/// D8: an author who writes the name of a header as a key gets a warning that it travels as another
/// one, unless the server declares its carrier.
#[test]
fn d8_a_key_named_like_a_header_causes_a_warning() {
    let warned = |entry: Value| {
        let read = ServerEntry::parse(&text(&entry), None).unwrap();
        let told = read.warnings.into_iter();
        told.filter(|one| one.message.contains("`x-")).map(|one| one.path).collect::<Vec<_>>()
    };
    let entry = |more: Value| {
        let mut entry = json!({ "id": "s", "url": "https://s.test" });
        entry.as_object_mut().unwrap().extend(object(more));
        entry
    };
    let alone = json!({ "Authorization": "Bearer ${scope.token}" });
    assert_eq!(warned(entry(json!({ "default_config": alone }))), ["default_config.Authorization"]);
    let declared = json!({ "config_schema": { "cookie": {} } });
    assert_eq!(warned(entry(declared)), ["config_schema.cookie"]);
    for fine in [
        json!({ "default_config": alone, "verbatim_headers": true }),
        json!({ "default_config": alone,
                "config_schema": { "Authorization": { "header": "Authorization" } } }),
        json!({ "default_config": { "team": "x", "X-Cookie": "y" } }),
    ] {
        assert!(warned(entry(fine.clone())).is_empty(), "{fine}");
    }

    let open = World::new(&[entry(json!({}))]);
    let by_agent = open.clone().using(json!({ "a": { "ref": "s", "config": alone } }));
    let told = by_agent.warnings();
    assert_eq!(told[0].path, "agents.reader.mcpServers.a.config.Authorization");
    assert!(told[0].message.contains("`x-authorization`"), "{told:?}");
    let env = |_: &str| EnvValue::NotAllowed;
    let workspace = narthex_model::WorkspaceId::default();
    let surroundings = Surroundings {
        workspace: &workspace,
        env: &env,
        allowing: &|_| String::new(),
        is_secret_set: &|_| false,
    };
    let of = capability("c", &json!({ "mcpServers": { "a": { "ref": "s", "config": alone } } }));
    let told = check_capability(&open.catalog, &of, surroundings).unwrap();
    assert_eq!(told[0].path, "capabilities.c.mcpServers.a.config.Authorization");
}

/// D9: servers and capabilities are checked by themselves, too.
#[test]
fn d9_saved_servers_and_capabilities_are_checked_alone() {
    let env = |_: &str| EnvValue::NotAllowed;
    let workspace = narthex_model::WorkspaceId::default();
    let surroundings = Surroundings {
        workspace: &workspace,
        env: &env,
        allowing: &|_| String::new(),
        is_secret_set: &|_| false,
    };
    let entry = server(&json!({ "id": "s", "url": "https://s.test/${env.A}",
        "auth": { "mode": "apiKey", "key": "${K}" },
        "config_schema": { "k": { "kind": "secret", "default": "${L}" }, "e": {} },
        "default_config": { "e": "${env.B}" } }));
    let codes: Vec<FaultCode> =
        check_server(&entry, surroundings).unwrap_err().iter().map(|fault| fault.code).collect();
    assert_eq!(
        codes,
        [
            FaultCode::SecretNotSet,
            FaultCode::EnvNotAllowed,
            FaultCode::EnvNotAllowed,
            FaultCode::SecretNotSet,
        ]
    );
    let world = http(json!({ "k": {} }), json!({}));
    let bad = capability(
        "c",
        &json!({ "mcpServers": {
        "a": { "ref": "s", "config": { "kk": 1 } }, "b": { "ref": "t" } } }),
    );
    let faults = check_capability(&world.catalog, &bad, surroundings).unwrap_err();
    let places: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(
        places,
        ["capabilities.c.mcpServers.a.config.kk", "capabilities.c.mcpServers.b.ref"]
    );
}

/// O28: a key that the platform sets is set in the server alone: neither an agent nor a capability
/// can set it, change it or take it out.
#[test]
fn o28_authors_set_no_internal_keys() {
    let schema = json!({ "run_id": { "required": true, "internal": true }, "other": {} });
    let default = json!({ "run_id": "${runtime.run_id}" });
    let world = |config: Value| World::one(schema.clone(), default.clone(), config);
    assert_eq!(world(json!({ "other": "x" })).carried("a")["x-run-id"], crate::world::RUN_ID);
    let platforms = world(json!({ "run_id": "${runtime.run_id}" }));
    assert_eq!(platforms.carried("a")["x-run-id"], crate::world::RUN_ID);
    for value in
        [json!("run_other"), json!("${scope.run}"), json!("${runtime.run_id}x"), json!(null)]
    {
        let config = json!({ "run_id": value });
        assert!(world(config.clone()).plan_codes().contains(&FaultCode::KeyInternal), "{config}");
        let servers = json!({ "a": { "ref": "s", "config": config } });
        let through = world(json!({})).including("c", servers.clone());
        assert!(through.plan_codes().contains(&FaultCode::KeyInternal), "{config}");
        let read = capability("c", &json!({ "mcpServers": servers }));
        let env = |_: &str| EnvValue::NotAllowed;
        let workspace = narthex_model::WorkspaceId::default();
        let surroundings = Surroundings {
            workspace: &workspace,
            env: &env,
            allowing: &|_| String::new(),
            is_secret_set: &|_| true,
        };
        let checked = check_capability(&through.catalog, &read, surroundings);
        assert!(refused(checked).contains(&FaultCode::KeyInternal), "{config}");
    }
}
