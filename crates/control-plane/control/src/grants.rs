//! Grants of humans to users and agents (D14, D15): created, listed and revoked here, and consumed
//! for the gateway.

mod asking;
mod expiring;
mod ledger;
mod requested;
mod requests;
mod scopes;
mod search;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_audit::{AuditEvent, kind};
use narthex_model::{
    Grant, GrantId, GrantSubject, PrincipalId, PrincipalKind, Timestamp, WorkspaceId,
    command::narthex, json::shortened, meant_hint,
};
use narthex_store::GrantRow;

pub use self::{
    ledger::StoreLedger,
    requests::{GrantRequested, RequestOf},
    scopes::RequiredScopes,
    search::{GrantsFound, RequestsFound},
};
use crate::{AccessError, Account, By, Control, ControlError, Page};

/// Time for which a request waits for a decision, unless settings give another one.
const REQUEST_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The conditions for grants and for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantOptions {
    /// True if only grants by proved humans count (D15). `None` for the default: true once there is
    /// a passkey or an OpenID provider (D28).
    pub require_proof: Option<bool>,
    /// Time for which a request waits for a decision.
    pub request_lifetime: Duration,
}

impl Default for GrantOptions {
    fn default() -> Self {
        Self { require_proof: None, request_lifetime: REQUEST_LIFETIME }
    }
}

/// Reasons why a grant or a grant request stays unchanged.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The workspace has no such grant.
    #[error(
        "there is no grant `{0}`; `{command}` lists them",
        command = narthex("grants list --all", &[])
    )]
    Unknown(String),
    /// The workspace has no such request.
    #[error(
        "there is no grant request `{0}`; `{command}` lists the pending ones",
        command = narthex("grants pending", &[])
    )]
    UnknownRequest(String),
    /// A human has already decided, or the time for a decision is over.
    #[error("the request `{0}` is decided already: it is {1}")]
    Decided(String, &'static str),
    /// The agent, run or session of the grant has ended meanwhile.
    #[error("the agent, run or session of the grant has just ended; nothing was granted")]
    SubjectGone,
    /// Only a human can create a grant.
    #[error("only a human can create a grant: {0}")]
    NoHuman(&'static str),
    /// The caller's proof is a file of the machine, which an agent could read too.
    #[error(
        "only a human who signed in with a passkey or at a provider can create a grant here \
         (`grants.require_proof`, which is on once a passkey or a provider exists); the operator's \
         token or a link is no proof: {0}"
    )]
    NoProof(ProvedWay),
    /// Runs of this workspace may not ask humans (X-E80).
    #[error(
        "runs of this workspace cannot ask humans for grants (`runtime_requests` is off); continue \
         without it"
    )]
    RequestsOff,
    /// The run has too many open requests.
    #[error("the run has {0} open grant requests, which is the limit; wait for a decision")]
    TooMany(i64),
}

impl GrantError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> narthex_model::ErrorKind {
        use narthex_model::ErrorKind;
        match self {
            Self::Unknown(_) | Self::UnknownRequest(_) => ErrorKind::NotFound,
            Self::Decided(..) | Self::SubjectGone => ErrorKind::Conflict,
            Self::NoHuman(_) | Self::NoProof(_) | Self::RequestsOff => ErrorKind::Denied,
            Self::TooMany(_) => ErrorKind::Exhausted,
        }
    }

    /// The error's code for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "grant_not_found",
            Self::UnknownRequest(_) => "grant_request_not_found",
            Self::Decided(..) => "grant_request_decided",
            Self::SubjectGone => "grant_subject_gone",
            Self::NoHuman(_) => "admin_denied",
            Self::NoProof(_) => "proof_required",
            Self::RequestsOff => "runtime_requests_disabled",
            Self::TooMany(_) => "too_many_grant_requests",
        }
    }
}

/// The way in which a proved human can create or decide on a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvedWay {
    /// The page for the decision on a request; `None` where sign-in is off.
    Decide(Option<String>),
    /// The sign-in page, and the API route that creates a grant in the browser's session. There is
    /// no page for this.
    Create {
        /// The address of the sign-in page; `None` where sign-in is off.
        sign_in: Option<String>,
        /// The path of the API.
        route: String,
    },
}

impl fmt::Display for ProvedWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decide(None) => f.write_str("sign in with a passkey or at a provider"),
            Self::Decide(Some(page)) => {
                write!(f, "sign in with a passkey or at a provider at {page}, and decide there")
            }
            Self::Create { sign_in, route } => {
                let pending = narthex("grants pending", &[]);
                write!(
                    f,
                    "let the run ask with its tool `request_grant`, and decide on the page of its \
                     request, which `{pending}` shows; or sign in with a passkey or at a provider"
                )?;
                if let Some(page) = sign_in {
                    write!(f, " at {page}")?;
                }
                write!(f, ", and send `POST {route}` from that browser")
            }
        }
    }
}

/// A human who creates a grant, and the strength of the proof.
#[derive(Debug, Clone)]
pub struct Granter {
    /// The actor.
    pub by: By,
    /// True if nothing proves that the actor is human (D15), as the credential is in a file.
    pub is_advisory: bool,
}

/// The path of the page on which a human decides about a request.
#[must_use]
pub fn decision_path(workspace: &WorkspaceId, id: &str) -> String {
    format!("/workspaces/{workspace}/grant-requests/{id}")
}

impl Control {
    /// Creates a grant from a document of the form of `POST /grants`.
    ///
    /// # Errors
    /// When a field is wrong: all faults at once; when there is no such workspace or no store, or
    /// the store fails.
    pub async fn grant_create(
        &self,
        workspace: &WorkspaceId,
        text: &[u8],
        by: Granter,
    ) -> Result<GrantRow, ControlError> {
        let store = self.catalog_store(workspace).await?;
        self.proved(&by, || ProvedWay::Create {
            sign_in: self.sign_in_origin().map(|origin| origin.at("/signin")),
            route: format!("/api/workspaces/{workspace}/grants"),
        })?;
        let asked = requested::read(text)?;
        let grant = self.checked(store, workspace, asked).await?;
        let reason = grant.1;
        let row = new_row(workspace, grant.0, reason, &by);
        self.grant_store(row, by).await
    }

    /// True if only grants of proved humans count (D15).
    #[must_use]
    pub fn needs_proof(&self) -> bool {
        self.shared.grants.proof().is_required()
    }

    /// True if a grant counts now: it is not consumed, revoked or expired, and its human is proved
    /// where that is required.
    #[must_use]
    pub fn grant_counts(&self, row: &GrantRow) -> bool {
        let has_time = row.grant.expires_at.is_none_or(|end| SystemTime::now() < end);
        let is_there = row.consumed.is_none() && row.revoked.is_none();
        is_there && has_time && !(row.is_advisory && self.needs_proof())
    }

    /// The address of the page for a human's decision on a request; `None` where sign-in is off.
    #[must_use]
    pub fn grant_request_page(&self, workspace: &WorkspaceId, id: &str) -> Option<String> {
        Some(self.sign_in_origin()?.at(&decision_path(workspace, id)))
    }

    /// Refuses an advisory grant where it would not count. `way` tells the caller how a proved
    /// human can grant.
    fn proved(&self, by: &Granter, way: impl FnOnce() -> ProvedWay) -> Result<(), GrantError> {
        match by.is_advisory && self.needs_proof() {
            true => Err(GrantError::NoProof(way())),
            false => Ok(()),
        }
    }

    async fn grant_store(&self, row: GrantRow, by: Granter) -> Result<GrantRow, ControlError> {
        let create = async move |this: Self| {
            let store = this.catalog_store(&row.workspace).await?;
            let _together = this.shared.grants.changing().await;
            let noted = this.note(granted(&row, by.by)).await?;
            if !store.grants().create(&row).await.map_err(ControlError::Store)? {
                return Err(GrantError::SubjectGone.into());
            }
            this.shared.grants.apply(&row);
            noted.done().await;
            Ok(row)
        };
        self.to_the_end(create).await
    }

    /// Grants of a workspace, page by page; revoked ones only if `with_revoked` (X-E76).
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grants(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
        with_revoked: bool,
    ) -> Result<Page<GrantRow>, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let wanted = limit.saturating_add(1);
        let rows = store.grants().page(workspace, after, wanted, with_revoked).await;
        let rows = rows.map_err(ControlError::Store)?;
        Ok(page(rows, limit, |row| row.grant.id.to_text()))
    }

    /// One grant of a workspace.
    ///
    /// # Errors
    /// When the id is unknown; when there is no such workspace or no store, or the store fails.
    pub async fn grant(&self, workspace: &WorkspaceId, id: &str) -> Result<GrantRow, ControlError> {
        let unknown = || GrantError::Unknown(shortened(id));
        let store = self.catalog_store(workspace).await?;
        let id = GrantId::parse(id).ok_or_else(unknown)?;
        let found = store.grants().find(workspace, id).await.map_err(ControlError::Store)?;
        Ok(found.ok_or_else(unknown)?)
    }

    /// Revokes a grant: at this daemon for the next call, at others within [`crate::POLL`]. A
    /// second call changes nothing.
    ///
    /// # Errors
    /// When the id is unknown; when there is no such workspace or no store, or the store fails.
    pub async fn grant_revoke(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), ControlError> {
        let found = self.grant(workspace, id).await?;
        let by = by.clone();
        let revoke = async move |this: Self| {
            let (workspace, id) = (&found.workspace, found.grant.id);
            let store = this.catalog_store(workspace).await?;
            let _together = this.shared.grants.changing().await;
            if found.revoked.is_some() {
                return Ok(());
            }
            let event = AuditEvent::new(kind::PERMISSION_REVOKED, by.clone());
            let event = event.in_workspace(workspace).on("grant", id.to_text());
            let noted = this.note(event).await?;
            store.grants().revoke(workspace, id, &by.id).await.map_err(ControlError::Store)?;
            this.shared.grants.forget(workspace, id);
            noted.done().await;
            Ok(())
        };
        self.to_the_end(revoke).await
    }

    /// The id of a principal whose grants may count in runs of a workspace: a human member, an
    /// operator, or the holder of this machine's admin token.
    pub fn driver(&self, workspace: &WorkspaceId, who: &str) -> Result<PrincipalId, ControlError> {
        let local = PrincipalId::local_admin();
        if who == local.as_str() {
            return Ok(local);
        }
        let is_it = |one: &&Arc<Account>| one.id.as_str() == who || one.name.as_str() == who;
        let all = self.principals()?;
        let unknown =
            || AccessError::UnknownMember { who: shortened(who), workspace: workspace.clone() };
        let found = all.iter().find(is_it).ok_or_else(unknown)?;
        match (found.kind, found.belongs_to(workspace)) {
            (PrincipalKind::Human, true) => Ok(found.id.clone()),
            (PrincipalKind::Human, false) if found.is_operator => Ok(found.id.clone()),
            (kind @ (PrincipalKind::Service | PrincipalKind::Client), true) => {
                Err(AccessError::NoHuman(found.name.clone(), kind).into())
            }
            (_, _) => Err(unknown().into()),
        }
    }

    /// A hint with the workspace's human whose name is most similar to the unknown one.
    fn member_hint(&self, workspace: &WorkspaceId, who: &str) -> String {
        let Ok(all) = self.principals() else { return String::new() };
        let is_one =
            |one: &&Arc<Account>| one.kind == PrincipalKind::Human && one.belongs_to(workspace);
        let names = all.iter().filter(is_one).map(|one| one.name.as_str());
        meant_hint(who, names)
    }
}

fn page<T>(mut rows: Vec<T>, limit: u32, id: impl Fn(&T) -> String) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(id);
    Page { items: rows, next }
}

fn new_row(workspace: &WorkspaceId, grant: Grant, reason: String, by: &Granter) -> GrantRow {
    GrantRow {
        grant,
        workspace: workspace.clone(),
        reason,
        granted_at: SystemTime::now(),
        granted_by: by.by.id.clone().into_owned(),
        is_advisory: by.is_advisory,
        consumed: None,
        revoked: None,
    }
}

fn granted(row: &GrantRow, by: By) -> AuditEvent<'static> {
    let GrantRow { grant, workspace, is_advisory, .. } = row;
    let (subject_kind, subject) = match &grant.subject {
        GrantSubject::User(user) => ("user", user.to_string()),
        GrantSubject::Agent(agent) => ("agent", agent.to_string()),
    };
    let event = AuditEvent::new(kind::PERMISSION_GRANTED, by).in_workspace(workspace);
    let event = event.on("grant", grant.id.to_text()).with("subject", subject);
    let event = event.with("subject_kind", subject_kind).with("is_advisory", *is_advisory);
    let event = event.with("grant_type", grant.of.word()).with("details", grant.of.details());
    let event = event.with("scope", grant.duration.word());
    match grant.expires_at {
        Some(end) => event.with("expires_at", Timestamp::new(end).to_string()),
        None => event,
    }
}

#[cfg(test)]
mod tests {
    use super::page;

    /// O34: one row more than the limit shows that there is a further page, which starts after the
    /// last item.
    #[test]
    fn o34_a_page_has_a_successor_only_if_rows_are_left() {
        let of = |rows: &[u32], limit| {
            let page = page(rows.to_vec(), limit, u32::to_string);
            (page.items, page.next)
        };
        assert_eq!(of(&[1, 2, 3], 2), (vec![1, 2], Some("2".to_owned())));
        assert_eq!(of(&[1, 2], 2), (vec![1, 2], None));
        assert_eq!(of(&[], 2), (vec![], None));
    }
}
