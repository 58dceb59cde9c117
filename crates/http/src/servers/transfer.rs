//! Everything of a workspace at once: told in one document, and stored from one.

use std::fmt;

use bytes::Bytes;
use http_body::Body;
use narthex_control::{
    CatalogError, CatalogImport, CatalogImportChange, CatalogImported, ControlError, FieldError,
    FieldWarning, ManifestFault, TakenApart, is_manifest, take_apart,
};
use narthex_model::{Role, json::Node};
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
        let text = self.text(body, &[], IMPORT_MAX).await?;
        let apart = Apart::of(text)?;
        let inside = apart.places.iter().map(|one| (one.id.clone(), one.agent.clone())).collect();
        let import = CatalogImport { workspace, by, may_write_servers, is_dry, inside };
        let imported =
            self.control()?.catalog_import(import, apart.text.clone().into_bytes()).await;
        let imported = imported.map_err(|error| apart.in_its_words(error))?;
        let CatalogImported { changes, warnings } = imported;
        let warnings = warnings.into_iter().map(|warning| {
            let field = apart.place(&warning.field).unwrap_or(warning.field);
            FieldWarning { field, ..warning }
        });
        let warnings: Vec<_> = apart.warnings.iter().cloned().chain(warnings).collect();
        let changes: Vec<_> = changes.iter().map(change).collect();
        Ok(ok(&json!({ "dry_run": is_dry, "changes": changes, "warnings": warnings })))
    }
}

/// A document whose agents have no servers inside any more.
pub(super) struct Apart {
    pub(super) text: String,
    pub(super) warnings: Vec<FieldWarning>,
    /// How many servers the document had itself.
    own: usize,
    /// The further ones.
    places: Vec<Inside>,
}

/// A server that stood inside an agent.
struct Inside {
    /// Where.
    place: String,
    /// What it is called in the catalog.
    id: String,
    /// In which agent.
    agent: String,
    /// What its configuration is called there.
    config: &'static str,
}

impl Inside {
    fn new(place: String, server: &Value, agent: &Value) -> Self {
        let config = if server["type"] == "stdio" { ".env" } else { ".headers" };
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        Self { place, id: text(&server["id"]), agent: text(&agent["name"]), config }
    }

    /// A place in it, as it was written.
    fn written(&self, rest: &str) -> String {
        match rest.strip_prefix(".default_config") {
            Some(rest) => format!("{}{}{rest}", self.place, self.config),
            None => format!("{}{rest}", self.place),
        }
    }
}

impl Apart {
    /// Takes manifests among the agents of a document apart. What is no document is left to whoever
    /// reads it.
    pub(super) fn of(text: String) -> Result<Self, ControlError> {
        let mut apart = Self { text, warnings: Vec::new(), own: 0, places: Vec::new() };
        let Some(mut document) = readable(&apart.text) else { return Ok(apart) };
        let agents = document.get("agents").and_then(Value::as_array);
        if !agents.is_some_and(|agents| agents.iter().any(is_manifest)) {
            return Ok(apart);
        }
        let mut faults = Vec::new();
        let mut further = Vec::new();
        for (index, agent) in document["agents"].as_array_mut().into_iter().flatten().enumerate() {
            let at = format!("agents[{index}]");
            let Some(TakenApart { agent: plain, servers, .. }) =
                apart.one(agent.take(), &at, &mut faults)
            else {
                continue;
            };
            *agent = plain;
            for (place, server) in servers {
                apart.places.push(Inside::new(format!("{at}.{place}"), &server, agent));
                further.push(server);
            }
        }
        if !faults.is_empty() {
            return Err(CatalogError::Refused(faults).into());
        }
        if let Some(document) = document.as_object_mut() {
            let servers = document.entry("servers").or_insert_with(|| json!([]));
            // What is no list is refused where it is read.
            if let Some(servers) = servers.as_array_mut() {
                apart.own = servers.len();
                servers.extend(further);
            }
        }
        apart.text = document.to_string();
        Ok(apart)
    }

    /// The same of one agent, without its servers.
    pub(super) fn of_agent(text: String) -> Result<Self, ControlError> {
        let mut apart = Self { text, warnings: Vec::new(), own: 0, places: Vec::new() };
        let agent = readable(&apart.text).filter(is_manifest);
        let Some(agent) = agent else { return Ok(apart) };
        let mut faults = Vec::new();
        match apart.one(agent, "", &mut faults) {
            Some(taken) => apart.text = taken.agent.to_string(),
            None => return Err(CatalogError::Refused(faults).into()),
        }
        Ok(apart)
    }

    fn one(&mut self, agent: Value, at: &str, faults: &mut Vec<FieldError>) -> Option<TakenApart> {
        let place = |field: &str| match at {
            "" => field.to_owned(),
            at => format!("{at}.{field}"),
        };
        match take_apart(agent) {
            Ok(taken) => {
                let told = taken.notices.iter().map(|notice| FieldWarning {
                    field: place(&notice.field),
                    message: notice.message.clone(),
                });
                self.warnings.extend(told);
                Some(taken)
            }
            Err(all) => {
                let fault = |one: &ManifestFault| {
                    FieldError::invalid(&place(&one.field), &one.message, &one.remedy)
                };
                faults.extend(all.iter().map(fault));
                None
            }
        }
    }

    /// A refusal that names the places where things stood.
    fn in_its_words(&self, error: ControlError) -> ControlError {
        match error {
            ControlError::Catalog(CatalogError::Refused(mut fields)) => {
                // What is wrong with a server is wrong with the agent that has it, too.
                let mut told = Vec::new();
                fields.retain_mut(|field| {
                    let Some(place) = self.place(&field.field) else { return true };
                    field.field = place;
                    let fault = (field.field.clone(), field.code);
                    let is_news = !told.contains(&fault);
                    told.push(fault);
                    is_news
                });
                CatalogError::Refused(fields).into()
            }
            error => error,
        }
    }

    fn place(&self, field: &str) -> Option<String> {
        if let Some(named) = field.strip_prefix("servers.") {
            let (id, rest) = named.split_at(named.find('.').unwrap_or(named.len()));
            let inside = self.places.iter().find(|inside| inside.id == id)?;
            return Some(inside.written(rest));
        }
        let (index, rest) = field.strip_prefix("servers[")?.split_once(']')?;
        let further = index.parse::<usize>().ok()?.checked_sub(self.own)?;
        Some(self.places.get(further)?.written(rest))
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
