//! Grants for a single call are used up in the store, for all daemons on it (D25).

use narthex_audit::{Actor, ActorKind, AuditEvent, kind};
use narthex_gateway::{Consumed, Consuming, GrantLedger, LedgerError, RunView};
use narthex_model::GrantId;

use crate::{Control, ControlError};

/// The ledger of a gateway whose runs this control plane has begun.
#[derive(Debug)]
pub struct StoreLedger {
    control: Control,
}

impl StoreLedger {
    /// Over the store of this control plane.
    #[must_use]
    pub fn new(control: Control) -> Self {
        Self { control }
    }
}

impl GrantLedger for StoreLedger {
    fn consume<'a>(&'a self, run: &'a RunView, grants: Vec<GrantId>) -> Consuming<'a> {
        let (workspace, run) = (run.workspace.clone(), run.id);
        // To its end: a grant that was used up and of which nobody knows would be lost.
        let consume = async move |this: Control| {
            let store = this.catalog_store(&workspace).await?;
            let gone = store.grants().consume(&workspace, &grants, run).await;
            let gone = gone.map_err(ControlError::Store)?;
            if gone.is_empty() {
                for id in &grants {
                    let by = Actor::new(ActorKind::Run, run.to_text());
                    let event = AuditEvent::new(kind::PERMISSION_CONSUMED, by);
                    let event = event.in_workspace(&workspace).of_run(run.to_text());
                    // The call itself is recorded as well, with the grants that let it through.
                    this.shared.audit.note(event.on("grant", id.to_text()))?;
                }
            }
            Ok(gone)
        };
        Box::pin(async move {
            match self.control.to_the_end(consume).await {
                Ok(gone) if gone.is_empty() => Ok(Consumed::All),
                Ok(gone) => Ok(Consumed::Gone(gone)),
                Err(error) => Err(LedgerError(error.to_string())),
            }
        })
    }
}
