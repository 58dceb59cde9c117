//! One entry of the catalog, as it is stored.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::catalog::{CatalogEntryPage, Key, Written},
    parts::{Moment, Same, Words},
};
use narthex_control::{CatalogObject, CatalogUser};
use narthex_model::{CatalogKind, command::narthex};
use serde_json::{Map, Value};

use super::{
    draft::Draft,
    paths::{CHANGE, path, row, sees_all},
    value::{is_literal, visible},
};
use crate::{
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        links::Links,
        viewer::Viewer,
    },
    problem::Problem,
    servers::server_definition,
};

/// The text in place of a literal value of a hidden key.
const HIDDEN: &str = "a literal value, which no page shows";
/// Number of keys in the table, which keeps the page under 100 KB.
const KEYS: usize = 200;
/// Maximum number of characters of the entry as JSON.
const DEFINITION_MAX: usize = 30_000;

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["done"])?;
    let id = viewer.segment(0);
    let all = viewer.control().catalog_servers(&viewer.workspace).await?;
    let object = match all.servers.iter().find(|object| object.id == id) {
        Some(object) => object.clone(),
        // The refusal is that of the API.
        None => stored(viewer, &id).await?,
    };
    let users = all.users.get(&object.id).map_or(&[][..], Vec::as_slice);
    let sentence = match query.text("done") {
        "saved" if users.is_empty() => Some(format!(
            "{} is saved. Attach it to an agent or a capability: its runs start it.",
            object.id
        )),
        "saved" => Some(format!("{} is saved.", object.id)),
        "enabled" => Some(format!("{} is enabled: runs that begin from now on get it.", object.id)),
        "added" => Some(format!("{} is in the catalog as a draft: enable it below.", object.id)),
        _ => None,
    };
    let told = sentence.map(|text| Told { sentence: Words::new(&text), is_failure: false });
    page(viewer, &object, users, told).await
}

/// The stored object.
pub(super) async fn stored(viewer: &Viewer<'_>, id: &str) -> Result<CatalogObject, Problem> {
    let kind = CatalogKind::Server;
    Ok(viewer.control().catalog_get(&viewer.workspace, kind, id).await?)
}

async fn page(
    viewer: &Viewer<'_>,
    object: &CatalogObject,
    users: &[CatalogUser],
    told: Option<Told>,
) -> Answered {
    let id = &object.id;
    let command = narthex("servers get {}", &[id]).in_workspace(&viewer.workspace);
    let request = format!("GET /api/workspaces/{}/mcp-servers/{id}", viewer.workspace);
    let head = Head {
        title: Words::within(id, 100),
        sentence: "An entry of the catalog. A change counts for runs that begin after it.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told;
    let of_it = &[("server", &**id)];
    let related = Links::of(viewer).agents("Agents that attach it", of_it);
    let related = related.capabilities("Capabilities that attach it", of_it);
    frame.related = related.audit("Its changes", &[("resource", id)]).found();
    let definition = server_definition(object, sees_all(viewer));
    let draft = Draft::of_definition(&definition);
    let shown = shown(definition, &draft);
    let may_change = viewer.may(CHANGE);
    let faults = if sees_all(viewer) { &object.errors[..] } else { &[] };
    let page = CatalogEntryPage {
        frame,
        row: row(viewer, object, users),
        description: Words::new(&draft.description),
        keys: keys(&shown),
        is_closed: shown.get("config_schema").is_some(),
        faults: faults.iter().map(|fault| Words::new(&fault.to_string())).collect(),
        definition: cut(&visible(&format!("{shown:#}"))),
        written: Written {
            revision: object.revision,
            at: Moment::new(object.updated_at),
            by: Words::within(&object.updated_by, 100),
        },
        edit: may_change.then(|| path(viewer, id, "edit")),
        remove: may_change.then(|| path(viewer, id, "remove")),
        back: viewer.path("catalog"),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// A definition without literal values of hidden keys.
pub(super) fn shown(mut definition: Value, draft: &Draft) -> Value {
    let hide = |value: &mut Value| {
        if is_literal(value) {
            *value = HIDDEN.into();
        }
    };
    let config = definition.get_mut("default_config").and_then(Value::as_object_mut);
    for (key, value) in config.into_iter().flatten() {
        if draft.is_hidden(key) {
            hide(value);
        }
    }
    let schema = definition.get_mut("config_schema").and_then(Value::as_object_mut);
    for (key, rules) in schema.into_iter().flatten() {
        if draft.is_hidden(key)
            && let Some(default) = rules.get_mut("default")
        {
            hide(default);
        }
    }
    definition
}

/// The keys of the schema, then those that have a value and are not declared.
fn keys(definition: &Value) -> Vec<Key> {
    let none = Map::new();
    let member = |key: &str| definition.get(key).and_then(Value::as_object).unwrap_or(&none);
    let (schema, config) = (member("config_schema"), member("default_config"));
    let value = |key: &str| {
        let value = config.get(key)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(Words::within(&text, 100))
    };
    let declared = schema.iter().map(|(name, rules)| Key {
        name: Words::within(name, 100),
        facts: Words::new(&facts(rules)),
        description: text(rules, "description"),
        value: value(name),
    });
    let undeclared = config.keys().filter(|key| !schema.contains_key(*key)).map(|name| Key {
        name: Words::within(name, 100),
        facts: Words::new("not declared"),
        description: Words::default(),
        value: value(name),
    });
    declared.chain(undeclared).take(KEYS).collect()
}

fn text(rules: &Value, key: &str) -> Words {
    Words::within(rules.get(key).and_then(Value::as_str).unwrap_or_default(), 200)
}

/// The type and the flags of a key, in words.
fn facts(rules: &Value) -> String {
    let is = |key: &str| rules.get(key).is_some_and(|flag| *flag == Value::Bool(true));
    let is_secret = rules.get("kind").is_some_and(|kind| kind == "secret");
    let mut facts = text(rules, "type").to_string();
    let flags = [
        (is_secret, "secret"),
        (is("required"), "required"),
        (is("sensitive") && !is_secret, "not shown"),
        (is("internal"), "set by this entry alone"),
    ];
    for (_, word) in flags.into_iter().filter(|(is_set, _)| *is_set) {
        facts.push_str(", ");
        facts.push_str(word);
    }
    facts
}

/// A text up to a length, at the end of a line.
fn cut(text: &str) -> String {
    if text.chars().count() <= DEFINITION_MAX {
        return text.to_owned();
    }
    let begin: String = text.chars().take(DEFINITION_MAX).collect();
    format!("{begin}\n… (cut; the command below prints all of it)")
}
