//! One kind of caller's view of an aggregated endpoint: names, routes, and lists as bytes.
//!
//! A view is built once per registry snapshot and visibility. All callers that see the same share
//! it.

mod given;
mod pages;
mod parts;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use narthex_audit::{SeenTool, ToolSet};
use narthex_model::{Alias, Profile, QualifiedName, QualifiedNames};
use narthex_upstream::{Inventory, InventoryEntry, ServerCapabilities};
use narthex_wire::{
    Era, ListKind, Raw, Template, json::encode_string, translate, with_member, with_object_schema,
};

pub(crate) use self::parts::{Part, exposed, parts, seen_rows};
pub use self::{given::VisibleTool, parts::shown};
use self::{
    given::{Renamed, rename, reworded},
    pages::Pages,
};
use crate::view::OwnTool;

/// The longest instructions of an aggregated endpoint, in bytes.
const INSTRUCTIONS_MAX: usize = 32 * 1024;

/// One caller's view of all servers.
#[derive(Debug)]
pub(crate) struct View {
    /// The number of the snapshot that the view was built from; other snapshots may give the same
    /// view.
    pub seq: u64,
    tools: QualifiedNames,
    prompts: QualifiedNames,
    resources: HashMap<Arc<str>, (Alias, Arc<str>)>,
    templates: Vec<(Template, Alias)>,
    own_tools: HashMap<Arc<str>, (Alias, OwnTool)>,
    resource_servers: Vec<Alias>,
    lists: HashMap<ListKind, Pages>,
    /// The tools as their servers define them, in the order of their list.
    defined: Vec<Defined>,
    tool_set: OnceLock<Arc<ToolSet>>,
    /// The profile by which the view was narrowed.
    profile: Option<Arc<Profile>>,
    /// The primitives that any of the servers has.
    pub capabilities: ServerCapabilities,
    /// The instructions of the servers for the model, each under its alias; a JSON string.
    pub instructions: Option<Bytes>,
}

/// A tool as its server defines it.
#[derive(Debug)]
struct Defined {
    name: Arc<str>,
    server: Alias,
    raw: Bytes,
}

/// The options for building a view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewOptions<'a> {
    /// The longest qualified name, in bytes.
    pub name_limit: usize,
    /// The server info that ends lists in `_meta` (modern): JSON.
    pub server_info: &'a [u8],
    /// True if the endpoint offers the gateway's tools for resources and prompts.
    pub has_own_tools: bool,
}

impl View {
    /// The view of these parts, in their order; `seq` is the number of their snapshot.
    #[must_use]
    pub(crate) fn build(seq: u64, parts: &[Part], options: ViewOptions<'_>) -> Self {
        let ViewOptions { name_limit, server_info, has_own_tools } = options;
        let names = |entries: fn(&Inventory) -> &Vec<InventoryEntry>| {
            let pairs = parts.iter().flat_map(|part| {
                let shown = entries(&part.inventory).iter().filter(|one| one.merged().is_some());
                shown.map(|entry| (&part.alias, entry.key.as_ref()))
            });
            QualifiedNames::build(pairs, name_limit)
        };
        let mut tools = names(|inventory| &inventory.tools);
        let renamed = rename(parts, &mut tools);
        let prompts = names(|inventory| &inventory.prompts);
        let own_tools = match has_own_tools {
            true => own_tools(parts, &tools, name_limit),
            false => Vec::new(),
        };
        let (lists, defined) = (HashMap::new(), Vec::new());
        let mut builder = Builder { server_info, own_tools: &own_tools, renamed, lists, defined };
        builder.renamed(ListKind::Tools, parts, &tools, |inventory| &inventory.tools);
        builder.renamed(ListKind::Prompts, parts, &prompts, |inventory| &inventory.prompts);
        let resources = builder.resources(parts);
        let templates = builder.templates(parts);
        let Builder { lists, defined, .. } = builder;
        let resource_servers = parts
            .iter()
            .filter(|part| part.capabilities.resources)
            .map(|part| part.alias.clone())
            .collect();
        let capabilities = merged(parts);
        let instructions = instructions(parts);
        let own_tools = own_tools.into_iter().map(|(alias, tool, name)| (name, (alias, tool)));
        let own_tools = own_tools.collect();
        Self {
            seq,
            tools,
            prompts,
            resources,
            templates,
            own_tools,
            resource_servers,
            lists,
            defined,
            tool_set: OnceLock::new(),
            profile: parts.iter().find_map(|part| part.profile.clone()),
            capabilities,
            instructions,
        }
    }

    /// The view with these tools in its list, under their own names.
    #[must_use]
    pub(crate) fn listing(mut self, tools: &[Bytes], server_info: &[u8]) -> Self {
        let pages = Pages::of(ListKind::Tools, tools, tools, server_info);
        self.lists.insert(ListKind::Tools, pages);
        self
    }

    /// The route of a tool call.
    #[must_use]
    pub(crate) fn tool(&self, qualified: &str) -> Option<(&Alias, &Arc<str>)> {
        self.tools.route(qualified)
    }

    /// True if the names of the view are those of this profile. A view without servers has none.
    #[must_use]
    pub(crate) fn is_by(&self, profile: Option<&Arc<Profile>>) -> bool {
        self.profile.as_ref().map(Arc::as_ptr) == profile.map(Arc::as_ptr)
    }

    /// The tools of servers that callers may call.
    pub(crate) fn tools(&self) -> impl Iterator<Item = VisibleTool> {
        self.tools.iter().map(|(server, tool, name)| VisibleTool {
            name: name.as_str().into(),
            server: server.clone(),
            tool: tool.clone(),
        })
    }

    /// The server and the purpose of one of the gateway's tools.
    #[must_use]
    pub(crate) fn own_tool(&self, qualified: &str) -> Option<(&Alias, OwnTool)> {
        self.own_tools.get(qualified).map(|(alias, tool)| (alias, *tool))
    }

    /// The route of a prompt request.
    #[must_use]
    pub(crate) fn prompt(&self, qualified: &str) -> Option<(&Alias, &Arc<str>)> {
        self.prompts.route(qualified)
    }

    /// True if a server has a prompt of this original name.
    #[must_use]
    pub(crate) fn has_prompt(&self, alias: &Alias, original: &str) -> bool {
        self.prompts.name(alias, original).is_some()
    }

    /// The route of a read, and the URI to read there: by the listed resources, then by template,
    /// then to the only server that has resources at all.
    #[must_use]
    pub(crate) fn resource(&self, uri: &str) -> Option<(Alias, Arc<str>)> {
        if let Some((alias, original)) = self.resources.get(uri) {
            return Some((alias.clone(), original.clone()));
        }
        let by_template = self.templates.iter().find(|(template, _)| template.matches(uri));
        let alias = match (by_template, &self.resource_servers[..]) {
            (Some((_, alias)), _) => alias,
            (None, [only]) => only,
            (None, _) => return None,
        };
        Some((alias.clone(), uri.into()))
    }

    /// The server that has a template, for completion.
    #[must_use]
    pub(crate) fn template(&self, text: &str) -> Option<(Alias, Arc<str>)> {
        let found = self.templates.iter().find(|(template, _)| template.text() == text);
        match found {
            Some((_, alias)) => Some((alias.clone(), text.into())),
            None => self.resource(text),
        }
    }

    /// A page of a list as a result object; `None` if this view has not made the cursor.
    #[must_use]
    pub(crate) fn page(&self, kind: ListKind, era: Era, cursor: Option<&str>) -> Option<&Bytes> {
        let index = match cursor {
            None => 0,
            Some(cursor) => cursor.strip_prefix("p")?.parse().ok()?,
        };
        self.lists.get(&kind)?.page(era, index)
    }

    /// The set of tools for the record; `share` returns an equal set if one exists.
    pub(crate) fn tool_set(&self, share: impl FnOnce(ToolSet) -> Arc<ToolSet>) -> Arc<ToolSet> {
        let seen = |Defined { name, server, raw }: &Defined| {
            SeenTool::new(name.clone(), server.clone(), raw)
        };
        let set = || share(ToolSet::new(self.defined.iter().map(seen).collect()));
        self.tool_set.get_or_init(set).clone()
    }

    /// True if a list differs from that of another view.
    #[must_use]
    pub(crate) fn differs(&self, other: &Self, kind: ListKind) -> bool {
        self.lists.get(&kind) != other.lists.get(&kind)
    }
}

/// All servers' instructions as one text. Leaves out instructions that would make the text too long
/// for a model.
fn instructions(parts: &[Part]) -> Option<Bytes> {
    let mut text = String::new();
    for part in parts {
        let own = Raw::new(&part.facts).get("instructions").and_then(Raw::as_str);
        let Some(own) = own.filter(|own| !own.trim().is_empty()) else { continue };
        if text.len() + own.len() > INSTRUCTIONS_MAX {
            tracing::debug!(server.name = %part.alias, "left out its instructions: too long");
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!("# {}\n\n{}", part.alias, own.trim()));
    }
    (!text.is_empty()).then(|| encode_string(&text).into())
}

fn merged(parts: &[Part]) -> ServerCapabilities {
    let any =
        |has: fn(&ServerCapabilities) -> bool| parts.iter().any(|part| has(&part.capabilities));
    ServerCapabilities {
        tools: any(|c| c.tools),
        prompts: any(|c| c.prompts),
        resources: any(|c| c.resources),
        subscribe: any(|c| c.subscribe),
        completions: any(|c| c.completions),
        logging: any(|c| c.logging),
        tasks: any(|c| c.tasks),
        list_changed: any(|c| c.list_changed),
    }
}

/// The gateway's tools, each with its server and its name. Rules for tools also apply to them.
fn own_tools(
    parts: &[Part],
    tools: &QualifiedNames,
    limit: usize,
) -> Vec<(Alias, OwnTool, Arc<str>)> {
    let mut own = Vec::new();
    for part in parts {
        let is_there = |tool: &OwnTool| {
            tool.is_for(&part.capabilities) && part.exposed().tools.lets(tool.name())
        };
        for tool in OwnTool::ALL.into_iter().filter(is_there) {
            if let Some(name) = tools.beside(&part.alias, tool.name(), limit) {
                own.push((part.alias.clone(), tool, name.as_str().into()));
            }
        }
    }
    own
}

struct Builder<'a> {
    server_info: &'a [u8],
    own_tools: &'a [(Alias, OwnTool, Arc<str>)],
    renamed: Renamed,
    lists: HashMap<ListKind, Pages>,
    defined: Vec<Defined>,
}

impl Builder<'_> {
    /// A list whose entries get their qualified names.
    fn renamed(
        &mut self,
        kind: ListKind,
        parts: &[Part],
        names: &QualifiedNames,
        entries: fn(&Inventory) -> &Vec<InventoryEntry>,
    ) {
        let mut seen = HashSet::new();
        let (mut legacy, mut modern) = (Vec::new(), Vec::new());
        for part in parts {
            for entry in entries(&part.inventory) {
                let name = names.name(&part.alias, &entry.key);
                // A second entry of one name is not reachable, so it is not shown.
                let Some(name) = name.filter(|name| seen.insert(name.as_str())) else { continue };
                let Some(raw) = entry.merged() else { continue };
                let mut raw = with_member(raw, "name", name.as_str());
                if kind == ListKind::Tools {
                    raw = reworded(part, &entry.key, with_object_schema(&raw));
                    self.defines(&part.alias, name.as_str(), entry.raw.clone());
                }
                let adapted = |era| adapted(kind, &raw, part.era, era);
                legacy.push(adapted(Era::Legacy));
                modern.push(adapted(Era::Modern));
            }
        }
        if kind == ListKind::Tools {
            for (alias, tool, name) in self.own_tools {
                let definition = tool.definition(name, alias);
                legacy.push(definition.clone());
                modern.push(definition.clone());
                self.defines(alias, name, definition);
            }
        }
        self.pages(kind, &legacy, &modern);
    }

    /// Notes a tool for the record, which has the qualified names of renamed tools.
    fn defines(&mut self, server: &Alias, name: &str, raw: Bytes) {
        let name = self.renamed.get(name).map_or(name, QualifiedName::as_str);
        self.defined.push(Defined { name: name.into(), server: server.clone(), raw });
    }

    /// Resources keep their URIs, as results embed them; only a URI that two servers list is
    /// qualified for the later one.
    fn resources(&mut self, parts: &[Part]) -> HashMap<Arc<str>, (Alias, Arc<str>)> {
        let mut routes: HashMap<Arc<str>, (Alias, Arc<str>)> = HashMap::new();
        let mut all = Vec::new();
        for part in parts {
            for entry in &part.inventory.resources {
                let Some(raw) = entry.merged() else { continue };
                let owner = routes.get(&entry.key).map(|(alias, _)| alias.clone());
                match owner {
                    None => all.push(raw.clone()),
                    Some(owner) if owner == part.alias => continue,
                    Some(_) => {
                        let uri = format!("narthex://{}/{}", part.alias, entry.key);
                        all.push(with_member(raw, "uri", &uri));
                        routes.insert(uri.into(), (part.alias.clone(), entry.key.clone()));
                        continue;
                    }
                }
                routes.insert(entry.key.clone(), (part.alias.clone(), entry.key.clone()));
            }
        }
        for part in parts {
            for tool in &part.inventory.tools {
                // MCP Apps: the page of a tool is readable without being listed.
                let ui = Raw::new(&tool.raw).get("_meta").and_then(|meta| meta.get("ui"));
                let uri = ui.and_then(|ui| ui.get("resourceUri")).and_then(Raw::as_str);
                if let Some(uri) = uri {
                    let uri: Arc<str> = uri.as_ref().into();
                    routes.entry(uri.clone()).or_insert_with(|| (part.alias.clone(), uri));
                }
            }
        }
        self.pages(ListKind::Resources, &all, &all);
        routes
    }

    fn templates(&mut self, parts: &[Part]) -> Vec<(Template, Alias)> {
        let entries = || {
            parts.iter().flat_map(|part| {
                part.inventory.templates.iter().map(move |entry| (entry, &part.alias))
            })
        };
        let merged = |(entry, _): (&InventoryEntry, _)| entry.merged().cloned();
        let all: Vec<Bytes> = entries().filter_map(merged).collect();
        self.pages(ListKind::Templates, &all, &all);
        entries().map(|(entry, alias)| (Template::parse(&entry.key), alias.clone())).collect()
    }

    fn pages(&mut self, kind: ListKind, legacy: &[Bytes], modern: &[Bytes]) {
        self.lists.insert(kind, Pages::of(kind, legacy, modern, self.server_info));
    }
}

/// An entry as a client of `to` may see it, from a server of `from`.
fn adapted(kind: ListKind, raw: &Bytes, from: Era, to: Era) -> Bytes {
    let changed = match (kind, from, to) {
        // Old servers list schemas of results that old clients refuse, too.
        (ListKind::Tools, _, Era::Legacy) => translate::tool_to_legacy(Raw::new(raw)),
        (ListKind::Tools, Era::Legacy, Era::Modern) => translate::tool_to_modern(Raw::new(raw)),
        _ => return raw.clone(),
    };
    Bytes::copy_from_slice(&changed)
}
