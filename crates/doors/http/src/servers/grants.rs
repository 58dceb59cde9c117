//! Grants of humans, and requests of runs: listed, granted, revoked and decided.

use std::{fmt, time::SystemTime};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use narthex_control::{
    Control, ControlError, GrantError, GrantRequestRow, GrantRequestStatus, GrantRow, Granter,
};
use narthex_definitions::harmless;
use narthex_model::{GrantId, RunId, SessionId, Timestamp};
use serde_json::{Value, json};

use super::{Answered, Asked, access::created, ok};
use crate::{auth::Principal, problem::Problem, respond};

/// Characters of arguments that are shown: all that are stored, also if much of them is unseen.
const ARGUMENTS_MAX: usize = 50_000;

/// The target of a request about grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantTarget {
    /// Those of a workspace.
    All,
    /// One of them.
    One,
    /// Requests of runs, or one request that is approved or denied.
    Requests(Option<bool>),
}

impl Asked<'_> {
    /// Grants and requests for them: listed, shown, written and decided.
    pub(super) async fn of_grants<B>(&self, target: GrantTarget, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
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
        let items: Result<Vec<_>, _> = page.items.iter().map(|row| self.shown_grant(row)).collect();
        Ok(ok(&json!({ "items": items?, "next": page.next })))
    }

    async fn create_grant<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let (workspace, by) = (self.workspace()?, self.principal.granter()?);
        let text = self.entry(body, &[]).await?;
        let made = self.control()?.grant_create(&workspace, text.as_bytes(), by).await?;
        let place = format!("/api/workspaces/{workspace}/grants/{}", made.grant.id);
        let mut shown = self.shown_grant(&made)?;
        let warnings = self.warnings_of_grant(&made.grant.of).await?;
        if !warnings.is_empty() {
            shown["warnings"] = json!(warnings);
        }
        Ok(created(&shown, &place))
    }

    async fn show_grant(&self) -> Answered {
        self.query(&[])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        Ok(ok(&self.shown_grant(&self.control()?.grant(&workspace, &id).await?)?))
    }

    /// A grant, and whether it counts now.
    fn shown_grant(&self, row: &GrantRow) -> Result<Value, Problem> {
        let (control, mut shown) = (self.control()?, shown(row));
        let user = row.grant.subject.parts().0;
        shown["user_name"] = json!(user.map(|id| control.principal_name(id)));
        shown["counts"] = json!(control.grant_counts(row));
        Ok(shown)
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
        // Warnings name scopes of servers.
        let is_pending = |row: &GrantRequestRow| row.status == GrantRequestStatus::Pending;
        let is_warned =
            self.principal.may_read_catalog(&workspace) && page.items.iter().any(is_pending);
        let required = match is_warned {
            true => Some(control.required_scopes(&workspace).await?),
            false => None,
        };
        let shown = page.items.iter().map(|row| {
            let mut shown = request(control, row);
            if let Some(required) = required.as_ref().filter(|_| is_pending(row)) {
                shown["warnings"] = required.warning_of(&row.of).into_iter().collect();
            }
            shown
        });
        let items: Vec<_> = shown.collect();
        Ok(ok(&json!({ "items": items, "next": page.next })))
    }

    /// Approves or denies what a run has asked for.
    async fn decide_grant<B>(&self, body: B, is_approved: bool) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let (workspace, id, by) = (self.workspace()?, self.segment(1), self.principal.granter()?);
        let text = self.entry(body, &[]).await?;
        let control = self.control()?;
        let is_advisory = by.is_advisory;
        let decided = match is_approved {
            true => control.grant_request_approve(&workspace, &id, text.as_bytes(), by).await?,
            false => control.grant_request_deny(&workspace, &id, text.as_bytes(), by).await?,
        };
        let mut shown = request(control, &decided);
        if is_approved {
            shown["is_advisory"] = json!(is_advisory);
            shown["warnings"] = json!(self.warnings_of_grant(&decided.of).await?);
        }
        Ok(ok(&shown))
    }
}

impl Principal {
    /// The caller as a granter, if they are a human (X-M58, D15).
    pub(crate) fn granter(&self) -> Result<Granter, Problem> {
        match self.no_human() {
            Some(why) => Err(ControlError::from(GrantError::NoHuman(why)).into()),
            None => Ok(Granter { by: self.actor(), is_advisory: !self.is_authenticated_human() }),
        }
    }
}

fn shown(row: &GrantRow) -> Value {
    let GrantRow { grant, reason, granted_at, granted_by, is_advisory, .. } = row;
    let (run, session) = grant.duration.places();
    let (user, agent) = grant.subject.parts();
    json!({
        "id": grant.id.to_text(),
        "grant_type": grant.of.word(),
        "details": grant.of.details(),
        "scope": grant.duration.word(),
        "session_id": session.map(SessionId::to_text),
        "run_id": run.map(RunId::to_text),
        "user_subject_id": user,
        "agent_subject_id": agent,
        "expires_at": grant.expires_at.map(time),
        "reason": reason,
        "granted_at": time(*granted_at),
        "granted_by": granted_by,
        "is_advisory": is_advisory,
        "consumed_at": row.consumed.as_ref().map(|(at, _)| time(*at)),
        "consumed_by": row.consumed.as_ref().map(|(_, run)| run),
        "revoked_at": row.revoked.as_ref().map(|(at, _)| time(*at)),
        "revoked_by": row.revoked.as_ref().map(|(_, by)| by),
    })
}

fn request(control: &Control, row: &GrantRequestRow) -> Value {
    json!({
        "id": row.id.to_text(),
        "status": row.status.as_str(),
        "run_id": row.run.to_text(),
        "session_id": row.session.map(SessionId::to_text),
        "user_subject_id": row.user,
        "user_name": row.user.as_ref().map(|id| control.principal_name(id)),
        "agent_subject_id": row.agent,
        "grant_type": row.of.word(),
        "details": row.of.details(),
        "arguments": (!row.arguments.is_empty()).then(|| harmless(&row.arguments, ARGUMENTS_MAX)),
        "scope": row.duration,
        "reason": row.reason,
        "requested_at": time(row.requested_at),
        "expires_at": time(row.expires_at),
        "decided_at": row.decided.as_ref().map(|(at, _)| time(*at)),
        "decided_by": row.decided.as_ref().map(|(_, by)| by),
        "decision_reason": row.decision_reason,
        "grant_id": row.grant.map(GrantId::to_text),
        "page": control.grant_request_page(&row.workspace, &row.id.to_text()),
        "warnings": [],
    })
}

fn time(time: SystemTime) -> String {
    Timestamp::new(time).to_string()
}
