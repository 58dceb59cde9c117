//! `narthex backup` beside a daemon, and the restoration of a copy.

use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use fs_err as fs;
use serde_json::json;

use crate::support::Place;

/// The help's steps for going back work: with the copy and the master key everything is as it was
/// at the moment of the copy.
#[test]
fn a_store_is_backed_up_and_restored() {
    let place = Place::with(&json!({}));
    place.run(["backup", "early.db"]).failed(1, &["not_found", "no store yet"]);
    let mut daemon = place.up();
    place.run(["workspaces", "create", "before"]).succeeded();
    let copied = place.run(["backup", "copy.db"]).succeeded();
    assert!(copied.stdout.contains("copy.db"), "{copied:?}");
    assert!(copied.stderr.contains("master.key"), "{copied:?}");
    assert_eq!(place.mode("copy.db"), 0o600);
    place.run(["backup", "copy.db"]).failed(1, &["conflict", "copy.db", "another file"]);
    assert!(!copied.stderr.contains("shared"), "nothing is: {copied:?}");
    place.run(["workspaces", "create", "after"]).succeeded();
    let shelf = place.path("data/shares/workspaces/default");
    fs::create_dir_all(&shelf).unwrap();
    fs::write(shelf.join("0".repeat(64)), "shared").unwrap();
    let third = place.run(["backup", "third.db"]).succeeded();
    for part in ["1 files (6 bytes)", "data/shares", "restore it together"] {
        assert!(third.stderr.contains(part), "{part}: {third:?}");
    }
    let told = place.run(["backup", "second.db", "--json"]).succeeded();
    let bytes = fs::metadata(place.path("second.db")).unwrap().len();
    assert_eq!(told.json()["data"]["bytes"], bytes);
    let left_out = &told.json()["data"]["shared_files_left_out"];
    assert_eq!((&left_out["files"], &left_out["bytes"]), (&json!(1), &json!(6)));
    // The worst end: the audit may have events that no store has yet.
    daemon.signal("KILL");
    daemon.wait();

    for name in ["data/store.db-wal", "data/store.db-shm"] {
        drop(fs::remove_file(place.path(name)));
    }
    fs::remove_file(place.path("data/store.db")).unwrap();
    fs::copy(place.path("copy.db"), place.path("data/store.db")).unwrap();
    let private = Permissions::from_mode(0o600);
    fs::set_permissions(place.path("data/store.db"), private).unwrap();
    let mut daemon = place.up();
    let listed = place.run(["workspaces", "list", "--quiet"]).succeeded().stdout;
    assert!(listed.contains("before") && !listed.contains("after"), "{listed}");
    place.run(["workspaces", "create", "later"]).succeeded();
    let events = place.run(["audit", "list", "--installation", "--json"]).succeeded();
    assert!(events.stdout.contains("later"), "{events:?}");
    place.run(["audit", "verify", "--installation"]).succeeded();
    daemon.signal("TERM");
    daemon.wait();
    place
        .run(["backup", "remote.db", "--daemon-url", "http://127.0.0.1:1"])
        .failed(2, &["machine"]);
}
