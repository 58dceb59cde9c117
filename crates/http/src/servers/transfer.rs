//! Everything of a workspace at once: told in one document, and stored from one.

use std::fmt;

use bytes::Bytes;
use http_body::Body;
use narthex_control::{CatalogImport, CatalogImportChange, CatalogImported};
use narthex_model::Role;
use serde_json::{Value, json};

use super::{Answered, Asked, ok};

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
        let is_dry = self.query(&["dry_run"])?.flag("dry_run")?;
        let (workspace, by) = (self.workspace()?, self.by());
        let may_write_servers = self.principal.has_any(&workspace, &[Role::Admin]);
        let import = CatalogImport { workspace, by, may_write_servers, is_dry };
        let text = self.text(body, &[], IMPORT_MAX).await?.into_bytes();
        let CatalogImported { changes, warnings } =
            self.control()?.catalog_import(import, text).await?;
        let changes: Vec<_> = changes.iter().map(change).collect();
        Ok(ok(&json!({ "dry_run": is_dry, "changes": changes, "warnings": warnings })))
    }
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
