//! Tests of the reader: the fixture of each client, and arbitrary JSON.

use std::path::Path;

use fs_err as fs;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::clients::{Scope, Transport, clients};
use crate::edit::Format;

const SHAPES: [Shape; 22] = [
    Shape::Claude,
    Shape::ClaudeDesktop,
    Shape::Cursor,
    Shape::Vscode,
    Shape::VisualStudio,
    Shape::Windsurf,
    Shape::Codex,
    Shape::Gemini,
    Shape::Qwen,
    Shape::Cline,
    Shape::Roo,
    Shape::Zed,
    Shape::Goose,
    Shape::Continue,
    Shape::Opencode,
    Shape::Copilot,
    Shape::Junie,
    Shape::LmStudio,
    Shape::Kiro,
    Shape::AmazonQ,
    Shape::Warp,
    Shape::Crush,
];

/// The servers of the fixture of a row, as text: the entry, and its facts beside.
fn fixture(client: &Client) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let stem = client.label().replace('/', "-");
    let end = match client.format {
        Format::Json => "json",
        Format::Jsonc => "jsonc",
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    let bytes = fs::read(folder.join(format!("{stem}.{end}"))).unwrap();
    let document = Document::parse(client.format, &bytes).unwrap();
    let found = read(client, &document, "/home/ada/shop").unwrap();
    found.iter().map(described).collect()
}

fn described(found: &Found) -> String {
    match found {
        Found::Unusable { name, reason } => format!("{name}: cannot be used: {reason}\n"),
        Found::Server(server) => {
            let entry: Value = serde_json::from_str(server.entry().expose()).unwrap();
            let mut text = format!("{}: {entry}\n", server.name);
            if !server.secrets().is_empty() {
                text.push_str(&format!("  secrets: {}\n", server.secrets().join(", ")));
            }
            for placeholder in &server.placeholders {
                text.push_str(&format!("  {placeholder:?}\n"));
            }
            for LeftOut { field, words } in &server.left_out {
                text.push_str(&format!("  without `{field}`: {words}\n"));
            }
            text
        }
    }
}

/// The reader's result for each fixture is a file that people can read.
#[test]
fn each_fixture_is_read_as_recorded() {
    let mut all = String::new();
    for client in clients() {
        all.push_str(&format!("# {}\n{}\n", client.label(), fixture(client)));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read-fixtures.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &all).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    for (recorded, now) in recorded.lines().zip(all.lines()) {
        assert_eq!(now, recorded, "tests/read-fixtures.txt; UPDATE_GOLDEN=1 renews it");
    }
    assert_eq!(all.lines().count(), recorded.lines().count(), "UPDATE_GOLDEN=1 renews it");
}

/// Each fixture has servers that can be used, and each client's secrets are found: the fixtures
/// mark them with `not-a-real`.
#[test]
fn secrets_of_fixtures_are_marked() {
    for client in clients() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let stem = client.label().replace('/', "-");
        let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let path = files.find(|path| path.file_stem().unwrap() == stem.as_str()).unwrap();
        let document = Document::parse(client.format, &fs::read(path).unwrap()).unwrap();
        let found = read(client, &document, "/home/ada/shop").unwrap();
        let servers: Vec<_> = found
            .iter()
            .filter_map(|found| match found {
                Found::Server(server) => Some(server),
                Found::Unusable { .. } => None,
            })
            .collect();
        assert!(!servers.is_empty(), "{stem}");
        for server in servers {
            assert!(!format!("{server:?}").contains("not-a-real"), "{stem} {}", server.name);
            assert!(!server.starts().contains("not-a-real"), "{stem} {}", server.name);
            for (place, text) in server.texts() {
                let is_marked = text.expose().contains("not-a-real");
                assert!(!is_marked || text.is_secret(), "{stem} {}: {place}", server.name);
            }
        }
    }
}

fn server(shape: Shape, entry: &Value) -> FoundServer {
    match read_entry(shape, "s", entry, false) {
        Some(Found::Server(server)) => *server,
        other => panic!("{other:?}"),
    }
}

fn reason(shape: Shape, entry: &Value) -> String {
    match read_entry(shape, "s", entry, false) {
        Some(Found::Unusable { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn transports_follow_words_and_fields() {
    let url = "https://a.example/mcp";
    for (shape, entry, transport) in [
        (Shape::Claude, json!({ "type": "streamable-http", "url": url }), Transport::Http),
        (Shape::Claude, json!({ "type": "sse", "url": url }), Transport::Sse),
        (Shape::Gemini, json!({ "url": url }), Transport::Sse),
        (Shape::Gemini, json!({ "httpUrl": url, "url": "x", "command": "y" }), Transport::Http),
        (Shape::Gemini, json!({ "type": "http", "url": url }), Transport::Http),
        (Shape::Cline, json!({ "url": url }), Transport::Sse),
        (Shape::Cline, json!({ "url": url, "transportType": "http" }), Transport::Http),
        (Shape::Cursor, json!({ "command": "x", "url": url }), Transport::Stdio),
        (Shape::Goose, json!({ "type": "streamable_http", "uri": url }), Transport::Http),
        (Shape::Opencode, json!({ "type": "remote", "url": url }), Transport::Http),
    ] {
        assert_eq!(server(shape, &entry).transport(), transport, "{entry}");
    }
    for (shape, entry, words) in [
        (Shape::Claude, json!({ "type": "ws", "url": url }), "no transport `ws`"),
        (Shape::Claude, json!({}), "neither a program nor an address"),
        (Shape::Claude, json!({ "command": "" }), "neither a program nor an address"),
        (Shape::Vscode, json!({ "url": "unix:///a.sock" }), "neither `http://` nor `https://`"),
        (Shape::Claude, json!({ "command": "x", "args": "y" }), "`args` is not a list"),
        (Shape::Claude, json!({ "command": "x", "env": { "A": [] } }), "`env.A` is not a text"),
        (Shape::Claude, json!("x"), "not a map of keys"),
    ] {
        assert!(reason(shape, &entry).contains(words), "{entry}: {}", reason(shape, &entry));
    }
}

#[test]
fn times_have_the_unit_of_their_client() {
    let entry = |time: Value| json!({ "command": "x", "timeout": time });
    assert_eq!(server(Shape::Claude, &entry(json!(1500))).timeout_ms, Some(1500));
    assert_eq!(server(Shape::Zed, &entry(json!(1.5))).timeout_ms, Some(1500));
    let long = server(Shape::Roo, &entry(json!(3600)));
    assert_eq!(long.timeout_ms, Some(600_000));
    assert_eq!(long.left_out[0].field, "timeout");
    for odd in [json!(0), json!(-1), json!("5s"), json!(null), json!(1e300)] {
        let time = server(Shape::Claude, &entry(odd.clone())).timeout_ms;
        assert!(time.is_none_or(|ms| ms == 600_000), "{odd}");
    }
}

#[test]
fn tool_lists_become_rules() {
    let lists = |shape, entry: Value| server(shape, &entry).tools;
    let tools = lists(
        Shape::Gemini,
        json!({ "command": "x", "includeTools": ["a"],
        "excludeTools": ["b"] }),
    );
    assert_eq!((tools.allow, tools.deny), (Some(vec!["a".to_owned()]), vec!["b".to_owned()]));
    let copilot = |tools: Value| lists(Shape::Copilot, json!({ "command": "x", "tools": tools }));
    assert_eq!(copilot(json!(["*"])).allow, None);
    assert_eq!(copilot(json!([])).allow, Some(Vec::new()));
    let goose = json!({ "cmd": "x", "type": "stdio", "enabled": true, "available_tools": [] });
    assert_eq!(lists(Shape::Goose, goose).allow, None);
}

/// The entry in narthex's own form has each setting that it knows.
#[test]
fn an_entry_has_all_settings() {
    let found = server(
        Shape::Codex,
        &json!({
            "command": "x", "args": ["a", 1], "env": { "A": "b", "N": 2 }, "cwd": "sub",
            "tool_timeout_sec": 2, "startup_timeout_ms": 1500, "enabled": false,
            "enabled_tools": ["t"], "disabled_tools": ["u"], "env_vars": ["V"], "url": "unused",
        }),
    );
    let entry: Value = serde_json::from_str(found.entry().expose()).unwrap();
    let expected = json!({
        "transport": "stdio", "command": "x", "args": ["a", "1"],
        "env": { "A": "b", "N": "2", "V": "${env:V:-}" }, "cwd": "sub", "timeoutMs": 2000,
        "mountTimeout": "1500ms", "tools": { "allow": ["t"], "deny": ["u"] }, "disabled": true,
    });
    assert_eq!(entry, expected);
    let left_out =
        |field: &str, words: &str| LeftOut { field: field.to_owned(), words: words.to_owned() };
    assert_eq!(found.left_out, [left_out("url", "the transport does not use it")]);
}

#[test]
fn a_start_is_shown_word_by_word_without_secrets() {
    let entry = json!({ "command": "sh", "args": ["-c", "a  b", "", "--key", "k1", "c\nd"] });
    let starts = server(Shape::Cursor, &entry).starts();
    assert_eq!(starts, r#"sh -c "a  b" "" --key [hidden] "c\nd""#);
    let entry = json!({ "command": "tool0123456789abcdef" });
    assert_eq!(server(Shape::Cursor, &entry).starts(), "tool0123456789abcdef");
    // The placeholders are those of the file.
    for folder in ["${workspaceFolder}", "${workspaceRoot}"] {
        let args = [format!("{folder}/x"), "${userHome}".to_owned(), "${env:A}".to_owned()];
        let starts = server(Shape::Cursor, &json!({ "command": "x", "args": args })).starts();
        assert_eq!(starts, format!("x {folder}/x ${{userHome}} ${{env:A}}"));
    }
    // The words are spelled as in the file, also where two spellings mean the same.
    let args = ["${workspaceFolder}/a", "${workspaceRoot}/b", "${env:HOME}/c", "${userHome}/d e"];
    let found = server(Shape::Cursor, &json!({ "command": "x", "args": args }));
    let [one, two, three, _] = args;
    assert_eq!(found.starts(), format!(r#"x {one} {two} {three} "${{userHome}}/d e""#));
    // With the folder filled in, its path is shown.
    let found = found.in_folder(std::path::Path::new("/srv/p")).unwrap();
    let expected = format!(r#"x /srv/p/a /srv/p/b {three} "${{userHome}}/d e""#);
    assert_eq!(found.starts(), expected);
    let entry = json!({ "command": "x", "args": ["--key", "${env:HOME}k1", "${userHome}"] });
    let found = server(Shape::Cursor, &entry);
    assert!(!format!("{:?}", found.spelled).contains("k1"), "{found:?}");
    let entry = json!({ "url": "${env:HOST}/${workspaceFolder}" });
    let expected = "${env:HOST}/${workspaceFolder}";
    assert_eq!(server(Shape::Cursor, &entry).starts(), expected);
    let entry = json!({ "url": "https://a.example/mcp?token=k1" });
    assert_eq!(server(Shape::Cursor, &entry).starts(), "https://a.example/[hidden]");
    // A `\` ends the host, so the text after it is a path.
    let entry = json!({ "url": r"https://evil.example\@a.example/mcp?token=k1" });
    assert_eq!(server(Shape::Cursor, &entry).starts(), "https://evil.example/[hidden]");
}

/// A placeholder of another client is named with its place, in clients that fill in none.
#[test]
fn placeholders_of_other_clients_are_no_secrets() {
    let goose = json!({ "type": "stdio", "cmd": "x", "envs": { "THK_API_KEY": "${env:THK}" } });
    let found = server(Shape::Goose, &goose);
    assert!(found.secrets().is_empty() && found.nameable_secrets().is_empty());
    let (place, text) = ("envs.THK_API_KEY".to_owned(), "${env:THK}".to_owned());
    assert!(found.placeholders.contains(&Placeholder::Unfilled { place, text }));
    let url = "https://a.example/mcp";
    let headers = json!({ "Authorization": "Bearer ${THK}" });
    let remote = json!({ "url": url, "requestOptions": { "headers": headers } });
    let found = server(Shape::Continue, &remote);
    assert!(found.secrets().is_empty());
    let (place, text) = ("headers.Authorization".to_owned(), "${THK}".to_owned());
    assert!(found.placeholders.contains(&Placeholder::Unfilled { place, text }));
    let notations = [Shape::Goose, Shape::Continue, Shape::Vscode, Shape::Opencode, Shape::Claude];
    assert_eq!(
        notations.map(variable_notation),
        [None, None, Some("${env:NAME}"), Some("{env:NAME}"), Some("${NAME}")]
    );
}

#[test]
fn relative_paths_are_noticed() {
    for (entry, is_relative) in [
        (json!({ "command": "./tool" }), true),
        (json!({ "command": "bin/tool" }), true),
        (json!({ "command": "tool", "cwd": "sub" }), true),
        (json!({ "command": "~/bin/tool" }), true),
        (json!({ "command": "$HOME/bin/tool" }), true),
        (json!({ "command": "tool", "cwd": "~" }), true),
        (json!({ "command": "${userHome}/bin/tool" }), false),
        (json!({ "command": "tool", "args": ["./a"] }), false),
        (json!({ "command": "/bin/tool", "cwd": "${workspaceFolder}" }), false),
        (json!({ "url": "https://a.example/mcp" }), false),
    ] {
        assert_eq!(server(Shape::Cursor, &entry).has_relative_path(), is_relative, "{entry}");
    }
}

#[test]
fn rows_and_shapes_cover_each_other() {
    for shape in SHAPES {
        assert!(clients().iter().any(|client| client.shape == shape), "{shape:?}");
    }
    assert!(clients().iter().any(|client| client.scope == Scope::Local));
}

/// Any JSON value, with the keys that readers look for.
fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop_oneof![
        "[a-zA-Z_]{0,12}",
        Just("command".to_owned()),
        Just("args".to_owned()),
        Just("env".to_owned()),
        Just("url".to_owned()),
        Just("type".to_owned()),
        Just("transport".to_owned()),
        Just("headers".to_owned()),
        Just("requestOptions".to_owned()),
        Just("timeout".to_owned()),
        Just("tools".to_owned()),
        Just("env_vars".to_owned()),
        Just("env_http_headers".to_owned()),
        Just("mcp".to_owned()),
        Just("servers".to_owned()),
        Just("mcpServers".to_owned()),
    ];
    let texts = prop_oneof![
        ".{0,20}",
        "[${}:a-zA-Z(){-]{0,24}",
        Just("http".to_owned()),
        Just("stdio".to_owned()),
        Just("https://a.example/mcp".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        texts.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No value makes a reader panic, and each server that is read can be written.
    #[test]
    fn any_json_is_read_without_a_panic(value in any_json(), name in ".{0,8}") {
        for shape in SHAPES {
            if let Some(Found::Server(server)) = read_entry(shape, &name, &value, false) {
                let entry: Value = serde_json::from_str(server.entry().expose()).unwrap();
                prop_assert!(entry["transport"].is_string());
                prop_assert_eq!(server.differences(&server), [""; 0]);
                prop_assert!(server.texts().iter().all(|(place, _)| !place.is_empty()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No file makes a reader panic.
    #[test]
    fn any_file_is_read_without_a_panic(value in any_json()) {
        let text = value.to_string();
        for client in clients() {
            let format = match client.format {
                Format::Json | Format::Jsonc => client.format,
                // JSON is YAML, too.
                Format::Yaml => Format::Yaml,
                Format::Toml => continue,
            };
            if let Ok(document) = Document::parse(format, text.as_bytes()) {
                // A fault of the file is an error, which has its words.
                if let Err(error) = read(client, &document, "/f") {
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
