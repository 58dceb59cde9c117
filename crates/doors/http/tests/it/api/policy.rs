//! Tests of the rules of workspaces over REST: their authors, their refusals, and their effect.

use http::StatusCode;
use narthex_model::{Role, WorkspaceId};
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{tenants::Tenants, world::Api};
use crate::world::{Answer, whole};

const POLICY: &str = "/api/workspaces/default/policy";
const RULE: &str = r#"@id("no-echo") forbid(principal, action, resource == Tool::"one/echo");"#;

async fn daemon(place: &TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let server = json!({ "one": { "transport": "http", "url": "URL" } });
    Api::with_all(&server, store, &place.path().join("master.key")).await
}

fn document(rules: &str) -> String {
    json!({ "rules": rules }).to_string()
}

impl Api {
    async fn put_rules(&self, rules: &str) -> Answer {
        self.send("PUT", POLICY, document(rules)).await
    }

    async fn put_if(&self, header: &'static str, value: &str) -> Answer {
        let asked = self.ask("PUT", POLICY).header("content-type", "application/json");
        asked.header(header, value).body(whole(document(RULE))).send().await
    }

    /// The rule that refuses a run's call of `echo`.
    async fn refused_by(&self, token: &str) -> Value {
        let params = json!({ "name": "mcp__one__echo", "arguments": { "message": "x" } });
        let request = self.world.modern("/mcp", "tools/call", params);
        let answer = request.header("authorization", &format!("Bearer {token}")).send().await;
        answer.json()["result"]["structuredContent"]["error"]["details"]["rule"].clone()
    }
}

/// D13: rules are shown as they were written, with a tag. A caller that has read an older state
/// cannot change them. They apply to the next call of an active run, and stop when they are
/// cleared.
#[tokio::test]
async fn d13_rules_written_over_rest_apply_at_once() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let none = api.ask("GET", POLICY).send().await;
    assert_eq!(
        (none.json()["rules"].clone(), none.json()["revision"].clone()),
        (json!(""), json!(0))
    );
    assert!(none.headers.get("etag").is_none());
    let asked = json!({ "tools": ["one"] }).to_string();
    let run = api.send("POST", "/api/workspaces/default/runs", asked).await.succeeded();
    let token = run["token"].as_str().unwrap();
    assert_eq!(api.refused_by(token).await, Value::Null);

    let set = api.put_if("if-none-match", "*").await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
    assert_eq!(set.json()["ids"], json!(["no-echo"]));
    let tag = set.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(api.refused_by(token).await, "no-echo");
    api.put_if("if-none-match", "*").await.problem(StatusCode::PRECONDITION_FAILED, "conflict");
    api.put_if("if-match", "\"other\"").await.problem(StatusCode::PRECONDITION_FAILED, "conflict");
    assert_eq!(api.put_if("if-match", &tag).await.status, StatusCode::OK);
    assert_eq!(api.put_rules("").await.json()["revision"], 2);
    assert_eq!(api.refused_by(token).await, Value::Null);
    api.put_if("if-match", &tag).await.problem(StatusCode::PRECONDITION_FAILED, "conflict");

    api.put_rules(RULE).await.succeeded();
    drop(api);
    let api = daemon(&place).await;
    assert_eq!(api.get(POLICY).await["rules"], RULE);
    assert_eq!(api.refused_by(token).await, "no-echo", "they outlive a restart");
    assert_eq!(api.ask("DELETE", POLICY).send().await.status, StatusCode::NO_CONTENT);
    assert_eq!(api.refused_by(token).await, Value::Null);
    let audit = api.get("/api/workspaces/default/audit?limit=100").await.to_string();
    assert!(audit.contains("workspace.rules.updated"), "{audit}");
}

/// D13: another daemon on the same store sees new and removed rules.
#[tokio::test]
async fn d13_other_daemons_see_new_and_removed_rules() {
    let place = tempfile::tempdir().unwrap();
    let (api, other) = (daemon(&place).await, daemon(&place).await);
    let asked = json!({ "tools": ["one"] }).to_string();
    let run = api.send("POST", "/api/workspaces/default/runs", asked).await.succeeded();
    let token = run["token"].as_str().unwrap();
    assert_eq!(other.refused_by(token).await, Value::Null);
    let deadline = tokio::time::Instant::now() + super::world::SOON;
    let until = async |wanted: Value| {
        while other.refused_by(token).await != wanted {
            assert!(tokio::time::Instant::now() < deadline, "it was never seen");
            tokio::task::yield_now().await;
        }
    };
    api.put_rules(RULE).await.succeeded();
    until(json!("no-echo")).await;
    assert_eq!(api.ask("DELETE", POLICY).send().await.status, StatusCode::NO_CONTENT);
    until(Value::Null).await;
}

/// D13: if stored rules do not compile, for example those of an earlier version, all calls of their
/// workspace are refused until the rules are replaced. This holds after a start and on other
/// daemons. Other workspaces are not affected, and the shown rules and checks give the reason.
#[tokio::test]
async fn d13_stored_rules_that_do_not_compile_fail_closed() {
    const BROKEN: [&str; 2] = [
        "forbid(principal, action, resource == Tool::\"narthex/start_agent\");",
        "forbid everything",
    ];
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    api.send("POST", "/api/workspaces", json!({ "id": "team" }).to_string()).await.succeeded();
    let write = async |workspace: &str, text: &str| {
        let id = WorkspaceId::new(workspace).unwrap();
        let head = store.rules().find(&id).await.unwrap().map(|row| row.head);
        assert!(store.rules().write(&id, head, text, "earlier").await.unwrap());
    };
    let asked = json!({ "tools": ["one"] }).to_string();
    let run = api.send("POST", "/api/workspaces/default/runs", asked).await.succeeded();
    let token = run["token"].as_str().unwrap();
    let deadline = tokio::time::Instant::now() + super::world::SOON;
    for text in BROKEN {
        write("default", text).await;
        while api.refused_by(token).await != "unreadable" {
            assert!(tokio::time::Instant::now() < deadline, "it was never seen: {text}");
            tokio::task::yield_now().await;
        }
        api.put_rules("").await.succeeded();
        assert_eq!(api.refused_by(token).await, Value::Null);
    }
    write("team", BROKEN[0]).await;
    drop(api);
    let api = daemon(&place).await;
    assert_eq!(api.refused_by(token).await, Value::Null, "it is another workspace");
    let team = "/api/workspaces/team/policy";
    let shown = api.get(team).await;
    assert_eq!((&shown["rules"], &shown["ids"]), (&json!(BROKEN[0]), &json!([])));
    assert_eq!(shown["faults"][0]["line"], 1);
    assert!(shown["faults"][0]["remedy"].as_str().unwrap().contains("spawn_session"), "{shown}");
    let call = json!({ "server": "one", "tool": "echo" }).to_string();
    let check = async || api.send("POST", &format!("{team}/check"), call.clone()).await.succeeded();
    let said = check().await;
    assert_eq!((&said["decision"], &said["rule"]), (&json!("forbidden"), &json!("unreadable")));
    assert!(!said["reason"].as_str().unwrap().contains("narthex "), "models read it: {said}");
    api.send("PUT", team, document(RULE)).await.succeeded();
    assert_eq!(check().await["rule"], "no-echo");
    assert_eq!(api.get(team).await["faults"], json!([]));

    write("default", BROKEN[0]).await;
    drop(api);
    let api = daemon(&place).await;
    assert_eq!(api.refused_by(token).await, "unreadable", "from the first call on");
    assert_eq!(api.ask("DELETE", POLICY).send().await.status, StatusCode::NO_CONTENT);
    assert_eq!(api.refused_by(token).await, Value::Null);
}

/// D13, D9: faults of rules are reported at once, with line, rule and remedy, and nothing is
/// stored.
#[tokio::test]
async fn d13_a_document_with_a_wrong_rule_is_refused_as_a_whole() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    api.put_rules(RULE).await.succeeded();
    let wrong = "permit(principal, action, resource);\n\
                 @id(\"typo\") forbid(principal, action, resource) when { resource.nam == \"\" };";
    let refused = api.put_rules(wrong).await;
    refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    let errors = refused.json()["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 2, "{errors}");
    assert!(errors[0]["message"].as_str().unwrap().contains("line 1, rule `rule-1`"), "{errors}");
    assert!(errors[1]["message"].as_str().unwrap().contains("rule `typo`"), "{errors}");
    assert!(errors[1]["remedy"].as_str().unwrap().contains("name"), "{errors}");
    for body in ["{}", r#"{"rules": 1}"#, r#"{"rules": "", "more": 1}"#] {
        let refused = api.send("PUT", POLICY, body.to_owned()).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
    assert_eq!(api.get(POLICY).await["rules"], RULE);
}

/// D13: a check warns about names that nothing has, as far as that is known, and names what was
/// probably meant.
#[tokio::test]
async fn d13_a_check_warns_of_unknown_agents_servers_and_tools() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let agent = json!({ "mcpServers": {} }).to_string();
    api.send("PUT", "/api/workspaces/default/agents/writer", agent).await.succeeded();
    let warnings = async |asked: Value| {
        let path = format!("{POLICY}/check");
        api.send("POST", &path, asked.to_string()).await.succeeded()["warnings"].clone()
    };
    for known in [
        json!({ "agent": "writer", "server": "one", "tool": "echo" }),
        json!({ "server": "narthex", "tool": "emit_status" }),
        json!({ "server": "one", "resource": "test://any" }),
    ] {
        assert_eq!(warnings(known.clone()).await, json!([]), "{known}");
    }
    let told = warnings(json!({ "agent": "writter", "server": "one", "tool": "ecko" })).await;
    let agent = "there is no agent `writter`; did you mean `writer`?";
    let tool = "the server `one` has listed no tool `ecko`; did you mean `echo`?";
    assert_eq!(told, json!([agent, tool]));
    let told = warnings(json!({ "server": "onee", "tool": "echo" })).await;
    let server = "there is no server `onee`, neither in the catalog nor live; did you mean `one`?";
    assert_eq!(told, json!([server]));
}

/// D13: rules are stored with a warning for each name that nothing has, and for what was probably
/// meant.
#[tokio::test]
async fn d13_rules_are_stored_with_warnings_of_unknown_names() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let agent = json!({ "mcpServers": {} }).to_string();
    api.send("PUT", "/api/workspaces/default/agents/writer", agent).await.succeeded();
    let rules = r#"
        @id("agent") forbid(principal == Agent::"writter", action, resource);
        @id("tool") forbid(principal, action, resource == Tool::"one/ecko");
        @id("server") forbid(principal, action, resource in Server::"onee");
        @id("alias") forbid(principal, action, resource) when { resource.name like "start_*" };
        @id("name") forbid(principal, action, resource) when { resource.name == "ecko" };
        @id("bare") forbid(principal, action, resource == Tool::"echo");
        @id("nowhere") forbid(principal, action, resource == Tool::"no-such");
        @id("fine") forbid(principal == Agent::"writer", action, resource == Tool::"one/echo")
            when { resource.name like "ec*" };"#;
    let stored = api.put_rules(rules).await.succeeded();
    let expected = [
        "rule `agent`: there is no agent `writter`; did you mean `writer`?",
        "rule `tool`: the server `one` has listed no tool `ecko`; did you mean `echo`?",
        "rule `server`: there is no server `onee`, neither in the catalog nor live; did you mean \
         `one`?",
        "rule `alias`: `start_*` matches no call: `start_agent` is another name of \
         `spawn_session`, and rules use only `spawn_session`",
        "rule `name`: no server has listed a name like `ecko`; did you mean `echo`?",
        "rule `bare`: `Tool::\"echo\"` has no server, so it matches no call; did you mean \
         `Tool::\"one/echo\"`?",
        "rule `nowhere`: `Tool::\"no-such\"` has no server, so it matches no call; write \
         `Tool::\"SERVER/no-such\"`",
    ];
    assert_eq!(stored["warnings"], json!(expected));
    assert_eq!(stored["ids"].as_array().unwrap().len(), 8);
    let read = api.get(POLICY).await;
    assert_eq!(read["rules"], rules);
    api.send("PUT", POLICY, stored.to_string()).await.succeeded();
}

/// D13: a check answers how rules decide, for the stored rules or for others. It makes no call.
#[tokio::test]
async fn d13_a_check_answers_with_the_decision_of_the_rules() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    api.put_rules(RULE).await.succeeded();
    let check = async |question: Value| {
        api.send("POST", &format!("{POLICY}/check"), question.to_string()).await
    };
    let before = api.calls();
    let said = check(json!({ "server": "one", "tool": "echo" })).await.succeeded();
    assert_eq!((&said["decision"], &said["rule"]), (&json!("forbidden"), &json!("no-echo")));
    let said = check(json!({ "server": "other", "alias": "one", "tool": "echo" })).await;
    assert_eq!(said.succeeded()["decision"], "allowed", "it is another server");
    let rules = r#"@approval("a.b") forbid(principal, action, resource)
        unless { context.annotations.readOnlyHint };"#;
    let question = json!({ "server": "one", "tool": "echo", "rules": rules });
    let said = check(question.clone()).await.succeeded();
    assert_eq!(
        (&said["decision"], &said["scopes"]),
        (&json!("approval_required"), &json!(["a.b"]))
    );
    let mut hinted = question;
    hinted["annotations"] = json!({ "readOnlyHint": true });
    assert_eq!(check(hinted).await.succeeded()["decision"], "allowed");
    for wrong in [
        json!({ "server": "one" }),
        json!({ "server": "one", "tool": "a", "at": "noon" }),
        json!({ "server": "one", "tool": "a", "endpoint": "other" }),
        json!({ "server": "one", "tool": "a", "is_child": "yes" }),
        json!({ "server": "one", "method": "" }),
        json!({ "tool": "echo" }),
        json!({ "server": "one", "tool": "a", "prompt": "b" }),
        json!({ "server": "one", "tool": "a", "arguments": [] }),
        json!({ "server": "one", "tool": "a", "user": "eve" }),
        json!({ "server": "one", "tool": "a", "rules": "forbid" }),
    ] {
        let refused = check(wrong).await;
        let told = refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert!(!told.contains("stored"), "{told}");
    }
    assert_eq!((api.calls(), api.get(POLICY).await["rules"].clone()), (before, json!(RULE)));
}

/// D13: a check can set every fact that rules can read.
#[tokio::test]
async fn d13_a_check_can_set_every_fact_that_rules_see() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    for (condition, more, otherwise) in [
        (
            "context.time.weekday > 5 || context.time.hour < 8",
            json!({ "at": "2027-01-30T12:00:00Z" }),
            json!({ "at": "2027-01-29T12:00:00Z" }),
        ),
        ("principal.is_child", json!({ "is_child": true }), json!({})),
        (
            r#"context.endpoint == "transparent""#,
            json!({ "endpoint": "transparent" }),
            json!({ "endpoint": "aggregated" }),
        ),
        (r#"context.era == "legacy""#, json!({ "era": "legacy" }), json!({ "era": "modern" })),
        (
            r#"context.method == "completion/complete""#,
            json!({ "method": "completion/complete" }),
            json!({}),
        ),
        (
            r#"resource == Method::"one/vendor/thing""#,
            json!({ "method": "vendor/thing", "prompt": null }),
            json!({ "method": "vendor/other", "prompt": null }),
        ),
        // Rules do not decide on lists.
        ("true", json!({}), json!({ "method": "tools/list", "prompt": null })),
    ] {
        let rules = format!("forbid(principal, action, resource) when {{ {condition} }};");
        let said = async |more: Value| {
            let mut asked = json!({ "server": "one", "prompt": "p", "rules": rules });
            for (name, value) in more.as_object().unwrap() {
                match value {
                    Value::Null => drop(asked.as_object_mut().unwrap().remove(name)),
                    value => asked[name] = value.clone(),
                }
            }
            let said = api.send("POST", &format!("{POLICY}/check"), asked.to_string()).await;
            said.succeeded()["decision"].clone()
        };
        assert_eq!(said(more).await, "forbidden", "{condition}");
        assert_eq!(said(otherwise).await, "allowed", "{condition}");
    }
}

/// S18: the rules of one workspace can be neither seen nor changed from another.
#[tokio::test]
async fn s18_rules_of_a_workspace_are_hidden_from_other_workspaces() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let (mine, theirs) = ("/api/workspaces/team/policy", "/api/workspaces/rival/policy");
    let admin = tenants.token("team", Role::Admin).to_owned();
    let set = tenants.ask(&admin, "PUT", mine, &document(RULE)).send().await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
    let set = tenants.ask(&admin, "PUT", theirs, &document(RULE)).send().await;
    set.problem(StatusCode::NOT_FOUND, "not_found");
    let runner = tenants.token("team", Role::Runner).to_owned();
    let read = tenants.ask(&runner, "GET", mine, "").send().await;
    read.problem(StatusCode::FORBIDDEN, "denied");
    let rival = tenants.token("rival", Role::Admin).to_owned();
    let read = tenants.ask(&rival, "GET", theirs, "").send().await;
    assert_eq!(read.json()["rules"], "");
}
