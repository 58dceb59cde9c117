//! Rights: workspaces, principals, members, and tokens of services.

use std::{sync::Arc, time::SystemTime};

use http::{HeaderValue, StatusCode, header};
use narthex_control::{Account, By, Control, CreatedToken, KnownToken, Page};
use narthex_model::{PrincipalKind, WorkspaceId};
use narthex_runs::Runs;
use serde::Serialize;

use super::{Answered, Asked, Query, document, ok};
use crate::{
    body::RequestBody,
    problem::Problem,
    respond,
    shapes::{self, EnabledModel, Member, Principal, ServiceToken, ServiceTokenMade, Workspace},
};

impl Asked<'_> {
    /// Lists the workspaces that the caller may know.
    pub(super) fn workspaces(&self) -> Answered {
        let all = self.control()?.workspaces()?;
        let seen = all.into_iter().filter(|one| self.principal.may_see(&one.id));
        self.page(seen, |one| one.id.as_str(), workspace)
    }

    pub(super) async fn create_workspace(&self, body: RequestBody) -> Answered {
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

    pub(super) async fn change_workspace(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let text = self.entry(body, &[MERGE_PATCH]).await?;
        let (id, by) = (self.workspace()?, self.by());
        Ok(ok(&workspace(&self.control()?.workspace_change(&id, text.as_bytes(), &by).await?)))
    }

    pub(super) async fn delete_workspace(&self) -> Answered {
        let is_forced = self.query(&["force"])?.flag("force")?;
        let (id, by) = (self.workspace()?, self.by());
        let runs = self.door.options.runs.as_ref();
        delete_workspace(runs, self.control()?, &id, is_forced, &by).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn principals(&self) -> Answered {
        self.page(self.control()?.principals()?, |one| one.id.as_str(), |one| account(one))
    }

    pub(super) async fn create_principal(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let made = self.control()?.principal_create(text.as_bytes(), &self.by()).await?;
        Ok(created(&account(&made), &format!("/api/principals/{}", made.id)))
    }

    pub(super) fn principal(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(&account(&*self.control()?.principal(&self.segment(0))?)))
    }

    pub(super) async fn change_principal(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let text = self.entry(body, &[MERGE_PATCH]).await?;
        let (who, by) = (self.segment(0), self.by());
        let changed = self.control()?.principal_change(&who, text.as_bytes(), &by).await?;
        // If a client may no longer connect, its runs end.
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

    pub(super) async fn set_member(&self, body: RequestBody) -> Answered {
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

    pub(super) async fn create_token(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let here = self.workspace()?;
        let by = (&self.by(), self.principal.is_proved());
        let made = self.control()?.service_token_create(&here, text.as_bytes(), by).await?;
        let CreatedToken { token: secret, known } = made;
        let shown = ServiceTokenMade { known: token(&known), token: secret.expose().to_owned() };
        let place = format!("/api/workspaces/{here}/service-tokens/{}", known.row.id);
        Ok(created(&shown, &place))
    }

    pub(super) async fn revoke_token(&self) -> Answered {
        self.query(&[])?;
        let (here, id) = (self.workspace()?, self.segment(1));
        self.control()?.service_token_revoke(&here, &id, &self.by()).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    /// The page that the query asks for, of items in the order of their ids.
    pub(super) fn page<T, S: Serialize>(
        &self,
        all: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> &str,
        shown: impl Fn(&T) -> S,
    ) -> Answered {
        let query = self.query(&["after", "limit"])?;
        Ok(ok(&page_of(&query, all, id, shown)?))
    }
}

/// Deletes a workspace. With `is_forced`, its runs are ended first, and its objects are deleted
/// with it.
pub(crate) async fn delete_workspace(
    runs: Option<&Runs>,
    control: &Control,
    id: &WorkspaceId,
    is_forced: bool,
    by: &By,
) -> Result<(), Problem> {
    match runs {
        Some(runs) if is_forced => runs.workspace_delete(id, by).await?,
        Some(_) | None => control.workspace_delete(id, is_forced, by).await?,
    }
    Ok(())
}

/// The page that a query asks for, of items in the order of their ids.
pub(crate) fn page_of<T, S>(
    query: &Query,
    all: impl IntoIterator<Item = T>,
    id: impl Fn(&T) -> &str,
    shown: impl Fn(&T) -> S,
) -> Result<shapes::Page<S>, Problem> {
    let Page { items, next } = Page::of(all, id, query.text("after"), query.limit()?);
    Ok(shapes::Page { items: items.iter().map(shown).collect(), next })
}

const MERGE_PATCH: &str = "application/merge-patch+json";

pub(super) fn created(shown: &impl Serialize, place: &str) -> respond::Response {
    let mut response = document(StatusCode::CREATED, shown);
    // Ids contain no characters that need escapes.
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

fn workspace(workspace: &narthex_control::Workspace) -> Workspace {
    let narthex_control::Workspace { id, name, settings, models } = workspace;
    let model = |one: &narthex_model::EnabledModel| {
        let narthex_model::EnabledModel { id, short_names } = one;
        let short_names = Some(short_names.clone()).filter(|names| !names.is_empty());
        EnabledModel { id: id.clone(), short_names }
    };
    Workspace {
        id: id.into(),
        name: name.clone(),
        audits_contents: settings.audits_contents,
        oauth_on_orchestrators: settings.oauth_on_orchestrators.into(),
        events_kept_days: settings.events_kept_days.into(),
        models: models.all().iter().map(model).collect(),
        runtime_requests: settings.runtime_requests,
    }
}

fn account(account: &Account) -> Principal {
    let Account { id, kind, name, workspace, is_operator, roles, .. } = account;
    let roles = roles.iter().map(|(workspace, roles)| {
        (workspace.to_string(), roles.iter().copied().map(Into::into).collect())
    });
    Principal {
        id: id.into(),
        kind: kind.as_str(),
        name: name.into(),
        workspace: workspace.as_ref().map(Into::into),
        is_operator: *is_operator,
        roles: roles.collect(),
        created_at: account.created_at.into(),
        created_by: account.created_by.clone(),
        disabled_at: account.disabled_at.map(Into::into),
    }
}

/// The part of an account that a workspace in which it is a member may know.
fn member(account: &Account, workspace: &WorkspaceId) -> Member {
    let roles = account.roles.get(workspace).into_iter().flatten();
    Member {
        id: (&account.id).into(),
        kind: account.kind.as_str(),
        name: (&account.name).into(),
        roles: roles.copied().map(Into::into).collect(),
        is_disabled: account.disabled_at.is_some(),
    }
}

fn token(token: &Arc<KnownToken>) -> ServiceToken {
    let row = &token.row;
    ServiceToken {
        id: (&row.id).into(),
        service: (&token.account.name).into(),
        label: row.label.clone(),
        is_live: token.is_live(SystemTime::now()),
        created_at: row.created_at.into(),
        created_by: row.created_by.clone(),
        is_proved: row.is_proved,
        expires_at: row.expires_at.map(Into::into),
        revoked_at: row.revoked_at.map(Into::into),
        last_used_at: token.last_used_at().map(Into::into),
    }
}
