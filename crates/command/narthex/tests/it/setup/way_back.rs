//! The way back: an undo beside a file with a fault, copies that stay and copies that go, and an
//! uninstallation where nothing is left.

use std::time::SystemTime;

use super::*;

fn edit(home: &Home, name: &str, from: &str, to: &str) {
    let text = home.text(name);
    assert!(text.contains(from), "{text}");
    home.write(&format!("home/{name}"), &text.replacen(from, to, 1));
}

/// Has Claude Code write its file whole from memory, in another form.
fn rewrite_claude(home: &Home) {
    let mut all: Value = serde_json::from_str(&home.text(".claude.json")).unwrap();
    all["numStartups"] = json!(215);
    home.write("home/.claude.json", &all.to_string());
}

/// D42: a client that has written its own file since has its servers and keys back, so the copy
/// from before is not needed, and an uninstallation leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn d42_copies_go_once_every_server_is_back() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    rewrite_claude(&home);
    let done = home.run(&["uninstall", "--yes", "--delete-data", "--json"]).succeeded().json();
    let done = &done["data"];
    assert_eq!((&done["left"], &done["undo"]["keeps_copies"]), (&json!([]), &json!(false)));
    assert!(!home.place.path("data").exists());
    let now: Value = serde_json::from_str(&home.text(".claude.json")).unwrap();
    let before: Value = serde_json::from_str(&home.filled(CLAUDE)).unwrap();
    assert_eq!(now["mcpServers"], before["mcpServers"]);
    assert_eq!(now["numStartups"], 215);
}

/// D42: a copy stays as long as its file lacks a server, a key, or has another entry in its place.
/// The copies of all other files go.
#[tokio::test(flavor = "multi_thread")]
async fn d42_the_copy_of_a_file_that_lacks_something_stays() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    // The disabled server stayed there, and its owner has changed its entry since.
    edit(&home, ".gemini/settings.json", "https://old.example.com", "https://new.example.com");
    rewrite_claude(&home);
    let done = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    let backups = home.place.path("data/setup/backups");
    for words in [
        format!(
            "Gemini CLI: {} was changed by others since the set-up: all that narthex did there is \
             taken back, and the other changes stay; `old` is not there as it was before",
            home.place.path("home/.gemini/settings.json").display()
        ),
        format!(
            "Claude Code: {} was changed by others since the set-up: all that narthex did there \
             is taken back, and the other changes stay: start a new session\n",
            home.place.path("home/.claude.json").display()
        ),
        format!("The files from before are in {}.\n", backups.display()),
        format!("delete them with `rm -r {}`.\n", home.place.path("data/setup").display()),
    ] {
        assert!(done.contains(&words), "{words}\n{done}");
    }
    let mut copies = Vec::new();
    files_below(&backups, &mut copies);
    let texts: Vec<_> = copies.iter().map(|copy| fs::read_to_string(copy).unwrap()).collect();
    assert_eq!(texts, [home.filled(GEMINI)]);

    // A later set-up and its undo, which is whole, take nothing of that.
    home.set_up(&["--only", "codex"]);
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(fs::read_to_string(&copies[0]).unwrap(), home.filled(GEMINI));
    let nothing = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    assert!(nothing.contains(&format!("The files from before are in {}.", backups.display())));
}

/// D42: one file with a fault keeps no other one from its servers. It is named once, with the way
/// to go on, which a later undo takes.
#[tokio::test(flavor = "multi_thread")]
async fn d42_an_undo_passes_over_a_file_with_a_fault() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let connected = home.text(".codex/config.toml");
    home.write("home/.codex/config.toml", "[broken");
    edit(&home, ".gemini/settings.json", "https://old.example.com", "https://new.example.com");
    let path = home.place.path("home/.codex/config.toml").display().to_string();
    let done = home.run(&["setup", "--undo", "--yes"]);
    let done = done.failed(1, &[
        &format!("{path} cannot be brought back: line 1, column "),
        "; correct the TOML there (the file from before is ",
        "; then run `narthex setup --undo",
        "`, which undoes the rest: narthex's settings, secrets and service stay until then, since \
         Codex CLI still needs them",
    ]);
    let words = format!("{path} cannot be brought back");
    assert_eq!(done.stderr.matches(&words).count(), 1, "{done:?}");
    for words in ["correct that", "try again", "cannot be edited"] {
        assert!(!done.stderr.contains(words), "{words}: {done:?}");
    }
    let restored = home.place.path("home/.claude.json").display().to_string();
    let restored = format!("Claude Code: {restored} is as it was before: start a new session\n");
    assert!(done.stdout.contains(&restored), "{done:?}");
    for (name, text) in FILES {
        if !matches!(name, ".codex/config.toml" | ".gemini/settings.json") {
            assert_eq!(home.text(name), home.filled(text), "{name}");
        }
    }
    // Codex still reaches its server through narthex.
    home.run(&["call", "docs", "echo", "message=still"]).succeeded();
    assert!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout.contains("DOCS_KEY"));

    let again = home.run(&["setup", "--undo", "--yes", "--json"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    let details = again.json()["error"]["details"].take();
    assert_eq!(details["files"], json!([]), "{details}");
    assert_eq!(details["faults"][0]["client"], "codex/user");
    assert_eq!(details["faults"][0]["file"], json!(path));

    home.write("home/.codex/config.toml", &connected);
    let done = home.run(&["setup", "--undo", "--yes", "--json"]).succeeded().json();
    assert_eq!(done["data"]["faults"], json!([]), "{done}");
    assert_eq!(home.text(".codex/config.toml"), home.filled(CODEX));
    assert!(!home.settings().exists());
    // The first undo has left a copy that Gemini's file lacks a part of.
    assert_eq!(done["data"]["keeps_copies"], true, "{done}");
    let mut copies = Vec::new();
    files_below(&home.place.path("data/setup/backups"), &mut copies);
    assert_eq!(copies.len(), 1, "{copies:?}");
}

/// D42: a pipe in the place of a file is named and not waited for, and all other files come back.
#[tokio::test(flavor = "multi_thread")]
async fn d42_an_undo_waits_for_no_pipe() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let path = home.place.path("home/.codex/config.toml");
    let connected = home.text(".codex/config.toml");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let words = format!(
        "{} cannot be brought back: it is not a regular file; move it away (the file from before ",
        path.display()
    );
    home.run(&["setup", "--undo", "--yes"])
        .failed(1, &[&words, "; then run `narthex setup --undo"]);
    for (name, text) in FILES {
        if name != ".codex/config.toml" {
            assert_eq!(home.text(name), home.filled(text), "{name}");
        }
    }
    fs::remove_file(&path).unwrap();
    home.write("home/.codex/config.toml", &connected);
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    home.is_untouched();
}

/// D42: a set-up waits for no pipe either, which stays.
#[test]
fn d42_a_set_up_waits_for_no_pipe() {
    let home = Home::new("https://tracker.example.com/mcp");
    let path = home.place.path("home/.cursor/mcp.json");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let shown = home.run(&["setup", "--dry-run", "--json", "--only", "cursor"]).succeeded().json();
    let problem = &shown["data"]["problems"][0];
    assert_eq!(
        (&problem["file"], &problem["reason"]),
        (&json!(path), &json!("it is not a regular file"))
    );
}

/// E124: narthex does not warn of a file that it has removed itself.
#[tokio::test(flavor = "multi_thread")]
async fn e124_settings_that_an_undo_removes_are_not_missing() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let done = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    let words = format!(
        "narthex: {} is removed again, since it did not exist before\n",
        home.settings().display()
    );
    assert!(done.contains(&words), "{done}");
    assert!(done.contains(" in the vault: "), "{done}");
    let reload = home.run(&["mcp", "reload"]).succeeded();
    let status = home.run(&["status"]).succeeded();
    for done in [&reload, &status] {
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains("warning") && !all.contains("deleted or moved"), "{all}");
    }
}

/// An uninstallation says where it looked if there is nothing, and asks nothing.
#[test]
fn an_uninstallation_of_nothing_says_so() {
    let home = Home::new("https://tracker.example.com/mcp");
    fs::remove_file(home.place.path("share/narthex")).unwrap();
    let unit = home.place.path("home/.config/systemd/user/narthex.service");
    let settings = home.settings();
    let expected = [
        "Nothing of narthex is installed for you: there are no data in ".to_owned(),
        home.place.path("data").display().to_string(),
        format!(", no settings in {}", settings.parent().unwrap().display()),
        format!(", and no service {}.\n", unit.display()),
    ];
    let none: &[&str] = &[];
    for words in [none, &["--yes"], &["--dry-run"], &["--delete-data"]] {
        let done = home.run(&[&["uninstall"], words].concat()).succeeded();
        for text in &expected {
            assert!(done.stdout.contains(text), "{text}\n{done:?}");
        }
        assert_eq!(done.stdout.lines().count(), 2, "{done:?}");
        assert!(done.stdout.contains("stays; the tool that installed it removes it"), "{done:?}");
        assert_eq!(done.stderr, "");
    }
    let data = home.run(&["uninstall", "--json"]).succeeded().json()["data"].take();
    assert_eq!((&data["deleted"], &data["undo"]), (&json!([]), &Value::Null));

    // Data that stay are no reason for a question.
    drop(home.run(&["up", "--detach", "--config", "mcp.json"]).succeeded());
    home.run(&["uninstall", "--yes"]).succeeded();
    let done = home.run(&["uninstall"]).succeeded().stdout;
    assert!(done.contains("Nothing is left to remove"), "{done}");
    assert!(done.contains("a later installation uses them; `narthex uninstall --delete-data"));
}

/// The keys in a keychain outlive the data, and the note has the command for this data directory.
#[test]
fn an_uninstallation_names_the_keys_in_a_keychain() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["up", "--detach", "--config", "mcp.json"]).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    let run = |words: &[&str]| {
        let mut command = home.command(words);
        command.env("NARTHEX_VAULT_KEYCHAIN", "secret-service").stdin(Stdio::null());
        Done::from(command.output().unwrap()).succeeded().stdout
    };
    let data = fs::canonicalize(home.place.path("data")).unwrap();
    let note = format!(
        "The master keys in the Secret Service stay; remove them with `secret-tool clear \
         application narthex data-dir {}`.",
        data.display()
    );
    assert!(!run(&["uninstall", "--dry-run"]).contains("master keys"));
    for words in [&["--dry-run"], &["--yes"]] {
        let told = run(&[&["uninstall", "--delete-data"], &words[..]].concat());
        assert!(told.contains(&note), "{told}");
    }
    assert!(!data.exists());
}

/// D42: a server that never worked is forgotten. Another program under its name does not stand for
/// it, so its entry stays in the client's file.
#[tokio::test(flavor = "multi_thread")]
async fn d42_another_server_of_the_name_moves_nothing() {
    let fixture_of_key = tracker().await;
    let home = Home::new(&fixture_of_key.url);
    let words = ["setup", "--yes", "--json", "--only", "cursor"];
    let data = home.run(&words).succeeded().json()["data"].take();
    assert_eq!(names(&data["stayed"]), ["tracker"], "{data}");
    assert_eq!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout, "");
    let mut settings: Value =
        serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
    settings["mcp"]["servers"]["tracker"] =
        json!({ "transport": "stdio", "command": fixture(), "args": ["--stdio"] });
    fs::write(home.settings(), settings.to_string()).unwrap();

    let data = home.run(&words).succeeded().json()["data"].take();
    assert_eq!(names(&data["moved"]), [""; 0], "{data}");
    assert_eq!(names(&data["stayed"]), ["tracker-cursor"], "{data}");
    assert!(home.text(".cursor/mcp.json").contains(OTHER_KEY));
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(home.text(".cursor/mcp.json"), home.filled(CURSOR));
    let now: Value = serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
    assert_eq!(now["mcp"]["servers"]["tracker"], settings["mcp"]["servers"]["tracker"]);
}

/// D42: an entry of the settings that its owner has changed stays, and so does the secret that it
/// names.
#[test]
fn d42_a_changed_server_keeps_its_secret() {
    let home = Home::new("https://tracker.example.com/mcp");
    let words = ["setup", "--yes", "--json", "--only", "codex"];
    let data = home.run(&words).succeeded().json()["data"].take();
    assert_eq!((names(&data["moved"]), &data["secrets"]), (vec!["docs"], &json!(["DOCS_KEY"])));
    let mut settings: Value =
        serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
    settings["mcp"]["servers"]["docs"]["timeoutMs"] = json!(50_000);
    fs::write(home.settings(), settings.to_string()).unwrap();
    let done = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    let kept = "Kept the secret DOCS_KEY, which the server docs in your settings names; `narthex";
    assert!(done.contains(kept) && !done.contains("Cleared"), "{done}");
    assert_eq!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout, "DOCS_KEY\n");
    assert_eq!(home.text(".codex/config.toml"), home.filled(CODEX));
    home.run(&["call", "docs", "echo", "message=still"]).succeeded();
}

/// Secrets that go with the data are named before the question and at the end, and none of them is
/// said to be kept.
#[test]
fn an_uninstallation_names_the_secrets_that_go_with_the_data() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    for name in ["DOCS_KEY", "MINE"] {
        home.place.pipe(&["secrets", "set", name], "changed-canary-5716").succeeded();
    }
    let dry = ["uninstall", "--delete-data", "--dry-run"];
    let shown = home.run(&dry).succeeded().stdout;
    let words = "With the data go these secrets, kept only there: DOCS_KEY, MINE.\n";
    assert!(shown.contains(words), "{shown}");
    let shown = home.run(&[&dry[..], &["--json"]].concat()).succeeded().json();
    assert_eq!(shown["data"]["present"]["deletes_secrets"], json!(["DOCS_KEY", "MINE"]), "{shown}");
    let done = home.run(&["uninstall", "--yes", "--delete-data"]).succeeded().stdout;
    assert!(done.contains("Deleted with the data: the secrets DOCS_KEY, MINE.\n"), "{done}");
    assert!(!done.contains("Kept the secret"), "{done}");
    assert_eq!(home.text(".codex/config.toml"), home.filled(CODEX));
    assert!(!home.place.path("data").exists());
}

/// A settings file that cannot be used keeps no user from leaving, and a daemon that cannot start
/// is not needed for secrets that go with the data.
#[test]
fn an_uninstallation_needs_no_daemon_that_can_start() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    home.write("home/.config/narthex/narthex.toml", "nosuch = 1\n");
    home.run(&["mcp", "list"]).failed(2, &["`nosuch` is not a setting"]);
    let done = home.run(&["uninstall", "--yes", "--delete-data"]).succeeded();
    let told = "the settings file is left out, since it cannot be used: ";
    assert!(done.stderr.contains(told), "{done:?}");
    assert!(!done.stdout.contains("Kept in the vault"), "{done:?}");
    let unknown = "If the settings file names a database or a keychain, the data or the keys";
    assert!(done.stdout.contains(unknown), "{done:?}");
    assert_eq!(home.text(".codex/config.toml"), home.filled(CODEX));
    assert!(!home.place.path("data").exists());
}

/// A daemon that was started to clear secrets ends with the undo.
#[test]
fn an_undo_leaves_no_daemon_that_did_not_run() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    let done = home.run(&["setup", "--undo", "--yes", "--json"]).succeeded().json();
    let done = &done["data"];
    assert_eq!(done["cleared_secrets"], json!(["DOCS_KEY"]), "{done}");
    assert_eq!(done["is_daemon_running"], false, "{done}");
    home.run(&["daemon", "status"]).failed(1, &[]);
    home.is_untouched();
}

/// Secrets are cleared in the store if no daemon starts: one with a broken key file cannot open
/// them, and need not.
#[test]
fn an_undo_needs_no_daemon_that_can_start() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    let key = home.place.path("data/master.key");
    let good = fs::read(&key).unwrap();
    fs::write(&key, "no key").unwrap();
    let shown = home.run(&["uninstall", "--dry-run"]).succeeded().stdout;
    let settings = home.settings().display().to_string();
    for words in [
        format!("{settings} is removed, since it did not exist before.\n"),
        "1 secret in the vault is cleared, unless changed since".to_owned(),
    ] {
        assert!(shown.contains(&words), "{words}\n{shown}");
    }
    assert!(!shown.contains(&format!("{settings} is kept")), "{shown}");
    let done = home.run(&["uninstall", "--yes"]).succeeded().stdout;
    for words in [
        "Cleared 1 secret in the vault: DOCS_KEY.\n",
        "That was done in the store itself, since no daemon starts: ",
    ] {
        assert!(done.contains(words), "{words}\n{done}");
    }
    assert!(!done.contains("The audit has no record"), "{done}");
    home.is_untouched();
    assert!(!home.place.path("data/setup").exists());
    fs::write(&key, good).unwrap();
    home.run(&["up", "--detach", "--config", "mcp.json"]).succeeded();
    assert_eq!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout, "");
    // The next daemon moves the record into the store.
    let words = ["audit", "list", "--kind", "workspace.secret.cleared", "--json"];
    let began = SystemTime::now();
    let events = loop {
        let listed = home.run(&words).succeeded().json()["data"]["items"].take();
        if listed.as_array().is_some_and(|all| !all.is_empty()) {
            break listed;
        }
        assert!(began.elapsed().unwrap() < SOON, "no record of the cleared secret");
    };
    let event = &events[0];
    assert_eq!(event["resource"], json!({ "kind": "secret", "id": "DOCS_KEY" }), "{event}");
    assert_eq!((&event["actor"]["id"], &event["outcome"]), (&json!("admin"), &json!("ok")));
    home.run(&["audit", "verify"]).succeeded();
}

/// Where the audit cannot be written, an undo clears the secret all the same, and says so.
#[test]
fn an_undo_says_which_clearing_has_no_record() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    // Not even an administrator of the machine writes to a folder as to a file.
    let lock = home.place.path("data/audit/audit.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let done = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    for words in ["Cleared 1 secret in the vault: DOCS_KEY.\n", "The audit has no record of that: "]
    {
        assert!(done.contains(words), "{words}\n{done}");
    }
    home.is_untouched();
}

/// Settings that others have put into the file stay, though the data go: a daemon with other data
/// may use them.
#[test]
fn an_uninstallation_keeps_the_settings_of_others() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    let mut settings: Value =
        serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
    let other = json!({ "transport": "stdio", "command": fixture(), "args": ["--stdio"] });
    settings["mcp"]["servers"]["other"] = other.clone();
    fs::write(home.settings(), settings.to_string()).unwrap();
    let path = home.settings().display().to_string();
    let shown = home.run(&["uninstall", "--delete-data", "--dry-run"]).succeeded().stdout;
    let words = format!("{path} is deleted, unless it has more than the set-up put there.\n");
    assert!(shown.contains(&words), "{shown}");
    let done = home.run(&["uninstall", "--yes", "--delete-data"]).succeeded().stdout;
    let stays = format!(
        "{path} stays: it has servers or settings that this uninstallation did not put there.\n"
    );
    assert!(done.contains(&stays), "{done}");
    assert!(!home.place.path("data").exists());
    let now: Value = serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
    assert_eq!(now["mcp"]["servers"], json!({ "other": other }));
    // Again, there is nothing to remove.
    let again = home.run(&["uninstall", "--yes", "--delete-data"]).succeeded().stdout;
    assert!(again.contains("Nothing is left to remove"), "{again}");
    assert!(home.settings().exists());
}

/// An entry of narthex with a comment of its owner in it stays. It is named with the remedy, also
/// before the question, and by an uninstallation.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_still_starts_narthex_is_named() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    edit(&home, ".cursor/mcp.json", "\"connect\"", "/* mine */ \"connect\"");
    let words = format!(
        "its entry `narthex` still starts narthex, and stays, since others have written in it: \
         remove `narthex` from {} by hand",
        home.place.path("home/.cursor/mcp.json").display()
    );
    let commands: [&[&str]; 3] = [
        &["uninstall", "--dry-run"],
        &["setup", "--undo", "--dry-run"],
        &["setup", "--undo", "--yes"],
    ];
    for command in commands {
        let shown = home.run(command).succeeded().stdout;
        assert!(shown.contains(&words), "{words}\n{shown}");
    }
    assert!(home.text(".cursor/mcp.json").contains("/* mine */"));
}
