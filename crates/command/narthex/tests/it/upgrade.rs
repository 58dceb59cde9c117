//! Data directories of earlier versions, as they were written, opened by this one.
//!
//! `upgrade/first.tar.gz` was written by the program of revision b74aeddd, before the command line
//! had its present words: secrets, a workspace, a human, a service with a token, servers, an agent,
//! a grant, an MCP client, a variable of an agent, a run that has ended, and the audit of all that.

use std::process::Command;

use fs_err as fs;
use serde_json::{Value, json};

use crate::{
    secrets::value,
    support::{Done, Place},
};

const FIRST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/upgrade/first.tar.gz");

/// A place with the data directory of an archive.
fn with_data(archive: &str) -> Place {
    let place = Place::with(&json!({}));
    let data = place.path("data");
    fs::create_dir_all(&data).unwrap();
    place.set_mode("data", 0o700);
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(&data);
    assert!(tar.status().unwrap().success(), "{archive} cannot be unpacked");
    place
}

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// The members of the items of a list.
fn listed(place: &Place, words: &[&str], member: &str) -> Vec<String> {
    let items = data(place.run([words, &["--json"]].concat()))["items"].take();
    let items = items.as_array().unwrap().iter();
    let mut listed: Vec<_> =
        items.map(|item| item[member].as_str().unwrap_or_default().to_owned()).collect();
    listed.sort_unstable();
    listed
}

/// the first data open in this version with all that they had, tokens and keys included, and
/// a second start finds them as the first one left them.
#[test]
fn a_17_data_of_the_first_version_open_with_all_that_they_had() {
    let place = with_data(FIRST);
    let client = fs::read_to_string(place.path("data/client.token")).unwrap();
    for start in ["the first", "the second"] {
        let daemon = place.up();
        for (words, member, expected) in [
            (&["secrets", "list"][..], "name", &["DOCS_KEY", "OLD_KEY"][..]),
            (&["secrets", "list", "--workspace", "team"], "name", &["DOCS_KEY"]),
            (&["workspaces", "list"], "id", &["default", "team"]),
            (&["servers", "list"], "id", &["docs", "notes"]),
            (&["agents", "list"], "id", &["writer"]),
            (&["grants", "list"], "agent_subject_id", &["writer"]),
            (&["tokens", "list"], "label", &["nightly"]),
            (&["clients", "list"], "client", &["default/desk"]),
        ] {
            assert_eq!(listed(&place, words, member), expected, "{start}: {words:?}");
        }
        let secrets = data(place.run(["secrets", "list", "--json"]));
        let of = |name: &str| {
            let mut items = secrets["items"].as_array().unwrap().iter();
            items.find(|item| item["name"] == name).unwrap().clone()
        };
        assert_eq!(of("OLD_KEY")["versions"].as_array().unwrap().len(), 2, "{secrets}");
        let users = data(place.run(["users", "list", "--json"])).to_string();
        assert!(users.contains("reader-of-all"), "{users}");
        let members = data(place.run(["members", "list", "--workspace", "team", "--json"]));
        assert!(members.to_string().contains("reader-of-all"), "{members}");
        let runs = data(place.run(["runs", "list", "--status", "ended", "--json"]));
        assert!(!runs["items"].as_array().unwrap().is_empty(), "{runs}");
        let agent = place.run(["agents", "get", "writer"]).succeeded().stdout;
        assert!(agent.contains("notes") && agent.contains("docs"), "{agent}");
        // The audit goes on in one chain with what the first version wrote.
        place.run(["audit", "verify"]).succeeded();
        let audit = place.run(["audit", "list"]).succeeded().stdout;
        assert!(audit.contains("workspace.secret.set"), "{audit}");
        drop(daemon);
    }
    assert_eq!(fs::read_to_string(place.path("data/client.token")).unwrap(), client);
    assert_eq!(value(&place, "DOCS_KEY"), "upgraded-canary-8101");
    assert_eq!(value(&place, "OLD_KEY"), "second-canary-8103");
}

/// Data of an earlier version move to another machine by way of this one.
#[test]
fn data_of_the_first_version_are_backed_up_and_restored() {
    let place = with_data(FIRST);
    drop(place.up());
    place.run(["backup", "first.tar", "--with-master-key"]).succeeded();
    let other = place.path("other").display().to_string();
    place.run(["restore", "first.tar", "--data", &other]).succeeded();
    fs::remove_dir_all(place.path("data")).unwrap();
    fs::rename(place.path("other"), place.path("data")).unwrap();
    assert_eq!(value(&place, "OLD_KEY"), "second-canary-8103");
}

/// Data of an earlier version have no marker, and are deleted if narthex has written all of them.
#[test]
fn data_of_the_first_version_are_deleted_by_an_uninstallation() {
    for has_run in [false, true] {
        let place = with_data(FIRST);
        if has_run {
            drop(place.up());
        }
        place.write("data/notes.txt", "x");
        place.run(["uninstall", "--yes", "--delete-data"]).failed(1, &["`rm -r ", "store.db"]);
        fs::remove_file(place.path("data/notes.txt")).unwrap();
        place.run(["uninstall", "--yes", "--delete-data"]).succeeded();
        assert!(!place.path("data").exists());
    }
}
