//! A daemon with servers of all kinds that hold planted values, and the looks at what it leaves.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::Stdio,
};

use fs_err as fs;
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::search::{Canary, Everything};
use crate::support::{Daemon, Done, Place, SOON, descendants, fixture, fixture_entry};

/// What the values are the values of. The first six are variables of the daemon.
const VARIABLES: [&str; 6] = [
    "CANARY_ENV_TOKEN",
    "CANARY_ARG_TOKEN",
    "CANARY_HEADER_TOKEN",
    "CANARY_URL_TOKEN",
    "CANARY_DYING_TOKEN",
    "CANARY_KEY_TOKEN",
];
/// And these are secrets of the workspace.
pub(super) const SECRETS: [&str; 5] = ["STDIO", "HTTP", "DYING", "UNREACHED", "BOUND"];
/// Changed in the middle: the value before.
pub(super) const FORMER: &str = "the former value of STDIO";

pub(super) struct World {
    place: Place,
    logs: TempDir,
    daemon: Daemon,
    host: String,
    pub(super) admin: String,
    pub(super) client: String,
    pub(super) everything: Everything,
    variables: Vec<Canary>,
    secrets: Vec<Canary>,
    planted: String,
    remote: Running,
    _runtime: Runtime,
}

impl World {
    /// With its servers, and with everything logged.
    pub(super) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let options = || Options { records_headers: true, ..Options::default() };
        let remote = runtime.block_on(Running::http(options())).unwrap();
        let variables: Vec<_> =
            VARIABLES.into_iter().map(Canary::of_the_daemons_environment).collect();
        let mut secrets: Vec<_> = SECRETS.into_iter().map(Canary::new).collect();
        secrets.push(Canary::new(FORMER));
        let planted = Canary::plain("planted").value;
        let place = Place::with(&servers(&remote.url, &planted));
        // Elsewhere: the folder of `mcp.json` is watched, and each change is logged.
        let logs = tempfile::tempdir().unwrap();
        let log = fs::File::create(logs.path().join("log")).unwrap();
        let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = place.start_with(&up, |command| {
            let (file, _path) = log.into_parts();
            command.env("NARTHEX_LOG", "trace").stderr(file);
            command.envs(variables.iter().map(|canary| (canary.name, &canary.value)));
        });
        let listening = daemon.event("listening");
        let ready = daemon.event("ready");
        let mut everything = Everything::default();
        everything.note("command up", listening.to_string().as_bytes());
        everything.note("command up", ready.to_string().as_bytes());
        let host = listening["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        let token = |name: &str| {
            let text = fs::read_to_string(place.path(&format!("data/{name}.token"))).unwrap();
            text.trim().to_owned()
        };
        let (admin, client) = (token("admin"), token("client"));
        let _runtime = runtime;
        Self {
            place,
            logs,
            daemon,
            host,
            admin,
            client,
            everything,
            variables,
            secrets,
            planted,
            remote,
            _runtime,
        }
    }

    pub(super) fn daemon(&self) -> u32 {
        self.daemon.pid()
    }

    pub(super) fn planted_name(&self) -> &str {
        &self.planted
    }

    pub(super) fn remote_url(&self) -> &str {
        &self.remote.url
    }

    /// What is no secret, and is in every channel.
    pub(super) fn planted(&self) -> Canary {
        Canary::of("planted", &self.planted)
    }

    pub(super) fn secret(&self, name: &str) -> &str {
        &self.secrets.iter().find(|canary| canary.name == name).unwrap().value
    }

    /// All values, each with the places that are there for it.
    pub(super) fn canaries(&mut self) -> Vec<Canary> {
        let key = fs::read_to_string(self.place.path("data/master.key")).unwrap();
        let file = |name: &str, value: &str, path: &str| {
            let name: &'static str = name.to_owned().leak();
            Canary::of(name, value).allowed_in(format!("file data/{path} "))
        };
        let mut all: Vec<_> = std::mem::take(&mut self.variables);
        for secret in std::mem::take(&mut self.secrets) {
            all.push(
                match secret.name {
                    "BOUND" => secret.allowed_in("answer that begins a run"),
                    "STDIO" => secret.allowed_in("environ of server stdio"),
                    _ => secret,
                }
                .allowed_in("answer in direct mode"),
            );
        }
        all.push(file("the operator's token", &self.admin, "admin.token"));
        all.push(file("the client's token", &self.client, "client.token"));
        all.push(file("the master key", key.trim(), "master.key"));
        all
    }

    /// Runs a command and notes what it prints.
    pub(super) fn command(&mut self, words: &[&str], input: Option<&str>) -> Done {
        let mut command = self.place.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may have failed without reading it.
        drop(child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()));
        let done = Done::from(child.wait_with_output().unwrap());
        let label = format!("command {}", words.join(" "));
        self.everything.note(&*label, done.stdout.as_bytes());
        self.everything.note(label, done.stderr.as_bytes());
        done
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        self.place.write(name, text);
    }

    /// Asks, notes the whole answer, and gives status and body.
    pub(super) fn ask(
        &mut self,
        method: &str,
        path: &str,
        token: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String) {
        self.ask_for(&format!("answer {method} {path}"), (method, path, token), headers, body)
    }

    /// The same with a label of its own.
    pub(super) fn ask_for(
        &mut self,
        label: &str,
        (method, path, token): (&str, &str, &str),
        headers: &str,
        body: &str,
    ) -> (u16, String) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
             connection: close\r\ncontent-type: application/json\r\n{headers}\
             content-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // An event stream has no end: what it begins with comes in one event.
        let is_endless = path == "/api/events" && method == "GET";
        let mut part = [0; 16 * 1024];
        while !(is_endless && bytes.windows(5).any(|part| part == b"data:")) {
            let read = stream.read(&mut part);
            let read = read.unwrap_or_else(|error| panic!("{error}: {head}{body}"));
            if read == 0 {
                break;
            }
            bytes.extend_from_slice(&part[..read]);
        }
        self.everything.note(label, &bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("{label}: {text}"));
        let status = status.parse().unwrap();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (status, body.unwrap_or_default())
    }

    /// Environment and command line of everybody.
    pub(super) fn note_processes(&mut self) {
        let daemon = self.daemon.pid();
        let mut all = descendants(daemon);
        all.push(daemon);
        for process in all {
            let read = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
            let (environ, line) = (read("environ"), read("cmdline"));
            let who = match (process == daemon, told_name(&environ)) {
                (true, _) => "the daemon".to_owned(),
                (_, Some(name)) => format!("server {name}"),
                (_, None) => "a process".to_owned(),
            };
            self.everything.note(format!("environ of {who} {process}"), &environ);
            self.everything.note(format!("line of {who} {process}"), &line);
        }
    }

    /// All files below the data directory, their names, and the log.
    pub(super) fn note_files(&mut self, when: &str) {
        let mut waiting = vec![self.place.path("data")];
        let root = self.place.path("");
        while let Some(path) = waiting.pop() {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            self.everything.note(format!("name {when}"), name.as_bytes());
            if path.is_dir() {
                let below = fs::read_dir(&path).unwrap();
                waiting.extend(below.map(|entry| -> PathBuf { entry.unwrap().path() }));
            } else if path.is_file() {
                // One may be removed at any moment: of the store, or a part of the spool.
                let Ok(bytes) = fs::read(&path) else { continue };
                self.everything.note(format!("file {name} {when}"), &bytes);
            }
        }
        let log = fs::read(self.logs.path().join("log")).unwrap();
        self.everything.note(format!("log {when}"), &log);
    }

    pub(super) fn stop(&mut self) {
        self.daemon.signal("TERM");
        assert_eq!(self.daemon.wait().code(), Some(0));
    }
}

/// A server says by a variable who it is.
fn told_name(environ: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(environ).into_owned();
    let name = text.split('\0').find_map(|pair| pair.strip_prefix("WHO="));
    name.map(str::to_owned)
}

/// Servers of `mcp.json`, with values by the environment, an argument, a header and a URL; some
/// fail and say why, with the value.
fn servers(url: &str, planted: &str) -> Value {
    let mut with_env = fixture_entry();
    with_env["env"] = json!({ "WHO": "env", "API_TOKEN": "${env:CANARY_ENV_TOKEN}" });
    let mut named = fixture_entry();
    named["env"] = json!({ "WHO": planted });
    let with_argument = json!({ "transport": "stdio", "command": "sh", "env": { "WHO": "argument" },
        "args": ["-c", "\"$0\" --stdio; exit", fixture(), "${env:CANARY_ARG_TOKEN}"] });
    let named_by_line = json!({ "transport": "stdio", "command": "sh",
        "args": ["-c", "\"$0\" --stdio; exit", fixture(), planted] });
    let dying = json!({ "transport": "stdio", "command": "sh",
        "env": { "WHO": "dying", "API_TOKEN": "${env:CANARY_DYING_TOKEN}" },
        "args": ["-c", "echo \"no login with $API_TOKEN\" >&2; exit 3"] });
    json!({
        "with-env": with_env,
        planted: named,
        // The log names those that fail.
        format!("{planted}-fails"): { "transport": "stdio", "command": "no-such-program" },
        "with-argument": with_argument,
        "by-line": named_by_line,
        "dying": dying,
        "with-header": { "transport": "http", "url": url,
            "headers": { "Authorization": "${env:CANARY_HEADER_TOKEN}" } },
        "with-key": { "transport": "http", "url": url,
            "auth": { "mode": "apiKey", "key": "${env:CANARY_KEY_TOKEN}" } },
        "with-url": { "transport": "http",
            "url": "http://127.0.0.1:1/mcp?key=${env:CANARY_URL_TOKEN}" },
    })
}
