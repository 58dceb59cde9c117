//! The daemon behind TLS: its certificate, its clients, and its renewal.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use fs_err as fs;
use http::{HeaderMap, Request};
use narthex_http_client::{ClientSettings, HttpClient, certificates};
use narthex_testkit::messages::{Era, message};
use narthex_wire::Payload;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::{
    support::{Daemon, Place},
    world::initialize,
};

const UP: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
const WITH_FILES: [&str; 4] = ["--tls-cert", "door.crt", "--tls-key", "door.key"];
const DAY: Duration = Duration::from_hours(24);

/// The text of a certificate for `localhost` that ends then, and of its key.
fn pair(ends: SystemTime) -> (String, String) {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = (SystemTime::now() - 30 * DAY).into();
    params.not_after = ends.into();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn put(place: &Place, (certificate, key): &(String, String)) {
    place.write("door.crt", certificate);
    place.write("door.key", key);
}

/// A place with a valid pair of files.
fn with_files() -> Place {
    let place = Place::new();
    put(&place, &pair(SystemTime::now() + 30 * DAY));
    place
}

fn up(place: &Place, words: &[&str]) -> (Daemon, Value) {
    let daemon = place.start(&[&UP[..], words].concat());
    let listening = daemon.event("listening");
    daemon.event("ready");
    assert!(listening["url"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{listening}");
    (daemon, listening)
}

/// A call by the daemon's own commands, over HTTP.
fn echoes(place: &Place) {
    let done = place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    assert_eq!(done.stdout, "hello\n");
}

/// A client over HTTP that trusts the certificates of a file.
struct Remote {
    http: HttpClient,
    token: String,
    session: Option<String>,
}

impl Remote {
    fn new(place: &Place, port: u16, trusted: &Path) -> Self {
        let extra_roots = certificates(&fs::read(trusted).unwrap()).unwrap();
        let settings = ClientSettings { extra_roots, ..ClientSettings::default() };
        let url = format!("https://localhost:{port}").parse().unwrap();
        let token = fs::read_to_string(place.path("data/client.token")).unwrap();
        let http = HttpClient::new(&url, settings).unwrap();
        Self { http, token: token.trim().to_owned(), session: None }
    }

    /// Posts a message to all servers, and gives the headers and the text of the answer.
    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> (HeaderMap, String) {
        let mut builder = Request::post("/mcp")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let session = self.session.as_deref().map(|session| ("mcp-session-id", session));
        for (name, value) in headers.iter().copied().chain(session) {
            builder = builder.header(name, value);
        }
        let request = builder.body(Payload::from(message.to_string().into_bytes())).unwrap();
        let answer = self.http.send(request).await.unwrap();
        let text = answer.body.collect(1 << 20).await.unwrap();
        (answer.headers, String::from_utf8(text.to_vec()).unwrap())
    }
}

fn echo(era: Era) -> Value {
    let params = json!({ "name": "mcp__fixture__echo", "arguments": { "message": "over TLS" } });
    message(era, Some(1), "tools/call", params)
}

/// Clients of both eras call a tool over TLS.
#[tokio::test]
async fn clients_of_both_eras_are_served_over_tls() {
    let place = with_files();
    let (_daemon, listening) = up(&place, &WITH_FILES);
    let port = listening["url"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
    let mut remote = Remote::new(&place, port, &place.path("door.crt"));
    let (_, text) = remote
        .post(
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "mcp__fixture__echo"),
            ],
            &echo(Era::Modern),
        )
        .await;
    assert!(text.contains("over TLS"), "{text}");
    let (headers, text) = remote.post(&[], &initialize(json!({}))).await;
    assert!(text.contains("2025-11-25"), "{text}");
    remote.session = Some(headers["mcp-session-id"].to_str().unwrap().to_owned());
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    remote.post(&[], &ready).await;
    let (_, text) = remote.post(&[], &echo(Era::Legacy)).await;
    assert!(text.contains("over TLS"), "{text}");
}

/// Commands with the data directory accept exactly the certificate that the daemon has published,
/// and commands elsewhere the one that --ca-file or --daemon-fingerprint names.
#[test]
fn a_self_signed_daemon_is_reached_by_its_own_and_by_trusting_commands() {
    let place = Place::new();
    let (daemon, listening) = up(&place, &["--tls-self-signed"]);
    let fingerprint = listening["fingerprint"].as_str().unwrap().to_owned();
    assert_eq!(place.mode("data/self-signed.pem"), 0o600);
    echoes(&place);
    let status = place.run(["status"]).succeeded().stdout;
    assert!(status.contains(&format!("SHA-256 fingerprint {fingerprint}.")), "{status}");
    let status = place.run(["status", "--json"]).succeeded().json();
    assert_eq!(status["data"]["fingerprint"], fingerprint.as_str());

    let run = place.run(["runs", "create", "--tools", "fixture"]).succeeded().stdout;
    assert!(run.contains("\"url\": \"https://") && !run.contains("http://"), "{run}");

    let lines = [message(Era::Modern, Some(1), "tools/list", json!({}))];
    let connected = place.feed(&["connect"], &lines).succeeded();
    assert!(connected.stdout.contains("mcp__fixture__echo"), "{connected:?}");

    let far = Place::new();
    far.write("token", &fs::read_to_string(place.path("data/admin.token")).unwrap());
    let url = listening["url"].as_str().unwrap();
    let ask = |words: &[&str]| {
        let remote = ["whoami", "--daemon-url", url, "--token-file", "token"];
        far.run([&remote[..], words].concat())
    };
    ask(&[]).failed(1, &["certificate", "--ca-file", "--daemon-fingerprint"]);
    let file = place.path("data/self-signed.crt").display().to_string();
    ask(&["--ca-file", &file]).succeeded();
    ask(&["--daemon-fingerprint", &fingerprint]).succeeded();
    ask(&["--daemon-fingerprint", &fingerprint.to_lowercase().replace(':', "")]).succeeded();
    let other = fingerprint.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
    ask(&["--daemon-fingerprint", &other]).failed(1, &[&fingerprint, "not the expected one"]);
    ask(&["--daemon-fingerprint", "00:11"]).failed(2, &["--daemon-fingerprint is not a SHA-256"]);

    drop(daemon);
    let (_daemon, again) = up(&place, &["--tls-self-signed"]);
    assert_eq!(again["fingerprint"], listening["fingerprint"], "it is reused");
}

/// SIGHUP has the files read at once. A broken pair is reported by file and reason, and the daemon
/// serves on with the earlier one.
#[test]
fn sighup_reads_the_certificate_anew_and_a_broken_pair_is_not_used() {
    let place = with_files();
    let (mut daemon, listening) = up(&place, &WITH_FILES);
    echoes(&place);
    let next = pair(SystemTime::now() + 60 * DAY);
    place.write("door.key", &next.1);
    daemon.signal("HUP");
    let event = daemon.event("certificate");
    let error = event["error"].as_str().unwrap();
    assert!(error.contains("door.key") && error.contains("does not belong"), "{error}");
    assert_eq!(event["fingerprint"], listening["fingerprint"]);
    echoes(&place);
    place.write("door.crt", &next.0);
    daemon.signal("HUP");
    // The change may have been seen before the signal, and be reported by both.
    let event = loop {
        let event = daemon.event("certificate");
        if event["error"].is_null() {
            break event;
        }
    };
    assert_ne!(event["fingerprint"], listening["fingerprint"]);
    echoes(&place);
    daemon.signal("TERM");
    daemon.event("stopped");
    assert!(daemon.wait().success());
}

/// Without files of a certificate, SIGHUP stops the daemon as before.
#[test]
fn sighup_stops_a_daemon_without_certificate_files() {
    let place = Place::new();
    let mut daemon = place.up();
    daemon.signal("HUP");
    daemon.event("stopped");
    assert!(daemon.wait().success());
}

#[test]
fn a_pair_that_cannot_be_used_stops_the_start() {
    let place = with_files();
    let refused = |words: &[&str]| place.run([&UP[..], &WITH_FILES].concat()).failed(1, words);
    let good = pair(SystemTime::now() + 30 * DAY);
    let file = |name: &str| place.path(name).display().to_string();
    place.write("door.key", &good.1);
    refused(&[&file("door.key"), &file("door.crt"), "does not belong", "--tls-key"]);
    put(&place, &pair(SystemTime::now() - DAY));
    refused(&[&file("door.crt"), "expired at", "renew it"]);
    put(&place, &good);
    fs::remove_file(place.path("door.key")).unwrap();
    refused(&[&file("door.key"), "cannot be read", "--tls-key"]);
    place.run([&UP[..], &WITH_FILES[..2]].concat()).failed(2, &["--tls-cert needs", "--tls-key"]);
    let both = [&UP[..], &WITH_FILES, &["--tls-self-signed"]].concat();
    place.run(both).failed(2, &["--tls-self-signed and --tls-cert exclude each other"]);
}

/// A running daemon uses the earlier certificate while the files are broken; a restart would end
/// it.
#[test]
fn a_restart_with_a_broken_certificate_is_refused() {
    let place = with_files();
    let (_daemon, listening) = up(&place, &WITH_FILES);
    let before = fs::read_to_string(place.path("door.crt")).unwrap();
    place.write("door.crt", "no certificate\n");
    let done = place.run(["daemon", "restart"]);
    done.failed(1, &["was not restarted, and serves on", "door.crt"]);
    echoes(&place);
    place.write("door.crt", &before);
    let told = place.run(["daemon", "restart"]).succeeded().stdout;
    assert!(told.contains(listening["url"].as_str().unwrap()), "{told}");
    echoes(&place);
}

/// Every user of the machine may read the key: the daemon starts and warns.
#[test]
fn an_open_key_gets_a_warning() {
    let place = with_files();
    place.set_mode("door.key", 0o644);
    let log: PathBuf = place.path("log");
    let daemon = place.start_with(&[&UP[..], &WITH_FILES].concat(), |command| {
        command.stderr(fs::File::create(&log).unwrap().into_parts().0);
    });
    daemon.event("ready");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("door.key") && text.contains("chmod 600"), "{text}");
}

/// Remote clients over TLS need `--allow-remote` alone.
#[test]
fn other_machines_are_served_over_tls_with_one_flag() {
    let place = with_files();
    let words = ["up", "--config", "mcp.json", "--listen", "0.0.0.0:0"];
    let words = [&words[..], &WITH_FILES].concat();
    place.run(&words[..]).failed(2, &["other machines", "add --allow-remote"]);
    let daemon = place.start(&[&words[..], &["--allow-remote"]].concat());
    daemon.event("ready");
    echoes(&place);
}
