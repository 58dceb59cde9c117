//! The parts of the reviews.

use std::sync::{Arc, Weak};

use narthex_control::{Control, KeyedLock};
use narthex_gateway::Gateway;
use narthex_model::RunId;
use narthex_store::Store;

use crate::reviews::{ReviewError, applied::AppliedDecisions, read_lists::ReadLists};

/// Reviews definitions of servers before callers have them. Clones are handles to the same reviews.
#[derive(Debug, Clone)]
pub struct Reviews {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// For tasks that outlive their callers.
    pub(crate) this: Weak<Self>,
    pub(crate) gateway: Gateway,
    pub(crate) control: Control,
    /// The run of the process itself.
    pub(crate) local: RunId,
    /// Locks per server for storing new definitions.
    pub(crate) looking: KeyedLock<String>,
    /// The definitions read from lists of servers.
    pub(crate) read_lists: ReadLists,
    /// The decisions on definitions of live servers that are applied here.
    pub(crate) applied: AppliedDecisions,
}

impl Reviews {
    /// The reviews for the servers of this gateway. `local` is the run of the process itself, which
    /// has the live servers.
    #[must_use]
    pub fn new(gateway: Gateway, control: Control, local: RunId) -> Self {
        let shared = Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            gateway,
            control,
            local,
            looking: KeyedLock::default(),
            read_lists: ReadLists::default(),
            applied: AppliedDecisions::default(),
        });
        Self { shared }
    }

    /// Has the registry show callers of live servers only reviewed definitions.
    pub fn pin(&self) {
        self.shared.gateway.registry().set_pins(self.shared.clone());
    }

    pub(crate) fn control(&self) -> &Control {
        &self.shared.control
    }

    pub(crate) fn store(&self) -> Result<&Store, ReviewError> {
        Ok(self.control().needed_store()?)
    }
}
