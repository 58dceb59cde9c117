//! Everything of a workspace at once: told in one document, and stored from one.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use http_body::Body;
use narthex_control::{
    CatalogChange, CatalogError, CatalogImport, CatalogImportChange, CatalogImported, Control,
    ControlError, FieldError, FieldWarning, ManifestDocument, ManifestFault, Precondition,
    left_behind,
};
use narthex_model::{CatalogKind, Role, json::Node};
use serde_json::{Value, json};

use super::{Answered, Asked, ok};
use crate::problem::Problem;

/// As much as is read of one text.
pub(super) const IMPORT_MAX: usize = 4 * 1024 * 1024;

impl Asked<'_> {
    pub(super) async fn export(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(&self.control()?.catalog_export(&self.workspace()?).await?))
    }

    pub(super) async fn import<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let query = self.query(&["dry_run", "prune"])?;
        let (is_dry, is_pruned) = (query.flag("dry_run")?, query.flag("prune")?);
        let (workspace, by) = (self.workspace()?, self.by());
        let may_write_servers = self.principal.has_any(&workspace, &[Role::Admin]);
        if is_pruned && !may_write_servers {
            return Err(ControlError::from(CatalogError::ServersDenied).into());
        }
        let text = self.text(body, &[], IMPORT_MAX).await?;
        let apart = Apart::of(text, ManifestDocument::of_workspace);
        let (text, inside) = (apart.text.clone().into_bytes(), apart.inside());
        // Everything that is wrong is told at once.
        let is_check = is_dry || apart.has_faults();
        let import = CatalogImport { workspace, by, may_write_servers, is_dry: is_check, inside };
        let control = self.control()?;
        let imported = apart.told(control.catalog_import(import, text).await)?;
        let CatalogImported { changes, warnings } = imported;
        let mut warnings: Vec<_> = apart.warnings(warnings).collect();
        let mut shown: Vec<_> = changes.iter().map(change).collect();
        let is_given =
            |id: &str| changes.iter().any(|one| one.kind == CatalogKind::Server && one.id == id);
        let out = changes.iter().flat_map(taken_out).filter(|(_, id)| !is_given(id));
        for (agent, id) in out {
            let left = Left { agent, id: &id, is_dry, is_pruned };
            match self.left(control, left).await? {
                Some(Ok(deleted)) => shown.push(deleted),
                Some(Err(warning)) => warnings.push(warning),
                None => {}
            }
        }
        Ok(ok(&json!({ "dry_run": is_dry, "changes": shown, "warnings": warnings })))
    }

    /// What becomes of a server that an agent has no more: it is deleted, where that was asked for
    /// and nothing else uses it, or a person is told of it. `None` if there is none.
    async fn left(
        &self,
        control: &Control,
        Left { agent, id, is_dry, is_pruned }: Left<'_>,
    ) -> Result<Option<Result<Value, FieldWarning>>, Problem> {
        let (workspace, by, kind) = (self.workspace()?, self.by(), CatalogKind::Server);
        let is_unknown = |error: &ControlError| {
            matches!(error, ControlError::Catalog(CatalogError::Unknown { .. }))
        };
        let told = |message: String| {
            let field = format!("servers.{id}");
            Ok(Some(Err(FieldWarning { field, message })))
        };
        match control.catalog_get(&workspace, kind, id).await {
            Err(error) if is_unknown(&error) => return Ok(None),
            found => drop(found?),
        }
        if !is_pruned || is_dry {
            let then = match is_pruned {
                true => "it would be deleted, if nothing else uses it".to_owned(),
                false => format!(
                    "`narthex servers delete {id}` removes it, as `--prune` would have at once"
                ),
            };
            return told(format!("the agent `{agent}` had it inside, and has it no more; {then}"));
        }
        let change = CatalogChange { workspace, kind, precondition: Precondition::None, by };
        match control.catalog_delete(change, id, false).await {
            Ok(()) => {
                let kind = kind.to_string();
                Ok(Some(Ok(json!({ "kind": kind, "id": id, "change": "deleted",
                                   "before": null, "after": null }))))
            }
            Err(error) if is_unknown(&error) => Ok(None),
            Err(ControlError::Catalog(error @ CatalogError::InUse { .. })) => {
                told(format!("the agent `{agent}` has it no more, and it stays: {error}"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A server that an agent has no more.
#[derive(Clone, Copy)]
struct Left<'a> {
    agent: &'a str,
    id: &'a str,
    is_dry: bool,
    is_pruned: bool,
}

/// The servers that an import has taken out of an agent which had them as a manifest does, with its
/// name.
fn taken_out(change: &CatalogImportChange) -> Vec<(&str, String)> {
    let left = match (&change.kind, &change.before) {
        (CatalogKind::Agent, Some(before)) => left_behind(before, &change.after),
        _ => Vec::new(),
    };
    left.into_iter().map(|id| (change.id.as_str(), id)).collect()
}

/// What was sent, without servers inside of agents.
pub(super) struct Apart {
    pub(super) text: String,
    /// `None` if it was so before.
    manifest: Option<ManifestDocument>,
}

impl Apart {
    /// Takes manifests apart. What cannot be read is left to whoever reads it then.
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

    /// What a person should know of the manifests and of what they became.
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

    /// What came of it, as a refusal that names the places where things stood if anything is wrong.
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
                    // Where a part was left out, the whole may lack it.
                    let below = format!("{}.", fault.field);
                    let is_at = |one: &FieldError| one.field == fault.field;
                    let (own, others) = told.split_at(first);
                    own.iter().any(|one| is_at(one) || one.field.starts_with(&below))
                        // What is wrong with a server is wrong with the agent that has it, too.
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

/// A document that every reader reads as the same.
fn readable(text: &str) -> Option<Value> {
    let node = Node::parse(text.as_bytes()).ok()?;
    node.keys_given_twice().is_empty().then(|| node.to_value())
}

fn change(change: &CatalogImportChange) -> Value {
    let CatalogImportChange { kind, id, before, after, is_same } = change;
    let what = match (is_same, before) {
        (true, _) => "unchanged",
        (false, Some(_)) => "updated",
        (false, None) => "created",
    };
    json!({ "kind": kind.to_string(), "id": id, "change": what, "before": before, "after": after })
}
