//! All tools of the servers of this daemon's configuration, and changes of several at once.

mod act;
mod calls;
mod change;
mod list;
mod table;

use http::StatusCode;

use self::{act::told, change::change, list::Wanted, table::Again};
use super::{answer::Answered, page::Page, viewer::Viewer};
use crate::Access;

/// The table, and the change of the chosen tools.
pub(super) const PAGES: &[Page] = &[
    Page::get("tools", Access::Shared, |viewer, _| Box::pin(show(viewer))).in_nav("Tools", "list"),
    Page::post("tools/change", Access::Operator, |viewer, body| Box::pin(change(viewer, body))),
];

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["q", "server", "state", "sort", "page", "done", "n"])?;
    let told = told(query.text("done"), query.text("n"));
    let wanted = Wanted::read(|name| query.text(name).to_owned())?;
    table::page(viewer, &wanted, Again { told, ..Again::default() }, StatusCode::OK).await
}
