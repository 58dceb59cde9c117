//! What callers may see of a server by its rules: asked in the same words for lists and for calls.

use std::sync::Arc;

use narthex_model::{EVERYTHING, Exposed};
use narthex_policy::{Denial, Item, Request};
use narthex_registry::ServerRow;
use narthex_upstream::Inventory;
use narthex_wire::{Message, Raw, Rewrite, json::encode_string, method};

use crate::{
    method::Handling,
    refusal::Refusal,
    route::{not_found, unknown_server},
};

/// What callers may see of what a server has (D5).
#[must_use]
pub fn shown(row: &ServerRow) -> Arc<Inventory> {
    row.inventory.shown(exposed(row))
}

/// The rules of a server. A faulty entry has none, and nothing to see.
pub(crate) fn exposed(row: &ServerRow) -> &Exposed {
    row.definition.as_ref().map_or(&EVERYTHING, |definition| &definition.exposed)
}

/// A denial looks like absence.
pub(crate) fn refusal_of(denial: Denial) -> Refusal {
    match denial {
        Denial::NotAttached(alias) => unknown_server(&alias),
        Denial::Hidden(item) => {
            let handling = match &item {
                Item::Tool(_) => Handling::Tool,
                Item::Prompt(_) => Handling::Prompt,
                Item::Resource(_) => Handling::Resource,
                Item::Task(_) => Handling::Task,
                Item::Server => Handling::Vendor,
            };
            not_found(handling, item.name())
        }
    }
}

/// A list and what its entries are known by.
struct Listed {
    member: &'static str,
    key: &'static str,
    item: fn(Arc<str>) -> Item,
}

fn listed(name: &str) -> Option<Listed> {
    let (member, key, item): (_, _, fn(Arc<str>) -> Item) = match name {
        method::TOOLS_LIST => ("tools", "name", Item::Tool),
        method::PROMPTS_LIST => ("prompts", "name", Item::Prompt),
        method::RESOURCES_LIST => ("resources", "uri", Item::Resource),
        method::RESOURCES_TEMPLATES_LIST => ("resourceTemplates", "uriTemplate", Item::Resource),
        _ => return None,
    };
    Some(Listed { member, key, item })
}

/// Takes out of a server's list what callers may not see. A list of which nothing is hidden stays
/// byte for byte.
pub(crate) fn hide(name: &str, list: &Message, rewrite: &mut Rewrite<'_>, exposed: &Exposed) {
    let Some(Listed { member, key, item }) = listed(name) else { return };
    if exposed.is_everything() {
        return;
    }
    let list = rewrite.body.get(member).map(Raw::new).or_else(|| list.get(member));
    let entries = list.map(Raw::items).unwrap_or_default();
    let is_shown = |entry: &&Raw<'_>| {
        let key = entry.get(key).and_then(Raw::as_str);
        key.is_some_and(|key| item(key.as_ref().into()).is_exposed(exposed))
    };
    let shown: Vec<_> = entries.iter().filter(is_shown).map(|entry| entry.as_bytes()).collect();
    if shown.len() < entries.len() {
        let shown = [b"[", &shown.join(&b","[..])[..], b"]"].concat();
        rewrite.body.set(member, shown);
    }
}

/// Takes out of a request for changes the resources that callers may not see: a server
/// acknowledges only what there is.
pub(crate) fn hide_from_listening(request: &mut Request, exposed: &Exposed) {
    let Some(wanted) = request.message.get("notifications") else { return };
    let uris = wanted.get("resourceSubscriptions").map(Raw::items).unwrap_or_default();
    let is_shown = |uri: &&Raw<'_>| {
        uri.as_str().is_some_and(|uri| Item::Resource(uri.as_ref().into()).is_exposed(exposed))
    };
    let shown: Vec<_> = uris.iter().filter(is_shown).map(|uri| uri.as_bytes()).collect();
    if shown.len() == uris.len() {
        return;
    }
    let members = wanted.entries().into_iter().map(|(key, value)| {
        let value = match key.as_ref() {
            "resourceSubscriptions" => [b"[", &shown.join(&b","[..])[..], b"]"].concat(),
            _ => value.as_bytes().to_vec(),
        };
        [&encode_string(&key)[..], b":", &value].concat()
    });
    let members = members.collect::<Vec<_>>().join(&b","[..]);
    request.rewrite.body.set("notifications", [b"{", &members[..], b"}"].concat());
}
