//! Members of a workspace: who has which roles there.

use std::sync::Arc;

use narthex_model::{PrincipalKind, Roles, WorkspaceId};

use super::{AccessError, Account, fields::Fields};
use crate::{Control, ControlError};

impl Control {
    /// Those who have roles in a workspace, in the order of their ids.
    ///
    /// # Errors
    /// When there is no such workspace, or no store.
    pub fn members(&self, workspace: &WorkspaceId) -> Result<Vec<Arc<Account>>, ControlError> {
        self.known_workspace(workspace)?;
        let table = self.access();
        let is_member = |one: &&Arc<Account>| one.roles.contains_key(workspace);
        Ok(table.accounts.values().filter(is_member).cloned().collect())
    }

    /// Gives somebody roles in a workspace by `{"roles": […]}`, in place of those that they have
    /// there. Only `is_operator` brings in somebody whom the workspace does not know: to others
    /// they are as absent as one who never was.
    ///
    /// # Errors
    /// When a field is wrong, nobody of this id or name can be seen, there is no such workspace or
    /// no store, or it fails.
    pub async fn member_set(
        &self,
        workspace: &WorkspaceId,
        who: &str,
        text: &[u8],
        is_operator: bool,
        by: &str,
    ) -> Result<Arc<Account>, ControlError> {
        self.known_workspace(workspace)?;
        let mut fields = Fields::read(text, &["roles"])?;
        fields.needed("roles");
        let roles = fields.roles("roles");
        fields.done()?;
        let roles = roles.expect("what is missing is a fault");
        let (workspace, who, by) = (workspace.clone(), who.to_owned(), by.to_owned());
        self.change_access(async move |this, store| {
            let may_see = |one: &Account| is_operator || one.belongs_to(&workspace);
            let found = this.somebody(&who, may_see)?;
            let is_foreign = found.kind == PrincipalKind::Service && !found.belongs_to(&workspace);
            if is_foreign {
                return Err(AccessError::ForeignService(found.name.clone()).into());
            }
            let set = store.principals().set_roles(&workspace, &found.id, &roles, &by).await;
            set.map_err(ControlError::Store)?;
            let (event, id) = ("workspace.member.set", &found.id);
            tracing::info!(event, %workspace, principal.id = %id, ?roles, by);
            Ok(found.id.clone())
        })
        .await
        .and_then(|id| self.principal(id.as_str()))
    }

    /// Takes all roles in a workspace from somebody. Of a service the tokens are revoked as well.
    ///
    /// # Errors
    /// When nobody of this id or name has roles there, there is no such workspace or no store, or
    /// it fails.
    pub async fn member_remove(
        &self,
        workspace: &WorkspaceId,
        who: &str,
        by: &str,
    ) -> Result<(), ControlError> {
        self.known_workspace(workspace)?;
        let (workspace, who, by) = (workspace.clone(), who.to_owned(), by.to_owned());
        self.change_access(async move |this, store| {
            let found = this.somebody(&who, |one| one.roles.contains_key(&workspace))?;
            if found.kind == PrincipalKind::Service {
                let revoked = store.service_tokens().revoke_all(&found.id).await;
                revoked.map_err(ControlError::Store)?;
            }
            let principals = store.principals();
            let removed = principals.set_roles(&workspace, &found.id, &Roles::new(), &by).await;
            removed.map_err(ControlError::Store)?;
            let (event, id) = ("workspace.member.removed", &found.id);
            tracing::info!(event, %workspace, principal.id = %id, by);
            Ok(())
        })
        .await
    }
}
