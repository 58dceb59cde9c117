//! Names that operators write and under which there is nothing. They are told of and not refused:
//! what is not there may come, and what a server has is known only once it was listed.

use std::collections::BTreeSet;

use narthex_control::{FieldWarning, Named, RuleName, WrittenRules};
use narthex_model::{
    Alias, BuiltInTools, CatalogKind, ErrorKind, GATE_FIELDS, ServerId, WorkspaceId,
    command::narthex, nearest, unmatched_in,
};
use narthex_registry::ServerRow;
use serde_json::Value;

use super::Asked;
use crate::problem::Problem;

/// How many names of the catalog a misspelt one is held against.
const NAMES_MAX: u32 = 500;
/// The kind of a tool among what a server has listed.
const TOOL: &str = "tool";

impl Asked<'_> {
    /// What is to be said of the agent, the server and the tool that a question about rules names.
    pub(super) async fn unknown_names(&self, text: &str) -> Result<Vec<String>, Problem> {
        let asked: Value = serde_json::from_str(text).map_err(|error| {
            Problem::new(ErrorKind::Invalid, format!("the question is no JSON: {error}"))
        })?;
        let workspace = self.workspace()?;
        let mut told: Vec<_> = further_name(&asked).into_iter().collect();
        if let Some(agent) = asked["agent"].as_str() {
            told.extend(self.unknown_agent(&workspace, agent).await?);
        }
        if let Some(server) = asked["server"].as_str() {
            told.extend(self.unknown_at(&workspace, server, asked["tool"].as_str()).await?);
        }
        Ok(told)
    }

    /// What is to be said of the names that rules use, each with the id of its rule.
    pub(super) async fn unknown_in_rules(
        &self,
        rules: &WrittenRules,
    ) -> Result<Vec<String>, Problem> {
        let workspace = self.workspace()?;
        let mut told = Vec::new();
        for RuleName { rule, of } in &rules.names {
            let said = match of {
                Named::Agent(agent) => self.unknown_agent(&workspace, agent).await?,
                Named::Server(server) => self.unknown_at(&workspace, server, None).await?,
                Named::Tool { server, tool } => {
                    self.unknown_at(&workspace, server, Some(tool)).await?
                }
                Named::Bare { of, name } => self.without_server(&workspace, of, name).await?,
                Named::Pattern(pattern) => self.uncovered(&workspace, of, pattern).await?,
            };
            told.extend(said.map(|said| format!("rule `{rule}`: {said}")));
        }
        Ok(told)
    }

    async fn unknown_agent(
        &self,
        workspace: &WorkspaceId,
        agent: &str,
    ) -> Result<Option<String>, Problem> {
        if self.is_in_catalog(workspace, CatalogKind::Agent, agent).await? {
            return Ok(None);
        }
        let known = self.ids(workspace, CatalogKind::Agent).await?;
        Ok(Some(format!("there is no agent `{agent}`{}", meant(agent, &known))))
    }

    /// A server that there is none of, or a tool that it has not listed.
    async fn unknown_at(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        tool: Option<&str>,
    ) -> Result<Option<String>, Problem> {
        let Some(listed) = self.listed_by(workspace, server).await? else {
            let known = self.server_names(workspace).await?;
            return Ok(Some(format!(
                "there is no server `{server}`, neither in the catalog nor live{}",
                meant(server, &known)
            )));
        };
        let tools: Vec<_> =
            listed.into_iter().filter(|(kind, _)| kind == TOOL).map(|(_, name)| name).collect();
        let is_unknown =
            |tool: &&str| !tools.is_empty() && !tools.iter().any(|known| known == tool);
        Ok(tool.filter(is_unknown).map(|tool| {
            format!("the server `{server}` has listed no tool `{tool}`{}", meant(tool, &tools))
        }))
    }

    /// A thing that a rule names without its server, so that it matches no call, and the servers
    /// that have listed one of this name.
    async fn without_server(
        &self,
        workspace: &WorkspaceId,
        of: &str,
        name: &str,
    ) -> Result<Option<String>, Problem> {
        let mut having = BTreeSet::new();
        for server in self.server_names(workspace).await? {
            let listed = self.listed_by(workspace, &server).await?.unwrap_or_default();
            if listed.iter().any(|(kind, known)| known == name && of.eq_ignore_ascii_case(kind)) {
                having.insert(format!("`{of}::\"{server}/{name}\"`"));
            }
        }
        let meant = match having.is_empty() {
            true => format!("write `{of}::\"SERVER/{name}\"`"),
            false => format!("did you mean {}?", Vec::from_iter(having).join(" or ")),
        };
        Ok(Some(format!("`{of}::\"{name}\"` has no server, so it matches no call; {meant}")))
    }

    /// A pattern of names that covers nothing that any server has listed. Nothing is said while
    /// some server has listed nothing, unless the pattern covers a name that no call has.
    async fn uncovered(
        &self,
        workspace: &WorkspaceId,
        of: &Named,
        pattern: &str,
    ) -> Result<Option<String>, Problem> {
        let mut names = BTreeSet::new();
        let mut are_all_known = true;
        for server in self.server_names(workspace).await? {
            let listed = self.listed_by(workspace, &server).await?.unwrap_or_default();
            are_all_known &= !listed.is_empty();
            names.extend(listed.into_iter().map(|(_, name)| name));
        }
        names.retain(|name| BuiltInTools::ruled_name(name).is_none());
        if names.iter().any(|name| of.covers(name)) {
            return Ok(None);
        }
        if let Some((further, ruled)) = of.further_name() {
            return Ok(Some(format!(
                "`{pattern}` covers no name that a call has: `{further}` is another name of \
                 `{ruled}`, and rules know `{ruled}` alone"
            )));
        }
        let names: Vec<_> = names.into_iter().collect();
        let is_one = !pattern.contains('*');
        let meant = if is_one { meant(pattern, &names) } else { String::new() };
        Ok(are_all_known.then(|| format!("no server has listed a name like `{pattern}`{meant}")))
    }

    /// Gates of a server of the catalog that gate nothing of what it has listed in any run; none
    /// where it has listed nothing yet.
    pub(super) async fn gates_unmatched(
        &self,
        id: &str,
        definition: &Value,
    ) -> Result<Vec<FieldWarning>, Problem> {
        let is_gated = GATE_FIELDS.iter().any(|field| definition[*field].is_object());
        let runs = self.door.options.runs.as_ref().filter(|_| is_gated);
        let (Some(runs), Ok(id)) = (runs, ServerId::new(id)) else {
            return Ok(Vec::new());
        };
        let seen = runs.definition_names(&self.workspace()?, &id).await?;
        let seen: Vec<_> = seen.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect();
        let all = narthex("servers definitions {}", &[&id]).in_workspace(self.workspace()?);
        let told = unmatched_in(definition, &seen).into_iter().map(|gate| {
            let message = format!("{gate}; `{all}` has what it listed");
            FieldWarning { field: format!("{}.{}", gate.field, gate.name), message }
        });
        Ok(told.collect())
    }

    /// What a server has listed, each with its kind, such as `tool`, as far as that is known.
    /// `None`: there is no such server.
    async fn listed_by(
        &self,
        workspace: &WorkspaceId,
        server: &str,
    ) -> Result<Option<Vec<(String, String)>>, Problem> {
        let gateway = &self.door.gateway;
        let snapshot = gateway.registry().snapshot();
        let is_home = self.control()?.home() == workspace;
        let live = snapshot.get(server).filter(|_| is_home);
        let mut listed = live.map(|row| names_of(row));
        if Alias::built_in().as_str() == server
            && let Some(built_in) = gateway.built_in_inventory()
        {
            listed = Some(names_of(&ServerRow::built_in(Alias::built_in(), built_in)));
        }
        if self.is_in_catalog(workspace, CatalogKind::Server, server).await?
            && let Ok(id) = ServerId::new(server)
        {
            let known = listed.get_or_insert_default();
            if let Some(runs) = &self.door.options.runs {
                known.extend(runs.definition_names(workspace, &id).await?);
            }
        }
        Ok(listed)
    }

    /// The ids and names of all servers that a rule of a workspace may name.
    async fn server_names(&self, workspace: &WorkspaceId) -> Result<Vec<String>, Problem> {
        let mut known = self.ids(workspace, CatalogKind::Server).await?;
        known.extend(self.live_names(workspace));
        known.push(Alias::built_in().to_string());
        Ok(known)
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

/// What a server has listed, each with its kind.
fn names_of(row: &ServerRow) -> Vec<(String, String)> {
    let inventory = &row.inventory;
    let kinds = [
        (TOOL, &inventory.tools),
        ("prompt", &inventory.prompts),
        ("resource", &inventory.resources),
        ("template", &inventory.templates),
    ];
    let named = kinds.into_iter().flat_map(|(kind, entries)| {
        entries.iter().map(move |entry| (kind.to_owned(), entry.key.to_string()))
    });
    named.collect()
}

/// What was probably meant, at the end of a sentence.
fn meant(name: &str, known: &[String]) -> String {
    let found = nearest(name, known.iter().map(String::as_str));
    found.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}
