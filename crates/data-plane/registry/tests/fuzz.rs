//! The fuzz target of `mcp.json`: texts that are nearly right.
//!
//! As a test it runs a bounded number of rounds; `cargo bolero test NAME` runs it for longer.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use std::path::Path;

use narthex_registry::config::{Entry, Env, LoadContext, parse, parse_settings};
use narthex_testkit::rounds;

use narthex_testkit::shapes::{Grammar, JSON, survives};

const ROUNDS: usize = 3000;
const SECRET: &str = "canary-4711";

const DOCUMENTS: [&str; 4] = [
    r#"{"servers":{"a":{"transport":"stdio","command":"node","args":["x","${env:KEY}"],
        "env":{"K":"${env:KEY}"},"timeoutMs":10}}}"#,
    r#"{"servers":{"b":{"transport":"http","url":"https://x.test/${env:KEY}",
        "headers":{"X-K":"${env:KEY}"},"auth":{"mode":"apiKey","key":"${env:KEY}"}}}}"#,
    r#"{"mcpServers":{"c":{"command":"npx","args":["-y","s"],"env":{"K":"${KEY}"}},
        "d":{"type":"sse","url":"http://x.test/sse",
        "headers":{"Authorization":"Bearer ${KEY}"}}}}"#,
    r#"{"mcp":{"servers":{"e":{"transport":"stdio","command":"${workspaceRoot}/run",
        "cwd":"${workspaceRoot}","disabled":true}}}}"#,
];

const PIECES: [&str; 14] =
    ["\"", "{", "}", "[", "]", ",", ":", "${", "$${", "${env:KEY}", "null", "\\u0000", "-1", "//"];

fn env(name: &str) -> Option<String> {
    (name == "KEY").then(|| SECRET.to_owned())
}

/// E117, S27: any text gives entries, faults or an error; none of them shows a variable's value.
#[test]
fn e117_s27_any_text_is_read_and_no_variable_value_is_shown() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(u8, Vec<(u16, u8, bool)>)>().for_each(|(seed, changes)| {
        let mut text = DOCUMENTS[usize::from(*seed) % DOCUMENTS.len()].as_bytes().to_vec();
        for (at, what, replaces) in changes {
            let at = usize::from(*at) % (text.len() + 1);
            let end = (at + usize::from(*replaces)).min(text.len());
            match PIECES.get(usize::from(*what)) {
                Some(piece) => drop(text.splice(at..end, piece.bytes())),
                None => drop(text.splice(at..end, [*what])),
            }
        }
        let context = LoadContext {
            file: Path::new("/r/mcp.json"),
            workspace_root: Path::new("/r"),
            env: Env::Values(&env),
        };
        for read in [parse(&text, &context), parse_settings(&text, &context)] {
            let mut told = match &read {
                Err(error) => vec![format!("{error} {} {error:?}", error.remedy())],
                Ok(config) => config.warnings.iter().map(ToString::to_string).collect(),
            };
            for entry in read.iter().flat_map(|config| &config.entries) {
                if let Entry::Fault(fault) = entry {
                    assert!(!fault.error.message.is_empty());
                    told.push(format!("{fault:?}"));
                }
            }
            assert!(!told.iter().any(|told| told.contains(SECRET)), "{told:?}");
        }
    });
}

/// E15, E117: files of any shape are read within the stack of a thread, or refused.
#[test]
fn e15_files_of_any_shape_leave_the_process_alive() {
    let entry = Grammar {
        brackets: &[("{\"a\":", "}"), ("[", "]"), ("${", "}"), ("${env:", "}"), ("/*", "*/")],
        prefixes: &["$", "//", "/*"],
        around: ("{\"servers\":{\"a\":{\"command\":\"x\",\"args\":[", "]}}}"),
        ..JSON
    };
    let test = "e15_files_of_any_shape_leave_the_process_alive";
    survives(test, &[JSON, entry], Vec::new, 200_000, |text| {
        let env = |_: &str| Some("x".to_owned());
        let (file, root) = (Path::new("mcp.json"), Path::new("/w"));
        let context = LoadContext { file, workspace_root: root, env: Env::Values(&env) };
        drop(parse(text.as_bytes(), &context));
        drop(parse_settings(text.as_bytes(), &context));
    });
}
