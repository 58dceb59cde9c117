//! Profiles of the live configuration, with the whole program.

use std::net::SocketAddr;

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    support::{Daemon, Place, fixture_entry},
    world::{Client, call, legacy, modern},
};

const SETTINGS: &str = "config/narthex/settings.json";

/// The profile of the guide, for the tools of the fixture.
fn work() -> Value {
    json!({ "work": {
        "servers": ["github"],
        "tools": ["linear.test_simple*"],
        "overrides": { "github.echo": { "name": "new_issue", "description": "Files an issue." } },
    } })
}

/// A daemon with the servers `github` and `linear`, and these profiles.
struct Profiled {
    place: Place,
    daemon: Daemon,
    address: SocketAddr,
    token: String,
}

impl Profiled {
    fn start(profiles: &Value) -> Self {
        let gated = json!({ "add": "x.call" });
        let mut github = fixture_entry();
        github["tool_scopes"] = gated;
        let place = Place::with(&json!({ "github": github, "linear": fixture_entry() }));
        fs::create_dir_all(place.path("config/narthex")).unwrap();
        write(&place, profiles);
        let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
        let listening = daemon.event("listening");
        daemon.event("ready");
        let url = listening["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let token = fs::read_to_string(listening["token_file"].as_str().unwrap()).unwrap();
        Self { place, daemon, address: url.parse().unwrap(), token: token.trim().to_owned() }
    }

    fn client(&self, path: &str) -> Client {
        Client::new(self.address, path, &self.token)
    }

    fn shown(&self, name: &str) -> Value {
        self.place.run(["profiles", "show", name, "--json"]).succeeded().json()["data"].clone()
    }
}

fn write(place: &Place, profiles: &Value) {
    place.write(SETTINGS, &json!({ "mcp": { "profiles": profiles } }).to_string());
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn echo(name: &str) -> Value {
    call(name, json!({ "message": "hello" }))
}

/// P1, P10: clients of both eras see the profile of their address, over HTTP and over standard
/// input and output.
#[tokio::test(flavor = "multi_thread")]
async fn p10_an_address_gives_its_clients_a_profile() {
    let profiled = Profiled::start(&work());
    let mut newer = profiled.client("/mcp/p/work");
    let mut older = profiled.client("/mcp/p/work/");
    older.open_session(json!({})).await;
    let list = newer.modern(&modern(1, "tools/list", json!({}))).await.json();
    let listed = names(&list);
    let by_session = older.post(&[], legacy(1, "tools/list", json!({})).to_string()).await.json();
    assert_eq!(names(&by_session), listed);
    assert!(listed.contains(&"new_issue".to_owned()), "{listed:?}");
    assert!(!listed.iter().any(|name| name == "mcp__github__echo"), "{listed:?}");
    let of_linear = listed.iter().filter(|name| name.starts_with("mcp__linear__"));
    assert!(of_linear.clone().count() > 0);
    assert!(of_linear.clone().all(|name| name.starts_with("mcp__linear__test_simple")));
    for name in ["new_issue", "mcp__github__echo"] {
        let by_newer = newer.modern(&modern(2, "tools/call", echo(name))).await.json();
        let by_older = older.post(&[], legacy(2, "tools/call", echo(name)).to_string()).await;
        for answer in [by_newer, by_older.json()] {
            match name {
                "new_issue" => assert_eq!(answer["result"]["content"][0]["text"], "hello"),
                _ => assert_eq!(answer["result"]["isError"], true, "{answer}"),
            }
        }
    }
    let words = ["connect", "--profile", "work"];
    let done = profiled.place.feed(&words, &[modern(7, "tools/call", echo("new_issue"))]);
    assert_eq!(done.succeeded().lines()[0]["result"]["content"][0]["text"], "hello");
    let done = profiled.place.run(["connect", "--profile", "wrok"]);
    done.failed(1, &["no usable profile `wrok`", "did you mean `work`?"]);
    profiled.place.run(["connect", "--profile", "work", "--server", "github"]).failed(2, &[]);
    for path in ["/mcp/p/wrok", "/mcp/p"] {
        let reply = profiled.client(path).modern(&modern(1, "tools/list", json!({}))).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{reply:?}");
    }
    let reply = profiled.client("/mcp/p/wrok").modern(&modern(1, "tools/list", json!({}))).await;
    let told = String::from_utf8_lossy(&reply.body).into_owned();
    assert!(told.contains("did you mean `work`?") && told.contains("profiles list"), "{told}");
}

/// P6: the audit has the server's own name of a renamed tool and the profile's run. A gated tool
/// needs its grant under every name.
#[tokio::test(flavor = "multi_thread")]
async fn p6_the_audit_and_gates_know_renamed_tools_by_their_own_names() {
    let profiles = json!({ "sly": { "servers": ["github"], "overrides": {
        "github.add": { "name": "read_only" },
        "github.echo": { "name": "add" },
    } } });
    let profiled = Profiled::start(&profiles);
    let mut client = profiled.client("/mcp/p/sly");
    let asked = call("read_only", json!({ "a": 1, "b": 2 }));
    let answer = client.modern(&modern(1, "tools/call", asked)).await.json();
    // The tool has an output schema, so its error is no structured content.
    let error = &answer["result"]["_meta"]["narthex/error"];
    assert_eq!(error["kind"], "permission_required", "{answer}");
    client.modern(&modern(2, "tools/call", echo("add"))).await;
    let run = profiled.shown("sly")["run_id"].clone();
    let listed = profiled.place.run(["audit", "list", "--json"]).succeeded().json();
    let calls = listed["data"]["items"].as_array().unwrap().iter();
    let calls: Vec<_> = calls.filter(|event| event["details"]["method"] == "tools/call").collect();
    let told = |name: &str| {
        let found = calls.iter().find(|call| call["resource"]["id"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {listed}"))
    };
    assert_eq!(calls.len(), 2, "{listed}");
    for (name, is_ok) in [("add", false), ("echo", true)] {
        let call = told(name);
        assert_eq!(call["outcome"] == "ok", is_ok, "{call}");
        assert_eq!(call["run"], run, "{call}");
    }
}

/// P5, P7: a changed file changes open sessions. A faulty profile is shown with its field and
/// remedy, and stays in use as it was.
#[tokio::test(flavor = "multi_thread")]
async fn p7_a_changed_file_changes_open_sessions_of_a_profile() {
    let profiled = Profiled::start(&work());
    let mut client = profiled.client("/mcp/p/work");
    client.open_session(json!({})).await;
    let mut stream = client.listen().await;
    write(&profiled.place, &json!({ "work": { "tools": ["linear.echo"] } }));
    profiled.place.run(["mcp", "reload"]).succeeded();
    loop {
        let told = stream.next().await.expect("a notification");
        if told.contains("notifications/tools/list_changed") {
            break;
        }
    }
    let list = legacy(3, "tools/list", json!({})).to_string();
    assert_eq!(names(&client.post(&[], list.clone()).await.json()), ["mcp__linear__echo"]);
    let faulty = json!({ "work": { "servers": ["githib"] }, "home": { "server": [] } });
    write(&profiled.place, &faulty);
    profiled.place.run(["mcp", "reload"]).succeeded();
    assert_eq!(names(&client.post(&[], list.clone()).await.json()), ["mcp__linear__echo"]);
    let work = profiled.shown("work");
    let fault = &work["faults"][0];
    assert_eq!(fault["path"], "mcp.profiles.work.servers[0]");
    assert!(fault["message"].as_str().unwrap().contains("did you mean `github`?"), "{work}");
    assert_eq!(work["path"], "/mcp/p/work");
    let url = format!("http://{}/mcp/p/work", profiled.address);
    assert_eq!(work["url"], url.as_str());
    let told = profiled.place.run(["profiles", "show", "work"]).succeeded().stdout;
    assert!(told.contains(&format!("HTTP   {url}\n")), "{told}");
    let home = profiled.shown("home");
    assert!(home.get("path").is_none() && !home["faults"].as_array().unwrap().is_empty());
    let table = profiled.place.run(["profiles", "list"]).succeeded().stdout;
    assert!(table.contains("mcp.profiles.work.servers[0]") && table.contains("home"), "{table}");
    write(&profiled.place, &json!({}));
    profiled.place.run(["mcp", "reload"]).succeeded();
    let reply = client.post(&[], list).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND, "{reply:?}");
    let none = profiled.place.run(["profiles", "list"]).succeeded().stdout;
    assert!(none.contains("no profiles yet"), "{none}");
    profiled
        .place
        .run(["profiles", "show", "work"])
        .failed(1, &["not_found", "no profile `work`; `narthex profiles list"]);
    profiled.daemon.signal("TERM");
}

/// P8, P9: the example of the page works. A bound client cannot leave its profile, and loses its
/// sessions with its token.
#[tokio::test(flavor = "multi_thread")]
async fn p9_the_examples_of_the_page_of_profiles_work() {
    let page = include_str!("../../../../../docs/guides/profiles.md");
    let (_, example) = page.split_once("```json\n").unwrap();
    let example: Value = serde_json::from_str(example.split_once("```").unwrap().0).unwrap();
    let mut profiles = example["mcp"]["profiles"].to_string();
    // The names of tools that the fixture has.
    for (shown, own) in [("create_issue", "echo"), ("linear.search", "linear.test_simple")] {
        assert!(profiles.contains(shown), "{profiles}");
        profiles = profiles.replace(shown, own);
    }
    let mut profiles: Value = serde_json::from_str(&profiles).unwrap();
    profiles["home"] = json!({ "servers": ["linear"] });
    let profiled = Profiled::start(&profiles);
    for shown in ["narthex profiles list", "narthex profiles show work"] {
        assert!(page.contains(&format!("$ {shown}\n")), "{shown}");
        let told = profiled.place.run(shown.split(' ').skip(1)).succeeded().stdout;
        assert!(told.contains("work"), "{told}");
    }
    let told = profiled.place.run(["profiles", "show", "work"]).succeeded().stdout;
    assert!(told.lines().any(|line| line.contains("new_issue") && line.contains("echo")), "{told}");
    let shown = "narthex clients register editor --profile work";
    assert!(page.contains(shown), "{shown}");
    let words: Vec<_> = shown.split(' ').skip(1).chain(["--json"]).collect();
    let made = profiled.place.run(words).succeeded().json()["data"].clone();
    assert_eq!((&made["profile"], &made["is_live"]), (&json!("work"), &json!(true)), "{made}");
    let token = made["token"].as_str().unwrap();
    let bound = |path: &str| Client::new(profiled.address, path, token);
    let list = modern(1, "tools/list", json!({}));
    for path in ["/mcp", "/mcp/p/work"] {
        let listed = names(&bound(path).modern(&list).await.json());
        assert!(listed.contains(&"new_issue".to_owned()), "{path}: {listed:?}");
        assert!(!listed.iter().any(|name| name == "mcp__linear__echo"), "{path}: {listed:?}");
    }
    for path in ["/mcp/p/home", "/mcp/github", "/mcp/linear", "/mcp/narthex"] {
        let reply = bound(path).modern(&list).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{path}: {reply:?}");
    }
    let files = bound("/vfs/mnt/mcp").whole("GET", &[], "").await;
    assert_eq!(files.status, StatusCode::NOT_FOUND, "{files:?}");
    let api = bound("/api/profiles").whole("GET", &[], "").await;
    assert_eq!(api.status, StatusCode::FORBIDDEN, "{api:?}");
    let mut client = bound("/mcp");
    client.open_session(json!({})).await;
    let mut stream = client.listen().await;
    profiled.place.run(["clients", "revoke", made["id"].as_str().unwrap()]).succeeded();
    while stream.next().await.is_some() {}
    let reply = client.post(&[], legacy(2, "tools/list", json!({})).to_string()).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{reply:?}");
    let refused = ["clients", "register", "other", "--profile", "nosuch"];
    profiled.place.run(refused).failed(1, &["no usable profile `nosuch`", "profiles list"]);
    // The remedy leads out of the workspace of the command.
    profiled.place.run(["workspaces", "create", "team"]).succeeded();
    let elsewhere = ["clients", "register", "other", "--profile", "work", "--workspace", "team"];
    let remedy = "clients register NAME --profile work --workspace default";
    let told = profiled.place.run(elsewhere).failed(1, &[]).stderr;
    assert!(told.contains(&profiled.place.printed(remedy)), "{told}");
}

/// P3: the words of addresses name no servers.
#[test]
fn p3_servers_cannot_have_the_names_of_parts_of_addresses() {
    let place = Place::with(&json!({ "p": fixture_entry(), "fixture": fixture_entry() }));
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let row = daemon.server("p");
    assert!(row.to_string().contains("p-server"), "{row}");
}
