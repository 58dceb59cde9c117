//! What callers may see of a server by its rules: asked in the same words for lists and for calls.

use std::{collections::HashMap, sync::Arc};

use narthex_model::{EVERYTHING, Exposed, NO_GATES};
use narthex_policy::{Denial, Item, Request, ServerRules};
use narthex_registry::ServerRow;
use narthex_upstream::{Inventory, Listed};
use narthex_view::exposed;
use narthex_wire::{Message, Raw, Rewrite, json::encode_string, method};

use crate::{
    Caller,
    gateway::Shared,
    grants::forbidden,
    method::Handling,
    refusal::Refusal,
    route::{not_found, unknown_server},
};

/// All rules of a server, as policy asks for them.
pub(crate) fn rules(row: Option<&ServerRow>) -> ServerRules<'_> {
    match row.and_then(|row| row.definition.as_deref()) {
        Some(server) => ServerRules { exposed: &server.exposed, gates: &server.gates },
        None => ServerRules { exposed: &EVERYTHING, gates: &NO_GATES },
    }
}

impl Shared {
    /// A denial looks like absence, but where somebody may grant what is required.
    pub(crate) fn refusal_of(&self, caller: &Caller, denial: Denial) -> Refusal {
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
            Denial::Forbidden { item, by } => forbidden(&item, &by),
            Denial::Ungranted { server, item, name, missing, has_digest } => {
                self.ungranted(caller, (&server, &item, &name), &missing, has_digest)
            }
        }
    }
}

/// A list and what its entries are known by.
struct ListMembers {
    list: Listed,
    member: &'static str,
    key: &'static str,
    item: fn(Arc<str>) -> Item,
}

fn listed(name: &str) -> Option<ListMembers> {
    let (list, member, key, item): (_, _, _, fn(Arc<str>) -> Item) = match name {
        method::TOOLS_LIST => (Listed::Tool, "tools", "name", Item::Tool),
        method::PROMPTS_LIST => (Listed::Prompt, "prompts", "name", Item::Prompt),
        method::RESOURCES_LIST => (Listed::Resource, "resources", "uri", Item::Resource),
        method::RESOURCES_TEMPLATES_LIST => {
            (Listed::Template, "resourceTemplates", "uriTemplate", Item::Resource)
        }
        _ => return None,
    };
    Some(ListMembers { list, member, key, item })
}

/// Takes out of a server's list what callers may not see, and what is not as it is frozen in the
/// run. A list of which nothing is hidden stays byte for byte.
pub(crate) fn hide(
    name: &str,
    list: &Message,
    rewrite: &mut Rewrite<'_>,
    (exposed, frozen): (&Exposed, Option<&Inventory>),
) {
    let Some(ListMembers { list: kind, member, key, item }) = listed(name) else { return };
    if exposed.is_everything() && frozen.is_none() {
        return;
    }
    // What was rewritten for the caller's era is compared as the server wrote it, one by one: a
    // second entry of a name does not hide behind the first (S22).
    let written = list.get(member).map(Raw::items).unwrap_or_default();
    let frozen = frozen.map(|frozen| {
        let frozen = frozen.list(kind).iter().rev();
        frozen.map(|entry| (&*entry.key, entry)).collect::<HashMap<_, _>>()
    });
    let is_unchanged = |entry: &Raw<'_>| {
        let Some(frozen) = &frozen else { return true };
        let first = entry.get(key).and_then(Raw::as_str).and_then(|key| frozen.get(&*key));
        first.is_some_and(|first| first.says(kind, entry.as_bytes()))
    };
    let rewritten = rewrite.body.get(member).map(Raw::new).map(Raw::items);
    // The era changes entries, not how many there are or their order.
    let entries = rewritten.as_ref().filter(|entries| entries.len() == written.len());
    let entries = entries.unwrap_or(&written);
    let is_shown = |(before, entry): &(&Raw<'_>, &Raw<'_>)| {
        let name = entry.get(key).and_then(Raw::as_str);
        let is_exposed = |name: &str| item(name.into()).is_exposed(exposed);
        name.is_some_and(|name| is_exposed(&name)) && is_unchanged(before)
    };
    let shown = written.iter().zip(entries).filter(is_shown);
    let shown: Vec<_> = shown.map(|(_, entry)| entry.as_bytes()).collect();
    if shown.len() < entries.len() {
        let shown = [b"[", &shown.join(&b","[..])[..], b"]"].concat();
        rewrite.body.set(member, shown);
    }
}

/// Takes out of a request for changes the resources that callers may not see: a server
/// acknowledges only what there is.
pub(crate) fn hide_from_listening(
    request: &mut Request,
    row: &ServerRow,
    is_granted: impl Fn(&str) -> bool,
) {
    let Some(wanted) = request.message.get("notifications") else { return };
    let uris = wanted.get("resourceSubscriptions").map(Raw::items).unwrap_or_default();
    let is_shown = |uri: &&Raw<'_>| {
        uri.as_str().is_some_and(|uri| {
            let is_there = !row.inventory.withholds(&uri) && is_granted(&uri);
            is_there && Item::Resource(uri.as_ref().into()).is_exposed(exposed(row))
        })
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
