//! The filters of the lists of capabilities and agents: by what they attach or include.

use narthex_console::parts::{Filter, Words};
use narthex_control::CatalogObject;
use narthex_model::CatalogKind;
use serde_json::Value;

use super::{around::ALL, page::list_of};
use crate::{
    Access,
    console::{asked::address, viewer::Viewer},
    problem::Problem,
    routes::AUTHOR,
    servers::Query,
};

/// Number of rows of one page.
const PAGE: usize = 50;
/// The filters, each with the words in front of its value.
const FILTERS: [(&str, &str); 2] = [("server", "with the server"), ("capability", "with")];

/// The filters of an address that are set. A list of capabilities has that of servers alone.
pub(super) fn set(kind: CatalogKind, query: &Query) -> Vec<(&'static str, &str)> {
    let of_kind = |name: &str| kind == CatalogKind::Agent || name == "server";
    let all = FILTERS.into_iter().filter(|(name, _)| of_kind(name));
    let pairs = all.map(|(name, _)| (name, query.text(name)));
    pairs.filter(|(_, value)| !value.is_empty()).collect()
}

/// The filters that the form of the list keeps.
pub(super) fn kept(kind: CatalogKind, query: &Query) -> Vec<(&'static str, String)> {
    set(kind, query).into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

/// The filters that are set, each as the address without it.
pub(super) fn shown(
    viewer: &Viewer<'_>,
    kind: CatalogKind,
    query: &Query,
    prefix: &str,
) -> Vec<Filter> {
    let mut all = set(kind, query);
    all.extend((!prefix.is_empty()).then_some(("q", prefix)));
    let filter = |(name, value): &(&'static str, &str)| {
        let rest: Vec<_> = all.iter().filter(|(other, _)| other != name).copied().collect();
        let words = FILTERS.iter().find(|(known, _)| known == name);
        let words = words.map_or("named", |(_, words)| *words);
        Filter {
            href: address(viewer, list_of(kind), &rest),
            label: format!("{words} “{}” ✕", Words::within(value, 64)),
            count: None,
            is_current: true,
        }
    };
    all.iter().map(filter).collect()
}

/// The objects of one page that fit, and the name after which the next page begins. The catalog is
/// for authors, and so is the answer.
pub(super) async fn fitting(
    viewer: &Viewer<'_>,
    kind: CatalogKind,
    query: &Query,
    prefix: &str,
    after: &str,
) -> Result<(Vec<CatalogObject>, Option<String>), Problem> {
    viewer.check(Access::Member(AUTHOR))?;
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let wanted = set(kind, query);
    let of = |name: &str| wanted.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    let users = match of("server") {
        None => None,
        Some(server) => {
            let mut users = control.catalog_servers(workspace).await?.users;
            Some(users.remove(server).unwrap_or_default())
        }
    };
    let mut all = control.catalog_list(workspace, kind, after, ALL).await?.items;
    all.retain(|one| {
        let attaches = users
            .as_ref()
            .is_none_or(|users| users.iter().any(|user| user.kind == kind && user.name == one.id));
        one.id.starts_with(prefix)
            && attaches
            && of("capability").is_none_or(|name| includes(one, name))
    });
    let has_more = all.len() > PAGE;
    all.truncate(PAGE);
    let next = all.last().filter(|_| has_more).map(|one| one.id.clone());
    Ok((all, next))
}

/// True if an agent includes a capability.
fn includes(object: &CatalogObject, capability: &str) -> bool {
    let definition = object.definition.as_ref();
    let all = definition.and_then(|one| one.get("capabilities")).and_then(Value::as_array);
    all.into_iter().flatten().any(|one| one.as_str() == Some(capability))
}
