//! The array form, as code registers servers.

use super::*;

fn list(text: &str) -> Result<LoadedConfig, ConfigFileError> {
    parse_list(text.as_bytes(), &context())
}

/// E13: the name is inside each entry; everything else is as in the file.
#[test]
fn e13_each_entry_of_an_array_contains_its_name() {
    let text = r#"[
        {"name": "svc", "transport": "http", "url": "https://svc.test/mcp"},
        {"name": "key", "transport": "http", "url": "https://k.test/mcp",
         "auth": {"mode": "apiKey", "key": "${env:KEY}", "valuePrefix": "Bearer "}},
        {"name": "repo", "transport": "stdio", "command": "git-server"}
    ]"#;
    let config = list(text).unwrap();
    let names: Vec<&str> = config
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::Server(server) => server.alias.as_str(),
            Entry::Fault(fault) => panic!("{}", fault.error),
        })
        .collect();
    assert_eq!(names, ["svc", "key", "repo"]);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

/// E13, E117: a bad entry is a fault of its own; a name that occurs twice refuses the whole list.
#[test]
fn e13_bad_entries_are_faults_and_names_are_unique() {
    let config = list(
        r#"[{"transport": "http"}, 7, {"name": "ok", "transport": "stdio",
        "command": "x"}]"#,
    )
    .unwrap();
    let is_fault = |entry: &Entry| matches!(entry, Entry::Fault(_));
    assert_eq!(config.entries.iter().map(is_fault).collect::<Vec<_>>(), [true, true, false]);
    let twice = r#"[{"name": "a", "transport": "stdio", "command": "x"},
        {"name": "a", "transport": "stdio", "command": "y"}]"#;
    assert!(list(twice).unwrap_err().to_string().contains("servers[1].name"));
    assert!(!list("{}").unwrap_err().remedy().is_empty());
}
