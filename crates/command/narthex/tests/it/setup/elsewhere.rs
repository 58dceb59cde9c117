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
