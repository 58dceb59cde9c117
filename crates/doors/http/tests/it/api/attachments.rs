//! Tests of the single attachments of an agent: stored, shown and refused.

use http::StatusCode;
use narthex_audit::kind;
use serde_json::{Value, json};

use super::catalog::{Place, faults, of};

const LINEAR: &str = "/api/workspaces/default/mcp-servers/linear";
const AGENT: &str = "/api/workspaces/default/agents/planner";
const ATTACHMENTS: &str = "/api/workspaces/default/agents/planner/mcp-attachments";
const CANARY: &str = "canary-7e21";

fn at(alias: &str) -> String {
    format!("{ATTACHMENTS}/{alias}")
}

/// A place with the server of document 000, its secret, and an agent without attachments.
async fn filled() -> Place {
    let place = Place::new().await;
    let secret = "/api/workspaces/default/secrets/LINEAR_API_KEY";
    place.put(secret, &json!({ "value": CANARY })).await.succeeded();
    let linear = json!({ "name": "Linear", "command": "npx", "manifest": {
        "env": {
            "LINEAR_API_KEY": { "kind": "secret", "label": "API key", "required": true },
            "LINEAR_WORKSPACE_ID": { "kind": "value", "label": "Workspace", "required": false,
                                     "pattern": "^[a-z0-9-]+$" },
            "REGION": { "kind": "value", "required": false, "enum": ["eu", "us"] },
            "OTHER_KEY": { "kind": "secret", "required": false },
        },
        "tool_scopes": { "create_issue": "linear.write" } } });
    place.put(LINEAR, &linear).await.succeeded();
    place.put(AGENT, &json!({ "system_prompt": "You plan." })).await.succeeded();
    place
}

/// The body of the attach form, with these further config values.
fn linear(further: &Value) -> Value {
    let mut env = json!({ "LINEAR_API_KEY": "${LINEAR_API_KEY}" });
    env.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
    json!({ "name": "linear", "env": env })
}

/// An attachment of a server that this daemon can never start is stored with a warning. The warning
/// names the member of the request, as it does when the whole agent is saved.
#[tokio::test]
async fn attaching_a_server_that_never_starts_gives_a_warning() {
    let place = filled().await;
    let server = json!({ "image": "example.test/server:1" });
    let saved = place.put("/api/workspaces/default/mcp-servers/boxed", &server).await.succeeded();
    assert_eq!(saved["warnings"].as_array().unwrap().len(), 1, "{saved}");
    for member in ["name", "ref"] {
        let made = place.put(&at("boxed"), &json!({ member: "boxed" })).await.succeeded();
        assert_eq!(made["warnings"][0]["field"], member, "{made}");
        let message = made["warnings"][0]["message"].as_str().unwrap();
        assert!(message.contains("`boxed` never starts"), "{made}");
    }
    let other = place.put(&at("linear"), &linear(&json!({}))).await.succeeded();
    assert_eq!(other["warnings"], json!([]), "another attachment is not told of it: {other}");
}

/// X-M61: the audit events of attachments have the names of changed fields, but no values.
#[tokio::test]
async fn x_m61_attachments_are_in_the_audit() {
    let place = filled().await;
    place.put(ATTACHMENTS, &linear(&json!({ "LINEAR_WORKSPACE_ID": "x1-org" }))).await.succeeded();
    let second = json!({ "REGION": "eu", "LINEAR_WORKSPACE_ID": "x1-org" });
    place.put(&at("linear"), &linear(&second)).await.succeeded();
    assert_eq!(place.delete(&at("linear")).await.status, StatusCode::NO_CONTENT);
    let page =
        place.get("/api/workspaces/default/audit?order=oldest&kind=agent.mcp.").await.to_string();
    let events: Value = serde_json::from_str(&page).unwrap();
    let events = events["items"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, [kind::AGENT_ATTACHED, kind::AGENT_ENV_UPDATED, kind::AGENT_DETACHED]);
    assert!(events[0]["fields"].to_string().contains("LINEAR_WORKSPACE_ID"), "{page}");
    assert_eq!(events[1]["fields"], json!(["REGION"]), "what changed, and no more");
    assert!(!page.contains("x1-org") && !page.contains(r#""eu""#) && !page.contains(CANARY));
}

async fn definition(place: &Place) -> Value {
    place.get(AGENT).await["definition"].take()
}

/// X-M36, X-M44, X-E18, X-E23, X-E26, X-M8: an attachment is created, shown as it was written,
/// replaced and removed. The agent's document has the same attachment.
#[tokio::test]
async fn x_e18_attachments_are_created_shown_replaced_and_removed() {
    let place = filled().await;
    assert_eq!(place.get(ATTACHMENTS).await, json!({ "items": [], "next": null }));
    let body = linear(&json!({ "LINEAR_WORKSPACE_ID": "x1-org" }));
    let made = place.put(ATTACHMENTS, &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    assert_eq!(made.headers["location"].to_str().unwrap(), at("linear"));
    let shown = json!({ "alias": "linear", "name": "linear",
        "env": { "LINEAR_API_KEY": "${LINEAR_API_KEY}", "LINEAR_WORKSPACE_ID": "x1-org" } });
    let one = place.api.ask("GET", &at("linear")).send().await;
    assert_eq!(one.succeeded(), shown);
    assert_eq!(one.headers["etag"], made.headers["etag"]);
    let config = &definition(&place).await["mcpServers"]["linear"]["config"];
    assert_eq!(config["LINEAR_API_KEY"], json!({ "$secret": "LINEAR_API_KEY" }));
    assert_eq!(config["LINEAR_WORKSPACE_ID"], "x1-org", "the literal stands in the agent");

    // A second write with the same alias replaces the attachment. These other member names mean the
    // same.
    let typed = json!({ "catalog_entry_id": "linear", "optional": true, "env_json": {
        "LINEAR_API_KEY": { "kind": "secret", "ref": "LINEAR_API_KEY" },
        "REGION": { "kind": "value", "value": "eu" } } });
    let replaced = place.put(&at("linear"), &typed).await;
    assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.text());
    let env = json!({ "LINEAR_API_KEY": "${LINEAR_API_KEY}", "REGION": "eu" });
    assert_eq!((&replaced.json()["env"], &replaced.json()["optional"]), (&env, &json!(true)));

    // A different alias makes a second attachment of the same server.
    let second = place.put(&at("home"), &linear(&json!({}))).await;
    assert_eq!(second.status, StatusCode::CREATED, "{}", second.text());
    let page = place.get(&format!("{ATTACHMENTS}?limit=1")).await;
    assert_eq!((&page["items"][0]["alias"], &page["next"]), (&json!("home"), &json!("home")));
    let rest = place.get(&format!("{ATTACHMENTS}?limit=1&after=home")).await;
    assert_eq!((&rest["items"][0]["alias"], &rest["next"]), (&json!("linear"), &Value::Null));

    assert_eq!(place.delete(&at("linear")).await.status, StatusCode::NO_CONTENT);
    for gone in ["linear", "Not-An-Alias", "other"] {
        let text = place.delete(&at(gone)).await.problem(StatusCode::NOT_FOUND, "not_found");
        assert!(text.contains(gone), "{text}");
        let answer = place.api.ask("GET", &at(gone)).send().await;
        assert_eq!(answer.problem(StatusCode::NOT_FOUND, "not_found"), text);
    }
    let left = place.get(ATTACHMENTS).await;
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1), "{left}");
}

/// X-M37, X-M38, X-M39, X-M40, X-M41, X-E21, X-E22, X-E123, X-E25, X-E28, X-E113, X-M34: all faults
/// are reported at once, with the member names of the request, and nothing is stored.
#[tokio::test]
async fn x_m41_all_faults_are_reported_by_field_and_nothing_is_stored() {
    let place = filled().await;
    let before = place.get(AGENT).await;
    let wrong = json!({ "name": "linear", "env": {
        "LINEAR_WORKSPACE_ID": "Not An Id", "REGION": "mars", "OTHER_KEY": "${ABSENT}",
        "LINEAR_API_KY": "x" } });
    let mut told = faults(&place.put(ATTACHMENTS, &wrong).await);
    told.sort();
    let wanted = [
        of("env.LINEAR_API_KEY", "missing_required_mcp_config"),
        of("env.LINEAR_API_KY", "key_undeclared"),
        of("env.LINEAR_WORKSPACE_ID", "value_invalid"),
        of("env.OTHER_KEY", "secret_not_set"),
        of("env.REGION", "value_invalid"),
    ];
    assert_eq!(told, wanted);

    let table = [
        (json!({ "name": "liner", "env": {} }), of("name", "mcp_ref_resolution_failed")),
        (json!({ "ref": "liner" }), of("ref", "mcp_ref_resolution_failed")),
        (
            json!({ "catalog_entry_id": "liner" }),
            of("catalog_entry_id", "mcp_ref_resolution_failed"),
        ),
        (
            linear(&json!({ "LINEAR_API_KEY": "lin_123" })),
            of("env.LINEAR_API_KEY", "secret_misplaced"),
        ),
        (
            linear(&json!({ "LINEAR_API_KEY": "x-${LINEAR_API_KEY}" })),
            of("env.LINEAR_API_KEY", "secret_misplaced"),
        ),
        (linear(&json!({ "REGION": "${LINEAR_API_KEY}" })), of("env.REGION", "secret_misplaced")),
        (
            json!({ "name": "linear", "env_json": {
                "LINEAR_API_KEY": { "kind": "secret", "ref": "ABSENT" } } }),
            of("env_json.LINEAR_API_KEY.ref", "secret_not_set"),
        ),
        (
            json!({ "name": "linear", "config": { "LINEAR_API_KEY": null } }),
            of("config.LINEAR_API_KEY", "missing_required_mcp_config"),
        ),
        (
            json!({ "name": "linear", "alias": "a__b",
                    "env": { "LINEAR_API_KEY": "${LINEAR_API_KEY}" } }),
            of("alias", "value_invalid"),
        ),
    ];
    for (body, fault) in table {
        assert_eq!(faults(&place.put(ATTACHMENTS, &body).await), [fault], "{body}");
    }
    let granted = json!({ "name": "linear", "tool_scopes_granted": [] });
    assert!(
        faults(&place.put(ATTACHMENTS, &granted).await)
            .contains(&of("tool_scopes_granted", "value_invalid"))
    );
    let named = place.put(&at("a__b"), &linear(&json!({}))).await;
    assert_eq!(faults(&named), [of("alias", "value_invalid")]);
    assert_eq!(place.get(AGENT).await, before);
    assert_eq!(place.get(ATTACHMENTS).await["items"], json!([]));

    // An empty value of an optional secret means that no secret is set.
    let empty = place.put(ATTACHMENTS, &linear(&json!({ "OTHER_KEY": "" }))).await;
    assert_eq!(empty.status, StatusCode::CREATED, "{}", empty.text());
}

/// X-E17: an agent's earlier fault does not prevent a change of another attachment.
#[tokio::test]
async fn a_broken_attachment_does_not_block_changes_of_another_attachment() {
    let place = filled().await;
    place.put(ATTACHMENTS, &linear(&json!({}))).await.succeeded();
    let mail = "/api/workspaces/default/mcp-servers/mail";
    place.put(mail, &json!({ "url": "https://mail.test/mcp" })).await.succeeded();
    place.put(ATTACHMENTS, &json!({ "name": "mail" })).await.succeeded();
    let forced = place.delete(&format!("{mail}?force=true")).await;
    assert_eq!(forced.status, StatusCode::NO_CONTENT, "X-E17: the reference is left broken");

    let changed = place.put(ATTACHMENTS, &linear(&json!({ "REGION": "eu" }))).await.succeeded();
    assert_eq!(changed["warnings"][0]["field"], "mcpServers.mail.ref", "{changed}");
    let refused = place.put(ATTACHMENTS, &json!({ "name": "mail" })).await;
    assert_eq!(faults(&refused), [of("name", "mcp_ref_resolution_failed")]);
    assert_eq!(place.delete(&at("linear")).await.status, StatusCode::NO_CONTENT);
    assert_eq!(place.delete(&at("mail")).await.status, StatusCode::NO_CONTENT);
}

/// An attachment cannot be removed from its agent if it alone settles a conflict of two
/// capabilities.
#[tokio::test]
async fn detaching_breaks_no_agent() {
    let place = filled().await;
    let docs = "/api/workspaces/default/mcp-servers/docs";
    place.put(docs, &json!({ "url": "https://docs.test/mcp" })).await.succeeded();
    for (name, team) in [("one", "a"), ("two", "b")] {
        let capability =
            json!({ "mcpServers": { "docs": { "ref": "docs", "config": { "team": team } } } });
        let path = format!("/api/workspaces/default/capabilities/{name}");
        place.put(&path, &capability).await.succeeded();
    }
    let agent = json!({ "capabilities": ["one", "two"], "mcpServers": {
        "docs": { "ref": "docs", "config": { "team": "c" } } } });
    place.put(AGENT, &agent).await.succeeded();
    let refused = place.delete(&at("docs")).await;
    assert_eq!(faults(&refused)[0].1, "value_conflict", "{}", refused.text());
    assert_eq!(place.get(ATTACHMENTS).await["items"][0]["alias"], "docs");
}

/// X-E18: a change of an attachment may name the version of the agent that the caller has read. An
/// agent that does not exist has no attachments.
#[tokio::test]
async fn attachments_take_the_preconditions_of_their_agent() {
    let place = filled().await;
    let old = place.api.ask("GET", AGENT).send().await.headers["etag"].clone();
    let old = old.to_str().unwrap();
    let body = linear(&json!({}));
    let made = place.put_if(("if-match", old), &at("linear"), &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let again = place.put_if(("if-match", old), &at("linear"), &body).await;
    again.problem(StatusCode::PRECONDITION_FAILED, "conflict");

    for path in [
        "agents/absent/mcp-attachments",
        "agents/absent/mcp-attachments/linear",
        "agents/absent/mcp-attachments/connection-status",
    ] {
        let path = format!("/api/workspaces/default/{path}");
        let text = place.api.ask("GET", &path).send().await;
        assert!(text.problem(StatusCode::NOT_FOUND, "not_found").contains("agent `absent`"));
    }
    let absent = "/api/workspaces/default/agents/absent/mcp-attachments";
    place.put(absent, &body).await.problem(StatusCode::NOT_FOUND, "not_found");
}

/// X-E24: a server of another workspace cannot be attached, and agents of another workspace are
/// absent.
#[tokio::test]
async fn x_e24_attachments_stay_in_their_workspace() {
    let place = filled().await;
    let agent = "/api/workspaces/team/agents/planner";
    let theirs = format!("{agent}/mcp-attachments");
    place.put(&theirs, &linear(&json!({}))).await.problem(StatusCode::NOT_FOUND, "not_found");
    place.put(agent, &json!({})).await.succeeded();
    let refused = place.put(&theirs, &linear(&json!({}))).await;
    assert_eq!(faults(&refused), [of("name", "mcp_ref_resolution_failed")]);
}

/// X-E27: the list has only servers to which a human signs in, including those of capabilities. No
/// human can sign in to a server yet.
#[tokio::test]
async fn x_e27_the_connection_status_lists_only_servers_that_a_human_signs_in_to() {
    let place = filled().await;
    let servers = "/api/workspaces/default/mcp-servers";
    for (id, kind) in [("notion", "remote_oauth"), ("drive", "remote_oauth"), ("open", "stdio")] {
        let url = format!("https://{id}.test/mcp");
        let mut entry = json!({ "display_name": format!("The {id}"), "kind": kind });
        match kind {
            "stdio" => entry["command"] = json!("true"),
            _ => entry["url"] = json!(url),
        }
        place.put(&format!("{servers}/{id}"), &entry).await.succeeded();
    }
    let capability = json!({ "mcpServers": { "files": { "ref": "drive" } } });
    place.put("/api/workspaces/default/capabilities/files", &capability).await.succeeded();
    let agent = json!({ "capabilities": ["files"], "mcpServers": {
        "a": { "ref": "notion" }, "b": { "ref": "notion" }, "open": { "ref": "open" } } });
    place.put(AGENT, &agent).await.succeeded();
    let told = place.get(&format!("{ATTACHMENTS}/connection-status")).await;
    let one = |id: &str| {
        json!({ "catalog_entry_id": id, "name": id, "display_name": format!("The {id}"),
                "connected": false })
    };
    assert_eq!(told, json!({ "items": [one("drive"), one("notion")], "next": null }));
}

const MAIL: &str = "/api/workspaces/default/mcp-servers/mail";
const FILES: &str = "/api/workspaces/default/capabilities/files";

async fn allows(place: &Place, when: &str) {
    let body = json!({ "oauth_on_orchestrators": when });
    let changed = place.patch("/api/workspaces/default", &body).await.succeeded();
    assert_eq!(changed["oauth_on_orchestrators"], when);
}

fn mail() -> Value {
    json!({ "url": "https://mail.test/mcp", "kind": "remote_oauth" })
}

/// X-M15, X-E31: a server to which a person signs in is refused on an agent that is no worker,
/// until the workspace allows it. The order in which the two are combined does not matter.
#[tokio::test]
async fn x_m15_servers_that_a_person_signs_in_to_are_refused_on_agents_that_are_no_workers() {
    let place = filled().await;
    place.put(MAIL, &mail()).await.succeeded();
    place.put(FILES, &json!({ "mcpServers": { "box": { "ref": "mail" } } })).await.succeeded();
    // The agent has one attachment of its own, and one from a capability.
    let lead = json!({ "agent_type": "orchestrator", "capabilities": ["files"],
                       "mcpServers": { "own": { "ref": "mail" } } });
    let refused = place.put(AGENT, &lead).await;
    let expected = [
        of("capabilities.files.mcpServers.box.ref", "oauth_not_allowed"),
        of("mcpServers.own.ref", "oauth_not_allowed"),
    ];
    assert_eq!(faults(&refused), expected);
    let text = refused.text();
    assert!(text.contains("oauth_on_orchestrators") && text.contains("`worker`"), "{text}");
    // A patch changes the agent into one that is no worker.
    let mut worker = lead.clone();
    worker["agent_type"] = json!("worker");
    place.put(AGENT, &worker).await.succeeded();
    let refused = place.patch(AGENT, &json!({ "agent_type": "scheduled" })).await;
    assert_eq!(faults(&refused), expected);
    // The attachment is added with the attach form.
    let bare = json!({ "agent_type": "scheduled" });
    place.put(AGENT, &bare).await.succeeded();
    assert_eq!(definition(&place).await["agent_type"], "scheduled");
    let refused = place.put(ATTACHMENTS, &json!({ "name": "mail", "alias": "own" })).await;
    assert_eq!(faults(&refused), [of("name", "oauth_not_allowed")]);
    for when in ["on_attended", "on"] {
        allows(&place, when).await;
        place.put(AGENT, &lead).await.succeeded();
    }
    assert_eq!(definition(&place).await["agent_type"], "orchestrator");
    // An earlier fault is not attributed to a later change.
    allows(&place, "off").await;
    place
        .put(MAIL, &json!({ "url": "https://new.test/mcp", "kind": "remote_oauth" }))
        .await
        .succeeded();
}

/// X-M15: a change of a server or a capability is refused if agents would then have a server that
/// they may not have. The refusal names these agents, and nothing is stored. The same holds for an
/// import.
#[tokio::test]
async fn x_m15_a_server_cannot_become_personal_while_agents_that_may_not_have_it_use_it() {
    let place = filled().await;
    let open = json!({ "url": "https://mail.test/mcp" });
    place.put(MAIL, &open).await.succeeded();
    place.put(FILES, &json!({ "mcpServers": { "box": { "ref": "mail" } } })).await.succeeded();
    let lead = json!({ "agent_type": "orchestrator", "capabilities": ["files"] });
    place.put(AGENT, &lead).await.succeeded();
    let nightly = json!({ "agent_type": "scheduled", "capabilities": ["files"],
                          "mcpServers": { "own": { "ref": "mail" } } });
    place.put("/api/workspaces/default/agents/nightly", &nightly).await.succeeded();
    place
        .put("/api/workspaces/default/agents/reader", &json!({ "capabilities": ["files"] }))
        .await
        .succeeded();
    let refused = place.put(MAIL, &mail()).await;
    let shared = || of("capabilities.files.mcpServers.box.ref", "oauth_not_allowed");
    let own = || of("agents.nightly.mcpServers.own.ref", "oauth_not_allowed");
    let mut all = faults(&refused);
    all.sort();
    assert_eq!(all, [own(), shared(), shared()]);
    let text = refused.text();
    assert!(text.contains("`planner`") && text.contains("`nightly`"), "{text}");
    assert!(!text.contains("`reader`"), "{text}");
    assert!(!place.get(MAIL).await.to_string().contains("remote_oauth"));
    let mut entry = mail();
    entry["id"] = json!("mail");
    let import = "/api/workspaces/default/import";
    let refused = place.post(import, &json!({ "version": 1, "servers": [entry] })).await;
    assert_eq!(faults(&refused).len(), 3);
    // The same with a change of a capability.
    place.put("/api/workspaces/default/mcp-servers/post", &mail()).await.succeeded();
    let other = json!({ "mcpServers": { "box": { "ref": "post" } } });
    let refused = place.put(FILES, &other).await;
    let here = || of("mcpServers.box.ref", "oauth_not_allowed");
    assert_eq!(faults(&refused), [here(), here()]);
    let shown = place.get(FILES).await;
    assert_eq!(shown["definition"]["mcpServers"]["box"]["ref"], "mail");
    allows(&place, "on").await;
    place.put(FILES, &other).await.succeeded();
    place.put(MAIL, &mail()).await.succeeded();
}
