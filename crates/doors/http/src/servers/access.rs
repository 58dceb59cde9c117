//! Rights: workspaces, principals, members, and tokens of services.

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body::Body;
use narthex_control::{Account, CreatedToken, KnownToken, Page, Workspace};
use narthex_model::{PrincipalKind, Role, Timestamp, WorkspaceId};
use serde_json::{Value, json};

use super::{Answered, Asked, Query, document, ok};
use crate::{problem::Problem, respond};

impl Asked<'_> {
    /// The workspaces that the caller may know of.
    pub(super) fn workspaces(&self) -> Answered {
        let all = self.control()?.workspaces()?;
        let seen = all.into_iter().filter(|one| self.principal.may_see(&one.id));
        self.page(seen, |one| one.id.as_str(), workspace)
    }

    pub(super) async fn create_workspace<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let made = self.control()?.workspace_create(text.as_bytes(), &self.by()).await?;
        let place = format!("/api/workspaces/{}", made.id);
        Ok(created(&workspace(&made), &place))
    }

    pub(super) fn show_workspace(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(&workspace(&self.control()?.workspace(&self.workspace()?)?)))
    }

    pub(super) async fn change_workspace<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[MERGE_PATCH]).await?;
        let (id, by) = (self.workspace()?, self.by());
        Ok(ok(&workspace(&self.control()?.workspace_change(&id, text.as_bytes(), &by).await?)))
    }

    pub(super) async fn delete_workspace(&self) -> Answered {
        let is_forced = self.query(&["force"])?.flag("force")?;
        let (id, by) = (self.workspace()?, self.by());
        match &self.door.options.runs {
            Some(runs) if is_forced => runs.workspace_delete(&id, &by).await?,
            Some(_) | None => self.control()?.workspace_delete(&id, is_forced, &by).await?,
        }
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn principals(&self) -> Answered {
        self.page(self.control()?.principals()?, |one| one.id.as_str(), |one| account(one))
    }

    pub(super) async fn create_principal<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let made = self.control()?.principal_create(text.as_bytes(), &self.by()).await?;
        Ok(created(&account(&made), &format!("/api/principals/{}", made.id)))
    }

    pub(super) fn principal(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(&account(&*self.control()?.principal(&self.segment(0))?)))
    }

    pub(super) async fn change_principal<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[MERGE_PATCH]).await?;
        let (who, by) = (self.segment(0), self.by());
        let changed = self.control()?.principal_change(&who, text.as_bytes(), &by).await?;
        // Runs of a client end with its right to come in.
        if changed.kind == PrincipalKind::Client && changed.disabled_at.is_some() {
            self.known_runs()?.clients_disabled(&changed.id, &by).await?;
        }
        Ok(ok(&account(&changed)))
    }

    pub(super) fn members(&self) -> Answered {
        let here = self.workspace()?;
        let all = self.control()?.members(&here)?;
        self.page(all, |one| one.id.as_str(), |one| member(one, &here))
    }

    pub(super) async fn set_member<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let (here, who) = (self.workspace()?, self.segment(1));
        let is_operator = self.principal.is_operator();
        let by = self.by();
        let set = self.control()?.member_set(&here, &who, text.as_bytes(), is_operator, &by);
        Ok(ok(&member(&*set.await?, &here)))
    }

    pub(super) async fn remove_member(&self) -> Answered {
        self.query(&[])?;
        let (here, who) = (self.workspace()?, self.segment(1));
        self.control()?.member_remove(&here, &who, &self.by()).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn tokens(&self) -> Answered {
        let all = self.control()?.service_tokens(&self.workspace()?)?;
        self.page(all, |one| one.row.id.as_str(), token)
    }

    pub(super) async fn create_token<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let here = self.workspace()?;
        let by = (&self.by(), self.principal.is_proved());
        let made = self.control()?.service_token_create(&here, text.as_bytes(), by).await?;
        let CreatedToken { token: secret, known } = made;
        let mut shown = token(&known);
        shown["token"] = json!(secret.expose());
        let place = format!("/api/workspaces/{here}/service-tokens/{}", known.row.id);
        Ok(created(&shown, &place))
    }

    pub(super) async fn revoke_token(&self) -> Answered {
        self.query(&[])?;
        let (here, id) = (self.workspace()?, self.segment(1));
        self.control()?.service_token_revoke(&here, &id, &self.by()).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    /// The page that is asked for, of things in the order of their ids.
    pub(super) fn page<T>(
        &self,
        all: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> &str,
        shown: impl Fn(&T) -> Value,
    ) -> Answered {
        let query = self.query(&["after", "limit"])?;
        Ok(ok(&page_of(&query, all, id, shown)?))
    }
}

/// The page that a query asks for, of things in the order of their ids.
pub(crate) fn page_of<T>(
    query: &Query,
    all: impl IntoIterator<Item = T>,
    id: impl Fn(&T) -> &str,
    shown: impl Fn(&T) -> Value,
) -> Result<Value, Problem> {
    let Page { items, next } = Page::of(all, id, query.text("after"), query.limit()?);
    let items: Vec<_> = items.iter().map(shown).collect();
    Ok(json!({ "items": items, "next": next }))
}

const MERGE_PATCH: &str = "application/merge-patch+json";

pub(super) fn created(shown: &Value, place: &str) -> respond::Response {
    let mut response = document(StatusCode::CREATED, shown);
    // Ids need no escapes.
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

fn workspace(workspace: &Workspace) -> Value {
    let Workspace { id, name, settings, models } = workspace;
    json!({
        "id": id.as_str(),
        "name": name,
        "audits_contents": settings.audits_contents,
        "models": models.all(),
        "oauth_on_orchestrators": settings.oauth_on_orchestrators,
        "events_kept_days": settings.events_kept_days,
        "runtime_requests": settings.runtime_requests,
    })
}

fn account(account: &Account) -> Value {
    let Account { id, kind, name, workspace, is_operator, roles, .. } = account;
    let roles = roles.iter().map(|(workspace, roles)| (workspace.to_string(), json!(roles)));
    json!({
        "id": id,
        "kind": kind,
        "name": name,
        "workspace": workspace.as_ref().map(WorkspaceId::as_str),
        "is_operator": is_operator,
        "roles": roles.collect::<serde_json::Map<_, _>>(),
        "created_at": time(account.created_at),
        "created_by": account.created_by,
        "disabled_at": account.disabled_at.map(time),
    })
}

/// The part of an account that a workspace of its principal may know.
fn member(account: &Account, workspace: &WorkspaceId) -> Value {
    let roles: Vec<&Role> = account.roles.get(workspace).into_iter().flatten().collect();
    json!({
        "id": account.id,
        "kind": account.kind,
        "name": account.name,
        "roles": roles,
        "is_disabled": account.disabled_at.is_some(),
    })
}

fn token(token: &Arc<KnownToken>) -> Value {
    let row = &token.row;
    json!({
        "id": row.id,
        "service": token.account.name,
        "label": row.label,
        "is_live": token.is_live(SystemTime::now()),
        "created_at": time(row.created_at),
        "created_by": row.created_by,
        "is_proved": row.is_proved,
        "expires_at": row.expires_at.map(time),
        "revoked_at": row.revoked_at.map(time),
        "last_used_at": token.last_used_at().map(time),
    })
}

fn time(time: SystemTime) -> String {
    Timestamp::new(time).to_string()
}
