//! The addresses of the catalog's pages, and the rows that lead there.

use narthex_console::{
    pages::catalog::{CatalogRow, Off, User, Users},
    parts::{Action, Words},
};
use narthex_control::{CatalogObject, CatalogUser, never_starts};
use narthex_model::CatalogKind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{draft::Shape, value::is_disabled};
use crate::{
    Access,
    console::{links, viewer::Viewer},
    routes::{ADMIN, AUTHOR},
    servers::{sees_all_of, server_definition},
};

/// The access of those who read entries, or the parts of them that authors see.
pub(super) const READ: Access = Access::Member(AUTHOR);
/// The access of those who change entries.
pub(super) const CHANGE: Access = Access::Member(ADMIN);
/// The characters of ids that are escaped in paths.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Number of users that a row names.
const USERS: usize = 5;
/// Maximum number of characters of an address or a program with its arguments.
const TARGET_MAX: usize = 200;

/// The path of the page of an entry, or of one of its actions.
pub(in crate::console) fn path(viewer: &Viewer<'_>, id: &str, verb: &str) -> String {
    let mut segment = utf8_percent_encode(id, ESCAPED).to_string();
    // Entries of this name would have the address of the form for new ones.
    if segment == "new" {
        segment = "%6Eew".to_owned();
    }
    match verb {
        "" => viewer.path(&format!("catalog/{segment}")),
        verb => viewer.path(&format!("catalog/{segment}/{verb}")),
    }
}

/// True if the human sees how servers are reached and configured (X-D12).
pub(super) fn sees_all(viewer: &Viewer<'_>) -> bool {
    sees_all_of(&viewer.principal, CatalogKind::Server, &viewer.workspace)
}

/// The row of an entry.
pub(super) fn row(
    viewer: &Viewer<'_>,
    object: &CatalogObject,
    users: &[CatalogUser],
) -> CatalogRow {
    let is_whole = sees_all(viewer);
    let definition = server_definition(object, is_whole);
    let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
    let keys =
        definition.get("config_schema").and_then(Value::as_object).map_or(0, |all| all.len());
    let made_by = definition.get("made_by").and_then(|by| by.get("agent")).and_then(Value::as_str);
    let name = if text("name").is_empty() { &*object.id } else { text("name") };
    CatalogRow {
        href: path(viewer, &object.id, ""),
        id: Words::within(&object.id, 100),
        name: Words::within(name, 100),
        shape: Shape::of(&definition).map(Shape::label),
        target: target(&definition).map(|target| Words::within(&target, TARGET_MAX)),
        keys,
        off: is_disabled(&definition).then(|| Off {
            is_draft: is_first(object),
            enable: viewer.may(CHANGE).then(|| enable(viewer, &object.id)),
        }),
        faults: object.errors.len(),
        never_starts: never_starts(&definition).map(|why| Words::new(&why)),
        users: Users {
            first: users.iter().take(USERS).map(|one| user(viewer, one)).collect(),
            more: users.len().saturating_sub(USERS),
        },
        made_by: made_by.map(|agent| Words::within(agent, 100)),
    }
}

fn user(viewer: &Viewer<'_>, user: &CatalogUser) -> User {
    let href = match user.kind {
        CatalogKind::Agent => links::agent(viewer, &user.name),
        CatalogKind::Capability => links::capability(viewer, &user.name),
        CatalogKind::Server => None,
    };
    User { what: Words::within(&format!("{} {}", user.kind, user.name), 120), href }
}

/// The button that enables an entry. A refusal is answered with the form of the entry.
fn enable(viewer: &Viewer<'_>, id: &str) -> Action {
    let hint = "runs that begin from now on get it, if their agent attaches it";
    Action::new(path(viewer, id, "enable"), "Enable", hint).primary().page()
}

/// True for an entry that nothing has changed since it was added.
pub(super) fn is_first(object: &CatalogObject) -> bool {
    object.revision <= 1
}

/// The address, the program with its arguments, or the image of a definition.
pub(super) fn target(definition: &Value) -> Option<String> {
    let shape = Shape::of(definition)?;
    let mut target = definition.get(shape.word()).and_then(Value::as_str)?.to_owned();
    let args = definition.get("args").and_then(Value::as_array).into_iter().flatten();
    for arg in args.filter_map(Value::as_str).take(32) {
        target.push(' ');
        target.push_str(arg);
    }
    Some(target)
}
