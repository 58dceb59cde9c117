//! The server that a page is about, and the links to its other pages.

use narthex_console::pages::server::{ServerTabs, Tab};
use narthex_gateway::shown;
use narthex_registry::ServerRow;

use crate::{
    console::{rows, viewer::Viewer},
    problem::Problem,
};

/// A page of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tabbed {
    Overview,
    Tools,
    Definitions,
    Configuration,
    Log,
    Calls,
    Runs,
}

impl Tabbed {
    /// All pages, in the order of the links.
    const ALL: [Self; 7] = [
        Self::Overview,
        Self::Tools,
        Self::Definitions,
        Self::Configuration,
        Self::Log,
        Self::Calls,
        Self::Runs,
    ];

    /// The end of the path.
    pub(super) fn rest(self) -> &'static str {
        match self {
            Self::Overview => "",
            Self::Tools => "tools",
            Self::Definitions => "definitions",
            Self::Configuration => "configuration",
            Self::Log => "log",
            Self::Calls => "calls",
            Self::Runs => "runs",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Tools => "Tools",
            Self::Definitions => "Definition differences",
            Self::Configuration => "Configuration",
            Self::Log => "Log",
            Self::Calls => "Calls",
            Self::Runs => "Runs that have it",
        }
    }

    /// The path of this page of a server.
    pub(super) fn path(self, viewer: &Viewer<'_>, name: &str) -> String {
        match self {
            Self::Overview => rows::page(viewer, name),
            _ => rows::path(viewer, name, self.rest()),
        }
    }
}

/// The server of the page's path, with its place in the order of rows. One that the human may not
/// see is absent.
pub(super) fn find(viewer: &Viewer<'_>, name: &str) -> Result<(String, ServerRow), Problem> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let all = rows::seen(viewer, &snapshot);
    let is_it = |(_, row): &&(String, &ServerRow)| row.name == name && !row.is_overridden;
    let (place, row) = all.iter().find(is_it).ok_or_else(|| rows::absent(name))?;
    Ok((place.clone(), (*row).clone()))
}

/// The links to all pages of a server.
pub(super) fn tabs(viewer: &Viewer<'_>, row: &ServerRow, here: Tabbed) -> ServerTabs {
    let tab = |tab: Tabbed| Tab {
        href: tab.path(viewer, &row.name),
        label: tab.label(),
        count: match tab {
            Tabbed::Tools => row.is_ready().then(|| shown(row).tools.len()),
            Tabbed::Definitions => {
                let held = row.pinned.as_ref().map_or(0, |said| said.held().count());
                (held > 0).then_some(held)
            }
            _ => None,
        },
        is_current: tab == here,
    };
    ServerTabs { tabs: Tabbed::ALL.map(tab).to_vec() }
}

/// A path with these parameters; empty ones are left out.
pub(super) fn with(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}
