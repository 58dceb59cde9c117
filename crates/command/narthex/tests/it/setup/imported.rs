//! Servers that the settings have before a set-up, such as after an import: their keys go to the
//! vault, and the rest of their entries stays as it is written.

use super::*;

/// The user's settings, with a server that Cursor has as well.
const SETTINGS: &str = r#"{
  "mcp": { "servers": {
    "alpha": { "transport": "stdio", "command": "FIXTURE", // the one of work
      "args": ["--stdio"],
      "env": { "ALPHA_KEY": "docs-canary-5713" /* rotated in May */ } }
  } }
}
"#;

const ALPHA: &str = r#"{ "mcpServers": {
  "alpha": { "command": "FIXTURE", "args": ["--stdio"], "env": { "ALPHA_KEY": "docs-canary-5713" } }
} }"#;

/// Writes the settings, and Cursor's file.
fn home_with(cursor: &str) -> Home {
    let home = Home::new("https://tracker.example.com/mcp");
    home.write("home/.cursor/mcp.json", &home.filled(cursor));
    fs::create_dir_all(home.settings().parent().unwrap()).unwrap();
    fs::write(home.settings(), home.filled(SETTINGS)).unwrap();
    home.place.set_mode("home/.config/narthex/settings.json", 0o600);
    home
}

/// The value of the variable is all that changes in an entry of the user, and all that comes back.
#[test]
fn comments_in_the_settings_of_the_user_stay() {
    let home = home_with(ALPHA);
    let before = home.filled(SETTINGS);
    home.run(&["setup", "--yes", "--only", "cursor"]).succeeded();
    let settings = || fs::read_to_string(home.settings()).unwrap();
    let named = before.replace("docs-canary-5713", "${secret:ALPHA_KEY}");
    assert_eq!(settings(), named);
    home.run(&["call", "alpha", "echo", "message=through"]).succeeded();

    // A field that the user adds stays, beside the value that comes back.
    let timeout = |text: &str| text.replace("\"args\"", "\"timeoutMs\": 9000, \"args\"");
    fs::write(home.settings(), timeout(&named)).unwrap();
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(settings(), timeout(&before));
    assert_eq!(home.text(".cursor/mcp.json"), home.filled(ALPHA));
}
