//! Members of a workspace, with their roles there.

use std::sync::Arc;

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_model::{PrincipalId, PrincipalKind, Roles, WorkspaceId};

use super::{AccessError, Account, of_principal};
use crate::{By, Control, ControlError};

impl Control {
    /// The principals that have roles in a workspace, in the order of their ids.
    ///
    /// # Errors
    /// When there is no such workspace, or no store.
    pub fn members(&self, workspace: &WorkspaceId) -> Result<Vec<Arc<Account>>, ControlError> {
        self.known_workspace(workspace)?;
        let table = self.access();
        let is_member = |one: &&Arc<Account>| one.roles.contains_key(workspace);
        Ok(table.accounts.values().filter(is_member).cloned().collect())
    }

    /// Gives a principal roles in a workspace by `{"roles": […]}`, in place of its roles there.
    ///
    /// Only `is_operator` can add a principal that the workspace does not know: other callers get
    /// the same answer as for an unknown principal.
    ///
    /// # Errors
    /// When a field is wrong, the caller can see no principal of this id or name, there is no such
    /// workspace or no store, or the store fails.
    pub async fn member_set(
        &self,
        workspace: &WorkspaceId,
        who: &str,
        text: &[u8],
        is_operator: bool,
        by: &By,
    ) -> Result<Arc<Account>, ControlError> {
        self.known_workspace(workspace)?;
        let mut fields = Fields::read(text, &["roles"])?;
        fields.needed("roles");
        let roles = fields.roles("roles");
        fields.done()?;
        let roles = roles.expect("what is missing is a fault");
        let (workspace, who, by) = (workspace.clone(), who.to_owned(), by.clone());
        self.change_access(async move |this, store| {
            let may_see = |one: &Account| is_operator || one.belongs_to(&workspace);
            let found = this.principal_named(&who, may_see)?;
            if found.kind == PrincipalKind::Client {
                return Err(AccessError::NoMember(found.name.clone()).into());
            }
            let is_foreign = found.kind == PrincipalKind::Service && !found.belongs_to(&workspace);
            if is_foreign {
                return Err(AccessError::ForeignService(found.name.clone()).into());
            }
            let noted = this.note(set(&workspace, &found.id, &roles, by.clone())).await?;
            let set = store.principals().set_roles(&workspace, &found.id, &roles, &by.id).await;
            set.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(found.id.clone())
        })
        .await
        .and_then(|id| self.principal(id.as_str()))
    }

    /// Removes all roles of a principal in a workspace with its sign-ins to servers there, and
    /// revokes the tokens of a service.
    ///
    /// # Errors
    /// When no principal of this id or name has roles there, there is no such workspace or no
    /// store, or the store fails.
    pub async fn member_remove(
        &self,
        workspace: &WorkspaceId,
        who: &str,
        by: &By,
    ) -> Result<(), ControlError> {
        self.known_workspace(workspace)?;
        let (workspace, who, by) = (workspace.clone(), who.to_owned(), by.clone());
        self.change_access(async move |this, store| {
            let found = this.principal_named(&who, |one| one.roles.contains_key(&workspace))?;
            let event = of_member(kind::MEMBER_REMOVED, &workspace, &found.id, by.clone());
            let noted = this.note(event).await?;
            if found.kind == PrincipalKind::Service {
                let revoked = store.service_tokens().revoke_all(&found.id).await;
                revoked.map_err(ControlError::Store)?;
            }
            let principals = store.principals();
            let removed = principals.set_roles(&workspace, &found.id, &Roles::new(), &by.id).await;
            removed.map_err(ControlError::Store)?;
            let _granting = this.shared.grants.changing().await;
            let ended = store.grants().end_of_user(&workspace, found.id.as_str()).await;
            ended.map_err(ControlError::Store)?;
            let dropped = store.oauth_grants().drop_user(&workspace, found.id.as_str()).await;
            dropped.map_err(ControlError::Store)?;
            this.shared.grants.forget_user(&workspace, &found.id);
            noted.done().await;
            Ok(())
        })
        .await
    }
}

/// The event that gives a principal these roles in a workspace from now on.
pub(super) fn set(
    workspace: &WorkspaceId,
    id: &PrincipalId,
    roles: &Roles,
    by: By,
) -> AuditEvent<'static> {
    let event = of_member(kind::MEMBER_SET, workspace, id, by).changing(["roles"]);
    event.with("roles", names(roles))
}

/// The event of an action on a principal in a workspace.
pub(super) fn of_member(
    kind: &'static str,
    workspace: &WorkspaceId,
    id: &PrincipalId,
    by: By,
) -> AuditEvent<'static> {
    of_principal(kind, id, by).in_workspace(workspace)
}

pub(super) fn names(roles: &Roles) -> Vec<&'static str> {
    roles.iter().map(|role| role.as_str()).collect()
}
