//! The webhook of a path, and the paths of its pages.

use narthex_outbound::WebhookRow;

use crate::{
    console::{settings::outbound::outbound, viewer::Viewer},
    problem::Problem,
};

/// The path of the tab.
pub(super) const TAB: &str = "settings/webhooks";

/// The path of a page or an action of a webhook.
pub(super) fn path(viewer: &Viewer<'_>, row: &WebhookRow, verb: &str) -> String {
    viewer.action(TAB, row.name.as_str(), verb)
}

/// The webhook of the path.
pub(super) async fn webhook(viewer: &Viewer<'_>) -> Result<WebhookRow, Problem> {
    Ok(outbound(viewer)?.webhook(&viewer.workspace, &viewer.segment(0)).await?)
}
