//! `narthex sessions`, and the ends of many runs, with a real daemon.

use serde_json::{Value, json};

use crate::support::{Daemon, Done, Place, fixture_entry};

/// A daemon with two agents without servers.
fn with_agents() -> (Place, Daemon) {
    let place = Place::with(&json!({}));
    let daemon = place.up();
    for name in ["reader", "writer"] {
        let file = format!("{name}.json");
        place.write(&file, &json!({ "name": name }).to_string());
        place.run(["agents", "apply", "-f", &file]).succeeded();
    }
    (place, daemon)
}

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Begins a run; gives its id and its session's.
fn begin(place: &Place, words: &[&str]) -> (String, String) {
    let begun = data(place.run([&["runs", "create", "--json"], words].concat()));
    (text(&begun["run_id"]), text(&begun["session_id"]))
}

fn living(place: &Place) -> Vec<String> {
    let runs = data(place.run(["runs", "list", "--status", "running", "--json"]));
    let runs = runs["items"].as_array().unwrap().iter();
    runs.filter(|run| run["is_local"] != true).map(|run| text(&run["run_id"])).collect()
}

/// Sessions are listed, shown with their runs, and ended with them, from the command line.
#[test]
fn sessions_are_listed_shown_and_ended() {
    let (place, _daemon) = with_agents();
    assert_eq!(place.run(["sessions", "list"]).succeeded().stdout, "There are no sessions yet.\n");
    let (first, session) = begin(&place, &["--agent", "reader"]);
    let (other, _) = begin(&place, &["--agent", "writer"]);
    place.run(["runs", "end", &first]).succeeded();
    let again = json!({ "type": "resume_session", "session_id": session });
    place.write("again.json", &again.to_string());
    let (second, same) = begin(&place, &["again.json"]);
    assert_eq!(same, session);

    let listed = data(place.run(["sessions", "list", "--json"]));
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    let lines = place.run(["sessions", "list"]).succeeded().stdout;
    assert!(lines.trim_start().starts_with("ID ") && lines.contains(&session), "{lines}");
    let ids = place.run(["sessions", "list", "--quiet"]).succeeded().stdout;
    assert!(ids.lines().any(|id| id == session) && ids.lines().count() == 2, "{ids}");

    let runs = format!("{first}\n{second}\n");
    assert_eq!(place.run(["sessions", "show", &session, "--quiet"]).succeeded().stdout, runs);
    let of = ["runs", "list", "--session", &session, "--quiet"];
    assert_eq!(place.run(of).succeeded().stdout, runs);
    let shown = data(place.run(["sessions", "show", &session, "--json"]));
    assert_eq!((&shown["pids"], &shown["status"]), (&json!([1, 3]), &json!("running")));
    let words = place.run(["sessions", "show", &session]).succeeded().stdout;
    assert!(words.contains("is running") && words.contains("reader"), "{words}");

    let ended = place.run(["sessions", "end", &session]).succeeded().stdout;
    assert_eq!(ended, format!("the session {session} has ended, with all its runs\n"));
    assert_eq!(living(&place), [other]);
    let again = format!("the session `{session}` has ended already");
    place.run(["sessions", "end", &session]).failed(1, &["conflict", &again]);
    for verb in ["show", "end"] {
        let unknown = place.run(["sessions", verb, "ses_0a1b2c3d4e5f"]);
        unknown
            .failed(1, &["not_found", &format!("{} shows them", place.printed("sessions list"))]);
    }
}

/// O101: the API's answers about an agent's servers and about the caller, from the command line.
#[test]
fn o101_agent_previews_connections_and_the_caller_are_shown() {
    let (place, _daemon) = with_agents();
    let agent = json!({ "name": "planner", "mcpServers": { "mail": { "ref": "mail" } } });
    place.write("planner.json", &agent.to_string());
    let preview = ["agents", "preview", "--file", "planner.json"];
    let shown = data(place.run([&preview[..], &["--json"]].concat()));
    assert!(shown["mcpServers"]["mail"]["errors"][0]["message"].is_string(), "{shown}");
    assert!(place.run(preview).succeeded().stdout.contains("refers to unknown registry entry"));
    let connections = ["agents", "connections", "planner"];
    place.run(connections).failed(1, &["not_found", "planner"]);
    let mail = json!({ "id": "mail", "name": "The mail", "url": "https://mail.test/mcp",
                       "kind": "remote_oauth" });
    place.write("mail.json", &mail.to_string());
    place.run(["servers", "apply", "-f", "mail.json", "--offline"]).succeeded();
    place.run(["agents", "apply", "-f", "planner.json"]).succeeded();
    let listed = place.run(connections).succeeded().stdout;
    assert!(listed.contains("The mail") && listed.contains("no"), "{listed}");
    let none = place.run(["agents", "connections", "reader"]).succeeded().stdout;
    assert_eq!(none, "The agent reader has no server that each person signs in to.\n");

    assert_eq!(place.run(["whoami"]).succeeded().stdout, "admin (local admin, an operator)\n");
    let new = ["tokens", "create", "ci", "--role", "author", "--quiet"];
    place.write("ci.token", &place.run(new).succeeded().stdout);
    let service = place.run(["whoami", "--quiet", "--token-file", "ci.token"]).succeeded();
    assert_eq!(service.stdout, "default/ci\n");
}

/// Many runs are ended at once if the user says that they mean it: those of a session, of an agent,
/// or all; and none of another.
#[test]
fn many_runs_are_ended_at_once() {
    let (place, _daemon) = with_agents();
    let (one, session) = begin(&place, &["--agent", "reader"]);
    let (two, _) = begin(&place, &["--agent", "reader"]);
    let (three, _) = begin(&place, &["--agent", "writer"]);
    let end = |words: &[&str]| place.run([&["runs", "end"], words].concat());
    end(&[]).failed(2, &["--all"]);
    end(&["--all", "--agent", "reader"]).failed(2, &["--agent"]);
    end(&[&one, "--yes"]).failed(2, &["--yes"]);
    let asked = end(&["--agent", "reader"]).failed(2, &["no run was ended", "2 runs", "--yes"]);
    assert!(asked.stderr.contains(&one) && !asked.stderr.contains(&three), "{}", asked.stderr);
    assert_eq!(living(&place).len(), 3);

    let of_session = end(&["--session", &session, "--yes"]).succeeded();
    assert_eq!(of_session.stdout, "1 run has ended.\n");
    assert_eq!(living(&place), [two.clone(), three.clone()]);
    let of_agent = data(end(&["--agent", "reader", "--yes", "--json"]));
    assert_eq!(of_agent, json!({ "count": 1, "items": [two] }));
    assert_eq!(end(&["--all", "--yes", "--quiet"]).succeeded().stdout, format!("{three}\n"));
    assert_eq!(end(&["--all"]).succeeded().stdout, "0 runs have ended.\n");
    assert!(living(&place).is_empty());
    end(&["--session", "x", "--yes"]).failed(1, &["invalid", "ses_0a1b2c3d4e5f"]);
}

/// A workspace with active runs is deleted by force alone, which ends them first.
#[test]
fn force_ends_the_runs_of_a_workspace() {
    let (place, _daemon) = with_agents();
    place.run(["workspaces", "create", "team"]).succeeded();
    let (kept, _) = begin(&place, &["--agent", "reader"]);
    place.write("own.json", &json!({ "servers": { "mine": fixture_entry() } }).to_string());
    let begun = data(place.run(["runs", "create", "own.json", "--workspace", "team", "--json"]));
    place.write("run.token", &text(&begun["token"]));
    let with_token = || place.run(["agents", "list", "--token-file", "run.token"]);
    let remedy = ["conflict", "1 active run; ", "`--force`, which ends its runs"];
    place.run(["workspaces", "delete", "team"]).failed(1, &remedy);
    with_token().failed(1, &["denied"]);
    place.run(["workspaces", "delete", "team", "--force"]).succeeded();
    assert_eq!(place.run(["workspaces", "list", "--quiet"]).succeeded().stdout, "default\n");
    with_token().failed(1, &["unauthenticated"]);
    assert_eq!(living(&place), [kept]);
    // The workspace `default` keeps its runs, too.
    place.run(["workspaces", "delete", "default", "--force"]).failed(1, &["conflict", "default"]);
    assert_eq!(living(&place).len(), 1);
}

/// A request for a run is answered with all faults, each with its place and its remedy.
#[test]
fn all_faults_of_a_run_request_are_printed() {
    let (place, _daemon) = with_agents();
    let agent = json!({ "name": "picky", "params_schema": {
        "topic": { "type": "string", "required": true },
        "depth": { "type": "integer", "required": true } } });
    place.write("picky.json", &agent.to_string());
    place.run(["agents", "apply", "-f", "picky.json"]).succeeded();
    let refused = place.run(["runs", "create", "--agent", "picky"]).failed(1, &["2 faults"]);
    let lines: Vec<&str> = refused.stderr.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{}", refused.stderr);
    for (line, field) in lines.iter().zip(["depth", "topic"]) {
        assert!(line.contains(field) && line.contains("; "), "{line}");
    }
    let json = place.run(["runs", "create", "--agent", "picky", "--json"]).json();
    assert_eq!(json["error"]["details"]["errors"].as_array().unwrap().len(), 2, "{json}");
    let one = ["standard input", "one JSON object", "agent_name"];
    for (input, what) in [
        ("", "is empty"),
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ("\"x\"", "is not a JSON object"),
    ] {
        let refused = place.pipe(&["runs", "create", "-", "--agent", "reader"], input);
        refused.failed(1, &[&one[..], &[what]].concat());
    }
    place.pipe(&["runs", "create", "-"], "{}").failed(2, &["standard input is empty"]);
    assert!(living(&place).is_empty());
}

/// R-M23, R-E39: a session is suspended and has a further run, from the command line, also after a
/// restart of the daemon.
#[test]
fn r_m23_sessions_are_suspended_and_resumed() {
    let (place, daemon) = with_agents();
    let (first, session) = begin(&place, &["--agent", "reader"]);
    let told = place.run(["sessions", "suspend", &session]).succeeded().stdout;
    assert!(told.contains("is suspended") && told.contains("sessions resume"), "{told}");
    assert!(living(&place).is_empty());
    place.run(["sessions", "suspend", &session]).failed(1, &["conflict", "suspended already"]);
    drop(daemon);
    let _daemon = place.up();
    let words = place.run(["sessions", "show", &session]).succeeded().stdout;
    assert!(words.contains("was suspended at"), "{words}");
    let listed = data(place.run(["sessions", "list", "--json"]));
    assert_eq!(listed["items"][0]["status"], "suspended", "{listed}");
    let resume = ["sessions", "resume", &session, "--prompt", "Go on.", "--expires-in", "10m"];
    let begun = data(place.run([&resume[..], &["--json"]].concat()));
    assert_eq!((&begun["pid"], &begun["former_pids"]), (&json!(2), &json!([1])));
    assert_ne!(text(&begun["run_id"]), first);
    place.run(resume).failed(1, &["conflict", "it has an active run"]);
    place.run(["sessions", "end", &session]).succeeded();
    for verb in ["suspend", "resume"] {
        place.run(["sessions", verb, &session]).failed(1, &["conflict", "has ended already"]);
        let unknown = place.run(["sessions", verb, "ses_0a1b2c3d4e5f"]);
        unknown
            .failed(1, &["not_found", &format!("{} shows them", place.printed("sessions list"))]);
    }
}
