//! The registry that this daemon asks, and its failures on pages.

use narthex_console::{pages::registry::Failed, parts::Words};
use narthex_model::ErrorKind;

use crate::{FindFault, PublicServers, console::viewer::Viewer};

/// The registry of this daemon.
pub(super) fn asked<'v>(viewer: &Viewer<'v>) -> Result<&'v dyn PublicServers, FindFault> {
    viewer.door.options.public_servers.as_deref().ok_or_else(|| FindFault {
        kind: ErrorKind::Unavailable,
        sentence: "this daemon asks no registry".to_owned(),
    })
}

/// The failure of a registry, with the address that asks again.
pub(super) fn failed(fault: FindFault, again: String) -> Failed {
    let FindFault { kind, sentence } = fault;
    Failed { kind: kind.as_str(), sentence: Words::new(&sentence), again }
}
