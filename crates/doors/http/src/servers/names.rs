//! Warns operators about names in their rules and grants that match nothing. Such names are not
//! refused: the object may be created later, and a server's tools are known only after it has
//! listed them.

use std::collections::{BTreeMap, BTreeSet};

use narthex_control::{FieldWarning, Named, RuleName, WrittenRules};
use narthex_model::{
    Alias, BuiltInTools, CatalogKind, ErrorKind, GATE_FIELDS, GrantOf, ServerId, ToolScopeGrant,
    WorkspaceId, command::narthex, meant_hint, unmatched_in,
};
use narthex_registry::ServerRow;
use narthex_wire::Template;
use serde_json::Value;

use super::Asked;
use crate::{door::Door, problem::Problem};

/// Maximum number of catalog names that are compared with a misspelt name.
const NAMES_MAX: u32 = 500;
/// The kind `tool` of a listed definition.
const TOOL: &str = "tool";
/// The kind of a listed resource template.
const TEMPLATE: &str = "template";

impl Asked<'_> {
    /// Warnings about unknown names of the agent, the server or the tool in a question about rules.
    pub(super) async fn unknown_names(&self, text: &str) -> Result<Vec<String>, Problem> {
        let asked: Value = serde_json::from_str(text).map_err(|error| {
            Problem::new(ErrorKind::Invalid, format!("the question is not JSON: {error}"))
        })?;
        let mut names = Names::new(self)?;
        let mut warnings: Vec<_> = further_name(&asked).into_iter().collect();
        if let Some(agent) = asked["agent"].as_str() {
            warnings.extend(names.unknown_agent(agent).await?);
        }
        if let Some(server) = asked["server"].as_str() {
            warnings.extend(names.unknown_at(server, asked["tool"].as_str()).await?);
        }
        Ok(warnings)
    }

    /// Warnings about a grant: about the server and tool that it names, and about its scope.
    pub(super) async fn warnings_of_grant(&self, of: &GrantOf) -> Result<Vec<String>, Problem> {
        let GrantOf::ToolScope(ToolScopeGrant { server, tool, .. }) = of else {
            return Ok(Vec::new());
        };
        let mut names = Names::new(self)?;
        let unknown = match (server, tool) {
            (Some(server), None) => names.unknown_at(server.as_str(), None).await?,
            (Some(server), Some(thing)) => names.unlisted_at(server.as_str(), thing).await?,
            (None, Some(thing)) => names.unlisted(thing).await?,
            (None, None) => None,
        };
        let required = self.control()?.required_scopes(&self.workspace()?).await?;
        Ok(unknown.into_iter().chain(required.warning_of(of)).collect())
    }

    /// Warnings about unknown names in rules, each with the id of its rule, and about misspelt tool
    /// scopes that rules require.
    pub(super) async fn unknown_in_rules(
        &self,
        rules: &WrittenRules,
    ) -> Result<Vec<String>, Problem> {
        let mut names = Names::new(self)?;
        let mut warnings = Vec::new();
        for RuleName { rule, of } in &rules.names {
            let warning = match of {
                Named::Agent(agent) => names.unknown_agent(agent).await?,
                Named::Server(server) => names.unknown_at(server, None).await?,
                Named::Tool { server, tool } => names.unknown_at(server, Some(tool)).await?,
                Named::Bare { of, name } => names.without_server(of, name).await?,
                Named::Pattern(pattern) => names.uncovered(of, pattern).await?,
            };
            warnings.extend(warning.map(|warning| format!("rule `{rule}`: {warning}")));
        }
        if !rules.scopes.is_empty() {
            let required = self.control()?.required_scopes(&self.workspace()?).await?;
            warnings.extend(required.misspelt_in_rules());
        }
        Ok(warnings)
    }
}

/// Warnings about gates of a catalog server that match none of the definitions it has listed in any
/// run. There are none if the server has listed nothing yet.
pub(crate) async fn gates_unmatched(
    door: &Door,
    workspace: &WorkspaceId,
    id: &str,
    definition: &Value,
) -> Result<Vec<FieldWarning>, Problem> {
    let is_gated = GATE_FIELDS.iter().any(|field| definition[*field].is_object());
    let runs = door.options.runs.as_ref().filter(|_| is_gated);
    let (Some(runs), Ok(id)) = (runs, ServerId::new(id)) else {
        return Ok(Vec::new());
    };
    let seen = runs.reviews().names(workspace, &id).await?;
    let seen: Vec<_> = seen.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect();
    let all = narthex("servers definitions {}", &[&id]).in_workspace(workspace);
    let told = unmatched_in(definition, &seen).into_iter().map(|gate| {
        let message = format!("{gate}; `{all}` has what it listed");
        FieldWarning { field: format!("{}.{}", gate.field, gate.name), message }
    });
    Ok(told.collect())
}

/// A definition that a server has listed: its kind, such as `tool`, and its name.
type Listed = (String, String);

/// The agents, servers and definitions of a workspace. Each list is read from the store when it is
/// first needed, and at most once.
struct Names<'a> {
    asked: &'a Asked<'a>,
    workspace: WorkspaceId,
    agents: Option<Vec<String>>,
    servers: Option<Vec<String>>,
    /// The listed definitions by server name. `None`: there is no such server.
    listed: BTreeMap<String, Option<Vec<Listed>>>,
}

impl<'a> Names<'a> {
    fn new(asked: &'a Asked<'a>) -> Result<Self, Problem> {
        let workspace = asked.workspace()?;
        Ok(Self { asked, workspace, agents: None, servers: None, listed: BTreeMap::new() })
    }

    async fn unknown_agent(&mut self, agent: &str) -> Result<Option<String>, Problem> {
        if self.agents().await?.iter().any(|known| known == agent)
            || self.is_in_catalog(CatalogKind::Agent, agent).await?
        {
            return Ok(None);
        }
        let meant = meant_hint(agent, texts(self.agents().await?));
        Ok(Some(format!("there is no agent `{agent}`{meant}")))
    }

    /// A warning if the server does not exist, or has not listed the tool.
    async fn unknown_at(
        &mut self,
        server: &str,
        tool: Option<&str>,
    ) -> Result<Option<String>, Problem> {
        let Some(listed) = self.listed_by(server).await? else {
            let meant = meant_hint(server, texts(self.servers().await?));
            return Ok(Some(format!(
                "there is no server `{server}`, neither in the catalog nor live{meant}"
            )));
        };
        let tools: Vec<_> =
            listed.iter().filter(|(kind, _)| kind == TOOL).map(|(_, name)| name.as_str()).collect();
        let is_unknown = |tool: &&str| !tools.is_empty() && !tools.contains(tool);
        Ok(tool.filter(is_unknown).map(|tool| {
            let meant = meant_hint(tool, tools.iter().copied());
            format!("the server `{server}` has listed no tool `{tool}`{meant}")
        }))
    }

    /// A warning if the server does not exist, or has listed no tool, prompt or resource of this
    /// name.
    async fn unlisted_at(&mut self, server: &str, thing: &str) -> Result<Option<String>, Problem> {
        if let Some(warning) = self.unknown_at(server, None).await? {
            return Ok(Some(warning));
        }
        let listed = self.listed_by(server).await?.unwrap_or_default();
        if listed.is_empty() || has(listed, thing) {
            return Ok(None);
        }
        let meant = meant_hint(thing, listed.iter().map(|(_, name)| name.as_str()));
        let told = format!("the server `{server}` has listed no tool, prompt or resource");
        Ok(Some(format!("{told} `{thing}`{meant}")))
    }

    /// A warning if no server has listed a tool, prompt or resource of this name. There is no
    /// warning if some server has listed nothing yet.
    async fn unlisted(&mut self, thing: &str) -> Result<Option<String>, Problem> {
        let mut names = BTreeSet::new();
        for server in self.servers().await?.to_vec() {
            let Some(listed) = self.listed_by(&server).await? else { continue };
            if listed.is_empty() || has(listed, thing) {
                return Ok(None);
            }
            names.extend(listed.iter().map(|(_, name)| name.clone()));
        }
        let meant = meant_hint(thing, names.iter().map(String::as_str));
        Ok(Some(format!("no server has listed a tool, prompt or resource `{thing}`{meant}")))
    }

    /// A warning about a name in a rule that lacks its server, so that it matches no call. The
    /// warning suggests the servers that have listed the name.
    async fn without_server(&mut self, of: &str, name: &str) -> Result<Option<String>, Problem> {
        let mut having = BTreeSet::new();
        for server in self.servers().await?.to_vec() {
            let listed = self.listed_by(&server).await?.unwrap_or_default();
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

    /// A warning if a pattern matches no listed name. There is no warning while some server has
    /// listed nothing, unless the pattern matches a name that no call has.
    async fn uncovered(&mut self, of: &Named, pattern: &str) -> Result<Option<String>, Problem> {
        let mut names = BTreeSet::new();
        let mut are_all_known = true;
        for server in self.servers().await?.to_vec() {
            let listed = self.listed_by(&server).await?.unwrap_or_default();
            are_all_known &= !listed.is_empty();
            names.extend(listed.iter().map(|(_, name)| name.clone()));
        }
        names.retain(|name| BuiltInTools::ruled_name(name).is_none());
        if names.iter().any(|name| of.covers(name)) {
            return Ok(None);
        }
        if let Some((further, ruled)) = of.further_name() {
            return Ok(Some(format!(
                "`{pattern}` matches no call: `{further}` is another name of `{ruled}`, and rules \
                 use only `{ruled}`"
            )));
        }
        let is_one = !pattern.contains('*');
        let meant = match is_one {
            true => meant_hint(pattern, names.iter().map(String::as_str)),
            false => String::new(),
        };
        Ok(are_all_known.then(|| format!("no server has listed a name like `{pattern}`{meant}")))
    }

    async fn agents(&mut self) -> Result<&[String], Problem> {
        if self.agents.is_none() {
            self.agents = Some(self.ids(CatalogKind::Agent).await?);
        }
        Ok(self.agents.as_deref().unwrap_or_default())
    }

    /// The ids and names of all servers that a rule of the workspace may name.
    async fn servers(&mut self) -> Result<&[String], Problem> {
        if self.servers.is_none() {
            let mut known = self.ids(CatalogKind::Server).await?;
            known.extend(self.live_names());
            known.push(Alias::built_in().to_string());
            self.servers = Some(known);
        }
        Ok(self.servers.as_deref().unwrap_or_default())
    }

    /// The definitions that a server has listed, as far as they are known. `None`: there is no such
    /// server.
    async fn listed_by(&mut self, server: &str) -> Result<Option<&[Listed]>, Problem> {
        if !self.listed.contains_key(server) {
            let listed = self.read_listed(server).await?;
            self.listed.insert(server.to_owned(), listed);
        }
        Ok(self.listed.get(server).and_then(Option::as_deref))
    }

    async fn read_listed(&self, server: &str) -> Result<Option<Vec<Listed>>, Problem> {
        let gateway = &self.asked.door.gateway;
        let snapshot = gateway.registry().snapshot();
        let live = snapshot.get(server).filter(|_| self.is_home());
        let mut listed = live.map(|row| names_of(row));
        if Alias::built_in().as_str() == server
            && let Some(built_in) = gateway.built_in_inventory()
        {
            listed = Some(names_of(&ServerRow::built_in(Alias::built_in(), built_in)));
        }
        if self.is_in_catalog(CatalogKind::Server, server).await?
            && let Ok(id) = ServerId::new(server)
        {
            let known = listed.get_or_insert_default();
            if let Some(runs) = &self.asked.door.options.runs {
                known.extend(runs.reviews().names(&self.workspace, &id).await?);
            }
        }
        Ok(listed)
    }

    async fn is_in_catalog(&self, kind: CatalogKind, id: &str) -> Result<bool, Problem> {
        match self.asked.control()?.catalog_get(&self.workspace, kind, id).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn ids(&self, kind: CatalogKind) -> Result<Vec<String>, Problem> {
        let page = self.asked.control()?.catalog_list(&self.workspace, kind, "", NAMES_MAX).await?;
        Ok(page.items.into_iter().map(|object| object.id).collect())
    }

    /// The names of the live servers, which only the daemon's own workspace has.
    fn live_names(&self) -> Vec<String> {
        let snapshot = self.asked.door.gateway.registry().snapshot();
        let rows = snapshot.servers.iter().filter(|row| self.is_home() && !row.is_overridden);
        rows.map(|row| row.name.clone()).collect()
    }

    fn is_home(&self) -> bool {
        self.asked.control().is_ok_and(|control| *control.home() == self.workspace)
    }
}

/// A warning if the question names a built-in tool by a second name, which no rule can use.
fn further_name(asked: &Value) -> Option<String> {
    let alias = asked["alias"].as_str().or(asked["server"].as_str())?;
    let tool = asked["tool"].as_str()?;
    let ruled = BuiltInTools::ruled_name(tool).filter(|_| alias == Alias::built_in().as_str())?;
    Some(format!(
        "`{tool}` is another name of `{ruled}`: rules, grants, records and limits use only \
         `{ruled}`, and this is its answer"
    ))
}

/// True if a server has listed this name, or a resource template that matches the address.
fn has(listed: &[Listed], thing: &str) -> bool {
    let fits = |(kind, name): &Listed| {
        name == thing || (kind == TEMPLATE && Template::parse(name).matches(thing))
    };
    listed.iter().any(fits)
}

/// The names of the definitions that a server has listed, each with its kind.
fn names_of(row: &ServerRow) -> Vec<(String, String)> {
    let inventory = &row.inventory;
    let kinds = [
        (TOOL, &inventory.tools),
        ("prompt", &inventory.prompts),
        ("resource", &inventory.resources),
        (TEMPLATE, &inventory.templates),
    ];
    let named = kinds.into_iter().flat_map(|(kind, entries)| {
        entries.iter().map(move |entry| (kind.to_owned(), entry.key.to_string()))
    });
    named.collect()
}

fn texts(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}
