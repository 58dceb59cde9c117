//! Consumes grants for a single call in the store, for all daemons on it (D25).

use narthex_audit::{Actor, ActorKind, AuditEvent, kind};
use narthex_gateway::{Consumed, Consuming, GrantLedger, LedgerError, RunView};
use narthex_model::{GrantId, PrincipalId, RunId};

use crate::{Control, ControlError};

/// The ledger of a gateway whose runs this control plane creates.
#[derive(Debug)]
pub struct StoreLedger {
    control: Control,
}

impl StoreLedger {
    /// A ledger over the store of this control plane.
    #[must_use]
    pub fn new(control: Control) -> Self {
        Self { control }
    }
}

impl GrantLedger for StoreLedger {
    fn consume<'a>(&'a self, run: &'a RunView, grants: Vec<GrantId>) -> Consuming<'a> {
        let (workspace, user) = (run.workspace.clone(), run.authority.actors().user.clone());
        let run = run.id;
        // The task continues to its end: a grant that was consumed without an answer would be lost.
        let consume = async move |this: Control| {
            let store = this.catalog_store(&workspace).await?;
            let gone = store.grants().consume(&workspace, &grants, run).await;
            let gone = gone.map_err(ControlError::Store)?;
            if gone.is_empty() {
                for id in &grants {
                    // In addition, the call itself is recorded with the grants that permitted it.
                    let event = consumed(*id, run, user.as_ref()).in_workspace(&workspace);
                    this.shared.audit.note(event)?;
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

fn consumed(id: GrantId, run: RunId, user: Option<&PrincipalId>) -> AuditEvent<'static> {
    let by = Actor::new(ActorKind::Run, run.to_text());
    let event = AuditEvent::new(kind::PERMISSION_CONSUMED, by).of_run(run.to_text());
    let event = event.on("grant", id.to_text());
    match user {
        Some(user) => event.with("acts_for", user.as_str()),
        None => event,
    }
}
