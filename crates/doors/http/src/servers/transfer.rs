//! All objects of a workspace at once: exports them as one document, and imports them from one.

use std::collections::BTreeMap;

use narthex_control::{
    CatalogChange, CatalogError, CatalogImport, CatalogImportChange, CatalogImported, CatalogLeft,
    Control, ControlError, FieldError, FieldWarning, ManifestDocument, ManifestFault, Precondition,
};
use narthex_model::{CatalogKind, Role, command::narthex, json::Node, written::inside};
use serde_json::Value;

use super::{API_BODY_MAX, Answered, Asked, names::gates_unmatched, ok};
use crate::{
    body::RequestBody,
    problem::Problem,
    shapes::{As, ChangeKind, Export, ImportChange, Imported},
};

impl Asked<'_> {
    pub(super) async fn export(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(&As::<Export>::json(self.control()?.catalog_export(&self.workspace()?).await?)))
    }

    pub(super) async fn import(&self, body: RequestBody) -> Answered {
        let query = self.query(&["dry_run", "prune", "offline"])?;
        let is_offline = query.flag("offline")?;
        let (is_dry, is_pruned) = (query.flag("dry_run")?, query.flag("prune")?);
        let (workspace, by) = (self.workspace()?, self.by());
        let may_write_servers = self.principal.has_any(&workspace, &[Role::Admin]);
        if is_pruned && !may_write_servers {
            return Err(ControlError::from(CatalogError::ServersDenied).into());
        }
        let text = self.text(body, &[], API_BODY_MAX).await?;
        let apart = Apart::of(text, ManifestDocument::of_workspace);
        let (text, inside) = (apart.text.clone().into_bytes(), apart.inside());
        // If the manifests have faults, the import only checks, so that all faults are reported at
        // once.
        let is_check = is_dry || apart.has_faults();
        let (of, deleter) = (workspace.clone(), by.clone());
        let import = CatalogImport {
            workspace,
            by,
            may_write_servers,
            is_dry: is_check,
            inside,
            is_offline,
        };
        let control = self.control()?;
        let imported = apart.told(control.catalog_import(import, text).await)?;
        let CatalogImported { changes, mut warnings, left } = imported;
        warnings.extend(self.gates_of(&changes).await?);
        let mut warnings: Vec<_> = apart.warnings(warnings).collect();
        let mut shown: Vec<_> = changes.iter().map(change).collect();
        for left in left {
            // The import is done by now. A later failure becomes a warning, not a refusal.
            let done = match is_pruned && !is_dry && left.users.is_empty() {
                true => {
                    let precondition = Precondition::Tags(vec![left.tag.clone()]);
                    let (workspace, by) = (of.clone(), deleter.clone());
                    let kind = CatalogKind::Server;
                    let is_offline = true;
                    let change = CatalogChange { workspace, kind, precondition, by, is_offline };
                    pruned(control, change, &left).await
                }
                false => stays(&left, is_pruned).map(Err),
            };
            match done {
                Some(Ok(deleted)) => shown.push(deleted),
                Some(Err(warning)) => warnings.push(warning),
                None => {}
            }
        }
        let warnings = warnings.iter().map(As::of).collect();
        Ok(ok(&Imported { dry_run: is_dry, changes: shown, warnings }))
    }

    /// Warnings about gates of imported servers that match nothing, each with its place in the
    /// document.
    async fn gates_of(
        &self,
        changes: &[CatalogImportChange],
    ) -> Result<Vec<FieldWarning>, Problem> {
        let (mut told, workspace) = (Vec::new(), self.workspace()?);
        for server in changes.iter().filter(|one| one.kind == CatalogKind::Server) {
            let gates = gates_unmatched(self.door, &workspace, &server.id, &server.after).await?;
            let field = |gate: &FieldWarning| inside(&server.place, &gate.field);
            told.extend(gates.into_iter().map(|gate| FieldWarning { field: field(&gate), ..gate }));
        }
        Ok(told)
    }
}

/// Deletes a server that an agent no longer attaches, or returns a warning about why it could not
/// be deleted. `None` if another request has deleted it in the meantime.
async fn pruned(
    control: &Control,
    change: CatalogChange,
    left: &CatalogLeft,
) -> Option<Result<ImportChange, FieldWarning>> {
    let kind = change.kind.to_string();
    match control.catalog_delete(change, &left.id, false).await {
        Ok(()) => Some(Ok(ImportChange {
            kind,
            id: left.id.clone(),
            change: ChangeKind::Deleted,
            before: Value::Null,
            after: Value::Null,
        })),
        Err(ControlError::Catalog(CatalogError::Unknown { .. })) => None,
        // As in other refusals, the underlying causes go to the log only.
        Err(error) => {
            let (error, id) = (Problem::from(error), &left.id);
            let text = format!(
                "all other objects are stored, but this server could not be deleted: {}; `{}` \
                 tries again",
                error.detail(),
                narthex("servers delete {}", &[id])
            );
            Some(Err(told(left, &text)))
        }
    }
}

/// The warning about a server that is not deleted now. `None` if none is due, since others use the
/// server and the caller did not ask to delete it.
fn stays(left: &CatalogLeft, is_pruned: bool) -> Option<FieldWarning> {
    let CatalogLeft { id, users, .. } = left;
    let places: Vec<_> = users.iter().map(|user| format!("`{}`", user.field)).collect();
    match (is_pruned, users.is_empty()) {
        (true, true) => Some(told(left, "this server would be deleted, since nothing uses it")),
        (true, false) => Some(told(
            left,
            &format!("this server is not deleted, since it is in use: {}", places.join(", ")),
        )),
        (false, true) => Some(told(
            left,
            &format!(
                "delete it with `{}`, or with `--prune` next time",
                narthex("servers delete {}", &[id])
            ),
        )),
        (false, false) => None,
    }
}

fn told(CatalogLeft { agent, id, .. }: &CatalogLeft, what: &str) -> FieldWarning {
    let field = format!("servers.{id}");
    let message = format!(
        "an earlier manifest of the agent `{agent}` made this server, and the new one does not \
         attach it; {what}"
    );
    FieldWarning { field, message }
}

/// The sent document, with the servers inside of its agents moved out of them.
pub(super) struct Apart {
    pub(super) text: String,
    /// The parsed manifests. `None` if the document had no servers inside of agents.
    manifest: Option<ManifestDocument>,
}

impl Apart {
    /// Moves servers out of the manifests. A text that cannot be parsed stays as it is, and its
    /// next reader reports the fault.
    pub(super) fn of(text: String, take: fn(Value) -> Option<ManifestDocument>) -> Self {
        let manifest = readable(&text).and_then(take);
        let plain = manifest.as_ref().map(|manifest| manifest.plain.to_string());
        Self { text: plain.unwrap_or(text), manifest }
    }

    fn has_faults(&self) -> bool {
        self.manifest.as_ref().is_some_and(|manifest| !manifest.faults.is_empty())
    }

    fn inside(&self) -> BTreeMap<String, String> {
        self.manifest.as_ref().map(|manifest| manifest.inside.clone()).unwrap_or_default()
    }

    /// Warnings about the manifests themselves and about the objects that were made from them.
    fn warnings(&self, further: Vec<FieldWarning>) -> impl Iterator<Item = FieldWarning> {
        let notices = self.manifest.iter().flat_map(|manifest| &manifest.notices);
        let notices = notices.map(|ManifestFault { field, message, .. }| FieldWarning {
            field: field.clone(),
            message: message.clone(),
        });
        notices.chain(further.into_iter().map(|one| {
            let field = self.written(&one.field).unwrap_or(one.field);
            FieldWarning { field, ..one }
        }))
    }

    /// The result, or a refusal that names the places in the sent document if there is any fault.
    pub(super) fn told<T>(&self, done: Result<T, ControlError>) -> Result<T, ControlError> {
        let Some(manifest) = &self.manifest else { return done };
        let found = match done {
            Ok(done) if !self.has_faults() => return Ok(done),
            Ok(_) => Vec::new(),
            Err(ControlError::Catalog(CatalogError::Refused(found))) => found,
            Err(error) => return Err(error),
        };
        let own = |ManifestFault { field, message, remedy }: &ManifestFault| {
            FieldError::invalid(field, message, remedy)
        };
        let mut told: Vec<_> = manifest.faults.iter().map(own).collect();
        let first = told.len();
        for mut fault in found {
            let is_known = match self.written(&fault.field) {
                Some(written) => {
                    fault.field = written;
                    // If a part was left out because of a fault, the rest may report the part as
                    // missing.
                    let below = format!("{}.", fault.field);
                    let is_at = |one: &FieldError| one.field == fault.field;
                    let (own, others) = told.split_at(first);
                    own.iter().any(|one| is_at(one) || one.field.starts_with(&below))
                        // A fault of a server may be reported a second time for the agent that has
                        // it.
                        || others.iter().any(|one| is_at(one) && one.code == fault.code)
                }
                None => false,
            };
            if !is_known {
                told.push(fault);
            }
        }
        Err(CatalogError::Refused(told).into())
    }

    fn written(&self, place: &str) -> Option<String> {
        self.manifest.as_ref()?.written(place)
    }
}

/// Parses a document, unless it has a key twice, which readers would read differently.
fn readable(text: &str) -> Option<Value> {
    let node = Node::parse(text.as_bytes()).ok()?;
    node.keys_given_twice().is_empty().then(|| node.to_value())
}

fn change(change: &CatalogImportChange) -> ImportChange {
    let CatalogImportChange { kind, id, place: _, before, after, is_same } = change;
    ImportChange {
        kind: kind.to_string(),
        id: id.clone(),
        change: match (is_same, before) {
            (true, _) => ChangeKind::Unchanged,
            (false, Some(_)) => ChangeKind::Updated,
            (false, None) => ChangeKind::Created,
        },
        before: before.clone().unwrap_or_default(),
        after: after.clone(),
    }
}
