//! `narthex servers definitions`, `accept` and `reject` with a real daemon, and a program whose
//! tools change.

use serde_json::{Value, json};

use crate::support::{Done, Place};

/// A server in a few lines of shell, which lists the tools of a file.
const SCRIPT: &str = r#"
info='"capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"3"}'
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    case "$line" in
    *'"initialize"'*) answer "\"result\":{\"protocolVersion\":\"2025-11-25\",$info}" ;;
    *'"tools/list"'*) answer "\"result\":{\"tools\":$(cat "$1")}" ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no"}' ;;
    esac
done
"#;

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

fn lists(place: &Place, description: &str) {
    let tool = json!({ "name": "say", "description": description,
                       "inputSchema": { "type": "object" } });
    place.write("tools.json", &json!([tool]).to_string());
}

/// The definitions that a new run is warned of.
fn begins(place: &Place) -> Vec<String> {
    let begun = data(place.run(["runs", "create", "--agent", "speaker", "--json"]));
    let warnings = begun["warnings"].as_array().unwrap().iter();
    warnings.map(|warning| warning.as_str().unwrap().to_owned()).collect()
}

/// S23, D10: a program whose definition changes after the first look is put under review. The
/// change is shown without characters that move a cursor, and accepted by name or by digest.
#[test]
fn s23_a_changed_definition_is_shown_and_accepted() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    lists(&place, "Says hello");
    // In a file, so that nothing in it is taken for a placeholder.
    place.write("server.sh", SCRIPT);
    let args = ["server.sh", "tools.json"].map(|name| place.path(name).display().to_string());
    let server = json!({ "id": "shell", "command": "sh", "args": args });
    place.pipe(&["servers", "apply", "-f", "-"], &server.to_string()).succeeded();
    let agent = json!({ "name": "speaker", "mcpServers": { "shell": { "ref": "shell" } } });
    place.pipe(&["agents", "apply", "-f", "-"], &agent.to_string()).succeeded();
    let definitions = ["servers", "definitions", "shell"];
    assert!(place.run(definitions).succeeded().stdout.contains("was never listed"));
    assert!(begins(&place).is_empty());
    let listed = place.run(definitions).succeeded().stdout;
    assert!(listed.contains("say") && listed.contains("pinned"), "{listed}");
    place.run(["servers", "accept", "shell", "say"]).failed(1, &["not_found", "say"]);
    place.run(["servers", "accept", "shell"]).failed(2, &["NAME"]);

    lists(&place, "Says good\u{1b}[2K\u{202e}bye");
    let warned = begins(&place);
    assert!(warned.len() == 1 && warned[0].contains("narthex servers definitions"), "{warned:?}");
    let shown = place.run([&definitions[..], &["--quarantined"]].concat()).succeeded().stdout;
    for text in ["changed", "/description", "- Says hello", "+ Says good"] {
        assert!(shown.contains(text), "{shown}");
    }
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    // The definition that came after it is another one: a name is no longer enough.
    lists(&place, "Says good day");
    assert_eq!(begins(&place).len(), 1);
    place.run(["servers", "accept", "shell", "say"]).failed(1, &["conflict", "--digest"]);
    let waiting = data(place.run([&definitions[..], &["--quarantined", "--json"]].concat()));
    let day = waiting["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["text"].as_str().unwrap().contains("good day"));
    let digest = &day.unwrap()["digest"].as_str().unwrap()[..12];
    let accepted = place.run(["servers", "accept", "shell", "--digest", digest]).succeeded();
    assert!(accepted.stdout.contains("accepted 1"), "{}", accepted.stdout);
    assert!(begins(&place).is_empty());
    // A definition that is not under review stays.
    let rejected = data(place.run(["servers", "reject", "shell", "--all", "--json"]));
    assert_eq!(rejected["items"].as_array().unwrap().len(), 1, "{rejected}");
    assert!(begins(&place).is_empty());
    place.run(["servers", "reject", "shell", "--digest", digest]).succeeded();
    assert_eq!(begins(&place).len(), 1);
    // And a rejection can be taken back.
    place.run(["servers", "accept", "shell", "--digest", digest]).succeeded();
    assert!(begins(&place).is_empty());
}

/// S23, D10: the same for a program of `mcp.json` whose entry pins its definitions. The status
/// shows a definition under review, and the tools lack it until a human has accepted it.
#[test]
fn s23_a_changed_definition_of_a_live_program_is_shown_and_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.sh");
    fs_err::write(&script, SCRIPT).unwrap();
    let tools = folder.path().join("tools.json");
    let says = |description: &str| {
        let tool = json!([{ "name": "say", "description": description,
                            "inputSchema": { "type": "object" } }]);
        fs_err::write(&tools, tool.to_string()).unwrap();
    };
    says("Says hello");
    let place = Place::with(&json!({ "shell": {
        "transport": "stdio", "command": "sh", "args": [script, tools], "pinDefinitions": true,
    } }));
    let _daemon = place.up();
    let shown = place.run(["servers", "definitions", "shell", "--live"]).succeeded().stdout;
    assert!(shown.contains("say") && shown.contains("pinned"), "{shown}");
    place.run(["servers", "definitions", "shell", "--catalog"]).failed(1, &["not_found", "shell"]);

    says("Says good bye");
    place.run(["mcp", "reconnect", "shell"]).succeeded();
    let status = place.run(["status"]).succeeded().stdout;
    assert!(status.contains("1 of its definitions are under review"), "{status}");
    let tools = place.run(["tools"]).succeeded().stdout;
    assert!(!tools.contains("Says hello") && !tools.contains("Says good bye"), "{tools}");
    let shown = place.run(["servers", "definitions", "shell", "--quarantined"]);
    let shown = shown.succeeded().stdout;
    for text in ["changed", "- Says hello", "+ Says good bye"] {
        assert!(shown.contains(text), "{shown}");
    }
    place.run(["servers", "accept", "shell", "say", "--live"]).succeeded();
    assert!(place.run(["tools"]).succeeded().stdout.contains("Says good bye"));
    let status = place.run(["status"]).succeeded().stdout;
    assert!(!status.contains("under review"), "{status}");
}
