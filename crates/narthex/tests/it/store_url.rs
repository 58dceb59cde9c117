//! The store in a PostgreSQL database instead of a file.

use narthex_testkit::postgres;

use serde_json::json;

use crate::support::{Done, Place, descendants, fixture_entry};

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];
const URL: &str = "NARTHEX_STORE_URL";
/// The password of the tests' server.
const PASSWORD: &str = "pw-of-tests";

fn with_url(place: &Place, url: &str, words: &[&str]) -> Done {
    let done = Done::from(place.command(words).env(URL, url).output().unwrap());
    for text in [&done.stdout, &done.stderr] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    done
}

/// S27: what is approved is in the database, a daemon that runs hears of it, and it is said where
/// the store is, but not the password, neither to people nor to servers.
#[test]
fn s27_a_daemon_keeps_its_store_in_a_database() {
    let Some(database) = postgres::database(&[]) else { return };
    let mut asking = fixture_entry();
    asking["env"] = json!({ "MINE": "${env:NARTHEX_STORE_URL}" });
    let place = Place::with(&json!({ "fixture": fixture_entry(), "asking": asking }));
    let run = |words: &[&str]| with_url(&place, &database.url, words);
    run(&UP).failed(1, &["denied", "narthex trust"]);
    run(&["trust"]).succeeded();
    assert!(!place.path("data/store.db").exists());
    let daemon = place.start_with(&UP, |command| {
        command.env(URL, &database.url);
    });
    let ready = daemon.event("ready");
    let rows = ready["servers"].as_array().unwrap();
    let asking = rows.iter().find(|row| row["alias"] == "asking").unwrap();
    let why = asking["error"]["message"].as_str().unwrap();
    assert!(why.contains(URL) && why.contains("is not set"), "{ready}");
    let children = descendants(daemon.pid());
    assert!(!children.is_empty());
    for child in children {
        let environment = fs_err::read(format!("/proc/{child}/environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains(PASSWORD));
    }
    let status = run(&["daemon", "status", "--json"]).succeeded().json();
    let store = status["data"]["store"].as_str().unwrap();
    assert!(store.ends_with(&format!(":5432/{}", database.name)), "{store}");
    place.write("mcp.json", r#"{"servers": {}}"#);
    daemon.event("file");
    run(&["trust"]).succeeded();
    daemon.event("removed");
    // Where nobody named the database, there is another store, which knows nothing of this.
    place.run(["up", "--listen", "127.0.0.1:0", "--data", "other"]).failed(1, &["not trusted"]);
}

/// S27: the URL is told neither when it is wrong nor when it cannot be used.
#[test]
fn s27_a_url_that_cannot_be_used_is_not_shown() {
    let place = Place::new();
    let url = |rest: &str| format!("postgres://u:{PASSWORD}@{rest}");
    let run = |rest: &str| with_url(&place, &url(rest), &["trust"]);
    run("%2Fnone/db").failed(1, &["unavailable", "/none:5432/db"]);
    run("h/n?sslmode=allow").failed(1, &["invalid", "sslmode"]);
    run("h/n/x").failed(1, &["invalid", "%2F"]);
    place.write("narthex.toml", &format!("[store]\nurl = \"{}\"\n", url("%2Fnone/db")));
    let words = ["trust", "--settings", "narthex.toml"];
    place.set_mode("narthex.toml", 0o644);
    let done = place.run(words).failed(2, &["others can read it", "chmod 600", URL]);
    assert!(!done.stderr.contains(PASSWORD), "{done:?}");
    place.set_mode("narthex.toml", 0o600);
    place.run(words).failed(1, &["/none:5432/db"]);
    place.write("narthex.toml", &format!("[store]\nurl = \"{}\n", url("h/n")));
    let done = place.run(words).failed(2, &["no valid TOML: line 2"]);
    assert!(!done.stderr.contains(PASSWORD), "{done:?}");
}
