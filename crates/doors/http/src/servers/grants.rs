//! Grants of humans, and grant requests of runs: lists, creates, revokes and decides them.

use http::{Method, StatusCode};
use narthex_control::{
    Control, ControlError, GrantError, GrantRequestRow, GrantRequestStatus, GrantRow, Granter,
};
use narthex_definitions::harmless;
use narthex_model::{GrantOf, SpawnGrant, ToolScopeGrant};

use super::{Answered, Asked, access::created, ok};
use crate::{
    auth::Principal,
    body::RequestBody,
    problem::Problem,
    request_warnings::warnings,
    respond,
    shapes::{Grant, GrantDetails, GrantRequest, GrantScope, Page},
};

/// Maximum number of characters of arguments in an answer: all that are stored, also if many of
/// them are invisible.
const ARGUMENTS_MAX: usize = 50_000;

/// The target of a request about grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantTarget {
    /// The grants of a workspace.
    All,
    /// One grant.
    One,
    /// Grant requests of runs, or the approval or denial of one of them.
    Requests(Option<bool>),
}

impl Asked<'_> {
    /// Handles grants and grant requests.
    pub(super) async fn of_grants(&self, target: GrantTarget, body: RequestBody) -> Answered {
        match (target, &self.parts.method) {
            (GrantTarget::All, &Method::POST) => self.create_grant(body).await,
            (GrantTarget::All, _) => self.list_grants().await,
            (GrantTarget::One, &Method::DELETE) => self.revoke_grant().await,
            (GrantTarget::One, _) => self.show_grant().await,
            (GrantTarget::Requests(None), _) => self.list_grant_requests().await,
            (GrantTarget::Requests(Some(is_approved)), _) => {
                self.decide_grant(body, is_approved).await
            }
        }
    }

    async fn list_grants(&self) -> Answered {
        let workspace = self.workspace()?;
        let query = self.query(&["include_revoked", "after", "limit"])?;
        let with_revoked = query.flag("include_revoked")?;
        let (after, limit) = (query.text("after"), query.limit()?);
        let page = self.control()?.grants(&workspace, after, limit, with_revoked).await?;
        let control = self.control()?;
        let items = page.items.iter().map(|row| shown(control, row)).collect();
        Ok(ok(&Page { items, next: page.next }))
    }

    async fn create_grant(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, by) = (self.workspace()?, self.principal.granter()?);
        let text = self.entry(body, &[]).await?;
        let made = self.control()?.grant_create(&workspace, text.as_bytes(), by).await?;
        let place = format!("/api/workspaces/{workspace}/grants/{}", made.grant.id);
        let warnings = self.warnings_of_grant(&made.grant.of).await?;
        let warnings = Some(warnings).filter(|warnings| !warnings.is_empty());
        let grant = Grant { warnings, ..shown(self.control()?, &made) };
        Ok(created(&grant, &place))
    }

    async fn show_grant(&self) -> Answered {
        self.query(&[])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        let control = self.control()?;
        Ok(ok(&shown(control, &control.grant(&workspace, &id).await?)))
    }

    async fn revoke_grant(&self) -> Answered {
        self.query(&[])?;
        let (workspace, id, by) = (self.workspace()?, self.segment(1), self.principal.granter()?);
        self.control()?.grant_revoke(&workspace, &id, &by.by).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    async fn list_grant_requests(&self) -> Answered {
        let workspace = self.workspace()?;
        let query = self.query(&["status", "after", "limit"])?;
        let words = GrantRequestStatus::ALL.map(GrantRequestStatus::as_str);
        let words = [&words[..], &["all"]].concat();
        let word = query.word("status", &words)?;
        let status = GrantRequestStatus::ALL.into_iter().find(|one| one.as_str() == word);
        let (after, limit) = (query.text("after"), query.limit()?);
        let page = self.control()?.grant_requests(&workspace, status, after, limit).await?;
        let control = self.control()?;
        let reads_catalog = self.principal.may_read_catalog(&workspace);
        let warnings = warnings(control, &workspace, &page.items, reads_catalog).await?;
        let shown = |(row, warning): (&GrantRequestRow, Option<String>)| {
            let shown = request(control, row, warning.into_iter().collect());
            if reads_catalog { shown } else { shown.without_catalog() }
        };
        let items = page.items.iter().zip(warnings).map(shown).collect();
        Ok(ok(&Page { items, next: page.next }))
    }

    /// Approves or denies a grant request of a run.
    async fn decide_grant(&self, body: RequestBody, is_approved: bool) -> Answered {
        self.query(&[])?;
        let (workspace, id, by) = (self.workspace()?, self.segment(1), self.principal.granter()?);
        let text = self.entry(body, &[]).await?;
        let control = self.control()?;
        let is_advisory = by.is_advisory;
        let decided = match is_approved {
            true => control.grant_request_approve(&workspace, &id, text.as_bytes(), by).await?,
            false => control.grant_request_deny(&workspace, &id, text.as_bytes(), by).await?,
        };
        let warnings = match is_approved {
            true => self.warnings_of_grant(&decided.of).await?,
            false => Vec::new(),
        };
        let is_advisory = is_approved.then_some(is_advisory);
        Ok(ok(&GrantRequest { is_advisory, ..request(control, &decided, warnings) }))
    }
}

impl Principal {
    /// The caller as a granter, if the caller may be a human (X-M58, D15).
    pub(crate) fn granter(&self) -> Result<Granter, Problem> {
        match self.no_human() {
            Some(why) => Err(ControlError::from(GrantError::NoHuman(why)).into()),
            None => Ok(Granter { by: self.actor(), is_advisory: !self.is_authenticated_human() }),
        }
    }
}

/// A grant, and whether it is valid now.
fn shown(control: &Control, row: &GrantRow) -> Grant {
    let GrantRow { grant, reason, granted_at, granted_by, is_advisory, .. } = row;
    let (run, session) = grant.duration.places();
    let (user, agent) = grant.subject.parts();
    Grant {
        id: grant.id.to_text().into(),
        grant_type: (&grant.of).into(),
        details: details(&grant.of),
        scope: grant.duration.into(),
        session_id: session.map(|session| session.to_text().into()),
        run_id: run.map(|run| run.to_text().into()),
        user_subject_id: user.map(Into::into),
        user_name: user.map(|id| control.principal_name(id)),
        agent_subject_id: agent.map(Into::into),
        expires_at: grant.expires_at.map(Into::into),
        reason: reason.clone(),
        granted_at: (*granted_at).into(),
        granted_by: granted_by.clone(),
        is_advisory: *is_advisory,
        warnings: None,
        counts: control.grant_counts(row),
        consumed_at: row.consumed.as_ref().map(|(at, _)| (*at).into()),
        consumed_by: row.consumed.as_ref().map(|(_, run)| run.into()),
        revoked_at: row.revoked.as_ref().map(|(at, _)| (*at).into()),
        revoked_by: row.revoked.as_ref().map(|(_, by)| by.clone()),
    }
}

fn details(of: &GrantOf) -> GrantDetails {
    match of {
        GrantOf::ToolScope(ToolScopeGrant { scope, server, tool, arguments }) => GrantDetails {
            scope: Some(scope.to_string()),
            server: server.as_ref().map(Into::into),
            tool: tool.clone(),
            arguments_digest: arguments.map(|digest| digest.to_string()),
            ..GrantDetails::default()
        },
        GrantOf::Spawn(SpawnGrant { child_agent, allowed_runtime_types, allowed_models }) => {
            GrantDetails {
                child_agent_id: Some(child_agent.into()),
                allowed_runtime_types: allowed_runtime_types.clone(),
                allowed_models: allowed_models.clone(),
                ..GrantDetails::default()
            }
        }
    }
}

fn request(control: &Control, row: &GrantRequestRow, warnings: Vec<String>) -> GrantRequest {
    let has_arguments = !row.arguments.is_empty();
    GrantRequest {
        id: row.id.to_text().into(),
        status: row.status.as_str(),
        run_id: row.run.to_text().into(),
        session_id: row.session.map(|session| session.to_text().into()),
        user_subject_id: row.user.as_ref().map(Into::into),
        user_name: row.user.as_ref().map(|id| control.principal_name(id)),
        agent_subject_id: row.agent.as_ref().map(Into::into),
        grant_type: (&row.of).into(),
        details: details(&row.of),
        arguments: has_arguments.then(|| harmless(&row.arguments, ARGUMENTS_MAX)),
        scope: GrantScope::stored(row.duration),
        reason: row.reason.clone(),
        requested_at: row.requested_at.into(),
        expires_at: row.expires_at.into(),
        decided_at: row.decided.as_ref().map(|(at, _)| (*at).into()),
        decided_by: row.decided.as_ref().map(|(_, by)| by.clone()),
        decision_reason: row.decision_reason.clone(),
        grant_id: row.grant.map(|grant| grant.to_text().into()),
        page: control.grant_request_page(&row.workspace, &row.id.to_text()),
        is_advisory: None,
        warnings,
    }
}
