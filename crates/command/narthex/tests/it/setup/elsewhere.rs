//! A client that reaches another narthex before a set-up.

use super::*;

/// Cursor's file with a narthex on another machine.
const OTHER: &str = r#"{ "mcpServers": {
  "narthex": { "command": "ssh", "args": ["devbox", "narthex", "connect"] },
  "alpha": { "command": "FIXTURE", "args": ["--stdio"] }
} }"#;

/// An entry that starts narthex by way of another program stays, and connects no client to the
/// daemon of the set-up.
#[test]
fn a_client_of_another_narthex_is_connected_as_well() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.write("home/.cursor/mcp.json", &home.filled(OTHER));
    let words = ["setup", "--only", "cursor"];
    let shown = home.run(&[&words[..], &["--dry-run"]].concat()).succeeded().stdout;
    let fate = "1 server, `narthex` does not lead to this narthex, and stays";
    assert!(shown.contains(fate), "{shown}");
    home.run(&[&words[..], &["--yes"]].concat()).succeeded();
    let text = home.text(".cursor/mcp.json");
    let document = Document::parse(Format::Jsonc, text.as_bytes()).unwrap();
    let servers = document.value(&["mcpServers"]).unwrap().unwrap();
    assert_eq!(servers["narthex"]["command"], "ssh", "{text}");
    assert_eq!(servers["narthex-2"]["command"], PROGRAM, "{text}");
    assert_eq!(servers.as_object().unwrap().len(), 2, "{text}");
    let again = home.run(&[&words[..], &["--yes"]].concat()).succeeded().stdout;
    assert!(again.contains("0 servers, connected already"), "{again}");
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(home.text(".cursor/mcp.json"), home.filled(OTHER));
}

/// The end of a set-up names old and new names of servers, with their files, and the name of
/// narthex's own entry where another one has the usual name.
#[test]
fn the_end_names_servers_and_entries_with_other_names() {
    let home = Home::new("https://tracker.example.com/mcp");
    let text = OTHER.replace("\"alpha\"", "\"Alpha One\"");
    home.write("home/.cursor/mcp.json", &home.filled(&text));
    let shown = home.run(&["setup", "--only", "cursor", "--yes"]).succeeded().stdout;
    let file = home.place.path("home/.cursor/mcp.json").display().to_string();
    for words in [
        format!("\n    was `Alpha One` in Cursor ({file})\n"),
        format!("\n    as `narthex-2` in {file}, since another entry there is called `narthex`\n"),
    ] {
        assert!(shown.contains(&words), "{words}\n{shown}");
    }
}

/// A server that refuses its key is named as its file has it, with the remedy, and not as one that
/// waits for a sign-in.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_has_its_remedy() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    let words = ["setup", "--only", "cursor,claude-code", "--yes"];
    let shown = home.run(&words).succeeded().stdout;
    let file = home.place.path("home/.cursor/mcp.json").display().to_string();
    for words in [
        format!("\n  tracker-cursor in Cursor (`tracker` in {file}): "),
        "; correct headers.Authorization of its entry in the client's file, then run `".to_owned(),
    ] {
        assert!(shown.contains(&words), "{words}\n{shown}");
    }
    assert!(!shown.contains("asks for a sign-in"), "{shown}");
}

/// A server whose variables are in a file that its client reads stays there: it could list its
/// tools without them.
#[test]
fn d42_a_server_with_a_file_of_variables_stays() {
    let home = Home::new("https://tracker.example.com/mcp");
    let text = r#"{ "mcpServers": { "alpha": {
  "command": "FIXTURE", "args": ["--stdio"], "envFile": "/home/ada/.env"
} } }"#;
    home.write("home/.cursor/mcp.json", &home.filled(text));
    let words = ["setup", "--only", "cursor", "--yes", "--json"];
    let data = home.run(&words).succeeded().json()["data"].take();
    let alpha = &data["servers"][0];
    assert_eq!((&alpha["name"], &alpha["result"]), (&json!("alpha"), &json!("stays")), "{data}");
    let reason = alpha["reason"].as_str().unwrap();
    assert!(reason.starts_with("only Cursor reads the file of its `envFile`; "), "{reason}");
    assert_eq!(home.text(".cursor/mcp.json"), home.filled(text));
}
