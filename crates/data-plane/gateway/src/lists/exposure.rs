//! The items of a server that callers may see by its rules. Lists and calls use the same check.

use std::{collections::HashMap, sync::Arc};

use narthex_model::{EVERYTHING, Exposed, NO_GATES};
use narthex_policy::{Item, Request, ServerRules};
use narthex_registry::ServerRow;
use narthex_upstream::{Inventory, Listed};
use narthex_wire::{
    ListKind, Message, MessageKind, Raw, Rewrite,
    json::{Object, decode_string, encode_string},
    meta_key, method,
    notification::RESOURCES_FILTER,
};

use crate::{RunView, view::exposed};

/// All rules of a server, as policy asks for them.
pub(crate) fn rules(row: Option<&ServerRow>) -> ServerRules<'_> {
    match row.and_then(|row| row.definition.as_deref()) {
        Some(server) => ServerRules { exposed: &server.exposed, gates: &server.gates, id: None },
        None => ServerRules { exposed: &EVERYTHING, gates: &NO_GATES, id: None },
    }
}

/// True if models may read this text of a server about itself: the text is part of the run's frozen
/// lists, or of the pinned ones.
pub(crate) fn may_be_told(run: &RunView, row: &ServerRow, text: &str) -> bool {
    let is_of_run = row.alias.as_ref().is_none_or(|alias| run.may_be_told(alias, text));
    is_of_run && row.lets_tell(text)
}

/// A list, its member in the result, and the member that identifies an entry.
struct ListMembers {
    list: Listed,
    member: &'static str,
    key: &'static str,
    item: fn(Arc<str>) -> Item,
}

fn listed(name: &str) -> Option<ListMembers> {
    let (list, member, key, item): (_, _, _, fn(Arc<str>) -> Item) = match name {
        method::TOOLS_LIST => (Listed::Tool, ListKind::Tools.member(), "name", Item::Tool),
        method::PROMPTS_LIST => (Listed::Prompt, ListKind::Prompts.member(), "name", Item::Prompt),
        method::RESOURCES_LIST => {
            (Listed::Resource, ListKind::Resources.member(), "uri", Item::Resource)
        }
        method::RESOURCES_TEMPLATES_LIST => {
            (Listed::Template, ListKind::Templates.member(), "uriTemplate", Item::Resource)
        }
        _ => return None,
    };
    Some(ListMembers { list, member, key, item })
}

/// The members that the protocol has besides the entries of a list.
const BESIDE: [&str; 5] = ["nextCursor", "ttlMs", "cacheScope", "resultType", "_meta"];

/// Removes from a frozen or pinned list all members besides its entries: narthex does not compare
/// such members (S22).
fn keep_entries(member: &'static str, list: &Message, rewrite: &mut Rewrite<'_>) {
    let keys = |object: Option<&Object>| {
        let members = object.map(|object| &object.members[..]).unwrap_or_default().iter();
        let keys = members.filter_map(|one| decode_string(one.key.of(list.bytes())));
        keys.map(std::borrow::Cow::into_owned).collect::<Vec<_>>()
    };
    let is_known = |key: &String| *key == member || BESIDE.contains(&key.as_str());
    for key in keys(list.body()).into_iter().filter(|key| !is_known(key)) {
        rewrite.body.remove(key);
    }
    let is_ours = |key: &String| meta_key::MODERN_ANSWER.contains(&key.as_str());
    for key in keys(list.meta()).into_iter().filter(|key| !is_ours(key)) {
        rewrite.meta.remove(key);
    }
    if list.get(member).is_some_and(|entries| !entries.as_bytes().starts_with(b"[")) {
        rewrite.body.set(member, &b"[]"[..]);
    }
}

/// True if callers may see another list than the server's. A cache must give such a list to no
/// other caller (S21).
pub(crate) fn is_filtered(name: &str, exposed: &Exposed, frozen: Option<&Inventory>) -> bool {
    listed(name).is_some() && !(exposed.is_everything() && frozen.is_none())
}

/// Marks a result of the modern era as private to its caller, for caches.
pub(crate) fn keep_private(result: &Message, rewrite: &mut Rewrite<'_>) {
    const PRIVATE: &[u8] = br#""private""#;
    let said = result.get("cacheScope").map(Raw::as_bytes);
    let said = rewrite.body.get("cacheScope").or(said);
    if said != Some(PRIVATE) {
        rewrite.body.set("cacheScope", PRIVATE);
    }
}

/// Removes from a server's list the entries that callers may not see, and those that differ from
/// the run's frozen list. A list without hidden entries stays byte for byte.
pub(crate) fn hide(
    name: &str,
    list: &Message,
    rewrite: &mut Rewrite<'_>,
    exposed: &Exposed,
    frozen: Option<&Inventory>,
) {
    let Some(ListMembers { list: kind, member, key, item }) = listed(name) else { return };
    if exposed.is_everything() && frozen.is_none() {
        return;
    }
    if frozen.is_some() && list.kind() == MessageKind::Result {
        keep_entries(member, list, rewrite);
    }
    // Entries rewritten for the caller's era are compared as the server wrote them, one by one: a
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

/// Removes from a request for changes the resources that callers may not see: the server then does
/// not acknowledge them.
pub(crate) fn hide_from_listening(
    request: &mut Request,
    row: &ServerRow,
    is_granted: impl Fn(&str) -> bool,
) {
    let Some(wanted) = request.message.get("notifications") else { return };
    let uris = wanted.get(RESOURCES_FILTER).map(Raw::items).unwrap_or_default();
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
            RESOURCES_FILTER => [b"[", &shown.join(&b","[..])[..], b"]"].concat(),
            _ => value.as_bytes().to_vec(),
        };
        [&encode_string(&key)[..], b":", &value].concat()
    });
    let members = members.collect::<Vec<_>>().join(&b","[..]);
    request.rewrite.body.set("notifications", [b"{", &members[..], b"}"].concat());
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_wire::Limits;

    use super::*;

    /// S22: a frozen or pinned list has no members besides its entries.
    #[test]
    fn s22_a_frozen_list_keeps_no_members_besides_its_entries_and_page_keys() {
        let hidden = |list: &str, frozen: Option<&Inventory>| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{list}}}"#);
            let message = Message::parse(text.into(), &Limits::default()).unwrap();
            let mut rewrite = Rewrite::default();
            hide(method::TOOLS_LIST, &message, &mut rewrite, &EVERYTHING, frozen);
            let bytes = rewrite.apply(&message).into_bytes();
            let message = Message::parse(bytes, &Limits::default()).unwrap();
            String::from_utf8(message.body_raw().unwrap().as_bytes().to_vec()).unwrap()
        };
        let tool = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
        let entry = narthex_upstream::InventoryEntry::new("echo", Bytes::from(tool));
        let frozen = Inventory::new([(Listed::Tool, entry)]);
        let said = format!(
            r#"{{"ttlMs":1,"tools":[{tool}],"nextCursor":"2","note":"Ignore","_meta":{{"a":"b"}}}}"#
        );
        assert_eq!(hidden(&said, None), said);
        let seen = hidden(&said, Some(&frozen));
        assert!(!seen.contains("Ignore") && !seen.contains(r#""a""#), "{seen}");
        for kept in [tool, r#""ttlMs":1"#, r#""nextCursor":"2""#] {
            assert!(seen.contains(kept), "{seen}");
        }
        let plain = format!(r#"{{"tools":[{tool}],"nextCursor":"2"}}"#);
        assert_eq!(hidden(&plain, Some(&frozen)), plain, "it stays byte for byte");
        assert_eq!(hidden(r#"{"tools":"Ignore"}"#, Some(&frozen)), r#"{"tools":[]}"#);
    }
}
