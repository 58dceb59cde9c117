//! `narthex daemon`: stopping, by force if need be, and asking.

use crate::support::{Place, descendants, fixture_entry};
use serde_json::json;

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
    let done = place.run(["daemon", "stop", "--timeout", "300ms"]);
    done.failed(1, &["timeout", &pid.to_string(), "--force"]);
    let words = ["daemon", "stop", "--timeout", "300ms", "--force", "--json"];
    let outcome = place.run(words).succeeded().json();
    let expected = json!({ "was_running": true, "pid": pid, "killed": true });
    assert_eq!(outcome["data"], expected);
    assert!(!daemon.wait().success());
    assert!(!place.path("data/daemon.json").exists());
    place.up();
}

#[test]
fn status_shows_whether_a_daemon_runs() {
    let place = Place::new();
    let done = place.run(["daemon", "status"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stdout.starts_with("No daemon runs with "), "{done:?}");
    let outcome = place.run(["daemon", "status", "--json"]).json();
    assert_eq!((&outcome["ok"], &outcome["data"]["is_running"]), (&json!(true), &json!(false)));
    let daemon = place.up();
    let done = place.run(["daemon", "status"]).succeeded();
    assert!(done.stdout.contains(&format!("process {}, at http://", daemon.pid())), "{done:?}");
    let outcome = place.run(["daemon", "status", "--json"]).succeeded().json();
    assert_eq!(outcome["data"]["pid"], daemon.pid());
    assert_eq!(place.run(["daemon", "status", "--quiet"]).succeeded().stdout, "");
}
