//! `narthex policy` with a real daemon and a real server.

use narthex_model::WorkspaceId;
use narthex_store::Store;
use serde_json::{Value, json};

use crate::support::{Done, Place, fixture_entry};

const RULE: &str = r#"@id("no-echo")
@reason("be quiet")
forbid(principal, action, resource == Tool::"fixture/echo");
"#;

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// D13: a rule that is set at the command line refuses the next call of a run that lives, of this
/// workspace alone, over a restart too, until it is taken away.
#[test]
fn d13_a_rule_counts_for_the_next_call_of_its_workspace() {
    let place = Place::with(&json!({ "fixture": fixture_entry() }));
    let mut daemon = place.up();
    place.write("rules.cedar", RULE);
    let rules = place.path("rules.cedar").display().to_string();
    let call = || place.run(["call", "fixture", "echo", "message=hello"]);
    place.run(["workspaces", "create", "team"]).succeeded();
    place.run(["policy", "set", "-f", &rules, "--workspace", "team"]).succeeded();
    assert_eq!(call().succeeded().stdout, "hello\n");
    place.run(["policy", "show"]).succeeded();

    let set = data(place.run(["policy", "set", "--file", &rules, "--json"]));
    assert_eq!((&set["ids"], &set["revision"]), (&json!(["no-echo"]), &json!(1)));
    call().failed(1, &["permission_required", "no-echo", "be quiet"]);
    assert_eq!(place.run(["policy", "show"]).succeeded().stdout, RULE);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let _daemon = place.up();
    call().failed(1, &["permission_required", "no-echo"]);

    let check = |more: &[&str]| place.run([&["policy", "check"][..], more].concat());
    let said = check(&["--server", "fixture", "--tool", "echo"]).succeeded().stdout;
    assert!(said.contains("forbidden by the rule no-echo: be quiet"), "{said}");
    let asked = ["--server", "fixture", "--tool", "add", "--user", "prn_0000000000000000"];
    let said = data(check(&[&asked[..], &["--json"]].concat()));
    assert_eq!((&said["decision"], &said["matched"]), (&json!("allowed"), &json!([])));

    place.run(["policy", "clear"]).succeeded();
    assert_eq!(call().succeeded().stdout, "hello\n");
    let shown = data(place.run(["policy", "show", "--json"]));
    assert_eq!((&shown["rules"], &shown["revision"]), (&json!(""), &json!(2)));
}

/// D13: rules of a file are asked about a call and are stored nowhere; arguments are compared as
/// they were written.
#[test]
fn d13_policy_check_evaluates_rules_of_a_file_without_storing() {
    let place = Place::with(&json!({ "fixture": fixture_entry() }));
    let _daemon = place.up();
    let rule = r#"@id("large") @approval("demo.large") forbid(principal == Agent::"writer", action,
        resource) when { context.arguments has n && context.arguments.n > 10 };"#;
    place.write("rules.cedar", rule);
    let rules = place.path("rules.cedar").display().to_string();
    let check = |agent: &str, arguments: &str| {
        let asked = ["policy", "check", "--server", "s", "--tool", "t", "--file", &rules];
        let more = ["--agent", agent, "--arguments", arguments, "--json"];
        data(place.run([&asked[..], &more[..]].concat()))
    };
    let said = check("writer", r#"{"n":11}"#);
    assert_eq!(
        (&said["decision"], &said["scopes"]),
        (&json!("approval_required"), &json!(["demo.large"]))
    );
    assert_eq!(check("writer", r#"{"n":3}"#)["decision"], "allowed");
    assert_eq!(check("reader", r#"{"n":11}"#)["decision"], "allowed");
    let other = check("writer", r#"{"n":0.5}"#);
    assert_eq!(other["failed"], json!(["large"]), "it cannot be compared");
    assert_eq!(data(place.run(["policy", "show", "--json"]))["rules"], "");
    // Every fact that rules look at can be given.
    let rule = r#"@id("all") forbid(principal, action, resource == Prompt::"s/p") when {
        principal.is_child && principal.agent_type == "scheduled" && context.era == "legacy"
        && context.endpoint == "transparent" && resource.server.alias == "a"
        && context.method == "completion/complete" && context.annotations.idempotentHint
        && context.time.hour == 3 };"#;
    place.write("all.cedar", rule);
    let all = place.path("all.cedar").display().to_string();
    let words = [
        "policy check --json --server s --prompt p --child --agent-type scheduled --era legacy",
        "--endpoint transparent --alias a --method completion/complete --at 2027-01-31T03:04:05Z",
        r#"--annotations {"idempotentHint":true} --file"#,
    ]
    .join(" ");
    let words: Vec<_> = words.split(' ').chain([all.as_str()]).collect();
    let said = data(place.run(&words));
    assert_eq!((&said["rule"], &said["failed"]), (&json!("all"), &json!([])), "{said}");
    let resource = ["policy", "check", "--server", "s", "--resource", "x://y", "--file", &all];
    assert!(place.run(resource).succeeded().stdout.contains("no rule"));
    let two = ["policy", "check", "--server", "s", "--resource", "x://y", "--tool", "t"];
    place.run(two).failed(2, &["--tool"]);
    place.run(["policy", "check", "--server", "s"]).failed(2, &["--method"]);
    let unknown = ["policy", "check", "--server", "s", "--tool", "t", "--user", "eve"];
    let said = place.run(unknown).failed(1, &["--user: there is no member `eve` of the workspace"]);
    assert!(!said.stderr.contains("stored"), "{said:?}");
    let unread = ["policy", "check", "--server", "s", "--tool", "t", "--at", "now"];
    place
        .run(unread)
        .failed(1, &["invalid: --at: `now` is not a time; write one such as 2027-01-31T12:00:00Z"]);
    let wrong = ["policy", "check", "--server", "s", "--tool", "t", "--arguments", "[1]"];
    place.run(wrong).failed(2, &["not a JSON object"]);
}

/// D13: a file is checked without a daemon: all faults are reported, with line, rule and remedy.
#[test]
fn d13_a_file_is_checked_without_a_daemon() {
    let place = Place::new();
    place.write("rules.cedar", RULE);
    let rules = place.path("rules.cedar").display().to_string();
    let good = data(place.run(["policy", "check", "--file", &rules, "--json"]));
    assert_eq!(good["ids"], json!(["no-echo"]));
    let text = place.pipe(&["policy", "check", "-f", "-"], RULE).succeeded().stdout;
    assert!(text.contains("1 rule"), "{text}");
    let wrong = "permit(principal, action, resource);\n\
                 @id(\"typo\") forbid(principal, action, resource)\n\
                 when { resource.nam == \"x\" };\n";
    place.write("rules.cedar", wrong);
    let both = ["line 1", "rule-1", "line 2", "typo", "`nam`", "`name`"];
    place.run(["policy", "check", "--file", &rules]).failed(1, &both);
    place.run(["policy", "check"]).failed(2, &["--server and --tool"]);
    let schema = place.run(["policy", "schema"]).succeeded().stdout;
    assert!(schema.contains("action call appliesTo"), "{schema}");
    assert!(schema.lines().count() > 10, "as it is written: {schema}");
    place.run(["policy", "set", "--file", &rules]).failed(1, &["daemon"]);
}

/// D13: a daemon whose store has rules that it cannot read starts, refuses the calls of their
/// workspace, and names the commands that mend it.
#[tokio::test]
async fn d13_a_daemon_with_unreadable_rules_starts_and_refuses_calls() {
    let place = Place::with(&json!({ "fixture": fixture_entry() }));
    let mut daemon = place.up();
    let call = || place.run(["call", "fixture", "echo", "message=hello"]);
    call().succeeded();
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let store = Store::open(&place.path("data/store.db")).await.unwrap();
    let text = "forbid(principal, action, resource == Tool::\"narthex/start_agent\");\n";
    let id = WorkspaceId::default();
    assert!(store.rules().write(&id, None, text, "earlier").await.unwrap());
    store.close().await;

    let log = fs_err::File::create(place.path("log")).unwrap();
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.stderr(log.into_file());
    });
    daemon.event("ready");
    let log = fs_err::read_to_string(place.path("log")).unwrap();
    for part in ["ERROR", "workspace default cannot be read", "spawn_session"] {
        assert!(log.contains(part), "no {part}: {log}");
    }
    for command in ["policy show", "policy set --file FILE"] {
        assert!(log.contains(&place.printed(command)), "no {command}: {log}");
    }
    call().failed(1, &["permission_required", "unreadable"]);
    let shown = place.run(["policy", "show"]).succeeded();
    assert_eq!(shown.stdout, text);
    for part in ["cannot be read", "line 1", "spawn_session"] {
        assert!(shown.stderr.contains(part), "no {part}: {shown:?}");
    }
    for command in ["policy check --file FILE", "policy set --file FILE"] {
        assert!(shown.stderr.contains(&place.printed(command)), "no {command}: {shown:?}");
    }
    place.write("rules.cedar", RULE);
    let rules = place.path("rules.cedar").display().to_string();
    place.run(["policy", "set", "--file", &rules]).succeeded();
    call().failed(1, &["permission_required", "no-echo"]);
    assert_eq!(place.run(["policy", "show"]).succeeded().stderr, "");
}
