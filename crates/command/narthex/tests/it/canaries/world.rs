//! A daemon with servers of all kinds that hold planted values, and the search of its output for
//! them.

use std::{
    collections::BTreeMap,
    io::{Error, ErrorKind, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::Stdio,
};

use fs_err as fs;
use narthex_testkit::{
    authorization::{AuthorizationFixture, Settings},
    canary::{Canary, Everything},
    fixture::{Options, Running},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{of_the_daemons_environment, ways_in::Provider};
use crate::support::{Daemon, Done, Place, SOON, descendants, fixture, fixture_entry};

/// The names of the values. These are variables of the daemon.
const VARIABLES: [&str; 8] = [
    "CANARY_ENV_TOKEN",
    "CANARY_ARG_TOKEN",
    "CANARY_HEADER_TOKEN",
    "CANARY_URL_TOKEN",
    "CANARY_DYING_TOKEN",
    "CANARY_KEY_TOKEN",
    "CATALOG_URL_TOKEN",
    "NARTHEX_OIDC_SECRET_CORP",
];
/// And these are secrets of the workspace.
pub(super) const SECRETS: [&str; 7] =
    ["STDIO", "HTTP", "DYING", "UNREACHED", "BOUND", "SIGNED", "LOCAL"];
/// Changed in the middle: the value before.
pub(super) const FORMER: &str = "the former value of STDIO";
/// The scope of a run, which no model sees, and the prompt of its model.
pub(super) const SCOPE: &str = "a scope";
pub(super) const PROMPT: &str = "a prompt";
/// The password of a provider that lies in a file.
const OIDC_FILE: &str = "the password of a provider";

pub(super) struct World {
    place: Place,
    logs: TempDir,
    daemon: Daemon,
    pub(super) host: String,
    pub(super) admin: String,
    pub(super) client: String,
    pub(super) everything: Everything,
    variables: Vec<Canary>,
    secrets: Vec<Canary>,
    /// The value of each of these.
    values: BTreeMap<&'static str, String>,
    planted: String,
    remote: Running,
    /// A server to which a person signs in.
    pub(super) hosted: AuthorizationFixture,
    pub(super) provider: Provider,
    _runtime: Runtime,
}

impl World {
    /// Starts the daemon with its servers, and with everything logged.
    pub(super) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let options = || Options { records_headers: true, ..Options::default() };
        let remote = runtime.block_on(Running::http(options())).unwrap();
        let variables: Vec<_> = VARIABLES.into_iter().map(of_the_daemons_environment).collect();
        let mut secrets: Vec<_> = SECRETS.into_iter().map(Canary::new).collect();
        secrets.extend([FORMER, SCOPE, PROMPT].map(Canary::new));
        secrets.push(Canary::plain(OIDC_FILE));
        let values = secrets.iter().map(|canary| (canary.name, canary.value.clone())).collect();
        let planted = Canary::plain("planted").value;
        let hosted = AuthorizationFixture::start(Settings::default());
        let mut servers = servers(&remote.url, &planted);
        servers["hosted"] = json!({ "transport": "http", "url": hosted.url });
        let place = Place::with(&servers);
        // Elsewhere: the folder of `mcp.json` is watched, and each change is logged.
        let logs = tempfile::tempdir().unwrap();
        let log = fs::File::create(logs.path().join("log")).unwrap();
        let provider = Provider::start();
        let password = secrets.last().map(|canary| canary.value.clone()).unwrap();
        place.write("password", &password);
        place.set_mode("password", 0o600);
        fs::create_dir_all(place.path("config/narthex")).unwrap();
        place.write("config/narthex/narthex.toml", &settings(&provider.url, &place));
        place.set_mode("config/narthex/narthex.toml", 0o600);
        fs::create_dir(place.path("tmp")).unwrap();
        let temporary = place.path("tmp");
        let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = place.start_with(&up, |command| {
            let (file, _path) = log.into_parts();
            command.env("NARTHEX_LOG", "trace").stderr(file);
            command.env("RUST_BACKTRACE", "full").env("TMPDIR", temporary);
            command.env("NARTHEX_OTLP_ENDPOINT", &provider.url);
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
            values,
            planted,
            remote,
            hosted,
            provider,
            _runtime,
        }
    }

    pub(super) fn daemon(&self) -> u32 {
        self.daemon.pid()
    }

    pub(super) fn planted_name(&self) -> &str {
        &self.planted
    }

    /// The folder for copies of everything that a server reads.
    pub(super) fn tapped(&self) -> PathBuf {
        self.logs.path().join("tapped")
    }

    pub(super) fn remote_url(&self) -> &str {
        &self.remote.url
    }

    /// A value that is no secret, and is in every channel.
    pub(super) fn planted(&self) -> Canary {
        Canary::of("planted", &self.planted)
    }

    pub(super) fn secret(&self, name: &str) -> &str {
        &self.values[name]
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
                    "STDIO" | SCOPE => secret.allowed_in("environ of server stdio"),
                    "LOCAL" => secret.allowed_in("environ of server local"),
                    OIDC_FILE => secret.allowed_in("file password "),
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

    /// Runs a command and notes its output.
    pub(super) fn command(&mut self, words: &[&str], input: Option<&str>) -> Done {
        let mut command = self.place.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command may have failed without reading its input.
        drop(child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()));
        let done = Done::from(child.wait_with_output().unwrap());
        let label = format!("command {}", words.join(" "));
        self.everything.note(&*label, done.stdout.as_bytes());
        self.everything.note(label, done.stderr.as_bytes());
        done
    }

    /// The place for a copy of the store.
    pub(super) fn copy(&self) -> String {
        self.place.path("copy.tar").display().to_string()
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

    /// As [`Self::ask`], with a label of its own.
    pub(super) fn ask_for(
        &mut self,
        label: &str,
        (method, path, token): (&str, &str, &str),
        headers: &str,
        body: &str,
    ) -> (u16, String) {
        let headers = format!(
            "host: {}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\n{headers}",
            self.host
        );
        let (status, _, body) = self.exchange(label, (method, path), &headers, body.as_bytes());
        (status, body)
    }

    /// A request with these headers alone; gives status, head and body of the answer.
    pub(super) fn exchange(
        &mut self,
        label: &str,
        (method, path): (&str, &str),
        headers: &str,
        body: &[u8],
    ) -> (u16, String, String) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\n{headers}\
             content-length: {length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        // A body that is too long may be refused before it has all come.
        drop(stream.write_all(&[head.as_bytes(), body].concat()));
        let mut bytes = Vec::new();
        // An event stream has no end: its beginning comes in one event.
        let is_endless = path.ends_with("api/events") || path.ends_with("events?after=0");
        let is_endless = is_endless && method == "GET";
        let mut part = [0; 16 * 1024];
        while !(is_endless && bytes.windows(5).any(|part| part == b"data:")) {
            let read = stream.read(&mut part);
            // The rest of such a body can interrupt an answer that was already sent.
            let is_cut = |error: &Error| error.kind() == ErrorKind::ConnectionReset;
            let read = match read {
                Err(error) if is_cut(&error) && !bytes.is_empty() => 0,
                read => read.unwrap_or_else(|error| panic!("{error}: {head}")),
            };
            if read == 0 {
                break;
            }
            bytes.extend_from_slice(&part[..read]);
        }
        self.everything.note(label, &bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("{label}: {text}"));
        let status = status.parse().unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        (status, head.to_owned(), body.to_owned())
    }

    /// Environment and command line of every process.
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

    /// Notes all files below the folder, their names, the servers' input, and the log.
    pub(super) fn note_files(&mut self, when: &str) {
        let mut waiting = vec![self.place.path("")];
        let root = self.place.path("");
        while let Some(path) = waiting.pop() {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            self.everything.note(format!("name {when}"), name.as_bytes());
            if path.is_dir() {
                let below = fs::read_dir(&path).unwrap();
                waiting.extend(below.map(|entry| -> PathBuf { entry.unwrap().path() }));
            } else if path.is_file() {
                // A file of the store or of the spool may be removed at any moment.
                let Ok(bytes) = fs::read(&path) else { continue };
                self.everything.note(format!("file {name} {when}"), &bytes);
            }
        }
        let log = fs::read(self.logs.path().join("log")).unwrap();
        self.everything.note(format!("log {when}"), &log);
        let read = fs::read(self.tapped()).unwrap();
        assert!(!read.is_empty(), "the server has read nothing");
        self.everything.note(format!("input of server stdio {when}"), &read);
    }

    pub(super) fn stop(&mut self) {
        self.daemon.signal("TERM");
        assert_eq!(self.daemon.wait().code(), Some(0));
        // All of them are sent by then.
        let traces = self.provider.traces();
        self.everything.note("trace", &traces);
    }
}

/// Two providers at one address, and the variables that the catalog may name.
fn settings(provider: &str, place: &Place) -> String {
    let password = place.path("password");
    format!(
        "[grants]\nrequire_proof = false\n[catalog]\nenv = [\"CATALOG_*\"]\n\
         [signin.oidc.corp]\nissuer = \"{provider}/corp\"\n\
         client_id = \"narthex\"\nemail_domains = [\"corp.example\"]\n[signin.oidc.file]\n\
         issuer = \"{provider}/file\"\nclient_id = \"narthex\"\n\
         client_secret_file = \"{}\"\nemail_domains = [\"corp.example\"]\n",
        password.display()
    )
}

/// A server says by a variable who it is.
fn told_name(environ: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(environ).into_owned();
    let name = text.split('\0').find_map(|pair| pair.strip_prefix("WHO="));
    name.map(str::to_owned)
}

/// Servers of `mcp.json`, with values by the environment, the vault, an argument, a header and a
/// URL; some fail and say why, with the value.
fn servers(url: &str, planted: &str) -> Value {
    let mut with_env = fixture_entry();
    with_env["env"] = json!({ "WHO": "env", "API_TOKEN": "${env:CANARY_ENV_TOKEN}" });
    let mut named = fixture_entry();
    named["env"] = json!({ "WHO": planted });
    let mut with_secret = fixture_entry();
    with_secret["env"] = json!({ "WHO": "local", "PLAIN": "${secret:LOCAL}" });
    let dying_with_secret = json!({ "transport": "stdio", "command": "sh",
        "env": { "WHO": "local", "PLAIN": "${secret:LOCAL}" },
        "args": ["-c", "echo \"no login with $PLAIN\" >&2; exit 3"] });
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
        // The log names failed servers.
        format!("{planted}-fails"): { "transport": "stdio", "command": "no-such-program" },
        "with-argument": with_argument,
        "by-line": named_by_line,
        "dying": dying,
        "with-header": { "transport": "http", "url": url,
            "headers": { "Authorization": "${env:CANARY_HEADER_TOKEN}" } },
        "with-key": { "transport": "http", "url": url,
            "auth": { "mode": "apiKey", "key": "${env:CANARY_KEY_TOKEN}" } },
        "with-secret": with_secret,
        "dying-with-secret": dying_with_secret,
        "with-secret-header": { "transport": "http", "url": url,
            "headers": { "X-Plain": "${secret:LOCAL}" } },
        "with-url": { "transport": "http",
            "url": "http://127.0.0.1:1/mcp?key=${env:CANARY_URL_TOKEN}" },
    })
}
