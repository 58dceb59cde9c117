//! `narthex backup` beside a daemon, and `narthex restore` here and on another machine.

use fs_err as fs;
use serde_json::json;

use crate::support::{Place, fixture_entry};

const VALUE: &str = "canary-90be-backup-value";
const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

/// A place with a workspace, a secret, a shared file and a server in the settings, and its backup.
fn backed_up(words: &[&str]) -> Place {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    place.run(["workspaces", "create", "before"]).succeeded();
    place.pipe(&["secrets", "set", "GITHUB_TOKEN"], VALUE).succeeded();
    let mut server = fixture_entry();
    server["env"] = json!({ "PLAIN": "${secret:GITHUB_TOKEN}" });
    place.pipe(&["mcp", "add", "gh", "-"], &server.to_string()).succeeded();
    let shelf = place.path("data/shares/workspaces/default");
    fs::create_dir_all(&shelf).unwrap();
    fs::write(shelf.join("0".repeat(64)), "shared").unwrap();
    let done = place.run([&["backup", "copy.tar"], words].concat()).succeeded();
    assert!(done.stdout.contains("with 1 shared file"), "{done:?}");
    let with_key = words.contains(&"--with-master-key");
    assert_eq!(done.stderr.contains("can open every secret"), with_key, "{done:?}");
    assert_eq!(done.stderr.contains("open only with the master key"), !with_key, "{done:?}");
    assert_eq!(place.mode("copy.tar"), 0o600);
    assert!(!place.path("copy.tar.store").exists(), "nothing is left beside the backup");
    place.run(["workspaces", "create", "after"]).succeeded();
    place
}

/// Another machine, as far as files go: no data and no settings, but the backup.
fn elsewhere(from: &Place) -> Place {
    let place = Place::with(&json!({}));
    fs::copy(from.path("copy.tar"), place.path("copy.tar")).unwrap();
    place
}

/// On another machine all is as it was at the moment of the backup: workspaces, secrets, shared
/// files and the settings, whose server connects.
#[test]
fn a_backup_with_the_master_key_moves_to_another_machine() {
    let place = elsewhere(&backed_up(&["--with-master-key"]));
    let done = place.run(["restore", "copy.tar"]).succeeded();
    assert!(done.stdout.contains(&place.printed("up")), "{done:?}");
    assert!(done.stderr.contains("approved again"), "{done:?}");
    assert_eq!((place.mode("data/master.key"), place.mode("data/store.db")), (0o600, 0o600));
    // The daemon removes files that its store does not know, as this one.
    let shared = place.path("data/shares/workspaces/default").join("0".repeat(64));
    assert_eq!(fs::read_to_string(shared).unwrap(), "shared");
    let daemon = place.up();
    let listed = place.run(["workspaces", "list", "--quiet"]).succeeded().stdout;
    assert!(listed.contains("before") && !listed.contains("after"), "{listed}");
    place.run(["call", "gh", "echo", "message=hello"]).succeeded();
    drop(daemon);
    // A directory that has anything in it stays as it is.
    place.run(["restore", "copy.tar"]).failed(1, &["conflict", "is not empty", "--data"]);
    let other = place.path("other").display().to_string();
    let done = place.run(["restore", "copy.tar", "--data", &other]).succeeded();
    assert!(!done.stderr.contains("is unchanged"), "the settings are the same: {done:?}");
    place.write("config/narthex/settings.json", r#"{"mcp": {"servers": {}}}"#);
    let third = place.path("third").display().to_string();
    let done = place.run(["restore", "copy.tar", "--data", &third, "--json"]).succeeded();
    let left = done.json()["data"]["settings_left"][0]["file"].as_str().unwrap().to_owned();
    assert!(fs::read_to_string(left).unwrap().contains("gh"));
    let present = fs::read_to_string(place.path("config/narthex/settings.json")).unwrap();
    assert!(!present.contains("gh"));
}

/// Without the master key the daemon says what is missing, and works once the key is there.
#[test]
fn a_backup_without_the_master_key_needs_it_from_elsewhere() {
    let from = backed_up(&[]);
    let place = elsewhere(&from);
    let done = place.run(["restore", "copy.tar"]).succeeded();
    assert!(done.stderr.contains("copy master.key into the data directory"), "{done:?}");
    place.run(UP).failed(1, &["master key"]);
    fs::copy(from.path("data/master.key"), place.path("data/master.key")).unwrap();
    let _daemon = place.up();
    place.run(["call", "gh", "echo", "message=hello"]).succeeded();
}

/// A refused backup leaves no data directory behind, and no part of one.
#[test]
fn a_backup_that_is_not_whole_is_refused() {
    let from = backed_up(&[]);
    let whole = fs::read(from.path("copy.tar")).unwrap();
    let place = Place::with(&json!({}));
    let before = fs::read_dir(place.path("")).unwrap().count();
    let mut changed = whole.clone();
    let at = whole.windows(6).position(|part| part == b"shared").unwrap();
    changed[at..at + 6].copy_from_slice(b"forged");
    for (bytes, words) in [
        (&whole[..whole.len() / 2], "cannot be restored"),
        (&changed[..], "list of digests"),
        (&b"SQLite format 3"[..], "it is no file of `narthex backup"),
    ] {
        fs::write(place.path("bad.tar"), bytes).unwrap();
        place.run(["restore", "bad.tar"]).failed(1, &["invalid", words]);
        assert!(!place.path("data").exists(), "{words}");
        assert_eq!(fs::read_dir(place.path("")).unwrap().count(), before + 1, "{words}");
    }
    place.run(["restore", "absent.tar"]).failed(1, &["not_found", "absent.tar"]);
}

/// A file that cannot be copied is reported before anything is written.
#[test]
fn a_backup_needs_a_store_a_new_file_and_this_machine() {
    let place = Place::with(&json!({}));
    place.run(["backup", "early.tar"]).failed(1, &["not_found", "no store yet"]);
    let _daemon = place.up();
    place.run(["backup", "copy.tar"]).succeeded();
    place.run(["backup", "copy.tar"]).failed(1, &["conflict", "copy.tar", "another file"]);
    let remote = ["backup", "remote.tar", "--daemon-url", "http://127.0.0.1:1"];
    place.run(remote).failed(2, &["machine"]);
    let told = place.run(["backup", "second.tar", "--json"]).succeeded().json();
    let bytes = fs::metadata(place.path("second.tar")).unwrap().len();
    assert_eq!(told["data"]["bytes"], bytes);
    assert_eq!(told["data"]["has_master_key"], false);
    let names = told["data"]["files"].as_array().unwrap().iter().map(|one| &one["name"]);
    assert_eq!(names.collect::<Vec<_>>(), [&json!("store.db")]);
}
