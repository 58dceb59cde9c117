//! Secrets that entries of local files name by `${secret:NAME}` (D38).

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpListener,
    path::Path,
    process::Stdio,
    time::SystemTime,
};

use fs_err as fs;
use narthex_testkit::fixture::{Bearer, Options, Running};
use serde_json::{Value, json};

use crate::support::{Daemon, Done, Place, SOON, descendants, fixture_entry};

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];
const FIRST: &str = "canary-a41f-first-value";
const SECOND: &str = "canary-a41f-second-value";

/// The fixture as a program whose variable names a secret. The name of the variable says nothing.
fn program() -> Value {
    let mut entry = fixture_entry();
    entry["env"] = json!({ "PLAIN": "${secret:GITHUB_TOKEN}" });
    entry
}

/// A server over HTTP whose key is a secret.
fn remote(url: &str) -> Value {
    let auth = json!({ "mode": "apiKey", "valuePrefix": "Bearer ", "key": "${secret:PAY_KEY}" });
    json!({ "transport": "http", "url": url, "auth": auth })
}

async fn locked(key: &str) -> Running {
    let required_bearer = Some(Bearer(key.to_owned()));
    Running::http(Options { required_bearer, ..Options::default() }).await.unwrap()
}

fn set(place: &Place, name: &str, value: &str) {
    place.pipe(&["secrets", "set", name], value).succeeded();
}

fn echo(place: &Place, server: &str) -> Done {
    place.run(["call", server, "echo", "message=hello"])
}

/// The present row of a server.
fn row(place: &Place, name: &str) -> Value {
    let list = place.run(["mcp", "list", "--json"]).succeeded().json();
    let rows = list["data"]["mounts"].as_array().unwrap().clone();
    let found = rows.into_iter().find(|row| row["alias"] == name || row["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

/// The values of the variable `PLAIN` of all processes below the daemon.
fn variables(daemon: &Daemon) -> Vec<String> {
    let of = |pid: &u32| {
        let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let found = text.split('\0').find_map(|pair| pair.strip_prefix("PLAIN="));
        found.map(str::to_owned)
    };
    descendants(daemon.pid()).iter().filter_map(of).collect()
}

#[track_caller]
fn until(is_done: impl Fn() -> bool) {
    let began = SystemTime::now();
    while !is_done() {
        assert!(began.elapsed().unwrap() < SOON, "it does not happen");
        std::thread::yield_now();
    }
}

/// The files below a folder that have this text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&path, text));
        } else if entry.file_type().unwrap().is_file() {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// D38: an unset secret is a fault that names its command. A value that is set later starts the
/// server, a new one starts it anew, and a cleared one ends it, all without a restart.
#[test]
fn d38_a_program_gets_the_secret_that_its_entry_names() {
    let place = Place::with(&json!({ "gh": program(), "other": fixture_entry() }));
    let daemon = place.up();
    let others = place.path("data");
    let fault = row(&place, "gh")["error"].clone();
    assert_eq!(fault["kind"], "auth_unavailable", "{fault}");
    let told = fault["message"].as_str().unwrap();
    assert!(told.contains("`servers.gh.env.PLAIN`: secret `GITHUB_TOKEN` is not set"), "{told}");
    let list = place.run(["mcp", "list"]).succeeded();
    let command = place.printed("secrets set GITHUB_TOKEN");
    assert!(list.stdout.contains(&command) || list.stderr.contains(&command), "{list:?}");
    let before = descendants(daemon.pid());
    set(&place, "GITHUB_TOKEN", FIRST);
    daemon.server_in("gh", "ready");
    until(|| variables(&daemon) == [FIRST]);
    let after = descendants(daemon.pid());
    assert!(before.iter().all(|pid| after.contains(pid)), "other servers stay as they are");
    // Redaction covers the value, whatever the name of its variable.
    let shown = place.run(["call", "gh", "environment"]).succeeded();
    assert!(shown.stdout.contains("[redacted]"), "{shown:?}");
    let used = place.run(["secrets", "list"]).succeeded();
    assert!(used.stdout.contains(" mcp.json:servers.gh\n"), "{used:?}");
    set(&place, "GITHUB_TOKEN", SECOND);
    until(|| variables(&daemon) == [SECOND]);
    for pid in descendants(daemon.pid()) {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("canary-a41f"));
    }
    let cleared = place.run(["secrets", "clear", "GITHUB_TOKEN"]).succeeded();
    assert!(cleared.stdout.contains("mcp.json:servers.gh.env.PLAIN"), "{cleared:?}");
    until(|| variables(&daemon).is_empty());
    assert_eq!(row(&place, "gh")["error"]["kind"], "auth_unavailable");
    let unset = place.run(["secrets", "list"]).succeeded().stderr;
    let remedy = place.printed("secrets set GITHUB_TOKEN");
    let told =
        format!("GITHUB_TOKEN is not set, but needed by mcp.json:servers.gh; set it with {remedy}");
    assert!(unset.contains(&told), "{unset}");
    echo(&place, "gh").failed(1, &[]);
    set(&place, "GITHUB_TOKEN", FIRST);
    until(|| row(&place, "gh")["status"] == "ready");
    echo(&place, "gh").succeeded();
    drop(daemon);
    for value in [FIRST, SECOND] {
        assert_eq!(files_with(&others, value), [""; 0], "the value is in no file");
    }
}

/// D38, D10: a call that is open when its secret is cleared ends at once.
#[tokio::test(flavor = "multi_thread")]
async fn d38_clearing_a_secret_ends_open_calls() {
    let server = locked(FIRST).await;
    let place = Place::with(&json!({ "pay": remote(&server.url) }));
    let daemon = place.up();
    set(&place, "PAY_KEY", FIRST);
    daemon.server_in("pay", "ready");
    let before = server.fixture.counts().calls;
    let mut call = place.command(["call", "pay", "sleep", "ms=600000"]);
    let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| server.fixture.counts().calls > before);
    place.run(["secrets", "clear", "PAY_KEY"]).succeeded();
    let done = Done::from(call.wait_with_output().unwrap());
    done.failed(1, &["secret_cleared"]);
}

/// D38: keys over HTTP come from the vault, also in the user's settings; one that HTTP cannot carry
/// is a fault that does not show it.
#[tokio::test(flavor = "multi_thread")]
async fn d38_a_key_over_http_comes_from_the_vault() {
    let server = locked(FIRST).await;
    let place = Place::with(&json!({}));
    let daemon = place.up();
    let entry = remote(&server.url).to_string();
    place.pipe(&["mcp", "add", "pay", "-"], &entry).succeeded();
    set(&place, "PAY_KEY", "canary-a41f-with\na-line-break");
    until(|| row(&place, "pay")["error"]["message"].to_string().contains("printable ASCII"));
    set(&place, "PAY_KEY", SECOND);
    until(|| row(&place, "pay")["error"]["message"].to_string().contains("HTTP 401"));
    let told = row(&place, "pay")["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("has the secret `PAY_KEY` (`mcp.servers.pay.auth.key`)"), "{told}");
    assert!(told.contains("secrets set PAY_KEY") && told.contains("by itself"), "{told}");
    set(&place, "PAY_KEY", FIRST);
    until(|| row(&place, "pay")["status"] == "ready");
    echo(&place, "pay").succeeded();
    drop(daemon);
}

/// D38: a process without the vault does not reach the server.
#[test]
fn d38_commands_without_a_daemon_open_no_secret() {
    let place = Place::with(&json!({ "gh": program() }));
    let done = place.run(["call", "gh", "echo", "message=hello", "--config", "mcp.json"]);
    done.failed(1, &["the secret `GITHUB_TOKEN`", "narthex up"]);
}

/// D38: the servers that come with a run name no secret: their entries are the run's, and no file
/// that a human approves.
#[test]
fn d38_own_servers_of_a_run_get_no_secret() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    set(&place, "GITHUB_TOKEN", FIRST);
    place.write("task.json", &json!({ "servers": { "gh": program() } }).to_string());
    let refused = place.run(["runs", "create", "task.json"]);
    refused.failed(1, &["gh", "`${secret:NAME}` works in mcp.json", "catalog"]);
}

/// A server that counts its callers and stores their words.
struct Thief(TcpListener);

impl Thief {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.0.local_addr().unwrap())
    }

    /// The words of the next caller; `None` if there was none.
    fn heard(&self) -> Option<String> {
        let mut stream = match self.0.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        };
        stream.set_nonblocking(false).unwrap();
        let mut words = vec![0; 64 * 1024];
        let count = stream.read(&mut words).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").unwrap();
        words.truncate(count);
        Some(String::from_utf8_lossy(&words).into_owned())
    }
}

/// D27, D38: a folder's file that is changed after its approval, to send a secret elsewhere, gets
/// nothing, whatever happens meanwhile, until it is approved again.
#[tokio::test(flavor = "multi_thread")]
async fn d27_a_changed_file_sends_no_secret_before_it_is_approved() {
    let (server, thief) = (locked(FIRST).await, Thief::new());
    let place = Place::with(&json!({ "pay": remote(&server.url) }));
    let shown = place.run(["trust", "--yes"]).succeeded();
    assert!(shown.stdout.contains("gets your stored secrets PAY_KEY"), "{shown:?}");
    let json = place.run(["trust", "--json"]).succeeded().json();
    assert_eq!(json["data"]["servers"][0]["secrets"], json!(["PAY_KEY"]));
    let daemon = place.start(&UP);
    daemon.event("ready");
    set(&place, "PAY_KEY", FIRST);
    until(|| row(&place, "pay")["status"] == "ready");
    let stolen = json!({ "pay": remote(&thief.url()), "new": remote(&thief.url()) });
    place.write("mcp.json", &json!({ "servers": stolen }).to_string());
    let told = daemon.event("file");
    assert!(told["error"].as_str().unwrap().contains("not trusted"), "{told}");
    place.run(["mcp", "reload"]).failed(1, &["is not trusted"]);
    set(&place, "PAY_KEY", SECOND);
    until(|| row(&place, "pay")["error"]["message"].to_string().contains("HTTP 401"));
    set(&place, "PAY_KEY", FIRST);
    until(|| row(&place, "pay")["status"] == "ready");
    place.run(["mcp", "reconnect", "pay"]).succeeded();
    place.run(["mcp", "test", "pay"]).succeeded();
    echo(&place, "pay").succeeded();
    let used = place.run(["secrets", "list"]).succeeded();
    assert!(!used.stdout.contains("servers.new"), "{used:?}");
    assert_eq!(thief.heard(), None, "nothing was sent");
    drop(daemon);
    place.run(UP).failed(1, &["has changed since it was trusted"]);
    assert_eq!(thief.heard(), None, "nothing was sent");
    // The approval alone makes the difference.
    place.run(["trust", "--yes"]).succeeded();
    let _daemon = place.start(&UP);
    let mut words = None;
    until_some(&mut words, || thief.heard());
    assert!(words.unwrap().contains(FIRST));
}

#[track_caller]
fn until_some<T>(found: &mut Option<T>, mut next: impl FnMut() -> Option<T>) {
    let began = SystemTime::now();
    while found.is_none() {
        assert!(began.elapsed().unwrap() < SOON, "it does not happen");
        *found = next();
    }
}
