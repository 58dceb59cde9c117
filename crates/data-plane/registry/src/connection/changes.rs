//! A modern server's stream of list changes, kept open until its link ends.

use std::{sync::Arc, time::Duration};

use narthex_upstream::{CredentialFault, Link, LinkError};
use narthex_wire::{Notification, notification::Filter};
use tokio::{sync::oneshot, time::Instant};

use super::{Connection, relist};
use crate::registry::Shared;

/// The pauses before a stream that was lost is opened again.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Receives changes until the link ends or the server refuses to announce any. `acknowledged` is
/// notified once the server has agreed.
pub(super) async fn hear(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    link: Arc<Link>,
    acknowledged: oneshot::Sender<()>,
) {
    let mut acknowledged = Some(acknowledged);
    let mut pause = PAUSE_MIN;
    loop {
        let since = Instant::now();
        let ended = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = link.closed().cancelled() => return,
            ended = listen(&link, acknowledged.take()) => ended,
        };
        match ended {
            // A server that takes no requests for now may announce changes later.
            Err(error @ LinkError::Status { status: 429, .. }) => {
                tracing::debug!(server.name = link.name(), %error, "stream refused");
            }
            Err(LinkError::Refused { .. } | LinkError::Status { .. }) => {
                tracing::debug!(server.name = link.name(), "does not announce changes");
                return;
            }
            // After a sign-in there is another link.
            Err(error) if error.credential_fault().is_some_and(CredentialFault::needs_consent) => {
                tracing::debug!(server.name = link.name(), %error, "announces no changes");
                return;
            }
            Err(error) => tracing::debug!(server.name = link.name(), %error, "stream lost"),
            Ok(()) => {}
        }
        pause = if since.elapsed() >= PAUSE_MAX { PAUSE_MIN } else { pause };
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = link.closed().cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
        // Changes during the pause were not received, so the lists are read anew.
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = relist(&shared, &connection, &link) => {}
        }
    }
}

async fn listen(link: &Link, acknowledged: Option<oneshot::Sender<()>>) -> Result<(), LinkError> {
    let on_open = move || {
        if acknowledged.is_some_and(|acknowledged| acknowledged.send(()).is_err()) {
            tracing::trace!("the caller of the subscription has gone");
        }
    };
    link.listen(filter().as_bytes(), on_open).await
}

/// Asks for changes of all lists.
fn filter() -> String {
    let flags = Notification::of_lists().filter_map(|known| known.filter).map(Filter::member);
    let flags: Vec<_> = flags.map(|flag| format!(r#""{flag}":true"#)).collect();
    format!(r#""notifications":{{{}}}"#, flags.join(","))
}
