//! Changes of the catalog, each made as a whole or not at all.

mod attachments;
mod cutting;
mod import;

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::{CatalogError, FieldWarning};
use narthex_catalog::{ServerEntry, document};
use narthex_model::{AgentName, CatalogKind, WorkspaceId};
use narthex_store::CatalogRow;
use serde_json::Value;

pub use self::attachments::{
    CatalogAttached, CatalogAttachment, CatalogAttachments, CatalogConnection,
};
use self::cutting::{cut_through, is_cut};
pub use self::import::{CatalogImport, CatalogImportChange, CatalogImported, CatalogLeft};
use super::{
    CatalogWritten,
    checks::{Definition, Stored},
    object,
    personal::to_prepare,
    tag, unknown,
};
use crate::{By, Control, ControlError};

/// The object to change, the actor, and the precondition.
#[derive(Debug, Clone)]
pub struct CatalogChange {
    /// The workspace of the object.
    pub workspace: WorkspaceId,
    /// The kind of the object.
    pub kind: CatalogKind,
    /// The precondition on the stored object.
    pub precondition: Precondition,
    /// The actor.
    pub by: By,
    /// True if the servers of changed entries are not asked for their authorization server.
    pub is_offline: bool,
}

/// A condition on the stored object, without which it stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Changes the object in any case.
    None,
    /// The object must not exist.
    New,
    /// The object must exist.
    Exists,
    /// The object must have one of these version tags.
    Tags(Vec<String>),
}

/// The new text of an object: whole or as a patch.
#[derive(Clone)]
enum Text {
    Whole(Vec<u8>),
    Patch(Vec<u8>),
}

/// An object that passed all checks.
struct Checked {
    id: String,
    document: String,
    warnings: Vec<FieldWarning>,
}

/// A checked change of an object, with the stored row that it replaces.
struct Prepared {
    checked: Checked,
    before: Option<CatalogRow>,
}

/// A valid object.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogValid {
    /// The object's id or name.
    pub id: String,
    /// The object's normal form.
    pub definition: Value,
    /// Warnings about storing the object.
    pub warnings: Vec<FieldWarning>,
}

impl Control {
    /// Stores a new object, under the id in its text.
    ///
    /// # Errors
    /// When the id is taken, or the object is wrong by itself or together with the others; when
    /// there is no store or no such workspace, or the store or the vault fails.
    pub async fn catalog_create(
        &self,
        change: CatalogChange,
        text: Vec<u8>,
    ) -> Result<CatalogWritten, ControlError> {
        self.write(change, None, Text::Whole(text)).await
    }

    /// Stores an object, and replaces an object of the same id.
    ///
    /// # Errors
    /// As for [`Control::catalog_create`], and when the precondition does not hold.
    pub async fn catalog_put(
        &self,
        change: CatalogChange,
        id: &str,
        text: Vec<u8>,
    ) -> Result<CatalogWritten, ControlError> {
        self.write(change, Some(id.to_owned()), Text::Whole(text)).await
    }

    /// Changes some members of an object's normal form by RFC 7396: null removes a member.
    ///
    /// # Errors
    /// As for [`Control::catalog_put`], and when there is no such object.
    pub async fn catalog_merge(
        &self,
        change: CatalogChange,
        id: &str,
        patch: Vec<u8>,
    ) -> Result<CatalogWritten, ControlError> {
        self.write(change, Some(id.to_owned()), Text::Patch(patch)).await
    }

    /// Removes an object. With `is_forced` an object that others refer to is removed as well, and
    /// breaks them.
    ///
    /// # Errors
    /// When there is no such object, it is in use, or the precondition does not hold; when there is
    /// no store or no such workspace, or the store or the vault fails.
    pub async fn catalog_delete(
        &self,
        change: CatalogChange,
        id: &str,
        is_forced: bool,
    ) -> Result<(), ControlError> {
        let id = id.to_owned();
        let delete = async move |this: Self| {
            let CatalogChange { workspace, kind, precondition, by, is_offline: _ } = change;
            let _together = this.shared.cataloguing.take(&workspace).await;
            let stored = this.catalog_stored(&workspace).await?;
            let found = stored.find(kind, &id).cloned();
            let row = found.ok_or_else(|| unknown(kind, &id))?;
            precondition.hold(kind, &id, Some(&row))?;
            if !is_forced {
                let id = row.id.clone();
                let users = this.catalog_work(move || stored.read().users_named(kind, &id));
                let users = users.await?;
                if !users.is_empty() {
                    return Err(CatalogError::InUse { kind, id: row.id, users }.into());
                }
            }
            let store = this.catalog_store(&workspace).await?;
            let event = event(&workspace, kind, What::Removed, by).on(kind.to_string(), id.clone());
            let noted = this.note(event).await?;
            let _granting = this.shared.grants.changing().await;
            let is_done = store.catalog(kind).delete(&workspace, &row).await;
            if !is_done.map_err(ControlError::Store)? {
                return Err(CatalogError::Changed { kind, id }.into());
            }
            if let (CatalogKind::Agent, Ok(agent)) = (kind, AgentName::new(&id)) {
                this.shared.grants.forget_agent(&workspace, &agent);
            }
            noted.done().await;
            Ok(())
        };
        self.to_the_end(delete).await
    }

    /// Checks an object as if it were stored, in place of an object of the same id. Stores nothing.
    ///
    /// # Errors
    /// When the object is wrong by itself or together with the others; when there is no store or no
    /// such workspace, or the store or the vault fails.
    pub async fn catalog_validate(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        text: Vec<u8>,
    ) -> Result<CatalogValid, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let checked = self.catalog_work(move || check(&stored, kind, None, &text));
        let Checked { id, document, warnings } = checked.await??;
        let definition = serde_json::from_str(&document).expect("a normal form is JSON");
        Ok(CatalogValid { id, definition, warnings })
    }

    async fn write(
        &self,
        change: CatalogChange,
        id: Option<String>,
        text: Text,
    ) -> Result<CatalogWritten, ControlError> {
        let write = async move |this: Self| {
            let workspace = &change.workspace;
            let together = this.shared.cataloguing.take(workspace).await;
            let first = this.prepared(&change, id.clone(), text.clone()).await?;
            let Some(entry) = to_ask(&change, &first) else {
                return this.store_prepared(&change, first, None).await;
            };
            // No other change waits for the authorization server.
            drop(together);
            let warning = this.prepare_sign_in(workspace, &entry, "").await?;
            let _together = this.shared.cataloguing.take(workspace).await;
            let mut again = this.prepared(&change, id, text).await?;
            if again.checked.document != first.checked.document {
                let (kind, id) = (change.kind, again.checked.id);
                return Err(CatalogError::Changed { kind, id }.into());
            }
            again.checked.warnings.extend(warning);
            this.store_prepared(&change, again, None).await
        };
        self.to_the_end(write).await
    }

    /// Reads the new text of an object, and checks it against all stored objects.
    async fn prepared(
        &self,
        change: &CatalogChange,
        id: Option<String>,
        text: Text,
    ) -> Result<Prepared, ControlError> {
        let stored = self.catalog_stored(&change.workspace).await?;
        let (kind, precondition) = (change.kind, change.precondition.clone());
        let prepared = self.catalog_work(move || prepare(&stored, kind, &precondition, id, text));
        Ok(prepared.await??)
    }

    /// Stores a checked object, and records the given `event`, or else a change of the object.
    async fn store_prepared(
        &self,
        change: &CatalogChange,
        prepared: Prepared,
        event: Option<AuditEvent<'static>>,
    ) -> Result<CatalogWritten, ControlError> {
        let CatalogChange { workspace, kind, by, .. } = change;
        let Prepared { checked: Checked { id, document, warnings }, before } = prepared;
        let rows = self.catalog_store(workspace).await?.catalog(*kind);
        let rows = rows.cutting(is_cut(*kind, &document));
        let was_there = before.is_some();
        let event = event.unwrap_or_else(|| changed(change, before.as_ref(), &id, &document));
        let row = match before {
            // Writing the same text again does not make it newer.
            Some(before) if before.document == document => before,
            Some(before) => {
                let mut noted = self.note(event).await?;
                let written = rows.replace(workspace, &before, &document, &by.id).await;
                let changed = || CatalogError::Changed { kind: *kind, id: id.clone() };
                let row = written.map_err(ControlError::Store)?.ok_or_else(changed)?;
                noted.update(|event| event.with("revision", row.revision));
                noted.done().await;
                row
            }
            None => {
                let mut noted = self.note(event).await?;
                let created = rows.create(workspace, &id, &document, &by.id).await;
                let row = created.map_err(ControlError::Store)?;
                noted.update(|event| event.with("revision", row.revision));
                noted.done().await;
                row
            }
        };
        cut_through(self, workspace, *kind, &row.id, &row.document);
        let kind = *kind;
        let object = self.catalog_work(move || object(kind, &row)).await?;
        Ok(CatalogWritten { object, was_there, warnings })
    }
}

/// The server whose authorization server is asked before the change is stored (X-M13).
fn to_ask(change: &CatalogChange, prepared: &Prepared) -> Option<ServerEntry> {
    if change.kind != CatalogKind::Server || change.is_offline {
        return None;
    }
    to_prepare(&prepared.checked.document, prepared.before.as_ref())
}

/// Reads the new text of an object, and checks it against all stored objects.
fn prepare(
    stored: &Stored,
    kind: CatalogKind,
    precondition: &Precondition,
    id: Option<String>,
    text: Text,
) -> Result<Prepared, CatalogError> {
    let before = id.as_ref().and_then(|id| stored.find(kind, id));
    let hold = || match &id {
        Some(id) => precondition.hold(kind, id, before),
        None => Ok(()),
    };
    let text = match (text, before) {
        (Text::Whole(text), _) => {
            hold()?;
            text
        }
        (Text::Patch(patch), Some(before)) => {
            hold()?;
            merged(kind, before, &patch)?
        }
        (Text::Patch(_), None) => return Err(unknown(kind, id.as_deref().unwrap_or_default())),
    };
    let checked = check(stored, kind, id.as_deref(), &text)?;
    if stored.find(kind, &checked.id).is_none() {
        stored.room_for(kind, 1)?;
    }
    if id.is_none() && stored.find(kind, &checked.id).is_some() {
        return Err(CatalogError::Exists { kind, id: checked.id });
    }
    Ok(Prepared { checked, before: before.cloned() })
}

/// Reads an object, and checks it against all stored objects.
fn check(
    stored: &Stored,
    kind: CatalogKind,
    id: Option<&str>,
    text: &[u8],
) -> Result<Checked, CatalogError> {
    let parsed = Definition::parse(kind, text, id).map_err(CatalogError::Refused)?;
    let (definition, mut warnings) = parsed;
    let (id, document) = (definition.id().to_owned(), definition.document());
    warnings.extend(stored.read().take(definition).map_err(CatalogError::Refused)?);
    Ok(Checked { id, document, warnings })
}

/// The text of a stored object with a patch applied.
fn merged(kind: CatalogKind, before: &CatalogRow, patch: &[u8]) -> Result<Vec<u8>, CatalogError> {
    let patch = document(patch).map_err(CatalogError::of)?;
    let document: Value = serde_json::from_str(&before.document).map_err(|_no_json| {
        let errors = object(kind, before).errors;
        CatalogError::Unreadable { kind, id: before.id.clone(), errors }
    })?;
    Ok(narthex_model::json::merged(document, patch).to_string().into_bytes())
}

impl Precondition {
    fn hold(
        &self,
        kind: CatalogKind,
        id: &str,
        before: Option<&CatalogRow>,
    ) -> Result<(), CatalogError> {
        let holds = match (self, before) {
            (Self::None, _) | (Self::New, None) | (Self::Exists, Some(_)) => true,
            (Self::Tags(tags), Some(before)) => tags.contains(&tag(before)),
            (Self::New, Some(_)) | (Self::Exists | Self::Tags(_), None) => false,
        };
        if holds { Ok(()) } else { Err(CatalogError::Changed { kind, id: id.to_owned() }) }
    }
}

#[derive(Clone, Copy)]
enum What {
    Registered,
    Updated,
    Removed,
}

/// The names of the members that differ, without their values, which may be anything (X-M61).
fn changed_fields(before: Option<&str>, now: &str) -> Vec<String> {
    let members = |text: Option<&str>| match text.map(serde_json::from_str) {
        Some(Ok(Value::Object(members))) => members,
        _ => serde_json::Map::new(),
    };
    let (before, now) = (members(before), members(Some(now)));
    let mut names: Vec<_> = before.keys().chain(now.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| before.get(name) != now.get(name));
    names
}

/// The event of a change of an object to this document.
fn changed(
    change: &CatalogChange,
    before: Option<&CatalogRow>,
    id: &str,
    document: &str,
) -> AuditEvent<'static> {
    let CatalogChange { workspace, kind, by, .. } = change;
    let what = if before.is_some() { What::Updated } else { What::Registered };
    let fields = changed_fields(before.map(|row| row.document.as_str()), document);
    let event = event(workspace, *kind, what, by.clone());
    event.on(kind.to_string(), id.to_owned()).changing(fields)
}

/// The audit event of a change. Its kinds for servers are those of X-M60; capabilities and agents
/// have kinds of the same form.
fn event(workspace: &WorkspaceId, of: CatalogKind, what: What, by: By) -> AuditEvent<'static> {
    let name = match (of, what) {
        (CatalogKind::Server, What::Registered) => kind::SERVER_REGISTERED,
        (CatalogKind::Server, What::Updated) => kind::SERVER_UPDATED,
        (CatalogKind::Server, What::Removed) => kind::SERVER_REMOVED,
        (CatalogKind::Capability, What::Registered) => kind::CAPABILITY_REGISTERED,
        (CatalogKind::Capability, What::Updated) => kind::CAPABILITY_UPDATED,
        (CatalogKind::Capability, What::Removed) => kind::CAPABILITY_REMOVED,
        (CatalogKind::Agent, What::Registered) => kind::AGENT_REGISTERED,
        (CatalogKind::Agent, What::Updated) => kind::AGENT_UPDATED,
        (CatalogKind::Agent, What::Removed) => kind::AGENT_REMOVED,
    };
    AuditEvent::new(name, by).in_workspace(workspace)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn row(revision: u64) -> CatalogRow {
        CatalogRow {
            id: "docs".to_owned(),
            document: r#"{"a":1,"b":{"c":2,"d":3}}"#.to_owned(),
            revision,
            created_at: SystemTime::UNIX_EPOCH,
            updated_at: SystemTime::UNIX_EPOCH,
            updated_by: "ada".to_owned(),
        }
    }

    /// A precondition holds only for the object that the caller has read.
    #[test]
    fn a_precondition_holds_for_the_object_that_was_read() {
        let (one, two) = (row(1), row(2));
        let of_one = || Precondition::Tags(vec![tag(&one)]);
        for (condition, before, holds) in [
            (Precondition::None, None, true),
            (Precondition::None, Some(&one), true),
            (Precondition::New, None, true),
            (Precondition::New, Some(&one), false),
            (Precondition::Exists, None, false),
            (Precondition::Exists, Some(&one), true),
            (of_one(), None, false),
            (of_one(), Some(&one), true),
            (of_one(), Some(&two), false),
        ] {
            let held = condition.hold(CatalogKind::Server, "docs", before);
            let is_changed = matches!(held, Err(CatalogError::Changed { .. }));
            assert_eq!((held.is_ok(), is_changed), (holds, !holds), "{before:?}");
        }
    }

    /// A patch replaces and removes members at any depth, and leaves the others.
    #[test]
    fn a_patch_is_merged_into_the_stored_document() {
        let patch = br#"{"a":null,"b":{"c":4}}"#;
        let text = merged(CatalogKind::Server, &row(1), patch).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value, serde_json::json!({ "b": { "c": 4, "d": 3 } }));
    }

    /// X-M61: the audit has the names of members that differ, each once, and no value.
    #[test]
    fn x_m61_changed_members_are_named() {
        let before = r#"{"same":1,"other":1,"gone":1}"#;
        let now = r#"{"same":1,"other":2,"new":"canary"}"#;
        assert_eq!(changed_fields(Some(before), now), ["gone", "new", "other"]);
        assert_eq!(changed_fields(None, now), ["new", "other", "same"]);
        assert_eq!(changed_fields(Some(now), now), [""; 0]);
    }
}
