//! The frame of every page: the workspace, the pages, the search, what waits, and the human.

use crate::{
    assets,
    parts::{Same, Words},
};

/// The frame of a page.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The heading of the page, and the beginning of its title.
    pub title: String,
    /// One sentence about the page.
    pub sentence: String,
    /// The workspace, and the others of the human.
    pub workspaces: Workspaces,
    /// The pages that the human may open.
    pub nav: Vec<NavLink>,
    /// The number of things that wait for the human; `None` if it is unknown.
    pub waiting: Option<usize>,
    /// The signed-in human.
    pub me: Account,
    /// The value that forms repeat.
    pub csrf: String,
    /// The text in the search box.
    pub searched: String,
    /// The address of the event stream of the page, if it is live.
    pub live: Option<String>,
    /// The result of the last action.
    pub told: Option<Told>,
    /// The page as a command and as a request.
    pub same: Option<Same>,
}

/// The workspaces that a human may open.
#[derive(Debug, Clone, Default)]
pub struct Workspaces {
    /// The id of the one that is open.
    pub current: String,
    /// All ids, with the name of each.
    pub all: Vec<(String, Words)>,
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
    /// True for the page that is open.
    pub is_current: bool,
}

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

impl Frame {
    /// The path of the first page of the workspace.
    #[must_use]
    pub fn home(&self) -> String {
        format!("/w/{}/", self.workspaces.current)
    }

    /// True for the id of the workspace that is open.
    #[must_use]
    pub fn is_open(&self, id: &str) -> bool {
        self.workspaces.current == id
    }

    /// The path of the search.
    #[must_use]
    pub fn search(&self) -> String {
        format!("/w/{}/search", self.workspaces.current)
    }

    /// The number of things that wait, in at most three characters.
    #[must_use]
    pub fn waiting_words(&self) -> String {
        match self.waiting {
            None => "?".to_owned(),
            Some(count) if count > 99 => "99+".to_owned(),
            Some(count) => count.to_string(),
        }
    }

    /// True if something waits.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.waiting.is_some_and(|count| count > 0)
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
        let frame = |waiting| Frame { waiting, ..crate::pages::kitchen_sink::frame() };
        for (waiting, words) in [(None, "?"), (Some(0), "0"), (Some(99), "99"), (Some(100), "99+")]
        {
            assert_eq!(frame(waiting).waiting_words(), words);
        }
        assert!(!frame(None).has_waiting() && !frame(Some(0)).has_waiting());
    }
}
