//! Creates, changes and deletes workspaces.

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_model::{EnabledModels, OauthOnOrchestrators, WorkspaceId, json::Place};
use narthex_store::{Workspace, WorkspaceChange};

use super::{AccessError, change::of_statement};
use crate::{By, CatalogError, Control, ControlError};

/// The fields of a workspace that can be changed.
const CHANGEABLE: [&str; 6] = [
    "name",
    "audits_contents",
    "oauth_on_orchestrators",
    "events_kept_days",
    "runtime_requests",
    "models",
];

impl Control {
    /// All workspaces, in the order of their ids.
    ///
    /// # Errors
    /// When there is no store.
    pub fn workspaces(&self) -> Result<Vec<Workspace>, ControlError> {
        self.needed_store()?;
        Ok(self.access().workspaces.values().cloned().collect())
    }

    /// One workspace.
    ///
    /// # Errors
    /// When the id is unknown, or there is no store.
    pub fn workspace(&self, id: &WorkspaceId) -> Result<Workspace, ControlError> {
        self.known_workspace(id)?;
        let found = self.access().workspaces.get(id).cloned();
        found.ok_or_else(|| CatalogError::NoWorkspace(id.clone()).into())
    }

    /// Creates a workspace from `{"id": …, "name": …}`; without a name, the id is the name.
    ///
    /// # Errors
    /// When a field is wrong, or the id is taken; when there is no store, or the store fails.
    pub async fn workspace_create(&self, text: &[u8], by: &By) -> Result<Workspace, ControlError> {
        let mut fields = Fields::read(text, &["id", "name"])?;
        let id = fields.named("id", WorkspaceId::new);
        let name = fields.text("name");
        fields.done()?;
        let id = id.expect("what is missing is a fault");
        let name = name.unwrap_or_else(|| id.to_string());
        let (new, by) = (Workspace::new(id, name), by.clone());
        self.change_access(async move |this, store| {
            let taken = AccessError::WorkspaceTaken(new.id.clone());
            if this.access().workspaces.contains_key(&new.id) {
                return Err(taken.into());
            }
            let noted = this.note(event(kind::WORKSPACE_CREATED, &new.id, by)).await?;
            store.workspaces().create(&new).await.map_err(of_statement(taken))?;
            noted.done().await;
            Ok(new)
        })
        .await
    }

    /// Changes a workspace by `{"name": …, "audits_contents": …, "oauth_on_orchestrators": …,
    /// "events_kept_days": …, "runtime_requests": …, "models": …}`.
    ///
    /// `audits_contents`: true if its audit records the contents of later calls, also of active
    /// runs. `oauth_on_orchestrators`: the agents that may have servers with a sign-in per person;
    /// checked at saves and for later runs. `events_kept_days`: number of days for which events of
    /// sessions are stored. `runtime_requests`: true if runs may ask humans for grants. `models`:
    /// the models that runs may ask for.
    ///
    /// # Errors
    /// When a field is wrong or there is none, there is no such workspace or no store, or the store
    /// fails.
    pub async fn workspace_change(
        &self,
        id: &WorkspaceId,
        text: &[u8],
        by: &By,
    ) -> Result<Workspace, ControlError> {
        self.known_workspace(id)?;
        let mut fields = Fields::read(text, &CHANGEABLE)?;
        let words = OauthOnOrchestrators::ALL.map(|one| (one.as_str(), one));
        let change = WorkspaceChange {
            name: fields.text("name"),
            audits_contents: fields.flag("audits_contents"),
            oauth_on_orchestrators: fields.word("oauth_on_orchestrators", &words),
            events_kept_days: fields.days("events_kept_days"),
            runtime_requests: fields.flag("runtime_requests"),
            models: models(&mut fields),
        };
        if change == WorkspaceChange::default() {
            let remedy = format!("give some of `{}`", CHANGEABLE.join("`, `"));
            fields.fault("", "it is empty", &remedy);
        }
        fields.done()?;
        let (of, by) = (id.clone(), by.clone());
        self.change_access(async move |this, store| {
            this.known_workspace(&of)?;
            let mut noted = Vec::new();
            for event in changes(&of, &change, &by) {
                noted.push(this.note(event).await?);
            }
            let changed = store.workspaces().change(&of, &change).await;
            if !changed.map_err(ControlError::Store)? {
                return Err(CatalogError::NoWorkspace(of).into());
            }
            for noted in noted {
                noted.done().await;
            }
            Ok(())
        })
        .await?;
        self.workspace(id)
    }

    /// Deletes a workspace. With `is_forced` a workspace with objects is deleted as well, and its
    /// objects with it. Active runs must be ended before.
    ///
    /// # Errors
    /// When the workspace is not empty, is `default`, or is unknown; when there is no store, or the
    /// store fails.
    pub async fn workspace_delete(
        &self,
        id: &WorkspaceId,
        is_forced: bool,
        by: &By,
    ) -> Result<(), ControlError> {
        self.known_workspace(id)?;
        if *id == WorkspaceId::default() {
            return Err(AccessError::DefaultStays.into());
        }
        let (id, by) = (id.clone(), by.clone());
        self.change_access(async move |this, store| {
            // Locks the catalog, so that it takes no new objects in the meantime.
            let _together = this.shared.cataloguing.take(&id).await;
            this.known_workspace(&id)?;
            let workspaces = store.workspaces();
            if !is_forced {
                let living = workspaces.contents(&id).await.map_err(ControlError::Store)?;
                if !living.is_empty() {
                    return Err(AccessError::Living { workspace: id, living }.into());
                }
            }
            let event = event(kind::WORKSPACE_DELETED, &id, by).with("is_forced", is_forced);
            let noted = this.note(event).await?;
            let _granting = this.shared.grants.changing().await;
            if workspaces.delete(&id, is_forced).await.map_err(ControlError::Store)? {
                this.shared.grants.forget_all(&id);
                noted.done().await;
                return Ok(());
            }
            // The store refused: another daemon may have changed the workspace meanwhile.
            let living = workspaces.contents(&id).await.map_err(ControlError::Store)?;
            match living.is_empty() {
                true => Err(CatalogError::NoWorkspace(id).into()),
                false => Err(AccessError::Living { workspace: id, living }.into()),
            }
        })
        .await
    }
}

/// One event for each field that differs.
fn changes(of: &WorkspaceId, change: &WorkspaceChange, by: &By) -> Vec<AuditEvent<'static>> {
    let event = |kind, field| {
        let event = event(kind, of, by.clone()).in_workspace(of);
        event.changing([field])
    };
    let renamed = change.name.as_ref().map(|_| event(kind::WORKSPACE_UPDATED, "name"));
    let switched = change.audits_contents.map(|is_on| {
        event(if is_on { kind::CONTENTS_ON } else { kind::CONTENTS_OFF }, "audits_contents")
    });
    let oauth = change.oauth_on_orchestrators.map(|now| {
        event(kind::OAUTH_UPDATED, "oauth_on_orchestrators").with("value", now.as_str())
    });
    let events = change
        .events_kept_days
        .map(|days| event(kind::EVENTS_KEPT_UPDATED, "events_kept_days").with("value", days));
    let asking = change.runtime_requests.map(|is_on| {
        event(kind::RUNTIME_REQUESTS_UPDATED, "runtime_requests").with("value", is_on)
    });
    let models = change.models.as_ref().map(|_| event(kind::WORKSPACE_UPDATED, "models"));
    [renamed, switched, oauth, events, asking, models].into_iter().flatten().collect()
}

/// The models that the request enables; `None` if it has no such field.
fn models(fields: &mut Fields) -> Option<EnabledModels> {
    let node = fields.take("models")?;
    match EnabledModels::read(&node, &Place::root("models")) {
        Ok(models) => Some(models),
        Err(faults) => {
            for (place, message, remedy) in faults {
                fields.fault(&place.to_string(), message, remedy);
            }
            None
        }
    }
}

/// The event of an action on a workspace. It belongs to the installation's audit, so it can be read
/// after the workspace is gone.
fn event(kind: &'static str, id: &WorkspaceId, by: By) -> AuditEvent<'static> {
    AuditEvent::new(kind, by).on("workspace", id.to_string())
}
