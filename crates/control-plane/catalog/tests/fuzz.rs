//! The fuzz target of all readers of this crate: texts that are nearly right.
//!
//! As a test it runs a bounded number of rounds; `cargo bolero test NAME` runs it for longer.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use std::collections::BTreeMap;

use narthex_catalog::{
    Agent, AttachRequest, Capability, Catalog, EnvValue, Faults, Opening, Parsed, Plan, RunInputs,
    RunRequest, ServerEntry, Surroundings,
};
use narthex_model::{Secret, SecretName};
use narthex_testkit::rounds;

const ROUNDS: usize = 2000;
const CANARY: &str = "canary-4711";

const ENTRY: &str = r#"{"id":"s","url":"https://x.test/${scope.t}","config_schema":{
    "a":{"type":"string","required":true},"b":{"type":"json","default":{"x":["${scope.t}"]}},
    "k":{"kind":"secret"},"n":{"type":"number","enum":[1,2],"header":"X-N"}},
    "default_config":{"a":"${env.KEY}","k":"${KEY}","n":1},
    "auth":{"mode":"apiKey","key":{"$secret":"KEY"}},"tool_scopes":{"t":["a.b"]},"tools":["*"]}"#;
const PROGRAM: &str = r#"{"name":"s","command":"npx","args":["-y","${runtime.project_dir}"],
    "manifest":{"env":{"A":{"kind":"value","required":false},"K":{"kind":"secret"}}},
    "env":{"K":"${KEY}"},"timeoutMs":10}"#;
const AGENT: &str = r#"{"name":"r","capabilities":["c"],"params_schema":{"p":{"type":"string"}},
    "mcpServers":{"a":{"ref":"s","config":{"a":"<${scope.t}|${params.p}>","b":null}}}}"#;
const CAPABILITY: &str = r#"{"name":"c","type":"mcp","mcpServers":{
    "a":{"ref":"s","config":{"X-T":"$${${scope.t}"}},"b":{"ref":"s","optional":true}}}"#;
const REQUEST: &str = r#"{"type":"start_session","agent_name":"r","prompt":"x",
    "params":{"p":"${env.KEY}"},"scope":{"t":"${KEY}"}}"#;
const ATTACH: &str = r#"{"name":"s","env":{"A":"x","K":"${KEY}"},"optional":true}"#;

const PIECES: [&str; 18] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "${",
    "$${",
    "${env.KEY}",
    "${KEY}",
    "null",
    "\\u0000",
    "-1",
    "1e300",
    "${scope.",
    "${params.p}",
    "{\"$secret\":",
];

/// One change: the place, the byte, and a flag that is true if it replaces the byte there.
type Change = (u16, u8, bool);

fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut text = text.as_bytes().to_vec();
    for (at, what, replaces) in changes {
        let at = usize::from(*at) % (text.len() + 1);
        let end = (at + usize::from(*replaces)).min(text.len());
        match PIECES.get(usize::from(*what)) {
            Some(piece) => drop(text.splice(at..end, piece.bytes())),
            None => drop(text.splice(at..end, [*what])),
        }
    }
    text
}

/// The value read; a refusal must have messages and remedies.
fn good<T>(read: Result<Parsed<T>, Faults>) -> Option<T> {
    let faults = match read {
        Ok(parsed) => return Some(parsed.value),
        Err(faults) => faults,
    };
    assert!(faults.iter().count() > 0);
    for fault in faults.iter() {
        assert!(!fault.message.is_empty() && !fault.remedy.is_empty(), "{fault:?}");
    }
    None
}

/// The normal form is read as the same object.
fn assert_normal<T: serde::Serialize + PartialEq>(
    object: &T,
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, Faults>,
) {
    let text = serde_json::to_vec(object).expect("objects are JSON");
    match parse(&text) {
        Ok(parsed) => assert!(parsed.value == *object, "{}", String::from_utf8_lossy(&text)),
        Err(faults) => panic!("{faults}\n{}", String::from_utf8_lossy(&text)),
    }
}

/// D9, S27, S30, O29: any text is read or refused; a text that is read has one normal form, and a
/// run of it shows no variable and no secret.
#[test]
fn d9_s27_any_text_is_read_or_refused_and_no_secret_is_shown() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(u8, Vec<Change>)>().for_each(|(seed, changes)| {
        let which = seed % 6;
        let pick = |index: u8, text: &str| match which == index {
            true => changed(text, changes),
            false => text.as_bytes().to_vec(),
        };
        let server = |text: &[u8]| ServerEntry::parse(text, None);
        let mut catalog = Catalog::default();
        let program = seed % 12 < 6;
        let entry = good(server(&pick(0, if program { PROGRAM } else { ENTRY })));
        if let Some(entry) = entry {
            assert_normal(&entry, server);
            catalog.servers.insert(entry.id.clone(), entry);
        }
        if let Some(capability) = good(Capability::parse(&pick(1, CAPABILITY), None)) {
            assert_normal(&capability, |text| Capability::parse(text, None));
            catalog.capabilities.insert(capability.name.clone(), capability);
        }
        drop(good(AttachRequest::parse(&pick(2, ATTACH), None)));
        let agent = good(Agent::parse(&pick(3, AGENT), None));
        let request = good(RunRequest::parse(&pick(4, REQUEST)));
        let (Some(agent), Some(request)) = (agent, request) else { return };
        assert_normal(&agent, |text| Agent::parse(text, None));
        run(&catalog, &agent, &request);
    });
}

fn run(catalog: &Catalog, agent: &Agent, request: &RunRequest) {
    let known = BTreeMap::from([("KEY", CANARY)]);
    let secret = |name: &str| known.get(name).map(|value| Secret::new(*value));
    let env = |name: &str| secret(name).map_or(EnvValue::Unset, EnvValue::Set);
    let is_secret_set = |name: &SecretName| known.contains_key(name.as_str());
    let workspace = narthex_model::WorkspaceId::default();
    let surroundings = Surroundings {
        workspace: &workspace,
        env: &env,
        allowing: &|_| String::new(),
        is_secret_set: &is_secret_set,
    };
    let plan = Plan::new(catalog, agent, surroundings);
    let params = request.params_for(agent);
    let inputs = RunInputs {
        run_id: "run_1",
        session_id: "ses_1",
        project_dir: request.project_dir.as_deref(),
        params: &params,
        scope: &request.scope,
    };
    let mut told = plan.preview().to_string();
    match plan.resolve(inputs) {
        Err(faults) => {
            told.push_str(&format!("{faults} {}", serde_json::json!(faults.rejection())))
        }
        Ok(run) => {
            told.push_str(&format!("{run:?} {}", run.shown()));
            let opening = Opening {
                secret: &|name| secret(name.as_str()),
                env: &|name| secret(name),
                runner: &|_| None,
            };
            for server in run.servers.values() {
                match server.definition(opening) {
                    Ok(definition) => told.push_str(&format!("{definition:?}")),
                    Err(error) => told.push_str(&error.to_string()),
                }
            }
        }
    }
    assert!(!told.contains(CANARY), "{told}");
}
