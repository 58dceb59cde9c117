//! The laws of edits on a file of each client of `clients.toml`.

#![cfg(test)]

use fs_err as fs;
use narthex_client_files::edit::{Document, Format, Parent, Undone};
use serde_json::Value;

/// The row of a client, with the path of its fixture.
struct Row {
    label: String,
    format: Format,
    parent: Parent,
    entry: Value,
    bytes: Vec<u8>,
}

fn rows() -> Vec<Row> {
    let folder = env!("CARGO_MANIFEST_DIR");
    let table: toml::Table =
        fs::read_to_string(format!("{folder}/clients.toml")).unwrap().parse().unwrap();
    let clients = table["client"].as_array().unwrap();
    clients.iter().map(|client| row(folder, client.as_table().unwrap())).collect()
}

fn row(folder: &str, client: &toml::Table) -> Row {
    let text = |key: &str| client[key].as_str().unwrap();
    let label = format!("{}-{}", text("id"), text("scope"));
    let (format, extension) = match text("format") {
        "json" => (Format::Json, "json"),
        "jsonc" => (Format::Jsonc, "jsonc"),
        "toml" => (Format::Toml, "toml"),
        "yaml" => (Format::Yaml, "yaml"),
        other => panic!("{label}: unknown format {other}"),
    };
    let keys = client["key"].as_array().unwrap().iter();
    let path = keys.map(|key| key.as_str().unwrap().replace("{folder}", "/home/ada/shop"));
    let name_key = client.get("name_field").and_then(|key| key.as_str()).map(str::to_owned);
    let entry = text(if text("connect") == "http" { "http_entry" } else { "stdio_entry" });
    let entry = entry
        .replace("{url}", "http://127.0.0.1:8080/mcp")
        .replace("{token_header}", "Bearer not-a-token")
        .replace("{narthex}", "/usr/bin/narthex")
        .replace("{name}", "narthex");
    let entry = Document::parse(format, entry.as_bytes())
        .unwrap_or_else(|error| panic!("{label}: {error}"));
    let entry = entry.value(&[]).unwrap().unwrap();
    let bytes = fs::read(format!("{folder}/tests/fixtures/{label}.{extension}")).unwrap();
    Row { label, format, parent: Parent::new(path.collect(), name_key), entry, bytes }
}

#[test]
fn an_entry_comes_and_goes_without_a_trace() {
    let rows = rows();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for Row { label, format, parent, entry, bytes } in rows {
        let before = Document::parse(format, &bytes).unwrap_or_else(|e| panic!("{label}: {e}"));
        let old = before.entries(&parent).unwrap();
        let mut document = before.clone();
        let change =
            document.insert(&parent, "narthex", &entry).unwrap_or_else(|e| panic!("{label}: {e}"));
        let new = document.entries(&parent).unwrap();
        let (last, others) = new.split_last().unwrap();
        assert_eq!((last.0.as_str(), others), ("narthex", old.as_slice()), "{label}");
        if !old.is_empty() {
            let mut removed = document.clone();
            removed.remove(&parent, "narthex").unwrap();
            assert!(removed.bytes() == bytes, "{label}: a removal does not lead back");
        }
        assert_eq!(document.undo(&change).unwrap(), Undone::Done, "{label}");
        assert!(document.bytes() == bytes, "{label}: an undo does not lead back");
        for (name, _) in old {
            let mut document = before.clone();
            let change = document.remove(&parent, &name).unwrap();
            assert_eq!(document.undo(&change).unwrap(), Undone::Done, "{label}");
            assert!(document.bytes() == bytes, "{label}: a removed entry does not come back");
        }
    }
}
