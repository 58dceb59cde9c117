//! Compares tool scopes of grants and of requests with those that servers require.

use std::collections::BTreeSet;

use narthex_model::{
    CatalogKind, ErrorKind, GATE_FIELDS, GrantOf, ToolScopeGrant, WorkspaceId, nearest,
};
use narthex_store::GrantRequestRow;
use serde_json::Value;

use crate::{Control, ControlError};

/// Maximum number of catalog servers that a scope is compared with.
const SERVERS_MAX: u32 = 500;

impl Control {
    /// A warning of a tool scope that nothing of the workspace requires and that nearly spells one
    /// that is required. A rule may require any scope, so no other scope is warned of.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or it fails.
    pub async fn scope_misspelt(
        &self,
        workspace: &WorkspaceId,
        scope: &str,
    ) -> Result<Option<String>, ControlError> {
        if self.is_scope_of_rules(workspace, scope).await? {
            return Ok(None);
        }
        let known = self.required_scopes(workspace).await?;
        if known.contains(scope) {
            return Ok(None);
        }
        let meant = nearest(scope, known.iter().map(String::as_str));
        Ok(meant.map(|meant| format!("no server requires `{scope}`; did you mean `{meant}`?")))
    }

    /// True if a rule of a workspace requires a tool scope. Only warnings for humans depend on it:
    /// rules are hidden from models.
    async fn is_scope_of_rules(
        &self,
        workspace: &WorkspaceId,
        scope: &str,
    ) -> Result<bool, ControlError> {
        let scopes = self.rules(workspace).await?.scopes;
        Ok(scopes.iter().any(|one| one.as_str() == scope))
    }

    /// Says of a request for a grant that its tool requires another scope than the one that is
    /// asked for, or that nothing requires that scope.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or it fails.
    pub async fn grant_request_warning(
        &self,
        row: &GrantRequestRow,
    ) -> Result<Option<String>, ControlError> {
        let GrantOf::ToolScope(ToolScopeGrant { scope, server, tool, .. }) = &row.of else {
            return Ok(None);
        };
        let scope = scope.as_str();
        if let (Some(server), Some(tool)) = (server, tool) {
            let required = self.required_by(&row.workspace, server.as_str(), tool).await?;
            if !required.is_empty()
                && !required.contains(scope)
                && !self.is_scope_of_rules(&row.workspace, scope).await?
            {
                let all = required.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>();
                return Ok(Some(format!(
                    "`{tool}` requires {}, and not `{scope}`: this grant would let no call of it \
                     through",
                    all.join(" and ")
                )));
            }
        }
        self.scope_misspelt(&row.workspace, scope).await
    }

    /// All scopes that the servers of a workspace require.
    async fn required_scopes(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<BTreeSet<String>, ControlError> {
        let mut known = BTreeSet::new();
        let page = self.catalog_list(workspace, CatalogKind::Server, "", SERVERS_MAX).await?;
        for definition in page.items.iter().filter_map(|object| object.definition.as_ref()) {
            let gates = GATE_FIELDS.iter().filter_map(|field| definition[*field].as_object());
            known.extend(gates.flat_map(|gates| gates.values()).flat_map(scopes_in));
        }
        if self.home() == workspace {
            let snapshot = self.registry().snapshot();
            let live = snapshot.servers.iter().filter_map(|row| row.definition.as_ref());
            known.extend(live.flat_map(|one| one.gates.scopes()).map(ToString::to_string));
        }
        Ok(known)
    }

    /// Scopes that a tool or a prompt requires, by the catalog or the live configuration.
    async fn required_by(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        name: &str,
    ) -> Result<BTreeSet<String>, ControlError> {
        let mut required = BTreeSet::new();
        match self.catalog_get(workspace, CatalogKind::Server, server).await {
            Ok(object) => {
                let definition = object.definition.unwrap_or_default();
                let named = ["tool_scopes", "prompt_scopes"].map(|field| &definition[field][name]);
                required.extend(named.into_iter().flat_map(scopes_in));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let snapshot = self.registry().snapshot();
        let live = snapshot.get(server).filter(|_| self.home() == workspace);
        if let Some(definition) = live.and_then(|row| row.definition.as_ref()) {
            let gates = [definition.gates.of_tool(name), definition.gates.of_prompt(name)];
            required.extend(gates.into_iter().flatten().map(ToString::to_string));
        }
        Ok(required)
    }
}

/// The scopes of one gate, as a document has them: a text or a list of texts.
fn scopes_in(gate: &Value) -> Vec<String> {
    let all = gate.as_array().map_or(std::slice::from_ref(gate), Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
