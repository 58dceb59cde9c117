//! JSON, with and without comments.

use serde_json::json;

use super::*;

fn servers() -> Parent {
    Parent::map(["mcpServers"])
}

#[test]
fn a_member_is_appended_in_the_indentation_of_the_file() {
    inserts(
        Format::Json,
        &servers(),
        "{\n    \"mcpServers\": {\n        \"a\": {}\n    },\n    \"b\": [1,2]\n}\n",
        "{\n    \"mcpServers\": {\n        \"a\": {},\n        \"narthex\": {\n            \
         \"url\": \"http://127.0.0.1:8080/mcp\",\n            \"env\": {\n                \
         \"A\": \"1\"\n            }\n        }\n    },\n    \"b\": [1,2]\n}\n",
    );
}

#[test]
fn an_empty_parent_gets_lines() {
    inserts(
        Format::Json,
        &servers(),
        "{\n\t\"mcpServers\": {}\n}",
        "{\n\t\"mcpServers\": {\n\t\t\"narthex\": {\n\t\t\t\"url\": \
         \"http://127.0.0.1:8080/mcp\",\n\t\t\t\"env\": {\n\t\t\t\t\"A\": \"1\"\n\t\t\t}\n\t\t\
         }\n\t}\n}",
    );
}

#[test]
fn a_text_on_one_line_stays_on_one_line() {
    inserts(
        Format::Json,
        &servers(),
        "{\"mcpServers\":{\"a\":1}}",
        "{\"mcpServers\":{\"a\":1,\"narthex\":{\"url\":\"http://127.0.0.1:8080/mcp\",\
         \"env\":{\"A\":\"1\"}}}}",
    );
    inserts(
        Format::Json,
        &servers(),
        "{ \"mcpServers\": {} }",
        "{ \"mcpServers\": {\"narthex\": { \"url\": \"http://127.0.0.1:8080/mcp\", \"env\": \
         { \"A\": \"1\" } }} }",
    );
}

#[test]
fn parents_are_created_and_taken_back() {
    let after = "{\n  \"mcpServers\": {\n    \"narthex\": {\n      \"url\": \
                 \"http://127.0.0.1:8080/mcp\",\n      \"env\": {\n        \"A\": \"1\"\n      \
                 }\n    }\n  }\n}";
    inserts_anew(Format::Json, &servers(), "{}", after);
    inserts_anew(Format::Json, &servers(), "{\n}", after);
    inserts_anew(Format::Json, &servers(), "", &format!("{after}\n"));
    let deep = Parent::map(["amp", "mcp", "servers"]);
    let mut document = read(Format::Json, "{\"x\": 1}\n");
    document.insert(&deep, "a", &json!(1)).unwrap();
    assert_eq!(
        text_of(&document),
        "{\"x\": 1, \"amp\": { \"mcp\": { \"servers\": { \"a\": 1 } } }}\n"
    );
}

#[test]
fn comments_and_trailing_commas_are_kept() {
    let parent = Parent::map(["s"]);
    let insert = |before: &str, after: &str| {
        let mut document = read(Format::Jsonc, before);
        let change = document.insert(&parent, "n", &json!(1)).unwrap();
        assert_eq!(text_of(&document), after);
        let mut removed = document.clone();
        removed.remove(&parent, "n").unwrap();
        assert_eq!(text_of(&removed), before);
        undoes(&mut document, &change, before);
    };
    insert(
        "{\n  \"s\": {\n    \"a\": 1, // one\n    // \"b\": 2\n  } // end\n}",
        "{\n  \"s\": {\n    \"a\": 1, // one\n    // \"b\": 2\n    \"n\": 1,\n  } // end\n}",
    );
    insert(
        "{\n  \"s\": {\n    \"a\": 1 // one\n    /* two */\n  }\n}",
        "{\n  \"s\": {\n    \"a\": 1, // one\n    /* two */\n    \"n\": 1\n  }\n}",
    );
    insert(
        "// top\n{\n  \"s\": {\n    // none\n  },\n}\n// end",
        "// top\n{\n  \"s\": {\n    // none\n    \"n\": 1\n  },\n}\n// end",
    );
    insert("{\n  \"s\": { /* none */ }\n}", "{\n  \"s\": { /* none */ \n    \"n\": 1\n  }\n}");
    insert("{\n  \"s\": {\n\n  }\n}", "{\n  \"s\": {\n    \"n\": 1\n\n  }\n}");
}

#[test]
fn a_removal_leaves_the_neighbours() {
    let remove = |before: &str, after: &str| {
        removes(Format::Jsonc, &Parent::map([]), before, after);
    };
    remove(
        "{\n  \"a\": 1, // a\n  // n\n  \"narthex\": 2, // mine\n  // c\n  \"c\": 3\n}",
        "{\n  \"a\": 1, // a\n  // n\n   // mine\n  // c\n  \"c\": 3\n}",
    );
    remove("{\n  \"narthex\": {\n  },\n  \"c\": 3\n}", "{\n  \"c\": 3\n}");
    remove("{\n  \"a\": 1, // a\n  \"narthex\": 2}", "{\n  \"a\": 1 // a\n  }");
    remove("{\n  \"a\": 1,\n  \"narthex\": 2}", "{\n  \"a\": 1}");
    remove("{ \"a\": 1, \"narthex\": 2 }", "{ \"a\": 1 }");
    remove("{ \"narthex\": 2, \"b\": 3 }", "{ \"b\": 3 }");
    remove("{ \"a\": 1, \"narthex\": 2, \"b\": 3 }", "{ \"a\": 1, \"b\": 3 }");
    remove(
        "{ \"a\": 1 /* a */, /* n */ \"narthex\": 2 /* m */ }",
        "{ \"a\": 1 /* a */ /* n */  /* m */ }",
    );
    remove("{ \"a\": 1, \"narthex\": 2 /* m */, \"b\": 3 }", "{ \"a\": 1,  /* m */ \"b\": 3 }");
    remove("{\n  \"narthex\": 2, // m\n}", "{\n   // m\n}");
    remove("{\"a\": 1, \"narthex\": 2,}", "{\"a\": 1,}");
    remove("{\n  \"a\": 1\n  , \"narthex\": 2\n}", "{\n  \"a\": 1\n  \n}");
}

#[test]
fn a_value_is_replaced_in_its_place() {
    replaces(
        Format::Jsonc,
        &servers(),
        "{\n  \"mcpServers\": {\n    \"narthex\" : { \"a\": 1 }, // n\n    \"b\": 1\n  }\n}",
        &json!({ "c": [true] }),
        "{\n  \"mcpServers\": {\n    \"narthex\" : {\n      \"c\": [\n        true\n      ]\n    \
         }, // n\n    \"b\": 1\n  }\n}",
    );
}

#[test]
fn entries_of_lists_have_names() {
    let parent = Parent::list(["servers"], "name");
    let before = "{\n  \"servers\": [\n    { \"name\": \"a\" }\n  ]\n}";
    let mut document = read(Format::Json, before);
    let change = document.insert(&parent, "b", &json!({ "url": "u", "name": "x" })).unwrap();
    assert_eq!(
        text_of(&document),
        "{\n  \"servers\": [\n    { \"name\": \"a\" },\n    {\n      \"name\": \"b\",\n      \
         \"url\": \"u\"\n    }\n  ]\n}"
    );
    let names: Vec<_> = document.entries(&parent).unwrap().into_iter().map(|it| it.0).collect();
    assert_eq!(names, ["a", "b"]);
    undoes(&mut document, &change, before);
    document.insert(&parent, "b", &json!({})).unwrap();
    document.remove(&parent, "a").unwrap();
    document.replace(&parent, "b", &json!({ "c": 1 })).unwrap();
    assert_eq!(document.value(&["servers"]).unwrap().unwrap(), json!([{ "name": "b", "c": 1 }]));
    let twice = "{\"servers\": [\n{\"name\": \"a\"},\n{\"name\": \"a\"}]}";
    let error = read(Format::Json, twice).remove(&parent, "a").unwrap_err();
    assert!(matches!(error, EditError::Ambiguous { line: 3, .. }), "{error}");
}

#[test]
fn faults_have_lines() {
    for (text, expected) in [
        ("{\n  \"a\": 1,\n  \"a\": 2\n}", "line 3, column 3: the key `a` exists already in line 2"),
        ("{\n  \"ä\": 1 // x\n}", "line 2, column 10: Comments are not allowed"),
        ("{\"a\": 1,}", "line 1, column 8: Trailing commas are not allowed"),
        ("{\"a\": 01}", "line 1, column 8: "),
        ("{\"a\": 'b'}", "line 1, column 7: "),
        ("{a: 1}", "line 1, column 2: "),
        ("{\"a\" 1}", "line 1, column 6: "),
        ("{} {}", "line 1, column 4: "),
        ("{", "line 1, column 1: "),
    ] {
        let fault = fault(Format::Json, text);
        assert!(fault.starts_with(expected), "{fault}");
        assert!(fault.ends_with("; correct the JSON there, then try again"), "{fault}");
    }
    let deep = "[".repeat(100_000);
    assert!(fault(Format::Json, &deep).contains("depth"));
}

#[test]
fn an_undo_keeps_what_others_wrote() {
    let before = "{\n  \"mcpServers\": {\n    \"a\": 1\n  }\n}\n";
    let undo = |from: &str, to: &str, expected| {
        undoes_around(Format::Jsonc, &servers(), before, [from, to], expected);
    };
    // Another entry below, directly.
    undo(
        "\"1\"\n      }\n    }",
        "\"1\"\n      }\n    },\n    \"b\": 2",
        Ok("{\n  \"mcpServers\": {\n    \"a\": 1,\n    \"b\": 2\n  }\n}\n"),
    );
    // The entry above is gone.
    undo("\"a\": 1,\n    ", "", Ok("{\n  \"mcpServers\": {}\n}\n"));
    // A comment beside, and one within.
    undo(
        "\"narthex\"",
        "// keep\n    \"narthex\"",
        Ok("{\n  \"mcpServers\": {\n    \"a\": 1\n    // keep\n  }\n}\n"),
    );
    undo("\"url\"", "/* mine */ \"url\"", Err(Undone::Changed));
    undo("8080", "8081", Err(Undone::Changed));
    // Another program has written the whole file anew.
    let compact = "{\"mcpServers\":{\"a\":1,\"narthex\":{\"url\":\"http://127.0.0.1:8080/mcp\",\
                   \"env\":{\"A\":\"1\"}}}}";
    let mut document = read(Format::Jsonc, before);
    let change = document.insert(&servers(), "narthex", &server()).unwrap();
    let mut document = read(Format::Jsonc, compact);
    assert_eq!(document.undo(&change).unwrap(), Undone::Done);
    assert_eq!(text_of(&document), "{\"mcpServers\":{\"a\":1}}");
}

#[test]
fn a_created_parent_stays_if_others_use_it() {
    let undo = |before: &str, from: &str, to: &str, expected: &str| {
        undoes_around(Format::Jsonc, &servers(), before, [from, to], Ok(expected));
    };
    undo(
        "{}",
        "\"narthex\"",
        "\"b\": 2,\n    \"narthex\"",
        "{\n  \"mcpServers\": {\n    \"b\": 2\n  }\n}",
    );
    undo(
        "{}",
        "\"narthex\"",
        "// mine\n    \"narthex\"",
        "{\n  \"mcpServers\": {\n    // mine\n  }\n}",
    );
    undo("{}", "\n  \"mcp", "\n  \"x\": 1,\n\n  \"mcp", "{\n  \"x\": 1\n}");
    undo("", "\n  \"mcp", "\n  \"x\": 1,\n  \"mcp", "{\n  \"x\": 1\n}\n");
    undo("", "\n  \"mcp", "\n\n  \"mcp", "");
}

/// A removed entry comes back at its place with its comments, also when others edited elsewhere.
#[test]
fn a_removal_is_undone_around_others() {
    let parent = Parent::map([]);
    let before = "{\n  \"a\": 1,\n  \"n\": [1, /* in */ 2],\n  \"c\": 3,\n  \"d\": 4\n}\n// end\n";
    let mut document = read(Format::Jsonc, before);
    let change = document.remove(&parent, "n").unwrap();
    let edited = text_of(&document).replace("// end", "// the end of all of this");
    let mut document = read(Format::Jsonc, &edited);
    assert_eq!(document.undo(&change).unwrap(), Undone::Done);
    assert_eq!(text_of(&document), before.replace("// end", "// the end of all of this"));
    let mut document = read(Format::Jsonc, "{\n  \"c\": 4\n}\n");
    assert_eq!(document.undo(&change).unwrap(), Undone::Done);
    assert_eq!(text_of(&document), "{\n  \"n\": [1, /* in */ 2],\n  \"c\": 4\n}\n");
    assert_eq!(document.undo(&change).unwrap(), Undone::Already);
    // Without the one behind it, it is the last one. A comment stays with its member.
    for (now, back) in [
        ("{\n  \"d\": 4\n}\n", "{\n  \"d\": 4,\n  \"n\": [1, /* in */ 2]\n}\n"),
        ("{\n  // c\n  \"c\": 4\n}\n", "{\n  \"n\": [1, /* in */ 2],\n  // c\n  \"c\": 4\n}\n"),
        ("{\"d\":4,\"c\":4}", "{\"d\":4,\"n\": [1, /* in */ 2],\"c\":4}"),
    ] {
        let mut document = read(Format::Jsonc, now);
        assert_eq!(document.undo(&change).unwrap(), Undone::Done);
        assert_eq!(text_of(&document), back);
    }
    let mut document = read(Format::Jsonc, "{ \"n\": 7 }");
    assert_eq!(document.undo(&change).unwrap(), Undone::Changed);
}

/// A removed entry comes back before the next one, also if that one has a comment beside it.
#[test]
fn a_removal_beside_comments_is_undone_in_order() {
    let parent = Parent::map([]);
    let undone = |before: &str, now: &str| {
        let change = read(Format::Jsonc, before).remove(&parent, "n").unwrap();
        let mut document = read(Format::Jsonc, now);
        assert_eq!(document.undo(&change).unwrap(), Undone::Done);
        text_of(&document)
    };
    // Others have changed all around, so no surroundings lead to the place.
    for (before, now, back) in [
        (
            "{\n  \"a\": 1, // a\n  \"n\": 2,\n  // c\n  \"c\": 3\n}",
            "{\n  \"a\": 10, // a!\n  // c!\n  // d\n  \"c\": 30\n}",
            "{\n  \"a\": 10, // a!\n  \"n\": 2,\n  // c!\n  // d\n  \"c\": 30\n}",
        ),
        (
            "{\n  \"a\": 1,\n  \"n\": 2,\n  /* c */ \"c\": 3\n}",
            "{\n  \"a\": 10,\n  /* c! */ \"c\": 30\n}",
            "{\n  \"a\": 10,\n  \"n\": 2,\n  /* c! */ \"c\": 30\n}",
        ),
        (
            "{ \"a\": 1 /* a */, \"n\": 2, /* c */ \"c\": 3 }",
            "{ \"a\": 10 /* a! */, /* c! */ \"c\": 30 }",
            "{ \"a\": 10 /* a! */, \"n\": 2, /* c! */ \"c\": 30 }",
        ),
        // The comment above the removed entry stays above it.
        (
            "{\n  \"a\": 1,\n  // n\n  \"n\": 2,\n  // c\n  \"c\": 3\n}",
            "{\n  \"a\": 10,\n  // n\n  // c!\n  \"c\": 30\n}",
            "{\n  \"a\": 10,\n  // n\n  \"n\": 2,\n  // c!\n  \"c\": 30\n}",
        ),
        (
            "{\n  // a comment that is longer than what is stored of it\n  \"n\": 2,\n  \
             \"c\": 3\n}",
            "{\n  // a comment that is longer than what is stored of it\n  // c\n  \
             \"c\": 30\n}",
            "{\n  // a comment that is longer than what is stored of it\n  \"n\": 2,\n  // c\n  \
             \"c\": 30\n}",
        ),
    ] {
        assert_eq!(undone(before, now), back);
    }
}

/// A last member gets the comma back that its owner has put behind it, and the members their order.
#[test]
fn a_trailing_comma_comes_back_beside_edits_of_others() {
    let parent = Parent::map(["s"]);
    let before = "{\n  \"s\": {\n    \"x\": 1,\n    \"y\": 2,\n  },\n}\n";
    let mut document = read(Format::Jsonc, before);
    let first = document.remove(&parent, "x").unwrap();
    let second = document.remove(&parent, "y").unwrap();
    let inserted = document.insert(&parent, "narthex", &json!(3)).unwrap();
    // Another program has written the file anew, with members of its own around.
    let now = "{\n  \"a\": 0,\n  \"s\": {\n    \"narthex\": 3\n  },\n  \"b\": 0,\n}\n";
    let undone = |now: &str| {
        let mut document = read(Format::Jsonc, now);
        for change in [&inserted, &second, &first] {
            assert_eq!(document.undo(change).unwrap(), Undone::Done);
        }
        document
    };
    let document = undone(now);
    let value = read(Format::Jsonc, &text_of(&document)).value(&["s"]).unwrap();
    assert_eq!(value, Some(json!({ "x": 1, "y": 2 })));
    let text = text_of(&document);
    let (x, y) = (text.find("\"x\": 1,").unwrap(), text.find("\"y\": 2,").unwrap());
    assert!(x < y, "{text}");
    // A text without such commas gets none.
    let strict = text_of(&undone(&now.replace("0,\n}", "0\n}")));
    assert!(serde_json::from_str::<Value>(&strict).is_ok(), "{strict}");
}
