//! Workspaces, principals, members and tokens of services.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use narthex_control::RequestOf;
use narthex_model::{Role, ServiceTokenId};
use narthex_store::{ServiceTokenRow, Store};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::tenants::{Tenants, api};
use crate::world::ADMIN;

const TEAM: &str = "/api/workspaces/team";
const SERVER: &str = r#"{"id": "docs", "name": "Papers", "description": "Finds papers",
    "url": "https://internal.test/mcp", "timeoutMs": 4321,
    "config_schema": {"depth": {"type": "number"}}, "default_config": {"depth": 7}}"#;

fn at(rest: &str) -> String {
    format!("{TEAM}/{rest}")
}

/// X-M7, X-D12, X-E14, X-E16, S2: an author attaches catalog servers to agents, but cannot change
/// servers. Of a server, the author sees only its name and the config keys that it accepts.
#[tokio::test]
async fn x_m7_authors_attach_what_admins_register() {
    let tenants = Tenants::with(&["team"]).await;
    let (admin, author) = (tenants.token("team", Role::Admin), tenants.token("team", Role::Author));
    let path = at("mcp-servers/docs");
    for method in ["PUT", "PATCH", "DELETE"] {
        let refused = tenants.send(author, method, &path, SERVER).await;
        let told = refused.problem(StatusCode::FORBIDDEN, "denied");
        assert_eq!(
            told,
            "this needs the role admin in the workspace `team`; ask one of its admins for it"
        );
    }
    let refused = tenants.send(author, "POST", &at("mcp-servers"), SERVER).await;
    refused.problem(StatusCode::FORBIDDEN, "denied");
    // An import, which would also reveal the existing servers, is refused too.
    let document = json!({ "servers": [serde_json::from_str::<Value>(SERVER).unwrap()] });
    for path in [at("import"), at("import?dry_run=true")] {
        let refused = tenants.send(author, "POST", &path, &document.to_string()).await;
        let told = refused.problem(StatusCode::FORBIDDEN, "denied");
        assert!(told.contains("`servers`"), "{told}");
    }
    let absent = tenants.send(admin, "GET", &path, "").await;
    absent.problem(StatusCode::NOT_FOUND, "not_found");
    tenants.send(admin, "PUT", &path, SERVER).await.succeeded();
    let agent = json!({ "name": "reader", "mcpServers": { "library": { "ref": "docs" } } });
    let made = tenants.send(author, "POST", &at("agents"), &agent.to_string()).await.succeeded();
    assert_eq!(made["updated_by"], "team/author");
    let whole = tenants.send(admin, "GET", &path, "").await.succeeded();
    assert_eq!(
        (&whole["updated_by"], &whole["definition"]["url"]),
        (&json!("team/admin"), &json!("https://internal.test/mcp"),)
    );
    let seen = tenants.send(author, "GET", &path, "").await.succeeded();
    let mut members: Vec<_> = seen["definition"].as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["config_schema", "description", "id", "name"]);
    let listed = tenants.send(author, "GET", &at("mcp-servers"), "").await;
    assert_eq!(listed.json()["items"][0]["definition"], seen["definition"]);
    assert!(!listed.text().contains("internal.test") && !listed.text().contains("4321"));
}

/// X-M43, A-9: an agent's run token cannot change anything in any workspace.
#[tokio::test]
async fn x_m43_the_token_of_a_run_changes_nothing_of_a_workspace() {
    let tenants = Tenants::with(&["team"]).await;
    let run = tenants.api.world.token.clone();
    for (method, path, body) in [
        ("POST", at("mcp-servers"), SERVER),
        ("PUT", at("mcp-servers/docs"), SERVER),
        ("POST", at("agents"), r#"{"name": "reader"}"#),
        ("POST", at("capabilities"), r#"{"name": "papers"}"#),
        ("PUT", at("members/team%2Fadmin"), r#"{"roles": ["runner"]}"#),
        ("POST", at("service-tokens"), r#"{"service": "x", "roles": ["admin"]}"#),
        ("POST", "/api/workspaces".to_owned(), r#"{"id": "mine"}"#),
    ] {
        let refused = tenants.send(&run, method, &path, body).await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
    }
    for list in ["mcp-servers", "agents", "capabilities"] {
        assert_eq!(tenants.items(ADMIN, &at(list)).await, [Value::Null; 0]);
    }
    assert_eq!(tenants.items(ADMIN, &at("members")).await.len(), Role::ALL.len());
}

/// A token is shown once and stored as a hash. It is refused as soon as it is revoked, or its
/// service is disabled or has no roles.
#[tokio::test]
async fn a_service_token_is_accepted_until_it_is_revoked() {
    let tenants = Tenants::with(&["team"]).await;
    let admin = tenants.token("team", Role::Admin);
    let token = tenants.service("team", "ci", &[Role::Author, Role::Auditor]).await;
    assert!(token.starts_with("nxs_") && token.len() == 84, "{}", token.len());
    let status = async |token: &str| tenants.send(token, "GET", TEAM, "").await.status;
    assert_eq!(status(&token).await, StatusCode::OK);
    let cut = &token[..token.len() - 1];
    let changed = format!("{cut}{}", if token.ends_with('0') { '1' } else { '0' });
    for bad in [cut, &changed, &token.to_uppercase()] {
        assert_eq!(status(bad).await, StatusCode::UNAUTHORIZED);
    }
    let of_ci = async || {
        let all = tenants.items(admin, &at("service-tokens")).await;
        all.into_iter().find(|one| one["service"] == "team/ci").unwrap()
    };
    let listed = of_ci().await;
    assert!(!listed.to_string().contains(&token[4..]), "{listed}");
    assert_eq!((&listed["is_live"], &listed["created_by"]), (&json!(true), &json!("admin")));
    assert!(listed["last_used_at"].is_string() && listed["expires_at"].is_string(), "{listed}");
    let file = fs_err::read(tenants.place.path().join("store.db")).unwrap();
    assert!(!file.windows(64).any(|window| window == &token.as_bytes()[20..]));

    let path = at(&format!("service-tokens/{}", listed["id"].as_str().unwrap()));
    let revoked = tenants.send(admin, "DELETE", &path, "").await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(status(&token).await, StatusCode::UNAUTHORIZED);
    let again = tenants.send(admin, "DELETE", &path, "").await;
    again.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(of_ci().await["is_live"], false);

    // A second token of the same service; the service keeps its roles.
    let asked = r#"{"service": "ci", "label": "second", "expires_in": 3600}"#;
    let second = tenants.send(admin, "POST", &at("service-tokens"), asked).await.succeeded();
    assert_eq!((&second["label"], &second["created_by"]), (&json!("second"), &json!("team/admin")));
    let second = second["token"].as_str().unwrap();
    assert_eq!(status(second).await, StatusCode::OK);
    let other = r#"{"service": "ci", "roles": ["admin"]}"#;
    let refused = tenants.send(admin, "POST", &at("service-tokens"), other).await;
    refused.problem(StatusCode::CONFLICT, "conflict");
    let off = r#"{"is_disabled": true}"#;
    tenants.api.send("PATCH", "/api/principals/team%2Fci", off).await.succeeded();
    assert_eq!(status(second).await, StatusCode::UNAUTHORIZED);
    let on = r#"{"is_disabled": false}"#;
    tenants.api.send("PATCH", "/api/principals/team%2Fci", on).await.succeeded();
    assert_eq!(status(second).await, StatusCode::OK);
    let removed = tenants.send(admin, "DELETE", &at("members/team%2Fci"), "").await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(status(second).await, StatusCode::UNAUTHORIZED);
}

/// An expired token is refused, and is listed as not valid.
#[tokio::test]
async fn expired_service_tokens_are_refused() {
    let tenants = Tenants::with(&["team"]).await;
    let store = Store::open(&tenants.place.path().join("store.db")).await.unwrap();
    let tokens = store.service_tokens();
    let like = tokens.all().await.unwrap().remove(0);
    let now = SystemTime::now();
    let all = [
        ("11", Some(now - Duration::from_secs(1)), StatusCode::UNAUTHORIZED),
        ("22", Some(now + Duration::from_secs(1_000_000)), StatusCode::OK),
        ("33", None, StatusCode::OK),
    ];
    for (digits, expires_at, _) in all {
        let hash = Sha256::digest(format!("nxs_{}", digits.repeat(40)));
        let row = ServiceTokenRow {
            id: ServiceTokenId::new(&format!("tok_{}", digits.repeat(8))).unwrap(),
            hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            expires_at,
            ..like.clone()
        };
        tokens.create(&row).await.unwrap();
    }
    store.close().await;
    // A change of permissions makes the daemon read all tokens again.
    tenants.service("team", "another", &[Role::Runner]).await;
    let listed = tenants.items(ADMIN, &at("service-tokens")).await;
    for (digits, _, status) in all {
        let token = format!("nxs_{}", digits.repeat(40));
        assert_eq!(tenants.send(&token, "GET", TEAM, "").await.status, status, "{digits}");
        let row = listed.iter().find(|one| one["id"] == format!("tok_{}", digits.repeat(8)));
        assert_eq!(row.unwrap()["is_live"], status == StatusCode::OK);
    }
}

/// At most 1000 tokens of a workspace are valid at a time. Expired and revoked tokens do not count.
#[tokio::test]
async fn a_workspace_has_at_most_1000_live_tokens() {
    let tenants = Tenants::with(&["team"]).await;
    let store = Store::open(&tenants.place.path().join("store.db")).await.unwrap();
    let tokens = store.service_tokens();
    let like = tokens.all().await.unwrap().remove(0);
    let row = |number: usize, expires_at| ServiceTokenRow {
        id: ServiceTokenId::new(&format!("tok_{number:016x}")).unwrap(),
        hash: format!("{number:064x}"),
        expires_at: Some(expires_at),
        ..like.clone()
    };
    let (past, future) =
        (UNIX_EPOCH + Duration::from_secs(1), SystemTime::now() + Duration::from_secs(1_000_000));
    for number in 0..5 {
        tokens.create(&row(number, past)).await.unwrap();
    }
    // Each role's service has a token already; one more may be created after these.
    for number in 5..1000 - Role::ALL.len() + 4 {
        tokens.create(&row(number, future)).await.unwrap();
    }
    let asked = r#"{"service": "ci", "roles": ["runner"]}"#;
    let made = tenants.send(ADMIN, "POST", &at("service-tokens"), asked).await.succeeded();
    let refused = tenants.send(ADMIN, "POST", &at("service-tokens"), asked).await;
    refused.problem(StatusCode::TOO_MANY_REQUESTS, "exhausted");
    let path = at(&format!("service-tokens/{}", made["id"].as_str().unwrap()));
    assert_eq!(tenants.send(ADMIN, "DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    tenants.send(ADMIN, "POST", &at("service-tokens"), asked).await.succeeded();
    store.close().await;
}

/// Another daemon on the same store learns of a token's revocation by itself.
#[tokio::test]
async fn revocations_reach_other_daemons() {
    let tenants = Tenants::with(&["team"]).await;
    let other = Tenants {
        api: api(&tenants.place).await,
        place: tempfile::tempdir().unwrap(),
        tokens: Vec::new(),
    };
    let token = tenants.service("team", "ci", &[Role::Runner]).await;
    let mut changes = other.api.control.access_changes();
    let status = async || other.send(&token, "GET", TEAM, "").await.status;
    while status().await != StatusCode::OK {
        changes.changed().await.unwrap();
    }
    let all = tenants.items(ADMIN, &at("service-tokens")).await;
    let id = all.iter().find(|one| one["service"] == "team/ci").unwrap()["id"].clone();
    let path = at(&format!("service-tokens/{}", id.as_str().unwrap()));
    tenants.send(ADMIN, "DELETE", &path, "").await;
    while status().await != StatusCode::UNAUTHORIZED {
        changes.changed().await.unwrap();
    }
}

/// X-E66: a caller that may not read the catalog sees none of its names in secrets and grant
/// requests.
#[tokio::test]
async fn names_of_the_catalog_are_hidden_from_callers_that_may_not_read_it() {
    let tenants = Tenants::with(&["team"]).await;
    let author = tenants.token("team", Role::Author);
    let auditor = tenants.token("team", Role::Auditor);
    let set = r#"{"value": "a-value-of-docs"}"#;
    tenants.api.send("PUT", &at("secrets/DOCS_KEY"), set).await.succeeded();
    let server = json!({ "url": tenants.api.fixture_url(), "transport": "http",
        "tool_scopes": { "echo": "hidden.write" }, "config_schema": { "key": {} },
        "default_config": { "key": "${DOCS_KEY}" } });
    let server = server.to_string();
    tenants.api.send("PUT", &at("mcp-servers/docs"), server).await.succeeded();
    for (token, reads) in [(author, true), (auditor, false)] {
        let items = tenants.items(token, &at("secrets")).await;
        assert_eq!(items[0]["name"], "DOCS_KEY");
        assert_eq!(items[0].get("used_by").is_some(), reads, "{items:?}");
        assert_eq!(json!(items).to_string().contains("servers.docs"), reads, "{items:?}");
    }
    let agent = r#"{"builtin": ["request_grant"]}"#;
    tenants.api.send("PUT", &at("agents/asker"), agent).await.succeeded();
    let asked = r#"{"type": "start_session", "agent_name": "asker"}"#;
    let run = tenants.api.send("POST", &at("runs"), asked).await.succeeded();
    let view = tenants.api.world.gateway.runs().identify(run["token"].as_str().unwrap()).unwrap();
    let wanted = json!({ "request_id": "r1", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "hidden.wirte" }, "justification": "to try it" });
    let wanted = RequestOf::read(wanted.to_string().as_bytes()).unwrap();
    tenants.api.control.request_grant(&view, wanted).await.unwrap();
    let admin = tenants.token("team", Role::Admin);
    let runner = tenants.token("team", Role::Runner);
    for (token, count) in [(admin, 1), (runner, 0), (auditor, 0)] {
        let items = tenants.items(token, &at("grant-requests")).await;
        assert_eq!(items[0]["warnings"].as_array().unwrap().len(), count, "{items:?}");
    }
}

/// A member has the roles that were set last. Only an operator adds new people.
#[tokio::test]
async fn members_have_the_roles_that_were_set_last() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let admin = tenants.token("team", Role::Admin);
    let runner = tenants.token("team", Role::Runner);
    let capabilities = at("capabilities");
    let status = async || tenants.send(runner, "GET", &capabilities, "").await.status;
    assert_eq!(status().await, StatusCode::FORBIDDEN);
    let both = r#"{"roles": ["author", "runner"]}"#;
    let member = at("members/team%2Frunner");
    let set = tenants.send(admin, "PUT", &member, both).await.succeeded();
    assert_eq!(
        (&set["name"], &set["roles"]),
        (&json!("team/runner"), &json!(["author", "runner"]))
    );
    assert_eq!(status().await, StatusCode::OK);
    tenants.send(admin, "PUT", &member, r#"{"roles": ["auditor"]}"#).await.succeeded();
    assert_eq!(status().await, StatusCode::FORBIDDEN);
    let wrong = tenants.send(admin, "PUT", &member, r#"{"roles": ["boss", 3], "x": 1}"#).await;
    wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    let fields: Vec<_> = wrong.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(fields, ["x", "roles[0]", "roles[1]"]);

    let ada = tenants.api.send("POST", "/api/principals", r#"{"name": "ada"}"#).await.succeeded();
    assert_eq!((&ada["kind"], &ada["is_operator"]), (&json!("human"), &json!(false)));
    let author = r#"{"roles": ["author"]}"#;
    let unknown = tenants.send(admin, "PUT", &at("members/ada"), author).await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
    tenants.api.send("PUT", &at("members/ada"), author).await.succeeded();
    tenants.send(admin, "PUT", &at("members/ada"), r#"{"roles": ["auditor"]}"#).await.succeeded();
    let foreign = tenants.api.send("PUT", &at("members/rival%2Fadmin"), author).await;
    foreign.problem(StatusCode::CONFLICT, "conflict");
    let removed = tenants.send(admin, "DELETE", &at("members/ada"), "").await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    tenants
        .send(admin, "DELETE", &at("members/ada"), "")
        .await
        .problem(StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn names_of_principals_are_unique_and_checked() {
    let tenants = Tenants::with(&["team"]).await;
    let make =
        async |body: &str| tenants.api.send("POST", "/api/principals", body.to_owned()).await;
    make(r#"{"name": "ada@example.com", "is_operator": true}"#).await.succeeded();
    make(r#"{"name": "ada@example.com"}"#).await.problem(StatusCode::CONFLICT, "conflict");
    for bad in ["admin", "Ada", "team/x", ""] {
        let refused = make(&json!({ "name": bad }).to_string()).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
    let shown = tenants.api.get("/api/principals/ada%40example.com").await;
    assert_eq!(shown["is_operator"], true);
    let service = "/api/principals/team%2Fadmin";
    let refused = tenants.api.send("PATCH", service, r#"{"is_operator": true}"#).await;
    refused.problem(StatusCode::CONFLICT, "conflict");
    let page = tenants.api.get("/api/principals?limit=2").await;
    let next = page["next"].as_str().unwrap();
    let rest = tenants.api.get(&format!("/api/principals?after={next}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), Role::ALL.len() + 1 - 2);
}

#[tokio::test]
async fn workspaces_are_created_renamed_and_deleted() {
    let tenants = Tenants::with(&[]).await;
    let api = &tenants.api;
    let made = api.send("POST", "/api/workspaces", r#"{"id": "team", "name": "Team"}"#).await;
    assert_eq!(
        (made.status, &made.headers["location"]),
        (StatusCode::CREATED, &TEAM.parse().unwrap())
    );
    let workspace = |id: &str, name: &str| {
        json!({ "id": id, "name": name, "audits_contents": false,
                "oauth_on_orchestrators": "off", "events_kept_days": 30,
                "runtime_requests": true, "models": [] })
    };
    assert_eq!(made.json(), workspace("team", "Team"));
    let again = api.send("POST", "/api/workspaces", r#"{"id": "team"}"#).await;
    again.problem(StatusCode::CONFLICT, "conflict");
    let wrong = api.send("POST", "/api/workspaces", r#"{"id": "Team", "x": 1}"#).await;
    wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert_eq!(wrong.json()["errors"].as_array().unwrap().len(), 2);
    let named = api.send("PATCH", TEAM, r#"{"name": "The team"}"#).await.succeeded();
    assert_eq!(api.get(TEAM).await, named);
    api.send("POST", &at("agents"), r#"{"name": "reader"}"#).await.succeeded();
    let refused = api.ask("DELETE", TEAM).send().await;
    assert!(refused.problem(StatusCode::CONFLICT, "conflict").contains("1 agent; "));
    let forced = api.ask("DELETE", &format!("{TEAM}?force=true")).send().await;
    assert_eq!(forced.status, StatusCode::NO_CONTENT);
    api.ask("GET", TEAM).send().await.problem(StatusCode::NOT_FOUND, "not_found");
    let default = api.ask("DELETE", "/api/workspaces/default?force=true").send().await;
    default.problem(StatusCode::CONFLICT, "conflict");
    let all = api.get("/api/workspaces").await;
    assert_eq!(all, json!({ "items": [workspace("default", "Default")], "next": null }));
}
