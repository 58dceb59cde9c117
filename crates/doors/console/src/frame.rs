//! The frame of every page: the workspace, the pages, the search, what waits, and the human.

use askama::Template;

use crate::{
    assets,
    parts::{Same, Words},
};

/// The frame of a page.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The heading of the page, and the beginning of its title.
    pub title: Words,
    /// One sentence about the page.
    pub sentence: Words,
    /// The workspace, and the others of the human.
    pub workspaces: Workspaces,
    /// The pages that the human may open; those of a group follow each other.
    pub nav: Vec<NavLink>,
    /// The number of things that wait for the human.
    pub waiting: Waiting,
    /// The signed-in human.
    pub me: Account,
    /// The value that forms repeat.
    pub csrf: String,
    /// The text in the search box.
    pub searched: Words,
    /// The address of the event stream of the page, if it is live.
    pub live: Option<String>,
    /// The result of the last action.
    pub told: Option<Told>,
    /// The pages and lists that belong to this one.
    pub related: Vec<Related>,
    /// The page as a command and as a request.
    pub same: Option<Same>,
}

/// A link to a page, or to a list with a filter, that belongs to the open page.
#[derive(Debug, Clone)]
pub struct Related {
    /// The address.
    pub href: String,
    /// The words.
    pub label: Words,
}

/// The number of things that wait for the human. The event stream sends it again when it changes.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/waiting.html")]
pub struct Waiting {
    /// The path of the page that shows them.
    pub href: String,
    /// The number; `None` if it is unknown.
    pub count: Option<usize>,
}

/// The result of an action, as a part of an open page.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/told_part.html")]
pub struct ToldPart {
    /// The result.
    pub told: Told,
}

/// The workspaces that a human may open.
#[derive(Debug, Clone, Default)]
pub struct Workspaces {
    /// The id of the one that is open.
    pub current: String,
    /// All ids, with the name of each.
    pub all: Vec<(String, Words)>,
    /// The entry for the pages of operators.
    pub operator: OperatorEntry,
}

/// The entry of the workspace switch for the pages of operators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OperatorEntry {
    /// The human is no operator, and sees no entry.
    #[default]
    Hidden,
    /// A link.
    Link,
    /// The pages of operators are open, and no workspace.
    Open,
}

/// A link to a page.
#[derive(Debug, Clone)]
pub struct NavLink {
    /// The path.
    pub href: String,
    /// The name of the page.
    pub label: &'static str,
    /// The name of its icon, one of [`ICONS`](crate::parts::ICONS).
    pub icon: &'static str,
    /// The heading of its group; empty for the pages of each day, which have none.
    pub group: &'static str,
    /// The relation to the open page.
    pub place: NavPlace,
}

/// The relation of a link to the page that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavPlace {
    /// The open page.
    Here,
    /// The list that the open page belongs to.
    Above,
    /// Another page.
    Elsewhere,
}

/// The links of a group, as neighbours in the navigation.
#[derive(Debug, Clone, Copy)]
pub struct NavGroup<'f>(pub &'f [NavLink]);

/// The signed-in human.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The name.
    pub name: Words,
    /// The way of the sign-in, in words.
    pub way: &'static str,
}

/// The result of an action.
#[derive(Debug, Clone)]
pub struct Told {
    /// The sentence.
    pub sentence: Words,
    /// True if the action failed.
    pub is_failure: bool,
}

impl Waiting {
    /// The number in at most three characters.
    #[must_use]
    pub fn words(&self) -> String {
        match self.count {
            None => "?".to_owned(),
            Some(count) if count > 99 => "99+".to_owned(),
            Some(count) => count.to_string(),
        }
    }

    /// True if something waits.
    #[must_use]
    pub fn has_some(&self) -> bool {
        self.count.is_some_and(|count| count > 0)
    }
}

impl NavLink {
    /// The value of `aria-current`, if the link leads to the open page or to its list.
    #[must_use]
    pub fn current(&self) -> Option<&'static str> {
        match self.place {
            NavPlace::Here => Some("page"),
            NavPlace::Above => Some("true"),
            NavPlace::Elsewhere => None,
        }
    }
}

impl NavGroup<'_> {
    /// The heading; empty for the pages of each day.
    #[must_use]
    pub fn heading(&self) -> &'static str {
        self.0.first().map_or("", |link| link.group)
    }

    /// True if the links are below a heading that opens and closes. A link alone has none.
    #[must_use]
    pub fn is_folded(&self) -> bool {
        !self.heading().is_empty() && self.0.len() > 1
    }

    /// True if the open page is in this group.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.iter().any(|link| link.current().is_some())
    }
}

impl Frame {
    /// The navigation by groups, in their order.
    #[must_use]
    pub fn groups(&self) -> Vec<NavGroup<'_>> {
        self.nav.chunk_by(|one, next| one.group == next.group).map(NavGroup).collect()
    }

    /// The path of the human's own page in this workspace.
    #[must_use]
    pub fn account(&self) -> String {
        format!("/w/{}/me", self.workspaces.current)
    }

    /// The path of the first page of the workspace.
    #[must_use]
    pub fn home(&self) -> String {
        format!("/w/{}/", self.workspaces.current)
    }

    /// True for the id of the workspace that is open.
    #[must_use]
    pub fn is_open(&self, id: &str) -> bool {
        !self.is_of_operators() && self.workspaces.current == id
    }

    /// True on the pages of operators.
    #[must_use]
    pub fn is_of_operators(&self) -> bool {
        self.workspaces.operator == OperatorEntry::Open
    }

    /// True if the workspace switch has an entry for the pages of operators.
    #[must_use]
    pub fn has_operator(&self) -> bool {
        self.workspaces.operator != OperatorEntry::Hidden
    }

    /// The words for the place: the id of the workspace that is open, or `Operator`.
    #[must_use]
    pub fn place(&self) -> &str {
        if self.is_of_operators() { "Operator" } else { &self.workspaces.current }
    }

    /// The path of the search.
    #[must_use]
    pub fn search(&self) -> String {
        format!("/w/{}/search", self.workspaces.current)
    }

    /// The path of the style.
    #[must_use]
    pub fn style(&self) -> &'static str {
        assets::style()
    }

    /// The path of the script.
    #[must_use]
    pub fn script(&self) -> &'static str {
        assets::script()
    }

    /// The path of the icon of the pages.
    #[must_use]
    pub fn mark(&self) -> &'static str {
        assets::mark()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_unknown_is_no_zero() {
        let waiting = |count| Waiting { href: String::new(), count };
        for (count, words) in [(None, "?"), (Some(0), "0"), (Some(99), "99"), (Some(100), "99+")] {
            assert_eq!(waiting(count).words(), words);
        }
        assert!(!waiting(None).has_some() && !waiting(Some(0)).has_some());
    }

    /// A group opens and closes if it has several pages, and is open around the open page.
    #[test]
    fn groups_are_folded_if_they_have_several_pages() {
        let link = |label, group, place| NavLink {
            href: format!("/w/default/{label}"),
            label,
            icon: "home",
            group,
            place,
        };
        let nav = vec![
            link("home", "", NavPlace::Elsewhere),
            link("runs", "", NavPlace::Elsewhere),
            link("tools", "Servers", NavPlace::Elsewhere),
            link("catalog", "Servers", NavPlace::Above),
            link("audit", "Rules", NavPlace::Elsewhere),
        ];
        let frame = Frame { nav, ..crate::pages::kitchen_sink::frame() };
        let told = |group: &NavGroup<'_>| (group.heading(), group.is_folded(), group.is_open());
        let told: Vec<_> = frame.groups().iter().map(told).collect();
        assert_eq!(told, [("", false, false), ("Servers", true, true), ("Rules", false, false)]);
    }
}
