//! Creates, lists and revokes tokens of services.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_login::BearerHash;
use narthex_model::{
    PrincipalId, PrincipalKind, PrincipalName, Roles, ServiceTokenId, WorkspaceId, json::shortened,
    meant_hint,
};
use narthex_store::{NewPrincipal, ServiceTokenRow, Store};

use super::{
    AccessError, KnownToken, ServiceToken,
    change::of_statement,
    members::{names, of_member, set},
    principals::new_id,
};
use crate::{Account, By, CatalogError, Control, ControlError};

/// Time for which a token is valid unless the request gives another one: 90 days.
const USUAL_S: u64 = 90 * DAY_S;
/// Longest time that a token can be valid: ten years.
const LONGEST_S: u64 = 3650 * DAY_S;
const DAY_S: u64 = 24 * 60 * 60;
/// Largest number of valid tokens of a workspace.
const LIVE_MAX: usize = 1000;

/// A token that was created now.
#[derive(Debug)]
pub struct CreatedToken {
    /// The token, for the caller alone: it is shown once, and stored nowhere.
    pub token: ServiceToken,
    /// The stored token.
    pub known: Arc<KnownToken>,
}

/// The fields of a request for a token.
struct Asked {
    name: PrincipalName,
    roles: Option<Roles>,
    label: String,
    expires_at: SystemTime,
}

impl Control {
    /// All tokens of a workspace, also revoked ones, in the order of their ids.
    ///
    /// # Errors
    /// When there is no such workspace, or no store.
    pub fn service_tokens(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<Vec<Arc<KnownToken>>, ControlError> {
        self.known_workspace(workspace)?;
        let table = self.access();
        let is_here = |one: &&Arc<KnownToken>| one.row.workspace == *workspace;
        Ok(table.tokens.values().filter(is_here).cloned().collect())
    }

    /// Creates a token from `{"service": …, "roles": […], "label": …, "expires_in": …}`.
    ///
    /// If the service does not exist, it is created, and the request must give its roles. An
    /// existing service keeps its roles. The token inherits `is_proved` of its creator: the service
    /// may not act for humans with more right than the creator (D15).
    ///
    /// # Errors
    /// When a field is wrong, the service has other roles, or there are too many tokens; when there
    /// is no such workspace or no store, or the store fails.
    pub async fn service_token_create(
        &self,
        workspace: &WorkspaceId,
        text: &[u8],
        (by, is_proved): (&By, bool),
    ) -> Result<CreatedToken, ControlError> {
        self.known_workspace(workspace)?;
        let asked = asked(workspace, text)?;
        let (workspace, by) = (workspace.clone(), by.clone());
        let (token, id) = self
            .change_access(async move |this, store| {
                let now = SystemTime::now();
                let all = this.service_tokens(&workspace)?;
                if all.iter().filter(|one| one.is_live(now)).count() >= LIVE_MAX {
                    return Err(AccessError::TooManyTokens(LIVE_MAX).into());
                }
                let Asked { name, roles, label, expires_at } = asked;
                let principal = this.service(&store, &workspace, name, roles, &by).await?;
                let (token, id) = ServiceToken::generate().map_err(AccessError::Randomness)?;
                let event = of_token(kind::TOKEN_CREATED, &workspace, &id, by.clone());
                let event = event.with("principal", principal.as_str());
                let event = event.with("is_proved", is_proved);
                let noted = this.note(event).await?;
                let row = ServiceTokenRow {
                    id: id.clone(),
                    workspace,
                    principal,
                    hash: BearerHash::of(token.expose()).to_text(),
                    label,
                    created_at: now,
                    created_by: by.id.into_owned(),
                    is_proved,
                    expires_at: Some(expires_at),
                    revoked_at: None,
                    last_used_at: None,
                };
                store.service_tokens().create(&row).await.map_err(ControlError::Store)?;
                noted.done().await;
                Ok((token, id))
            })
            .await?;
        let known = self.access().tokens.get(&id).cloned();
        let known = known.ok_or_else(|| AccessError::UnknownToken(id.to_string()))?;
        Ok(CreatedToken { token, known })
    }

    /// Revokes a token: at this daemon at once, at others within [`crate::POLL`].
    ///
    /// # Errors
    /// When no valid token has this id; when there is no such workspace or no store, or the store
    /// fails.
    pub async fn service_token_revoke(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), ControlError> {
        self.known_workspace(workspace)?;
        let unknown = AccessError::UnknownToken(shortened(id));
        let Ok(id) = ServiceTokenId::new(id) else { return Err(unknown.into()) };
        let (workspace, by) = (workspace.clone(), by.clone());
        self.change_access(async move |this, store| {
            let is_it =
                |one: &KnownToken| one.row.workspace == workspace && one.row.revoked_at.is_none();
            if !this.access().tokens.get(&id).is_some_and(|one| is_it(one)) {
                return Err(unknown.into());
            }
            let event = of_token(kind::TOKEN_REVOKED, &workspace, &id, by);
            let noted = this.note(event).await?;
            let revoked = store.service_tokens().revoke(&workspace, &id).await;
            if !revoked.map_err(ControlError::Store)? {
                return Err(unknown.into());
            }
            noted.done().await;
            Ok(())
        })
        .await
    }

    /// Returns the service of this name; creates the service with `roles` if there is none.
    async fn service(
        &self,
        store: &Store,
        workspace: &WorkspaceId,
        name: PrincipalName,
        roles: Option<Roles>,
        by: &By,
    ) -> Result<PrincipalId, ControlError> {
        let table = self.access();
        let found = table.accounts.values().find(|one| one.name == name);
        if let Some(found) = found.filter(|found| found.kind != PrincipalKind::Service) {
            return Err(AccessError::NameTaken(found.name.clone()).into());
        }
        match (found, roles) {
            (Some(found), None) if found.roles.contains_key(workspace) => Ok(found.id.clone()),
            (Some(found), Some(roles)) if found.roles.get(workspace) == Some(&roles) => {
                Ok(found.id.clone())
            }
            // The service had been removed from the workspace; it gets its roles again.
            (Some(found), Some(roles)) if !found.roles.contains_key(workspace) => {
                let noted = self.note(set(workspace, &found.id, &roles, by.clone())).await?;
                let set = store.principals().set_roles(workspace, &found.id, &roles, &by.id).await;
                set.map_err(ControlError::Store)?;
                noted.done().await;
                Ok(found.id.clone())
            }
            (Some(_), Some(_)) => Err(AccessError::OtherRoles(name).into()),
            (None, Some(roles)) => {
                let id = new_id()?;
                let event = of_member(kind::SERVICE_CREATED, workspace, &id, by.clone());
                let event = event.with("name", name.as_str()).with("roles", names(&roles));
                let noted = self.note(event).await?;
                let new = NewPrincipal {
                    id: &id,
                    name: &name,
                    kind: PrincipalKind::Service,
                    workspace: Some(workspace),
                    is_operator: false,
                    by: &by.id,
                };
                let created = store.principals().create(new, Some((workspace, &roles))).await;
                created.map_err(of_statement(AccessError::NameTaken(name.clone())))?;
                noted.done().await;
                Ok(id)
            }
            (_, None) => {
                let message = format!("the service `{name}` has no roles yet");
                let is_here = |one: &&Arc<Account>| {
                    one.kind == PrincipalKind::Service && one.roles.contains_key(workspace)
                };
                let known = table.accounts.values().filter(is_here).map(|one| one.name.as_str());
                let meant = meant_hint(name.as_str(), known);
                let remedy = format!("name its roles, on the command line with `--role`{meant}");
                let fault = crate::FieldError::invalid("roles", message, remedy);
                Err(CatalogError::Refused(vec![fault]).into())
            }
        }
    }
}

/// The event of an action on a token.
fn of_token(
    kind: &'static str,
    workspace: &WorkspaceId,
    id: &ServiceTokenId,
    by: By,
) -> AuditEvent<'static> {
    AuditEvent::new(kind, by).in_workspace(workspace).on("token", id.to_string())
}

fn asked(workspace: &WorkspaceId, text: &[u8]) -> Result<Asked, CatalogError> {
    let mut fields = Fields::read(text, &["service", "roles", "label", "expires_in"])?;
    let name = fields.named("service", |name| PrincipalName::of_service(workspace, name));
    let roles = fields.roles("roles");
    let label = fields.text("label").unwrap_or_default();
    let expires_in = fields.amount("expires_in", LONGEST_S).unwrap_or(USUAL_S);
    fields.done()?;
    let name = name.expect("what is missing is a fault");
    let expires_at = SystemTime::now() + Duration::from_secs(expires_in);
    Ok(Asked { name, roles, label, expires_at })
}
