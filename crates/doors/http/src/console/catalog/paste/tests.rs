//! Texts of other programs, read into the form.

use serde_json::json;

use super::*;

fn all(words: &[Words]) -> String {
    words.iter().map(Words::as_str).collect::<Vec<_>>().join("\n")
}

fn text_of(paste: &Paste) -> &str {
    match &paste.text.input {
        narthex_console::parts::form::Input::Area { value, .. } => value,
        other => panic!("{other:?}"),
    }
}

/// D7: an entry fills the form in, and each rewritten and each lost part is told.
#[test]
fn d7_an_entry_fills_the_form_in() {
    let mut draft = Draft { description: "typed".to_owned(), ..Draft::default() };
    let text = r#"{ "servers": { "docs": { "url": "https://docs.example.com/${env:HOST_PATH}",
        "headers": { "x-team": "${env:TEAM} a" }, "gallery": true } } }"#;
    let paste = read(&mut draft, text, None, false);
    let taken = paste.taken.as_ref().unwrap();
    assert_eq!((&*draft.id, draft.shape), ("docs", Shape::Url));
    assert_eq!(draft.url, "https://docs.example.com/${env.HOST_PATH}");
    assert_eq!(draft.values[0].key, "x-team");
    assert_eq!(draft.description, "typed");
    assert!(taken.from.as_str().starts_with("This is a text of VS Code."), "{taken:?}");
    let notices = all(&taken.notices);
    assert!(
        notices.contains("is read as `https://docs.example.com/${env.HOST_PATH}`"),
        "{notices}"
    );
    assert!(taken.faults.is_empty() && text_of(&paste).is_empty());
}

/// S27: a literal secret is neither in the form nor shown again.
#[test]
fn s27_a_literal_secret_is_not_shown_again() {
    let mut draft = Draft::default();
    for text in [
        r#"{ "mcpServers": { "docs": { "command": "x", "env": { "API_KEY": "canary-1234" } } } }"#,
        r#"{ "id": "docs", "command": "x", "default_config": { "API_KEY": "canary-value-1" } }"#,
        r#"{ "mcpServers": { "docs": { "command": "x", "env": { "API_KEY": "canary-1234 } } } }"#,
        r#"{ "mcpServers": { "a": { "command": "x", "args": ["--token", "canary-value-1"] } } }"#,
    ] {
        let paste = read(&mut draft, text, None, false);
        assert!(!format!("{paste:?} {draft:?}").contains("canary"), "{paste:?}");
    }
}

/// Of several servers a person takes one; the text stays for that.
#[test]
fn one_of_several_servers_is_taken() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" },
        "c": { "command": "z", "args": ["${workspaceFolder}"] } } }"#;
    let mut draft = Draft::default();
    let paste = read(&mut draft, text, None, false);
    let taken = paste.taken.as_ref().unwrap();
    let choices: Vec<_> = taken.choices.iter().map(|(value, _)| value.as_str()).collect();
    assert_eq!(choices, ["take.0", "take.1"]);
    assert!(all(&taken.faults).contains("mcpServers.c.args[0]"), "{taken:?}");
    assert_eq!((text_of(&paste), draft), (text, Draft::default()));
    let mut draft = Draft::default();
    read(&mut draft, text, Some(1), false);
    assert_eq!((&*draft.id, &*draft.command), ("b", "y"));
}

/// The id of a stored entry stays, and a manifest adds keys.
#[test]
fn a_manifest_adds_keys() {
    let mut draft = Draft { id: "docs".to_owned(), ..Draft::default() };
    let manifest = json!({ "env": { "TOKEN": { "kind": "secret" },
        "PLACE": { "kind": "value", "required": false } }, "tool_scopes": { "a": ["b"] },
        "other": 1 });
    let paste = read(&mut draft, &manifest.to_string(), None, true);
    let rows: Vec<_> =
        draft.keys.iter().map(|row| (&*row.name, row.is_secret, row.is_required)).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.contains(&("TOKEN", true, true)) && rows.contains(&("PLACE", false, false)));
    assert!(draft.rest.contains("tool_scopes") && draft.is_closed);
    assert!(all(&paste.taken.unwrap().notices).contains("other: left out"));
    let paste = read(&mut draft, r#"{ "id": "mail", "command": "x" }"#, None, true);
    assert_eq!(draft.id, "docs");
    assert!(all(&paste.taken.unwrap().notices).contains("id: not taken over"));
}
