//! `narthex backup` beside a daemon, and `narthex restore` here and on another machine.

use std::os::unix::fs::symlink;

use fs_err as fs;
use serde_json::json;

use crate::support::{PROGRAM, Place, fixture_entry};

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
    let done = place.run(["restore", "copy.tar", "--yes"]).succeeded();
    let file = place.path("config/narthex/settings.json");
    assert!(done.stdout.contains(&file.display().to_string()), "{done:?}");
    let counts =
        "2 workspaces, 1 secret and 1 shared file; its settings have 1 server and 0 profiles";
    assert!(done.stdout.contains(counts), "{done:?}");
    assert!(done.stdout.contains("narthex-fixture --stdio"), "its programs are shown: {done:?}");
    assert!(!place.path("data/restored").exists());
    assert!(done.stdout.contains(&place.printed("up --detach")), "{done:?}");
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
    let settings = &done.json()["data"]["settings"][0];
    assert_eq!((&settings["result"], &settings["reason"]), (&json!("left"), &json!("present")));
    let left = settings["copy"].as_str().unwrap().to_owned();
    assert!(fs::read_to_string(left).unwrap().contains("gh"));
    let present = fs::read_to_string(place.path("config/narthex/settings.json")).unwrap();
    assert!(!present.contains("gh"));
}

/// Without the master key the daemon says what is missing, and works once the key is there.
#[test]
fn a_backup_without_the_master_key_needs_it_from_elsewhere() {
    let from = backed_up(&[]);
    let place = elsewhere(&from);
    let done = place.run(["restore", "copy.tar", "--yes"]).succeeded();
    assert!(done.stderr.contains("copy master.key into the data directory"), "{done:?}");
    place.run(UP).failed(1, &["master key", "master.key does not exist; copy `master.key`"]);
    fs::copy(from.path("data/master.key"), place.path("data/master.key")).unwrap();
    let _daemon = place.up();
    place.run(["call", "gh", "echo", "message=hello"]).succeeded();
}

/// A backup with settings that run a program, as one of another person may have them.
fn with_programs() -> Place {
    let place = backed_up(&[]);
    let text = "[vault.key_command]\nload = ['sh', '-c', 'touch ran']\nstore = ['true']\n";
    place.write("config/narthex/narthex.toml", text);
    fs::remove_file(place.path("copy.tar")).unwrap();
    place.run(["backup", "copy.tar"]).succeeded();
    place
}

/// Settings can start programs, so they come into use only by an answer or `--yes`. Without one the
/// data are there, and the printed commands put the settings in place.
#[test]
fn settings_are_put_in_place_only_if_they_are_wanted() {
    let from = with_programs();
    let place = elsewhere(&from);
    let done = place.run(["restore", "copy.tar"]).succeeded();
    assert!(place.path("data/store.db").exists());
    let files = ["settings.json", "narthex.toml"];
    for name in files {
        assert!(!place.path("config/narthex").join(name).exists(), "{name}");
        let line = done.stderr.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.contains("was not put in place"), "{line}");
        let command = line.split('`').nth(1).unwrap();
        let ran = std::process::Command::new("sh").args(["-c", command]).status().unwrap();
        assert!(ran.success() && place.path("config/narthex").join(name).exists(), "{command}");
    }
    let place = elsewhere(&from);
    let done = place.run(["restore", "copy.tar", "--json"]).succeeded().json();
    assert_eq!(done["data"]["counts"]["secrets"], 1, "{done}");
    let settings = done["data"]["settings"].as_array().unwrap();
    assert!(settings.iter().all(|one| one["reason"] == "not_approved"), "{done}");
    assert!(!place.path("config/narthex").exists());

    for (answer, is_placed) in [("n\n", false), ("y\n", true)] {
        let place = elsewhere(&from);
        let line = format!("{PROGRAM} restore copy.tar");
        let shown = place.on_terminal(&line, "[y/N] ", answer);
        for words in ["vault.key_command.load", "runs sh -c 'touch ran'", "--stdio", "start this?"]
        {
            assert!(shown.contains(words), "{words}\n{shown}");
        }
        for name in files {
            assert_eq!(place.path("config/narthex").join(name).exists(), is_placed, "{shown}");
        }
        assert!(place.path("data/store.db").exists());
        assert_eq!(place.path("data/restored").exists(), !is_placed);
    }
}

/// A restore replaces no settings, whatever is there.
#[test]
fn a_restore_keeps_settings_that_it_cannot_read() {
    let from = backed_up(&[]);
    let place = elsewhere(&from);
    let file = place.path("config/narthex/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink("elsewhere.json", &file).unwrap();
    let done = place.run(["restore", "copy.tar", "--yes"]).succeeded();
    assert!(done.stderr.contains("cannot be read and is unchanged"), "{done:?}");
    assert!(file.is_symlink() && !file.exists());
    assert!(place.path("data/restored/settings.json").exists());

    let place = elsewhere(&from);
    let file = place.path("config/narthex/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "{}").unwrap();
    place.set_mode("config/narthex/settings.json", 0);
    let done = place.run(["restore", "copy.tar", "--yes"]).succeeded();
    // Root can read it, and it is another file then.
    assert!(done.stderr.contains("is unchanged"), "{done:?}");
    place.set_mode("config/narthex/settings.json", 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
}

/// Settings that cannot be written do not keep the data from being whole.
#[test]
fn a_restore_is_whole_without_a_place_for_settings() {
    let place = elsewhere(&backed_up(&[]));
    fs::create_dir_all(place.path("config")).unwrap();
    symlink("absent", place.path("config/narthex")).unwrap();
    let done = place.run(["restore", "copy.tar", "--yes"]).succeeded();
    assert!(done.stderr.contains("settings.json cannot be written"), "{done:?}");
    assert!(done.stderr.contains("data/restored/settings.json"), "{done:?}");
    assert!(place.path("data/store.db").exists() && place.path("data/restored").exists());
}

/// A data directory may be a link to an empty folder, and is named if it is none.
#[test]
fn a_data_directory_is_restored_through_a_link() {
    let place = elsewhere(&backed_up(&[]));
    symlink("disk/narthex", place.path("data")).unwrap();
    place.run(["restore", "copy.tar"]).failed(1, &["conflict", "leads nowhere", "--data"]);
    fs::create_dir_all(place.path("disk/narthex")).unwrap();
    place.run(["restore", "copy.tar"]).succeeded();
    assert!(place.path("data").is_symlink() && place.path("disk/narthex/store.db").exists());
    let file = place.path("copy.tar").display().to_string();
    let done = place.run(["restore", "copy.tar", "--data", &file]);
    done.failed(1, &["conflict", "is not a directory", "--data"]);
}

/// A killed backup leaves nothing that keeps the next one from working, and the copy of the store
/// is made where other users cannot put files.
#[test]
fn a_backup_works_in_a_folder_of_its_own() {
    let place = Place::with(&json!({}));
    drop(place.up());
    fs::create_dir(place.path("data/backup")).unwrap();
    for name in ["store.db", "store.db-journal"] {
        fs::write(place.path("data/backup").join(name), "half").unwrap();
    }
    for name in ["copy.tar.store", "copy.tar.store-journal"] {
        symlink(place.path("mcp.json"), place.path(name)).unwrap();
    }
    let lock = fs::File::open(place.path("data/backup")).unwrap();
    lock.file().lock().unwrap();
    place.run(["backup", "copy.tar"]).failed(1, &["conflict", "another backup"]);
    drop(lock);
    place.run(["backup", "copy.tar"]).succeeded();
    assert!(!place.path("data/backup").exists());
    assert!(place.path("copy.tar.store-journal").is_symlink());
    let names = fs::read_dir(place.path("")).unwrap().map(|one| one.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let expected = ["copy.tar", "copy.tar.store", "copy.tar.store-journal", "data", "mcp.json"];
    names.retain(|name| name != "config");
    assert_eq!(names, expected);
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
