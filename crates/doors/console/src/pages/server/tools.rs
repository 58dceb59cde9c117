//! The tools of a server, each with the reason why callers see it or not.

use askama::Template;

use super::ServerTabs;
use crate::{
    Frame, filters,
    parts::{Filter, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_tools.html")]
pub struct ServerToolsPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The text of the filter.
    pub filtered: String,
    /// The standing of the filter; empty for all.
    pub standing: String,
    /// The path of this page.
    pub path: String,
    /// The live part.
    pub list: ToolList,
}

/// The tools with the filters above them, as the event stream sends them.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_tool_list.html")]
pub struct ToolList {
    /// The filters by standing.
    pub filters: Vec<Filter>,
    /// The tools.
    pub tools: Tools,
}

/// The tools of a server, also as a part of its row.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_tools.html")]
pub struct Tools {
    /// A fault of the list as a whole.
    pub fault: Option<Words>,
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// Number of tools that fit the filters.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
    /// The reason why there are none.
    pub none: &'static str,
}

/// A tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The server's own name of it.
    pub name: Words,
    /// The title, which is text of the server.
    pub title: Option<Words>,
    /// The description, which is text of the server.
    pub description: Words,
    /// The standing of the tool for callers.
    pub standing: Standing,
    /// The reason, if callers do not see it.
    pub reason: Option<Words>,
    /// The claims of the server about the tool.
    pub claims: Vec<&'static str>,
    /// The names of its arguments.
    pub arguments: Vec<Words>,
    /// Number of further arguments.
    pub more_arguments: usize,
    /// The tool scopes that a caller needs.
    pub scopes: Vec<String>,
    /// The size of the definition in tokens, by estimate.
    pub tokens: Option<u64>,
}

/// The answer to the question if callers see a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Callers see it.
    Visible,
    /// Its definition is under review, or was rejected.
    Withheld,
    /// A rule of the entry hides it.
    Off,
    /// The entry names it, and the server does not list it.
    Absent,
    /// The server is not ready.
    Unknown,
}

impl Standing {
    /// All of them, in the order of the filters.
    pub const ALL: [Self; 5] =
        [Self::Visible, Self::Withheld, Self::Off, Self::Absent, Self::Unknown];

    /// The word, also in addresses.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Withheld => "withheld",
            Self::Off => "off",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }

    /// The icon.
    #[must_use]
    pub fn icon(self) -> &'static str {
        match self {
            Self::Visible => "check",
            Self::Withheld => "lock",
            Self::Off => "pause",
            Self::Absent => "cross",
            Self::Unknown => "clock",
        }
    }

    /// The class of the badge, which has a colour.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Visible => "ready",
            Self::Withheld => "authenticating",
            Self::Off | Self::Absent => "disabled",
            Self::Unknown => "connecting",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// R3: absent, withheld, off and unknown are four words, and colour alone tells nothing.
    #[test]
    fn r3_each_standing_has_a_word_and_an_icon() {
        let words: BTreeSet<_> = Standing::ALL.iter().map(|one| one.word()).collect();
        let icons: BTreeSet<_> = Standing::ALL.iter().map(|one| one.icon()).collect();
        assert_eq!((words.len(), icons.len()), (5, 5));
    }
}
