//! Tests of many objects at once: imports that store all or nothing, and exports without secrets.

use http::StatusCode;
use narthex_model::{CatalogKind, WorkspaceId};
use narthex_store::{CatalogStep, Store};
use serde_json::{Value, json};

use super::catalog::{Place, faults, of};
use crate::world::Answer;

const SERVERS: &str = "/api/workspaces/default/mcp-servers";
const DOCS: &str = "/api/workspaces/default/mcp-servers/docs";
/// The value of a secret in a place with objects.
const CANARY: &str = "canary-9c1e";

/// S5: an import gives the same warnings for each server as saving it alone does, with its place in
/// the document. Here it is a package without a version.
#[tokio::test]
async fn s5_an_import_gives_the_warnings_of_each_object() {
    let place = Place::new().await;
    let server = json!({ "id": "files", "command": "npx", "args": ["-y", "some-server"] });
    let document = json!({ "servers": [server] });
    for path in ["/api/workspaces/default/import?dry_run=true", "/api/workspaces/default/import"] {
        let told = place.post(path, &document).await.succeeded();
        let warning = &told["warnings"][0];
        assert_eq!(warning["field"], "servers[0].args", "{told}");
        assert!(warning["message"].as_str().unwrap().contains("`some-server`"), "{told}");
    }
}

/// O83, D9: many objects are stored together or not at all, and the earlier objects are reported.
#[tokio::test]
async fn o83_a_document_is_imported_as_a_whole_or_not_at_all() {
    let place = Place::new().await;
    let import = "/api/workspaces/default/import";
    let dry = "/api/workspaces/default/import?dry_run=true";
    let mut document = json!({
        "agents": [{ "name": "reader", "capabilities": ["papers"] }],
        "capabilities": [{ "name": "papers", "mcpServers": { "library": { "ref": "docs" } } }],
        "servers": [{ "id": "docs", "url": "https://docs.test/mcp",
                      "config_schema": { "key": { "kind": "secret", "required": true } },
                      "default_config": { "key": "${DOCS_KEY}" } }],
        "secrets": [{ "name": "DOCS_KEY", "is_set": true }, { "name": "OTHER" }],
    });
    let refused = place.post(import, &document).await;
    assert_eq!(faults(&refused)[0], of("servers[0].default_config.key", "secret_not_set"));
    let secret = "/api/workspaces/default/secrets/DOCS_KEY";
    place.put(secret, &json!({ "value": CANARY })).await.succeeded();

    document["agents"][0]["capabilities"] = json!(["absent", "papers"]);
    document["servers"][0]["name"] = json!(3);
    document["secrets"][1] = json!({ "name": "OTHER", "value": CANARY });
    document["further"] = json!([]);
    let refused = place.post(import, &document).await;
    let fields: Vec<_> = faults(&refused).into_iter().map(|(field, _)| field).collect();
    let wanted = ["secrets[1]", "servers[0].name", "further", "agents[0].capabilities[0]"];
    assert_eq!(fields, wanted, "{}", refused.text());
    assert!(!refused.text().contains(CANARY), "{}", refused.text());
    document["servers"][0]["name"] = json!("Docs");
    document["secrets"][1] = json!({ "name": "OTHER" });
    document.as_object_mut().unwrap().remove("further");
    let refused = place.post(import, &document).await;
    assert_eq!(faults(&refused), [of("agents[0].capabilities[0]", "capability_missing")]);
    document["agents"][0]["capabilities"] = json!(["papers"]);

    let changes = |answer: Value| -> Vec<(String, String)> {
        let all = answer["changes"].as_array().unwrap().clone();
        let text = |change: &Value, member: &str| change[member].as_str().unwrap().to_owned();
        all.iter().map(|change| (text(change, "id"), text(change, "change"))).collect()
    };
    let each = |what: &str| ["docs", "papers", "reader"].map(|id| (id.to_owned(), what.to_owned()));
    let told = place.post(dry, &document).await.succeeded();
    assert_eq!(told["warnings"][0]["field"], "secrets", "{told}");
    assert_eq!(changes(told), each("created"), "in an order in which references hold");
    assert_eq!(place.get(SERVERS).await["items"], json!([]), "a dry run stores nothing");
    assert_eq!(changes(place.post(import, &document).await.succeeded()), each("created"));
    let before = place.get(DOCS).await;
    assert_eq!(changes(place.post(import, &document).await.succeeded()), each("unchanged"));
    assert_eq!(place.get(DOCS).await, before, "the same again makes nothing newer");

    // Other objects that get a fault by the import are reported.
    let narrowed = json!({ "servers": [{ "id": "docs", "url": "https://docs.test/mcp",
        "config_schema": { "must": { "required": true } } }] });
    let told = place.post(dry, &narrowed).await.succeeded();
    assert_eq!(told["changes"][0]["change"], "updated");
    assert_eq!(
        told["changes"][0]["before"]["default_config"],
        json!({ "key": { "$secret": "DOCS_KEY" } })
    );
    assert!(told["warnings"][0]["message"].as_str().unwrap().contains("must"), "{told}");
    let twice = json!({ "agents": [{ "name": "a" }, { "name": "a" }] });
    assert_eq!(faults(&place.post(import, &twice).await), [of("agents[1]", "value_invalid")]);
    for (body, field) in [
        (json!([]), "body"),
        (json!({ "servers": {} }), "servers"),
        (json!({ "version": 2 }), "version"),
    ] {
        assert_eq!(faults(&place.post(import, &body).await), [of(field, "value_invalid")]);
    }
    place
        .post("/api/workspaces/none/import", &json!({}))
        .await
        .problem(StatusCode::NOT_FOUND, "not_found");
}

/// A document with many objects creates as many events and blocks all writers in the workspace. So
/// its size is limited, and so is the number of a workspace's objects.
#[tokio::test]
async fn o83_a_document_has_at_most_1000_objects() {
    let place = Place::new().await;
    let import = "/api/workspaces/default/import";
    let agents = |count: usize| {
        let agents = (0..count).map(|number| json!({ "name": format!("a{number}") }));
        json!({ "agents": agents.collect::<Vec<_>>() })
    };
    let refused = place.post(import, &agents(1001)).await;
    assert_eq!(faults(&refused), [of("body", "value_invalid")]);
    assert!(refused.text().contains("the limit is 1000"), "{}", refused.text());
    assert_eq!(place.get("/api/workspaces/default/agents").await["items"], json!([]));
    let stored = place.post(import, &agents(1000)).await.succeeded();
    assert_eq!(stored["changes"].as_array().unwrap().len(), 1000);
    let events = "/api/workspaces/default/audit?kind=workspace.agent.registered&limit=1";
    let newest = place.get(events).await["items"][0].clone();
    assert_eq!((&newest["resource"]["id"], &newest["outcome"]), (&json!("a999"), &json!("ok")));
}

/// O83: a workspace with the maximum number of objects accepts no more, but existing ones can be
/// changed.
#[tokio::test]
async fn a_workspace_has_a_limited_number_of_objects() {
    let place = Place::new().await;
    let store = Store::open(&place.store_file()).await.unwrap();
    let ids: Vec<_> = (0..10_000).map(|number| format!("a{number}")).collect();
    // These objects are written without an import, which would take a while.
    let step = |id| CatalogStep {
        kind: CatalogKind::Agent,
        id,
        before: None,
        document: "{}",
        is_cut: false,
    };
    let steps: Vec<_> = ids.iter().map(|id| step(id.as_str())).collect();
    assert!(store.catalog_change(&WorkspaceId::default(), &steps, "test").await.unwrap());
    store.close().await;
    let too_many = |answer: Answer| {
        let text = answer.text();
        answer.problem(StatusCode::TOO_MANY_REQUESTS, "exhausted");
        assert!(text.contains("10000 objects of the kind agent"), "{text}");
    };
    let new = json!({ "agents": [{ "name": "new" }] });
    too_many(place.post("/api/workspaces/default/import", &new).await);
    let agents = "/api/workspaces/default/agents";
    too_many(place.post(agents, &json!({ "name": "new" })).await);
    place.put(&format!("{agents}/a7"), &json!({ "name": "a7" })).await.succeeded();
    let capability = json!({ "name": "papers", "mcpServers": {} });
    place.post("/api/workspaces/default/capabilities", &capability).await.succeeded();
}

/// O83, S27: an export has all but secrets. It can be imported elsewhere, and then gives the same
/// export there.
#[tokio::test]
async fn o83_an_export_has_no_secrets_and_its_import_gives_the_same_export() {
    let place = Place::filled().await;
    let literal = json!({ "url": "https://x.test/mcp",
        "auth": { "mode": "apiKey", "key": "canary-auth-5d" },
        "config_schema": { "pin": { "sensitive": true, "default": "canary-default-5d" } } });
    place.put("/api/workspaces/default/mcp-servers/plain", &literal).await.succeeded();
    let exported = place.get("/api/workspaces/default/export").await;
    let text = exported.to_string();
    for value in [CANARY, "literal-4b", "canary-auth-5d", "canary-default-5d"] {
        assert!(!text.contains(value), "{text}");
    }
    let secrets = json!([{ "name": "DOCS_KEY", "is_set": true },
        { "name": "DOCS_TOKEN", "is_set": false }, { "name": "PLAIN_KEY", "is_set": false },
        { "name": "PLAIN_PIN", "is_set": false }]);
    assert_eq!(exported["secrets"], secrets);
    assert_eq!(place.get("/api/workspaces/default/export").await.to_string(), text);

    let import = "/api/workspaces/team/import";
    let refused = place.post(import, &exported).await;
    assert!(
        faults(&refused).iter().all(|(_, code)| code == "secret_not_set"),
        "{}",
        refused.text()
    );
    for name in ["DOCS_KEY", "DOCS_TOKEN", "PLAIN_KEY", "PLAIN_PIN"] {
        let path = format!("/api/workspaces/team/secrets/{name}");
        place.put(&path, &json!({ "value": "another value" })).await.succeeded();
    }
    place.post(import, &exported).await.succeeded();
    let mut there = place.get("/api/workspaces/team/export").await;
    there["secrets"] = secrets;
    assert_eq!(there, exported);

    // A dry run does not show hidden literals of objects either.
    let mut changed = literal.clone();
    changed["id"] = json!("plain");
    changed["auth"]["key"] = json!("canary-other-5d");
    let dry = "/api/workspaces/default/import?dry_run=true";
    let told = place.post(dry, &json!({ "servers": [changed] })).await.succeeded();
    assert_eq!(told["changes"][0]["change"], "updated");
    assert_eq!(told["changes"][0]["after"]["auth"]["key"], "(hidden)");
    assert!(!told.to_string().contains("canary"), "{told}");
}

/// X-M24: a document has a secret's name and a flag, but no value.
#[tokio::test]
async fn secrets_of_a_document_are_names_without_values() {
    let place = Place::new().await;
    let document = json!({ "secrets": [{ "name": "OTHER", "is_set": "yes" }] });
    let refused = place.post("/api/workspaces/default/import", &document).await;
    assert_eq!(faults(&refused), [of("secrets[0]", "value_invalid")]);
    // X-M24: a document with a secret's value is refused.
    let valued = json!({ "secrets": [{ "name": "OTHER", "is_set": true, "value": "canary-3a" }] });
    let refused = place.post("/api/workspaces/default/import", &valued).await;
    assert_eq!(faults(&refused), [of("secrets[0]", "value_invalid")]);
    assert!(!refused.text().contains("canary"), "{}", refused.text());
    let listed = place.get("/api/workspaces/default/secrets").await;
    assert_eq!(listed["items"], json!([]));
}

/// R-M4, A-1: manifests among the agents of a document are split into servers and agents. Every
/// fault names the place where it was written, and nothing is stored then.
#[tokio::test]
async fn r_m4_manifests_are_split_into_servers_and_agents() {
    let place = Place::new().await;
    let import =
        async |document: &Value| place.post("/api/workspaces/default/import", document).await;
    let docs = json!({ "url": "https://docs.test/mcp", "timeout": "15s", "optional": true,
                       "headers": { "x-key": "${NOT_SET}" } });
    let helper = |docs: &Value| json!({ "name": "helper", "mcp": { "servers": { "docs": docs } } });
    let own = json!({ "id": "own", "url": "https://own.test/mcp" });
    let document = json!({ "servers": [own], "agents": [helper(&docs)] });
    let at = "agents[0].mcp.servers.docs.headers.x-key";
    assert_eq!(faults(&import(&document).await), [of(at, "secret_not_set")]);
    let mut wrong = docs.clone();
    wrong["timeout"] = json!("soon");
    wrong["url"] = json!("https://${HOST}/mcp");
    let document = json!({ "agents": [{ "name": "plain" }, helper(&wrong)] });
    let refused = faults(&import(&document).await);
    let mut fields: Vec<_> = refused.into_iter().map(|one| one.0).collect();
    fields.sort_unstable();
    let at = "agents[1].mcp.servers.docs";
    assert_eq!(fields, [format!("{at}.timeout"), format!("{at}.url")]);
    place.api.set_secret("NOT_SET", "it is").await;
    let done = import(&json!({ "agents": [helper(&docs)] })).await.succeeded();
    let ids: Vec<_> = done["changes"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["helper-docs", "helper"], "{done}");
    let told = done["warnings"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|one| one["field"].as_str().unwrap()).collect();
    assert!(told.contains(&"agents[0].mcp.servers.docs.headers.x-key"), "{told:?}");
    let stored = place.get("/api/workspaces/default/agents/helper").await;
    let attached = json!({ "docs": { "ref": "helper-docs", "optional": true } });
    assert_eq!(stored["definition"]["mcpServers"], attached, "{stored}");
}

/// R-M4: all faults are reported at once, whichever check finds them, and with the member names of
/// the manifest.
#[tokio::test]
async fn r_m4_all_faults_of_a_manifest_are_reported_at_once() {
    let place = Place::new().await;
    let import =
        async |document: &Value| place.post("/api/workspaces/default/import", document).await;
    let git = json!({ "command": "git", "timeout": "soon", "max_output_tokens": -1,
                      "env": { "KEY": "${NOT_SET}" } });
    let web = json!({ "url": "no url", "request_timeout": "9s",
                      "headers": { "Authorization": "Bearer ${NO_TOKEN}" } });
    let agent = json!({ "name": "helper", "skills": ["absent"], "agent_type": "robot",
        "mcp": { "servers": { "git": git, "web": web }, "names": ["missing"] } });
    let mut fields: Vec<_> = faults(&import(&json!({ "agents": [agent] })).await);
    fields.sort_unstable();
    let at = |place: &str, code: &str| of(&format!("agents[0].{place}"), code);
    let wanted = [
        at("agent_type", "value_invalid"),
        at("mcp.names[0]", "mcp_ref_resolution_failed"),
        at("mcp.servers.git.env.KEY", "secret_not_set"),
        at("mcp.servers.git.max_output_tokens", "type_wrong"),
        at("mcp.servers.git.timeout", "value_invalid"),
        at("mcp.servers.web.headers.Authorization", "secret_not_set"),
        at("mcp.servers.web.url", "value_invalid"),
        at("skills[0]", "capability_missing"),
    ];
    assert_eq!(fields, wanted, "what can be read of what cannot is looked at, too");
    let good = json!({ "command": "git", "timeout": "soon", "env": { "KEY": "${NOT_SET}" } });
    let agent = json!({ "name": "helper", "skills": ["absent"],
        "mcp": { "servers": { "git": good }, "names": ["missing"] } });
    let mut fields: Vec<_> = faults(&import(&json!({ "agents": [agent] })).await);
    fields.sort_unstable();
    let wanted = [
        at("mcp.names[0]", "mcp_ref_resolution_failed"),
        at("mcp.servers.git.env.KEY", "secret_not_set"),
        at("mcp.servers.git.timeout", "value_invalid"),
        at("skills[0]", "capability_missing"),
    ];
    assert_eq!(fields, wanted);
    // A preview uses the same names.
    let agent = json!({ "name": "helper", "skills": ["no good"], "mcp": ["docs", 1] });
    let refused = place.post("/api/workspaces/default/preview", &agent).await;
    let wanted = [of("mcp[1]", "value_invalid"), of("skills[0]", "value_invalid")];
    assert_eq!(faults(&refused), wanted);
}

/// R-M4: a server that was removed from a manifest is reported. It is deleted if the caller asked
/// for that and nothing else uses it.
#[tokio::test]
async fn r_m4_a_server_removed_from_a_manifest_is_reported_or_pruned() {
    let place = Place::new().await;
    let import = async |query: &str, document: &Value| {
        place.post(&format!("/api/workspaces/default/import{query}"), document).await.succeeded()
    };
    let manifest = |names: &[&str]| {
        let server =
            |name: &&str| (name.to_string(), json!({ "url": format!("https://{name}.test/mcp") }));
        let servers: serde_json::Map<_, _> = names.iter().map(server).collect();
        json!({ "agents": [{ "name": "helper", "mcp": { "servers": servers } }] })
    };
    let ids = async || -> Vec<String> {
        let all = place.get(SERVERS).await["items"].as_array().unwrap().clone();
        all.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    import("", &manifest(&["git", "web", "mail"])).await;
    let told = |answer: &Value, id: &str| {
        let field = format!("servers.{id}");
        let warnings = answer["warnings"].as_array().unwrap().clone();
        let found = warnings.iter().find(|one| one["field"] == field.as_str());
        found.map(|one| one["message"].as_str().unwrap().to_owned())
    };
    let answer = import("?dry_run=true&prune=true", &manifest(&["web", "mail"])).await;
    assert!(told(&answer, "helper-git").unwrap().contains("would be deleted"), "{answer}");
    // The warning comes at each import, not only at the first.
    for _ in 0..2 {
        let answer = import("", &manifest(&["web", "mail"])).await;
        let message = told(&answer, "helper-git").unwrap();
        assert!(message.contains("`narthex servers delete helper-git`"), "{message}");
        assert_eq!(ids().await, ["helper-git", "helper-mail", "helper-web"]);
    }
    // Another agent uses one of the servers.
    let other = json!({ "name": "other", "mcpServers": { "m": { "ref": "helper-mail" } } });
    import("", &json!({ "agents": [other] })).await;
    let answer = import("?prune=true", &manifest(&["new"])).await;
    for id in ["helper-git", "helper-web"] {
        let deleted = json!({ "kind": "server", "id": id, "change": "deleted",
                              "before": null, "after": null });
        assert!(answer["changes"].as_array().unwrap().contains(&deleted), "{answer}");
    }
    let message = told(&answer, "helper-mail").unwrap();
    assert!(message.contains("in use") && message.contains("agents.other"), "{message}");
    assert_eq!(ids().await, ["helper-mail", "helper-new"]);
    // A server that the same document contains is not deleted either.
    let mut document = manifest(&["git"]);
    document["servers"] = json!([{ "id": "helper-new", "url": "https://new.test/mcp" }]);
    let answer = import("?prune=true", &document).await;
    assert_eq!(told(&answer, "helper-new"), None, "{answer}");
    assert!(ids().await.contains(&"helper-new".to_owned()));
    // There is no warning about servers that were deleted, or that belong to another agent's
    // manifest.
    let answer = import("", &json!({ "agents": [{ "name": "other" }] })).await;
    assert_eq!(answer["warnings"], json!([]), "{answer}");
    let refused = place.post("/api/workspaces/default/import?prune=maybe", &json!({})).await;
    assert_eq!(faults(&refused), [of("prune", "value_invalid")]);
}

/// R-M8: an agent's empty member `mcp` is kept and shown. If the agent has servers, the member is
/// dropped.
#[tokio::test]
async fn r_m8_an_agent_keeps_its_empty_mcp_member_until_it_has_servers() {
    let place = Place::new().await;
    let agents = "/api/workspaces/default/agents";
    let stored = place.post(agents, &json!({ "name": "a", "mcp": {} })).await.succeeded();
    assert_eq!(stored["definition"], json!({ "name": "a", "active": true, "mcp": {} }));
    let merged = place.get(&format!("{agents}/a?view=merged")).await;
    assert_eq!((&merged["mcp"], &merged["mcpServers"]), (&json!({}), &json!({})));
    let inside = json!({ "name": "b", "mcp": { "servers": {} } });
    let refused = place.post(agents, &inside).await;
    assert_eq!(faults(&refused), [of("mcp", "value_invalid")]);
    assert!(refused.text().contains("narthex agents apply"), "{}", refused.text());
    let docs = json!({ "id": "docs", "url": "https://docs.test/mcp" });
    place.post(SERVERS, &docs).await.succeeded();
    let attached = json!({ "name": "a", "mcp": {}, "mcpServers": { "d": { "ref": "docs" } } });
    let stored = place.put(&format!("{agents}/a"), &attached).await.succeeded();
    assert_eq!(stored["definition"]["mcp"], Value::Null, "{stored}");
}

/// R-M4: a server inside a manifest replaces no server that no manifest of its agent has made:
/// neither a plain one, nor one from another agent's manifest.
#[tokio::test]
async fn r_m4_a_manifest_overwrites_no_server_from_elsewhere() {
    let place = Place::new().await;
    let import =
        async |document: &Value| place.post("/api/workspaces/default/import", document).await;
    let manifest = |name: &str, alias: &str, host: &str| {
        let server = json!({ "url": format!("https://{host}.test/mcp") });
        json!({ "agents": [{ "name": name, "mcp": { "servers": { alias: server } } }] })
    };
    let plain = json!({ "servers": [{ "id": "git-tools", "url": "https://plain.test/mcp" }] });
    import(&plain).await.succeeded();
    import(&manifest("a-b", "c", "one")).await.succeeded();
    for (name, alias) in [("git", "tools"), ("a", "b-c")] {
        let refused = import(&manifest(name, alias, "other")).await;
        let at = format!("agents[0].mcp.servers.{alias}");
        assert_eq!(faults(&refused), [of(&at, "value_invalid")]);
        let text = refused.text();
        assert!(text.contains("no manifest of this agent") && text.contains("rename"), "{text}");
    }
    // A server from the same agent's manifest is replaced.
    import(&manifest("a-b", "c", "two")).await.succeeded();
    let stored = place.get("/api/workspaces/default/mcp-servers/a-b-c").await;
    assert_eq!(stored["definition"]["url"], "https://two.test/mcp", "{stored}");
}

/// R-M4: a manifest neither deletes nor overwrites a server that a person has made, whatever its
/// name is and whichever agent attaches it. If a person removes the mark of a manifest, the server
/// counts as made by a person.
#[tokio::test]
async fn r_m4_a_manifest_neither_overwrites_nor_prunes_a_server_created_by_a_person() {
    let place = Place::new().await;
    let import = async |query: &str, document: &Value| {
        place.post(&format!("/api/workspaces/default/import{query}"), document).await
    };
    let server = async |id: &str| place.get(&format!("{SERVERS}/{id}")).await["definition"].clone();
    let own = json!({ "id": "github-tools", "url": "https://own.test/mcp" });
    import("", &json!({ "servers": [own] })).await.succeeded();
    let attaching =
        json!({ "name": "github", "mcpServers": { "tools": { "ref": "github-tools" } } });
    import("", &json!({ "agents": [attaching] })).await.succeeded();
    let inside = |alias: &str| {
        let servers = json!({ alias: { "url": "https://inside.test/mcp" } });
        json!({ "agents": [{ "name": "github", "mcp": { "servers": servers } }] })
    };
    let refused = import("", &inside("tools")).await;
    assert_eq!(faults(&refused), [of("agents[0].mcp.servers.tools", "value_invalid")]);
    let without = json!({ "agents": [{ "name": "github" }] });
    for query in ["?prune=true&dry_run=true", "?prune=true"] {
        let answer = import(query, &without).await.succeeded();
        assert_eq!(answer["warnings"], json!([]), "{answer}");
        assert_eq!(server("github-tools").await["url"], "https://own.test/mcp");
    }

    // A server from a manifest has a mark, also in an export, until a person removes it.
    import("", &inside("mail")).await.succeeded();
    let mut made = server("github-mail").await;
    assert_eq!(made["made_by"], json!({ "agent": "github" }));
    let exported = place.get("/api/workspaces/default/export").await;
    let again = import("", &exported).await.succeeded();
    let changes: Vec<_> = again["changes"].as_array().unwrap().iter().collect();
    assert!(changes.iter().all(|one| one["change"] == "unchanged"), "{again}");
    import("", &inside("mail")).await.succeeded();
    made.as_object_mut().unwrap().remove("made_by");
    import("", &json!({ "servers": [made] })).await.succeeded();
    let refused = import("", &inside("mail")).await;
    assert_eq!(faults(&refused), [of("agents[0].mcp.servers.mail", "value_invalid")]);
    import("?prune=true", &without).await.succeeded();
    assert_eq!(server("github-mail").await["url"], "https://inside.test/mcp");
}
