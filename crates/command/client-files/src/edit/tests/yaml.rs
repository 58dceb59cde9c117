//! YAML.

use serde_json::json;

use super::*;

fn extensions() -> Parent {
    Parent::map(["extensions"])
}

fn servers() -> Parent {
    Parent::list(["mcpServers"], "name")
}

const MEMBER: &str = "  narthex:\n    url: http://127.0.0.1:8080/mcp\n    env:\n      A: \"1\"\n";

const ENTRY: &str = "- name: narthex\n  url: http://127.0.0.1:8080/mcp\n  env:\n    A: \"1\"\n";

/// The lines with spaces before each.
fn indented(lines: &str, by: usize) -> String {
    lines.lines().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
}

#[test]
fn a_member_is_appended_to_a_block() {
    inserts(
        Format::Yaml,
        &extensions(),
        "# top\nextensions:\n  a: # of a\n    type: stdio\n    # more\n\n# next\nb: 1\n",
        &format!(
            "# top\nextensions:\n  a: # of a\n    type: stdio\n    # more\n{MEMBER}\n# next\nb: 1\n"
        ),
    );
    inserts(
        Format::Yaml,
        &extensions(),
        "---\nextensions:\n    a:\n        b: |\n            text\n\n    # end\n...\n",
        "---\nextensions:\n    a:\n        b: |\n            text\n    narthex:\n        url: \
             http://127.0.0.1:8080/mcp\n        env:\n            A: \"1\"\n\n    # end\n...\n",
    );
    inserts(
        Format::Yaml,
        &extensions(),
        "extensions:\n  a: 1",
        &format!("extensions:\n  a: 1\n{}", MEMBER.trim_end()),
    );
}

#[test]
fn an_entry_is_appended_to_a_list() {
    inserts(
        Format::Yaml,
        &servers(),
        "mcpServers:\n  - name: a\n    args:\n      - x\n    # of a\nmodels: []\n",
        &format!(
            "mcpServers:\n  - name: a\n    args:\n      - x\n    # of a\n{}models: []\n",
            indented(ENTRY, 2)
        ),
    );
    inserts(
        Format::Yaml,
        &servers(),
        "mcpServers:\n- name: a\n# models\nmodels: []\n",
        &format!("mcpServers:\n- name: a\n{ENTRY}# models\nmodels: []\n"),
    );
    inserts(
        Format::Yaml,
        &servers(),
        "x:\n- 1\nmcpServers: []\n",
        &format!("x:\n- 1\nmcpServers:\n{ENTRY}"),
    );
}

#[test]
fn an_empty_parent_gets_lines() {
    inserts(
        Format::Yaml,
        &extensions(),
        "a: 1\nextensions: {} # none\nb: 1\n",
        &format!("a: 1\nextensions: # none\n{MEMBER}b: 1\n"),
    );
    inserts_anew(
        Format::Yaml,
        &extensions(),
        "extensions:\n  # none\nb: 1\n",
        &format!("extensions:\n  # none\n{MEMBER}b: 1\n"),
    );
    inserts_anew(
        Format::Yaml,
        &extensions(),
        "extensions: ~",
        &format!("extensions:\n{}", MEMBER.trim_end()),
    );
}

#[test]
fn parents_are_created_and_taken_back() {
    let whole = format!("extensions:\n{MEMBER}");
    for before in ["", "# only\n", "a: 1\n", "---\n"] {
        inserts_anew(Format::Yaml, &extensions(), before, &format!("{before}{whole}"));
    }
    inserts_anew(Format::Yaml, &extensions(), "{}\n", &whole);
    inserts_anew(Format::Yaml, &extensions(), "---\n...\n", &format!("---\n{whole}...\n"));
    let list = format!("mcpServers:\n{}", indented(ENTRY, 2));
    inserts_anew(Format::Yaml, &servers(), "a: 1", &format!("a: 1\n{}", list.trim_end()));
}

#[test]
fn brackets_stay_brackets() {
    inserts(
        Format::Yaml,
        &extensions(),
        "extensions: { a: {b: 1} }\n",
        "extensions: { a: {b: 1}, narthex: { \"url\": \"http://127.0.0.1:8080/mcp\", \"env\": { \
         \"A\": \"1\" } } }\n",
    );
    replaces(
        Format::Yaml,
        &extensions(),
        "extensions: { narthex: {b: 1}, c: 1 }\n",
        &json!("x y"),
        "extensions: { narthex: \"x y\", c: 1 }\n",
    );
}

#[test]
fn a_removal_takes_lines() {
    removes(
        Format::Yaml,
        &extensions(),
        "extensions:\n  # n\n  narthex:\n    a: 1 # x\n    # in\n    b: |\n      \
         t\n\n  # c\n  c: 2\n",
        "extensions:\n  # n\n\n  # c\n  c: 2\n",
    );
    removes(Format::Yaml, &extensions(), "extensions:\n  narthex: 1\n", "extensions: {}\n");
    removes(Format::Yaml, &extensions(), "extensions:\n  narthex: 1", "extensions: {}");
    removes(
        Format::Yaml,
        &servers(),
        "mcpServers:\n  - name: narthex\n    a: 1\n  - a: 1\n    name: c\n",
        "mcpServers:\n  - a: 1\n    name: c\n",
    );
    removes(
        Format::Yaml,
        &servers(),
        "mcpServers: # x\n  - name: narthex\nb: 1\n",
        "mcpServers: [] # x\nb: 1\n",
    );
}

#[test]
fn a_value_is_replaced_in_its_place() {
    replaces(
        Format::Yaml,
        &extensions(),
        "extensions:\n  narthex:\n    a: 1\n  # c\n  c: 2\n",
        &json!({ "b": ["x"] }),
        "extensions:\n  narthex:\n    b:\n      - x\n  # c\n  c: 2\n",
    );
    replaces(
        Format::Yaml,
        &Parent::map([]),
        "narthex: 'a' # why\nb: 1\n",
        &json!(true),
        "narthex: true # why\nb: 1\n",
    );
    replaces(
        Format::Yaml,
        &servers(),
        "mcpServers:\n- name: narthex\n  a: 1\n- name: b\n",
        &json!({ "c": "" }),
        "mcpServers:\n- name: narthex\n  c: \"\"\n- name: b\n",
    );
}

/// Anchors elsewhere do no harm; an edit that would lose one is refused.
#[test]
fn anchors_and_aliases_are_read_and_kept() {
    let text = "base: &b\n  x: 1\nextensions:\n  a: *b\n  n: &n 1\nother: [*n, *b]\n";
    let mut document = read(Format::Yaml, text);
    assert_eq!(document.value(&["other"]).unwrap().unwrap(), json!([1, { "x": 1 }]));
    let change = document.insert(&extensions(), "narthex", &server()).unwrap();
    undoes(&mut document, &change, text);
    let error = document.remove(&extensions(), "n").unwrap_err();
    let expected = "an edit of `n` in `extensions` would change another part of the file; edit \
                    the file by hand";
    assert_eq!(error.to_string(), expected);
    let error = document.replace(&extensions(), "n", &json!(2)).unwrap_err();
    assert!(error.to_string().starts_with("line 5, column 9: the value has an anchor"), "{error}");
    let error = document.insert(&Parent::map(["extensions", "a"]), "b", &json!(1)).unwrap_err();
    assert!(error.to_string().contains("is an alias, where a map of keys is needed"), "{error}");
    let change = document.remove(&extensions(), "a").unwrap();
    undoes(&mut document, &change, text);
}

#[test]
fn aliases_of_aliases_are_not_multiplied() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(8);
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let document = read(Format::Yaml, &text);
    let error = document.value(&["a8"]).unwrap_err();
    assert!(error.to_string().contains("its aliases make the value too large"), "{error}");
    let circle = read(Format::Yaml, "a: &a [*a]\n");
    assert!(circle.value(&["a"]).is_err());
}

#[test]
fn faults_have_lines() {
    for (text, expected) in [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4, column 3: the key `c` exists already in line 3"),
        ("a: 1\n---\nb: 1\n", "line 2, column 1: a second document begins"),
        ("a: [1\nb: 2\n", "line "),
        ("a: *x\n", "line 1, column "),
        ("? [a]\n: 1\n", "line 1, column 3: the key is a list"),
        ("\ta: 1\n  b: 2", "line "),
    ] {
        let fault = fault(Format::Yaml, text);
        assert!(fault.starts_with(expected), "{fault}");
    }
    fault(Format::Yaml, &"[".repeat(100_000));
    fault(Format::Yaml, &"- ".repeat(100_000));
}

#[test]
fn forms_that_cannot_be_cut_by_lines_are_refused() {
    for text in ["? extensions\n: a: 1\n", "extensions:\n  ? a\n  : 1\n", "- extensions: 1\n"] {
        let mut document = read(Format::Yaml, text);
        let error = document.insert(&extensions(), "narthex", &server()).unwrap_err();
        assert!(error.to_string().starts_with("line "), "{error}");
        assert_eq!(text_of(&document), text);
    }
    let mut document = read(Format::Yaml, "mcpServers:\n  -\n    name: a\n");
    let error = document.insert(&servers(), "narthex", &server()).unwrap_err();
    assert!(error.to_string().contains("does not begin on the line of its dash"), "{error}");
}

#[test]
fn an_undo_keeps_what_others_wrote() {
    let undo = |before: &str, from: &str, to: &str, expected| {
        undoes_around(Format::Yaml, &extensions(), before, [from, to], expected);
    };
    let before = "extensions:\n  a: 1\n";
    undo(before, "\"1\"\n", "\"1\"\n  b: 2\n", Ok("extensions:\n  a: 1\n  b: 2\n"));
    undo(before, "\"1\"\n", "\"1\"\n  # b\n", Ok("extensions:\n  a: 1\n  # b\n"));
    undo(before, "\"1\"\n", "\"1\" # mine\n", Err(Undone::Changed));
    undo(before, "8080", "8081", Err(Undone::Changed));
    undo("", "\"1\"\n", "\"1\"\n  b: 2\n", Ok("extensions:\n  b: 2\n"));
    undo("", "\"1\"\n", "\"1\"\nb: 2\n", Ok("b: 2\n"));
    undo("extensions: {}\n", "\"1\"\n", "\"1\"\nb: 2\n", Ok("extensions: {}\nb: 2\n"));
}
