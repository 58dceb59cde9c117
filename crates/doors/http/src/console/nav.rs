//! The navigation: its groups, and the links of a human.

use http::Method;
use narthex_console::{NavLink, NavPlace};
use narthex_model::WorkspaceId;

use super::{
    page::{Page, Spot, Table},
    viewer::operator_path,
};
use crate::auth::{Principal, authorize};

/// A heading with the paths of the pages below it, in their order.
pub(super) type Group = (&'static str, &'static [&'static str]);

/// All groups. The first has the pages of each day, and no heading. A page that none of them names
/// is in the last one.
pub(super) const GROUPS: &[Group] = &[
    ("", &["", "approvals", "runs", "servers"]),
    ("Servers", &["tools", "play", "catalog", "registry", "secrets"]),
    ("Agents", &["agents", "capabilities"]),
    ("Connect", &["connect", "clients"]),
    ("Rules and records", &["policy", "grants", "audit"]),
    ("Administration", &["settings", "me"]),
];

/// Pages with a list of another path.
const LISTS: [(&str, &str); 3] =
    [("sessions", "runs"), ("new-agent", "agents"), ("new-capability", "capabilities")];

/// The links to the pages that the human may open, by group.
pub(super) fn links(
    table: Table,
    spot: &Spot<'_>,
    workspace: &WorkspaceId,
    principal: &Principal,
) -> Vec<NavLink> {
    let may = |page: &&Page| authorize(page.access, principal, || Ok(workspace.clone())).is_ok();
    let mut pages: Vec<_> = table.all().filter(|page| page.nav.is_some()).filter(may).collect();
    pages.sort_by_key(|page| rank(page.path));
    let link = |page: &Page| {
        let nav = page.nav?;
        Some(NavLink {
            href: format!("/w/{workspace}/{}", page.path),
            label: nav.label,
            icon: nav.icon,
            group: heading(page.path),
            place: place(spot, page.path),
        })
    };
    pages.into_iter().filter_map(link).chain(to_operators(principal)).collect()
}

/// The links between the pages of operators, which are few and have no groups.
pub(super) fn of_operators(table: Table, spot: &Spot<'_>) -> Vec<NavLink> {
    let link = |page: &Page| {
        let nav = page.nav?;
        Some(NavLink {
            href: operator_path(page.path),
            label: nav.label,
            icon: nav.icon,
            group: "",
            place: place(spot, page.path),
        })
    };
    table.all().filter_map(link).collect()
}

/// The link to the pages of operators, for operators.
fn to_operators(principal: &Principal) -> Option<NavLink> {
    let link = || NavLink {
        href: operator_path(""),
        label: "Operator",
        icon: "gear",
        group: heading("operator"),
        place: NavPlace::Elsewhere,
    };
    principal.is_operator().then(link)
}

/// The place of a page in the navigation: that of its group, and its own.
fn rank(path: &'static str) -> (usize, usize) {
    let own = |(index, (_, paths)): (usize, &Group)| {
        Some((index, paths.iter().position(|known| *known == path)?))
    };
    GROUPS.iter().enumerate().find_map(own).unwrap_or((GROUPS.len(), 0))
}

fn heading(path: &'static str) -> &'static str {
    let named = GROUPS.iter().find(|(_, paths)| paths.contains(&path));
    named.or(GROUPS.last()).map_or("", |(heading, _)| *heading)
}

/// The relation of a page to the one that is open.
fn place(spot: &Spot<'_>, path: &str) -> NavPlace {
    if spot.page(&Method::GET).is_some_and(|page| page.path == path) {
        return NavPlace::Here;
    }
    let open = spot.path.and_then(|open| open.split('/').next()).unwrap_or_default();
    let list = LISTS.iter().find(|(other, _)| *other == open).map_or(open, |(_, list)| *list);
    match !list.is_empty() && list == path {
        true => NavPlace::Above,
        false => NavPlace::Elsewhere,
    }
}
