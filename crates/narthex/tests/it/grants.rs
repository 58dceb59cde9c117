//! `narthex grants` with a real daemon and a real server, one tool of which is gated.

use serde_json::{Value, json};

use crate::support::{Done, Place, fixture_entry};

const LOCAL: &str = "prn_0000000000000000";

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

fn grant_exactly(place: &Place, arguments: &str) -> Done {
    let words = ["grants", "create", "demo.write", "--user", LOCAL, "--json", "--arguments"];
    place.run([&words[..], &[arguments]].concat())
}

/// X-M54, X-M55, X-E75, X-E76: refused, granted by a human, let through, revoked, refused; over a
/// restart grants stay, and those that are used up stay used up.
#[test]
fn x_m54_a_human_grants_and_revokes_at_the_command_line() {
    let mut entry = fixture_entry();
    entry["tool_scopes"] = json!({ "echo": "demo.write" });
    let place = Place::with(&json!({ "fixture": entry }));
    let mut daemon = place.up();
    let call = || place.run(["call", "fixture", "echo", "message=hello"]);
    call().failed(1, &["permission_required", "demo.write"]);
    let grant = |more: &[&str]| {
        let new = ["grants", "create", "demo.write", "--user", LOCAL, "--json"];
        data(place.run([&new[..], more].concat()))
    };
    let lasting = grant(&["--server", "fixture", "--reason", "to try"]);
    assert_eq!((&lasting["scope"], &lasting["is_advisory"]), (&json!("persistent"), &json!(true)));
    assert_eq!(call().succeeded().stdout, "hello\n");
    let id = lasting["id"].as_str().unwrap();
    let listed = place.run(["grants", "list"]).succeeded().stdout;
    assert!(listed.contains(id) && listed.contains("demo.write fixture"), "{listed}");
    let shown = place.run(["grants", "show", id]).succeeded().stdout;
    assert!(shown.contains("advisory"), "{shown}");

    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let mut daemon = place.up();
    assert_eq!(call().succeeded().stdout, "hello\n");
    place.run(["grants", "revoke", id]).succeeded();
    call().failed(1, &["permission_required"]);
    assert_eq!(place.run(["grants", "list", "--quiet"]).succeeded().stdout, "");
    let all = place.run(["grants", "list", "--all", "--quiet"]).succeeded().stdout;
    assert_eq!(all, format!("{id}\n"));

    grant(&["--once"]);
    assert_eq!(call().succeeded().stdout, "hello\n");
    call().failed(1, &["permission_required"]);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let _daemon = place.up();
    call().failed(1, &["permission_required"]);

    let exact = data(grant_exactly(&place, r#"{"message": "hello", "n": 1.0}"#));
    let digest = &exact["details"]["arguments_digest"];
    assert_eq!(
        *digest,
        data(grant_exactly(&place, r#"{"n":1,"message":"hello"}"#))["details"]["arguments_digest"]
    );
    for (wrong, code, told) in [("{", 2, "--arguments"), ("[1]", 1, "details.arguments")] {
        let refused = grant_exactly(&place, wrong).failed(code, &[]);
        assert!(refused.stdout.contains(told), "{refused:?}");
    }
    call().failed(1, &["permission_required"]);
    let same = grant_exactly(&place, r#"{"message": "hello"}"#);
    same.succeeded();
    assert_eq!(call().succeeded().stdout, "hello\n");

    place.write("helper.json", r#"{"name": "helper"}"#);
    place.run(["agents", "apply", "-f", "helper.json"]).succeeded();
    let spawn = ["grants", "create", "--spawn", "helper", "--user", LOCAL, "--json"];
    let spawn = data(place.run(spawn));
    assert_eq!(spawn["grant_type"], "spawn");
    assert_eq!(spawn["details"], json!({ "child_agent_id": "helper" }));
    place.run(["grants", "create", "x.y", "--spawn", "helper", "--user", LOCAL]).failed(2, &[]);

    place.run(["grants", "create", "demo.write", "--agent", "nobody"]).failed(1, &["nobody"]);
    place.run(["grants", "show", "gra_00"]).failed(1, &["not_found", "gra_00"]);
    let waiting = data(place.run(["grants", "pending", "--json"]));
    assert_eq!(waiting["items"], json!([]));
    for verb in ["approve", "deny"] {
        let decided = place.run(["grants", verb, "grq_0000000000000001"]);
        decided.failed(1, &["not_found", "grq_0000000000000001"]);
    }
}
