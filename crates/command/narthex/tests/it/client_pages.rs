//! The pages of `docs/start` for clients: each way in that they show reaches a daemon.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
};

use fs_err as fs;
use serde_json::{Value, json};

use crate::{
    support::Place,
    world::{Client, initialize},
};

/// The address of the daemon in all pages: the default of `--listen`.
const ADDRESS: &str = "http://127.0.0.1:7717";

/// The page of each client, and the way in which the client gets the token.
const PAGES: [(&str, &str); 5] = [
    ("claude-code", "Bearer ${NARTHEX_CLIENT_TOKEN}"),
    ("claude-desktop", "Bearer nxt_…"),
    ("codex", "NARTHEX_CLIENT_TOKEN"),
    ("cursor", "Bearer ${env:NARTHEX_CLIENT_TOKEN}"),
    ("vs-code", "Bearer ${input:narthex-token}"),
];

fn start() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/start")
}

/// The blocks of a page in JSON and in TOML, in their order.
fn blocks(page: &str) -> Vec<Value> {
    let text = fs::read_to_string(start().join(page)).unwrap();
    let read = |part: &str| {
        let (language, block) = part.split_once('\n').unwrap();
        match language {
            "json" => Some(serde_json::from_str(block).unwrap()),
            "toml" => Some(toml::from_str(block).unwrap()),
            _ => None,
        }
    };
    // Every second part is inside a fence.
    text.split("\n```").skip(1).step_by(2).filter_map(read).collect()
}

/// The entry of narthex, under the key of any client.
fn entry(block: &Value) -> &Value {
    let entries = ["mcpServers", "servers", "mcp_servers"].map(|key| &block[key]["narthex"]);
    entries.into_iter().find(|entry| entry.is_object()).unwrap_or_else(|| panic!("{block}"))
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// The address in a block, and the way in which the client gets the token.
fn remote(block: &Value) -> (&str, &str) {
    let entry = entry(block);
    if entry["command"].is_string() {
        // A program in between: the value of its header comes from a variable.
        let words = words(&entry["args"]);
        let at = words.iter().position(|word| *word == "--header").unwrap();
        let variable = words[at + 1].strip_prefix("Authorization:${").unwrap();
        let told = &entry["env"][variable.strip_suffix('}').unwrap()];
        return (words[at - 1], told.as_str().unwrap());
    }
    let told = &entry["headers"]["Authorization"];
    let told = told.as_str().or_else(|| entry["bearer_token_env_var"].as_str());
    (entry["url"].as_str().unwrap(), told.unwrap())
}

/// Both snippets of each page are used as its client uses them.
#[tokio::test]
async fn each_client_reaches_the_daemon_in_both_ways() {
    let place = Place::new();
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let listening = daemon.event("listening");
    let address = listening["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let token = fs::read_to_string(listening["token_file"].as_str().unwrap()).unwrap();
    for (name, expected) in PAGES {
        let blocks = blocks(&format!("clients/{name}.md"));
        assert_eq!(blocks.len(), 2, "{name}");
        let program = entry(&blocks[0]);
        assert_eq!(program["command"], "narthex", "{name}");
        let done = place.feed(&words(&program["args"]), &[initialize(json!({}))]).succeeded();
        assert_eq!(done.lines()[0]["result"]["serverInfo"]["name"], "narthex", "{name}");
        let (url, told) = remote(&blocks[1]);
        assert_eq!(told, expected, "{name}");
        let path = url.strip_prefix(ADDRESS).unwrap();
        let mut client = Client::new(address.parse().unwrap(), path, token.trim());
        client.open_session(json!({})).await;
        // A client that asks for the token hides the typed text.
        if let Some(id) = told.strip_prefix("Bearer ${input:") {
            let question = &blocks[1]["inputs"][0];
            assert_eq!(question["id"], id.trim_end_matches('}'), "{name}");
            assert_eq!(question["password"], true, "{name}");
        }
    }
}

/// `narthex connect` does not read the variable of the pages as its token.
#[test]
fn the_variable_of_the_pages_keeps_no_program_out() {
    let place = Place::new();
    let _daemon = place.up();
    let token = fs::read_to_string(place.path("data/client.token")).unwrap();
    for (variable, code) in [("NARTHEX_CLIENT_TOKEN", 0), ("NARTHEX_TOKEN", 2)] {
        let mut command = place.command(["connect"]);
        let done = command.env(variable, token.trim()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{variable}: {done:?}");
    }
}

#[test]
fn each_page_of_a_client_is_known_and_linked() {
    let pages = fs::read_dir(start().join("clients")).unwrap().map(|entry| entry.unwrap().path());
    let pages: BTreeSet<_> =
        pages.map(|page| page.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(pages, PAGES.map(|(name, _)| name.to_owned()).into());
    let text = fs::read_to_string(start().join("connect-a-client.md")).unwrap();
    for name in pages {
        assert!(text.contains(&format!("](clients/{name}.md)")), "{name}");
    }
}

/// The page has the snippets of `narthex up`, with the usual address, program and folder.
#[test]
fn the_page_for_all_clients_shows_the_ways_that_up_prints() {
    let place = Place::new();
    let mut command = place.command(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut daemon = command.spawn().unwrap();
    let mut printed = String::new();
    for line in BufReader::new(daemon.stdout.take().unwrap()).lines().map_while(Result::ok) {
        printed += &(line.clone() + "\n");
        if line.contains("echo ") {
            break;
        }
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let header = printed.lines().next_back().unwrap();
    let told = std::process::Command::new("sh").args(["-c", header]).output().unwrap();
    let token = fs::read_to_string(place.path("data/client.token")).unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told, format!("Authorization: Bearer {}\n", token.trim()), "{printed}");
    let snippets: Vec<_> = printed.split("\n\n").filter(|part| part.starts_with('{')).collect();
    let [stdio] = snippets[..] else { panic!("{printed}") };
    let mut stdio: Value = serde_json::from_str(stdio).unwrap();
    let entry = &mut stdio["mcpServers"]["narthex"];
    assert!(entry["command"].as_str().unwrap().ends_with("/narthex"), "{entry}");
    let data = place.path("data");
    let usual = ["connect", "--data", data.to_str().unwrap()];
    assert_eq!(words(&entry["args"])[..3], usual, "{entry}");
    (entry["command"], entry["args"]) = (json!("narthex"), json!(["connect"]));
    let blocks = blocks("connect-a-client.md");
    assert_eq!(blocks[1], stdio);
    assert_eq!(remote(&blocks[0]), (&*format!("{ADDRESS}/mcp"), "Bearer nxt_…"));
}
