//! `narthex secrets` with a real daemon: its keys, its files, its log, and its death.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    sync::Arc,
};

use fs_err as fs;
use narthex_control::SecretRows;
use narthex_model::{Secret, SecretName, SecretReference, WorkspaceId};
use narthex_store::Store;
use narthex_vault::{KeyFile, KeyRing, MasterKey, Put, SealedBackend, Vault};
use serde_json::{Value, json};

use crate::support::{Done, PROGRAM, Place, descendants, fixture_entry};

const UP: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
const CANARY: &str = "canary-77af01-value";

/// Without servers.
fn empty() -> Place {
    Place::with(&json!({}))
}

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// Works with the vault of a data directory that has no daemon now.
fn with_vault<T>(place: &Place, work: impl AsyncFnOnce(Vault) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&place.path("data/store.db")).await.unwrap();
        let rows = Arc::new(SecretRows::new(store.clone()));
        let keys = Arc::new(KeyFile::new(place.path("data/master.key")));
        let backend = SealedBackend::start(rows, keys).await.unwrap();
        let done = work(Vault::new(Arc::new(backend))).await;
        store.close().await;
        done
    })
}

/// The value of a secret, read from a data directory that has no daemon now.
pub(crate) fn value(place: &Place, name: &str) -> String {
    let reference = SecretReference::newest(SecretName::new(name).unwrap());
    with_vault(place, async |vault| {
        let opened = vault.open(&WorkspaceId::default(), &reference).await.unwrap();
        opened.value.expose().to_owned()
    })
}

fn keys(place: &Place) -> KeyRing {
    KeyRing::parse(&fs::read_to_string(place.path("data/master.key")).unwrap()).unwrap()
}

/// X-M23, X-M51: set from standard input, listed in all three ways, cleared.
#[test]
fn x_m23_secrets_are_set_listed_and_cleared() {
    let place = empty();
    let mut daemon = place.up();
    assert_eq!(place.mode("data/master.key"), 0o600);
    let none = place.run(["secrets", "list"]).succeeded();
    assert!(none.stdout.contains("narthex secrets set NAME"), "{none:?}");
    let set = place.pipe(&["secrets", "set", "LINEAR_API_KEY"], "one\n").succeeded();
    assert!(set.stdout.starts_with("set LINEAR_API_KEY, version 1"), "{set:?}");
    let again = place.pipe(&["secrets", "set", "LINEAR_API_KEY", "--json"], "two\r\n");
    assert!(again.stderr.contains("too short to be redacted in results"), "{again:?}");
    let again = data(again);
    assert_eq!((&again["version"], &again["replaced"]), (&json!(2), &json!(true)));
    assert_eq!(again["is_redactable"], false);
    place.pipe(&["secrets", "set", "OTHER", "--quiet"], "three").succeeded();
    let listed = place.run(["secrets", "list"]).succeeded();
    let lines: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "SET", "VERSION", "KEPT", "UPDATED", "BY", "KEY", "USED", "BY"]);
    assert_eq!(lines[1][..4], ["LINEAR_API_KEY", "yes", "2", "2"]);
    assert_eq!((lines[1][5], lines[1][6].len()), ("admin", 16));
    place.run(["secrets", "clear", "OTHER"]).succeeded();
    place.run(["secrets", "clear", "OTHER"]).failed(1, &["not_found", "nothing to clear"]);
    assert_eq!(place.run(["secrets", "list", "--quiet"]).succeeded().stdout, "LINEAR_API_KEY\n");
    let listed = data(place.run(["secrets", "list", "--json"]));
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "a cleared secret has gone: {listed}");
    let elsewhere = place.run(["secrets", "list", "--workspace", "a/b"]);
    elsewhere.failed(1, &["not_found", "workspace"]);
    daemon.signal("TERM");
    daemon.wait();
    assert_eq!(value(&place, "LINEAR_API_KEY"), "two");
}

/// X-M23, S22: the effects of clearing a secret, on runs that end and on runs that keep the value,
/// are printed on lines of their own.
#[test]
fn x_m23_each_run_that_uses_a_cleared_secret_is_printed() {
    let place = empty();
    let _daemon = place.up();
    place.pipe(&["secrets", "set", "BILL_KEY"], "canary-bill-4711").succeeded();
    let agent = json!({ "name": "idle" }).to_string();
    place.pipe(&["agents", "apply", "--file", "-"], &agent).succeeded();
    place.run(["env-bindings", "set", "BILL_KEY", "--agent", "idle"]).succeeded();
    for _ in 0..2 {
        // The command prints the values, which appear nowhere else.
        place.command(["runs", "create", "--agent", "idle"]).output().unwrap();
    }
    let cleared = place.run(["secrets", "clear", "BILL_KEY"]).succeeded();
    let lines: Vec<_> = cleared.stdout.lines().collect();
    assert!(matches!(lines[..], [_, _, _]), "{cleared:?}");
    assert_eq!(lines[0], "cleared BILL_KEY");
    for (number, line) in [(1, lines[1]), (2, lines[2])] {
        let told = "of idle: its agent still has the value in variable BILL_KEY";
        assert_eq!(line, format!("run {number} {told}"));
    }
}

/// S27, D36: the command that takes the value has the name of the secret, where no word that is
/// repeated can be the value.
#[test]
fn s27_the_remedy_of_a_refused_value_names_the_secret() {
    let place = empty();
    let named = place.printed("secrets set BILL_KEY");
    for words in [&["BILL_KEY=canary"][..], &["BILL_KEY", "canary"], &["BILL_KEY=a=b"]] {
        place.run([&["secrets", "set"], words].concat()).failed(2, &[&named]);
    }
    let unnamed = place.printed("secrets set NAME");
    let padded = "JBSWY3DPEHPK3PXP==";
    for words in
        [&["canary=BILL_KEY"][..], &["ABC", "DEF"], &["ABC=DEF"], &[padded], &[padded, "canary"]]
    {
        let done = place.run([&["secrets", "set"], words].concat());
        let done = done.failed(2, &[&unnamed, "the secret's name as NAME"]);
        let repeated = |word: &&str| done.stderr.contains(word.trim_end_matches('='));
        assert!(!words.iter().any(repeated), "{words:?} {done:?}");
    }
}

/// X-M23: without a daemon every command names the remedy, before the user types a value.
#[test]
fn without_a_daemon_each_secrets_command_names_the_remedy() {
    let place = empty();
    let all: [&[&str]; 4] = [&["set", "A"], &["list"], &["clear", "A"], &["rotate-key"]];
    for words in all {
        let done = place.run([&["secrets"], words].concat());
        done.failed(1, &["no daemon runs", "narthex up", "--data"]);
        let done = place.run([&["secrets", "--json"], words].concat());
        assert_eq!(done.json()["error"]["code"], "daemon_down");
    }
    assert!(!place.path("data").exists());
}

/// S27, X-M52: a value on the command line, or in the place of the name, is refused and not
/// repeated.
#[test]
fn s27_values_on_the_command_line_are_refused_and_not_repeated() {
    let place = empty();
    for words in [&["A", CANARY][..], &["A", CANARY, CANARY], &[CANARY]] {
        for json in [&[][..], &["--json"]] {
            let done = place.run([&["secrets", "set"], words, json].concat());
            assert_eq!(done.code, Some(2), "{done:?}");
            assert!(!format!("{done:?}").contains(CANARY), "{done:?}");
        }
    }
    place.run(["secrets", "set", "A", "x"]).failed(2, &["other processes", "standard input"]);
    let done = place.run(["secrets", "clear", "sk-canary"]);
    done.failed(2, &["not a name of a secret", "LINEAR_API_KEY"]);
}

#[test]
fn unusable_values_of_secrets_are_refused() {
    let place = empty();
    let _daemon = place.up();
    let set = |text: &str| place.pipe(&["secrets", "set", "A"], text);
    set("\n").failed(1, &["invalid", "empty"]);
    let long = set(&format!("{CANARY}{}", "x".repeat(64 * 1024)));
    long.failed(1, &["invalid", "65536 bytes"]);
    set(&format!("{CANARY}\0")).failed(1, &["invalid", "zero byte"]);
    set(&"x".repeat(64 * 1024)).succeeded();
}

/// X-M52: a typed value is not shown, and the terminal is as it was afterwards.
#[test]
fn x_m52_a_typed_value_is_not_shown() {
    let place = empty();
    let mut daemon = place.up();
    let shown = on_terminal(&place, &format!("{CANARY}\n"));
    assert!(shown.contains("set ASKED, version 1"), "{shown}");
    let shown = on_terminal(&place, &format!("{CANARY}\x03"));
    assert!(shown.contains("nothing was stored"), "{shown}");
    daemon.signal("TERM");
    daemon.wait();
    assert_eq!(value(&place, "ASKED"), CANARY);
}

/// Sets a secret on a terminal of its own: types the text at the prompt, and then checks whether
/// the terminal shows it. Returns the terminal's output.
fn on_terminal(place: &Place, typed: &str) -> String {
    // The shell outlives Ctrl-C, which is for all on the terminal.
    let line = format!("trap : INT; {PROGRAM} secrets set ASKED; stty -a");
    let shown = place.on_terminal(&line, "not shown): ", typed);
    assert!(!shown.contains(CANARY), "{shown}");
    let settings: Vec<_> = shown.split_whitespace().collect();
    assert!(settings.contains(&"echo") && !settings.contains(&"-echo"), "{shown}");
    shown
}

/// X-M28, X-E68, S15: a lost, a wrong and an open key end the start, each with the remedy.
#[test]
fn x_m28_the_daemon_does_not_start_without_its_master_key() {
    let place = empty();
    let mut daemon = place.up();
    place.pipe(&["secrets", "set", "A"], "one").succeeded();
    daemon.signal("TERM");
    daemon.wait();
    let key = fs::read_to_string(place.path("data/master.key")).unwrap();
    let id = keys(&place).current().id().to_string();
    fs::remove_file(place.path("data/master.key")).unwrap();
    let remedy = "data/master.key does not exist; copy `master.key` of the data directory";
    let lost = place.run(UP).failed(1, &["unavailable", &id, remedy, "to this path"]);
    assert!(!place.path("data/master.key").exists(), "{lost:?}");
    let other = KeyRing::new(MasterKey::generate().unwrap()).write();
    place.write("data/master.key", &other);
    place.set_mode("data/master.key", 0o600);
    place.run(UP).failed(1, &["unavailable", &id, "add that key again"]);
    place.write("data/master.key", &key);
    place.set_mode("data/master.key", 0o640);
    place.run(UP).failed(1, &["denied", "0640", "chmod 600", "rotate-key"]);
    place.set_mode("data/master.key", 0o600);
    for (given, words) in [
        ("", &["invalid", "NARTHEX_MASTER_KEY", "no key"][..]),
        ("hunter2", &["invalid", "64 hexadecimal digits"]),
        (&"0".repeat(64), &["invalid", "not random", "openssl rand -hex 32"]),
        (&*other, &["unavailable", &id, "NARTHEX_MASTER_KEY", "add that key again"]),
    ] {
        let mut command = place.command(UP);
        let done = command.env("NARTHEX_MASTER_KEY", given).stdin(Stdio::null()).output().unwrap();
        let done = Done::from(done).failed(1, words);
        assert!(given.is_empty() || !done.stderr.contains(given.trim()), "{done:?}");
    }
    place.up();
    assert_eq!(value(&place, "A"), "one");
}

/// X-M26, X-E121, S27: a key of the environment is read there alone; no child sees it, and no
/// configuration file can hand it to one.
#[test]
fn x_m26_a_key_of_the_environment_reaches_no_child() {
    let mut asking = fixture_entry();
    asking["env"] = json!({ "MINE": "${env:NARTHEX_MASTER_KEY}" });
    let place = Place::with(&json!({ "fixture": fixture_entry(), "asking": asking }));
    let old = KeyRing::new(MasterKey::generate().unwrap());
    let hex = old.write().trim().to_owned();
    let start = |keys: &str| {
        let daemon = place.start_with(&UP, |command| {
            command.env("NARTHEX_MASTER_KEY", keys);
        });
        let ready = daemon.event("ready");
        (daemon, ready)
    };
    let (mut daemon, ready) = start(&hex);
    let servers = ready["servers"].as_array().unwrap();
    let asking = servers.iter().find(|row| row["alias"] == "asking").unwrap();
    let why = asking["error"]["message"].as_str().unwrap();
    assert!(why.contains("NARTHEX_MASTER_KEY") && why.contains("is not set"), "{ready}");
    assert!(!ready.to_string().contains(&hex));
    assert!(!place.path("data/master.key").exists());
    let children = descendants(daemon.pid());
    assert!(children.len() >= 2, "{children:?}");
    for child in children {
        let environment = fs::read(format!("/proc/{child}/environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains("NARTHEX_MASTER_KEY"));
    }
    place.pipe(&["secrets", "set", "A"], "one").succeeded();
    place.run(["secrets", "rotate-key"]).failed(1, &["conflict", "openssl rand -hex 32"]);
    daemon.signal("TERM");
    daemon.wait();
    let both = old.with(MasterKey::generate().unwrap()).unwrap();
    let (mut daemon, _) = start(&both.write());
    let rotated = place.run(["secrets", "rotate-key"]).succeeded();
    assert!(rotated.stdout.contains("1 value is sealed again"), "{rotated:?}");
    assert!(rotated.stderr.contains("leave only the first"), "{rotated:?}");
    daemon.signal("TERM");
    daemon.wait();
    let (_daemon, _) = start(&both.without_older().write());
}

/// X-F6: killed at any moment of a change of the key, the daemon starts again with every secret,
/// and the change comes to its end.
#[test]
fn x_f6_a_daemon_killed_during_a_key_rotation_loses_no_secret() {
    let place = empty();
    drop(place.up());
    let name = |number: usize| SecretName::new(&format!("S{number}")).unwrap();
    with_vault(&place, async |vault| {
        for number in 0..200 {
            let (here, name) = (WorkspaceId::default(), name(number));
            let value = Secret::new(format!("value {number}"));
            let put = Put { workspace: &here, name: &name, value: &value, by: "test" };
            vault.put(put).await.unwrap();
        }
    });
    let first = keys(&place).current().id().clone();
    for _ in 0..3 {
        let mut daemon = place.up();
        let before = keys(&place);
        let mut command = place.command(["secrets", "rotate-key"]);
        let mut rotating = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        // Until the new key is stored, or the rotation has ended already.
        while keys(&place) == before && rotating.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        daemon.signal("KILL");
        daemon.wait();
        rotating.wait().unwrap();
        with_vault(&place, async |vault| {
            for number in 0..200 {
                let reference = SecretReference::newest(name(number));
                let opened = vault.open(&WorkspaceId::default(), &reference).await.unwrap();
                assert_eq!(opened.value.expose(), format!("value {number}"));
            }
        });
    }
    let _daemon = place.up();
    let rotated = data(place.run(["secrets", "rotate-key", "--json"]));
    assert_eq!(keys(&place).older().count(), 0);
    assert_ne!(*keys(&place).current().id(), first);
    let listed = data(place.run(["secrets", "list", "--json"]));
    for secret in listed["items"].as_array().unwrap() {
        assert_eq!(secret["versions"][0]["key"], rotated["key"]);
    }
}

/// X-E118, S27, X-M21, X-M59: with everything logged, no value and no key is in the log, in any
/// file of the data directory, or in the output of commands.
#[test]
fn s27_no_value_is_logged_stored_or_printed() {
    let place = Place::new();
    let log = fs::File::create(place.path("log")).unwrap();
    let mut daemon = place.start_with(&UP, |command| {
        let (file, _path) = log.into_parts();
        command.env("NARTHEX_LOG", "trace").stderr(file);
    });
    let url = daemon.event("listening")["url"].as_str().unwrap().to_owned();
    daemon.event("ready");
    let mut told = String::new();
    let mut tell = |what: &dyn std::fmt::Debug| told.push_str(&format!("{what:?}"));
    tell(&place.pipe(&["secrets", "set", "A"], CANARY).succeeded());
    tell(&place.pipe(&["secrets", "set", "A", "--json"], &format!("{CANARY}-2")).succeeded());
    tell(&place.pipe(&["secrets", "set", "A"], &format!("{CANARY}\0")).failed(1, &[]));
    tell(&place.run(["secrets", "list", "--json"]).succeeded());
    tell(&place.run(["secrets", "rotate-key", "--json"]).succeeded());
    tell(&place.run(["status", "--json"]).succeeded());
    let token = fs::read_to_string(place.path("data/admin.token")).unwrap();
    let wrong = format!("{{\"value\": \"{CANARY}\", \"{CANARY}\": 1}}");
    for (kind, body) in [("application/json", &*wrong), ("text/plain", CANARY)] {
        let host = url.strip_prefix("http://").unwrap();
        let path = "/api/workspaces/default/secrets/A";
        let head = format!(
            "PUT {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
             connection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            token.trim(),
            body.len()
        );
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        tell(&answer);
    }
    tell(&place.run(["secrets", "clear", "A"]).succeeded());
    let events = place.run(["audit", "export"]).succeeded();
    tell(&events);
    daemon.signal("TERM");
    daemon.wait();
    assert!(!told.contains(CANARY), "{told}");
    let key = keys(&place).write().trim().to_owned();
    let log = fs::read_to_string(place.path("log")).unwrap();
    for event in ["set", "replaced", "cleared"] {
        let kind = format!("workspace.secret.{event}");
        assert!(events.stdout.contains(&kind), "{event} in {events:?}");
    }
    assert!(!log.contains(CANARY) && !log.contains(&key), "{log}");
    let mut files = vec![place.path("data")];
    let mut count = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!has(CANARY), "{}", path.display());
            assert_eq!(has(&key), path.ends_with("master.key"), "{}", path.display());
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} {mode:o}", path.display());
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} files were looked at");
}
