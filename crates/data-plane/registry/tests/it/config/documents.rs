//! The file as a whole, and whole files from the wild.

use std::time::Duration;

use narthex_model::{ErrorKind, ServerAuth};
use narthex_registry::config::{FileProblem, load_file};

use super::*;

#[track_caller]
fn assert_file_refused(text: &str, parts: &[&str]) -> ConfigFileError {
    let error = load(text).unwrap_err();
    let message = error.to_string();
    assert!(!error.remedy().is_empty() && message.ends_with(error.remedy()), "{message}");
    assert!(message.starts_with("/repo/mcp.json: "), "{message}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for part in parts {
        assert!(message.contains(part), "{text}: `{part}` is not in: {message}");
    }
    error
}

const PROJECT: &str = r#"{ "servers": {
  "tracing": { "transport": "http", "url": "https://mcp.tracing.test/mcp",
    "auth": { "mode": "authorizationCode", "scopes": ["mcp:read"] } },
  "billing": { "transport": "http", "url": "https://api.billing.test/mcp",
    "auth": { "mode": "apiKey", "headerName": "X-Api-Key" }, "timeoutMs": 45000 },
  "open": { "transport": "http", "url": "http://127.0.0.1:9000/mcp" },
  "repo": { "transport": "stdio", "command": "npx",
    "args": ["-y", "some-git-server", "--repository", "${workspaceRoot}", "--cache",
             "${env:HOME}/c"],
    "env": { "LOG": "warn" } } } }"#;

/// E9, E14, E112, E113: the project file of document 001, in its order and without a warning.
#[test]
fn e9_a_project_file_loads_in_its_order() {
    let config = load(PROJECT).unwrap();
    assert_eq!(config.warnings, []);
    let servers: Vec<ServerDefinition> = config.entries.into_iter().map(server).collect();
    let names: Vec<&str> = servers.iter().map(|server| server.alias.as_str()).collect();
    assert_eq!(names, ["tracing", "billing", "open", "repo"]);
    let auth = |server: &ServerDefinition| match &server.target {
        Target::Http(http) => http.auth.clone(),
        Target::Stdio(_) => ServerAuth::None,
    };
    assert_eq!(auth(&servers[0]).mode(), "authorizationCode");
    assert_eq!(auth(&servers[1]).mode(), "apiKey");
    assert_eq!(auth(&servers[2]), ServerAuth::Unstated);
    assert_eq!(servers[1].timeout, Some(Duration::from_secs(45)));
    let Target::Stdio(repo) = &servers[3].target else { panic!("repo is stdio") };
    let args = ["-y", "some-git-server", "--repository", "/repo", "--cache", "/home/ada/c"];
    assert_eq!(repo.args, args);
    assert_eq!(repo.env["LOG"].expose(), "warn");
}

/// E11: an entry of the settings file is the same as one of a project file.
#[test]
fn e11_a_settings_file_holds_entries_of_the_same_shape() {
    let text = br#"{ "editor": 1, "mcp": { "servers": { "tickets": { "transport": "http",
        "url": "https://mcp.tickets.test/sse", "auth": { "mode": "authorizationCode" } } } } }"#;
    let config = parse_settings(text, &context()).unwrap();
    assert_eq!(config.warnings, []);
    assert_eq!(config.entries.len(), 1);
}

/// E117, E120: in a settings file a fault never stops the rest, and a bad entry is not lost.
#[test]
fn e120_faulty_parts_of_a_settings_file_are_warnings_or_rows() {
    for text in ["{\"mcp\": []}", "{\"mcp\": {\"servers\": 7}}"] {
        let config = parse_settings(text.as_bytes(), &context()).unwrap();
        assert!(config.entries.is_empty() && config.warnings.len() == 1, "{text}");
    }
    let text = br#"{ "mcp": { "servers": { "bad": 1,
        "good": { "transport": "stdio", "command": "true", "name": "other" } } } }"#;
    let config = parse_settings(text, &context()).unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    let Entry::Fault(fault) = &config.entries[0] else { panic!("{:?}", config.entries) };
    let message = &fault.error.message;
    assert!(message.contains("`mcp.servers.bad`: expected an object"), "{message}");
    assert_eq!(server(config.entries[1].clone()).alias.as_str(), "good");
    assert_warned(&warnings, &["mcp.servers.good.name", "its key, `good`"]);
    assert!(parse_settings(b"{}", &context()).unwrap().entries.is_empty());
}

/// E114, E120: an entry of the settings whose variable is not set is a fault that names it.
#[test]
fn e114_a_settings_entry_with_an_unset_variable_is_a_fault() {
    let text = br#"{ "mcp": { "servers": { "envy": { "transport": "stdio", "command": "true",
        "env": { "K": "${env:NOT_SET_HERE}" } } } } }"#;
    let config = parse_settings(text, &context()).unwrap();
    let [Entry::Fault(fault)] = &config.entries[..] else { panic!("{:?}", config.entries) };
    assert_eq!((fault.name.as_str(), &config.warnings[..]), ("envy", &[][..]));
    for part in ["mcp.servers.envy.env.K", "`NOT_SET_HERE` is not set; set it before"] {
        assert!(fault.error.message.contains(part), "{part}: {fault:?}");
    }
}

#[test]
fn e109_an_unknown_top_level_key_is_named_with_the_nearest_known_one() {
    assert_file_refused(r#"{ "servers": {}, "severs": {} }"#, &["`severs`", "`servers`?"]);
    assert_file_refused(r#"{ "severs": {} }"#, &["`severs`", "did you mean `servers`?"]);
    assert_file_refused(r#"{ "mcpservers": {} }"#, &["did you mean `mcpServers`?"]);
    assert_file_refused(r#"{ "servers": {}, "zzz": 1, "yyy": 2 }"#, &["`zzz`, `yyy`"]);
    assert_file_refused(r#"{ "servers": {}, "inputs": [] }"#, &["`inputs`", "`mcpServers`"]);
    let profiles = r#"{ "servers": {}, "profiles": {} }"#;
    assert_file_refused(profiles, &["`profiles`", "settings.json", "`mcp.profiles`"]);
    assert_file_refused(r#"{ "mcp": { "servers": {} } }"#, &["settings file"]);
}

#[test]
fn e110_a_file_without_servers_is_refused() {
    let error = assert_file_refused("{}", &["`servers` is missing"]);
    assert_eq!(error.problem(), &FileProblem::MissingServers);
    assert_file_refused("[]", &["an array"]);
    assert_file_refused("null", &["null"]);
    assert_file_refused(r#"{"servers": []}"#, &["`servers` must be an object, not an array"]);
    assert_file_refused(
        r#"{"mcpServers": "x"}"#,
        &["`mcpServers` must be an object, not a string"],
    );
}

/// C24: the two documents are never mixed.
#[test]
fn c24_a_file_with_both_kinds_of_servers_is_refused() {
    assert_file_refused(r#"{ "servers": {}, "mcpServers": {} }"#, &["both", "keep one"]);
}

/// E9: people write comments, and a comma behind the last element.
#[test]
fn e9_comments_and_last_commas_are_read() {
    let text = r#"{ // mine
        "servers": { /* one */
            "a": { "transport": "stdio", "command": "x", "args": ["//", ], },
        },
    }"#;
    let loaded = load(text).unwrap();
    assert_eq!(loaded.entries.len(), 1);
    assert!(matches!(&loaded.entries[0], Entry::Server(_)), "{:?}", loaded.entries);
}

/// E118: the place where the text stops being JSON, and the remedy.
#[test]
fn e118_a_file_that_is_no_json_names_line_column_and_remedy() {
    for (text, parts) in [
        ("", &["line 1, column 0", "ends too early"][..]),
        ("{\n  \"servers\": {\n", &["line 3", "ends too early"]),
        ("{\n  \"servers\": {},,\n}", &["line 2"]),
        ("{\n  # hello\n}", &["line 2, column 3", "no such comment"]),
        ("{\n  // it's {\n  \"a\": 1,\n  b: 2,\n}", &["line 4, column 3", "double quotes"]),
        ("{ 'servers': {} }", &["line 1, column 3", "double quotes"]),
        ("{ servers: {} }", &["line 1, column 3", "double quotes"]),
        ("{\"servers\": {}} x", &["column 17", "nothing after it"]),
        ("{\"servers\": {\"a\": nul}}", &["correct the text"]),
    ] {
        assert_file_refused(text, parts);
    }
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert_file_refused(&deep, &["use fewer levels"]);
    let error = parse(b"{\"servers\": {\"\xff\": 1}}", &context()).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

#[test]
fn e118_a_byte_order_mark_is_no_fault_and_too_much_text_is() {
    assert!(load("\u{feff}{\"servers\": {}}").is_ok());
    let long = format!("{{\"servers\": {{}}{}}}", " ".repeat(5 << 20));
    assert_file_refused(&long, &["longer than"]);
}

/// JSON readers disagree about such keys, so a person could approve one value while another runs.
#[test]
fn e110_a_duplicate_key_is_refused_with_its_path() {
    for (text, path) in [
        (r#"{"servers": {}, "servers": {}}"#, "`servers`"),
        (r#"{"servers": {"a": {}, "b": {}, "a": {}}}"#, "`servers.a`"),
        (r#"{"servers": {"a": {"env": {"X": "1", "X": "2"}}}}"#, "`servers.a.env.X`"),
        (r#"{"servers": {"a": {"args": [1, {"k": 1, "\u006b": 2}]}}}"#, "`servers.a.args[1].k`"),
        (r#"{"mcpServers": {"My Server": {"url": "", "url": ""}}}"#, "[\"My Server\"].url`"),
    ] {
        assert_file_refused(text, &[path, "twice"]);
    }
}

/// E123: a caller can distinguish a missing file from a broken one.
#[test]
fn e123_a_missing_file_is_of_kind_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    let error = load_file(&path, folder.path(), &env).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.file(), path);
    assert!(error.to_string().contains("create it"), "{error}");
    fs_err::write(&path, PROJECT).unwrap();
    assert_eq!(load_file(&path, folder.path(), &env).unwrap().entries.len(), 4);
}

#[test]
fn e118_a_link_to_an_endless_file_or_a_folder_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for path in [Path::new("/dev/zero"), folder.path()] {
        let error = load_file(path, folder.path(), &env).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("readable for this user"), "{error}");
    }
}

/// E117: one bad entry is a fault, the rest works.
#[test]
fn e117_a_faulty_entry_does_not_affect_other_entries() {
    let config = load(
        r#"{ "servers": { "a": { "transport": "stdio", "command": "true" },
             "b": { "transport": "http" }, "C": 1,
             "d": { "transport": "http", "url": "https://d.test" } } }"#,
    )
    .unwrap();
    let kinds: Vec<bool> =
        config.entries.iter().map(|entry| matches!(entry, Entry::Server(_))).collect();
    assert_eq!(kinds, [true, false, false, true]);
}

/// The file that the documentation starts with.
#[test]
fn e9_the_example_file_loads_without_a_warning() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/mcp.json"));
    let config = load_file(path, Path::new("/repo"), &env).unwrap();
    assert_eq!(config.warnings, []);
    let names: Vec<String> =
        config.entries.into_iter().map(|entry| server(entry).alias.to_string()).collect();
    assert_eq!(names, ["everything", "filesystem", "memory", "git", "time"]);
}
