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

/// A server that Cursor has disabled, beside its entry of narthex.
const DISABLED: &str = r#"{ "mcpServers": {
  "narthex": { "command": "narthex", "args": ["connect"] },
  "alpha": {
    "command": "FIXTURE", "args": ["--stdio"], "env": { "ALPHA_KEY": "docs-canary-5713" },
    "disabled": true
  }
} }"#;

/// Keys of a server that stays in its client are shown before they move, and a set-up that moves
/// nothing else has work.
#[test]
fn keys_of_disabled_servers_are_shown_and_move() {
    let home = home_with(DISABLED);
    let fact =
        format!("\n{}\n  env.ALPHA_KEY of alpha moves to the vault\n", home.settings().display());
    let words = ["setup", "--only", "cursor"];
    let shown = home.run(&[&words[..], &["--dry-run"]].concat()).succeeded().stdout;
    assert!(shown.contains(&fact), "{fact}\n{shown}");
    let json = home.run(&[&words[..], &["--dry-run", "--json"]].concat()).succeeded().json();
    let expected = json!([{ "server": "alpha", "secret": "env.ALPHA_KEY" }]);
    assert_eq!(json["data"]["to_vault"], expected, "{json}");
    let line = format!(
        "HOME={home} XDG_CONFIG_HOME={home}/.config {PROGRAM} setup --only cursor",
        home = home.place.path("home").display()
    );
    let asked = home.place.on_terminal(&line, "[y/N] ", "n\n");
    let question = "Move 1 secret of narthex's settings to the vault (env.ALPHA_KEY of alpha)?";
    assert!(asked.contains(question), "{asked}");
    let denied = home.run(&words).failed(1, &["narthex setup --yes --only cursor"]);
    assert!(denied.stdout.contains(&fact), "{denied:?}");

    let done = home.run(&[&words[..], &["--yes"]].concat()).succeeded().stdout;
    let list = home.place.printed("secrets list");
    for words in [
        "\nNo server has moved to narthex.\n".to_owned(),
        format!("The vault has 1 secret of alpha now, in narthex's settings; {list} names them.\n"),
    ] {
        assert!(done.contains(&words), "{words}\n{done}");
    }
    assert_eq!(home.text(".cursor/mcp.json"), home.filled(DISABLED));
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert_eq!(settings, home.filled(SETTINGS).replace(DOCS_KEY, "${secret:ALPHA_KEY}"));
    let idle = home.run(&[&words[..], &["--yes"]].concat()).succeeded().stdout;
    assert!(idle.contains("There is nothing to set up"), "{idle}");
}

/// An import names the set-up that moves the keys of a client whose form is unconfirmed.
#[test]
fn an_import_names_the_client_of_keys_that_move() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.write("home/.codeium/windsurf/mcp_config.json", &home.filled(ALPHA));
    let told = home.run(&["mcp", "import", "--yes", "--from", "windsurf"]).succeeded().stdout;
    let set_up = home.place.printed("setup --only windsurf");
    let moves = format!("{set_up} moves those of variables and headers to the vault; ");
    assert!(told.contains(&moves), "{moves}\n{told}");
    let done = home.run(&["setup", "--yes", "--json", "--only", "windsurf"]).succeeded().json();
    assert_eq!(done["data"]["secrets"], json!(["ALPHA_KEY"]), "{done}");
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert!(!settings.contains("canary"), "{settings}");
}

/// A set-up that failed continues with the secrets that it has stored, and names its command with
/// the clients of then.
#[test]
fn a_second_try_stores_no_secret_twice() {
    let home = home_with(ALPHA);
    let linked = home.place.path("linked.json");
    fs::hard_link(home.settings(), &linked).unwrap();
    let words = ["setup", "--yes", "--only", "cursor"];
    let secrets = || home.run(&["secrets", "list", "--quiet"]).succeeded().stdout;
    for _ in 0..2 {
        let continues = home.place.printed("setup --only cursor");
        home.run(&words).failed(1, &["2 names (hard links)", &format!("{continues} continues")]);
        assert_eq!(secrets(), "ALPHA_KEY\n");
    }
    fs::remove_file(&linked).unwrap();
    home.run(&words).succeeded();
    assert_eq!(secrets(), "ALPHA_KEY\n");
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert_eq!(settings, home.filled(SETTINGS).replace(DOCS_KEY, "${secret:ALPHA_KEY}"));
    home.run(&["call", "alpha", "echo", "message=through"]).succeeded();
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(secrets(), "");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), home.filled(SETTINGS));
}
