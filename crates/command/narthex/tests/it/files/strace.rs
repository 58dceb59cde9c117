//! Lines of `narthex strace` about programs that use a folder.

use std::{
    io::{BufRead, BufReader, Lines, Read},
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
};

use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::{
    Mount, daemon, has_fuse,
    interrupted::{until, until_it_is},
    place, shell,
};
use crate::{
    support::{Place, fixture_entry},
    world::{Client, Socket, call, modern},
};

/// Looks for a file until the folder reports that there is none: while a list is slow to arrive,
/// each name in it exists.
fn looks_for_none(place: &Place, path: &str) {
    shell(place, &format!("while test -e {path}; do :; done")).succeeded();
}

/// R-M35: each file is reported with its name, as is a tool's failure and a refusal of the folder
/// itself. The folder's own reading of the run's lists is not reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_m35_operations_of_programs_in_a_folder_are_reported() {
    if !has_fuse() {
        return;
    }
    let server = Running::http(Options::default()).await.unwrap();
    // Longer than the test may take: only the program's end gives its call up.
    let demo = json!({ "transport": "http", "url": server.url, "timeoutMs": 600_000 });
    let place = Place::with(&json!({ "demo": demo }));
    let _daemon = daemon(&place);
    let _mount = Mount::new(&place, None);
    let mut watching = place.command(["strace", "local", "--json"]);
    let mut watching = watching.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut told = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(told()["type"], "begin");
    shell(
        &place,
        "cat mcp/0-demo/tools/echo.md; echo '{}' > mcp/0-demo/tools/fail
         echo 'no JSON' > mcp/0-demo/tools/echo",
    );
    looks_for_none(&place, "mcp/0-demo/tools/absent");
    let before = server.fixture.counts().calls;
    let script = r#"exec 3<>mcp/0-demo/tools/sleep; echo '{"ms":600000}' >&3; exec cat <&3"#;
    let mut waiting = Command::new("bash");
    waiting.args(["-c", script]).current_dir(place.path("")).stdout(Stdio::null());
    let mut waiting = waiting.spawn().unwrap();
    until(&server, |counts| counts.calls > before).await;
    let pid = waiting.id().to_string();
    until_it_is(&pid, "cat").await;
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    waiting.wait().unwrap();
    let mut wanted = vec![
        ("Open", "echo.md", None),
        ("Read", "echo.md", None),
        ("Write", "fail", Some("tool_error")),
        ("Write", "echo", Some("INVALID")),
        ("Stat", "absent", Some("NOT_FOUND")),
        ("Write", "sleep", Some("BROKEN_PIPE")),
    ];
    while !wanted.is_empty() {
        let line = told();
        let name = line["path"].as_str().unwrap().rsplit('/').next().unwrap();
        let seen = (line["operation"].as_str().unwrap(), name, line["error"].as_str());
        if line["is_inner"] == false {
            assert!(seen.0 != "Stat" || seen.1 == "absent", "no test asked for this path: {line}");
            assert!(line["path"] != "/mnt/mcp" && line["size"] != 0, "{line}");
            if seen.1 == "sleep" && seen.0 == "Write" {
                let took = line["duration_us"].as_u64();
                assert!(line["size"] == 14 && took.is_some_and(|took| took > 100), "{line}");
            }
            wanted.retain(|one| *one != seen);
        }
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// A running `narthex strace` for people.
struct Strace {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    notices: BufReader<ChildStderr>,
    /// Each line that was given, as it was.
    shown: Vec<String>,
    /// The lines of the lists that a folder has fetched to find names in them, and the descriptors
    /// of those that are open.
    lists: Vec<String>,
    open_lists: Vec<String>,
}

impl Strace {
    /// Starts to watch the run; returns when watching has begun.
    fn of(place: &Place, run: &Value, words: &[&str]) -> Self {
        let pid = run["pid"].to_string();
        let mut command = place.command(["strace", &pid]);
        command
            .env("LC_ALL", "C.UTF-8")
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut notices = BufReader::new(child.stderr.take().unwrap());
        let mut notice = String::new();
        notices.read_line(&mut notice).unwrap();
        let (agent, id) = (run["agent_name"].as_str().unwrap(), run["run_id"].as_str().unwrap());
        let expected = format!("watching run {pid} of {agent} ({id}); Ctrl-C ends it\n");
        assert_eq!(notice, expected);
        let (shown, lists, open_lists) = (Vec::new(), Vec::new(), Vec::new());
        Self { child, lines, notices, shown, lists, open_lists }
    }

    /// The next line that is of no list, without its time, its duration and the number of its
    /// descriptor.
    fn next(&mut self) -> String {
        loop {
            let line = self.lines.next().expect("it goes on").unwrap();
            let shown = masked(&line);
            if !self.is_of_list(&line) {
                self.shown.push(line);
                return shown;
            }
            self.lists.push(line);
        }
    }

    /// True for a line about a list: the time at which a folder fetches a list depends on its last
    /// fetch.
    fn is_of_list(&mut self, line: &str) -> bool {
        if line.contains(r#"] Open(path="/mnt/mcp/1-"#) && line.contains(r#"/tools") →"#) {
            self.open_lists.push(descriptor(line).to_owned());
            return true;
        }
        if !line.contains("(fd=") {
            return false;
        }
        let found = self.open_lists.iter().position(|fd| *fd == descriptor(line));
        if let Some(at) = found.filter(|_| line.contains("] Close(")) {
            self.open_lists.remove(at);
        }
        found.is_some()
    }

    /// Reads until the run has ended, and checks that nothing more was shown, and no written or
    /// read text.
    fn ends(&mut self) {
        self.lists.extend(self.lines.by_ref().map(Result::unwrap));
        let more = self.lists.iter().filter(|line| line.contains("/tools/"));
        assert_eq!(more.count(), 0, "{:#?}", self.lists);
        let mut all = self.shown.iter().chain(&self.lists);
        assert!(all.all(|line| !line.contains("canary")), "{:#?}", self.shown);
        let mut notices = String::new();
        self.notices.read_to_string(&mut notices).unwrap();
        assert_eq!(notices, "the run has ended (ended)\n");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // The program has ended, unless the test has failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A line as the document has it, whose numbers that are another each time are `N`.
#[track_caller]
fn masked(line: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let (time, rest) = line.split_once("s] ").unwrap_or_else(|| panic!("no time: {line}"));
    let time = time.strip_prefix('[').unwrap_or_else(|| panic!("no time: {line}"));
    let (seconds, millis) = time.split_once('.').unwrap_or_else(|| panic!("no time: {line}"));
    assert!(seconds.len() == 3 && is_number(seconds.trim_start_matches(' ')), "{line}");
    assert!(millis.len() == 3 && is_number(millis), "{line}");
    let (done, took) = rest.rsplit_once("    ").unwrap_or_else(|| panic!("no duration: {line}"));
    let took = took.strip_suffix("ms").or(took.strip_suffix("µs"));
    assert!(took.is_some_and(is_number), "{line}");
    let (what, gave) = done.split_once(" → ").unwrap_or_else(|| panic!("no arrow: {line}"));
    let what = match what.split_once("(fd=") {
        Some((operation, rest)) => {
            let end = rest.find([',', ')']).unwrap();
            assert!(is_number(&rest[..end]), "{line}");
            format!("{operation}(fd=N{}", &rest[end..])
        }
        None => what.to_owned(),
    };
    let is_descriptor = what.starts_with("Open(") && is_number(gave);
    format!("{what} → {}", if is_descriptor { "N" } else { gave })
}

/// The descriptor that a line of an opening gave, or that another one is about.
fn descriptor(line: &str) -> &str {
    let rest = match line.split_once("(fd=") {
        Some((_, rest)) => rest,
        None => line.split_once(" → ").unwrap().1,
    };
    &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap()]
}

/// Opens a tool, calls it, and says how many bytes it has read.
const PROGRAM: &str = r#"python3 -c '
import os
tool = os.open("mcp/1-github/tools/echo", os.O_RDWR)
os.write(tool, b"{\"message\": \"canary-of-a-file\"}")
text = os.read(tool, 1 << 20)
assert b"canary-of-a-file" in text
os.close(tool)
print(len(text))'"#;

/// A run with two servers, its sockets, and where its daemon is.
fn run_of_two(place: &Place) -> Value {
    let mut attached = json!({});
    for name in ["github", "other"] {
        let mut server = fixture_entry();
        server["id"] = json!(name);
        place.write("server.json", &server.to_string());
        place.run(["servers", "apply", "-f", "server.json"]).succeeded();
        attached[name] = json!({ "ref": name });
    }
    place.write("agent.json", &json!({ "name": "reader", "mcpServers": attached }).to_string());
    place.run(["agents", "apply", "-f", "agent.json"]).succeeded();
    place.write("run.json", &json!({ "agent_name": "reader", "sockets": true }).to_string());
    place.run(["runs", "create", "run.json", "--json"]).succeeded().json()["data"].take()
}

/// R-M35, A-8: the lines that people are shown of a call by HTTP, by a socket of the run and at a
/// folder are as the document has them, and have no byte that was written or read; with `--alias`
/// they are those of one server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_m35_the_printed_lines_match_the_document() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = daemon(&place);
    let run = run_of_two(&place);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let token = text(&run["token"]);
    let url = text(&run["endpoints"]["aggregated"]);
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut mount = Mount::new(&place, Some(&token));
    let mut all = Strace::of(&place, &run, &[]);
    let mut of_other = Strace::of(&place, &run, &["--alias", "other"]);

    let arguments = json!({ "message": "canary-of-a-call" });
    let size = arguments.to_string().len();
    let said = modern(1, "tools/call", call("echo", arguments));
    let written = |server: &str, gave: &str| {
        format!("Write(path=\"/mnt/mcp/1-{server}/tools/echo\", size={size}) → {gave}")
    };
    for server in ["github", "other"] {
        let path = format!("/mcp/{server}");
        let mut client = Client::new(address.parse().unwrap(), &path, &token);
        let reply = client.modern(&said).await;
        let answer = &reply.messages[0];
        assert!(answer.contains("canary-of-a-call"), "{answer}");
        assert_eq!(all.next(), written(server, &answer.len().to_string()));
    }
    let path = Path::new(run["endpoints"]["sockets"].as_str().unwrap()).join("github.sock");
    let (reader, writer) = UnixStream::connect(path).await.unwrap().into_split();
    let mut socket = Socket::of(reader, writer);
    socket.send(&said.to_string()).await;
    let answer = socket.next().await;
    assert!(answer.contains("canary-of-a-call"), "{answer}");
    assert_eq!(all.next(), written("github", &answer.len().to_string()));

    let length = shell(&place, PROGRAM).succeeded().stdout;
    let size = r#"{"message": "canary-of-a-file"}"#.len();
    for expected in [
        "Open(path=\"/mnt/mcp/1-github/tools/echo\") → N",
        &format!("Write(fd=N, size={size}) → <nil>"),
        &format!("Read(fd=N) → {}", length.trim_end()),
        "Close(fd=N) → <nil>",
    ] {
        assert_eq!(all.next(), expected);
    }
    let fds: Vec<_> = all.shown[3..].iter().map(|line| descriptor(line)).collect();
    assert!(fds.iter().all(|fd| *fd == fds[0] && !fd.is_empty()), "{:?}", all.shown);
    // A refusal of a folder is reported with its reason.
    looks_for_none(&place, "mcp/1-other/tools/absent");
    let refused = "Stat(path=\"/mnt/mcp/1-other/tools/absent\") → [NOT_FOUND]";
    assert_eq!(all.next(), refused);

    let first = of_other.next();
    assert!(first.starts_with("Write(path=\"/mnt/mcp/1-other/tools/echo\", "), "{first}");
    assert_eq!(of_other.next(), refused, "what was done with the other one is not shown");
    place.run(["runs", "end", run["run_id"].as_str().unwrap()]).succeeded();
    mount.ends(Some(0));
    all.ends();
    of_other.ends();
}
