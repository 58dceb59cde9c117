//! Servers of the catalog to which humans sign in: the connections of each human for the runs that
//! this human drives (X-M14), and the discovery when such a server is saved (X-M13).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{SystemTime, UNIX_EPOCH},
};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::{FieldError, FieldWarning};
use narthex_catalog::{EntryAuth, EnvValue, Opening, ServerEntry};
use narthex_model::{
    PrincipalId, Secret, SecretName, SecretReference, SharedGrant, WorkspaceId, json::shortened,
};
use narthex_oauth_client::{
    BeginAs, Begun, SignInError, SignInTarget, SignedOut,
    store::{GrantFacts, GrantKey},
};
use narthex_store::OAuthFacts;
use narthex_vault::VaultError;
use url::Url;

use super::{CatalogError, personal::connection_path};
use crate::{By, Control, ControlError, ServerSignInError};

/// The connection of a human to a server of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserConnection {
    /// The workspace of the server.
    pub workspace: WorkspaceId,
    /// The server's id.
    pub server: String,
    /// The server's name for people; `None` if the human may not see the server, or it is gone.
    pub name: Option<String>,
    /// True if runs of the human have a token, or get one without the human.
    pub is_connected: bool,
    /// The facts of the grant; `None` if there is none.
    pub facts: Option<GrantFacts>,
}

/// A server of the catalog, and a human who connects to it.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The server's id.
    pub server: String,
    /// The human.
    pub user: PrincipalId,
    /// The login session of the human's browser; `None` for the holder of the admin token.
    pub session: Option<String>,
    /// True if the human may see all servers of the catalog, and not only those that agents use.
    pub sees_all: bool,
}

impl Control {
    /// The address of the page on which a human connects their account; `None` where no human signs
    /// in.
    #[must_use]
    pub fn connection_page(&self, workspace: &WorkspaceId, server: &str) -> Option<String> {
        Some(self.sign_in_origin()?.at(&connection_path(workspace, server)))
    }

    /// The connections of a human in a workspace: to all servers to which humans sign in and that
    /// the human may see, and to those with a grant of the human.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store or the vault fails.
    pub async fn connections(
        &self,
        workspace: &WorkspaceId,
        user: &PrincipalId,
        sees_all: bool,
    ) -> Result<Vec<UserConnection>, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let servers = self.catalog_work(move || {
            let read = stored.read();
            let named = |entry: &ServerEntry| {
                let is_exchanged = entry.auth.needs_no_human();
                (entry.id.to_string(), (entry.name.clone(), is_exchanged))
            };
            read.per_user(sees_all).into_iter().map(named).collect::<BTreeMap<_, _>>()
        });
        let mut grants = self.grants_of_user(workspace, user).await?;
        let connection = |server: String, name, facts: Option<GrantFacts>| UserConnection {
            workspace: workspace.clone(),
            is_connected: facts.as_ref().is_some_and(is_usable),
            server,
            name,
            facts,
        };
        let mut all = Vec::new();
        for (server, (name, is_exchanged)) in servers.await? {
            let facts = grants.remove(&server);
            if is_exchanged && facts.is_none() {
                // No human connects to it: their sign-in to narthex counts (C31).
                continue;
            }
            all.push(connection(server, Some(name), facts));
        }
        all.extend(grants.into_iter().map(|(server, facts)| connection(server, None, Some(facts))));
        all.sort_by(|one, other| one.server.cmp(&other.server));
        Ok(all)
    }

    /// The ids of the servers that a human is connected to.
    pub(super) async fn connected_servers(
        &self,
        workspace: &WorkspaceId,
        user: &PrincipalId,
    ) -> Result<BTreeSet<String>, ControlError> {
        let grants = self.grants_of_user(workspace, user).await?.into_iter();
        Ok(grants.filter(|(_, facts)| is_usable(facts)).map(|(id, _)| id).collect())
    }

    /// The grants of a human at servers of the catalog, by the server's id.
    async fn grants_of_user(
        &self,
        workspace: &WorkspaceId,
        user: &PrincipalId,
    ) -> Result<BTreeMap<String, GrantFacts>, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let rows = store.oauth_grants().all(workspace, Some(user.as_str())).await;
        let rows = rows.map_err(ControlError::Store)?.into_iter();
        let of_catalog = rows.filter_map(|(key, facts)| {
            let id = SharedGrant::catalog_id(&key.server)?.to_owned();
            Some((id, shown(facts)))
        });
        Ok(of_catalog.collect())
    }

    /// Starts the sign-in of a human to a server of the catalog. Only the browser of the human's
    /// login session can finish it (X-E43).
    ///
    /// # Errors
    /// When the human may see no such server, no human signs in to it, its address is known only in
    /// runs, or its authorization server cannot be used.
    pub async fn connect(&self, wanted: Connecting, by: &By) -> Result<Begun, ControlError> {
        let Connecting { workspace, server, user, session, sees_all } = wanted;
        let entry = self.personal_entry(&workspace, &server, sees_all).await?;
        let user = Some(user.as_str().to_owned());
        let target = self.personal_target(&workspace, &entry, user, session).await?;
        let event = connection_event(kind::CONNECTION_BEGUN, &workspace, &server, by.clone());
        let begin = async move |this: Self| {
            let sign_ins = this.sign_ins().ok_or(ServerSignInError::NoSignIns)?.clone();
            let noted = this.note(event).await?;
            let begun = sign_ins.begin(&target, BeginAs::Reuse).await;
            let begun = begun.map_err(ServerSignInError::Failed)?;
            noted.done().await;
            Ok(begun)
        };
        self.to_the_end(begin).await
    }

    /// Ends the connection of a human to a server of the catalog: revokes its tokens where that is
    /// possible, and deletes them. Open links of the human's runs end. Does nothing without tokens
    /// at a server that the human may see.
    ///
    /// # Errors
    /// When the human has neither tokens nor sight of such a server, there is no store or no such
    /// workspace, or the store fails.
    pub async fn disconnect(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        user: &PrincipalId,
        sees_all: bool,
        by: &By,
    ) -> Result<SignedOut, ControlError> {
        // Tokens can be ended whatever became of their server, and while the vault fails.
        if !self.grants_of_user(workspace, user).await?.contains_key(server) {
            self.personal_entry(workspace, server, sees_all).await?;
        }
        let key = GrantKey {
            workspace: workspace.as_str().to_owned(),
            server: SharedGrant::name_of(server),
            user: Some(user.as_str().to_owned()),
        };
        let event = connection_event(kind::CONNECTION_ENDED, workspace, server, by.clone());
        let event = event.with("user", user.as_str().to_owned());
        let end = async move |this: Self| {
            let sign_ins = this.sign_ins().ok_or(ServerSignInError::NoSignIns)?.clone();
            let noted = this.note(event).await?;
            let out = sign_ins.sign_out(&key).await.map_err(ServerSignInError::Failed)?;
            noted.done().await;
            Ok(out)
        };
        self.to_the_end(end).await
    }

    /// Finds the authorization server of an entry to which humans sign in, and registers narthex
    /// there (X-M13). Asks nothing for other entries, and without sign-ins. `place` is the place of
    /// the entry in the request. Gives a warning about a server that may need no sign-in.
    ///
    /// # Errors
    /// When humans could not sign in: a fault of a field, with the remedy.
    pub(super) async fn prepare_sign_in(
        &self,
        workspace: &WorkspaceId,
        entry: &ServerEntry,
        place: &str,
    ) -> Result<Option<FieldWarning>, ControlError> {
        let Some(sign_ins) = self.sign_ins() else { return Ok(None) };
        let whole = |field: &str| match place.is_empty() {
            true => field.to_owned(),
            false => format!("{place}.{field}"),
        };
        let refused = |field: &str, message: String| {
            let field = whole(field);
            let remedy = "correct the entry; to store it without asking the server, set \
                          `disabled` to true, or use `--offline` (`?offline=true`)";
            ControlError::from(CatalogError::Refused(vec![FieldError::invalid(
                &field, message, remedy,
            )]))
        };
        let target = match self.personal_target(workspace, entry, None, None).await {
            Ok(target) => target,
            // The address is known only in runs: nothing can be asked now.
            Err(ControlError::SignIn(ServerSignInError::Unopened(_))) => return Ok(None),
            Err(error) => return Err(error),
        };
        let prepared = sign_ins.prepare(&target).await;
        let prepared =
            prepared.map_err(|error| refused(field_of(&error, entry), error.to_string()))?;
        let message = "the server answers a request without a sign-in; if none of its tools needs \
                       one, set `auth.mode` to \"none\", so that humans need not connect"
            .to_owned();
        Ok(prepared.is_open.then(|| FieldWarning { field: whole("auth.mode"), message }))
    }

    /// A server of the catalog to which humans sign in, if the human may see it.
    async fn personal_entry(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        sees_all: bool,
    ) -> Result<ServerEntry, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let wanted = id.to_owned();
        let found = self.catalog_work(move || {
            let read = stored.read();
            let seen = read.seen_servers(sees_all);
            let found = seen.into_iter().find(|entry| entry.id.as_str() == wanted);
            found.cloned()
        });
        let entry = found.await?.ok_or_else(|| {
            let (workspace, name) = (workspace.clone(), shortened(id));
            ServerSignInError::NoServer { workspace, name }
        })?;
        if !entry.auth.is_per_user() {
            let (name, mode) = (id.to_owned(), entry.auth.mode());
            return Err(ServerSignInError::NotPersonal { name, mode }.into());
        }
        Ok(entry)
    }

    /// The sign-in to a server of the catalog, for a user in the browser of a login session.
    async fn personal_target(
        &self,
        workspace: &WorkspaceId,
        entry: &ServerEntry,
        user: Option<String>,
        session: Option<String>,
    ) -> Result<SignInTarget, ControlError> {
        let secrets = self.secrets_of_sign_in(workspace, entry).await?;
        let variables = &self.shared.variables;
        let opening = Opening {
            secret: &|name| secrets.get(name).cloned(),
            env: &|name| match variables.find(name) {
                EnvValue::Set(value) => Some(value),
                EnvValue::Unset | EnvValue::NotAllowed => None,
            },
            runner: &|_key| None,
        };
        let opened = entry.sign_in(opening).map_err(ServerSignInError::Unopened)?;
        let name = entry.id.to_string();
        let mode = entry.auth.mode();
        let mut target =
            opened.ok_or_else(|| ServerSignInError::NotPersonal { name: name.clone(), mode })?;
        let grant = SharedGrant::of_catalog(workspace, &entry.id);
        target.auth.set_grant(grant.clone());
        let bad = |_error| ServerSignInError::Failed(SignInError::BadUrl { server: name.clone() });
        Ok(SignInTarget {
            key: GrantKey { workspace: workspace.to_string(), server: grant.server, user },
            alias: name.clone(),
            url: Url::parse(&target.url).map_err(bad)?,
            auth: target.auth,
            session,
        })
    }

    /// The newest values of the secrets of a sign-in; unset ones are left out.
    async fn secrets_of_sign_in(
        &self,
        workspace: &WorkspaceId,
        entry: &ServerEntry,
    ) -> Result<BTreeMap<SecretName, Secret>, ControlError> {
        let mut opened = BTreeMap::new();
        for name in entry.sign_in_secrets() {
            let vault = self.shared.vault.as_ref().ok_or(ControlError::NoVault)?;
            match vault.open(workspace, &SecretReference::newest(name.clone())).await {
                Ok(found) => {
                    opened.insert(name.clone(), found.value);
                }
                Err(VaultError::NotSet(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(opened)
    }
}

/// The field of an entry that a failed preparation concerns.
fn field_of(error: &SignInError, entry: &ServerEntry) -> &'static str {
    let has_issuer = matches!(
        &entry.auth,
        EntryAuth::AuthorizationCode(auth) if auth.authorization_server.is_some()
    );
    match error {
        SignInError::Discovery(_) if has_issuer => "auth.authorizationServer",
        SignInError::Discovery(_) | SignInError::BadUrl { .. } => "url",
        SignInError::Way(_) => "auth.client",
        SignInError::Registration(_) => "auth.registration",
        SignInError::NoProvider { .. } => "auth.exchange.identityProvider",
        SignInError::NotAsked { .. } => "auth.mode",
        SignInError::NotListed { .. } => "url",
        _ => "auth",
    }
}

/// The audit event of the connection of a human.
pub(crate) fn connection_event(
    kind: &'static str,
    workspace: &WorkspaceId,
    server: &str,
    by: By,
) -> AuditEvent<'static> {
    AuditEvent::new(kind, by).in_workspace(workspace).on("server", server.to_owned())
}

/// True if requests with the grant have a token now, or get one without the human.
fn is_usable(facts: &GrantFacts) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    facts.can_renew || facts.expires_at.is_none_or(|end| now < end)
}

fn shown(facts: OAuthFacts) -> GrantFacts {
    let OAuthFacts { issuer, scopes, expires_at, can_renew, succeeded_at, failed_at, failure } =
        facts;
    GrantFacts { issuer, scopes, expires_at, can_renew, succeeded_at, failed_at, failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_e49_a_grant_without_a_renewal_ends_with_its_token() {
        let facts =
            |can_renew, expires_at| GrantFacts { can_renew, expires_at, ..GrantFacts::default() };
        assert!(is_usable(&facts(true, Some(1))));
        assert!(!is_usable(&facts(false, Some(1))));
        assert!(is_usable(&facts(false, Some(u64::MAX))));
        assert!(is_usable(&facts(false, None)));
    }
}
