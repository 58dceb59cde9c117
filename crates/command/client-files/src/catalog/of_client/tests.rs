//! Files of several clients, taken apart.

use super::*;
use crate::{clients::clients, edit::Document, rewrite::parse, servers::read_placed};

const CODE: &str = r#"{
  // Asked once.
  "inputs": [{ "type": "promptString", "id": "wiki-token", "password": true }],
  "servers": {
    "wiki": {
      "type": "http",
      "url": "https://wiki.example.com/mcp",
      "headers": { "Authorization": "Bearer ${input:wiki-token}", "x-team": "${env:TEAM}" },
      "gallery": true,
    },
    "tests": {
      "command": "node",
      "args": ["${workspaceFolder}/tests.js"],
      "envFile": "${workspaceFolder}/.env",
    },
  },
}"#;

const CODEX: &str = r#"
[mcp_servers.docs]
command = "docs-server"
args = ["--key", "not-a-real-key"]
disabled_tools = ["write"]
tool_timeout_sec = 45
env_vars = ["REGION"]

[mcp_servers.docs.env]
DOCS_KEY = "not-a-real-docs-key"

[mcp_servers.issues]
url = "https://issues.example.com/mcp"
bearer_token_env_var = "ISSUES_TOKEN"
http_headers = { "X-Key" = "not-a-real-header" }
"#;

const GEMINI: &str = r#"{
  "mcpServers": {
    "My Notes": {
      "httpUrl": "https://notes.example.com/mcp",
      "headers": { "X-Key": "$NOTES_KEY" },
      "excludeTools": ["erase"],
      "trust": true
    }
  }
}"#;

const ZED: &str = r#"{
  "context_servers": {
    "schema": { "command": "schema-server", "env": { "SCHEMA_TOKEN": "not-a-real-token" } },
    "of-extension": { "enabled": true, "settings": {} },
  },
}"#;

fn client(id: &str) -> &'static Client {
    clients().iter().find(|client| client.id == id).unwrap()
}

fn document(id: &str, text: &str) -> Document {
    parse(client(id).format, text.as_bytes()).unwrap()
}

fn pasted(id: &str, text: &str) -> Pasted {
    let client = client(id);
    let servers = read_placed(client, &document(id, text), "").unwrap();
    let pasted = take_out(&OfClient { client, servers });
    // Neither the values of the catalog nor the words for people have a secret.
    assert!(!format!("{pasted:?}").contains("not-a-real"), "{pasted:?}");
    pasted
}

fn values(pasted: &Pasted) -> Vec<Value> {
    pasted.servers.iter().map(|server| server.value.clone()).collect()
}

fn has(notices: &[String], words: &str) -> bool {
    notices.iter().any(|notice| notice.contains(words))
}

#[test]
fn values_that_the_client_asks_for_become_secrets() {
    let found = pasted("vscode", CODE);
    let wiki = json!({
        "id": "wiki", "type": "http", "url": "https://wiki.example.com/mcp",
        "verbatim_headers": true, "default_config": { "x-team": "${env.TEAM}" },
        "auth": { "mode": "apiKey", "key": "${WIKI_TOKEN}", "headerName": "Authorization",
                  "valuePrefix": "Bearer " },
    });
    assert_eq!(values(&found)[0], wiki);
    for words in [
        "servers.wiki.headers.Authorization: only the client has this value; store it as the \
         secret WIKI_TOKEN with `narthex secrets set WIKI_TOKEN`",
        "servers.wiki.headers.x-team: `${env:TEAM}` is read as `${env.TEAM}`",
        "servers.tests: without `envFile`: ",
    ] {
        assert!(has(&found.notices, words), "{words}: {:?}", found.notices);
    }
    let [fault] = &found.faults[..] else { panic!("{:?}", found.faults) };
    assert_eq!(fault.place, "servers.tests.args[0]");
    assert!(fault.message.contains("`${workspaceFolder}`"), "{fault:?}");
}

#[test]
fn literal_secrets_are_named_or_refused() {
    let found = pasted("codex", CODEX);
    let docs = json!({
        "id": "docs", "type": "stdio", "command": "docs-server", "args": ["--key", "hidden"],
        "env": { "DOCS_KEY": "${DOCS_KEY}", "REGION": "${REGION}" }, "timeoutMs": 45000,
        "tools": { "deny": ["write"] },
    });
    let issues = json!({
        "id": "issues", "type": "http", "url": "https://issues.example.com/mcp",
        "verbatim_headers": true, "default_config": { "X-Key": "${ISSUES_X_KEY}" },
        "auth": { "mode": "apiKey", "key": "${ISSUES_TOKEN}", "headerName": "Authorization",
                  "valuePrefix": "Bearer " },
    });
    assert_eq!(values(&found), [docs, issues]);
    let [fault] = &found.faults[..] else { panic!("{:?}", found.faults) };
    assert_eq!(fault.place, "mcp_servers.docs.args[1]");
    assert!(fault.remedy.contains("pass it in `env`") && fault.remedy.contains("secrets set"));
    for words in [
        "mcp_servers.docs.env.DOCS_KEY: the value looks like a secret and is not stored; store it \
         as the secret DOCS_KEY with `narthex secrets set DOCS_KEY`",
        "mcp_servers.issues.http_headers.X-Key: the value looks like a secret",
    ] {
        assert!(has(&found.notices, words), "{words}: {:?}", found.notices);
    }
    for (server, field, place) in [
        (0, "", "mcp_servers.docs"),
        (0, "timeoutMs", "mcp_servers.docs.tool_timeout_sec"),
        (0, "tools.deny[0]", "mcp_servers.docs.disabled_tools"),
        (0, "default_config.DOCS_KEY", "mcp_servers.docs.env.DOCS_KEY"),
        (1, "default_config.X-Key", "mcp_servers.issues.http_headers.X-Key"),
    ] {
        assert_eq!(found.servers[server].place(field), place, "{field}");
    }
    let lines = document("codex", CODEX).lines();
    assert_eq!(lines.of("mcp_servers.docs.args[1]"), Some(4));
    assert_eq!(lines.of("mcp_servers.docs.env.DOCS_KEY"), Some(10));
}

#[test]
fn lists_of_tools_and_names_are_kept() {
    let found = pasted("gemini-cli", GEMINI);
    let notes = json!({
        "id": "my-notes", "type": "http", "url": "https://notes.example.com/mcp",
        "verbatim_headers": true, "default_config": { "X-Key": "${NOTES_KEY}" },
        "tools": { "deny": ["erase"] },
    });
    assert_eq!((values(&found), &found.faults[..]), (vec![notes], &[][..]));
    assert!(has(&found.notices, "its id in the catalog is `my-notes`"), "{:?}", found.notices);
    assert!(has(&found.notices, "without `trust`: "), "{:?}", found.notices);
    assert_eq!(found.servers[0].place("url"), "mcpServers[\"My Notes\"].httpUrl");
}

#[test]
fn entries_that_are_no_servers_are_left_out() {
    let found = pasted("zed", ZED);
    let schema = json!({
        "id": "schema", "type": "stdio", "command": "schema-server", "args": [],
        "env": { "SCHEMA_TOKEN": "${SCHEMA_TOKEN}" },
    });
    assert_eq!((values(&found), &found.faults[..]), (vec![schema], &[][..]));
    let left_out = "context_servers.of-extension: left out: it belongs to an extension";
    assert!(has(&found.notices, left_out), "{:?}", found.notices);
    let none = pasted("zed", "{}");
    assert_eq!(none.faults.len(), 1);
    assert!(none.faults[0].remedy.contains("--format"), "{none:?}");
}

#[test]
fn secrets_in_other_places_and_folders_are_refused() {
    let text = r#"{ "mcpServers": {
      "a": { "url": "https://a.example/mcp?token=not-a-real-token" },
      "b": { "command": "${workspaceFolder}/run", "cwd": "${userHome}",
             "env": { "KEY": "not-a-real-${env:X}", "PLACE": "${userHome}" } } } }"#;
    let found = pasted("cursor", text);
    let places: Vec<_> = found.faults.iter().map(|fault| fault.place.as_str()).collect();
    let b = "mcpServers.b";
    let expected = [
        "mcpServers.a.url".to_owned(),
        format!("{b}.command"),
        format!("{b}.env.KEY"),
        format!("{b}.cwd"),
        format!("{b}.env.PLACE"),
    ];
    assert_eq!(places, expected);
    assert!(found.faults[1].message.contains("`${workspaceFolder}`"), "{:?}", found.faults);
    assert!(found.faults[4].message.contains("`${userHome}`"), "{:?}", found.faults);
}

/// Only in a header does `Bearer` stand in front of the secret; a variable is replaced whole.
#[test]
fn a_variable_with_the_name_of_the_header_is_replaced_whole() {
    let text = "[mcp_servers.docs]\ncommand = \"docs-server\"\n\n[mcp_servers.docs.env]\n\
                AUTHORIZATION = \"Bearer not-a-real-token-0123456789\"\n";
    let found = pasted("codex", text);
    assert_eq!(found.faults, []);
    let env = json!({ "AUTHORIZATION": "${DOCS_AUTHORIZATION}" });
    assert_eq!(values(&found)[0]["env"], env);
    assert!(has(&found.notices, "store it as the secret DOCS_AUTHORIZATION"));
}
