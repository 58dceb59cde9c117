//! The claims and their tests, and the threats in both documents.

use super::{check, index, not_yet};
use crate::tidy::source::Source;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

fn sources() -> [Source; 3] {
    let module = "#[test]\nfn e1_joins_lines() {}\nfn e9_helps() {}\n";
    let numbers: String = (1..=32).map(|number| format!(" S{number}")).collect();
    let reads = "/// X-M2, E3: reads.\n#[tokio::test(x)]\nasync fn reads<T>() {}\n";
    let file = format!("{reads}\n// {numbers}\n#[test]\nfn all() {{}}\n");
    [
        source("crates/words/wire/src/sse.rs", module),
        source("crates/words/wire/tests/it/main.rs", &file),
        source("e2e/a.py", "# E4\ndef test_e4():\n"),
    ]
}

fn found(text: &str) -> Vec<String> {
    let findings = check(&source("docs/requirements.md", text), &sources()).into_iter();
    findings.map(|f| f.place.replace("docs/requirements.md:", "") + ": " + &f.message).collect()
}

#[test]
fn a_test_carries_a_number_in_its_name_or_in_a_comment() {
    let text = "- **E1** It joins lines.\n- **X-M2**, **E3** It reads\n  all.\n";
    assert_eq!(found(text), Vec::<String>::new());
}

#[test]
fn a_claim_without_a_test_is_found() {
    let none = |line, number| {
        format!("{line}: {number}: no test carries the number (`/// {number}: …` above a test)")
    };
    let text = "- **E1** A.\n- **X-M2**, **E4** B.\n- **E9** C.\n";
    assert_eq!(found(text), [none(2, "E4"), none(3, "E9")]);
}

#[test]
fn a_number_without_a_claim_is_found() {
    let found_one = found("- **E3** A.\n");
    let message = "`e1_joins_lines` carries e1, which is not in requirements.md";
    assert_eq!(found_one, [format!("crates/words/wire/src/sse.rs:2: {message}")]);
    // A series without any claim is a word like others.
    assert_eq!(found("- **X-M2** A.\n"), Vec::<String>::new());
}

#[test]
fn tests_are_not_listed_by_hand() {
    let message = "1: E1: names tests: write the number above the test instead";
    assert_eq!(found("- **E1** A.\n  Test: `wire::sse::e1_joins_lines`.\n"), [message]);
}

#[test]
fn the_index_shows_each_claim_with_its_tests() {
    let document = source("docs/requirements.md", "- **E1** A.\n- **X-M2**, **E3** B,\n  C.\n");
    let first = "E1: A.\n  crates/words/wire/src/sse.rs::e1_joins_lines\n";
    let second = "X-M2, E3: B, C.\n  crates/words/wire/tests/it/main.rs::reads\n";
    assert_eq!(index(&document, &sources(), None), [first, second].concat());
    for number in ["E3", "e3", "x-m2"] {
        assert_eq!(index(&document, &sources(), Some(number)), second);
    }
    assert_eq!(index(&document, &sources(), Some("E2")), "");
}

/// The threats are all there, each with tests or as not built, and below their heading.
#[test]
fn every_class_of_attacks_is_named_once() {
    let first = "- **E1** It joins.\n";
    let entry = |number: u32| format!("- **S{number}** A.\n");
    let all: String = (1..=32).map(entry).collect();
    assert_eq!(found(&format!("{first}## Threats\n\n{all}\n## More\n")), Vec::<String>::new());
    let some: String = (1..=31).map(entry).collect();
    let missing = "2: S32 is missing: add its claim, or say that it is not built";
    assert_eq!(found(&format!("{first}## Threats\n\n{some}")), [missing]);
    let elsewhere = format!("{first}## Threats\n\n{some}\n## More\n\n{}", entry(32));
    assert_eq!(found(&elsewhere), ["38: S32 belongs below `## Threats`"]);
}

#[test]
fn only_a_threat_may_have_no_test() {
    let untested = |number| {
        let text = format!("- **E1** A.\n- **{number}** A. Not built: b.\n");
        found(&text).len()
    };
    assert_eq!((untested("S40"), untested("E40")), (0, 1));
}

#[test]
fn the_missing_parts_are_the_same_in_both_documents() {
    let threats = source("r.md", "- **S1** A. Not built: b.\n- **S2** C.\n");
    let told = |text: &str| {
        let found = not_yet(&threats, &source("s.md", text)).into_iter();
        found.map(|finding| finding.message).collect::<Vec<_>>()
    };
    assert_eq!(told("## Not yet\n\n* no b (S1)\n\n## More\n\nS2\n"), Vec::<String>::new());
    let both = [
        "`## Not yet` does not name S1, which is not built",
        "`## Not yet` names S2, which is built",
    ];
    assert_eq!(told("## Not yet\n\n* no c (S2)\n"), both);
    assert_eq!(told("# Security\n"), ["has no section `## Not yet`"]);
}

#[test]
fn a_duplicate_number_is_found() {
    assert_eq!(found("- **E1** A.\n- **E1** B.\n"), ["2: E1: was already in line 1"]);
}
