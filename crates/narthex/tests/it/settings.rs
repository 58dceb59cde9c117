//! Where settings come from, and what is said of wrong ones.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use crate::support::{Done, Place};

fn with_variable(place: &Place, name: &str, value: &str) -> Done {
    let mut command = place.command(["status"]);
    Done::from(command.env(name, value).output().unwrap())
}

#[test]
fn unknown_and_wrong_settings_are_all_told() {
    let place = Place::new();
    place.write("narthex.toml", "lisen = \"x\"\n[limits]\nsessions = -1\n[timeouts]\ncall = 30\n");
    place.run(["status", "--settings", "narthex.toml"]).failed(
        2,
        &[
            "narthex.toml: `lisen` is no setting; did you mean `listen`?",
            "`limits.sessions` must be a whole number",
            "`timeouts.call` must be a duration",
        ],
    );
    place.write("narthex.toml", "listen = ");
    place.run(["status", "--settings", "narthex.toml"]).failed(2, &["no valid TOML"]);
    place.run(["status", "--settings", "none.toml"]).failed(1, &["none.toml"]);
    with_variable(&place, "NARTHEX_LIMITS_SESSIONS", "many")
        .failed(2, &["NARTHEX_LIMITS_SESSIONS must be a whole number"]);
    with_variable(&place, "NARTHEX_LOG", "a=b=c").failed(2, &["log level"]);
}

#[test]
fn flags_win_over_variables_and_these_over_the_file() {
    let place = Place::new();
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    place.write("config/narthex/narthex.toml", "data = \"/from-file\"\n");
    let told = |command: &mut std::process::Command| Done::from(command.output().unwrap()).stderr;
    let mut from_file = place.command(["status"]);
    assert!(told(from_file.env_remove("NARTHEX_DATA")).contains("/from-file"));
    let mut from_variable = place.command(["status"]);
    assert!(told(from_variable.env("NARTHEX_DATA", "/from-variable")).contains("/from-variable"));
    let mut from_flag = place.command(["status", "--data", "/from-flag"]);
    assert!(told(from_flag.env("NARTHEX_DATA", "/from-variable")).contains("/from-flag"));
    // An empty variable counts as unset.
    assert!(told(place.command(["status"]).env("NARTHEX_DATA", "")).contains("/from-file"));
}

#[test]
fn a_configuration_in_the_settings_is_approved() {
    let place = Place::new();
    place.write("narthex.toml", "config = \"mcp.json\"\nlisten = \"127.0.0.1:0\"\n");
    place.start(&["up", "--settings", "narthex.toml"]).event("ready");
}

/// A collector that takes one batch and shows it.
fn collect_one() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains("tools/call") {
            let read = stream.read(&mut buffer).unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&seen).into_owned()
    });
    (url, taken)
}

#[test]
fn traces_go_to_the_collector_that_is_named() {
    let place = Place::new();
    let (url, taken) = collect_one();
    let words = ["call", "--config", "mcp.json", "fixture", "echo", "message=hidden"];
    let output = place.command(words).env("NARTHEX_OTLP_ENDPOINT", url).output().unwrap();
    let done = Done::from(output).succeeded();
    assert!(!done.stderr.contains("WARN"), "{done:?}");
    let seen = taken.join().unwrap();
    assert!(seen.starts_with("POST /v1/traces "), "{seen}");
    assert!(seen.contains("service.name") && seen.contains("echo"), "{seen}");
    assert!(!seen.contains("hidden"), "{seen}");
    let mut command = place.command(["status"]);
    let done = Done::from(command.env("NARTHEX_OTLP_ENDPOINT", "nowhere").output().unwrap());
    done.failed(2, &["telemetry.otlp_endpoint", "http://127.0.0.1:4318"]);
}
