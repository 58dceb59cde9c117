//! Files that change while the daemon runs.

use serde_json::json;

use crate::support::{Place, fixture_entry};

fn missing() -> serde_json::Value {
    json!({ "transport": "stdio", "command": "no-such-program-here" })
}

fn write(place: &Place, servers: &serde_json::Value) {
    place.write("next.json", &json!({ "servers": servers }).to_string());
    fs_err::rename(place.path("next.json"), place.path("mcp.json")).unwrap();
}

/// E10, E125: each atomic replacement is seen; what has not changed keeps its process.
#[test]
fn e10_a_change_of_the_file_takes_effect() {
    let place = Place::new();
    let daemon = place.up();
    for round in 0..3 {
        let name = format!("extra-{round}");
        write(&place, &json!({ "fixture": fixture_entry(), name.clone(): missing() }));
        daemon.server_in(&name, "error");
        place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    }
    write(&place, &json!({ "fixture": fixture_entry() }));
    assert_eq!(daemon.event("removed")["alias"], "extra-2");
}

/// E118, E124: a broken file is told and changes nothing; a deleted one declares nothing.
#[test]
fn e118_a_broken_file_keeps_what_was_there() {
    let place = Place::new();
    let daemon = place.up();
    place.write("mcp.json", r#"{"servers": {"#);
    let told = daemon.event("file");
    assert!(told["error"].as_str().unwrap().contains("mcp.json"), "{told}");
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    assert_eq!(daemon.event("removed")["alias"], "fixture");
    write(&place, &json!({ "fixture": fixture_entry() }));
    daemon.server_in("fixture", "ready");
}

/// E11, E12, E146: servers of the user's settings, under those of the project; defaults come once.
#[test]
fn e12_the_users_settings_are_a_layer_below() {
    let place = Place::with(&json!({ "both": fixture_entry() }));
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    let settings = json!({ "mcp": { "servers": { "both": missing(), "mine": fixture_entry() } } });
    place.write("config/narthex/settings.json", &settings.to_string());
    place.write("defaults.json", &json!({ "servers": { "seeded": missing() } }).to_string());
    let start = || {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        place.start_with(&words, |command| {
            command.env("NARTHEX_DEFAULT_SERVERS", place.path("defaults.json"));
        })
    };
    let daemon = start();
    daemon.event("ready");
    place.run(["call", "mine", "echo", "message=hello"]).succeeded();
    place.run(["call", "both", "echo", "message=hello"]).succeeded();
    let stored = fs_err::read_to_string(place.path("config/narthex/settings.json")).unwrap();
    assert!(stored.contains("seeded"), "{stored}");
    place.write("config/narthex/settings.json", &settings.to_string());
    assert_eq!(daemon.event("removed")["alias"], "seeded");
    drop(daemon);
    let again = start();
    let ready = again.event("ready");
    assert!(!ready.to_string().contains("seeded"), "a default that was removed stays away");
}
