//! Names that operators write and under which there is nothing. They are told of and not refused:
//! what is not there may come, and what a server has is known only once it was listed.

use std::collections::BTreeSet;

use narthex_control::CatalogObject;
use narthex_model::{
    Alias, BuiltInTools, CatalogKind, ErrorKind, GATE_FIELDS, ServerId, WorkspaceId,
    command::narthex, nearest, unmatched_in,
};
use serde_json::{Value, json};

use super::Asked;
use crate::problem::Problem;

/// How many names of the catalog a misspelt one is held against.
const NAMES_MAX: u32 = 500;

impl Asked<'_> {
    /// What is to be said of the agent, the server and the tool that a question about rules names.
    pub(super) async fn unknown_names(&self, text: &str) -> Result<Vec<String>, Problem> {
        let asked: Value = serde_json::from_str(text).map_err(|error| {
            Problem::new(ErrorKind::Invalid, format!("the question is no JSON: {error}"))
        })?;
        let workspace = self.workspace()?;
        let mut told: Vec<_> = further_name(&asked).into_iter().collect();
        if let Some(agent) = asked["agent"].as_str()
            && !self.is_in_catalog(&workspace, CatalogKind::Agent, agent).await?
        {
            let known = self.ids(&workspace, CatalogKind::Agent).await?;
            told.push(format!("there is no agent `{agent}`{}", meant(agent, &known)));
        }
        let Some(server) = asked["server"].as_str() else { return Ok(told) };
        let Some(tools) = self.tools_of(&workspace, server).await? else {
            let mut known = self.ids(&workspace, CatalogKind::Server).await?;
            known.extend(self.live_names(&workspace));
            told.push(format!(
                "there is no server `{server}`, neither in the catalog nor live{}",
                meant(server, &known)
            ));
            return Ok(told);
        };
        if let Some(tool) = asked["tool"].as_str()
            && !tools.is_empty()
            && !tools.iter().any(|known| known == tool)
        {
            told.push(format!(
                "the server `{server}` has listed no tool `{tool}`{}",
                meant(tool, &tools)
            ));
        }
        Ok(told)
    }

    /// Gates of a server of the catalog that gate nothing of what it has listed in any run; none
    /// where it has listed nothing yet.
    pub(super) async fn gates_unmatched(
        &self,
        object: &CatalogObject,
    ) -> Result<Vec<Value>, Problem> {
        let definition = object.definition.as_ref().unwrap_or(&Value::Null);
        let is_gated = GATE_FIELDS.iter().any(|field| definition[*field].is_object());
        let runs = self.door.options.runs.as_ref().filter(|_| is_gated);
        let (Some(runs), Ok(id)) = (runs, ServerId::new(&object.id)) else {
            return Ok(Vec::new());
        };
        let seen = runs.definition_names(&self.workspace()?, &id).await?;
        let seen: Vec<_> = seen.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect();
        let all = narthex("servers definitions {}", &[&id]).in_workspace(self.workspace()?);
        let told = unmatched_in(definition, &seen).into_iter().map(|gate| {
            let message = format!("{gate}; `{all}` has what it listed");
            json!({ "field": format!("{}.{}", gate.field, gate.name), "message": message })
        });
        Ok(told.collect())
    }

    /// Warns of a granted scope that nothing of the workspace requires and that nearly spells one
    /// that is required. A rule may require any scope, so no other scope is warned of.
    pub(super) async fn misspelt_scope(
        &self,
        workspace: &WorkspaceId,
        scope: &str,
    ) -> Result<Option<String>, Problem> {
        let control = self.control()?;
        let mut known = BTreeSet::new();
        let page = control.catalog_list(workspace, CatalogKind::Server, "", NAMES_MAX).await?;
        for definition in page.items.iter().filter_map(|object| object.definition.as_ref()) {
            let gates = GATE_FIELDS.iter().filter_map(|field| definition[*field].as_object());
            for scopes in gates.flat_map(|gates| gates.values()) {
                let all = scopes.as_array().map_or(std::slice::from_ref(scopes), Vec::as_slice);
                known.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
            }
        }
        if control.home() == workspace {
            let snapshot = self.door.gateway.registry().snapshot();
            let live = snapshot.servers.iter().filter_map(|row| row.definition.as_ref());
            known.extend(live.flat_map(|one| one.gates.scopes()).map(ToString::to_string));
        }
        let rules = control.rules(workspace).await?.row;
        let is_in_rules = rules.is_some_and(|row| row.document.contains(scope));
        if known.contains(scope) || is_in_rules {
            return Ok(None);
        }
        let meant = nearest(scope, known.iter().map(String::as_str));
        Ok(meant.map(|meant| format!("no server requires `{scope}`; did you mean `{meant}`?")))
    }

    /// The tools of a server, as far as they are known. `None`: there is no such server.
    async fn tools_of(
        &self,
        workspace: &WorkspaceId,
        server: &str,
    ) -> Result<Option<Vec<String>>, Problem> {
        let gateway = &self.door.gateway;
        let keys = |inventory: &narthex_registry::ServerRow| {
            inventory.inventory.tools.iter().map(|tool| tool.key.to_string()).collect::<Vec<_>>()
        };
        let snapshot = gateway.registry().snapshot();
        let is_home = self.control()?.home() == workspace;
        let live = snapshot.get(server).filter(|_| is_home);
        let mut tools = live.map(|row| keys(row));
        if Alias::built_in().as_str() == server
            && let Some(built_in) = gateway.built_in_inventory()
        {
            tools = Some(built_in.tools.iter().map(|tool| tool.key.to_string()).collect());
        }
        if self.is_in_catalog(workspace, CatalogKind::Server, server).await?
            && let Ok(id) = ServerId::new(server)
        {
            let known = tools.get_or_insert_default();
            if let Some(runs) = &self.door.options.runs {
                let seen = runs.definition_names(workspace, &id).await?;
                let of_kind = seen.into_iter().filter(|(kind, _)| kind == "tool");
                known.extend(of_kind.map(|(_, name)| name));
            }
        }
        Ok(tools)
    }

    async fn is_in_catalog(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        id: &str,
    ) -> Result<bool, Problem> {
        match self.control()?.catalog_get(workspace, kind, id).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn ids(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
    ) -> Result<Vec<String>, Problem> {
        let page = self.control()?.catalog_list(workspace, kind, "", NAMES_MAX).await?;
        Ok(page.items.into_iter().map(|object| object.id).collect())
    }

    /// The live servers, which the workspace of the daemon has.
    fn live_names(&self, workspace: &WorkspaceId) -> Vec<String> {
        let is_home = self.control().is_ok_and(|control| control.home() == workspace);
        let snapshot = self.door.gateway.registry().snapshot();
        let rows = snapshot.servers.iter().filter(|row| is_home && !row.is_overridden);
        rows.map(|row| row.name.clone()).collect()
    }
}

/// The question names a tool of the built-in server by a name that no rule can name.
fn further_name(asked: &Value) -> Option<String> {
    let alias = asked["alias"].as_str().or(asked["server"].as_str())?;
    let tool = asked["tool"].as_str()?;
    let ruled = BuiltInTools::ruled_name(tool).filter(|_| alias == Alias::built_in().as_str())?;
    Some(format!(
        "`{tool}` is another name of `{ruled}`: rules, grants, records and limits know `{ruled}` \
         alone, and this is the answer for it"
    ))
}

/// What was probably meant, at the end of a sentence.
fn meant(name: &str, known: &[String]) -> String {
    let found = nearest(name, known.iter().map(String::as_str));
    found.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}
