//! TOML.

use serde_json::json;

use super::*;

fn servers() -> Parent {
    Parent::map(["mcp_servers"])
}

const TABLE: &str = "[mcp_servers.narthex]\nurl = \"http://127.0.0.1:8080/mcp\"\nenv = { A = \
                     \"1\" }\n";

#[test]
fn a_table_is_added_below_its_siblings() {
    inserts(
        Format::Toml,
        &servers(),
        "model = \"x\" # best\n\n[mcp_servers.a]\ncommand = \"a\"\n# args = []\n\n\
         [mcp_servers.a.env]\nB = '2' # two\n\n# Profiles\n[profiles.p]\nx = 1\n",
        &format!(
            "model = \"x\" # best\n\n[mcp_servers.a]\ncommand = \"a\"\n# args = []\n\n\
             [mcp_servers.a.env]\nB = '2' # two\n\n{TABLE}\n# Profiles\n[profiles.p]\nx = 1\n"
        ),
    );
}

#[test]
fn a_table_is_added_at_the_end() {
    for before in ["a = 1\n", "# only\n", "a = 1\n\n[b]\nc = 2\n\n# end\n", "[mcp_servers]\n"] {
        inserts(Format::Toml, &servers(), before, &format!("{before}\n{TABLE}"));
    }
    inserts(Format::Toml, &servers(), "", TABLE);
    inserts(Format::Toml, &servers(), "a = 1", &format!("a = 1\n\n{}", TABLE.trim_end()));
    inserts(Format::Toml, &servers(), "a = 1\n\n\n", &format!("a = 1\n\n{TABLE}\n\n"));
}

/// Comments directly below a table and above an empty line belong to it, others to the next one.
#[test]
fn comments_stay_with_their_table() {
    inserts(
        Format::Toml,
        &servers(),
        "[mcp_servers.a]\nb = 1\n# of a\n\n[c]\n",
        &format!("[mcp_servers.a]\nb = 1\n# of a\n\n{TABLE}\n[c]\n"),
    );
    inserts(
        Format::Toml,
        &servers(),
        "[mcp_servers.a]\nb = 1\n# of c\n[c]\n",
        &format!("[mcp_servers.a]\nb = 1\n\n{TABLE}# of c\n[c]\n"),
    );
}

#[test]
fn inline_tables_stay_inline() {
    let item = "narthex = { url = \"http://127.0.0.1:8080/mcp\", env = { A = \"1\" } }";
    inserts(
        Format::Toml,
        &servers(),
        "mcp_servers = { a = { b = 1 } } # x\n",
        &format!("mcp_servers = {{ a = {{ b = 1 }}, {item} }} # x\n"),
    );
    inserts(Format::Toml, &servers(), "mcp_servers = {}\n", &format!("mcp_servers = {{{item}}}\n"));
}

#[test]
fn dotted_keys_stand_beside_a_new_table() {
    inserts(
        Format::Toml,
        &servers(),
        "mcp_servers.a.b = 1\nc = 2\n",
        &format!("mcp_servers.a.b = 1\nc = 2\n\n{TABLE}"),
    );
}

#[test]
fn entries_of_lists_have_headers() {
    let parent = Parent::list(["servers"], "name");
    let entry = "[[servers]]\nname = \"narthex\"\nurl = \"http://127.0.0.1:8080/mcp\"\nenv = { A \
                 = \"1\" }\n";
    let before = "[[servers]]\nname = \"a\"\n\n[servers.env]\nX = 1\n\n[z]\n";
    let after = format!("[[servers]]\nname = \"a\"\n\n[servers.env]\nX = 1\n\n{entry}\n[z]\n");
    inserts(Format::Toml, &parent, before, &after);
    inserts_anew(Format::Toml, &parent, "a = 1\n", &format!("a = 1\n\n{entry}"));
    let inline = "servers = [{name = \"narthex\"}]\n".replace(
        "{name = \"narthex\"}",
        "{ name = \"narthex\", url = \"http://127.0.0.1:8080/mcp\", env = { A = \"1\" } }",
    );
    inserts(Format::Toml, &parent, "servers = []\n", &inline);
    let mut document = read(Format::Toml, &after);
    let change = document.remove(&parent, "a").unwrap();
    assert_eq!(text_of(&document), format!("{entry}\n[z]\n"));
    undoes(&mut document, &change, &after);
    document.replace(&parent, "a", &json!({ "b": [1] })).unwrap();
    assert_eq!(text_of(&document), format!("[[servers]]\nname = \"a\"\nb = [1]\n\n{entry}\n[z]\n"));
}

#[test]
fn keys_are_added_to_their_table() {
    let insert = |parent: Parent, before: &str, after: &str| {
        let mut document = read(Format::Toml, before);
        let change = document.insert(&parent, "n", &json!([1, "x"])).unwrap();
        assert_eq!(text_of(&document), after);
        let mut removed = document.clone();
        removed.remove(&parent, "n").unwrap();
        undoes(&mut document, &change, before);
    };
    insert(Parent::map([]), "a = 1 # x\n\n[b]\n", "a = 1 # x\nn = [1, \"x\"]\n\n[b]\n");
    insert(Parent::map([]), "# x\n[b]\n", "n = [1, \"x\"]\n# x\n[b]\n");
    insert(Parent::map([]), "# x", "# x\nn = [1, \"x\"]");
    insert(Parent::map(["b"]), "[b]\n\n[c]\n", "[b]\nn = [1, \"x\"]\n\n[c]\n");
    insert(Parent::map(["b"]), "[b.c]\n", "[b.c]\n\n[b]\nn = [1, \"x\"]\n");
    insert(Parent::map(["b"]), "a = 1", "a = 1\n\n[b]\nn = [1, \"x\"]");
}

#[test]
fn a_removal_takes_all_parts_of_a_table() {
    removes(
        Format::Toml,
        &servers(),
        "[mcp_servers.narthex]\n# in\na = 1 # x\n\n[mcp_servers.narthex.env]\nB = 2\n# below\n\n\
         [z]\nq = 1\n\n[mcp_servers.narthex.more]\nc = '''\n[mcp_servers.narthex]\n'''",
        "# below\n\n[z]\nq = 1",
    );
    removes(
        Format::Toml,
        &servers(),
        "[mcp_servers]\na.x = 1\nnarthex.y = 1\nnarthex.z = 2 # z\nb = 3\n",
        "[mcp_servers]\na.x = 1\nb = 3\n",
    );
    removes(
        Format::Toml,
        &servers(),
        "mcp_servers = { \"narthex\" = 1, b = 2 }",
        "mcp_servers = { b = 2 }",
    );
}

#[test]
fn a_value_is_replaced_in_its_place() {
    replaces(
        Format::Toml,
        &servers(),
        "[mcp_servers.narthex]\nb = 1\n[mcp_servers.narthex.env]\nc = 1\n\n# next\n[d]\n",
        &json!({ "u": "v" }),
        "[mcp_servers.narthex]\nu = \"v\"\n\n# next\n[d]\n",
    );
    replaces(
        Format::Toml,
        &servers(),
        "mcp_servers.narthex = { a = 1 } # x\n",
        &json!({ "b": "\"" }),
        "mcp_servers.narthex = { b = \"\\\"\" } # x\n",
    );
    replaces(Format::Toml, &Parent::map([]), "narthex = 1 # x\n", &json!(2), "narthex = 2 # x\n");
}

#[test]
fn values_are_read_in_order() {
    let text = "z = 1\na.b = 1979-05-27T07:32:00Z\n'c d' = [{ x = 0x10, y = inf }]\n\n[t.\"é\"]\n\
                s = \"\"\"\nl\\u00e4ng\"\"\"\n[[u]]\n[u.v]\nw = 1.5\n[[u]]\nw = true\n";
    let document = read(Format::Toml, text);
    assert_eq!(
        document.value(&[]).unwrap().unwrap().to_string(),
        json!({
            "z": 1, "a": { "b": "1979-05-27T07:32:00Z" }, "c d": [{ "x": 16, "y": "inf" }],
            "t": { "é": { "s": "läng" } }, "u": [{ "v": { "w": 1.5 } }, { "w": true }]
        })
        .to_string()
    );
    assert_eq!(document.value(&["t", "x"]).unwrap(), None);
}

#[test]
fn faults_and_values_without_toml_are_refused() {
    assert!(
        fault(Format::Toml, "a = 1\nb = 2\na = 3\n").starts_with("line 3, column 1: duplicate key")
    );
    assert!(fault(Format::Toml, "a = 1\n[b\n").starts_with("line 2, column "));
    let mut document = read(Format::Toml, "a = 1\n");
    let error = document.insert(&servers(), "x", &json!({ "y": null })).unwrap_err();
    let expected = "the value for `x` has a null, which TOML does not have; give another value";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_undo_keeps_what_others_wrote() {
    let before = "[mcp_servers.a]\nb = 1\n";
    let undo = |from: &str, to: &str, expected| {
        undoes_around(Format::Toml, &servers(), before, [from, to], expected);
    };
    undo(
        "\"1\" }\n",
        "\"1\" }\n\n[mcp_servers.c]\nd = 1\n",
        Ok("[mcp_servers.a]\nb = 1\n\n[mcp_servers.c]\nd = 1\n"),
    );
    undo("\"1\" }\n", "\"1\" }\n# of mine\n", Ok("[mcp_servers.a]\nb = 1\n# of mine\n"));
    undo(
        "\n[mcp_servers.n",
        "\n# above\n[mcp_servers.n",
        Ok("[mcp_servers.a]\nb = 1\n\n# above\n"),
    );
    undo("\"1\" }\n", "\"1\" }\nenabled = false\n", Err(Undone::Changed));
    undo("url", "# in\nurl", Err(Undone::Changed));
}

/// An entry that others have written in is taken out with all its tables. A comment between the
/// tables stays, and one in a table keeps the entry.
#[test]
fn an_edited_entry_is_taken_out_with_its_tables() {
    let before = "[mcp_servers.a]\nb = 1\n";
    let taken = |table: &str| {
        let mut document = read(Format::Toml, before);
        let change = document.insert(&servers(), "narthex", &server()).unwrap();
        let edited = text_of(&document).replacen("env = { A = \"1\" }\n", table, 1);
        let mut document = read(Format::Toml, &edited);
        assert_eq!(document.undo(&change).unwrap(), Undone::Changed);
        let outcome = document.take_out(&change).unwrap();
        (outcome, text_of(&document), edited)
    };
    let env = "[mcp_servers.narthex.env]\nA = \"2\"\n";
    let far = format!("\n{env}\n[z]\nq = 1\n\n[mcp_servers.narthex.tools.x]\nb = 1\n");
    for (table, left) in [
        (format!("\n{env}"), before.to_owned()),
        (far, format!("{before}\n[z]\nq = 1\n")),
        (format!("\n# mine\n{env}"), format!("{before}\n# mine\n")),
    ] {
        let (outcome, text, _) = taken(&table);
        assert_eq!((outcome, text), (Undone::Done, left));
    }
    let (outcome, text, edited) = taken(&format!("\n{}", env.replace("env]", "env] # mine")));
    assert_eq!((outcome, text), (Undone::Changed, edited));
}
