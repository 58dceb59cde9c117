//! One MCP session of a legacy client (revisions up to 2025-11-25).

use std::sync::{Arc, Mutex, PoisonError};

use narthex_wire::{Payload, Revision};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{Endpoint, RunView};

/// The identifier of a session: 256 bits of which 128 are random, with the node's id in front.
pub type SessionId = Arc<str>;

/// One MCP session.
#[derive(Debug)]
pub struct Session {
    /// Its id, also where the door shows none.
    pub id: SessionId,
    /// Whose it is.
    pub run: Arc<RunView>,
    /// Where it was opened; it is unknown at any other endpoint.
    pub endpoint: Endpoint,
    /// The negotiated revision.
    pub revision: Revision,
    pub(crate) outbox: mpsc::Sender<Payload>,
    outbox_reader: Mutex<Option<mpsc::Receiver<Payload>>>,
    pub(crate) closed: CancellationToken,
}

impl Session {
    /// What the server sends by itself, outside any call. The door takes it once.
    #[must_use]
    pub fn take_outbox(&self) -> Option<mpsc::Receiver<Payload>> {
        self.outbox_reader.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Cancelled when the session has ended: by its client, by idleness, or with its run.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }
}
