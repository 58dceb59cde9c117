//! `narthex daemon`: stopping, by force if need be, and asking.

use std::process::Command;

use fs_err as fs;
use serde_json::json;

use crate::support::{Place, descendants, fixture_entry};

/// §3.5 `daemon stop`, R-M21: everything ends, and a second stop finds nothing to do.
#[test]
fn r_m21_stop_ends_the_daemon_and_its_servers() {
    let place = Place::new();
    let done = place.run(["daemon", "stop"]).succeeded();
    assert!(done.stdout.starts_with("No daemon runs with "), "{done:?}");
    let mut daemon = place.up();
    let children = descendants(daemon.pid());
    assert!(!children.is_empty());
    let done = place.run(["daemon", "stop"]).succeeded();
    assert_eq!(done.stdout, format!("The daemon, process {}, has stopped.\n", daemon.pid()));
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(children.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    let outcome = place.run(["daemon", "stop", "--json"]).succeeded().json();
    let expected = json!({ "was_running": false, "pid": null, "killed": false });
    assert_eq!((&outcome["ok"], &outcome["data"]), (&json!(true), &expected));
    assert_eq!(place.run(["daemon", "stop", "--quiet"]).succeeded().stdout, "");
}

/// R-M21: a daemon that takes too long is reported, and killed only on demand.
#[test]
fn stop_kills_only_by_force() {
    let place = Place::with(&json!({ "fixture": fixture_entry() }));
    let mut daemon = place.up();
    let pid = daemon.pid();
    daemon.signal("STOP");
    let named = format!("process {pid} ");
    let done = place.run(["daemon", "restart", "--timeout", "300ms"]);
    let force = place.printed("daemon stop --force");
    done.failed(1, &["timeout", &named, "was not replaced within 0.3 s", "hangs", &force]);
    let done = place.run(["daemon", "stop", "--timeout", "300ms"]);
    done.failed(1, &["timeout", &named, "has not ended within 0.3 s", &force]);
    let words = ["daemon", "stop", "--timeout", "300ms", "--force", "--json"];
    let outcome = place.run(words).succeeded().json();
    let expected = json!({ "was_running": true, "pid": pid, "killed": true });
    assert_eq!(outcome["data"], expected);
    assert!(!daemon.wait().success());
    assert!(!place.path("data/daemon.json").exists());
    place.up();
}

/// The lock of a folder that containers share counts in each of them, and numbers of processes do
/// not: a signal would reach a process of another program.
#[test]
fn a_daemon_of_another_container_gets_no_signal_and_no_other_process_does() {
    let place = Place::new();
    let mut daemon = place.up();
    let lock = place.path("data/daemon.lock");
    let own = fs::read_to_string(&lock).unwrap();
    assert!(own.starts_with(&format!("{} start=", daemon.pid())), "{own}");
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = other.id().to_string();
    let (_, members) = own.split_once(' ').unwrap();
    let (start, _) = members.split_once(' ').unwrap();
    for text in [
        // Of an older daemon, of another start, and of another namespace.
        pid.clone(),
        format!("{pid} {members}"),
        format!("{pid} {start} pid_namespace=1"),
        "4194305".to_owned(),
    ] {
        // In place: another file would have no lock.
        fs::write(&lock, &text).unwrap();
        for command in ["stop", "restart"] {
            let done = place.run(["daemon", command]);
            done.failed(1, &["conflict", "runs in another container", "got no signal"]);
        }
        assert!(other.try_wait().unwrap().is_none(), "{text}");
    }
    other.kill().unwrap();
    other.wait().unwrap();
    // An older daemon of this namespace is found by its lock.
    fs::write(&lock, daemon.pid().to_string()).unwrap();
    place.run(["daemon", "restart"]).succeeded();
    // The next program has written what the older one did not.
    assert_eq!(fs::read_to_string(&lock).unwrap(), own);
    fs::write(&lock, daemon.pid().to_string()).unwrap();
    place.run(["daemon", "stop"]).succeeded();
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn status_shows_whether_a_daemon_runs() {
    let place = Place::new();
    let done = place.run(["daemon", "status"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stdout.starts_with("No daemon runs with "), "{done:?}");
    assert!(done.stdout.contains(&place.printed("up --detach")), "{done:?}");
    let outcome = place.run(["daemon", "status", "--json"]).json();
    assert_eq!((&outcome["ok"], &outcome["data"]["is_running"]), (&json!(true), &json!(false)));
    let daemon = place.up();
    let done = place.run(["daemon", "status"]).succeeded();
    assert!(done.stdout.contains(&format!("process {}, at http://", daemon.pid())), "{done:?}");
    let outcome = place.run(["daemon", "status", "--json"]).succeeded().json();
    assert_eq!(outcome["data"]["pid"], daemon.pid());
    assert_eq!(place.run(["daemon", "status", "--quiet"]).succeeded().stdout, "");
}
