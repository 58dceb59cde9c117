//! Bindings of secrets to variables in the environment of agents: lists, adds, changes and removes
//! them, by name.

use http::{Method, StatusCode};
use narthex_control::EnvBindingRow;
use narthex_model::{EnvScope, WorkspaceId};

use super::{Answered, Asked, access::created, document, ok};
use crate::{
    body::RequestBody,
    respond,
    routes::Target,
    shapes::{EnvBinding, Page},
};

impl Asked<'_> {
    /// Lists, adds, changes or removes bindings.
    pub(super) async fn of_env_bindings(&self, body: RequestBody) -> Answered {
        match (self.target, &self.parts.method) {
            (Target::EnvBinding, _) => self.change_env_binding(body).await,
            (_, &Method::POST) => self.create_env_binding(body).await,
            _ => self.env_bindings().await,
        }
    }

    /// Lists the bindings of a workspace, page by page.
    async fn env_bindings(&self) -> Answered {
        let workspace = self.workspace()?;
        let query = self.query(&["scope", "scope_id", "after", "limit"])?;
        let [agent, preview, whole] = EnvScope::WORDS;
        let scope = query.word("scope", &["", agent, preview, whole])?;
        let scope_id = query.text("scope_id");
        // The scope of a whole workspace needs no id, so the workspace's own id counts as none.
        let scope_id = if scope_id == workspace.as_str() && scope == whole { "" } else { scope_id };
        let (after, limit) = (query.text("after"), query.limit()?);
        let page = self.control()?.env_bindings(&workspace, (scope, scope_id), after, limit);
        let page = page.await?;
        let items = page.items.iter().map(|one| shown(one, &workspace)).collect();
        Ok(ok(&Page { items, next: page.next }))
    }

    async fn create_env_binding(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, by) = (self.workspace()?, self.by());
        let text = self.entry(body, &[]).await?;
        let made = self.control()?.env_binding_create(&workspace, text.as_bytes(), &by).await?;
        Ok(created(&shown(&made, &workspace), &place(&made, &workspace)))
    }

    /// Adds, changes or removes the binding with the id of the path.
    async fn change_env_binding(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, id, by) = (self.workspace()?, self.segment(1), self.by());
        let control = self.control()?;
        if self.parts.method == Method::DELETE {
            control.env_binding_remove(&workspace, &id, &by).await?;
            return Ok(respond::empty(StatusCode::NO_CONTENT));
        }
        let text = self.entry(body, &[]).await?;
        let set = control.env_binding_set(&workspace, &id, text.as_bytes(), &by).await?;
        let (binding, was_there) = set;
        let shown = shown(&binding, &workspace);
        match was_there {
            true => Ok(document(StatusCode::OK, &shown)),
            false => Ok(created(&shown, &place(&binding, &workspace))),
        }
    }
}

fn place(binding: &EnvBindingRow, workspace: &WorkspaceId) -> String {
    // A colon needs no encoding in a path.
    format!("/api/workspaces/{workspace}/env-bindings/{}", binding.id)
}

fn shown(binding: &EnvBindingRow, workspace: &WorkspaceId) -> EnvBinding {
    let EnvBindingRow { id, secret, created_at, updated_at, updated_by } = binding;
    let scope_id = match &id.scope {
        EnvScope::Workspace => workspace.as_str(),
        scope => scope.id(),
    };
    EnvBinding {
        id: id.into(),
        scope: (&id.scope).into(),
        scope_id: scope_id.to_owned(),
        name: id.name.to_string(),
        secret: secret.into(),
        created_at: (*created_at).into(),
        updated_at: (*updated_at).into(),
        updated_by: updated_by.clone(),
    }
}
