//! The tools that fit the filters of an address, in its order.

use std::{borrow::Cow, cmp::Reverse, collections::HashSet};

use narthex_model::{ErrorKind, NO_GATES, ServerState, ToolScopes};
use narthex_registry::{ServerRow, Snapshot};
use narthex_wire::{Raw, estimated_tokens};

use crate::{
    console::{rows, viewer::Viewer},
    problem::Problem,
};

/// The filters and the place of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// A part of the name or of the description.
    pub(super) text: String,
    pub(super) server: String,
    pub(super) state: Option<State>,
    pub(super) sort: Sort,
    /// Number of the page, from 0.
    pub(super) page: usize,
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Server,
    Name,
    Size,
}

/// The visibility of a tool for callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Callers see it, and need nothing more.
    Seen,
    /// Callers see it, and need a grant of a human.
    Gated,
    /// The entry of the server hides it.
    Hidden,
    /// A human must accept its definition first.
    Held,
}

/// The tools of an address.
#[derive(Debug)]
pub(super) struct Listed<'s> {
    /// Those that fit.
    pub(super) tools: Vec<Shown<'s>>,
    /// Number of all tools.
    pub(super) all: usize,
    /// Number of tools in each state that fit the other filters.
    pub(super) in_states: Vec<(State, usize)>,
    /// Number of servers whose tools are unknown.
    pub(super) unknown: usize,
}

/// A tool of a server that is ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'s> {
    pub(super) row: &'s ServerRow,
    /// The server's own name of the tool.
    pub(super) name: &'s str,
    raw: &'s [u8],
    pub(super) state: State,
}

impl Wanted {
    /// Reads the filters by the names of their parameters.
    pub(super) fn read(text: impl Fn(&str) -> String) -> Result<Self, Problem> {
        let invalid = |text: &str| Problem::new(ErrorKind::Invalid, text);
        let state = match &*text("state") {
            "" => None,
            word => {
                let found = State::ALL.into_iter().find(|state| state.filter() == word);
                let text = "this state is not known; choose one of the filters above the table";
                Some(found.ok_or_else(|| invalid(text))?)
            }
        };
        let sort = match &*text("sort") {
            "" => Sort::Server,
            "name" => Sort::Name,
            "size" => Sort::Size,
            _ => return Err(invalid("this order is not known; use the links above the table")),
        };
        let page = match &*text("page") {
            "" => 0,
            number => {
                number.parse().map_err(|_no_number| invalid("this is no number of a page"))?
            }
        };
        Ok(Self { text: text("q"), server: text("server"), state, sort, page })
    }

    /// The parameters of the address, without those that have their usual value.
    pub(super) fn kept(&self) -> Vec<(&'static str, String)> {
        let sort = match self.sort {
            Sort::Server => "",
            Sort::Name => "name",
            Sort::Size => "size",
        };
        let all = [
            ("q", self.text.clone()),
            ("server", self.server.clone()),
            ("state", self.state.map_or("", State::filter).to_owned()),
            ("sort", sort.to_owned()),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    /// The address of the list with these filters.
    pub(super) fn address(&self, viewer: &Viewer<'_>) -> String {
        self.address_with(viewer, &[])
    }

    /// The address of the list with these filters and further parameters.
    pub(super) fn address_with(&self, viewer: &Viewer<'_>, more: &[(&str, &str)]) -> String {
        let mut written = form_urlencoded::Serializer::new(String::new());
        written.extend_pairs(self.kept());
        if self.page > 0 {
            written.append_pair("page", &self.page.to_string());
        }
        written.extend_pairs(more);
        match written.finish().as_str() {
            "" => viewer.path("tools"),
            query => viewer.path(&format!("tools?{query}")),
        }
    }

    pub(super) fn on_page(&self, page: usize) -> Self {
        Self { page, ..self.clone() }
    }

    pub(super) fn in_state(&self, word: &str) -> Self {
        let state = State::ALL.into_iter().find(|state| state.filter() == word);
        Self { state, page: 0, ..self.clone() }
    }

    pub(super) fn with_text(&self, text: &str) -> Self {
        Self { text: text.to_owned(), page: 0, ..self.clone() }
    }

    pub(super) fn of_server(&self, server: &str) -> Self {
        Self { server: server.to_owned(), page: 0, ..self.clone() }
    }

    pub(super) fn sorted(&self, sort: Sort) -> Self {
        Self { sort, page: 0, ..self.clone() }
    }

    fn fits(&self, one: &Shown<'_>, text: &str) -> bool {
        (self.server.is_empty() || one.row.name == self.server)
            && (text.is_empty()
                || one.name.to_lowercase().contains(text)
                || one.description().to_lowercase().contains(text))
    }
}

impl State {
    pub(super) const ALL: [Self; 4] = [Self::Seen, Self::Gated, Self::Hidden, Self::Held];

    /// The state in words.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Seen => "see it",
            Self::Gated => "need a grant",
            Self::Hidden => "do not see it: hidden",
            Self::Held => "do not see it: under review",
        }
    }

    /// The word in addresses, which is also that of the filter.
    pub(super) fn filter(self) -> &'static str {
        match self {
            Self::Seen => "open",
            Self::Gated => "gated",
            Self::Hidden => "hidden",
            Self::Held => "review",
        }
    }
}

impl<'s> Listed<'s> {
    /// The tools that the human may see, and that fit.
    pub(super) fn of(viewer: &'s Viewer<'_>, snapshot: &'s Snapshot, wanted: &Wanted) -> Self {
        let (mut every, mut unknown) = (Vec::new(), 0);
        for (_, row) in rows::seen(viewer, snapshot) {
            if row.is_ready() && !row.is_overridden {
                every.extend(tools_of(row));
            } else if !row.is_overridden && row.state != ServerState::Disabled {
                unknown += 1;
            }
        }
        let (all, text) = (every.len(), wanted.text.to_lowercase());
        every.retain(|one| wanted.fits(one, &text));
        let count = |state| every.iter().filter(|one| one.state == state).count();
        let in_states = State::ALL.map(|state| (state, count(state))).to_vec();
        every.retain(|one| wanted.state.is_none_or(|state| one.state == state));
        match wanted.sort {
            // The rows of servers are in their order already.
            Sort::Server => every.sort_by_key(|one| (&one.row.name, one.name)),
            Sort::Name => every.sort_by_key(|one| (one.name, &one.row.name)),
            Sort::Size => every.sort_by_cached_key(|one| {
                (Reverse(one.tokens()), one.name.to_owned(), one.row.name.clone())
            }),
        }
        Self { tools: every, all, in_states, unknown }
    }
}

/// The tools of a ready server, also those that callers do not see.
pub(super) fn tools_of(row: &ServerRow) -> Vec<Shown<'_>> {
    let accepted: Option<HashSet<&str>> =
        row.pinned.as_ref().map(|_| row.inventory.tools.iter().map(|entry| &*entry.key).collect());
    let listed = row.pinned.as_ref().map_or(&row.inventory, |said| said.listed());
    let exposed = row.definition.as_deref().map(|definition| &definition.exposed.tools);
    let gates = row.definition.as_deref().map_or(&NO_GATES, |definition| &*definition.gates);
    let state = |name: &str| {
        if accepted.as_ref().is_some_and(|accepted| !accepted.contains(name)) {
            State::Held
        } else if exposed.is_some_and(|rule| !rule.lets(name)) {
            State::Hidden
        } else if gates.of_tool(name).is_empty() {
            State::Seen
        } else {
            State::Gated
        }
    };
    let tools = listed.tools.iter();
    tools
        .map(|entry| Shown { row, name: &entry.key, raw: &entry.raw, state: state(&entry.key) })
        .collect()
}

impl<'s> Shown<'s> {
    /// The value of a form that names the tool. No alias has a comma.
    pub(super) fn pick(&self) -> String {
        format!("{},{}", self.row.name, self.name)
    }

    pub(super) fn is_visible(&self) -> bool {
        matches!(self.state, State::Seen | State::Gated)
    }

    pub(super) fn description(&self) -> Cow<'s, str> {
        Raw::new(self.raw).get("description").and_then(Raw::as_str).unwrap_or_default()
    }

    /// The tool scopes that the entry requires, also of a tool that callers do not see.
    pub(super) fn scopes(&self) -> &'s ToolScopes {
        let gates =
            self.row.definition.as_deref().map_or(&NO_GATES, |definition| &*definition.gates);
        gates.of_tool(self.name)
    }

    /// The hints of the server in words.
    pub(super) fn hints(&self) -> Vec<&'static str> {
        let given = Raw::new(self.raw).get("annotations");
        let hint = |name| given?.get(name)?.as_bool();
        let all = [
            (hint("readOnlyHint"), "reads only", ""),
            (hint("destructiveHint"), "destructive", "destroys nothing"),
            (hint("idempotentHint"), "repeatable", ""),
            (hint("openWorldHint"), "reaches out", "stays inside"),
        ];
        let word = |(said, yes, no): (Option<bool>, &'static str, &'static str)| match said {
            Some(true) => Some(yes),
            Some(false) => Some(no).filter(|no| !no.is_empty()),
            None => None,
        };
        all.into_iter().filter_map(word).collect()
    }

    /// The size of the definition, as an estimate.
    pub(super) fn tokens(&self) -> u64 {
        estimated_tokens(self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Wanted, Problem> {
        Wanted::read(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map_or_else(String::new, |(_, value)| (*value).to_owned())
        })
    }

    /// R5: filters are read back from the address as they were written.
    #[test]
    fn r5_filters_are_read_back() {
        let pairs = [("q", "a b"), ("server", "git"), ("state", "gated"), ("sort", "size")];
        let wanted = read(&pairs).unwrap();
        assert_eq!(wanted.state, Some(State::Gated));
        let kept = wanted.kept();
        let again: Vec<_> = kept.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(read(&again).unwrap(), wanted);
        assert!(read(&[]).unwrap().kept().is_empty());
        for bad in [("state", "x"), ("sort", "x"), ("page", "-1")] {
            assert!(read(&[bad]).is_err(), "{bad:?}");
        }
    }
}
