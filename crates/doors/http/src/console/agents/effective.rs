//! The merged view of an agent for people: each value with its level and those that it overrides.

use std::collections::BTreeSet;

use narthex_console::{
    pages::agents::{Effective, EffectiveKey, EffectiveServer},
    parts::{Words, form::Origin},
};
use serde_json::{Map, Value};

use super::values::{pieces, shown};

/// The part of a page for a merged view, and for a run on trial.
pub(super) fn effective(merged: &Value, run: Option<&Value>, sentence: &str) -> Effective {
    let servers = members(&merged["mcpServers"])
        .map(|(alias, one)| server(alias, one, run.map(|run| &run["mcpServers"][alias.as_str()])));
    Effective {
        sentence: Words::new(sentence),
        servers: servers.collect(),
        faults: faults(&merged["errors"]),
        run: None,
        run_faults: Vec::new(),
    }
}

/// The key of a server in a merged view.
pub(super) fn key<'m>(merged: &'m Value, alias: &str, key: &str) -> Option<&'m Value> {
    merged["mcpServers"].get(alias)?["config"].get(key)
}

/// The level of a value, then those that it overrides.
pub(super) fn chain(key: &Value) -> Vec<Origin> {
    let own = Origin::new(&level(&key["origin"]), &shown(&key["value"]));
    std::iter::once(own).chain(origins(&key["overrides"])).collect()
}

/// A level in words.
fn level(origin: &Value) -> String {
    let name = origin["name"].as_str().unwrap_or_default();
    match origin["level"].as_str() {
        Some("schema_default") => format!("the schema of the server {name}"),
        Some("default_config") => format!("the catalog entry {name}"),
        Some("capability") => format!("the capability {name}"),
        _ => format!("the agent {name}"),
    }
}

fn origins(all: &Value) -> Vec<Origin> {
    let one = |one: &Value| Origin::new(&level(&one["origin"]), &shown(&one["value"]));
    all.as_array().into_iter().flatten().map(one).collect()
}

fn server(alias: &str, merged: &Value, run: Option<&Value>) -> EffectiveServer {
    let text = |member: &str| merged[member].as_str();
    let mut about = vec![format!("the server {}", text("ref").unwrap_or_default())];
    about.extend(text("type").map(str::to_owned));
    about.extend(text("auth").map(|auth| format!("auth {auth}")));
    if merged["optional"] == true {
        about.push("optional: runs do without it".to_owned());
    }
    let keys = members(&merged["config"]);
    EffectiveServer {
        alias: Words::new(alias),
        about: Words::new(&about.join(", ")),
        keys: keys.map(|(name, key)| effective_key(name, key, run)).collect(),
        faults: faults(&merged["errors"]),
        warnings: faults(&merged["warnings"]),
    }
}

fn effective_key(name: &str, key: &Value, run: Option<&Value>) -> EffectiveKey {
    let carrier = match (key["header"].as_str(), key["env"].as_str()) {
        (Some(header), _) => Some(Words::new(&format!("the header {header}"))),
        (None, Some(variable)) => Some(Words::new(&format!("the variable {variable}"))),
        (None, None) => None,
    };
    EffectiveKey {
        name: Words::new(name),
        value: pieces(&key["value"]),
        is_removed: key["removed"] == true,
        from: Words::new(&level(&key["origin"])),
        carrier,
        losers: origins(&key["overrides"]),
        conflicts: origins(&key["conflicts"]),
        in_run: run.and_then(|run| in_run(name, run)),
    }
}

/// The value of a key in a run on trial, or the reason why it has none.
fn in_run(name: &str, run: &Value) -> Option<Words> {
    if let Some(key) = run["config"].get(name) {
        return Some(Words::new(&shown(&key["value"])));
    }
    let missing = run["omitted"].get(name)?["missing"].as_array()?;
    let missing: Vec<_> = missing.iter().filter_map(Value::as_str).collect();
    Some(Words::new(&format!("left out, since {} has no value", missing.join(" and "))))
}

/// Faults or warnings with their remedies.
pub(super) fn faults(all: &Value) -> Vec<Words> {
    let sentence = |fault: &Value| {
        let text = |member: &str| fault[member].as_str().unwrap_or_default();
        match (text("message"), text("remedy")) {
            (message, "") => Words::new(message),
            (message, remedy) => Words::new(&format!("{message}; {remedy}")),
        }
    };
    all.as_array().into_iter().flatten().map(sentence).collect()
}

/// The secrets that are not set, as the faults of a merged view name them.
pub(super) fn unset(merged: &Value) -> BTreeSet<&str> {
    let of_servers = members(&merged["mcpServers"]).map(|(_, one)| &one["errors"]);
    let all = of_servers.chain([&merged["errors"]]).filter_map(Value::as_array).flatten();
    all.filter_map(|fault| fault["secret"].as_str()).collect()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// O101: a value names its level, and each value that it overrides with the level of that one.
    #[test]
    fn o101_a_value_has_its_level_and_what_it_overrides() {
        let origin = |level: &str, name: &str| json!({ "level": level, "name": name });
        let key = json!({
            "value": "${scope.context_id}", "origin": origin("agent", "reader"), "removed": false,
            "overrides": [
                { "origin": origin("capability", "papers"), "value": "archive" },
                { "origin": origin("default_config", "docs"), "value": { "$secret": "KEY" } },
                { "origin": origin("schema_default", "docs"), "value": 7 },
            ],
            "conflicts": [], "header": "x-context-id",
        });
        let merged = json!({ "mcpServers": { "library": {
            "ref": "docs", "config": { "context_id": key }, "errors": [], "warnings": [],
        } }, "errors": [] });
        let run = json!({ "mcpServers": { "library": {
            "config": { "context_id": { "value": "ctx-9" } }, "omitted": {},
        } } });
        let shown = effective(&merged, Some(&run), "");
        let key = &shown.servers[0].keys[0];
        assert_eq!(key.from.as_str(), "the agent reader");
        let losers: Vec<_> =
            key.losers.iter().map(|one| format!("{} = {}", one.from, one.value)).collect();
        assert_eq!(
            losers,
            [
                "the capability papers = archive",
                "the catalog entry docs = ${KEY}",
                "the schema of the server docs = 7",
            ]
        );
        assert_eq!(key.in_run.as_ref().unwrap().as_str(), "ctx-9");
    }
}
