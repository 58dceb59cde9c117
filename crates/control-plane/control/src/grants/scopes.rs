//! Compares tool scopes of grants and of requests with those that servers and rules require, and
//! searches grants and requests.

use std::collections::{BTreeMap, BTreeSet};

use narthex_model::{
    CatalogKind, GATE_FIELDS, Gates, GrantOf, ToolScopeGrant, WorkspaceId, did_you_mean,
};
use narthex_store::{
    GrantPlace, GrantRequestRow, GrantRow, GrantSearch, RequestPlace, RequestSearch,
};
use serde_json::Value;

use super::search::{GrantsFound, RequestsFound, cut};
use crate::{Control, ControlError};

/// Number of catalog servers in one reading.
const PAGE: u32 = 200;

/// The gates of a catalog server that are listed by the name of a tool or a prompt.
const NAMED_GATES: [&str; 2] = ["tool_scopes", "prompt_scopes"];

/// The tool scopes that the servers and the rules of a workspace require, read at one moment. Only
/// warnings for humans use them, as rules are hidden from models.
#[derive(Debug, Default)]
pub struct RequiredScopes {
    of_rules: BTreeSet<String>,
    of_servers: BTreeSet<String>,
    /// Scopes by server, and by the name of a tool or a prompt.
    by_name: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl RequiredScopes {
    /// A warning if no server and no rule of the workspace requires a tool scope, and it resembles
    /// a required scope. Other scopes cause no warning: a later server or rule may require them.
    fn misspelt(&self, scope: &str) -> Option<String> {
        if self.of_rules.contains(scope) || self.of_servers.contains(scope) {
            return None;
        }
        let required = self.of_servers.iter().chain(&self.of_rules);
        let meant = did_you_mean(scope, required.map(String::as_str))?;
        Some(format!("no server and no rule requires `{scope}`; {meant}"))
    }

    /// Warnings about tool scopes in the rules that no server requires, and that nearly spell a
    /// server's scope: a grant of the server's scope would not satisfy the rule.
    #[must_use]
    pub fn misspelt_in_rules(&self) -> Vec<String> {
        let known = || self.of_servers.iter().map(String::as_str);
        let warning = |scope: &String| {
            let meant = did_you_mean(scope, known())?;
            Some(format!("`@approval` requires `{scope}`, which no server requires; {meant}"))
        };
        self.of_rules.difference(&self.of_servers).filter_map(warning).collect()
    }

    /// A warning about a grant that will allow no call: its tool requires other scopes, or nothing
    /// requires its scope, which nearly spells a required one. `None` for grants of other kinds.
    #[must_use]
    pub fn warning_of(&self, of: &GrantOf) -> Option<String> {
        let GrantOf::ToolScope(ToolScopeGrant { scope, server, tool, .. }) = of else {
            return None;
        };
        let scope = scope.as_str();
        if let (Some(server), Some(tool)) = (server, tool)
            && let Some(required) = self.by_name.get(server.as_str()).and_then(|all| all.get(tool))
            && !required.is_empty()
            && !required.contains(scope)
            && !self.of_rules.contains(scope)
        {
            let all = required.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>();
            return Some(format!(
                "`{tool}` requires {}, not `{scope}`: this grant would not allow any call of it",
                all.join(" and ")
            ));
        }
        self.misspelt(scope)
    }

    fn add_document(&mut self, server: &str, definition: &Value) {
        for field in GATE_FIELDS {
            let gates = definition[field].as_object().into_iter().flatten();
            for (name, gate) in gates {
                self.of_servers.extend(scopes_in(gate));
                if NAMED_GATES.contains(&field) {
                    self.named(server, name).extend(scopes_in(gate));
                }
            }
        }
    }

    fn add_live(&mut self, server: &str, gates: &Gates) {
        self.of_servers.extend(gates.scopes().map(ToString::to_string));
        for (name, scopes) in gates.by_name() {
            self.named(server, name).extend(scopes.iter().map(ToString::to_string));
        }
    }

    fn named(&mut self, server: &str, name: &str) -> &mut BTreeSet<String> {
        self.by_name.entry(server.to_owned()).or_default().entry(name.to_owned()).or_default()
    }
}

impl Control {
    /// Reads the tool scopes that a workspace requires: in its rules, in the servers of its
    /// catalog, and in the live servers of the daemon's own workspace.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn required_scopes(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<RequiredScopes, ControlError> {
        let of_rules = self.rules(workspace).await?.scopes;
        let mut required = RequiredScopes {
            of_rules: of_rules.iter().map(ToString::to_string).collect(),
            ..RequiredScopes::default()
        };
        let mut after = String::new();
        loop {
            let page = self.catalog_list(workspace, CatalogKind::Server, &after, PAGE).await?;
            for object in &page.items {
                let definition = object.definition.as_ref().unwrap_or(&Value::Null);
                required.add_document(&object.id, definition);
            }
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        if self.home() == workspace {
            let snapshot = self.registry().snapshot();
            for row in &snapshot.servers {
                if let Some(definition) = &row.definition {
                    required.add_live(&row.name, &definition.gates);
                }
            }
        }
        Ok(required)
    }

    /// The requests of a workspace that a person looks for.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grant_requests_search(
        &self,
        workspace: &WorkspaceId,
        search: &RequestSearch,
    ) -> Result<RequestsFound, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let more = RequestSearch { limit: search.limit.saturating_add(1), ..search.clone() };
        let rows = store.grant_requests().search(workspace, &more).await;
        let mut items = rows.map_err(ControlError::Store)?;
        let has_more = cut(&mut items, search.limit);
        let place =
            |row: &GrantRequestRow| RequestPlace { requested_at: row.requested_at, id: row.id };
        let next = items.last().filter(|_| has_more).map(place);
        Ok(RequestsFound { items, next })
    }

    /// The grants of a workspace that a person looks for.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grants_search(
        &self,
        workspace: &WorkspaceId,
        search: &GrantSearch,
    ) -> Result<GrantsFound, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let more = GrantSearch { limit: search.limit.saturating_add(1), ..search.clone() };
        let rows = store.grants().search(workspace, &more).await;
        let mut items = rows.map_err(ControlError::Store)?;
        let has_more = cut(&mut items, search.limit);
        let place = |row: &GrantRow| GrantPlace { granted_at: row.granted_at, id: row.grant.id };
        let next = items.last().filter(|_| has_more).map(place);
        Ok(GrantsFound { items, next })
    }
}

/// The scopes of one gate in a document: a text or a list of texts.
fn scopes_in(gate: &Value) -> impl Iterator<Item = String> {
    let all = gate.as_array().map_or(std::slice::from_ref(gate), Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(str::to_owned)
}
