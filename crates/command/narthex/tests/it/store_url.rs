//! The store in a PostgreSQL database instead of a file.

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::Arc,
};

use fs_err as fs;
use narthex_control::SecretRows;
use narthex_model::{Secret, SecretName, SecretReference, WorkspaceId};
use narthex_store::Store;
use narthex_testkit::postgres;
use narthex_vault::{KeyFile, SealedBackend, Vault};
use serde_json::{Value, json};

use crate::support::{Daemon, Done, Place, descendants, fixture_entry};

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];
const URL: &str = "NARTHEX_STORE_URL";
/// The password of the tests' server.
const PASSWORD: &str = "pw-of-tests";

fn blocking<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

fn with_url(place: &Place, url: &str, words: &[&str]) -> Done {
    let done = Done::from(place.command(words).env(URL, url).output().unwrap());
    for text in [&done.stdout, &done.stderr] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    done
}

/// S27: an approval is in the database, a running daemon hears of it, and the place of the store is
/// shown, but not the password, neither to people nor to servers.
#[test]
fn s27_a_daemon_keeps_its_store_in_a_database() {
    let Some(database) = postgres::database(&[]) else { return };
    let mut asking = fixture_entry();
    asking["env"] = json!({ "MINE": "${env:NARTHEX_STORE_URL}" });
    let place = Place::with(&json!({ "fixture": fixture_entry(), "asking": asking }));
    let run = |words: &[&str]| with_url(&place, &database.url, words);
    run(&UP).failed(1, &["denied", "narthex trust"]);
    run(&["trust", "--yes"]).succeeded();
    assert!(!place.path("data/store.db").exists());
    let daemon = place.start_with(&UP, |command| {
        command.env(URL, &database.url);
    });
    let ready = daemon.event("ready");
    let rows = ready["servers"].as_array().unwrap();
    let asking = rows.iter().find(|row| row["alias"] == "asking").unwrap();
    let why = asking["error"]["message"].as_str().unwrap();
    assert!(why.contains(URL) && why.contains("is not set"), "{ready}");
    let children = descendants(daemon.pid());
    assert!(!children.is_empty());
    for child in children {
        let environment = fs::read(format!("/proc/{child}/environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains(PASSWORD));
    }
    let status = run(&["daemon", "status", "--json"]).succeeded().json();
    let store = status["data"]["store"].as_str().unwrap();
    assert!(store.ends_with(&format!(":5432/{}", database.name)), "{store}");
    place.write("mcp.json", r#"{"servers": {}}"#);
    daemon.event("file");
    run(&["trust", "--yes"]).succeeded();
    daemon.event("removed");
    // Without the database's URL another store is used, which has no approval.
    place.run(["up", "--listen", "127.0.0.1:0", "--data", "other"]).failed(1, &["not trusted"]);
}

/// S27: the URL is shown neither when it is wrong nor when it cannot be used.
#[test]
fn s27_a_url_that_cannot_be_used_is_not_shown() {
    let place = Place::new();
    let url = |rest: &str| format!("postgres://u:{PASSWORD}@{rest}");
    let run = |rest: &str| with_url(&place, &url(rest), &["trust", "--yes"]);
    run("%2Fnone/db").failed(1, &["unavailable", "/none:5432/db"]);
    run("h/n?sslmode=allow").failed(1, &["invalid", "sslmode"]);
    run("h/n/x").failed(1, &["invalid", "%2F"]);
    place.write("narthex.toml", &format!("[store]\nurl = \"{}\"\n", url("%2Fnone/db")));
    let words = ["trust", "--yes", "--settings", "narthex.toml"];
    place.set_mode("narthex.toml", 0o644);
    let done = place.run(words).failed(2, &["others can read it", "chmod 600", URL]);
    assert!(!done.stderr.contains(PASSWORD), "{done:?}");
    place.set_mode("narthex.toml", 0o600);
    place.run(words).failed(1, &["/none:5432/db"]);
    place.write("narthex.toml", &format!("[store]\nurl = \"{}\n", url("h/n")));
    let done = place.run(words).failed(2, &["not valid TOML: line 2"]);
    assert!(!done.stderr.contains(PASSWORD), "{done:?}");
}

/// R-M33: a check of a database creates no tables, and finds the approvals.
#[test]
fn r_m33_a_check_does_not_change_the_database() {
    let Some(database) = postgres::database(&[]) else { return };
    let place = Place::with(&json!({}));
    let url = Secret::new(database.url.clone());
    let is_empty = || blocking(async { Store::connect_to_look(&url).await.unwrap().is_none() });
    let checked = || with_url(&place, &database.url, &["check", "mcp"]).succeeded().stdout;
    let told = checked();
    assert!(told.contains("is not trusted yet"), "{told}");
    assert!(is_empty() && !place.path("data").exists());
    with_url(&place, &database.url, &["trust", "--yes"]).succeeded();
    let told = checked();
    assert!(!is_empty() && !told.contains("trusted"), "{told}");
    let told = with_url(&place, "postgres://u:pw-of-tests@%2Fnone/db", &["check", "mcp"]);
    let told = told.succeeded().stdout;
    assert!(
        told.contains("may be trusted: its approval cannot be read")
            && told.contains("/none:5432/db"),
        "{told}"
    );
}

/// One of several daemons with one database.
struct Peer<'p> {
    place: &'p Place,
    url: &'p str,
    data: &'static str,
}

impl Peer<'_> {
    fn start(&self) -> Daemon {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = self.place.start_with(&words, |command| {
            self.at(command);
        });
        daemon.event("ready");
        daemon
    }

    fn at<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("NARTHEX_DATA", self.place.path(self.data)).env(URL, self.url)
    }

    /// Runs a command with a text on its standard input, and gives its data.
    fn run(&self, words: &[&str], text: &str) -> Value {
        let mut command = self.place.command([words, &["--json"]].concat());
        self.at(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Done::from(child.wait_with_output().unwrap()).succeeded().json()["data"].take()
    }
}

/// The number of the newest value of the first secret.
fn newest(listed: &Value) -> &Value {
    &listed["items"][0]["versions"].as_array().unwrap().last().unwrap()["version"]
}

/// O5, X-M23: two daemons with one database and one key see each other's changes, also after one
/// was killed. A third daemon with another key does not start.
#[test]
fn o5_daemons_with_one_database_see_each_others_changes() {
    let Some(database) = postgres::database(&[]) else { return };
    let place = Place::with(&json!({}));
    let peer = |data| Peer { place: &place, url: &database.url, data };
    let (here, there) = (peer("here"), peer("there"));
    let first = here.start();
    fs::create_dir(place.path("there")).unwrap();
    place.set_mode("there", 0o700);
    fs::copy(place.path("here/master.key"), place.path("there/master.key")).unwrap();
    let _second = there.start();

    assert_eq!(here.run(&["secrets", "set", "KEY"], "one")["version"], 1);
    assert_eq!(there.run(&["secrets", "set", "KEY"], "two")["version"], 2);
    assert_eq!(newest(&here.run(&["secrets", "list"], "")), 2);
    let agent = |about: &str| json!({ "name": "reader", "description": about }).to_string();
    let apply = ["agents", "apply", "-f", "-"];
    let change = |peer: &Peer<'_>, about| peer.run(&apply, &agent(about))["changes"][0].take();
    assert_eq!(change(&here, "one")["change"], "created");
    assert_eq!(change(&there, "two")["change"], "updated");
    assert_eq!(here.run(&["agents", "list"], "")["items"][0]["revision"], 2);

    drop(first);
    assert_eq!(change(&there, "three")["change"], "updated");
    let _again = here.start();
    assert_eq!(here.run(&["agents", "list"], "")["items"][0]["revision"], 3);
    assert_eq!(newest(&here.run(&["secrets", "list"], "")), 2);
    blocking(async {
        let store = Store::connect(&Secret::new(database.url.clone())).await.unwrap();
        let keys = Arc::new(KeyFile::new(place.path("here/master.key")));
        let backend = SealedBackend::start(Arc::new(SecretRows::new(store)), keys).await.unwrap();
        let reference = SecretReference::newest(SecretName::new("KEY").unwrap());
        let vault = Vault::new(Arc::new(backend));
        let opened = vault.open(&WorkspaceId::default(), &reference).await.unwrap();
        assert_eq!(opened.value.expose(), "two");
    });
    let mut alone = place.command(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let refused = Done::from(peer("alone").at(&mut alone).output().unwrap());
    refused.failed(1, &["master.key"]);
}
