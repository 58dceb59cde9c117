//! Connected services: the servers of this daemon's configuration, one row each, live.

pub mod add;

use askama::Template;
use narthex_model::ServerState;

use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Moment, State, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "servers.html")]
pub struct ServersPage {
    /// The frame.
    pub frame: Frame,
    /// The live part.
    pub list: ServerList,
    /// The text of the filter.
    pub filtered: String,
    /// The path of this page.
    pub path: String,
    /// The path of the form that adds a server; `None` for a human who may not.
    pub add: Option<String>,
    /// The button that reads the files anew.
    pub reload: Option<Action>,
}

/// The rows, and the numbers above them.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_list.html")]
pub struct ServerList {
    /// The value that forms repeat.
    pub csrf: String,
    /// The filters by state.
    pub filters: ServerFilters,
    /// The rows of this page.
    pub rows: Vec<ServerRow>,
    /// Number of rows that fit the filters.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// The filters above the rows, as the event stream sends them.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_filters.html")]
pub struct ServerFilters {
    /// The filters.
    pub filters: Vec<Filter>,
}

/// One row, as the event stream sends it.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_row.html")]
pub struct ServerRowPart {
    /// The value that forms repeat.
    pub csrf: String,
    /// The row.
    pub row: ServerRow,
}

/// A server.
#[derive(Debug, Clone)]
pub struct ServerRow {
    /// The id of the row's element.
    pub id: String,
    /// The name.
    pub name: Words,
    /// The path of the server's page.
    pub path: String,
    /// The state.
    pub state: State,
    /// The present activity of a server that is connecting.
    pub activity: Option<&'static str>,
    /// The reason for the state, if it is not ready.
    pub reason: Option<Words>,
    /// The transport.
    pub transport: &'static str,
    /// The way in which narthex proves itself to the server.
    pub auth: &'static str,
    /// Number of tools that callers see; `None` while the server is not ready.
    pub tools: Option<usize>,
    /// The path of the list of tools.
    pub tools_path: String,
    /// Number of definitions under review.
    pub held_back: usize,
    /// Faults that leave the server working.
    pub warnings: Vec<Words>,
    /// The time of the last answer.
    pub answered: Option<Moment>,
    /// The place where the server is configured.
    pub origin: Words,
    /// True if an entry of another layer counts instead.
    pub is_overridden: bool,
    /// The buttons.
    pub actions: Vec<Action>,
    /// The pages on which a server that is broken is mended.
    pub links: Vec<MendingLink>,
}

/// A link to a page on which a broken server is mended.
#[derive(Debug, Clone)]
pub struct MendingLink {
    /// The words on the link.
    pub label: Words,
    /// The address of the page.
    pub href: String,
    /// True for the link that mends the server.
    pub is_primary: bool,
}

/// The result of a test of a server.
#[derive(Debug, Template)]
#[template(path = "server_test.html")]
pub struct ServerTestPage {
    /// The frame.
    pub frame: Frame,
    /// The result.
    pub tested: Tested,
    /// The page to go back to.
    pub back: String,
}

/// The stages of a test.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_tested.html")]
pub struct Tested {
    /// The server.
    pub server: Words,
    /// True if each stage is fine.
    pub is_fine: bool,
    /// The stages.
    pub stages: Vec<Stage>,
}

/// The stages of a test, as a part of an open page.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_tested_part.html")]
pub struct TestedPart {
    /// The result.
    pub tested: Tested,
}

/// A stage of a test.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The name of the stage.
    pub name: &'static str,
    /// The result in words.
    pub outcome: Words,
    /// True if it is fine.
    pub is_fine: bool,
    /// The time that it took.
    pub ms: u64,
}

impl ServerRow {
    /// True if the row has a list of tools. It stays while the server connects anew, so that a
    /// person who is in it stays there.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        self.tools.is_some() || self.state.0 == ServerState::Connecting
    }

    /// The button that mends the server, if it is broken.
    #[must_use]
    pub fn mending(&self) -> Option<&Action> {
        self.actions.iter().find(|action| action.is_primary)
    }
}
