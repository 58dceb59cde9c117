//! The catalog as a registry of servers (registry API v0.1): the servers of each workspace that the
//! caller may list in the workspace itself, with as much of each as it shows there.

use narthex_catalog::{Published, PublishedInput, Reach, ServerEntry};
use narthex_control::CatalogObject;
use narthex_model::{CatalogKind, ErrorKind, Role, ServerId, WorkspaceId};

use super::{Answered, Asked, Query, catalog::with_tag, ok};
use crate::{
    problem::Problem,
    routes::{AUTHOR, RegistryTarget},
    shapes::{
        RegistryArgument, RegistryEntry, RegistryFacts, RegistryInput, RegistryMeta,
        RegistryPackage, RegistryPage, RegistryRemote, RegistryServer, RegistryServers,
        RegistryStdio,
    },
};

/// The newest published schema of a description.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// Number of servers that are read of a workspace at once.
const READ: u32 = 100;
/// Number of servers that one request examines. A page of a search may be short because of it.
const EXAMINED_MAX: usize = 2000;
/// The longest title and description of the API, in characters.
const TEXT_MAX: usize = 100;

/// A page of servers while it is filled.
struct Page {
    limit: usize,
    servers: Vec<RegistryEntry>,
    examined: usize,
    /// The name of the last server that was examined.
    last: Option<String>,
}

impl Page {
    fn is_full(&self) -> bool {
        self.servers.len() >= self.limit || self.examined >= EXAMINED_MAX
    }
}

/// The conditions of a list.
struct Wanted {
    search: String,
    version: String,
    updated_since: Option<std::time::SystemTime>,
}

impl Asked<'_> {
    pub(super) async fn of_public_registry(&self, of: RegistryTarget) -> Answered {
        match of {
            RegistryTarget::Servers => self.registry_servers().await,
            RegistryTarget::Versions => self.registry_versions().await,
            RegistryTarget::Version => self.registry_version().await,
        }
    }

    /// The one version of a server.
    async fn registry_versions(&self) -> Answered {
        self.query(&["include_deleted"])?.flag("include_deleted")?;
        let (entry, _) = self.registry_server().await?;
        let metadata = RegistryPage { next_cursor: None, count: 1 };
        Ok(ok(&RegistryServers { servers: vec![entry], metadata }))
    }

    /// A version by its number, or `latest`.
    async fn registry_version(&self) -> Answered {
        self.query(&["include_deleted"])?.flag("include_deleted")?;
        let (entry, object) = self.registry_server().await?;
        let version = self.segment(1);
        match version == "latest" || version == entry.server.version {
            true => Ok(with_tag(ok(&entry), &object.tag)),
            false => Err(self.no_registry_server()),
        }
    }

    /// The servers of all workspaces whose catalog the caller may list.
    async fn registry_servers(&self) -> Answered {
        const KNOWN: [&str; 6] =
            ["cursor", "limit", "search", "updated_since", "version", "include_deleted"];
        let query = self.query(&KNOWN)?;
        query.flag("include_deleted")?;
        let limit = usize::try_from(query.limit()?).unwrap_or(usize::MAX);
        let wanted = Wanted::of(&query)?;
        let mut page = Page { limit, servers: Vec::new(), examined: 0, last: None };
        let (mut next_cursor, cursor) = (None, parsed(query.text("cursor")));
        for workspace in self.registry_workspaces()? {
            let after = match &cursor {
                // Workspaces before that of the cursor are done.
                Some((place, _)) if workspace < *place => continue,
                Some((place, id)) if workspace == *place => id.as_str(),
                Some(_) | None => "",
            };
            if !self.fill(&mut page, &workspace, after, &wanted).await? {
                next_cursor = page.last;
                break;
            }
        }
        let metadata = RegistryPage { next_cursor, count: page.servers.len() };
        Ok(ok(&RegistryServers { servers: page.servers, metadata }))
    }

    /// Adds the servers of a workspace to a page; false if the page is full before their end.
    async fn fill(
        &self,
        page: &mut Page,
        workspace: &WorkspaceId,
        after: &str,
        wanted: &Wanted,
    ) -> Result<bool, Problem> {
        let (control, kind) = (self.control()?, CatalogKind::Server);
        let mut after = after.to_owned();
        loop {
            let read = control.catalog_list(workspace, kind, &after, READ).await?;
            for object in &read.items {
                if page.is_full() {
                    return Ok(false);
                }
                page.examined += 1;
                page.last = Some(name(workspace, &object.id));
                let entry = self.registry_entry(workspace, object);
                page.servers.extend(entry.filter(|entry| wanted.has(entry, object)));
            }
            match read.next {
                Some(next) => after = next,
                None => return Ok(true),
            }
        }
    }

    /// The workspaces whose catalog the caller may list, in the order of their ids.
    fn registry_workspaces(&self) -> Result<Vec<WorkspaceId>, Problem> {
        let all = self.control()?.workspaces()?.into_iter().map(|one| one.id);
        let mut seen: Vec<_> = all.filter(|id| self.principal.has_any(id, AUTHOR)).collect();
        seen.sort();
        Ok(seen)
    }

    /// The server of the path. A server that the caller may not see is absent for it (D5).
    async fn registry_server(&self) -> Result<(RegistryEntry, CatalogObject), Problem> {
        let found = parsed(&self.segment(0));
        let found = found.filter(|(workspace, _)| self.principal.has_any(workspace, AUTHOR));
        let Some((workspace, id)) = found else { return Err(self.no_registry_server()) };
        let object = self.control()?.catalog_get(&workspace, CatalogKind::Server, &id).await;
        let object = object.map_err(|error| match Problem::from(error) {
            problem if problem.kind() == ErrorKind::NotFound => self.no_registry_server(),
            problem => problem,
        })?;
        let entry = self.registry_entry(&workspace, &object);
        Ok((entry.ok_or_else(|| self.no_registry_server())?, object))
    }

    fn no_registry_server(&self) -> Problem {
        let text = format!("there is no server `{}` of this version", self.segment(0));
        let problem = Problem::new(ErrorKind::NotFound, text);
        // Clients of the registry API read this member.
        problem.with(|members| members.error = Some("Server not found".to_owned()))
    }

    /// The server as a registry describes it; `None` for a stored text that is no server. Only
    /// admins see how a server is reached (X-D12).
    fn registry_entry(
        &self,
        workspace: &WorkspaceId,
        object: &CatalogObject,
    ) -> Option<RegistryEntry> {
        let id = ServerId::new(&object.id).ok()?;
        let text = object.definition.as_ref()?.to_string();
        let entry = ServerEntry::parse(text.as_bytes(), Some(&id)).ok()?.value;
        let is_whole = self.principal.has_any(workspace, &[Role::Admin]);
        let published = is_whole.then(|| entry.published());
        let (packages, remotes) = published.map(reached).unwrap_or_default();
        let title = short(&entry.name);
        let description = entry.description.as_deref().map(short).filter(|text| !text.is_empty());
        // Clients are warned of a server that no run can have now.
        let is_disabled = is_whole && entry.settings.disabled;
        Some(RegistryEntry {
            server: RegistryServer {
                schema: SCHEMA.into(),
                name: name(workspace, &object.id).as_str().into(),
                description: description.as_ref().unwrap_or(&title).as_str().into(),
                title: title.as_str().into(),
                version: format!("{}.0.0", object.revision),
                packages,
                remotes,
            },
            meta: RegistryMeta {
                official: RegistryFacts {
                    status: if is_disabled { "deprecated" } else { "active" }.into(),
                    status_message: is_disabled.then(|| "the server is disabled".to_owned()),
                    published_at: object.created_at.into(),
                    updated_at: object.updated_at.into(),
                    is_latest: true,
                },
            },
        })
    }
}

impl Wanted {
    fn of(query: &Query) -> Result<Self, Problem> {
        let updated_since = query.time("updated_since")?;
        let (search, version) = (query.text("search").to_lowercase(), query.text("version"));
        Ok(Self { search, version: version.to_owned(), updated_since })
    }

    fn has(&self, entry: &RegistryEntry, object: &CatalogObject) -> bool {
        let is_of_version = match self.version.as_str() {
            "" | "latest" => true,
            version => version == entry.server.version,
        };
        let is_new = self.updated_since.is_none_or(|since| object.updated_at >= since);
        is_of_version && is_new && entry.server.name.has(&self.search)
    }
}

/// The name of a server in the registry. A workspace's id may have `_`, which a namespace may not,
/// and never has `.`.
fn name(workspace: &WorkspaceId, id: &str) -> String {
    format!("{}/{id}", workspace.as_str().replace('_', "."))
}

/// The workspace and the id in a name; `None` if no name is like it.
fn parsed(name: &str) -> Option<(WorkspaceId, String)> {
    let (namespace, id) = name.split_once('/')?;
    if namespace.contains('_') {
        return None;
    }
    Some((WorkspaceId::new(&namespace.replace('.', "_")).ok()?, id.to_owned()))
}

/// A text of one line within the limit of the API.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_MAX) {
        None => line,
        Some(_) => line.chars().take(TEXT_MAX - 1).chain(['…']).collect(),
    }
}

/// The parts of a description that reach the server.
fn reached(published: Published) -> (Vec<RegistryPackage>, Vec<RegistryRemote>) {
    let inputs = published.inputs.into_iter().map(input).collect();
    match published.reach {
        Some(Reach::Remote { url, is_sse }) => {
            let kind = if is_sse { "sse" } else { "streamable-http" }.into();
            (Vec::new(), vec![RegistryRemote { kind, url, headers: inputs }])
        }
        Some(Reach::Package { registry, identifier, version, args }) => {
            let argument = |value| RegistryArgument { kind: "positional", value };
            let package = RegistryPackage {
                registry_type: registry,
                identifier,
                version,
                transport: RegistryStdio { kind: "stdio" },
                package_arguments: args.into_iter().map(argument).collect(),
                environment_variables: inputs,
            };
            (vec![package], Vec::new())
        }
        None => (Vec::new(), Vec::new()),
    }
}

fn input(of: PublishedInput) -> RegistryInput {
    let PublishedInput { name, description, is_required, is_secret, format, default, choices } = of;
    RegistryInput { name, description, is_required, is_secret, format, default, choices }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_workspace_and_server() {
        let workspace = WorkspaceId::new("my_team-1").unwrap();
        let named = name(&workspace, "docs_x");
        assert_eq!(named, "my.team-1/docs_x");
        assert_eq!(parsed(&named), Some((workspace, "docs_x".to_owned())));
        for bad in ["my_team/docs", "docs", "", "../x", "A/b"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn long_texts_are_cut_within_the_limit_of_the_api() {
        assert_eq!(short(" a\n b "), "a b");
        let cut = short(&"é".repeat(101));
        assert!(cut.chars().count() == TEXT_MAX && cut.ends_with('…'));
        assert_eq!(short(&"é".repeat(100)).chars().count(), 100);
    }
}
