//! The tools that a run has of the built-in server.

use std::sync::Arc;

use bytes::Bytes;
use narthex_upstream::Inventory;
use narthex_wire::Raw;

use crate::view::View;

/// The tools that a run has of the built-in server.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) facts: Bytes,
    /// The view of the built-in server's own endpoint.
    pub(crate) view: View,
}

impl Offered {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.inventory.tool(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inventory.tools.is_empty()
    }

    /// The instructions of the built-in server's endpoint for a model; a JSON string.
    pub(crate) fn instructions(&self) -> Option<&[u8]> {
        Raw::new(&self.facts).get("instructions").map(Raw::as_bytes)
    }

    /// True if the built-in server's endpoint has instructions for a model.
    pub(crate) fn tells_models(&self) -> bool {
        self.instructions().is_some()
    }
}
