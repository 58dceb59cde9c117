//! The common steps of all changes of permissions.

use narthex_model::{ErrorKind, WorkspaceId, json::shortened};
use narthex_store::{StatementError, Store};

use super::{AccessError, Account};
use crate::{CatalogError, Control, ControlError};

impl Control {
    /// Changes permissions in the store and reads the table anew, one change at a time. The change
    /// continues to its end if the caller disconnects. After a token was revoked, this daemon
    /// refuses it as soon as this call returns.
    pub(crate) async fn change_access<T, F>(
        &self,
        change: impl FnOnce(Self, Store) -> F + Send + 'static,
    ) -> Result<T, ControlError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ControlError>> + Send + 'static,
    {
        let store = self.needed_store()?.clone();
        let change = async move |this: Self| {
            let access = this.shared.access.clone();
            let _together = access.changing.lock().await;
            // The change must see the changes that other daemons have just made.
            access.refresh(&store).await?;
            let done = change(this, store.clone()).await;
            // Read even after a failure, which may have come after the first of several steps.
            access.reload(&store).await?;
            done
        };
        self.to_the_end(change).await
    }

    /// The store.
    ///
    /// # Errors
    /// When the daemon has none.
    pub fn needed_store(&self) -> Result<&Store, ControlError> {
        self.shared.store.as_ref().ok_or_else(|| CatalogError::NoStore.into())
    }

    /// Checks that the workspace exists.
    pub(crate) fn known_workspace(&self, id: &WorkspaceId) -> Result<(), ControlError> {
        self.needed_store()?;
        match self.access().workspaces.contains_key(id) {
            true => Ok(()),
            false => Err(CatalogError::NoWorkspace(id.clone()).into()),
        }
    }

    /// Finds a principal by id or by full name, among the principals that `may_see` accepts.
    pub(super) fn principal_named(
        &self,
        who: &str,
        may_see: impl Fn(&Account) -> bool,
    ) -> Result<std::sync::Arc<Account>, ControlError> {
        let table = self.access();
        let is_it = |one: &&std::sync::Arc<Account>| {
            (one.id.as_str() == who || one.name.as_str() == who) && may_see(one)
        };
        let found = table.accounts.values().find(is_it).cloned();
        found.ok_or_else(|| AccessError::UnknownPrincipal(shortened(who)).into())
    }
}

/// Turns the failure of a statement into an error: `taken` for a conflict.
pub(super) fn of_statement(taken: AccessError) -> impl FnOnce(StatementError) -> ControlError {
    move |error| match error.kind() {
        ErrorKind::Conflict => taken.into(),
        _ => ControlError::Store(error),
    }
}
