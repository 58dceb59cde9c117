//! `narthex channels` and `narthex webhooks` with a real daemon.

use serde_json::{Value, json};

use crate::support::{Done, Place};

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// X-M3: a channel is shown by the names of its secrets, and never by their values.
#[test]
fn channels_and_webhooks_are_set_at_the_command_line() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let url = "https://hooks.example.com/the-path-that-is-unknown";
    place.pipe(&["secrets", "set", "OPS_URL"], url).succeeded();
    place.pipe(&["secrets", "set", "OPS_KEY"], "the-key-that-signs-it").succeeded();

    let none = place.run(["channels", "list"]).succeeded().stdout;
    assert!(none.starts_with("There are no channels, so no agent can post messages;"), "{none}");
    let set = ["channels", "set", "team", "--provider", "slack", "--url", "${OPS_URL}"];
    assert_eq!(place.run(set).succeeded().stdout, "agents can post to team\n");
    place.run(["channels", "set", "notes", "--provider", "log"]).succeeded();
    place.run(["channels", "set", "x", "--provider", "slack"]).failed(1, &["invalid", "`url`"]);
    let plain = ["channels", "set", "x", "--provider", "slack", "--url", url];
    let refused = place.run(plain);
    assert!(!refused.stderr.contains("the-path-that-is-unknown"), "{}", refused.stderr);
    refused.failed(1, &["invalid", "`url`", "not the name of a secret"]);
    let listed = place.run(["channels", "list"]).succeeded().stdout;
    assert!(listed.contains("team") && listed.contains("${OPS_URL}"), "{listed}");
    assert!(!listed.contains("that-is-unknown"), "{listed}");
    place.run(["channels", "remove", "team"]).succeeded();
    let left = place.run(["channels", "list", "--quiet"]).succeeded().stdout;
    assert_eq!(left, "notes\n");
    place.run(["channels", "remove", "team"]).failed(1, &["not_found", "`team`"]);

    let set = ["webhooks", "set", "ops", "--url", "${OPS_URL}", "--signing-key", "${OPS_KEY}"];
    let some = ["--events", "permission.granted,session.ended", "--json"];
    let set = data(place.run([&set[..], &some].concat()));
    assert_eq!(set["events"], json!(["permission.granted", "session.ended"]));
    assert_eq!(place.run(["webhooks", "list", "--quiet"]).succeeded().stdout, "ops\n");
    let told = place.run(["webhooks", "deliveries", "ops"]).succeeded().stdout;
    assert_eq!(told, "No event was sent to this webhook yet.\n");
    let removed = place.run(["webhooks", "remove", "ops"]).succeeded().stdout;
    assert_eq!(removed, "the webhook ops is removed\n");
    place.run(["webhooks", "deliveries", "ops"]).failed(1, &["not_found", "`ops`"]);
}

/// A message to a channel of the log is there at the level that a daemon has by itself, and is not
/// where it was left out by name.
#[test]
fn x_e71_a_message_to_a_log_channel_is_in_the_log() {
    for (level, is_heard) in
        [(None, true), (Some("error"), true), (Some("narthex::channel=off"), false)]
    {
        let place = Place::with(&json!({}));
        let log = fs_err::File::create(place.path("log")).unwrap();
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = place.start_with(&words, |command| {
            command.stderr(log.into_file());
            level.map(|level| command.env("NARTHEX_LOG", level));
        });
        daemon.event("ready");
        place.run(["channels", "set", "notes", "--provider", "log"]).succeeded();
        place.write("poster.json", r#"{"name": "poster", "builtin": ["post_message"]}"#);
        place.run(["agents", "apply", "-f", "poster.json"]).succeeded();
        let run = data(place.run(["runs", "create", "--agent", "poster", "--json"]));
        place.write("token", run["token"].as_str().unwrap());
        let token = place.path("token");
        let words = ["call", "--token-file", token.to_str().unwrap(), "narthex", "post_message"];
        let said = ["channel=notes", "text=the lamp is lit"];
        place.run([&words[..], &said].concat()).succeeded();
        let log = fs_err::read_to_string(place.path("log")).unwrap();
        assert_eq!(log.contains("the lamp is lit"), is_heard, "{level:?}: {log}");
    }
}
