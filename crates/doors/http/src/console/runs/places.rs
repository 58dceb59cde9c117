//! Addresses of the pages of runs, and the ids of elements on them.

use narthex_console::{pages::runs::Link, parts::Words};
use narthex_model::RunId;

use crate::console::viewer::Viewer;

/// The parameters as the part of an address after `?`.
pub(super) fn queried(pairs: &[(&str, String)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs);
    written.finish()
}

/// The id of a row's element.
pub(super) fn element(run: RunId) -> String {
    run.to_text().replace('_', "-")
}

/// The path of a page of a run.
pub(super) fn path(viewer: &Viewer<'_>, run: RunId, rest: &str) -> String {
    let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
    viewer.path(&format!("runs/{}{rest}", run.to_text()))
}

/// The link to a run.
pub(super) fn link(viewer: &Viewer<'_>, run: RunId) -> Link {
    Link { href: path(viewer, run, ""), label: Words::new(&run.to_text()) }
}
