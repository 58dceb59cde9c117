//! The settings in the search: tabs, members, channels and webhooks by their names.

use narthex_console::{pages::search::Found, parts::Words};

use super::tab::{AUDITORS, NAMERS, TABS, encoded};
use crate::{console::viewer::Viewer, problem::Problem};

/// Maximum number of results of one kind.
const MOST: usize = 20;

/// The settings with a text in their name that the human may open.
pub(in super::super) async fn found(
    viewer: &Viewer<'_>,
    text: &str,
) -> Result<Vec<Found>, Problem> {
    let is_named = |name: &str| name.to_lowercase().contains(text);
    let found = |href: String, name: &str, about: &str| Found {
        href,
        name: Words::new(name),
        about: Words::new(about),
    };
    let tabs = TABS.iter().filter(|(_, label, access)| is_named(label) && viewer.may(*access));
    let mut all: Vec<_> = tabs
        .map(|(path, label, _)| found(viewer.path(path), label, "a tab of the settings"))
        .collect();
    if viewer.may(AUDITORS) {
        let members = viewer.control().members(&viewer.workspace)?;
        let named = members.iter().filter(|one| is_named(one.name.as_str())).take(MOST);
        all.extend(named.map(|one| {
            let href = viewer.path(&format!("settings/members/{}/roles", one.id));
            found(href, one.name.as_str(), "a member")
        }));
    }
    let Some(outbound) = &viewer.door.options.outbound else { return Ok(all) };
    if viewer.may(NAMERS) {
        let channels = outbound.channels(&viewer.workspace).await?;
        let named = channels.iter().filter(|row| is_named(row.name.as_str())).take(MOST);
        let href = viewer.path("settings/channels");
        all.extend(named.map(|row| found(href.clone(), row.name.as_str(), "a channel")));
    }
    if viewer.may(AUDITORS) {
        let webhooks = outbound.webhooks(&viewer.workspace).await?;
        let named = webhooks.iter().filter(|row| is_named(row.name.as_str())).take(MOST);
        all.extend(named.map(|row| {
            let name = row.name.as_str();
            let rest = format!("settings/webhooks/{}/deliveries", encoded(name));
            found(viewer.path(&rest), name, "a webhook")
        }));
    }
    Ok(all)
}
