//! `narthex search` and `narthex add`, with a registry on this machine and a daemon: a server is
//! found, tried, kept and called, and one that fails leaves nothing behind.

use std::{io::Write, os::unix::fs::PermissionsExt, process::Stdio, time::SystemTime};

use fs_err as fs;
use narthex_testkit::{
    planted,
    public_registry::{RegistryFixture, examples},
};
use serde_json::{Value, json};

use crate::{
    shop::Shop,
    support::{Daemon, Done, PROGRAM, Place, SOON, fixture},
};

const WEATHER: &str = "io.github.ada/weather";
const KEY: &str = "canary-51c7-weather-key";

/// A shop with a program `npx` that knows two packages.
pub(crate) fn stocked() -> Shop {
    let place = Place::with(&json!({}));
    fs::create_dir(place.path("bin")).unwrap();
    let log = place.path("starts");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\ncase \"$2\" in\n\
         @ada/weather-mcp@1.4.0) test \"$WEATHER_KEY\" = {KEY} && exec '{}' --stdio\n\
         echo 'the key is wrong' >&2; exit 3;;\n\
         plain@1.0.0) exec '{}' --stdio;;\n\
         slow@1.0.0) exec sleep 60;;\nesac\necho 'no such package' >&2; exit 4\n",
        log.display(),
        fixture().display(),
        fixture().display(),
    );
    place.write("bin/npx", &script);
    place.set_mode("bin/npx", 0o755);
    planted::remember(KEY);
    let mut servers = examples();
    servers.push(npm("com.example/plain", "plain"));
    servers.push(npm("com.example/broken", "broken"));
    let mut slow = npm("com.example/slow", "slow");
    let key = json!({ "name": "SLOW_KEY", "isRequired": true, "isSecret": true });
    slow["server"]["packages"][0]["environmentVariables"] = json!([key]);
    servers.push(slow);
    let mut evil = npm("com.evil/kind", "kind");
    evil["server"]["packages"][0]["registryType"] = json!("a\nb\u{1b}[2J");
    servers.push(evil);
    let mut evil = npm("com.evil/words", "@trusted/words");
    let word = json!({ "type": "positional", "value": "evil-unpinned" });
    evil["server"]["packages"][0]["runtimeArguments"] = json!([word]);
    servers.push(evil);
    Shop { place, registry: RegistryFixture::start(servers, 2) }
}

/// The variable `PATH` with the shop's own `npx` first.
pub(crate) fn own_path(shop: &Shop) -> String {
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    format!("{}:{path}", shop.place.path("bin").display())
}

fn up(shop: &Shop) -> Daemon {
    let path = own_path(shop);
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = shop.place.start_with(&up, |command| {
        command.env("PATH", path);
    });
    daemon.event("ready");
    daemon
}

/// The command lines with which `npx` was started.
fn starts(shop: &Shop) -> String {
    fs::read_to_string(shop.place.path("starts")).unwrap_or_default()
}

/// A server that one package of npm runs.
fn npm(name: &str, package: &str) -> Value {
    let package = json!({ "registryType": "npm", "identifier": package, "version": "1.0.0",
        "transport": { "type": "stdio" } });
    let server =
        json!({ "name": name, "description": "x", "version": "1.0.0", "packages": [package] });
    let official = json!({ "status": "active", "isLatest": true });
    json!({ "server": server, "_meta": { "io.modelcontextprotocol.registry/official": official } })
}

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// E201, E202: servers are found by words of their names, over several pages, without deleted ones.
#[test]
fn e201_servers_are_found_by_words() {
    let shop = stocked();
    let found = data(shop.run(&["search", "com.example", "--json"]));
    let names: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    let all = ["broken", "editor", "papers", "plain", "slow"];
    assert_eq!(names, all.map(|name| format!("com.example/{name}")));
    assert_eq!((&found["more"], &found["is_incomplete"]), (&json!(0), &json!(false)));
    let papers = &found["items"][2];
    assert_eq!(papers["ways"], json!(["pypi", "oci", "http", "sse"]));
    assert_eq!(
        (&papers["status"], &papers["publisher"]),
        (&json!("deprecated"), &json!("com.example"))
    );
    assert_eq!(papers["source"], "https://git.example/papers");
    assert!(shop.registry.asked().len() > 1, "{:?}", shop.registry.asked());
    let done = shop.run(&["search", "Weather", "forecasts"]).succeeded();
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(
        lines[0].trim().starts_with("NAME") && lines[1].trim().starts_with(WEATHER),
        "{done:?}"
    );
    assert!(lines[1].contains("1.4.0") && lines[1].contains("npm") && lines.len() == 2, "{done:?}");
    assert!(done.stderr.contains("narthex add NAME"), "{done:?}");
    let one = shop.run(&["search", "com.example", "--limit", "1", "--quiet"]).succeeded();
    assert_eq!(one.stdout, "com.example/broken\n");
    let none = shop.run(&["search", "absent"]).succeeded();
    assert!(none.stdout.contains("has no server with these words"), "{none:?}");
    assert!(none.stderr.contains("try another word of the server's name"), "{none:?}");
    shop.place.run(["search"]).failed(2, &["WORDS"]);
    let plain = ["search", "x", "--registry", "http://registry.example"];
    shop.place.run(plain).failed(2, &["--registry `http://registry.example` is plain HTTP"]);
}

/// E203: answers are found offline with their age, and a lost registry names that way.
#[test]
fn e203_answers_are_found_offline() {
    let shop = stocked();
    let url = shop.registry.url.clone();
    shop.run(&["search", "weather"]).succeeded();
    let asked = shop.registry.asked().len();
    let offline = shop.run(&["search", "weather", "--offline"]).succeeded();
    assert!(offline.stdout.contains("SEEN") && offline.stdout.contains("s ago"), "{offline:?}");
    let item = &data(shop.run(&["search", "weather", "--offline", "--json"]))["items"][0];
    assert!(item["seen_at"].is_string(), "{item}");
    let add = ["add", WEATHER, "--offline", "--dry-run", "--json"];
    assert_eq!(data(shop.run(&add))["version"], "1.4.0");
    let absent = ["add", "com.example/plain", "--offline", "--dry-run"];
    shop.run(&absent).failed(1, &["not_found", "leave --offline out"]);
    assert_eq!(shop.registry.asked().len(), asked);
    let place = shop.place;
    drop(shop.registry);
    let lost = place.run(["search", "weather", "--registry", &url]);
    let remedies = ["check that it runs", "--registry URL", "--offline finds 1 server in the"];
    let lost =
        lost.failed(1, &[&[url.as_str(), "the connection was refused"][..], &remedies].concat());
    assert_eq!(lost.stderr.matches("127.0.0.1").count(), 1, "{lost:?}");
    let add = ["add", WEATHER, "--dry-run", "--registry", &url];
    place.run(add).failed(1, &["unavailable", "--offline uses the answer stored"]);
    let unseen = ["add", "com.example/plain", "--dry-run", "--registry", &url];
    let unseen = place.run(unseen).failed(1, &["unavailable", "--registry URL"]);
    assert!(!unseen.stderr.contains("--offline"), "{unseen:?}");
    assert_eq!(place.mode("data/registry-cache.json"), 0o600);
    let mut set = place.command(["search", "weather", "--offline", "--quiet"]);
    let done = Done::from(set.env("NARTHEX_REGISTRY", &url).output().unwrap()).succeeded();
    assert_eq!(done.stdout, format!("{WEATHER}\n"));
}

/// E204, E205: a dry run prints the entry and needs no daemon.
#[test]
fn e204_a_dry_run_prints_the_entry() {
    let shop = stocked();
    let done = shop.run(&["add", WEATHER, "--dry-run", "--set", "days=2"]).succeeded();
    let shown: Value = serde_json::from_str(&done.stdout).unwrap();
    let entry = &shown["weather"];
    assert_eq!(entry["args"][1], "@ada/weather-mcp@1.4.0");
    assert_eq!(entry["env"]["WEATHER_KEY"], "${secret:WEATHER_KEY}");
    for told in ["io.github.ada", "https://git.example/ada/weather, in server", &shop.registry.url]
    {
        assert!(done.stderr.contains(told), "no {told} in {done:?}");
    }
    let old = data(shop.run(&["add", WEATHER, "--version", "1.3.0", "--dry-run", "--json"]));
    assert_eq!(old["entry"]["args"][1], "@ada/weather-mcp@1.3.0");
    let via = ["add", "com.example/papers", "--via", "http", "--set", "X-Team=a", "--as", "p1"];
    let remote = data(shop.run(&[&via[..], &["--dry-run", "--json"]].concat()));
    assert_eq!((&remote["name"], &remote["entry"]["transport"]), (&json!("p1"), &json!("http")));
    assert_eq!(remote["secrets"], json!(["P1_AUTHORIZATION"]));
    let text = shop.run(&["add", "com.example/papers", "--dry-run"]).succeeded();
    assert!(
        text.stderr.contains("advises against this server: use com.example/library"),
        "{text:?}"
    );
    for (words, code, told) in [
        (&["add", "weather", "--dry-run"][..], 2, "narthex search WORDS"),
        (&["add", WEATHER, "--dry-run", "--via", "oci"], 1, "has no way `oci`; --via takes npm"),
        (&["add", WEATHER, "--dry-run", "--set", "WEATHER_KEY=x"], 2, "--set-secret WEATHER_KEY"),
        (&["add", WEATHER, "--dry-run", "--set", "units=kelvin"], 1, "must be one of"),
        (&["add", WEATHER, "--version", "9.9.9", "--dry-run"], 1, "has no version `9.9.9`"),
        (&["add", "com.example/none", "--dry-run"], 1, "has no server `com.example/none`"),
        (&["add", "com.example/gone", "--dry-run"], 1, "deleted from the registry: it leaked keys"),
        (&["add", "com.evil/kind", "--dry-run"], 1, "`a\u{fffd}b\u{fffd}[2J` is a kind of package"),
        (&["add", "com.evil/words", "--dry-run"], 1, "`npm` has `evil-unpinned` in front of its"),
        (&["add", WEATHER, "--dry-run", "--as", "A b"], 2, "--as: "),
    ] {
        shop.run(words).failed(code, &[told]);
    }
    let down = shop.run(&["add", WEATHER]);
    down.failed(1, &["the variable `WEATHER_KEY` is required"]);
    assert!(starts(&shop).is_empty() && !shop.place.path("data/store.db").exists());
}

/// E207: the first server of a new user needs no daemon that runs already.
#[test]
fn e207_a_daemon_is_started_for_the_first_server() {
    let shop = stocked();
    let words = ["add", "com.example/plain", "--yes", "--registry", &shop.registry.url];
    let mut command = shop.place.command(words);
    command.env("PATH", own_path(&shop)).env("NARTHEX_LISTEN", "127.0.0.1:0");
    let done = Done::from(command.stdin(Stdio::null()).output().unwrap());
    let stopped = shop.place.run(["daemon", "stop"]);
    let done = done.succeeded();
    stopped.succeeded();
    assert!(done.stderr.contains("starting a daemon; its log is "), "{done:?}");
    assert_eq!(shop.entries()["plain"]["command"], "npx");
}

/// E207: a server without secrets is tried once, kept and called.
#[test]
fn e207_a_server_that_works_is_kept_and_called() {
    let shop = stocked();
    let _daemon = up(&shop);
    let done = shop.run(&["add", "com.example/plain", "--yes"]).succeeded();
    let last = done.stdout.lines().last().unwrap();
    assert!(last.starts_with("added plain: com.example/plain 1.0.0, with "), "{done:?}");
    assert!(done.stdout.contains("tools/list"), "{done:?}");
    assert!(done.stderr.contains("npx -y plain@1.0.0"), "{done:?}");
    let expected = json!({ "transport": "stdio", "command": "npx", "args": ["-y", "plain@1.0.0"] });
    assert_eq!(shop.entries()["plain"], expected);
    let called = shop.place.run(["call", "plain", "echo", "message=hello"]).succeeded();
    assert!(called.stdout.contains("hello"), "{called:?}");
    // Once for the trial, and once for the calls.
    assert_eq!(starts(&shop), "-y plain@1.0.0\n-y plain@1.0.0\n");
    let again = shop.run(&["add", "com.example/plain"]);
    again.failed(1, &["conflict", "--as", "narthex mcp remove plain"]);
    let other = data(shop.run(&["add", "com.example/plain", "--as", "second", "--json"]));
    assert_eq!((&other["name"], &other["trial"]["ok"]), (&json!("second"), &json!(true)));
    assert_eq!(other["entry"], expected);
}

/// E207: a killed command leaves a disabled entry and its secret; the next commands name them.
#[test]
fn e207_what_a_killed_command_leaves_is_named() {
    let shop = stocked();
    let _daemon = up(&shop);
    let add = ["add", "com.example/slow", "--registry", &shop.registry.url];
    let mut command = shop.place.command([&add[..], &["--set-secret", "SLOW_KEY"]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut killed = command.spawn().unwrap();
    killed.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    let began = SystemTime::now();
    while !starts(&shop).contains("slow@1.0.0") {
        assert!(began.elapsed().unwrap() < SOON, "the trial does not begin");
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(shop.entries()["slow"]["disabled"], true);
    let clear = shop.place.printed("secrets clear SLOW_KEY");
    let again = shop.run(&["add", "com.example/slow"]);
    again.failed(1, &["conflict", &shop.place.printed("mcp remove slow"), &clear]);
    let removed = shop.place.run(["mcp", "remove", "slow"]).succeeded();
    assert!(removed.stderr.contains(&clear), "{removed:?}");
    // Sentences are for people alone: programs get the names, and scripts nothing.
    let again = ["mcp", "add", "slow", "--quiet", "--", "false"];
    shop.place.run(again).succeeded();
    let removed = shop.place.run(["mcp", "remove", "slow", "--json"]).succeeded();
    assert_eq!(removed.json()["data"]["left_secrets"], json!(["SLOW_KEY"]));
    assert!(!removed.stderr.contains("The vault still has"), "{removed:?}");
    shop.place.run(again).succeeded();
    let removed = shop.place.run(["mcp", "remove", "slow", "--quiet"]).succeeded();
    assert_eq!((removed.stdout, removed.stderr), (String::new(), String::new()));
    shop.place.run(["secrets", "clear", "SLOW_KEY"]).succeeded();
    assert_eq!(shop.secrets(), "");
    // A secret without an entry.
    shop.place.pipe(&["secrets", "set", "WEATHER_KEY"], "old-weather-key").succeeded();
    let added = shop.pipe(&["add", WEATHER, "--set-secret", "WEATHER_KEY"], KEY).succeeded();
    assert!(added.stderr.contains(&shop.place.printed("secrets clear WEATHER_KEY")), "{added:?}");
    assert_eq!(shop.entries()["weather"]["env"]["WEATHER_KEY"], "${secret:WEATHER_KEY_2}");
    let add = ["add", WEATHER, "--as", "weather", "--set-secret", "WEATHER_KEY"];
    let with = |format: &str| {
        shop.place.run(["mcp", "remove", "weather"]).succeeded();
        shop.pipe(&[&add[..], &[format]].concat(), KEY).succeeded()
    };
    let quiet = with("--quiet");
    assert_eq!(quiet.stdout, "");
    assert!(!quiet.stderr.contains("The vault still has"), "{quiet:?}");
    let added = with("--json");
    assert_eq!(added.json()["data"]["left_secrets"], json!(["WEATHER_KEY"]));
    assert!(!added.stderr.contains("The vault still has"), "{added:?}");
}

/// E207: a server that fails its trial leaves nothing; `--keep-anyway` keeps it.
#[test]
fn e207_a_server_that_fails_is_not_kept() {
    let shop = stocked();
    let _daemon = up(&shop);
    let failed = shop.run(&["add", "com.example/broken", "--json"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let error = &failed.json()["error"];
    assert_eq!(error["code"], "trial_failed");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no such package") && message.ends_with("nothing is kept"), "{error}");
    assert_eq!(error["details"]["trial"]["ok"], false);
    assert_eq!(shop.entries()["broken"], Value::Null);
    assert_eq!(shop.place.run(["mcp", "list", "--quiet"]).succeeded().stdout, "");
    let kept = shop.run(&["add", "com.example/broken", "--keep-anyway"]).succeeded();
    assert!(kept.stderr.contains("its trial failed: connect: "), "{kept:?}");
    assert_eq!(shop.entries()["broken"]["command"], "npx");
}

/// E204, E207: a secret goes to the vault and nowhere else, and is cleared if the trial fails.
#[test]
fn e207_a_secret_is_stored_for_a_server_that_works_alone() {
    let shop = stocked();
    let _daemon = up(&shop);
    let missing = shop.run(&["add", WEATHER]);
    missing.failed(1, &["the variable `WEATHER_KEY` is required", "--set-secret WEATHER_KEY"]);
    let add = ["add", WEATHER, "--set-secret", "WEATHER_KEY"];
    let wrong = shop.pipe(&add, "another-key-81\n");
    wrong.failed(1, &["the key is wrong", "nothing is kept"]);
    assert_eq!((shop.secrets(), &shop.entries()["weather"]), (String::new(), &Value::Null));
    let done = shop.pipe(&add, &format!("{KEY}\n")).succeeded();
    assert!(done.stdout.contains("added weather: io.github.ada/weather 1.4.0"), "{done:?}");
    for told in ["variable   LOG_LEVEL=info", "variable   WEATHER_KEY, a secret, stored"] {
        assert!(done.stderr.contains(told), "no {told} in {done:?}");
    }
    assert_eq!(shop.secrets(), "WEATHER_KEY\n");
    assert_eq!(shop.entries()["weather"]["env"]["WEATHER_KEY"], "${secret:WEATHER_KEY}");
    let called = shop.place.run(["call", "weather", "echo", "message=rain"]).succeeded();
    assert!(called.stdout.contains("rain"), "{called:?}");
    for file in ["config/narthex/settings.json", "data/registry-cache.json", "starts"] {
        assert!(!fs::read_to_string(shop.place.path(file)).unwrap().contains(KEY), "{file}");
    }
    assert_eq!(fs::metadata(shop.place.path("bin/npx")).unwrap().permissions().mode() & 0o7, 5);
}

/// E204: on a terminal, required values are asked for, and the start is confirmed.
#[test]
fn e204_a_terminal_asks_for_values_and_confirms() {
    let shop = stocked();
    let _daemon = up(&shop);
    let line = format!("{PROGRAM} add {WEATHER} --registry {}", shop.registry.url);
    let no = [("not shown): ", format!("{KEY}\n")), ("[y/N] ", "n\n".to_owned())];
    let no = no.each_ref().map(|(prompt, typed)| (*prompt, typed.as_str()));
    let shown = shop.place.at_terminal(&line, &no);
    assert!(shown.contains("Key of the weather service"), "{shown}");
    assert!(shown.contains("npx -y @ada/weather-mcp@1.4.0") && !shown.contains(KEY), "{shown}");
    assert!(shown.contains("nothing was started or stored"), "{shown}");
    assert_eq!((shop.secrets(), starts(&shop)), (String::new(), String::new()));
    let line = format!(
        "{PROGRAM} add com.example/papers --via sse --set-secret token \
                        --registry {}",
        shop.registry.url
    );
    let shown = shop.place.at_terminal(&line, &[("not shown): ", "abc\n")]);
    assert!(shown.contains("takes no value `token`; it takes region"), "{shown}");
}
