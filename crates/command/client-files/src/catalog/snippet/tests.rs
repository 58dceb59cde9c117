//! Pasted texts of several clients, and of narthex.

use super::*;

fn servers(text: &str) -> (&'static str, Pasted) {
    let found = snippet(text).unwrap();
    match found.taken {
        Taken::Servers(pasted) => (found.client.unwrap(), pasted),
        other => panic!("{other:?}"),
    }
}

/// D7: the form of a text tells its client, and with that the meaning of its placeholders.
#[test]
fn d7_the_form_of_a_text_tells_its_client() {
    let entry = r#"{ "command": "docs-server", "env": { "TEAM": "${TEAM}" } }"#;
    for (text, client, id) in [
        (format!(r#"{{ "mcpServers": {{ "docs": {entry} }} }}"#), "Claude Code", "docs"),
        (format!(r#""mcpServers": {{ "docs": {entry} }},"#), "Claude Code", "docs"),
        (format!(r#"{{ "docs": {entry} }}"#), "Claude Code", "docs"),
        (format!(r#""docs": {entry}"#), "Claude Code", "docs"),
        (entry.to_owned(), "Claude Code", "server"),
        (format!(r#"{{ "servers": {{ "docs": {entry}, }}, }}"#), "VS Code", "docs"),
        (format!(r#"{{ "mcp": {{ "servers": {{ "docs": {entry} }} }} }}"#), "VS Code", "docs"),
        (format!(r#"{{ "context_servers": {{ "docs": {entry} }} }}"#), "Zed", "docs"),
        ("[mcp_servers.docs]\ncommand = \"docs-server\"\n".to_owned(), "Codex", "docs"),
    ] {
        let (found, pasted) = servers(&text);
        assert!(found.starts_with(client), "{found}: {text}");
        let value = &pasted.servers[0].value;
        assert_eq!((&value["id"], &value["command"]), (&json!(id), &json!("docs-server")));
    }
    let cursor = r#"{ "mcpServers": { "a": { "url": "https://a.example.com/${env:X}" } } }"#;
    assert!(servers(cursor).0.starts_with("Cursor"));
}

/// Texts of narthex itself are told apart: servers of the catalog, and manifests.
#[test]
fn servers_of_the_catalog_and_manifests_are_known() {
    for text in [
        r#"{ "id": "docs", "url": "https://docs.example.com/mcp" }"#,
        r#"{ "image": "registry.example.com/docs:1" }"#,
        r#"{ "command": "x", "config_schema": {} }"#,
    ] {
        assert!(matches!(snippet(text).unwrap().taken, Taken::Entry(_)), "{text}");
    }
    for text in [
        r#"{ "env": { "TOKEN": { "kind": "secret" } } }"#,
        r#"{ "manifest": { "env": { "TOKEN": { "kind": "secret" } } } }"#,
        r#"{ "env": { "A": { "kind": "value" } }, "tool_scopes": { "x": ["y"] } }"#,
    ] {
        let found = snippet(text).unwrap();
        let Taken::Manifest(manifest) = found.taken else { panic!("{text}") };
        assert!(manifest["env"].is_object(), "{manifest}");
    }
}

/// D7: a value that looks like a secret is known as one, and is not in the converted server.
#[test]
fn a_literal_secret_is_known_and_not_kept() {
    let text = r#"{ "mcpServers": { "docs": { "url": "https://docs.example.com/mcp",
        "headers": { "Authorization": "Bearer not-a-real-token-0123456789" } } } }"#;
    let found = snippet(text).unwrap();
    assert!(found.has_secret && may_hold_secret(text));
    assert!(!format!("{found:?}").contains("not-a-real"), "{found:?}");
    assert!(!snippet(r#"{ "command": "x" }"#).unwrap().has_secret);
}

/// Each text that has no server is refused with a reason.
#[test]
fn texts_without_servers_are_refused() {
    for (text, words) in [
        ("", "there is no text"),
        ("docs-server --now", "neither JSON, TOML nor YAML"),
        ("{}", "no server is in this text"),
        ("[1]", "no server is in this text"),
        (r#"{ "theme": "dark" }"#, "no server is in this text"),
        (r#"{ "command": "a", "command": "b" }"#, "`command` is given twice"),
        (r#"{ "mcpServers": {} }"#, "no server is in this text"),
    ] {
        let error = snippet(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
