//! `narthex sessions events` and `narthex sessions message`, with a real daemon that is killed.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    killed::{chance::Chance, port_of_our_own},
    support::{Daemon, Done, Place},
};

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// A daemon, and a session of an agent without servers.
fn with_session() -> (Place, Daemon, String) {
    with_session_at("127.0.0.1:0")
}

/// A place, a daemon and a session, with the daemon at this address.
fn with_session_at(address: &str) -> (Place, Daemon, String) {
    let place = Place::with(&json!({}));
    let daemon = up_at(&place, address);
    place.write("reader.json", r#"{"name": "reader"}"#);
    place.run(["agents", "apply", "-f", "reader.json"]).succeeded();
    let begun = data(place.run(["runs", "create", "--agent", "reader", "--json"]));
    let session = begun["session_id"].as_str().unwrap().to_owned();
    (place, daemon, session)
}

fn up_at(place: &Place, address: &str) -> Daemon {
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", address]);
    daemon.event("ready");
    daemon
}

fn events(place: &Place, session: &str, words: &[&str]) -> Vec<Value> {
    let words = [&["sessions", "events", session, "--json"], words].concat();
    data(place.run(words))["items"].as_array().unwrap().clone()
}

/// X-E98: a message is there under its number, also after the daemon was killed, and more follow.
#[test]
fn x_e98_events_outlive_a_daemon_that_is_killed() {
    let (place, mut daemon, session) = with_session();
    let words = ["sessions", "message", &session, "yes\nof course", "--request-id", "q1"];
    let said = place.run([&words[..], &["--message-id", "m1", "--json"]].concat());
    let said = data(said);
    assert_eq!((&said["sequence"], &said["payload"]["request_id"]), (&json!(2), &json!("q1")));
    let again = place.run([&words[..], &["--message-id", "m1"]].concat()).succeeded();
    assert_eq!(again.stdout, format!("sent as event 2 of the session {session}\n"));
    place.pipe(&["sessions", "message", &session], "from a file\n").succeeded();
    let before = events(&place, &session, &[]);
    assert_eq!(before.len(), 3, "{before:?}");
    assert_eq!((&before[1], &before[2]["payload"]["text"]), (&said, &json!("from a file\n")));
    daemon.signal("KILL");
    daemon.wait();
    let _daemon = place.up();
    assert_eq!(events(&place, &session, &[]), before);
    place.run(["sessions", "message", &session, "after"]).succeeded();
    assert_eq!(events(&place, &session, &["--after", "3"])[0]["sequence"], 4);
    assert_eq!(events(&place, &session, &["--type", "session.created"]), [before[0].clone()]);
    let lines = place.run(["sessions", "events", &session]).succeeded().stdout;
    assert!(lines.contains("user.message  yes of course\n"), "{lines}");
    let quiet = place.run(["sessions", "events", &session, "--quiet"]).succeeded().stdout;
    assert_eq!(quiet, "1\n2\n3\n4\n");
    let none = place.run(["sessions", "events", &session, "--after", "9"]).succeeded().stdout;
    assert_eq!(none, "There are no such events.\n");
    let wrong = place.run(["sessions", "events", &session, "--type", "agent.none"]);
    wrong.failed(1, &["invalid", "session.created"]);
    for words in [&["events"][..], &["events", "--follow"], &["message", "--request-id=x"]] {
        let unknown = [&["sessions"], words, &["ses_000000000000"]].concat();
        let unknown = place.pipe(&unknown, "x");
        unknown
            .failed(1, &["not_found", &format!("{} shows them", place.printed("sessions list"))]);
    }
}

/// X-E93: the writer of a message at the command line says for how long it counts.
#[test]
fn x_e93_a_message_has_an_expiry_time() {
    let (place, _daemon, session) = with_session();
    let words = ["sessions", "message", &session, "now", "--message-id", "m1", "--json"];
    let said = data(place.run([&words[..], &["--expires-in", "2h"]].concat()));
    let end = said["payload"]["expires_at"].as_str().unwrap();
    let begun = said["timestamp"].as_str().unwrap();
    assert!(end.ends_with('Z') && end > begun, "{end} {begun}");
    // The same message again is the same, though it would expire later.
    let again = data(place.run([&words[..], &["--expires-in", "3h"]].concat()));
    assert_eq!(again, said);
    let wrong = [&words[..4], &["--expires-in", "soon"]].concat();
    place.run(wrong).failed(2, &["--expires-in", "write a number with its unit"]);
}

/// A follower sees new events until the session has ended; also after the daemon was killed.
#[test]
fn a_session_is_followed_to_its_end() {
    // The follower looks for the next daemon where this one was: no other program may get the port.
    let address = format!("127.0.0.1:{}", port_of_our_own(&mut Chance::new()));
    let (place, mut daemon, session) = with_session_at(&address);
    let mut command = place.command(["sessions", "events", &session, "--follow", "--json"]);
    let mut follower = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next()?.unwrap()).ok();
    assert_eq!(next().unwrap()["type"], "session.created");
    place.run(["sessions", "message", &session, "hello"]).succeeded();
    assert_eq!(next().unwrap()["payload"]["text"], "hello");
    daemon.signal("KILL");
    daemon.wait();
    let _daemon = up_at(&place, &address);
    place.run(["sessions", "message", &session, "again"]).succeeded();
    assert_eq!(next().unwrap()["payload"]["text"], "again");
    place.run(["sessions", "end", &session]).succeeded();
    assert_eq!(next().unwrap()["type"], "session.ended");
    assert_eq!(next(), None);
    assert!(follower.wait().unwrap().success());
    let late = place.run(["sessions", "message", &session, "too late"]);
    late.failed(1, &["conflict", "has ended"]);
}
