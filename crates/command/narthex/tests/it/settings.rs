//! Sources of settings, and the messages about wrong ones.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
};

use serde_json::json;

use crate::support::{Done, Place, fixture_entry};

fn with_variable(place: &Place, name: &str, value: &str) -> Done {
    let mut command = place.command(["status"]);
    Done::from(command.env(name, value).output().unwrap())
}

#[test]
fn unknown_and_wrong_settings_are_reported_together() {
    let place = Place::new();
    place.write("narthex.toml", "lisen = \"x\"\n[limits]\nsessions = -1\n[timeouts]\ncall = 30\n");
    place.run(["status", "--settings", "narthex.toml"]).failed(
        2,
        &[
            "narthex.toml: `lisen` is not a setting; did you mean `listen`?",
            "`limits.sessions` must be a whole number",
            "`timeouts.call` must be a duration",
        ],
    );
    place.write("narthex.toml", "[log]\nlevel = \"warn\"\ncatalog.env = [\"A\"]\n");
    place
        .run(["status", "--settings", "narthex.toml"])
        .failed(2, &["`catalog.env` is below `[log]`", "move the line above the first section"]);
    place.write("narthex.toml", "listen = ");
    place.run(["status", "--settings", "narthex.toml"]).failed(2, &["not valid TOML"]);
    place.run(["status", "--settings", "none.toml"]).failed(1, &["none.toml"]);
    let told = ["none.toml", "settings file of NARTHEX_SETTINGS"];
    with_variable(&place, "NARTHEX_SETTINGS", "none.toml").failed(1, &told);
    with_variable(&place, "NARTHEX_LIMITS_SESSIONS", "many")
        .failed(2, &["NARTHEX_LIMITS_SESSIONS must be a whole number"]);
    place.write("narthex.toml", "[log]\nlevel = \"xx\"\n");
    place
        .run(["status", "--settings", "narthex.toml"])
        .failed(2, &["narthex.toml: `log.level` is `xx`: write error, warn, info, debug or trace"]);
    with_variable(&place, "NARTHEX_LOG", "warn,xx")
        .failed(2, &["NARTHEX_LOG is `xx`: write error"]);
    with_variable(&place, "NARTHEX_LOG", "a=b=c").failed(2, &["NARTHEX_LOG: ", "log level"]);
}

/// A wrong value is reported with the variable that gave it, and not with a flag.
#[test]
fn a_wrong_value_of_a_variable_is_reported_with_the_variable() {
    let place = Place::new();
    let with = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.command(words);
        Done::from(command.envs(variables.iter().copied()).output().unwrap())
    };
    let up = ["up", "--config", "mcp.json"];
    for (value, told) in [
        ("x", "NARTHEX_LISTEN names `x`, which is not an address"),
        ("0.0.0.0:0", "NARTHEX_LISTEN names 0.0.0.0:0, which other machines can reach"),
    ] {
        let done = with(&up, &[("NARTHEX_LISTEN", value)]).failed(2, &[told]);
        assert!(!done.stderr.contains("--listen"), "{done:?}");
    }
    place.run([&up[..], &["--listen", "x"]].concat()).failed(2, &["--listen names `x`"]);
    place.write("narthex.toml", "listen = \"x\"\n");
    let of_file = place.run([&up[..], &["--settings", "narthex.toml"]].concat());
    of_file.failed(2, &["narthex.toml: `listen` names `x`"]);
    let list = ["workspaces", "list"];
    let url = ("NARTHEX_DAEMON_URL", "127.0.0.1:1");
    with(&list, &[url, ("NARTHEX_TOKEN", "x")]).failed(2, &["NARTHEX_DAEMON_URL `127.0.0.1:1`"]);
    with(&list, &[url]).failed(2, &["NARTHEX_DAEMON_URL needs a token"]);
    let absent = with(&list, &[url, ("NARTHEX_TOKEN_FILE", "none.token")]);
    absent.failed(1, &["none.token", "(NARTHEX_TOKEN_FILE)", "--token-file"]);
    let load = ("NARTHEX_VAULT_KEY_COMMAND_LOAD", "pass,show,narthex");
    with(&["status"], &[load]).failed(2, &["NARTHEX_VAULT_KEY_COMMAND_LOAD: "]);
}

/// An unknown variable is reported once, and does not stop a command.
#[test]
fn an_unknown_variable_is_reported_once() {
    let place = Place::new();
    let told = "warning: narthex has no variable NARTHEX_LISTN; did you mean `NARTHEX_LISTEN`?\n";
    let done = with_variable(&place, "NARTHEX_LISTN", "canary-value").failed(1, &["no daemon"]);
    assert_eq!(done.stderr.matches(told).count(), 1, "{done:?}");
    assert!(!done.stderr.contains("canary-value"), "{done:?}");
    let known = with_variable(&place, "NARTHEX_TEST_SEED", "1").failed(1, &["no daemon"]);
    assert!(!known.stderr.contains("NARTHEX_TEST_SEED"), "{known:?}");
}

/// A file of servers that is named and absent is wrong usage; an absent default file is reported.
#[test]
fn a_named_file_of_servers_must_exist() {
    let place = Place::new();
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let absent = ["nope.json, which does not exist", "create the file"];
    let named = place.run([&up[..], &["--servers", "nope.json"]].concat()).failed(2, &absent);
    assert!(named.stderr.contains("--servers names /"), "{named:?}");
    let named = ["up", "--config", "nope.json", "--listen", "127.0.0.1:0"];
    let named = place.run(named).failed(2, &absent);
    assert!(named.stderr.contains("--config names nope.json"), "{named:?}");
    for variable in ["NARTHEX_SERVERS", "NARTHEX_DEFAULT_SERVERS"] {
        let mut command = place.command(up);
        let done = Done::from(command.env(variable, "nope.json").output().unwrap());
        let done = done.failed(2, &absent);
        assert!(done.stderr.contains(&format!("{variable} names ")), "{done:?}");
    }
    // The default servers create the file, which need not be there before.
    place.write("defaults.json", r#"{"servers": {}}"#);
    let daemon = place.start_with(&[&up[..], &["--servers", "new.json"]].concat(), |command| {
        command.env("NARTHEX_DEFAULT_SERVERS", place.path("defaults.json"));
    });
    daemon.event("ready");
    drop(daemon);
    let (told, stderr) = std::io::pipe().unwrap();
    let daemon = place.start_with(&up, |command| {
        command.stderr(stderr);
    });
    daemon.event("ready");
    drop(daemon);
    let lines = BufReader::new(told).lines().map_while(Result::ok);
    let absent = lines.filter(|line| line.contains("config/narthex/settings.json"));
    assert_eq!(absent.count(), 0, "the folder has servers, so the default file is not missed");
}

/// O68: the variables that the catalog may name are a setting, by default none.
#[test]
fn o68_variables_of_the_catalog_are_a_setting() {
    let place = Place::with(&json!({}));
    with_variable(&place, "NARTHEX_CATALOG_ENV", "DOCS_*,*")
        .failed(2, &["NARTHEX_CATALOG_ENV: `*` allows no variable", "PREFIX_*"]);
    place.write("narthex.toml", "[catalog]\nenv = [\"NARTHEX_MASTER_KEY\"]\n");
    place.run(["status", "--settings", "narthex.toml"]).failed(2, &["`catalog.env`"]);

    place.write("docs.json", r#"{"id": "docs", "url": "https://x.test/${env.DOCS_PLACE}"}"#);
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&up, |_command| {});
    daemon.event("ready");
    let refused = place.run(["servers", "apply", "--file", "docs.json"]);
    refused.failed(1, &["DOCS_PLACE", "catalog.env"]);
    drop(daemon);
    let daemon = place.start_with(&up, |command| {
        command.env("NARTHEX_CATALOG_ENV", "DOCS_*").env("DOCS_PLACE", "canary-place");
    });
    daemon.event("ready");
    place.run(["servers", "apply", "--file", "docs.json"]).succeeded();
    let shown = place.run(["servers", "get", "docs"]).succeeded().stdout;
    assert!(shown.contains("${env.DOCS_PLACE}") && !shown.contains("canary"), "{shown}");
}

/// E21, E150: all servers by default, the servers that a flag or variable names, or none; the same
/// in lists and for the gateway's own tools.
#[test]
fn e21_up_gives_every_server_unless_some_are_named() {
    let place = Place::with(&json!({ "one": fixture_entry(), "two": fixture_entry() }));
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    for (flag, variable, expected) in [
        (None, None, &["one", "two"][..]),
        (None, Some("two"), &["two"]),
        (Some("one"), Some("two"), &["one"]),
        (Some("two, one"), None, &["one", "two"]),
        (Some("one,*"), None, &["one", "two"]),
        (Some(""), None, &[]),
        (Some("ghost"), None, &[]),
    ] {
        let mut words = up.to_vec();
        words.extend(flag.iter().flat_map(|names| ["--tools", *names]));
        let daemon = place.start_with(&words, |command| {
            command.envs(variable.map(|names| ("NARTHEX_TOOLS", names)));
        });
        daemon.event("ready");
        let listed = place.run(["tools", "--json"]).succeeded().json();
        let servers = listed["data"]["servers"].as_array().unwrap().iter();
        let servers: Vec<_> = servers.map(|server| server["alias"].as_str().unwrap()).collect();
        assert_eq!(servers, expected, "{flag:?} {variable:?}");
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }}});
        let answer = place.feed(&["connect"], &[list]).succeeded().stdout;
        for name in ["one", "two"] {
            let is_listed = answer.contains(&format!("mcp__{name}__"));
            assert_eq!(is_listed, expected.contains(&name), "{flag:?} {variable:?} {name}");
        }
    }
    place.run([&up[..], &["--tools", "No Name"]].concat()).failed(2, &["--tools", "`No Name`"]);
}

#[test]
fn e19_synthetic_tools_and_output_limits_are_settings() {
    let place = Place::new();
    place.write("narthex.toml", "synthetic_tools = \"no\"\n[limits]\noutput_tokens = 0\n");
    place.run(["status", "--settings", "narthex.toml"]).failed(
        2,
        &["`synthetic_tools` must be true or false", "`limits.output_tokens` must be a whole"],
    );
    with_variable(&place, "NARTHEX_SYNTHETIC_TOOLS", "0").failed(2, &["must be true or false"]);
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&up, |command| {
        command.env("NARTHEX_SYNTHETIC_TOOLS", "false").env("NARTHEX_LIMITS_OUTPUT_TOKENS", "10");
    });
    daemon.event("ready");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let params = json!({"name": "mcp__fixture__blob", "arguments": {"bytes": 50}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let answers = place.feed(&["connect"], &[list, call]).succeeded().stdout;
    assert!(answers.contains("mcp__fixture__echo") && !answers.contains("list_resources"));
    assert!(answers.contains("10 of 13 tokens shown"), "{answers}");
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

/// D27.
#[test]
fn a_configuration_in_the_settings_is_approved() {
    let place = Place::new();
    place.write("narthex.toml", "config = \"mcp.json\"\nlisten = \"127.0.0.1:0\"\n");
    place.start(&["up", "--settings", "narthex.toml"]).event("ready");
}

/// A collector that takes batches up to the one with a call, and returns them: a slow program sends
/// earlier batches.
fn collect() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = std::thread::spawn(move || {
        let mut seen = String::new();
        while !seen.contains("tools/call") {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
            }
            let lines = head.to_ascii_lowercase();
            let length = lines.lines().find_map(|line| line.strip_prefix("content-length:"));
            let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            seen.push_str(&head);
            seen.push_str(&String::from_utf8_lossy(&body));
        }
        seen
    });
    (url, taken)
}

#[test]
fn traces_are_sent_to_the_configured_collector() {
    let place = Place::new();
    let (url, taken) = collect();
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
    done.failed(2, &["NARTHEX_OTLP_ENDPOINT: ", "http://127.0.0.1:4318"]);
    let mut command = place.command(["status"]);
    let standard = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere").output().unwrap();
    Done::from(standard).failed(2, &["OTEL_EXPORTER_OTLP_ENDPOINT: "]);
}
