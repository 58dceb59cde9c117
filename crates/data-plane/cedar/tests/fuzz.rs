//! Any text of rules is compiled or refused, and never crashes.
//!
//! As a test it runs a bounded number of rounds; `cargo bolero test NAME` runs it for longer.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use narthex_cedar::{RuleFaults, RuleSet};
use narthex_testkit::rounds;

const ROUNDS: usize = 300;

/// D13: compiling any text ends with a set or with faults, and a second time with the same.
#[test]
fn d13_any_text_is_compiled_or_refused() {
    const PARTS: [&str; 28] = [
        "forbid",
        "permit",
        "(",
        ")",
        "principal",
        "action",
        "resource",
        ",",
        ";",
        "when",
        "unless",
        "{",
        "}",
        "context",
        ".arguments",
        " has ",
        ".a",
        "==",
        "like",
        "\"x\"",
        "@id",
        "@approval",
        "&&",
        "[",
        "]",
        "Tool::\"a/b\"",
        "-1",
        "__cedar",
    ];
    bolero::check!().with_iterations(rounds(ROUNDS)).with_type::<Vec<u8>>().for_each(
        |bytes: &Vec<u8>| {
            let word = |byte: &u8| PARTS[usize::from(*byte) % PARTS.len()];
            let built: String = bytes.iter().map(word).collect::<Vec<_>>().join(" ");
            let around = format!(
                "forbid(principal, action, resource) when {{ context.arguments has a && {built} }};"
            );
            let raw = String::from_utf8_lossy(bytes);
            for text in [&*raw, &built, &around] {
                let told = |result: Result<RuleSet, RuleFaults>| match result {
                    Ok(set) => Ok(set.len()),
                    Err(faults) => {
                        assert!(!faults.0.is_empty());
                        Err(faults)
                    }
                };
                assert_eq!(told(RuleSet::compile(text)), told(RuleSet::compile(text)));
            }
        },
    );
}
