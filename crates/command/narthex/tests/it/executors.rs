//! Runs that programs of the daemon carry out: the programs' input and end, and the rest when the
//! daemon is killed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use fs_err as fs;
use narthex_model::{RunId, WorkspaceId};
use narthex_store::Store;
use serde_json::{Value, json};

use crate::{
    killed::processes::wait_until_nobody_works_in,
    support::{Daemon, Done, Place, fixture_entry},
    world::{Client, modern},
};

/// Notes all its input, reports its start, and ends with the given code.
const WORK: &str = r#"
cd "$NOTES"
env > env
cat > prompt
cp "$NARTHEX_RUN_FILE" run.json
stat -c %a "$NARTHEX_RUN_FILE" > mode
echo "the token is $NARTHEX_RUN_TOKEN, the key is $KEY"
echo "$NARTHEX_ATTEMPT" > begun
read code < go
exit "$code"
"#;

/// Starts a process in another session, reports its start, and ends at SIGTERM.
const STAY: &str = r#"
setsid tail -f /dev/null &
trap 'echo told > "$NOTES/ended"; exit 0' TERM
echo "$NARTHEX_ATTEMPT" > "$NOTES/begun"
tail -f /dev/null &
wait $!
"#;

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

struct World {
    place: Place,
}

impl World {
    /// A place with the executors `work` and `stay`, without a daemon.
    fn new() -> Self {
        let place = Place::with(&json!({}));
        fs::create_dir_all(place.path("config/narthex")).unwrap();
        for fifo in ["begun", "go", "ended"] {
            let path = place.path(fifo);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        }
        let notes = place.path("").display().to_string();
        let of = |script: &str| {
            let env = format!("{{ NOTES = '{notes}', KEY = 'key-of-the-operator' }}");
            // Longer than a busy machine takes to read the program's last output.
            format!(
                "command = 'sh'\nstop_grace = '60s'\nargs = ['-c', '''{script}''']\nenv = {env}\n"
            )
        };
        let settings = format!(
            "[executors.work]\n{}[executors.stay]\n{}[executors.none]\ncommand = 'no-such-thing'\n",
            of(WORK),
            of(STAY),
        );
        place.write("config/narthex/narthex.toml", &settings);
        place.set_mode("config/narthex/narthex.toml", 0o600);
        Self { place }
    }

    fn up(&self) -> (Daemon, SocketAddr) {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = self.place.start_with(&words, |command| {
            command.env("CANARY_OF_THE_DAEMON", "canary-of-the-daemon");
        });
        let url = text(&daemon.event("listening")["url"]);
        daemon.event("ready");
        (daemon, url.strip_prefix("http://").unwrap().parse().unwrap())
    }

    fn has_agent(&self, agent: &Value) {
        self.apply(agent).succeeded();
    }

    fn apply(&self, agent: &Value) -> Done {
        let mut agent = agent.clone();
        agent["builtin"] = json!("all");
        self.place.write("agent.json", &agent.to_string());
        self.place.run(["agents", "apply", "-f", "agent.json"])
    }

    /// A run of an agent, which is carried out.
    fn begin(&self, agent: &str) -> Value {
        let words = ["runs", "create", "--agent", agent, "--prompt", "count to 3", "--json"];
        data(self.place.run(words))
    }

    /// Waits until a program says something by one of its pipes.
    fn hears(&self, fifo: &str) -> String {
        fs::read_to_string(self.place.path(fifo)).unwrap().trim().to_owned()
    }

    fn says(&self, fifo: &str, word: &str) {
        let mut fifo = fs::OpenOptions::new().write(true).open(self.place.path(fifo)).unwrap();
        writeln!(fifo, "{word}").unwrap();
    }

    fn note(&self, name: &str) -> String {
        fs::read_to_string(self.place.path(name)).unwrap()
    }

    /// All events of a session, once it has ended.
    fn story(&self, session: &str) -> Vec<Value> {
        let mut command = self.place.command(["sessions", "events", session, "--follow", "--json"]);
        let mut follower = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(follower.stdout.take().unwrap()).lines();
        let story = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        assert!(follower.wait().unwrap().success());
        story
    }

    fn status(&self, run: &Value) -> String {
        text(&data(self.place.run(["runs", "show", run.as_str().unwrap(), "--json"]))["status"])
    }
}

fn types(story: &[Value]) -> Vec<String> {
    story.iter().map(|event| text(&event["type"])).collect()
}

fn of_type<'s>(story: &'s [Value], wanted: &str) -> &'s Value {
    let found = story.iter().find(|event| event["type"] == wanted);
    &found.unwrap_or_else(|| panic!("no {wanted} in {story:?}"))["payload"]
}

async fn called(address: SocketAddr, token: &str, tool: &str, arguments: Value) -> Value {
    let mut client = Client::new(address, "/mcp/narthex", token);
    let params = json!({ "name": tool, "arguments": arguments });
    client.modern(&modern(1, "tools/call", params)).await.json()["result"].clone()
}

/// X-M3, X-E121, A-15: a run that an operator creates is carried out by the program that the
/// daemon's settings name, which gets the way to its servers, and nothing of the daemon's
/// environment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_e121_the_program_of_an_executor_carries_out_a_run() {
    let world = World::new();
    let (_daemon, address) = world.up();
    world.has_agent(&json!({ "name": "worker", "executor": "work" }));
    let begun = world.begin("worker");
    // The creator of the run gets nothing that opens it.
    assert!(begun["token"].is_null() && begun["endpoints"].is_null(), "{begun}");
    assert_eq!(begun["claim"]["executor"], "work");
    assert_eq!(world.hears("begun"), "1");
    let (env, run) = (world.note("env"), world.note("run.json"));
    let run: Value = serde_json::from_str(&run).unwrap();
    assert!(!env.contains("canary") && !env.contains("NARTHEX_DATA"), "{env}");
    assert!(env.contains("KEY=key-of-the-operator"), "{env}");
    let (session, token) = (text(&begun["session_id"]), text(&run["token"]));
    for line in [
        format!("NARTHEX_RUN_ID={}", text(&begun["run_id"])),
        format!("NARTHEX_SESSION_ID={session}"),
        format!("NARTHEX_RUN_TOKEN={token}"),
        format!("NARTHEX_MCP_URL=http://{address}/mcp"),
        format!(
            "NARTHEX_EVENTS_URL=http://{address}/api/workspaces/default/sessions/{session}/events"
        ),
    ] {
        assert!(env.lines().any(|one| one == line), "{line} in {env}");
    }
    assert_eq!((world.note("prompt").as_str(), world.note("mode").trim()), ("count to 3", "600"));
    assert_eq!(run["mcpServers"]["narthex"]["url"], format!("http://{address}/mcp"));
    let events = text(&run["endpoints"]["events"]);
    let events = events.strip_prefix(&format!("http://{address}")).unwrap();
    let told = Client::new(address, events, &token).whole("GET", &[], "").await.json();
    assert_eq!(told["items"][0]["type"], "session.created", "{told}");
    let folder = text(&run["folder"]);
    assert!(folder.ends_with(&session) && fs::metadata(&folder).unwrap().is_dir(), "{folder}");
    assert_eq!(world.status(&begun["run_id"]), "running");
    // Only its own session has this token.
    let said = called(address, &token, "emit_status", json!({ "status": "starting" })).await;
    assert_eq!(said["isError"], Value::Null, "{said}");
    world.says("go", "0");
    let story = world.story(&session);
    let expected = ["session.created", "agent.status", "session.completed", "session.ended"];
    assert_eq!(types(&story), expected);
    assert_eq!(world.status(&begun["run_id"]), "ended");
    let left = fs::read_dir(world.place.path("data/executors/runs")).unwrap().count();
    assert_eq!(left, 0, "the file with the token is gone");
    let mut late = Client::new(address, "/mcp/narthex", &token);
    let late = late.modern(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(late.status, 401, "its token opens nothing any more");
}

/// A program that ends badly fails its session, and its last lines are shown without values that
/// only the program may know. So does a program that does not start.
#[test]
fn a_failing_program_fails_its_session_with_a_reason() {
    let world = World::new();
    let (_daemon, _) = world.up();
    world.has_agent(&json!({ "name": "worker", "executor": "work" }));
    world.has_agent(&json!({ "name": "absent", "executor": "none" }));
    let begun = world.begin("worker");
    world.hears("begun");
    world.says("go", "3");
    let story = world.story(&text(&begun["session_id"]));
    assert_eq!(types(&story), ["session.created", "session.failed", "session.ended"]);
    let failed = of_type(&story, "session.failed");
    assert_eq!((&failed["exit_code"], &failed["attempts"]), (&json!(3), &json!(1)));
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.starts_with("its program ended with exit code 3"), "{reason}");
    let line = "the token is [redacted], the key is [redacted]";
    assert_eq!(failed["last_lines"], json!([line]));
    assert_eq!(world.status(&begun["run_id"]), "failed");
    let absent = world.begin("absent");
    let story = world.story(&text(&absent["session_id"]));
    let reason = text(&of_type(&story, "session.failed")["reason"]);
    assert!(reason.contains("no-such-thing"), "{reason}");
    // Nor does a further try mend that for an orchestrator, which else has six.
    let lead = json!({ "name": "lead", "executor": "none", "agent_type": "orchestrator" });
    world.has_agent(&lead);
    let absent = world.begin("lead");
    let story = world.story(&text(&absent["session_id"]));
    let failed = of_type(&story, "session.failed");
    assert_eq!(failed["attempts"], 1, "{failed}");
    assert!(text(&failed["reason"]).contains("not tried again"), "{failed}");
    // The list has the newest last, and why sessions have failed.
    let seen = world.place.run(["sessions", "list"]).succeeded();
    let last = seen.stdout.trim_end().lines().last().unwrap();
    assert!(last.contains(&text(&absent["session_id"])) && last.contains("failed"), "{last}");
    assert!(seen.stderr.contains("no-such-thing"), "{}", seen.stderr);
}

/// The end of a session ends its program: it gets a signal, and no process of it is left.
#[test]
fn ending_a_session_ends_its_program() {
    let world = World::new();
    let (_daemon, _) = world.up();
    world.has_agent(&json!({ "name": "stayer", "executor": "stay" }));
    let begun = world.begin("stayer");
    world.hears("begun");
    world.place.run(["sessions", "end", begun["session_id"].as_str().unwrap()]).succeeded();
    assert_eq!(world.hears("ended"), "told");
    wait_until_nobody_works_in(&world.place.path("data/folders"));
    assert_eq!(world.status(&begun["run_id"]), "ended");
}

/// X-E57: a killed daemon leaves no process behind. The next daemon does not run a worker's session
/// a second time, and reports that; it starts an orchestrator's session again.
#[test]
fn x_e57_a_killed_daemon_leaves_no_program_and_no_false_status() {
    for kind in ["worker", "orchestrator"] {
        let world = World::new();
        let (mut daemon, _) = world.up();
        world.has_agent(&json!({ "name": "stayer", "executor": "stay", "agent_type": kind }));
        let begun = world.begin("stayer");
        assert_eq!(world.hears("begun"), "1");
        daemon.signal("KILL");
        daemon.wait();
        wait_until_nobody_works_in(&world.place.path("data/folders"));
        let (_daemon, _) = world.up();
        let session = text(&begun["session_id"]);
        if kind == "worker" {
            let story = world.story(&session);
            assert_eq!(types(&story), ["session.created", "session.failed", "session.ended"]);
            assert_eq!(of_type(&story, "session.failed")["attempts"], 1);
        } else {
            assert_eq!(world.hears("begun"), "2");
            assert_eq!(world.status(&begun["run_id"]), "running");
            world.place.run(["sessions", "end", &session]).succeeded();
            assert_eq!(world.hears("ended"), "told");
        }
    }
}

/// X-E57: an orchestrator whose program fails is started again, with another token.
#[test]
fn x_e57_an_orchestrator_is_started_again_after_a_failure() {
    let world = World::new();
    let (_daemon, _) = world.up();
    let agent = json!({ "name": "lead", "executor": "work", "agent_type": "orchestrator" });
    world.has_agent(&agent);
    let begun = world.begin("lead");
    let token = || serde_json::from_str::<Value>(&world.note("run.json")).unwrap()["token"].clone();
    assert_eq!(world.hears("begun"), "1");
    let first = token();
    world.says("go", "7");
    assert_eq!(world.hears("begun"), "2");
    assert_ne!(first, token());
    world.says("go", "0");
    let story = world.story(&text(&begun["session_id"]));
    assert_eq!(types(&story), ["session.created", "session.completed", "session.ended"]);
}

/// R-D1, R-E32: servers of a session that is resumed with a program have events as those of any
/// other.
#[test]
fn r_d1_servers_of_a_resumed_program_have_events_like_other_servers() {
    let world = World::new();
    let (_daemon, _) = world.up();
    let mut server = fixture_entry();
    server["id"] = json!("lib");
    world.place.pipe(&["servers", "apply", "-f", "-"], &server.to_string()).succeeded();
    let attached = json!({ "lib": { "ref": "lib" } });
    world.has_agent(&json!({ "name": "stayer", "executor": "stay", "mcpServers": attached }));
    let session = text(&world.begin("stayer")["session_id"]);
    assert_eq!(world.hears("begun"), "1");
    world.place.run(["sessions", "suspend", &session]).succeeded();
    assert_eq!(world.hears("ended"), "told");
    world.place.run(["sessions", "resume", &session]).succeeded();
    assert_eq!(world.hears("begun"), "1");
    world.place.run(["sessions", "end", &session]).succeeded();
    assert_eq!(world.hears("ended"), "told");
    let story = world.story(&session);
    let mounted = story.iter().filter(|event| event["type"] == "mcp.mount");
    let mounted: Vec<_> = mounted.map(|event| event["payload"].clone()).collect();
    let first = json!({ "server": "lib", "path": "/mnt/mcp/1-lib", "auto": true });
    let second = json!({ "server": "lib", "path": "/mnt/mcp/2-lib", "auto": true, "pid": 2,
        "source": "resume", "former_pid": 1, "former_path": "/mnt/mcp/1-lib" });
    assert_eq!(mounted, [first, second]);
}

/// A daemon that has to stop ends its programs first, and reports their outcomes.
#[test]
fn a_stopping_daemon_ends_its_programs_and_reports_their_outcomes() {
    let world = World::new();
    let (mut daemon, _) = world.up();
    world.has_agent(&json!({ "name": "stayer", "executor": "stay" }));
    let begun = world.begin("stayer");
    world.hears("begun");
    daemon.signal("TERM");
    assert_eq!(world.hears("ended"), "told");
    assert!(daemon.wait().success());
    wait_until_nobody_works_in(&world.place.path("data/folders"));
    let (_daemon, _) = world.up();
    let story = world.story(&text(&begun["session_id"]));
    let reason = text(&of_type(&story, "session.failed")["reason"]);
    assert!(reason.contains("was stopped"), "{reason}");
}

/// X-M3: a child that an agent starts is carried out alike, and its parent ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_m3_child_runs_are_carried_out_by_executors() {
    let world = World::new();
    let (_daemon, address) = world.up();
    world.has_agent(&json!({ "name": "worker", "executor": "work" }));
    world.has_agent(&json!({ "name": "stayer", "executor": "stay" }));
    let lead = json!({ "name": "lead", "spawnable_agents": ["worker", "stayer"] });
    world.has_agent(&lead);
    let token =
        text(&data(world.place.run(["runs", "create", "--agent", "lead", "--json"]))["token"]);
    let start = async |agent: &str| {
        let asked = json!({ "child_agent_id": agent, "prompt": "be quick", "model": "small" });
        let started = called(address, &token, "spawn_session", asked).await;
        started["structuredContent"]["session"]["id"].clone()
    };
    let child = start("worker").await;
    world.hears("begun");
    assert_eq!(world.note("prompt"), "be quick");
    assert!(world.note("env").contains("NARTHEX_MODEL=small\n"));
    world.says("go", "0");
    world.story(child.as_str().unwrap());
    let asked = json!({ "child_session_id": child });
    let output = called(address, &token, "read_child_output", asked).await;
    assert_eq!(output["structuredContent"]["child"]["status"], "ended", "{output}");
    let child = start("stayer").await;
    world.hears("begun");
    let asked = json!({ "child_session_id": child });
    let ended = called(address, &token, "cancel_session", asked).await;
    assert_eq!(ended["structuredContent"]["cancelled"], true, "{ended}");
    assert_eq!(world.hears("ended"), "told");
}

/// O80: an orchestrator whose program ends while its children are active is started again when they
/// have ended, in the same folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o80_an_orchestrator_is_started_again_after_its_children_end() {
    let world = World::new();
    let (_daemon, address) = world.up();
    world.has_agent(&json!({ "name": "worker" }));
    let lead = json!({ "name": "lead", "executor": "work", "agent_type": "orchestrator",
                       "spawnable_agents": ["worker"] });
    world.has_agent(&lead);
    let begun = world.begin("lead");
    let told = || serde_json::from_str::<Value>(&world.note("run.json")).unwrap();
    world.hears("begun");
    let before = told();
    let asked = json!({ "child_agent_id": "worker" });
    let child = called(address, &text(&before["token"]), "spawn_session", asked).await;
    let child = text(&child["structuredContent"]["session"]["id"]);
    world.says("go", "0");
    // An end of the child before this one would be its own affair.
    while world.status(&begun["run_id"]) == "running" {}
    world.place.run(["sessions", "end", &child]).succeeded();
    world.hears("begun");
    let after = told();
    assert_ne!(after["run_id"], before["run_id"]);
    assert_eq!((&after["session_id"], &after["folder"]), (&begun["session_id"], &before["folder"]));
    assert!(world.note("prompt").contains(&child), "{}", world.note("prompt"));
    world.says("go", "0");
    let story = world.story(&text(&begun["session_id"]));
    let expected = ["session.created", "session.wake", "session.resumed", "session.completed"];
    assert_eq!(types(&story), [&expected[..], &["session.ended"]].concat());
}

/// `narthex runs claim`: a run that waits is carried out by the executor that claims it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_claimed_on_the_command_line() {
    let world = World::new();
    let (_daemon, address) = world.up();
    world.has_agent(&json!({ "name": "worker" }));
    world.has_agent(&json!({ "name": "lead", "spawnable_agents": ["worker"] }));
    let lead = data(world.place.run(["runs", "create", "--agent", "lead", "--json"]));
    let asked = json!({ "child_agent_id": "worker", "prompt": "count" });
    called(address, &text(&lead["token"]), "spawn_session", asked).await;
    let waiting = world.place.run(["runs", "list", "--status", "pending", "--quiet"]);
    let waiting = waiting.succeeded().stdout.trim().to_owned();
    let claimed = data(world.place.run(["runs", "claim", &waiting, "--lease", "10m", "--json"]));
    assert_eq!((&claimed["run"]["run_id"], &claimed["prompt"]), (&json!(waiting), &json!("count")));
    let token = text(&claimed["run"]["token"]);
    let said = called(address, &token, "emit_status", json!({ "status": "starting" })).await;
    assert_eq!(said["isError"], Value::Null, "{said}");
    let again = world.place.run(["runs", "claim", &waiting]);
    again.failed(1, &["conflict", "another client has claimed it"]);
    let claim = text(&claimed["claim"]);
    let words = ["runs", "claim", &waiting, "--claim", &claim, "--lease", "1h"];
    let held = world.place.run(words).succeeded().stdout;
    assert!(held.starts_with(&format!("The claim {claim} holds until ")), "{held}");
    world.place.run(["runs", "claim", "run_000000000000"]).failed(1, &["not_found"]);
}

/// The agent is saved, and its author is warned of its executor.
#[track_caller]
fn warned(saved: &Done, executor: &str) {
    let told = format!("this daemon has no executor `{executor}` for this workspace");
    let has = |words: &str| saved.stderr.contains(words);
    assert!(saved.code == Some(0) && has(&told), "{saved:?}");
    assert!(has("warning: agent.json: `executor` (line 1): "), "{saved:?}");
}

/// An author of agents names an executor, and never a program. An executor that is not there, or is
/// for others, is warned of when the agent is saved, and refused when a run of it is created.
/// Settings that make no sense are refused.
#[test]
fn an_agent_names_an_executor_and_never_a_program() {
    let world = World::new();
    let (daemon, _) = world.up();
    let unknown = world.apply(&json!({ "name": "lost", "executor": "nowhere" }));
    warned(&unknown, "nowhere");
    world.place.run(["runs", "create", "--agent", "lost"]).failed(1, &["`nowhere`"]);
    for wrong in [json!({ "command": "sh" }), json!(["sh"]), json!("Sh")] {
        let refused = world.apply(&json!({ "name": "wrong", "executor": wrong }));
        refused.failed(1, &["executor"]);
    }
    world.has_agent(&json!({ "name": "stayer", "executor": "stay" }));
    world.place.run(["workspaces", "create", "team"]).succeeded();
    world.place.write("agent.json", &json!({ "name": "a", "executor": "stay" }).to_string());
    let words = ["agents", "apply", "-f", "agent.json", "--workspace", "team"];
    warned(&world.place.run(words), "stay");
    let words = ["runs", "create", "--agent", "a", "--workspace", "team"];
    world.place.run(words).failed(1, &["`stay`"]);
    world.place.write("direct.json", r#"{ "agent_name": "stayer", "direct": true }"#);
    world.place.run(["runs", "create", "direct.json"]).failed(1, &["direct", "executor"]);
    drop(daemon);
    // An executor that an operator takes away is refused from then on.
    world.place.write("config/narthex/narthex.toml", "");
    let (_daemon, _) = world.up();
    world.place.run(["runs", "create", "--agent", "stayer"]).failed(1, &["`stay`"]);
    world.place.write("config/narthex/narthex.toml", "[executors.x]\nargs = 1\n");
    let told = world.place.run(["status"]);
    told.failed(2, &["`executors.x`: `command` is missing", "`executors.x`: `args`"]);
    let open = "[executors.x]\ncommand = 'sh'\nenv = { KEY = 'value' }\n";
    world.place.write("config/narthex/narthex.toml", open);
    world.place.set_mode("config/narthex/narthex.toml", 0o644);
    world.place.run(["status"]).failed(2, &["`executors`", "chmod 600"]);
}

/// The files that are handed to no child, and fetched from none.
fn refused_handings() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("pull_from_child", json!({ "paths": ["../lead"] }), "path_outside_folder"),
        ("pull_from_child", json!({ "paths": ["nothing"] }), "file_not_found"),
        ("pull_from_child", json!({ "paths": ["out", "large"] }), "workspace_too_large"),
        ("pull_from_child", json!({ "paths": [".netrc"] }), "hidden_path"),
        ("share_to_child", json!({ "source_path": "in/.env/x" }), "hidden_path"),
        (
            "share_to_child",
            json!({ "source_path": "in", "dest_path": ".git/hooks" }),
            "hidden_path",
        ),
        ("share_to_child", json!({ "source_path": "in/link" }), "path_outside_folder"),
        (
            "share_to_child",
            json!({ "source_path": "in", "dest_path": "/x" }),
            "path_outside_folder",
        ),
    ]
}

/// A file, and five things that are not handed on.
fn fill(folder: &Path) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("a.txt"), "for you").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    for hidden in [".env", ".git", "node_modules", "__pycache__"] {
        fs::create_dir(folder.join(hidden)).unwrap();
        fs::write(folder.join(hidden).join("x"), "hidden").unwrap();
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// X-M3, S29: an agent hands files to its child and fetches the child's files, each in a folder of
/// its own, and no other file by links.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_m3_files_are_handed_to_children_and_fetched_from_children() {
    let world = World::new();
    let (_daemon, address) = world.up();
    world.has_agent(&json!({ "name": "reader", "executor": "stay" }));
    let lead = json!({ "name": "lead", "executor": "work", "agent_type": "orchestrator",
                       "spawnable_agents": ["reader"] });
    world.has_agent(&lead);
    world.begin("lead");
    assert_eq!(world.hears("begun"), "1");
    let run: Value = serde_json::from_str(&world.note("run.json")).unwrap();
    let (token, own) = (text(&run["token"]), PathBuf::from(text(&run["folder"])));
    let call = async |tool: &str, arguments: Value| {
        let result = called(address, &token, tool, arguments).await;
        result["structuredContent"].clone()
    };
    let child = call("spawn_session", json!({ "child_agent_id": "reader" })).await;
    let child = text(&child["session"]["id"]);
    assert_eq!(world.hears("begun"), "1");
    let theirs = own.with_file_name(&child);
    fill(&own.join("in"));
    let given = json!({ "child_session_id": child, "source_path": "in", "dest_path": "todo" });
    let handed = call("share_to_child", given).await;
    assert_eq!((&handed["files"], &handed["skipped_count"]), (&json!(1), &json!(5)), "{handed}");
    assert_eq!((&handed["dest_path"], &handed["total_size"]), (&json!("todo"), &json!(7)));
    assert!(text(&handed["stage_id"]).starts_with("stg_"), "{handed}");
    assert_eq!(names(&theirs.join("todo")), ["a.txt"]);
    assert_eq!(names(&theirs), ["todo"], "nothing else was left there");
    assert_eq!(fs::read_to_string(theirs.join("todo/a.txt")).unwrap(), "for you");

    fs::create_dir(theirs.join("out")).unwrap();
    fs::write(theirs.join("out/b.txt"), "done").unwrap();
    fs::write(theirs.join("out/.token"), "hidden").unwrap();
    fs::write(theirs.join(".netrc"), "hidden").unwrap();
    let wanted = json!({ "child_session_id": child, "paths": ["out", ".netrc"] });
    let fetched = call("pull_from_child", wanted.clone()).await;
    assert_eq!(fetched["dest_path"], format!("children/{child}"), "{fetched}");
    assert_eq!((&fetched["total_bytes"], &fetched["skipped_count"]), (&json!(4), &json!(2)));
    let here = own.join("children").join(&child);
    assert_eq!(fs::read_to_string(here.join("out/b.txt")).unwrap(), "done");
    // A file that was fetched before goes.
    fs::rename(theirs.join("out/b.txt"), theirs.join("out/c.txt")).unwrap();
    call("pull_from_child", wanted).await;
    assert_eq!(names(&here.join("out")), ["c.txt"]);
    let large = fs::File::create(theirs.join("large")).unwrap();
    large.set_len(50 * 1024 * 1024).unwrap();

    let refused = async |tool: &str, arguments: Value, code: &str| {
        let error = call(tool, arguments).await["error"].take();
        assert_eq!(error["details"]["code"], code, "{error}");
    };
    for (tool, mut arguments, code) in refused_handings() {
        arguments["child_session_id"] = child.clone().into();
        refused(tool, arguments, code).await;
    }
    assert_eq!(names(&here.join("out")), ["c.txt"], "what was refused has changed something");
    assert_eq!(names(&own.join("children")), [child.as_str()]);
    let other = json!({ "child_session_id": run["session_id"] });
    refused("pull_from_child", other, "not_your_child").await;
    call("cancel_session", json!({ "child_session_id": child })).await;
    assert_eq!(world.hears("ended"), "told");
    let given = json!({ "child_session_id": child, "source_path": "in" });
    refused("share_to_child", given, "child_not_live").await;
    // The child's files are there for as long as its folder is.
    fs::write(theirs.join("late.txt"), "at the last moment").unwrap();
    let wanted = json!({ "child_session_id": child, "paths": ["late.txt"] });
    call("pull_from_child", wanted.clone()).await;
    assert_eq!(fs::read_to_string(here.join("late.txt")).unwrap(), "at the last moment");
    fs::remove_dir_all(&theirs).unwrap();
    refused("pull_from_child", wanted, "child_workspace_unavailable").await;
    world.says("go", "0");
}

/// A run that cannot be started is tried a few times with pauses, and fails with the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_cannot_be_started_fails_after_its_retries() {
    let world = World::new();
    let (mut daemon, _) = world.up();
    world.has_agent(&json!({ "name": "lead", "executor": "stay", "agent_type": "orchestrator" }));
    let begun = world.begin("lead");
    assert_eq!(world.hears("begun"), "1");
    daemon.signal("KILL");
    daemon.wait();
    let store = Store::open(&world.place.path("data/store.db")).await.unwrap();
    let run = RunId::parse(begun["run_id"].as_str().unwrap()).unwrap();
    assert!(store.runs().freeze(&WorkspaceId::default(), run, "no such thing").await.unwrap());
    store.close().await;
    let (_daemon, _) = world.up();
    let story = world.story(&text(&begun["session_id"]));
    assert_eq!(types(&story), ["session.created", "session.failed", "session.ended"]);
    let reason = text(&of_type(&story, "session.failed")["reason"]);
    assert!(reason.starts_with("it could not be started: "), "{reason}");
    assert_eq!(world.status(&begun["run_id"]), "failed");
}
