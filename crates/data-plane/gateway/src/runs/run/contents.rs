//! The parts that are needed to store the contents of a run's calls (X-M64). They are the switch of
//! the run's workspace, and the secrets that must not be stored with the contents.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use narthex_audit::ContentsSwitch;
use narthex_model::{Secret, ServerDefinition};
use narthex_registry::Snapshot;
use narthex_wire::Redactor;

/// The switch and the secrets of one run.
#[derive(Debug, Default)]
pub(crate) struct RunContents {
    switch: OnceLock<ContentsSwitch>,
    /// The secrets that the run was made with, started servers or not; its agent may know some.
    secrets: Box<[Secret]>,
    known: ArcSwapOption<Known>,
}

/// Finds the secrets of these servers. Holds the definitions of the servers, and not their links.
#[derive(Debug)]
struct Known {
    servers: Vec<Arc<ServerDefinition>>,
    redactor: Arc<Redactor>,
}

impl RunContents {
    pub(super) fn with_secrets(secrets: Vec<Secret>) -> Self {
        Self { secrets: secrets.into(), ..Self::default() }
    }

    /// Uses this switch from now on. Only the first call counts.
    pub(crate) fn go_by(&self, switch: ContentsSwitch) {
        self.switch.get_or_init(|| switch);
    }

    /// True if the contents of calls are stored. A run that has not started stores none.
    pub(crate) fn are_kept(&self) -> bool {
        self.switch.get().is_some_and(ContentsSwitch::is_on)
    }

    /// Finds the secrets of the run and of all servers that it sees.
    pub(crate) fn redactor(&self, seen: &Snapshot) -> Arc<Redactor> {
        let servers = seen.servers.iter().filter_map(|row| row.definition.as_ref());
        if let Some(known) = &*self.known.load()
            && servers.clone().map(Arc::as_ptr).eq(known.servers.iter().map(Arc::as_ptr))
        {
            return known.redactor.clone();
        }
        let servers: Vec<_> = servers.cloned().collect();
        let mut secrets: Vec<_> = servers.iter().flat_map(|server| server.secrets()).collect();
        secrets.extend_from_slice(&self.secrets);
        let redactor = Arc::new(Redactor::new(&secrets));
        self.known.store(Some(Arc::new(Known { servers, redactor: redactor.clone() })));
        redactor
    }

    /// Forgets the parts that are made anew when they are needed.
    pub(super) fn forget_known(&self) {
        self.known.store(None);
    }
}
