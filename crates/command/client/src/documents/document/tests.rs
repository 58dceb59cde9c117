//! Documents of all kinds, and files that are none.

use serde_json::json;

use super::*;

fn values(text: &str) -> Vec<Value> {
    parse("x", text, false).unwrap().into_iter().map(|one| one.value).collect()
}

#[test]
fn yaml_is_read_as_the_equivalent_json() {
    let text =
        "name: a\nlist: [1, 2.5, true, no, ~]\ntext: |\n  b\n  c\nref: ${KEY}\n---\nx: 010\n";
    let wanted = json!({ "name": "a", "list": [1, 2.5, true, "no", null], "text": "b\nc\n",
                         "ref": "${KEY}" });
    let read = values(text);
    assert_eq!((read.len(), &read[0]), (2, &wanted));
    assert_eq!(values("{\"a\": \"${scope.x}\"}"), [json!({ "a": "${scope.x}" })]);
}

#[test]
fn each_part_of_a_document_has_its_line_number() {
    let text = "name: a\nmcp:\n  servers:\n    git:\n      command: x\n      args:\n        \
                - one\n        - {a.b: 1,\n           c: 2}\n---\nname: b\n";
    let all = parse("x", text, false).unwrap();
    for (place, line) in [
        ("name", Some(1)),
        ("mcp.servers.git", Some(4)),
        ("mcp.servers.git.timeout", Some(4)),
        ("mcp.servers.git.args[0]", Some(7)),
        ("mcp.servers.git.args[1]", Some(8)),
        ("mcp.servers.git.args[1].a.b", Some(8)),
        ("mcp.servers.git.args[1].c", Some(9)),
        ("mcp.servers.git.args[9]", Some(6)),
        ("other", None),
        ("", None),
    ] {
        assert_eq!(all[0].line(place), line, "{place}");
    }
    assert_eq!(all[1].line("name"), Some(11));
    let json = parse("x", "{\n  \"name\": 1,\n\t\"mcp\": {\n\"a\": 2}}", true).unwrap();
    assert_eq!((json[0].line("mcp"), json[0].line("mcp.a")), (Some(3), Some(4)));
}

/// R-M4: an unreadable document is reported with its remedy.
#[test]
fn r_m4_an_unreadable_document_is_reported_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, content) in [
        ("agent.toml", &b"name = 'a'"[..]),
        ("latin.yaml", b"name: \xe4"),
        ("open.yaml", b"a: [1"),
        ("bare", b"{\"name\": \"a\"}"),
        ("AGENT.YML", b"name: a"),
    ] {
        fs::write(path(name), content).unwrap();
    }
    let told = |name: &str| read(&path(name)).unwrap_err();
    for (name, words) in [
        ("agent.toml", "are not read; write it as JSON or YAML"),
        ("latin.yaml", "stored as UTF-8"),
        ("open.yaml", "correct the document there"),
    ] {
        let error = told(name);
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(error.kind(), narthex_model::ErrorKind::Invalid);
    }
    let absent = told("nope.yaml");
    assert!(absent.to_string().contains("correct the name"), "{absent}");
    assert_eq!(absent.kind(), narthex_model::ErrorKind::NotFound);
    for name in ["bare", "AGENT.YML"] {
        assert_eq!(read(&path(name)).unwrap()[0].value, json!({ "name": "a" }), "{name}");
    }
    // Only files with a known ending are documents of a folder.
    fs::remove_file(path("latin.yaml")).unwrap();
    fs::remove_file(path("open.yaml")).unwrap();
    assert_eq!(read(folder.path()).unwrap().len(), 1);
}

#[test]
fn a_duplicate_key_is_reported_with_its_remedy() {
    let error = parse("x", "name: a\nname: b\n", false).unwrap_err().to_string();
    assert!(error.contains("`name` is given twice; keep one"), "{error}");
    assert!(!error.contains("Policy"), "{error}");
}

/// S30: no text of a document becomes another thing on its way through YAML.
#[test]
fn o83_any_text_survives_a_round_trip_through_yaml() {
    let texts = [
        "",
        "no",
        "true",
        "null",
        "~",
        "1",
        "1e3",
        "0x1f",
        "010",
        "1_000",
        ".5",
        "-",
        "? a",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "'a",
        "\"a",
        "{a",
        "[a",
        "a\nb",
        "\n a\n\n",
        " a ",
        "a\tb",
        "\u{1}",
        "\u{85}",
        "\u{2028}",
        "ä 🦀",
        "---",
        "...",
        "<<",
        "2026-11-22",
        "12:30:45",
        "${KEY}",
        "=",
        "y",
        "\u{feff}x",
        "a\r\nb",
        "\\n",
    ];
    for text in texts {
        let value = json!({ "k": text, text: [text, { text: text }] });
        yaml(&value).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    }
    let value =
        json!({ "a": [], "b": {}, "c": [[], [{}], null, -1, 1.5, 9_007_199_254_740_993_u64] });
    yaml(&value).unwrap();
}

#[test]
fn documents_that_parsers_could_read_differently_are_refused() {
    for (text, is_json) in [
        ("{\"a\": 1, \"a\": 2}", true),
        ("a: 1\na: 2\n", false),
        ("a: &x [1]\nb: {<<: 3\n", false),
        ("", false),
        ("{", true),
    ] {
        let error = parse("one.yaml", text, is_json).unwrap_err();
        assert!(error.to_string().starts_with("one.yaml: "), "{error}");
    }
    // Aliases that grow without end.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        let list = [below.as_str(); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let refused = parse("x", &bomb, false).unwrap_err().to_string();
    assert!(refused.starts_with("x: "), "{refused}");
}

/// Files of any shape are read within the room of a thread, or refused.
#[test]
fn files_of_any_shape_leave_the_process_alive() {
    use narthex_testkit::shapes::{Grammar, JSON, survives};

    const YAML: Grammar = Grammar {
        brackets: &[("[", "]"), ("{a: ", "}"), ("\"", "\""), ("'", "'"), ("- [", "]\n")],
        prefixes: &["- ", "? ", "&a ", "*a ", "!t ", "| ", "a: ", "-\n "],
        infixes: &[", ", "\n", "\n- ", ": ", "\n---\n", "<<: *a\n"],
        leaf: "a",
        around: ("", "\n"),
    };
    let indented = || {
        let nested = |depth: usize, key: &str| -> String {
            (0..depth).map(|level| format!("{}{key}\n", " ".repeat(level))).collect()
        };
        let aliases = |depth: usize| -> String {
            let line = |at: usize| format!("a{}: &a{} [*a{at}, *a{at}]\n", at + 1, at + 1);
            format!("a0: &a0 x\n{}", (0..depth).map(line).collect::<String>())
        };
        let mut all: Vec<_> = [10, 100, 1_000].map(|depth| nested(depth, "a:")).into();
        all.extend([10, 100, 1_000].map(|depth| nested(depth, "-")));
        all.extend([10, 40, 1_000].map(aliases));
        all
    };
    let test = "documents::document::tests::files_of_any_shape_leave_the_process_alive";
    survives(test, &[YAML, JSON], indented, 100_000, |text| {
        for is_json in [true, false] {
            if let Ok(documents) = parse("x", text, is_json) {
                for document in documents {
                    std::hint::black_box(document.line("a.a[0].a"));
                    drop(crate::documents::take_out(&document));
                    drop(yaml(&document.value));
                }
            }
        }
    });
}
