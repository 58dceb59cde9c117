//! Requests of runs for grants, and humans' decisions on them (D15). A run never waits for a
//! decision, and never decides.

use std::{sync::Arc, time::SystemTime};

use narthex_audit::{Actor, ActorKind, AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_events::{EventKind, EventPlace};
use narthex_gateway::RunView;
use narthex_model::{
    Grant, GrantDuration, GrantId, GrantOf, GrantRequestId, GrantSubject, RunId, SessionId,
    Timestamp, WorkspaceId, json::shortened,
};
use narthex_store::{GrantDecision, GrantRequestRow, GrantRequestStatus, OPEN_MAX};
use serde_json::json;

use super::{
    GrantError, Granter, ProvedWay, granted, new_row, page, requested,
    requested::{random, read_end},
};
use crate::{CatalogError, Control, ControlError, FieldError, Page};

/// The longest stored reason of a run, in characters.
const REASON_MAX: usize = 500;

/// The grant that a run requests.
#[derive(Debug, Clone)]
pub struct RequestOf {
    /// The run's own name for the request, by which the run recognises the decision; empty without
    /// a name.
    pub asked_as: String,
    /// The requested permission.
    pub of: GrantOf,
    /// The exact arguments to which the grant is limited, for people; empty without a limit.
    pub arguments: String,
    /// The duration: one of [`GrantDuration::WORDS`].
    pub duration: &'static str,
    /// The reason, in the run's words.
    pub reason: String,
}

/// A request with its status.
#[derive(Debug, Clone)]
pub struct GrantRequested {
    /// The stored request.
    pub row: GrantRequestRow,
    /// True if the request is new.
    pub is_new: bool,
}

impl RequestOf {
    /// Reads the request of a run: `{"request_id": …, "grant_type": …, "details": …, "scope": …,
    /// "justification": …}`.
    ///
    /// # Errors
    /// All faults of the fields.
    pub fn read(text: &[u8]) -> Result<Self, CatalogError> {
        requested::read_request(text)
    }
}

impl Control {
    /// Stores a run's request for a grant, and returns at once; equal requests are stored once. The
    /// grant is for the run's agent. Without an agent, it is for the user whose turn it is.
    ///
    /// # Errors
    /// When runs of the workspace may not ask, the run has too many open requests, has neither
    /// agent nor user, or belongs to no workspace with a store; when the store fails.
    pub async fn request_grant(
        &self,
        run: &RunView,
        asked: RequestOf,
    ) -> Result<GrantRequested, ControlError> {
        if !self.workspace(&run.workspace)?.settings.runtime_requests {
            return Err(GrantError::RequestsOff.into());
        }
        let actors = Arc::clone(&run.authority.actors());
        if actors.agent.is_none() && actors.user.is_none() {
            return Err(GrantError::NoHuman(
                "this run has neither an agent nor a human who drives it",
            )
            .into());
        }
        let now = SystemTime::now();
        let row = GrantRequestRow {
            id: GrantRequestId::new(random()?),
            asked_as: asked.asked_as,
            workspace: run.workspace.clone(),
            run: run.id,
            session: actors.session,
            user: actors.user.clone(),
            agent: actors.agent.clone(),
            of: asked.of,
            arguments: asked.arguments,
            duration: asked.duration,
            reason: asked.reason.chars().filter(|c| !c.is_control()).take(REASON_MAX).collect(),
            requested_at: now,
            expires_at: now + self.shared.granting.request_lifetime,
            status: GrantRequestStatus::Pending,
            decided: None,
            decision_reason: String::new(),
            grant: None,
        };
        let by = Actor::new(ActorKind::Run, run.id.to_text());
        let ask = async move |this: Self| {
            let faults = this.no_end(row.run, row.duration).await?;
            if !faults.is_empty() {
                return Err(CatalogError::Refused(faults).into());
            }
            let store = this.catalog_store(&row.workspace).await?;
            let found = store.grant_requests().ask(&row).await.map_err(ControlError::Store)?;
            let (row, is_new) = found.ok_or(GrantError::TooMany(OPEN_MAX))?;
            if is_new {
                let mut event = of_request(kind::PERMISSION_REQUESTED, &row, by);
                if let Some(user) = &row.user {
                    event = event.with("acts_for", user.as_str());
                }
                this.shared.audit.note(event.with("details", row.of.details()))?;
                this.tell_session(EventKind::AgentPermissionRequest, &row, None).await;
            }
            Ok(GrantRequested { row, is_new })
        };
        self.to_the_end(ask).await
    }

    /// The last decision on an equal request of a run under this name, for its agent or for the
    /// user whose turn it is.
    ///
    /// Only decisions that still matter are returned: a refusal, or a grant that is neither
    /// consumed nor revoked. In all other cases the run has to ask again.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grant_request_decided(
        &self,
        run: &RunView,
        asked: &RequestOf,
    ) -> Result<Option<GrantRequestRow>, ControlError> {
        let store = self.catalog_store(&run.workspace).await?;
        let actors = run.authority.actors();
        let asked_as = (asked.asked_as.as_str(), actors.user.as_ref());
        let found = store.grant_requests().last_asked(run.id, asked_as, &asked.of).await;
        let Some(row) = found.map_err(ControlError::Store)? else { return Ok(None) };
        let counts = match (row.status, row.grant) {
            (GrantRequestStatus::Denied, _) => true,
            (GrantRequestStatus::Approved, Some(id)) => {
                let grant = store.grants().find(&run.workspace, id).await;
                let grant = grant.map_err(ControlError::Store)?;
                grant.is_some_and(|grant| grant.consumed.is_none() && grant.revoked.is_none())
            }
            _ => false,
        };
        Ok(Some(row).filter(|_| counts))
    }

    /// A fault if a grant should last until the end of the daemon's own run: that end is not
    /// stored, so the grant could not end with it.
    async fn no_end(&self, run: RunId, scope: &str) -> Result<Vec<FieldError>, ControlError> {
        let Some(store) = self.store().filter(|_| scope == "run") else { return Ok(Vec::new()) };
        if store.runs().find(run).await.map_err(ControlError::Store)?.is_some() {
            return Ok(Vec::new());
        }
        let message = "this is the run of the daemon itself, whose end is not stored";
        let remedy = "write `session`, which ends with the daemon, or `once`";
        Ok(vec![FieldError::invalid("scope", message, remedy)])
    }

    /// Requests of a workspace with this status, page by page.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grant_requests(
        &self,
        workspace: &WorkspaceId,
        status: Option<GrantRequestStatus>,
        after: &str,
        limit: u32,
    ) -> Result<Page<GrantRequestRow>, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let wanted = limit.saturating_add(1);
        let rows = store.grant_requests().page(workspace, status, after, wanted).await;
        Ok(page(rows.map_err(ControlError::Store)?, limit, |row| row.id.to_text()))
    }

    /// Approves a run's request by `{"scope": …, "reason": …, "expires_at": …}`. Without a scope,
    /// the grant has the requested duration. At `expires_at` it ends in any case.
    ///
    /// # Errors
    /// When a field is wrong, the request does not exist, is closed, or its subject has ended; when
    /// there is no such workspace or no store, or the store fails.
    pub async fn grant_request_approve(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        text: &[u8],
        by: Granter,
    ) -> Result<GrantRequestRow, ControlError> {
        self.proved(&by, || ProvedWay::Decide(self.grant_request_page(workspace, id)))?;
        let mut fields = Fields::read(text, &["scope", "reason", "expires_at"])?;
        let mut faults = Vec::new();
        let expires_at = read_end(&mut fields, &mut faults);
        let (scope, reason) = (fields.text("scope"), fields.text("reason").unwrap_or_default());
        let request = self.pending(workspace, id).await?;
        let word = scope.unwrap_or_else(|| request.duration.to_owned());
        let duration = match word.as_str() {
            "run" => Some(GrantDuration::Run(request.run)),
            "session" => request.session.map(GrantDuration::Session),
            // No other run of the same agent or user may consume a grant that was approved for this
            // one (S26).
            "once" => Some(request.session.map_or(GrantDuration::Once, GrantDuration::OnceIn)),
            word => GrantDuration::read(word, None, None),
        };
        faults.extend(self.no_end(request.run, &word).await?);
        if duration.is_none() {
            let remedy = format!("write one of `{}`", GrantDuration::WORDS.join("`, `"));
            faults.push(FieldError::invalid("scope", "this value is not possible here", remedy));
        }
        fields.done_with(faults)?;
        let duration = duration.expect("what is missing is a fault");
        let subject = match (&request.agent, &request.user) {
            (Some(agent), _) => GrantSubject::Agent(agent.clone()),
            (None, Some(user)) => GrantSubject::User(user.clone()),
            (None, None) => return Err(GrantError::SubjectGone.into()),
        };
        let of = request.of.clone();
        let grant = Grant { id: GrantId::new(random()?), subject, of, duration, expires_at };
        let row = new_row(workspace, grant, reason, &by);
        let approve = async move |this: Self| {
            let store = this.catalog_store(&row.workspace).await?;
            let _together = this.shared.grants.changing().await;
            let event = granted(&row, by.by.clone()).with("request", request.id.to_text());
            let noted = this.note(event.of_run(request.run.to_text())).await?;
            let decision = GrantDecision { by: &by.by.id, reason: &row.reason, grant: Some(&row) };
            let requests = store.grant_requests();
            let is_done = requests.decide(&row.workspace, request.id, decision).await;
            if !is_done.map_err(ControlError::Store)? {
                this.pending(&row.workspace, &request.id.to_text()).await?;
                return Err(GrantError::SubjectGone.into());
            }
            this.shared.grants.apply(&row);
            noted.done().await;
            let decided = this.grant_request(&row.workspace, &request.id.to_text()).await?;
            this.tell_session(EventKind::PermissionGranted, &decided, Some(&row.grant)).await;
            Ok(decided)
        };
        self.to_the_end(approve).await
    }

    /// Denies a run's request by `{"reason": …}`.
    ///
    /// # Errors
    /// When a field is wrong, or the request does not exist or is closed; when there is no such
    /// workspace or no store, or the store fails.
    pub async fn grant_request_deny(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        text: &[u8],
        by: Granter,
    ) -> Result<GrantRequestRow, ControlError> {
        let mut fields = Fields::read(text, &["reason"])?;
        let reason = fields.text("reason").unwrap_or_default();
        fields.done()?;
        let request = self.pending(workspace, id).await?;
        let deny = async move |this: Self| {
            let store = this.catalog_store(&request.workspace).await?;
            let event = of_request(kind::PERMISSION_DENIED, &request, by.by.clone());
            let noted = this.note(event.with("is_advisory", by.is_advisory)).await?;
            let decision = GrantDecision { by: &by.by.id, reason: &reason, grant: None };
            let requests = store.grant_requests();
            let is_done = requests.decide(&request.workspace, request.id, decision).await;
            let (workspace, id) = (&request.workspace, request.id.to_text());
            if !is_done.map_err(ControlError::Store)? {
                this.pending(workspace, &id).await?;
                return Err(GrantError::UnknownRequest(id).into());
            }
            noted.done().await;
            let decided = this.grant_request(workspace, &id).await?;
            this.tell_session(EventKind::PermissionDenied, &decided, None).await;
            Ok(decided)
        };
        self.to_the_end(deny).await
    }

    /// Sends the outcome of a request to its session (X-E83). For an approval the event shows the
    /// grant as created, not as requested. Equal events of a request are stored once.
    pub(super) async fn tell_session(
        &self,
        kind: EventKind,
        row: &GrantRequestRow,
        granted: Option<&Grant>,
    ) {
        let (Some(events), Some(session)) = (self.events(), row.session) else { return };
        let place = EventPlace { workspace: row.workspace.clone(), session, run: Some(row.run) };
        let id = row.id.to_text();
        let of = granted.map_or(&row.of, |grant| &grant.of);
        let mut payload = json!({
            "request_id": if row.asked_as.is_empty() { &id } else { &row.asked_as },
            "grant_request_id": &id,
            "status": row.status.as_str(),
            "grant_type": of.word(),
            "details": of.details(),
            "scope": granted.map_or(row.duration, |grant| grant.duration.word()),
        });
        match &row.decided {
            None if row.status == GrantRequestStatus::Expired => {
                payload["reason"] = json!("no human decided in time");
            }
            None => payload["justification"] = json!(row.reason),
            Some((_, by)) => {
                payload["decided_by"] = json!(by);
                payload["reason"] = json!(row.decision_reason);
                payload["grant_id"] = json!(row.grant.map(GrantId::to_text));
            }
        }
        if let Some(grant) = granted {
            let (run, session) = grant.duration.places();
            payload["run_id"] = json!(run.map(RunId::to_text));
            payload["session_id"] = json!(session.map(SessionId::to_text));
            let (user, agent) = grant.subject.parts();
            payload["user_subject_id"] = json!(user);
            payload["agent_subject_id"] = json!(agent);
            payload["expires_at"] =
                json!(grant.expires_at.map(|at| Timestamp::new(at).to_string()));
        }
        events.note(&place, kind, &payload, Some(&id)).await;
    }

    /// One request of a workspace.
    ///
    /// # Errors
    /// When the id is unknown; when there is no such workspace or no store, or the store fails.
    pub async fn grant_request(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<GrantRequestRow, ControlError> {
        let unknown = || GrantError::UnknownRequest(shortened(id));
        let store = self.catalog_store(workspace).await?;
        let id = GrantRequestId::parse(id).ok_or_else(unknown)?;
        let found = store.grant_requests().find(workspace, id).await;
        Ok(found.map_err(ControlError::Store)?.ok_or_else(unknown)?)
    }

    /// Waits until a request is closed: a human has decided, or its time is over. Returns `false`
    /// if the request cannot be followed that long, so that the outcome is unknown.
    pub async fn grant_request_settled(&self, row: &GrantRequestRow) -> bool {
        let (Some(events), Some(session)) = (self.events(), row.session) else { return false };
        let kinds = vec![EventKind::PermissionGranted, EventKind::PermissionDenied];
        let mut follower = events.follow(&row.workspace, session, 0, kinds);
        let left = row.expires_at.duration_since(SystemTime::now()).unwrap_or_default();
        let mut late = std::pin::pin!(tokio::time::sleep(left));
        loop {
            match self.grant_request(&row.workspace, &row.id.to_text()).await {
                Ok(now) if now.status == GrantRequestStatus::Pending => {}
                Ok(_) => return true,
                Err(error) => return not_followed(&error),
            }
            tokio::select! {
                () = &mut late => return true,
                told = follower.next() => match told {
                    Ok(Some(_)) => {}
                    // The session has ended, which closes its requests too.
                    Ok(None) => return true,
                    Err(error) => return not_followed(&error),
                },
            }
        }
    }

    /// The request with this id, if it waits for a decision.
    async fn pending(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<GrantRequestRow, ControlError> {
        let found = self.grant_request(workspace, id).await?;
        match found.status {
            GrantRequestStatus::Pending => Ok(found),
            status => Err(GrantError::Decided(found.id.to_text(), status.as_str()).into()),
        }
    }
}

fn not_followed(error: &dyn std::error::Error) -> bool {
    tracing::warn!("the decision on a grant request cannot be awaited any more: {error}");
    false
}

fn of_request(
    kind: &'static str,
    row: &GrantRequestRow,
    by: Actor<'static>,
) -> AuditEvent<'static> {
    let event = AuditEvent::new(kind, by).in_workspace(&row.workspace);
    event.on("grant_request", row.id.to_text()).of_run(row.run.to_text())
}
