//! `narthex mcp`: every command, with the daemon up and down, in all three ways of telling.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::mpsc::sync_channel,
};

use serde_json::{Value, json};

use crate::support::{Done, Place, SOON, fixture_entry};

/// A legacy server in a few lines of shell, which says on stderr that it starts.
fn shell_entry() -> Value {
    let result = concat!(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
        r#""serverInfo":{"name":"shell","version":"3"}}"#
    );
    let script = format!(
        r#"echo "is awake" >&2; printf 'an escape \033[2K\n' >&2
        while read -r line; do id=$${{line#*'"id":'}}; id=$${{id%%[,\}}]*}}; case "$line" in
        *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{result}}}\n' "$id";;
        *'"id"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[]}}}}\n' "$id";;
        esac; done"#
    );
    json!({ "transport": "stdio", "command": "sh", "args": ["-c", script] })
}

fn missing_entry() -> Value {
    json!({ "transport": "stdio", "command": "no-such-program-here" })
}

/// A server that never answers.
fn silent_entry() -> Value {
    json!({ "transport": "stdio", "command": "sleep", "args": ["600"] })
}

fn three() -> Place {
    Place::with(&json!({
        "fixture": fixture_entry(),
        "missing": missing_entry(),
        "shell": shell_entry(),
    }))
}

/// The outcome of a command that went well, in JSON.
fn data(done: Done) -> Value {
    let mut outcome = done.succeeded().json();
    assert_eq!(outcome["ok"], true);
    outcome["data"].take()
}

/// Checks that the command failed with this code, and returns its message.
#[track_caller]
fn refusal(done: &Done, code: &str) -> String {
    assert_eq!((done.code, done.stdout.lines().count()), (Some(1), 1), "{done:?}");
    let outcome = done.json();
    assert_eq!((&outcome["ok"], &outcome["error"]["code"]), (&json!(false), &json!(code)));
    assert!(outcome["error"]["kind"].is_string(), "{outcome}");
    outcome["error"]["message"].as_str().unwrap().to_owned()
}

/// §3.5 `mcp list`, R-F1: a row for each server, in the columns that are promised.
#[test]
fn r_c1_list_shows_a_row_for_each_server() {
    let place = three();
    let _daemon = place.up();
    let done = place.run(["mcp", "list"]).succeeded();
    let lines: Vec<Vec<&str>> =
        done.stdout.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
    let lines: Vec<Vec<&str>> = lines
        .into_iter()
        .map(|line| line.into_iter().filter(|cell| !cell.is_empty()).collect())
        .collect();
    let promised = ["NAME", "TRANSPORT", "STATUS", "TOOLS", "RESOURCES", "LAST CHECK"];
    assert_eq!((&lines[0][..6], lines[0][6]), (&promised[..], "LAST FAILURE"));
    assert_eq!(lines[1][..3], ["fixture", "stdio", "ready"]);
    assert!(lines[1][3].parse::<u64>().unwrap() > 10 && lines[1][5].ends_with("s ago"));
    assert_eq!(lines[2][..5], ["missing", "stdio", "error", "-", "-"]);
    assert_eq!(lines[3][..5], ["shell", "stdio", "ready", "-", "-"]);
    assert!(done.stderr.contains("missing: ") && done.stderr.contains("no-such-program-here"));
    let mut utf8 = place.command(["mcp", "list"]);
    let done = Done::from(utf8.env("LANG", "C.UTF-8").output().unwrap()).succeeded();
    assert!(done.stdout.contains('—'), "{done:?}");
    let mut utf8 = place.command(["mcp", "list", "--ascii"]);
    let done = Done::from(utf8.env("LANG", "C.UTF-8").output().unwrap()).succeeded();
    assert!(done.stdout.is_ascii(), "{done:?}");
    let data = data(place.run(["mcp", "list", "--json"]));
    assert_eq!(data["daemon"], "running");
    let mount = &data["mounts"][0];
    assert_eq!((&mount["name"], &mount["status"]), (&json!("fixture"), &json!("ready")));
    assert_eq!((&mount["transport"], &mount["provenance"]), (&json!("stdio"), &json!("workspace")));
    assert_eq!(mount["path"], "/mnt/mcp/0-fixture");
    assert!(mount["last_success"].is_string() && mount["last_failure"].is_null(), "{mount}");
    let failure = &data["mounts"][1]["last_failure"];
    assert_eq!(failure["kind"], "transport_error", "{failure}");
    assert!(failure["at"].is_string() && failure["message"].is_string(), "{failure}");
    let done = place.run(["mcp", "list", "--quiet"]).succeeded();
    assert_eq!(done.stdout, "fixture\nmissing\nshell\n");
}

/// §3.5 `mcp list`: without a daemon it reports that, hints at the configured servers, and starts
/// nothing.
#[test]
fn list_works_without_a_daemon() {
    let place = three();
    let done = place.run(["mcp", "list"]).succeeded();
    assert!(done.stdout.contains("No daemon runs"), "{done:?}");
    assert!(done.stdout.contains("fixture, missing, shell"), "{done:?}");
    let trust = place.printed(&format!("trust {}", place.path("mcp.json").display()));
    for told in ["mcp.json is not trusted yet, so ", "does not start them", &trust] {
        assert!(done.stdout.contains(told), "{told} {done:?}");
    }
    assert!(!place.path("data").exists());
    let approved = three();
    approved.run(["trust", "--yes"]).succeeded();
    let done = approved.run(["mcp", "list"]).succeeded();
    let then = format!("{} starts them.", approved.printed("up --detach"));
    assert!(done.stdout.contains(&then), "{done:?}");
    let data = data(place.run(["mcp", "list", "--json"]));
    assert_eq!((&data["mounts"], &data["daemon"]), (&json!([]), &json!("down")));
    assert_eq!(data["configured"], json!(["fixture", "missing", "shell"]));
    assert_eq!(place.run(["mcp", "list", "--quiet"]).succeeded().stdout, "");
    let empty = Place::with(&json!({}));
    let done = empty.run(["mcp", "list"]).succeeded();
    // The advice is that of each command that needs a daemon.
    let advice = format!("start one with {}", empty.printed("up --detach"));
    assert!(done.stderr.contains(&advice), "{done:?}");
    empty.run(["status"]).failed(1, &[&advice]);
    let _daemon = empty.up();
    let none = "Neither the daemon nor any active run that this token can see has servers.\n";
    let done = empty.run(["mcp", "list"]).succeeded();
    assert_eq!(done.stdout, none);
    for words in ["setup", "add NAME"] {
        assert!(done.stderr.contains(&empty.printed(words)), "{words} {done:?}");
    }
}

/// §3.5 `mcp list`: the daemon's answer must be understood.
#[test]
fn a_daemon_of_another_kind_is_a_protocol_error() {
    let place = Place::new();
    let daemon = place.up();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    place.write(
        "data/daemon.json",
        &json!({ "pid": daemon.pid(), "url": url, "socket_dir": null, "config": "" }).to_string(),
    );
    let answering = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap();
    });
    let message = refusal(&place.run(["mcp", "list", "--json"]), "invalid");
    assert!(message.contains("of this version"), "{message}");
    answering.join().unwrap();
}

/// O99: §3.5 `mcp test`: four stages with their results, and no process is left behind.
#[test]
fn test_reports_each_stage() {
    let place = three();
    let daemon = place.up();
    let before = crate::support::descendants(daemon.pid());
    let done = place.run(["mcp", "test", "fixture"]).succeeded();
    let lines: Vec<_> = done.stdout.lines().collect();
    let heads = [
        "[1/4] connect ... OK (",
        "[2/4] tools/list ... OK (",
        "[3/4] resources/list ... OK (",
        "[4/4] prompts/list ... OK (",
        "OK ",
    ];
    assert_eq!(lines.len(), heads.len(), "{done:?}");
    for (line, head) in lines.iter().zip(heads) {
        assert!(line.starts_with(head), "{line}");
    }
    assert!(lines[0].ends_with("ms)") && lines[1].contains(" tools, "), "{done:?}");
    // A server that failed to start may still be ending at first.
    let left = crate::support::descendants(daemon.pid());
    assert!(left.iter().all(|one| before.contains(one)), "{left:?} of {before:?}");
    let done = place.run(["mcp", "test", "shell"]).succeeded();
    assert!(done.stdout.contains("[3/4] resources/list ... N/A (not supported)"), "{done:?}");
    assert!(done.stdout.ends_with("OK shell 3 (2025-11-25)\n"), "{done:?}");
    let mut utf8 = place.command(["mcp", "test", "shell"]);
    let done = Done::from(utf8.env("LC_ALL", "de_DE.utf8").output().unwrap()).succeeded();
    assert!(done.stdout.starts_with("[1/4] connect … OK ("), "{done:?}");
    let probe = data(place.run(["mcp", "test", "fixture", "--json"]));
    assert_eq!((&probe["ok"], &probe["stages"][1]["name"]), (&json!(true), &json!("tools/list")));
    assert_eq!(place.run(["mcp", "test", "fixture", "--quiet"]).succeeded().stdout, "OK\n");
}

/// §3.5 `mcp test`: its failures.
#[test]
fn test_fails_with_the_reason() {
    let place = Place::with(&json!({ "missing": missing_entry(), "silent": silent_entry() }));
    let down = place.run(["mcp", "test", "missing"]).failed(1, &["no daemon", "narthex up"]);
    assert_eq!(down.stdout, "");
    refusal(&place.run(["mcp", "test", "missing", "--json"]), "daemon_down");
    // Only the server that never answers meets short limits.
    let up = |limit: Option<&str>| {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = place.start_with(&words, |command| {
            for name in ["PROBE", "CONNECT", "INSTALL"] {
                command.envs(limit.map(|limit| (format!("NARTHEX_TIMEOUTS_{name}"), limit)));
            }
        });
        daemon.event("listening");
        daemon
    };
    let hasty = up(Some("300ms"));
    let done = place.run(["mcp", "test", "silent"]);
    assert!(done.stdout.starts_with("[1/4] connect ... TIMEOUT (after "), "{done:?}");
    drop(hasty);
    let _daemon = up(None);
    let done = place.run(["mcp", "test", "missing"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stdout.starts_with("[1/4] connect ... FAILED (command"), "{done:?}");
    assert_eq!(done.stdout.lines().skip(1).collect::<Vec<_>>(), ["FAILED connect"], "{done:?}");
    let done = place.run(["mcp", "test", "missing", "--quiet"]);
    assert_eq!((done.code, &*done.stdout), (Some(1), "FAILED\n"));
    let done = place.run(["mcp", "test", "missing", "--json"]);
    refusal(&done, "test_failed");
    assert_eq!(done.json()["data"]["stages"][0]["outcome"], "failed");
    place.run(["mcp", "test", "nosuch"]).failed(1, &["not_found", "missing, silent"]);
    refusal(&place.run(["mcp", "test", "nosuch", "--json"]), "not_found");
}

/// A server that sends messages of its own with its tools and at its end, and writes the answer to
/// its question into a file.
const TALKATIVE: &str = r#"
tell() {
    printf '{"jsonrpc":"2.0","method":"notifications/message",'
    printf '"params":{"level":"info","data":"x"}}\n'
}
while read -r line; do
    id=${line#*'"id":'}; id=${id%%[,\}]*}
    case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"
        printf '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},'
        printf '"serverInfo":{"name":"talk","version":"1"}}}\n';;
    *'"tools/list"'*) tell; tell; tell
        printf '{"jsonrpc":"2.0","id":"q","method":"roots/list"}\n'
        read -r answer; printf '%s\n' "$answer" >> "$1"
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id";;
    *'"id"'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
    esac
done
tell; tell
"#;

/// §3.5 `mcp test`: the test reads the server's own messages and refuses its questions, so the
/// daemon reports no dropped message.
#[test]
fn a_test_reads_the_messages_that_the_server_sends_by_itself() {
    let place = Place::new();
    place.write("talkative.sh", TALKATIVE);
    let words = [place.path("talkative.sh"), place.path("answers")];
    let entry = json!({ "transport": "stdio", "command": "sh", "args": words, "disabled": true });
    place.write("mcp.json", &json!({ "servers": { "talkative": entry } }).to_string());
    let log = fs_err::File::create(place.path("log")).unwrap();
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let mut daemon = place.start_with(&up, |command| {
        command.stderr(log.into_parts().0);
    });
    daemon.event("ready");
    place.run(["mcp", "test", "talkative"]).succeeded();
    let read = |name: &str| fs_err::read_to_string(place.path(name)).unwrap();
    assert!(read("answers").contains("-32601"), "{}", read("answers"));
    daemon.signal("TERM");
    daemon.wait();
    assert!(!read("log").contains("dropp"), "{}", read("log"));
}

/// §3.5 `mcp logs`, R-M32, R-C2, R-D10: by the server's name or the mount's.
#[test]
fn r_m32_logs_show_the_output_of_a_server() {
    let place = three();
    let done = place.run(["mcp", "logs", "shell"]).succeeded();
    assert!(done.stdout.contains("No daemon runs"), "{done:?}");
    let down = data(place.run(["mcp", "logs", "shell", "--json"]));
    assert_eq!(down["lines"], json!([]));
    assert_eq!(place.run(["mcp", "logs", "shell", "--quiet"]).succeeded().stdout, "");
    let _daemon = place.up();
    place.until_logged(&["mcp", "logs", "shell"], 2);
    for name in ["shell", "0-shell"] {
        let done = place.run(["mcp", "logs", name]).succeeded();
        let expected = "[stderr] is awake\n[stderr] an escape \u{fffd}[2K\n";
        assert_eq!(done.stdout, expected);
        let quiet = place.run(["mcp", "logs", name, "--quiet"]).succeeded();
        assert_eq!(quiet.stdout, expected.replace("[stderr] ", ""));
        let lines = data(place.run(["mcp", "logs", name, "--json"]));
        assert_eq!(lines["lines"], json!(["is awake", "an escape \u{1b}[2K"]));
    }
    let done = place.run(["mcp", "logs", "missing"]).succeeded();
    assert_eq!(done.stdout, "missing has written nothing to stderr.\n");
    // A run of another number is another run.
    for name in ["nosuch", "0-nosuch", "7-shell"] {
        let done = place.run(["mcp", "logs", name]);
        done.failed(1, &["not_found", "available: fixture, missing, shell"]);
    }
    refusal(&place.run(["mcp", "logs", "nosuch", "--json"]), "not_found");
}

/// R-C2, R-D10: if two runs have a server of one name, the name alone means the newest run's, and
/// the output names that run. The name of a mount means exactly this mount.
#[test]
fn r_c2_logs_by_name_are_of_the_newest_run_and_by_mount_exact() {
    let place = three();
    let _daemon = place.up();
    let mut runs = Vec::new();
    for whose in ["first", "second"] {
        let script = shell_entry()["args"][1].as_str().unwrap().replace("awake", whose);
        let mut server = shell_entry();
        server["args"][1] = json!(script);
        let servers = json!({ "tool": server, "unlike": shell_entry() });
        place.write("run.json", &json!({ "servers": servers }).to_string());
        let made = data(place.run(["runs", "create", "run.json", "--json"]));
        runs.push(made["run_id"].as_str().unwrap().to_owned());
    }
    // The log is followed, as a line may arrive after the run has begun.
    let first_line = |name: &str| {
        let mut command = place.command(["mcp", "logs", name, "--follow"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut following = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(following.stdout.take().unwrap()).read_line(&mut line).unwrap();
        following.kill().unwrap();
        let told = following.wait_with_output().unwrap().stderr;
        (line, String::from_utf8(told).unwrap())
    };
    let exact = |whose: &str| (format!("[stderr] is {whose}\n"), String::new());
    assert_eq!(first_line("1-tool"), exact("first"));
    assert_eq!(first_line("2-tool"), exact("second"));
    let told = "these are the lines of 2-tool; there are also those of 1-tool\n";
    assert_eq!(first_line("tool"), ("[stderr] is second\n".to_owned(), told.to_owned()));
    let shown = place.run(["mcp", "logs", "tool"]).succeeded();
    assert!(shown.stdout.starts_with("[stderr] is second\n") && shown.stderr == told, "{shown:?}");
    let quiet = place.run(["mcp", "logs", "tool", "--quiet"]).succeeded();
    assert!(quiet.stdout.starts_with("is second\n") && quiet.stderr.is_empty(), "{quiet:?}");
    let lines = data(place.run(["mcp", "logs", "tool", "--json"]));
    assert_eq!(lines["lines"][0], "is second");

    let mut following = place.command(["mcp", "logs", "tool", "--follow"]);
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(following.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "[stderr] is second\n");
    place.run(["runs", "end", &runs[1]]).succeeded();
    assert!(following.wait().unwrap().success(), "it ends with the run");
    let alone = "these are the lines of 1-tool\n";
    assert_eq!(first_line("tool"), ("[stderr] is first\n".to_owned(), alone.to_owned()));
    place.run(["mcp", "logs", "2-tool"]).failed(1, &["not_found"]);
    place.run(["runs", "end", &runs[0]]).succeeded();
    place.run(["mcp", "logs", "tool"]).failed(1, &["not_found", "available: fixture"]);
}

/// R-M32: logs are followed over a new start of the server, until the daemon ends.
#[test]
fn r_m32_logs_are_followed() {
    let place = three();
    let mut daemon = place.up();
    let mut command = place.command(["mcp", "logs", "shell", "--follow"]);
    let mut following = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let (sender, received) = sync_channel(100);
    std::thread::spawn(move || {
        lines.map_while(Result::ok).take_while(|line| sender.send(line.clone()).is_ok()).count()
    });
    let next = || received.recv_timeout(SOON).unwrap();
    assert_eq!(next(), "[stderr] is awake");
    assert!(next().contains("an escape"));
    place.run(["mcp", "reconnect", "shell"]).succeeded();
    assert!(next().contains("started again"));
    assert_eq!(next(), "[stderr] is awake");
    daemon.signal("TERM");
    assert!(following.wait().unwrap().success());
    daemon.wait();
}

/// §3.5 `mcp reload`: reads the files again and counts.
#[test]
fn reload_counts_the_servers() {
    let place = three();
    refusal(&place.run(["mcp", "reload", "--json"]), "daemon_down");
    let _daemon = place.up();
    let servers = json!({ "servers": { "shell": shell_entry(), "a": missing_entry() } });
    place.write("mcp.json", &servers.to_string());
    let reloaded = data(place.run(["mcp", "reload", "--json"]));
    assert_eq!(reloaded["server_count"], 2);
    assert_eq!(reloaded["servers"], json!(["a", "shell"]));
    assert_eq!(place.run(["mcp", "reload"]).succeeded().stdout, "2 servers\n");
    assert_eq!(place.run(["mcp", "reload", "--quiet"]).succeeded().stdout, "2\n");
    place.write("mcp.json", "{");
    // D31: a refused file is a failure, and the earlier content stays in effect.
    let done = place.run(["mcp", "reload"]).failed(1, &["mcp.json was refused"]);
    assert_eq!(done.stdout, "");
    let refused = place.run(["mcp", "reload", "--json"]);
    let refused = (refused.code, refused.json()["error"]["details"]["server_count"].take());
    assert_eq!(refused, (Some(1), json!(2)));
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    assert_eq!(data(place.run(["mcp", "reload", "--json"]))["server_count"], 0);
}

/// E37, E47, E57: off, on, anew; a server that is off is off after a new start, too.
#[test]
fn e57_servers_are_disabled_enabled_and_reconnected() {
    let place = three();
    refusal(&place.run(["mcp", "disable", "shell", "--json"]), "daemon_down");
    let mut daemon = place.up();
    assert_eq!(place.run(["mcp", "disable", "shell"]).succeeded().stdout, "shell is disabled\n");
    assert!(place.run(["mcp", "list"]).succeeded().stdout.contains("disabled"));
    daemon.signal("TERM");
    daemon.wait();
    let _daemon = place.up();
    let list = data(place.run(["mcp", "list", "--json"]));
    assert_eq!(list["mounts"][2]["status"], "disabled");
    let done = place.run(["mcp", "enable", "shell"]).succeeded();
    assert_eq!(done.stdout, "shell is ready: 0 tools\n");
    let enabled = data(place.run(["mcp", "enable", "shell", "--json"]));
    assert_eq!(enabled["result"]["status"], "ready");
    assert_eq!(place.run(["mcp", "reconnect", "shell", "--quiet"]).succeeded().stdout, "");
    place.run(["mcp", "reconnect", "missing"]).failed(1, &["transport_error", "no-such-program"]);
    for verb in ["enable", "disable", "reconnect", "reauthorize"] {
        let done = place.run(["mcp", verb, "nosuch"]);
        let told =
            "there is no server `nosuch`; available: fixture, missing, shell; `narthex mcp list";
        done.failed(1, &[told, "shows them with their states"]);
    }
    // E59: these servers have no sign-in, so a request for one is no success.
    let reconnect = place.printed("mcp reconnect shell");
    place.run(["mcp", "reauthorize", "shell"]).failed(1, &["no sign-in", &reconnect]);
}

/// E57: a server is off by its name, in each folder that is served with the same data directory.
#[test]
fn e57_a_disabled_name_is_disabled_in_every_folder() {
    let place = Place::with(&json!({ "shell": shell_entry() }));
    let mut daemon = place.up();
    place.run(["mcp", "disable", "shell"]).succeeded();
    daemon.signal("TERM");
    daemon.wait();
    fs_err::create_dir(place.path("other")).unwrap();
    place.write("other/mcp.json", &json!({ "servers": { "shell": shell_entry() } }).to_string());
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.current_dir(place.path("other"));
    });
    assert_eq!(daemon.event("ready")["servers"][0]["status"], "disabled");
    let enabled = data(place.run(["mcp", "enable", "shell", "--json"]));
    assert_eq!(enabled["result"]["status"], "ready");
}

/// S5: an added server whose package has no fixed version is stored, and the pin is shown.
#[test]
fn s5_add_names_packages_without_a_version() {
    let place = three();
    let _daemon = place.up();
    // The command downloads nothing.
    let add = ["mcp", "add", "mine", "--", "sh", "-c", "exit 3; npx -y server"];
    let done = place.run(add).succeeded();
    assert!(
        done.stderr.contains("warning: ") && done.stderr.contains("`server@VERSION`"),
        "{done:?}"
    );
    let fixed =
        ["mcp", "add", "mine", "--replace", "--", "sh", "-c", "exit 3; npx -y server@1.2.3"];
    let done = place.run(fixed).succeeded();
    assert!(!done.stderr.contains("warning: "), "{done:?}");
}

/// E16: a key in clear is stored, and the warning names the way without it, for a variable of a
/// program and for a header alike.
#[test]
fn e16_add_warns_of_a_key_in_clear() {
    let place = three();
    let _daemon = place.up();
    let program =
        ["mcp", "add", "one", "--env", "API_KEY=key-0123456789", "--", "sh", "-c", "exit"];
    let url = ["mcp", "add", "two", "--url", "http://127.0.0.1:1/", "--header", "X-Key=abc123"];
    for (words, at) in [(&program[..], "one.env.API_KEY: "), (&url[..], "two.headers.X-Key: ")] {
        let done = place.run(words).succeeded();
        for told in ["warning: ", at, "looks like a secret", "secrets set NAME", "${secret:NAME}"] {
            assert!(done.stderr.contains(told), "{told}: {done:?}");
        }
        assert!(!done.stderr.contains("0123456789") && !done.stderr.contains("abc123"), "{done:?}");
    }
    let named = ["--replace", "--url", "http://127.0.0.1:1/", "--header", "X-Key=${env:HOME}"];
    let done = place.run([&["mcp", "add", "two"][..], &named].concat()).succeeded();
    assert!(!done.stderr.contains("warning: "), "{done:?}");
}

/// E139, E142: the user's own servers are added and removed; other servers cannot be changed by
/// these commands.
#[test]
fn e142_servers_are_added_and_removed() {
    let place = three();
    let _daemon = place.up();
    let add = ["mcp", "add", "mine", "--env", "A=b", "--", "sh", "-c", "exit 3"];
    let done = place.run(add).succeeded();
    assert_eq!(done.stdout, "added mine; it connects in the background\n");
    assert!(done.stderr.contains(&place.printed("mcp test mine")), "{done:?}");
    let text = || fs_err::read_to_string(place.path("config/narthex/settings.json")).unwrap();
    let stored: Value = serde_json::from_str(&text()).unwrap();
    let entry = &stored["mcp"]["servers"]["mine"];
    assert_eq!(entry["args"], json!(["-c", "exit 3"]));
    assert_eq!((&entry["command"], &entry["env"]), (&json!("sh"), &json!({ "A": "b" })));
    place.run(add).failed(1, &["conflict", "mine", "--replace"]);
    let entry = shell_entry().to_string();
    let replaced = data(place.run(["mcp", "add", "mine", &entry, "--replace", "--json"]));
    assert_eq!(replaced["created"], false);
    let url = ["mcp", "add", "web", "--url", "http://127.0.0.1:1/", "--header", "X-A=b", "--quiet"];
    assert_eq!(place.run(url).succeeded().stdout, "");
    assert!(text().contains("X-A"));
    let fed = place.feed(&["mcp", "add", "fed", "-"], &[shell_entry()]);
    fed.succeeded();
    let hidden = place.run(["mcp", "add", "shell", &entry]).succeeded();
    assert!(hidden.stderr.contains("is used instead"), "{hidden:?}");
    place.run(["mcp", "add", "bad", "{\"transport\": \"x\"}"]).failed(1, &["invalid", "transport"]);
    place.run(["mcp", "add", "bad"]).failed(2, &["-- COMMAND`", "mcp add bad --url URL"]);
    place.run(["mcp", "add", "bad", "--env", "secret", "--", "x"]).failed(2, &["NAME=VALUE"]);
    let of_both = ["mcp", "add", "bad", "--url", "http://127.0.0.1:1", "--env", "A=b"];
    place.run(of_both).failed(2, &["--env", "cannot be used with"]);
    let unknown = place.run(["mcp", "remove", "nosuch"]).failed(1, &["not_found", "nosuch"]);
    assert!(unknown.stderr.contains("your settings have: "), "{unknown:?}");
    assert!(unknown.stderr.contains("mine") && !unknown.stderr.contains("fixture"), "{unknown:?}");
    assert_eq!(place.run(["mcp", "remove", "mine"]).succeeded().stdout, "removed mine\n");
    assert!(!text().contains("mine"));
    place.run(["mcp", "remove", "fixture"]).failed(1, &["conflict", "mcp.json"]);
}

/// E139: the first server of a new user needs no daemon beforehand: it is started. A command line
/// that describes no server starts none.
#[test]
fn e139_a_daemon_is_started_for_the_first_server() {
    let place = Place::with(&json!({}));
    place.run(["mcp", "add", "bad"]).failed(2, &["-- COMMAND`"]);
    assert_eq!(place.run(["daemon", "status"]).code, Some(1));
    let mut command = place.command(["mcp", "add", "mine", "--", "sh", "-c", "exit 3"]);
    command.env("NARTHEX_LISTEN", "127.0.0.1:0").stdin(Stdio::null());
    let done = Done::from(command.output().unwrap());
    let stopped = place.run(["daemon", "stop"]);
    let done = done.succeeded();
    stopped.succeeded();
    assert_eq!(done.stdout, "added mine; it connects in the background\n");
    assert!(done.stderr.contains("starting a daemon; its log is "), "{done:?}");
    let text = fs_err::read_to_string(place.path("config/narthex/settings.json")).unwrap();
    assert!(text.contains("exit 3"), "{text}");
}

/// E207: the secrets of a removed entry are named, also those whose names do not begin with that of
/// the server.
#[test]
fn e207_the_secrets_of_a_removed_entry_are_named() {
    let place = three();
    let _daemon = place.up();
    place.pipe(&["secrets", "set", "MEMKEY"], "a-key-of-mem").succeeded();
    place.pipe(&["secrets", "set", "OTHERKEY"], "another-key").succeeded();
    let add = ["mcp", "add", "mem", "--env", "KEY=${secret:MEMKEY}", "--", "sh", "-c", "exit 3"];
    place.run(add).succeeded();
    let again = place.run(add).failed(1, &["conflict", "or replace it with --replace"]);
    assert!(!again.stderr.contains("overwrites"), "{again:?}");
    let removed = place.run(["mcp", "remove", "mem"]).succeeded();
    assert_eq!(removed.stdout, "removed mem\n");
    assert!(removed.stderr.contains(&place.printed("secrets clear MEMKEY")), "{removed:?}");
    assert!(!removed.stderr.contains("OTHERKEY"), "{removed:?}");
}

/// E139: a program with flags needs no `--`, and an address no `--url`.
#[test]
fn e139_servers_are_added_as_people_write_them() {
    let place = three();
    let _daemon = place.up();
    let stored = |name: &str| {
        let text = fs_err::read_to_string(place.path("config/narthex/settings.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["mcp"]["servers"][name].take()
    };
    place.run(["mcp", "add", "mine", "sh", "-c", "exit 3"]).succeeded();
    let program = json!({ "transport": "stdio", "command": "sh", "args": ["-c", "exit 3"] });
    assert_eq!(stored("mine"), program);
    let quiet = ["mcp", "add", "web", "http://127.0.0.1:1/", "--header", "X-A: b", "--quiet"];
    assert_eq!(place.run(quiet).succeeded().stdout, "");
    let address =
        json!({ "transport": "http", "url": "http://127.0.0.1:1/", "headers": { "X-A": "b" } });
    assert_eq!(stored("web"), address);
    let doubtful = ["mcp", "add", "other", "sh", "-c", "exit 3", "--env", "A=b"];
    let data = place.path("data");
    let taken =
        format!("`narthex mcp add other --data {} -- sh -c 'exit 3' --env A=b`", data.display());
    let in_front =
        format!("`narthex mcp add --env A=b other --data {} -- sh -c 'exit 3'`", data.display());
    place.run(doubtful).failed(2, &["`--env` can be meant for", &taken, &in_front]);
    for flag in [&["-e", "KEY=a"][..], &["--data", "/srv/x"], &["--cwd", "."], &["--replace"]] {
        let words = [&["mcp", "add", "other", "my-server"][..], flag].concat();
        place.run(&words).failed(2, &[&format!("`{}` can be meant for", flag[0])]);
    }
    assert_eq!(stored("other"), Value::Null);
    place.run(["mcp", "add", "--cwd", ".", "other", "./srv"]).succeeded();
    let here = std::fs::canonicalize(place.path(".")).unwrap();
    let program = json!({ "transport": "stdio", "command": here.join("srv"), "args": [],
        "cwd": here });
    assert_eq!(stored("other"), program);
    let refused = place.run(["mcp", "add", "--transport", "http", "x", "http://127.0.0.1:1"]);
    let refused = refused.failed(2, &["unexpected argument '--transport'"]);
    assert!(!refused.stderr.contains("tip:"), "{refused:?}");
}

/// S27, A-9: the client's token is not enough, and neither token is shown.
#[test]
fn a9_mcp_commands_need_the_admin_token() {
    let place = three();
    let _daemon = place.up();
    let token = |name: &str| fs_err::read_to_string(place.path(name)).unwrap();
    let (client, admin) = (token("data/client.token"), token("data/admin.token"));
    fs_err::remove_file(place.path("data/admin.token")).unwrap();
    place.run(["mcp", "disable", "shell"]).failed(1, &["admin.token"]);
    place.write("data/admin.token", &client);
    place.set_mode("data/admin.token", 0o600);
    let done = place.run(["mcp", "disable", "shell"]).failed(1, &["denied", "token of a run"]);
    assert!(
        !format!("{done:?}").contains(client.trim()) && !format!("{done:?}").contains(admin.trim())
    );
}
