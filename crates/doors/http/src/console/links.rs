//! Links from a page to the pages and lists that belong to it, each list with its filter (R1).
//!
//! A human gets those links that they may open: the access is that of the page behind each.

use narthex_console::{Related, parts::Words};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{asked::address, viewer::Viewer};
use crate::{
    Access,
    routes::{AUDIT, AUTHOR, READER, SEE_RUNS},
};

/// The characters of names that are escaped in paths.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The links of a page, in their order.
pub(super) struct Links<'v, 'a> {
    viewer: &'v Viewer<'a>,
    found: Vec<Related>,
}

impl<'v, 'a> Links<'v, 'a> {
    /// No link yet.
    pub(super) fn of(viewer: &'v Viewer<'a>) -> Self {
        Self { viewer, found: Vec::new() }
    }

    /// The links as the frame has them.
    pub(super) fn found(self) -> Vec<Related> {
        self.found
    }

    /// Events of the audit with these filters.
    pub(super) fn audit(self, label: &str, pairs: &[(&str, &str)]) -> Self {
        self.list(Access::Member(AUDIT), label, "audit", pairs)
    }

    /// Runs with these filters.
    pub(super) fn runs(self, label: &str, pairs: &[(&str, &str)]) -> Self {
        self.list(Access::Member(SEE_RUNS), label, "runs", pairs)
    }

    /// One run, by its id.
    pub(super) fn run(self, label: &str, id: &str) -> Self {
        let href = self.viewer.path(&format!("runs/{id}"));
        self.page(Access::Member(SEE_RUNS), label, href)
    }

    /// Grants with these filters.
    pub(super) fn grants(self, label: &str, pairs: &[(&str, &str)]) -> Self {
        self.list(Access::Member(SEE_RUNS), label, "grants", pairs)
    }

    /// Requests of agents with these filters.
    pub(super) fn requests(self, label: &str, pairs: &[(&str, &str)]) -> Self {
        self.list(Access::Member(SEE_RUNS), label, "approvals", pairs)
    }

    /// Agents with these filters.
    pub(super) fn agents(self, label: &str, pairs: &[(&str, &str)]) -> Self {
        self.list(Access::Member(AUTHOR), label, "agents", pairs)
    }

    /// Capabilities with these filters.
    pub(super) fn capabilities(self, label: &str, pairs: &[(&str, &str)]) -> Self {
        self.list(Access::Member(AUTHOR), label, "capabilities", pairs)
    }

    /// One agent, by its name.
    pub(super) fn agent(self, name: &str) -> Self {
        match agent(self.viewer, name) {
            Some(href) => self.add(&format!("Agent {name}"), href),
            None => self,
        }
    }

    /// A page that this access may open.
    pub(super) fn page(self, access: Access, label: &str, href: String) -> Self {
        match self.viewer.may(access) {
            true => self.add(label, href),
            false => self,
        }
    }

    fn list(self, access: Access, label: &str, page: &str, pairs: &[(&str, &str)]) -> Self {
        let href = address(self.viewer, page, pairs);
        self.page(access, label, href)
    }

    fn add(mut self, label: &str, href: String) -> Self {
        self.found.push(Related { href, label: Words::within(label, 100) });
        self
    }
}

/// The path of the page of an agent, for those who may read it.
pub(super) fn agent(viewer: &Viewer<'_>, name: &str) -> Option<String> {
    object(viewer, Access::Member(READER), "agents", name)
}

/// The path of the page of a capability, for those who may read it.
pub(super) fn capability(viewer: &Viewer<'_>, name: &str) -> Option<String> {
    object(viewer, Access::Member(AUTHOR), "capabilities", name)
}

/// The path of the page of a run, for those who may see runs.
pub(super) fn run(viewer: &Viewer<'_>, id: &str) -> Option<String> {
    object(viewer, Access::Member(SEE_RUNS), "runs", id)
}

fn object(viewer: &Viewer<'_>, access: Access, list: &str, name: &str) -> Option<String> {
    let is_open = !name.is_empty() && viewer.may(access);
    is_open.then(|| viewer.path(&format!("{list}/{}", utf8_percent_encode(name, ESCAPED))))
}
