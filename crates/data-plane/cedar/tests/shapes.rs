//! Rules of any shape are compiled or refused, and asked, within the room that a thread has.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use std::time::SystemTime;

use narthex_cedar::RuleSet;
use narthex_model::Alias;
use narthex_policy::{Actors, Arguments, CallOrigin, Item, Question, Rules, Ruling, Site};
use narthex_testkit::shapes::{Grammar, survives};

const RULES: [Grammar; 2] = [
    Grammar {
        brackets: &[
            ("(", ")"),
            ("[", "]"),
            ("{a:", "}.a"),
            ("if true then ", " else true"),
            ("context.arguments.a.contains(", ")"),
        ],
        prefixes: &["!", "-", "{a:", "if "],
        infixes: &[
            " || ",
            " && ",
            " == ",
            " + ",
            " * ",
            " in ",
            " like ",
            " has ",
            ".a",
            "[\"a\"]",
            ", ",
            " is A in ",
            "} when {",
            "} unless {",
            "};\n",
        ],
        leaf: "context.arguments.a",
        around: ("forbid(principal, action, resource) when { ", " };"),
    },
    Grammar {
        brackets: &[("forbid(", ")"), ("@id(\"", "\")"), ("{", "}"), ("\"", "\"")],
        prefixes: &["@", "//", "?principal", "A::"],
        infixes: &[";", ",", "::", "\n"],
        leaf: "principal",
        around: ("", ""),
    },
];

fn ask(rules: &RuleSet, arguments: &str) -> Ruling {
    rules.ask(&Question {
        actors: &Actors::default(),
        server: &Alias::new("files").expect("it is an alias"),
        item: &Item::Tool("read".into()),
        method: "tools/call",
        origin: CallOrigin::Call,
        arguments: Arguments::Json(arguments.as_bytes()),
        site: Site::default(),
        at: SystemTime::UNIX_EPOCH,
    })
}

/// D13: whatever is written, nothing of it ends the process: not reading, not asking, and not
/// forgetting it.
#[test]
fn d13_rules_of_any_shape_leave_the_process_alive() {
    let deep = || vec![format!("{}1{}", "{\"a\":".repeat(120), "}".repeat(120))];
    let test = "d13_rules_of_any_shape_leave_the_process_alive";
    survives(test, &RULES, Vec::new, 12_000, move |text| {
        if let Ok(set) = RuleSet::compile(text) {
            for arguments in deep().iter().map(String::as_str).chain(["{}", "{\"a\":true}"]) {
                ask(&set, arguments);
            }
        }
    });
}

/// D13: brackets are counted before anything else, inside any text.
#[test]
fn d13_nested_brackets_are_a_clear_error() {
    let text = format!(
        "// 450 bytes\nforbid(principal, action, resource) when {{ {}true{} }};",
        "(".repeat(196),
        ")".repeat(196)
    );
    let faults = RuleSet::compile(&text).unwrap_err().0;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].line, Some(2));
    assert!(faults[0].message.contains("more than 64 brackets"), "{faults:?}");
}

/// D13: a long list of alternatives is a rule like any other.
#[test]
fn d13_six_hundred_alternatives_work() {
    let terms = |count: usize, by: &str| {
        let term = |number| format!("context.arguments.path like \"/home/{number}/*\"");
        (0..count).map(term).collect::<Vec<_>>().join(by)
    };
    let rule = |condition: &str| {
        format!(
            "forbid(principal, action, resource) when {{ context.arguments has path && \
             ({condition}) }};"
        )
    };
    for count in [600, 900] {
        let set = RuleSet::compile(&rule(&terms(count, " || "))).unwrap();
        for (path, is_forbidden) in
            [("/home/0/x", true), ("/home/599/x", true), ("/home/5999/x", false), ("/etc", false)]
        {
            let said = ask(&set, &format!("{{\"path\":\"{path}\"}}"));
            assert_eq!(said.forbidden.is_some(), is_forbidden, "{count}: {path}");
            assert!(said.failed.is_empty(), "{said:?}");
        }
        let all = RuleSet::compile(&rule(&terms(count, " && "))).unwrap();
        assert!(ask(&all, "{\"path\":\"/home/0/x\"}").forbidden.is_none());
        // With an argument of another type than the rule requires, the rule counts as matching.
        assert_eq!(ask(&set, "{\"path\":1}").failed.len(), 1);
    }
}
