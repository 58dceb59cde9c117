//! Objects are read strictly, with every fault at once.

use narthex_catalog::{
    Agent, AttachRequest, Capability, FaultCode, Faults, RunRequest, ServerEntry,
};
use narthex_model::Alias;
use serde_json::{Value, json};

use crate::world::{reasons, refused, text};

fn places(faults: &Faults) -> Vec<&str> {
    faults.iter().map(|fault| fault.path.as_str()).collect()
}

/// D9, O35, X-E12: all faults of an object at once, each with its place and a remedy.
#[test]
fn d9_all_faults_of_an_object_are_reported_together() {
    let entry = json!({
        "id": "../evil", "name": 1, "url": "ftp://x", "descripton": "x",
        "config_schema": { "a b": {}, "k": { "type": "text", "required": "yes", "patern": "x" },
                           "p": { "pattern": "(" } },
        "default_config": { "k": "${nope}" }, "tool_scopes": { "t": "nodot" },
        "timeoutMs": 0, "auth": { "mode": "wat" },
    });
    let faults = ServerEntry::parse(&text(&entry), None).unwrap_err();
    let mut places = places(&faults);
    places.sort_unstable();
    assert_eq!(
        places,
        [
            "auth.mode",
            "config_schema.k.patern",
            "config_schema.k.required",
            "config_schema.k.type",
            "config_schema.p.pattern",
            "config_schema[\"a b\"]",
            "default_config.k",
            "descripton",
            "id",
            "name",
            "timeoutMs",
            "tool_scopes.t",
            "url",
        ]
    );
    for fault in faults.iter() {
        assert!(!fault.remedy.is_empty() && !fault.message.is_empty(), "{fault:?}");
    }
    let misspelt = faults.iter().find(|fault| fault.path == "descripton").unwrap();
    assert_eq!(misspelt.remedy, "did you mean `description`?");
}

/// O35, S12, O89: no unknown keys, no keys twice, no numbers that lose digits, anywhere.
#[test]
fn o35_texts_that_readers_could_differ_on_are_refused() {
    let agent = br#"{"name":"x","mcpServers":{"a":{"ref":"s","ref":"t"}}}"#;
    assert!(refused(Agent::parse(agent, None)).contains(&FaultCode::DuplicateKey));
    let request = br#"{"agent_name":"x","scope":{"tenant":100000000000000000000001}}"#;
    assert!(refused(RunRequest::parse(request)).contains(&FaultCode::ValueInvalid));
    assert!(RunRequest::parse(br#"{"agent_name":"x","scope":{"n":18446744073709551615}}"#).is_ok());
    for (bad, code) in [
        (&b"["[..], "TextInvalid"),
        (b"[]", "TypeWrong"),
        (b"null", "TypeWrong"),
        (b"", "TextInvalid"),
        (b"{\"name\":\"x\"} {}", "TextInvalid"),
        (b"\xff", "TextInvalid"),
    ] {
        let reason = [format!(": {code}")];
        assert_eq!(reasons(Agent::parse(bad, None)), reason, "{bad:?}");
        assert_eq!(reasons(RunRequest::parse(bad)), reason, "{bad:?}");
        assert_eq!(reasons(ServerEntry::parse(bad, None)), reason, "{bad:?}");
    }
    let unknown = json!({ "agent_name": "x", "parent": "run_1" });
    assert!(refused(RunRequest::parse(&text(&unknown))).contains(&FaultCode::UnknownField));
}

/// O95, X-M10, X-M9, X-E2, X-E3, X-E4, X-E5, X-E6: one shape, and the rules for each.
#[test]
fn x_m9_a_server_has_exactly_one_shape() {
    let refuse = |value: Value| {
        let mut entry = json!({ "id": "x" });
        entry.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        reasons(ServerEntry::parse(&text(&entry), None))
    };
    for (value, reason) in [
        (json!({}), ": FieldMissing"),
        (json!({ "url": "https://x", "command": "x" }), "command: FieldsExclude"),
        (json!({ "image": "x", "script": "x" }), "script: FieldsExclude"),
        (json!({ "type": "http", "command": "x" }), "type: FieldsExclude"),
        (json!({ "type": "stdio", "url": "https://x" }), "type: FieldsExclude"),
        (json!({ "kind": "remote_oauth", "command": "x" }), "kind: FieldsExclude"),
        (json!({ "kind": "other", "command": "x" }), "kind: ValueInvalid"),
        (json!({ "command": "sh -c true" }), "command: ValueInvalid"),
        (json!({ "command": "x;y" }), "command: ValueInvalid"),
        (json!({ "command": "x", "args": vec!["a"; 33] }), "args: ValueInvalid"),
        (json!({ "command": "x", "args": ["a".repeat(257)] }), "args[0]: ValueInvalid"),
        (json!({ "command": "x", "args": ["${scope.a}"] }), "args[0]: PlaceholderNotAllowed"),
        (json!({ "command": "x", "args": ["${env.KEY}"] }), "args[0]: PlaceholderNotAllowed"),
        (json!({ "command": "x", "args": ["${KEY}"] }), "args[0]: SecretMisplaced"),
        (
            json!({ "command": "x", "auth": { "mode": "apiKey", "key": "${KEY}" } }),
            "auth: FieldsExclude",
        ),
        (json!({ "image": "a b" }), "image: ValueInvalid"),
        (json!({ "image": "--privileged" }), "image: ValueInvalid"),
        (json!({ "image": "a".repeat(513) }), "image: ValueInvalid"),
        (json!({ "image": "x", "args": ["--privileged"] }), "args: FieldsExclude"),
        (json!({ "script": "../x" }), "script: ValueInvalid"),
        (
            json!({ "url": "https://x", "manifest": { "env": {} }, "config_schema": {} }),
            "manifest: FieldsExclude",
        ),
        (json!({ "url": "https://x", "privileged": true }), "privileged: UnknownField"),
    ] {
        assert_eq!(refuse(value.clone()), [reason], "{value}");
    }
    let good = json!({ "id": "x", "command": "npx", "args": ["--dir", "${runtime.project_dir}"] });
    assert!(ServerEntry::parse(&text(&good), None).is_ok());
}

/// O48: servers are referred to and never described by agents and capabilities.
#[test]
fn o48_no_server_is_described_inline() {
    for inline in [json!({ "url": "https://x" }), json!({ "ref": "s", "command": "sh" })] {
        let value = json!({ "name": "x", "mcpServers": { "a": inline } });
        assert!(refused(Agent::parse(&text(&value), None)).contains(&FaultCode::InlineServer));
        assert!(refused(Capability::parse(&text(&value), None)).contains(&FaultCode::InlineServer));
    }
}

/// O49: the type of a capability decides its contents.
#[test]
fn o49_the_type_of_a_capability_decides_its_contents() {
    let servers = json!({ "a": { "ref": "s" } });
    for (kind, value, is_good) in [
        ("text", json!({ "mcpServers": servers }), false),
        ("text", json!({ "script": "x" }), false),
        ("script", json!({ "mcpServers": servers }), false),
        ("mcp", json!({ "script": "x" }), false),
        ("text", json!({ "text": "x" }), true),
        ("script", json!({ "script": "x" }), true),
        ("mcp", json!({ "mcpServers": servers, "text": "x" }), true),
    ] {
        let mut value = value;
        value["name"] = json!("x");
        value["type"] = json!(kind);
        assert_eq!(Capability::parse(&text(&value), None).is_ok(), is_good, "{value}");
    }
}

/// D1, O40: aliases and ids follow their rules here too.
#[test]
fn d1_aliases_and_ids_are_checked() {
    for (alias, id) in [("A", "s"), ("a__b", "s"), ("a", "../s"), ("a", "S"), ("", "s")] {
        let value = json!({ "name": "x", "mcpServers": { alias: { "ref": id } } });
        assert!(refused(Agent::parse(&text(&value), None)).contains(&FaultCode::ValueInvalid));
    }
}

/// X-D2, X-E19, X-E25: an attachment in the words of the attach form.
#[test]
fn x_d2_attach_requests_are_read_in_each_form() {
    let read = |value: Value| AttachRequest::parse(&text(&value), None).map(|parsed| parsed.value);
    let one = json!({ "name": "linear", "env": { "LINEAR_API_KEY": "${LINEAR_API_KEY}" } });
    let other = json!({ "ref": "linear", "alias": "linear",
                        "config": { "LINEAR_API_KEY": { "$secret": "LINEAR_API_KEY" } } });
    let typed = json!({ "catalog_entry_id": "linear", "env_json": {
                        "LINEAR_API_KEY": { "kind": "secret", "ref": "LINEAR_API_KEY" } } });
    assert_eq!(read(one.clone()).unwrap(), read(other).unwrap());
    assert_eq!(read(one).unwrap(), read(typed).unwrap());
    assert_eq!(read(json!({ "name": "s", "alias": "b" })).unwrap().alias.as_str(), "b");
    for (bad, reason) in [
        (json!({}), "name: FieldMissing"),
        (json!({ "name": "s", "ref": "s" }), "ref: FieldsExclude"),
        (json!({ "name": "s", "env": {}, "config": {} }), "config: FieldsExclude"),
        (json!({ "name": "s", "url": "https://x" }), "url: UnknownField"),
        (json!({ "name": "s", "env": { "K": "x${KEY}" } }), "env.K: SecretMisplaced"),
        (json!({ "name": "s", "catalog_entry_id": "s" }), "catalog_entry_id: FieldsExclude"),
        (json!({ "name": "s", "env": {}, "env_json": {} }), "env_json: FieldsExclude"),
        (
            json!({ "name": "s", "tool_scopes_granted": ["a.b"] }),
            "tool_scopes_granted: ValueInvalid",
        ),
    ] {
        assert_eq!(reasons(read(bad.clone())), [reason], "{bad}");
    }
}

/// X-E19, X-E20, X-E22, X-E26: values with a kind are of that kind.
#[test]
fn x_e19_values_of_attach_requests_must_match_their_kind() {
    let read = |env: Value| {
        let request = json!({ "catalog_entry_id": "s", "env_json": env });
        AttachRequest::parse(&text(&request), None).map(|parsed| parsed.value.attachment)
    };
    let read_fine = read(json!({ "A": { "kind": "secret", "ref": "KEY" },
        "B": { "kind": "secret", "ref": "${KEY}" }, "C": { "kind": "value", "value": "plain" },
        "D": { "kind": "value", "value": "${scope.team}" } }));
    let shown = json!(read_fine.unwrap().written());
    let wanted = json!({ "A": "${KEY}", "B": "${KEY}", "C": "plain", "D": "${scope.team}" });
    assert_eq!(shown, wanted, "who may write a literal reads it");
    for (bad, place) in [
        (json!({ "A": "KEY" }), "env_json.A"),
        (json!({ "A": {} }), "env_json.A.kind"),
        (json!({ "A": { "kind": "other" } }), "env_json.A.kind"),
        (json!({ "A": { "kind": "secret" } }), "env_json.A.ref"),
        (json!({ "A": { "kind": "secret", "ref": "a key" } }), "env_json.A.ref"),
        (json!({ "A": { "kind": "secret", "ref": "x${KEY}" } }), "env_json.A.ref"),
        (json!({ "A": { "kind": "secret", "value": "x" } }), "env_json.A.value"),
        (json!({ "A": { "kind": "value", "ref": "KEY" } }), "env_json.A.ref"),
        (json!({ "A": { "kind": "value", "value": "${KEY}" } }), "env_json.A.value"),
        (json!({ "A": { "kind": "value", "value": "x${KEY}" } }), "env_json.A.value"),
    ] {
        let faults = read(bad.clone()).expect_err("it is refused");
        assert!(faults.iter().any(|fault| fault.path == place), "{bad} {faults}");
    }
}

/// The alias of the address counts, and a request must not contradict it.
#[test]
fn an_alias_that_contradicts_the_address_is_refused() {
    let wanted = Alias::new("work").unwrap();
    let read = |value: Value| {
        AttachRequest::parse(&text(&value), Some(&wanted)).map(|parsed| parsed.value.alias)
    };
    assert_eq!(read(json!({ "name": "s" })).unwrap(), wanted);
    assert_eq!(read(json!({ "name": "s", "alias": "work" })).unwrap(), wanted);
    let other = read(json!({ "name": "s", "alias": "home" }));
    assert_eq!(reasons(other), ["alias: ValueInvalid"]);
    assert_eq!(reasons(read(json!({}))), ["name: FieldMissing"]);
}

/// O85: a request that resumes a session takes a prompt and no parameters.
#[test]
fn o85_a_resume_request_takes_a_prompt_and_no_parameters() {
    let read = |value: Value| RunRequest::parse(&text(&value)).map(|parsed| parsed.value);
    let resumed = json!({ "type": "resume_session", "session_id": "ses_1", "prompt": "Go on",
                          "scope": { "a": 1 } });
    assert_eq!(read(resumed).unwrap().prompt.as_deref(), Some("Go on"));
    for (bad, reason) in [
        (json!({}), "agent_name: FieldMissing"),
        (json!({ "type": "resume_session", "prompt": "x" }), "session_id: FieldMissing"),
        (
            json!({ "type": "resume_session", "session_id": "s", "params": { "a": 1 } }),
            "params: FieldsExclude",
        ),
        (json!({ "agent_name": "x", "params": {}, "parameters": {} }), "parameters: FieldsExclude"),
        (json!({ "agent_name": "x", "scope": [] }), "scope: TypeWrong"),
        (json!({ "agent_name": "x", "type": "restart" }), "type: ValueInvalid"),
        (json!({ "agent_name": "../x" }), "agent_name: ValueInvalid"),
    ] {
        assert_eq!(reasons(read(bad.clone())), [reason], "{bad}");
    }
}

/// O20, O29, S27: values that people must not see are in no debug output.
#[test]
fn s27_requests_do_not_print_their_values() {
    let request = json!({ "agent_name": "x", "prompt": "canary", "params": { "p": "canary" },
                          "scope": { "s": "canary" } });
    let request = RunRequest::parse(&text(&request)).unwrap().value;
    let printed = format!("{request:?}");
    assert!(printed.contains("\"s\"") && !printed.contains("canary"), "{printed}");
    let entry = json!({ "id": "s", "url": "https://canary@x.test", "default_config": {
                        "k": "canary", "l": "a${scope.x}canary" } });
    let entry = ServerEntry::parse(&text(&entry), None).unwrap().value;
    assert!(!format!("{entry:?}").contains("canary"), "{entry:?}");
}

/// X-E116, D22: a program of the catalog is confined like one of a file, or refused with all
/// faults; no fault is ignored.
#[test]
fn x_e116_confinement_is_read_strictly() {
    let entry =
        |confinement: Value| json!({ "id": "s", "command": "sh", "confinement": confinement });
    let faulty = entry(json!({
        "filesystem": { "read": ["docs", 1, "/a", "${scope.x}"], "writes": ["/b"] },
        "network": "host", "privileged": true, "syscalls": "none",
        "limits": { "openFiles": 0 }, "bwrap": "yes",
    }));
    let faults = ServerEntry::parse(&text(&faulty), None).unwrap_err();
    let mut found = places(&faults);
    found.sort_unstable();
    let expected = [
        "confinement",
        "confinement.bwrap",
        "confinement.filesystem",
        "confinement.filesystem.read[0]",
        "confinement.filesystem.read[1]",
        "confinement.filesystem.read[3]",
        "confinement.limits.openFiles",
        "confinement.network",
        "confinement.syscalls",
    ];
    assert_eq!(found, expected, "{faults}");
    for other in [json!("lax"), json!({}), json!(true), json!({ "filesystem": { "read": [""] } })] {
        let faults = ServerEntry::parse(&text(&entry(other)), None).unwrap_err();
        assert!(places(&faults).iter().all(|at| at.starts_with("confinement")), "{faults}");
    }
    for reached in [json!({ "url": "https://x.test/" }), json!({ "image": "a/b:1" })] {
        let mut entry = reached;
        entry["id"] = json!("s");
        entry["confinement"] = json!("strict");
        let faults = ServerEntry::parse(&text(&entry), None).unwrap_err();
        assert_eq!(places(&faults), ["confinement"], "{faults}");
    }
    let paths = json!({ "filesystem": { "read": ["${runtime.project_dir}/in", "/a"] },
        "network": { "connect": [443] }, "limits": { "memoryMb": 512 } });
    for fine in [json!("strict"), json!("none"), paths] {
        let parsed = ServerEntry::parse(&text(&entry(fine.clone())), None).unwrap().value;
        assert_eq!(json!(parsed)["confinement"], fine);
    }
}

/// R-M4: the mark of a manifest is read strictly, and stored as it is.
#[test]
fn r_m4_made_by_is_read_strictly() {
    let entry = |made_by: Value| json!({ "id": "s", "command": "sh", "made_by": made_by });
    for (wrong, at) in [
        (json!("helper"), "made_by"),
        (json!({}), "made_by.agent"),
        (json!({ "agent": 1 }), "made_by.agent"),
        (json!({ "agent": "../x" }), "made_by.agent"),
        (json!({ "agent": "helper", "by": "x" }), "made_by.by"),
    ] {
        let faults = ServerEntry::parse(&text(&entry(wrong)), None).unwrap_err();
        assert_eq!(places(&faults), [at], "{faults}");
    }
    let fine = json!({ "agent": "helper" });
    let parsed = ServerEntry::parse(&text(&entry(fine.clone())), None).unwrap().value;
    assert_eq!(json!(parsed)["made_by"], fine);
    let plain = json!({ "id": "s", "command": "sh" });
    let parsed = ServerEntry::parse(&text(&plain), None).unwrap().value;
    assert_eq!((parsed.made_by.as_ref(), json!(parsed).get("made_by")), (None, None));
}

/// D30, D17: extension by progress and recovery in a definition of the catalog; a bad value is
/// refused at its field.
#[test]
fn d30_recovery_and_extension_are_read_and_refused_by_field() {
    let with = |key: &str, value: Value| {
        let mut entry = json!({ "id": "s", "url": "https://x.test/mcp" });
        entry[key] = value;
        ServerEntry::parse(&text(&entry), None)
    };
    for (value, ms) in [
        (json!(true), Some(600_000)),
        (json!(false), None),
        (json!(1), Some(1)),
        (json!(3_600_000), Some(3_600_000)),
    ] {
        let read = with("progressExtends", value.clone()).unwrap().value;
        assert_eq!(read.settings.progress_extends, ms, "{value}");
    }
    for value in [true, false] {
        let read = with("autoRecover", json!(value)).unwrap().value;
        assert_eq!(read.settings.auto_recover, Some(value));
    }
    let bad = [
        ("progressExtends", json!(0)),
        ("progressExtends", json!(-1)),
        ("progressExtends", json!(1.5)),
        ("progressExtends", json!(3_600_001)),
        ("progressExtends", json!("10m")),
        ("progressExtends", json!([])),
        ("autoRecover", json!("no")),
        ("autoRecover", json!(0)),
        ("progress_extends", json!(true)),
        ("auto_recover", json!(true)),
    ];
    for (key, value) in bad {
        let faults = with(key, value.clone()).unwrap_err();
        assert_eq!(places(&faults), [key], "{value}: {faults}");
        let fault = faults.iter().next().unwrap();
        assert!(!fault.message.is_empty() && !fault.remedy.is_empty(), "{fault:?}");
    }
}

/// O1: a capability and an agent may name themselves by `id`, as servers do.
#[test]
fn o1_an_id_is_the_name() {
    let capability = Capability::parse(br#"{"id": "papers", "text": "x"}"#, None).unwrap();
    assert_eq!(capability.value.name.as_str(), "papers");
    assert_eq!(json!(capability.value)["name"], "papers");
    let agent = Agent::parse(br#"{"id": "reader"}"#, None).unwrap();
    assert_eq!(agent.value.name.as_str(), "reader");
    let both = Agent::parse(br#"{"id": "reader", "name": "reader"}"#, None);
    assert_eq!(reasons(both), ["id: FieldsExclude"]);
}
