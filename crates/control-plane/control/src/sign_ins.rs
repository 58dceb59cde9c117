//! Sign-ins to servers, as operators begin, finish and end them.
//!
//! The crate `oauth-client` speaks to authorization servers and stores grants. This module finds
//! the server of a name, records each action in the audit, and has the registry connect again.

mod end;
mod error;
mod following;
pub(crate) mod recorder;

use std::sync::Arc;

use narthex_audit::{ActorKind, AuditEvent, kind};
use narthex_login::PublicOrigin;
use narthex_model::{
    Alias, OAuth, PrincipalId, ServerAuth, ServerState, SharedGrant, Target, WorkspaceId,
    with_causes,
};
use narthex_oauth_client::{
    BeginAs, Begun, BrowserAnswer, DeviceBegun, DeviceState, Finished, GrantStatus, SignInTarget,
    SignIns, SignedOut, Unfinished,
    store::{GrantFacts, GrantKey},
};
use narthex_registry::{Holder, ServerResult, ServerRow, VerbError};
use serde_json::Value;
use url::{Host, Url};

pub use self::{
    end::SignInEnd,
    error::ServerSignInError,
    recorder::{ServerSignIns, SignInCounts},
};
use self::{following::Following, recorder::record_failure};
use crate::{By, Control, ControlError, catalog::connection_event, control::Shared, server_key};

/// The path of narthex's client id metadata document.
pub const CLIENT_METADATA: &str = "/oauth/client-metadata.json";
/// The name that people see when they consent.
pub const CLIENT_NAME: &str = "narthex";

/// A browser in which a human has signed in.
#[derive(Debug, Clone)]
pub struct SignedInBrowser {
    /// The hash of the login session's token.
    pub session: String,
    /// The human as an actor.
    pub by: By,
}

/// Verbs for the sign-ins to servers of the live configuration.
#[derive(Debug, Clone)]
pub struct SignInVerbs(Control);

impl SignInVerbs {
    /// The verbs of this control plane.
    #[must_use]
    pub fn of(control: &Control) -> Self {
        Self(control.clone())
    }

    /// Has the registry connect the servers whose grants change, and records each failure of a
    /// renewal when it happens, until the control plane closes. The caller starts it as a task,
    /// once; what happens from this call on counts.
    pub fn follow(self) -> impl Future<Output = ()> + Send + 'static {
        let shared = self.0.shared.clone();
        let following = shared.sign_ins.clone().map(|all| Following::of(all.sign_ins));
        async move {
            let Some(following) = following else { return };
            let changed = |key: &GrantKey| apply(&shared, key);
            let failed =
                |key: &GrantKey, facts: &GrantFacts| record_failure(key, facts, &shared.audit);
            following.run(shared.closing.clone(), changed, failed).await;
        }
    }

    /// The grant of a server, and its open attempt. Reads memory only.
    #[must_use]
    pub fn status(&self, alias: &Alias) -> Option<GrantStatus> {
        self.0.sign_ins()?.status(&live_key(&self.0, alias))
    }

    /// Starts a sign-in to a server, or gives the open one. With a `session`, only the browser of
    /// that login session can finish it.
    ///
    /// # Errors
    /// When there is no such server, no person signs in to it, or its authorization server cannot
    /// be used.
    pub async fn authorize(
        &self,
        name: &str,
        session: Option<String>,
        by: &By,
    ) -> Result<Begun, ControlError> {
        self.begin(name, session, BeginAs::Reuse, by).await
    }

    async fn begin(
        &self,
        name: &str,
        session: Option<String>,
        how: BeginAs,
        by: &By,
    ) -> Result<Begun, ControlError> {
        let target = self.target(name, session)?;
        let event = self.0.server_event(kind::SERVER_SIGN_IN_BEGUN, name, by.clone());
        let begin = async move |this: Control| {
            let noted = this.note(event).await?;
            let begun = needed(&this)?.begin(&target, how).await;
            let begun = begun.map_err(ServerSignInError::Failed)?;
            noted.done().await;
            Ok(begun)
        };
        self.0.to_the_end(begin).await
    }

    /// Starts a sign-in to a server at another device, which shows a code.
    ///
    /// # Errors
    /// As for [`SignInVerbs::authorize`], and when the authorization server knows no devices.
    pub async fn authorize_device(&self, name: &str, by: &By) -> Result<DeviceBegun, ControlError> {
        let target = self.target(name, None)?;
        let event = self.0.server_event(kind::SERVER_SIGN_IN_BEGUN, name, by.clone());
        let event = event.with("device", true);
        let begin = async move |this: Control| {
            let noted = this.note(event).await?;
            let begun = needed(&this)?.begin_device(&target).await;
            let begun = begun.map_err(ServerSignInError::Failed)?;
            noted.done().await;
            Ok(begun)
        };
        self.0.to_the_end(begin).await
    }

    /// The state of a sign-in at another device.
    ///
    /// # Errors
    /// When there is no such server, or no person signs in to it.
    pub fn device_state(&self, name: &str, id: &str) -> Result<DeviceState, ControlError> {
        self.target(name, None)?;
        Ok(needed(&self.0)?.device_state(id))
    }

    /// Finishes a sign-in with the query of the redirect. `server` is the name in its path, and
    /// `visitor` the browser, if a human has signed in there. It fails when the answer is not one
    /// to an open attempt, is for another browser, or the authorization server gives no tokens.
    ///
    /// Records an answer that a human's browser brought and that finishes no connection of this
    /// human (X-E43).
    pub async fn finish(
        &self,
        query: String,
        server: Option<String>,
        visitor: Option<SignedInBrowser>,
    ) -> SignInEnd {
        let finish = async move |this: Control| {
            let sign_ins = needed(&this)?;
            let answer = BrowserAnswer {
                query: &query,
                server: server.as_deref(),
                session: visitor.as_ref().map(|visitor| &*visitor.session),
            };
            match sign_ins.finish(answer).await {
                Ok(finished) => {
                    let event = finished_event(&this, &finished);
                    happened(&this, event.with("issuer", finished.facts.issuer.clone()));
                    let key = Some(finished.key.clone());
                    Ok(SignInEnd { outcome: Ok(finished), key })
                }
                Err(Unfinished { error, key, is_proved }) => {
                    let error = ServerSignInError::Failed(error);
                    // The attempt knows its server better than the path does.
                    let name = key.as_ref().map(|key| key.server.clone()).or(server);
                    let event = name.and_then(|name| {
                        let place = Unreached { name, key: key.as_deref() };
                        unfinished_event(&this, place, &error, visitor.as_ref())
                    });
                    if let Some(event) = event {
                        happened(&this, event);
                    }
                    let key = key.filter(|_| is_proved).map(|key| *key);
                    Ok(SignInEnd { outcome: Err(error.into()), key })
                }
            }
        };
        self.0.to_the_end(finish).await.unwrap_or_else(SignInEnd::unproved)
    }

    /// Ends the sign-in to a server: revokes its tokens at the authorization server where that is
    /// possible, and deletes them. Does nothing for a server without tokens.
    ///
    /// # Errors
    /// When there is neither such a server nor tokens of one, or the store fails.
    pub async fn sign_out(&self, name: &str, by: &By) -> Result<SignedOut, ControlError> {
        let alias = match self.0.shared.registry.get(name) {
            Some(row) => row.alias.clone(),
            // Tokens may outlive the entry of their server.
            None => Alias::new(name).ok().filter(|alias| self.status(alias).is_some()),
        };
        let alias = alias.ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
        let event = self.0.server_event(kind::SERVER_SIGNED_OUT, name, by.clone());
        let sign_out = async move |this: Control| {
            let sign_ins = needed(&this)?;
            let noted = this.note(event).await?;
            let out = sign_ins.sign_out(&live_key(&this, &alias)).await;
            let out = out.map_err(ServerSignInError::Failed)?;
            noted.done().await;
            Ok(out)
        };
        self.0.to_the_end(sign_out).await
    }

    /// Asks a server's user to sign in again (E59): signs out, and starts a sign-in. `None` if
    /// there is no such server (E58). A server without sign-in, or a disabled one, does not change.
    ///
    /// # Errors
    /// When the registry is closed, or the sign-in cannot be started.
    pub async fn reauthorize(
        &self,
        name: &str,
        session: Option<String>,
        by: &By,
    ) -> Result<Option<ServerResult>, ControlError> {
        let row = self.0.shared.registry.get(name);
        let signs_in = row.is_some_and(|row| self.has_sign_in(&row));
        if !signs_in || self.0.sign_ins().is_none() {
            return Ok(self.0.shared.registry.reauthorize(name).await?);
        }
        self.sign_out(name, by).await?;
        let begun = self.begin(name, session, BeginAs::Anew, by).await?;
        let (id, auth_url) = (name.to_owned(), begun.url.to_string());
        Ok(Some(ServerResult::Authenticating { id, auth_url }))
    }

    /// Notes that the grant of a server was stored or removed, by this daemon or another one. A
    /// server that waits for a sign-in, or has failed, connects again; others learn of it with
    /// their next request.
    pub fn was_stored(&self, key: &GrantKey) {
        // Reads the row, and writes none, so that one change does not lead to another.
        if let Some(sign_ins) = self.0.sign_ins() {
            sign_ins.changed_elsewhere(key);
        }
        if SharedGrant::catalog_id(&key.server).is_some() {
            // Links of runs follow once the grant is read.
            return;
        }
        let row = self.0.shared.registry.get(&key.server);
        let waits = |row: Arc<ServerRow>| {
            matches!(row.state, ServerState::Authenticating | ServerState::Error)
        };
        if row.is_some_and(waits) {
            apply(&self.0.shared, key);
        }
    }

    /// Narthex's description of itself for authorization servers. `None` without a public https
    /// address, as these could not read it.
    #[must_use]
    pub fn client_document(&self) -> Option<Value> {
        let base = public_base(self.0.sign_in_origin()?)?;
        let document = self.0.sign_ins()?.client_document()?;
        // A document elsewhere is not this one.
        let is_own = base.join(CLIENT_METADATA).is_ok_and(|own| own == document.id);
        is_own.then(|| document.to_json())
    }

    /// True if a person signs in to the server of this row: its entry says so, or it has asked.
    fn has_sign_in(&self, row: &ServerRow) -> bool {
        if row.state == ServerState::Disabled {
            return false;
        }
        let Some(Target::Http(target)) = row.definition.as_ref().map(|one| &one.target) else {
            return false;
        };
        match &target.auth {
            ServerAuth::Unstated => {
                let status = row.alias.as_ref().and_then(|alias| self.status(alias));
                status.is_some() || row.state == ServerState::Authenticating
            }
            ServerAuth::OAuth(oauth) => matches!(**oauth, OAuth::AuthorizationCode(_)),
            ServerAuth::None | ServerAuth::ApiKey(_) => false,
        }
    }

    /// The server of this name, to which a person can sign in.
    fn target(&self, name: &str, session: Option<String>) -> Result<SignInTarget, ControlError> {
        let row = self.0.shared.registry.get(name);
        let row = row.ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
        let faulty = || VerbError::Faulty(name.to_owned());
        let alias = row.alias.clone().ok_or_else(faulty)?;
        let definition = row.definition.clone().ok_or_else(faulty)?;
        if row.state == ServerState::Disabled {
            return Err(ServerSignInError::Disabled(name.to_owned()).into());
        }
        let none = |mode| ServerSignInError::NoSignIn { name: name.to_owned(), mode };
        let target = match &definition.target {
            Target::Http(target) => target,
            Target::Stdio(_) => return Err(none("none").into()),
        };
        let is_ours = match &target.auth {
            ServerAuth::Unstated => true,
            ServerAuth::OAuth(oauth) => matches!(**oauth, OAuth::AuthorizationCode(_)),
            ServerAuth::None | ServerAuth::ApiKey(_) => false,
        };
        if !is_ours {
            return Err(none(target.auth.mode()).into());
        }
        needed(&self.0)?;
        Ok(SignInTarget {
            key: live_key(&self.0, &alias),
            alias: alias.to_string(),
            // An address that is no URL is a fault of the entry.
            url: Url::parse(&target.url).map_err(|_invalid| faulty())?,
            auth: target.auth.clone(),
            session,
        })
    }
}

/// The key of the shared grant of a server of the live configuration.
fn live_key(control: &Control, alias: &Alias) -> GrantKey {
    let workspace = control.shared.workspace.to_string();
    GrantKey { workspace, server: alias.to_string(), user: None }
}

fn needed(control: &Control) -> Result<&SignIns, ControlError> {
    control.sign_ins().ok_or_else(|| ServerSignInError::NoSignIns.into())
}

/// Records an event that no check could have prevented.
fn happened(control: &Control, event: AuditEvent<'static>) {
    if let Err(full) = control.shared.audit.note(event) {
        tracing::warn!("an event of a sign-in could not be recorded in the audit: {full}");
    }
}

/// The server of a sign-in that was not finished, and the grant that its attempt was for.
struct Unreached<'k> {
    name: String,
    key: Option<&'k GrantKey>,
}

impl Unreached<'_> {
    /// The event of a refused connection: of the workspace that the attempt names, and else of the
    /// installation. `None` for a server of the configuration.
    fn refused(&self, by: By) -> Option<AuditEvent<'static>> {
        let id = SharedGrant::catalog_id(&self.name)?;
        let workspace = self.key.and_then(|key| WorkspaceId::new(&key.workspace).ok());
        Some(match workspace {
            Some(workspace) => connection_event(kind::CONNECTION_REFUSED, &workspace, id, by),
            None => AuditEvent::new(kind::CONNECTION_REFUSED, by).on("server", id.to_owned()),
        })
    }
}

/// The event of a sign-in that was not finished. `None` for an answer that leads on.
///
/// An answer that belongs to no attempt of the browser is counted by the door. It is an event if a
/// human brought it to a connection.
fn unfinished_event(
    control: &Control,
    place: Unreached<'_>,
    error: &ServerSignInError,
    visitor: Option<&SignedInBrowser>,
) -> Option<AuditEvent<'static>> {
    if error.is_unproved() {
        let mut event = place.refused(visitor?.by.clone())?;
        event.outcome = "denied".into();
        return Some(event);
    }
    if error.goes_on_at().is_some() {
        return None;
    }
    let failed = || control.server_event(kind::SERVER_SIGN_IN_FAILED, &place.name, By::system());
    let mut event = place.refused(By::system()).unwrap_or_else(failed);
    event.outcome = "failed".into();
    Some(event.with("reason", error.kind().as_str()))
}

/// The event of a finished sign-in: of the daemon, or of the human for themselves.
fn finished_event(control: &Control, finished: &Finished) -> AuditEvent<'static> {
    let GrantKey { workspace, server, user } = &finished.key;
    let id = SharedGrant::catalog_id(server);
    let (Some(id), Some(user), Ok(workspace)) = (id, user, WorkspaceId::new(workspace)) else {
        return control.server_event(kind::SERVER_SIGNED_IN, &finished.alias, By::system());
    };
    let human = PrincipalId::new(user).unwrap_or_else(|_unfit| PrincipalId::local_admin());
    let actor = match human == PrincipalId::local_admin() {
        true => ActorKind::LocalAdmin,
        false => ActorKind::Human,
    };
    let by = By::new(actor, control.principal_name(&human));
    connection_event(kind::CONNECTION_MADE, &workspace, id, by)
}

/// The address at which browsers of other machines reach the daemon too. `None` if the origin is
/// one of this machine.
#[must_use]
pub fn public_base(origin: &PublicOrigin) -> Option<Url> {
    let url = Url::parse(origin.as_str()).ok()?;
    let is_local = match url.host()? {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    };
    (!is_local).then_some(url)
}

/// Has the registry connect the server of a grant anew.
fn apply(shared: &Shared, key: &GrantKey) {
    if let Some(id) = SharedGrant::catalog_id(&key.server) {
        let Ok(workspace) = WorkspaceId::new(&key.workspace) else { return };
        let workspace_name = key.workspace.clone();
        let holder = key.user.clone().map(|user| Holder { workspace: workspace_name, user });
        let server = server_key(&workspace, id);
        return shared.registry.credential_changed_at(&server, holder.as_ref());
    }
    if key.user.is_some() || key.workspace != shared.workspace.as_str() {
        return;
    }
    let Ok(alias) = Alias::new(&key.server) else { return };
    shared.registry.credential_changed(&alias);
}

/// Signs out of a server that is removed. A failure leaves only tokens that no entry uses.
pub(crate) async fn forget(control: &Control, name: &str) {
    let Ok(alias) = Alias::new(name) else { return };
    let Some(sign_ins) = control.sign_ins() else { return };
    if let Err(error) = sign_ins.sign_out(&live_key(control, &alias)).await {
        tracing::warn!(
            server.name = name,
            "the tokens of a removed server could not be deleted: {}",
            with_causes(&error)
        );
    }
}

#[cfg(test)]
mod tests;
