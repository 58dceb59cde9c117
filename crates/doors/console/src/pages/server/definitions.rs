//! The definitions of a server that a human decides on: the old and the new text by line.

use askama::Template;

use super::ServerTabs;
use crate::{
    Frame, filters,
    parts::{Empty, Filter, Moment, Words},
};

/// Maximum number of characters of one line of a difference.
const LINE_MAX: usize = 45_000;
/// The end of a line in a text that was made harmless.
const BREAK: &str = "\\n";

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_definitions.html")]
pub struct ServerDefinitionsPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The list, which is live.
    pub list: DefinitionList,
}

/// The definitions, with the filters above them.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_definition_list.html")]
pub struct DefinitionList {
    /// The value that forms repeat.
    pub csrf: String,
    /// A remark on all of them.
    pub note: Option<Words>,
    /// An example that mends what the remark says.
    pub example: Option<String>,
    /// The filters by state.
    pub filters: Vec<Filter>,
    /// The definitions of this page.
    pub items: Vec<Definition>,
    /// The path that accepts one.
    pub accept: String,
    /// The path that rejects one.
    pub reject: String,
    /// The address of the next page.
    pub next: Option<String>,
    /// Shown where there are none.
    pub empty: Empty,
}

/// A definition.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The id of its element.
    pub id: String,
    /// The digest of the text that a decision is about.
    pub digest: String,
    /// The kind: `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub kind: Words,
    /// The name.
    pub name: Words,
    /// The state.
    pub state: Review,
    /// The reason for the review.
    pub reason: Option<Words>,
    /// The findings of the screening.
    pub findings: Vec<Words>,
    /// The changed places; empty if no earlier text is known.
    pub changes: Vec<Change>,
    /// Number of further changed places.
    pub left_out: usize,
    /// The text.
    pub text: Words,
    /// The path of the page with all of it, if a part is left out here.
    pub whole: Option<String>,
    /// The time at which it was first seen.
    pub first_seen: Moment,
    /// The human who decided, and the time.
    pub decided: Option<(Words, Moment)>,
}

/// The state of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// The first text of its name.
    Pinned,
    /// Under review.
    Quarantined,
    /// A human has accepted it.
    Accepted,
    /// A human has rejected it.
    Rejected,
}

impl Review {
    /// All states, in the order of the filters.
    pub const ALL: [Self; 4] = [Self::Quarantined, Self::Rejected, Self::Accepted, Self::Pinned];

    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Quarantined => "under review",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }

    /// The icon.
    #[must_use]
    pub fn icon(self) -> &'static str {
        match self {
            Self::Pinned => "check",
            Self::Quarantined => "lock",
            Self::Accepted => "shield",
            Self::Rejected => "cross",
        }
    }

    /// The class of the badge, which has a colour.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Pinned | Self::Accepted => "ready",
            Self::Quarantined => "authenticating",
            Self::Rejected => "disabled",
        }
    }

    /// True if it can be rejected.
    #[must_use]
    pub fn is_open(self) -> bool {
        self != Self::Rejected
    }

    /// True if callers get it.
    #[must_use]
    pub fn is_seen(self) -> bool {
        matches!(self, Self::Pinned | Self::Accepted)
    }
}

/// A changed place of a definition.
#[derive(Debug, Clone)]
pub struct Change {
    /// The place, as a JSON pointer.
    pub place: Words,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The side.
    pub side: Side,
    /// The text.
    pub text: Words,
}

/// The side of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Both texts have it.
    Both,
    /// The older text alone has it.
    Old,
    /// The newer text alone has it.
    New,
}

impl Line {
    /// True for a line that the older text alone has.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.side == Side::Old
    }

    /// True for a line that the newer text alone has.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.side == Side::New
    }
}

impl Change {
    /// The lines that differ, between those that both texts begin and end with.
    #[must_use]
    pub fn new(place: &str, old: Option<&str>, new: Option<&str>) -> Self {
        let split = |text: Option<&'_ str>| -> Vec<String> {
            let text = text.unwrap_or_default();
            text.split_inclusive(BREAK).map(str::to_owned).collect()
        };
        let (old, new) = (split(old), split(new));
        let same = |(one, other): &(&String, &String)| one == other;
        let head = old.iter().zip(&new).take_while(same).count();
        let (old_rest, new_rest) = (old.iter().skip(head), new.iter().skip(head));
        let tail = old_rest.rev().zip(new_rest.rev()).take_while(same).count();
        let lines = |all: &[String], side| -> Vec<Line> {
            let changed = all.len() - head - tail;
            let part = all.iter().skip(head).take(changed);
            part.map(|text| Line { side, text: Words::within(text, LINE_MAX) }).collect()
        };
        let both = |part: &[String]| -> Vec<Line> {
            let line =
                |text: &String| Line { side: Side::Both, text: Words::within(text, LINE_MAX) };
            part.iter().map(line).collect()
        };
        let (start, end) = new.split_at(head);
        let (_, end) = end.split_at(end.len() - tail);
        let changed = [lines(&old, Side::Old), lines(&new, Side::New)].concat();
        Self { place: Words::new(place), lines: [both(start), changed, both(end)].concat() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: Option<&str>, new: Option<&str>) -> Vec<(Side, String)> {
        let lines = Change::new("/description", old, new).lines;
        lines.into_iter().map(|line| (line.side, line.text.to_string())).collect()
    }

    /// S23: a difference shows each line of the older and of the newer text, and lines that both
    /// have once.
    #[test]
    fn s23_a_difference_is_shown_by_line() {
        let (old, new) =
            ("Reads.\\nA file.\\nThe end.", "Reads.\\nAny file.\\nAt once.\\nThe end.");
        let expected = [
            (Side::Both, "Reads.\\n"),
            (Side::Old, "A file.\\n"),
            (Side::New, "Any file.\\n"),
            (Side::New, "At once.\\n"),
            (Side::Both, "The end."),
        ];
        assert_eq!(
            shown(Some(old), Some(new)),
            expected.map(|(side, text)| (side, text.to_owned()))
        );
        assert_eq!(shown(None, Some("a")), [(Side::New, "a".to_owned())]);
        assert_eq!(shown(Some("a"), None), [(Side::Old, "a".to_owned())]);
        let twice = shown(Some("a\\na\\n"), Some("a\\n"));
        assert_eq!(twice, [(Side::Both, "a\\n".to_owned()), (Side::Old, "a\\n".to_owned())]);
    }
}
