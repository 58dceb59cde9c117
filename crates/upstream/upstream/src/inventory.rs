//! The inventory of a server: its tools, prompts, resources and templates, as raw JSON.

mod fetch;
mod js_pattern;
mod output_schema;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use narthex_model::{Exposed, ListedNames, RowWarning, WarningKind, uri::spellings};
use narthex_wire::{DefinitionKind, Raw, Template, headers::HeaderParams};
use sha2::{Digest, Sha256};

pub use fetch::ListError;

/// Maximum number of characters of an entry's name that a warning shows.
const NAME_SHOWN: usize = 100;

/// A tool, prompt, resource or template.
#[derive(Debug, Clone)]
pub struct InventoryEntry {
    /// The name; the URI of resources, the URI template of templates.
    pub key: Arc<str>,
    /// The definition, byte for byte.
    pub raw: Bytes,
    /// The arguments that a tool wants mirrored in headers (modern clients, HTTP).
    pub header_params: Option<Arc<HeaderParams>>,
    merged: Merged,
    digest: OnceLock<[u8; 32]>,
    is_shaped: OnceLock<bool>,
}

/// The definition in lists that merge servers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Merged {
    AsItIs,
    Repaired(Bytes),
    /// Merged lists leave the entry out: strict clients would refuse the whole list because of it.
    LeftOut,
}

/// The members of a resource that a model reads. Other members, such as the size, change with the
/// resource's content.
const TOLD: [&str; 4] = ["name", "title", "description", "mimeType"];

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listed {
    /// Tools.
    Tool,
    /// Prompts.
    Prompt,
    /// Resources.
    Resource,
    /// Resource templates.
    Template,
}

impl InventoryEntry {
    /// Creates an entry with this name or URI.
    #[must_use]
    pub fn new(key: &str, raw: Bytes) -> Self {
        let (digest, is_shaped) = (OnceLock::new(), OnceLock::new());
        let merged = Merged::AsItIs;
        Self { key: key.into(), raw, header_params: None, merged, digest, is_shaped }
    }

    /// The definition for merged lists, in a form that all clients can read. `None` if merged lists
    /// leave the entry out.
    #[must_use]
    pub fn merged(&self) -> Option<&Bytes> {
        match &self.merged {
            Merged::AsItIs => Some(&self.raw),
            Merged::Repaired(raw) => Some(raw),
            Merged::LeftOut => None,
        }
    }

    /// True if a tool has an output schema. Clients check all structured content of a result
    /// against the schema, also in an error. Computed once.
    #[must_use]
    pub fn is_shaped(&self) -> bool {
        *self.is_shaped.get_or_init(|| Raw::new(&self.raw).get("outputSchema").is_some())
    }

    /// The SHA-256 of the definition, computed once. For a resource, only the part that a model
    /// reads counts. `list` is the entry's list.
    #[must_use]
    pub fn digest(&self, list: Listed) -> &[u8; 32] {
        self.digest.get_or_init(|| match list {
            Listed::Resource => {
                let mut hash = Sha256::new();
                for part in told(&self.raw) {
                    // The length is included, so that two different lists of parts never look
                    // equal.
                    let length = part.map_or(u64::MAX, |part| part.len() as u64);
                    hash.update(length.to_le_bytes());
                    hash.update(part.unwrap_or_default());
                }
                hash.finalize().into()
            }
            Listed::Tool | Listed::Prompt | Listed::Template => Sha256::digest(&self.raw).into(),
        })
    }

    /// True if a model reads the same in `raw`, a definition of the same list, as in this entry.
    #[must_use]
    pub fn says(&self, list: Listed, raw: &[u8]) -> bool {
        *self.raw == *raw || (list == Listed::Resource && told(&self.raw) == told(raw))
    }
}

fn told(raw: &[u8]) -> [Option<&[u8]>; 4] {
    TOLD.map(|member| Raw::new(raw).get(member).map(Raw::as_bytes))
}

/// All lists of one server, in its own order.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// Tools.
    pub tools: Vec<InventoryEntry>,
    /// Prompts.
    pub prompts: Vec<InventoryEntry>,
    /// Resources.
    pub resources: Vec<InventoryEntry>,
    /// Resource templates.
    pub templates: Vec<InventoryEntry>,
    tool_index: std::collections::HashMap<Arc<str>, usize>,
    /// The entries that the server lists, but that this viewer may not have (D10).
    withheld: Vec<(Listed, Arc<str>)>,
    /// Faults of the lists.
    warnings: Vec<RowWarning>,
    /// The reason why narthex could not list the tools.
    unlisted_tools: Option<Arc<str>>,
}

impl Inventory {
    /// An inventory of these entries, each with its list.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = (Listed, InventoryEntry)>) -> Self {
        let mut all = Self::default();
        for (list, entry) in entries {
            match list {
                Listed::Tool => all.tools.push(entry),
                Listed::Prompt => all.prompts.push(entry),
                Listed::Resource => all.resources.push(entry),
                Listed::Template => all.templates.push(entry),
            }
        }
        all.indexed()
    }

    /// The tool with this name; `None` if the inventory has no such tool.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&InventoryEntry> {
        self.tool_index.get(name).map(|index| &self.tools[*index])
    }

    /// True if all lists are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let lists = [&self.tools, &self.prompts, &self.resources, &self.templates];
        lists.iter().all(|list| list.is_empty())
    }

    /// True if the server has a prompt of this name.
    #[must_use]
    pub fn has_prompt(&self, name: &str) -> bool {
        self.prompts.iter().any(|entry| entry.key.as_ref() == name)
    }

    /// The names and URIs of all entries.
    #[must_use]
    pub fn names(&self) -> ListedNames<'_> {
        let names = |list: Listed| self.list(list).iter().map(|entry| &*entry.key).collect();
        ListedNames {
            tools: names(Listed::Tool),
            prompts: names(Listed::Prompt),
            resources: names(Listed::Resource),
            templates: names(Listed::Template),
        }
    }

    /// Faults in the lists of the server.
    #[must_use]
    pub fn warnings(&self) -> &[RowWarning] {
        &self.warnings
    }

    /// The reason why narthex could not list the server's tools, for operators. The inventory then
    /// has no tools, or the tools of an earlier list.
    #[must_use]
    pub fn unlisted_tools(&self) -> Option<&str> {
        self.unlisted_tools.as_deref()
    }

    /// The part of the inventory that the server's rules show to callers (D5).
    #[must_use]
    pub fn shown(self: &Arc<Self>, exposed: &Exposed) -> Arc<Self> {
        if exposed.is_everything() {
            return self.clone();
        }
        self.only(|list, entry| match list {
            Listed::Tool => exposed.tools.lets(&entry.key),
            Listed::Prompt => exposed.prompts.lets(&entry.key),
            Listed::Resource | Listed::Template => exposed.resources.lets(&entry.key),
        })
    }

    /// The entries for which `is_wanted` is true. Returns this inventory itself if it is true for
    /// all.
    #[must_use]
    pub fn only(
        self: &Arc<Self>,
        is_wanted: impl Fn(Listed, &InventoryEntry) -> bool,
    ) -> Arc<Self> {
        if self.entries().all(|(list, entry)| is_wanted(list, entry)) {
            return self.clone();
        }
        let wanted = self.entries().filter(|(list, entry)| is_wanted(*list, entry));
        let wanted = Self::new(wanted.map(|(list, entry)| (list, entry.clone())));
        let (withheld, warnings) = (self.withheld.clone(), self.warnings.clone());
        let unlisted_tools = self.unlisted_tools.clone();
        Arc::new(Self { withheld, warnings, unlisted_tools, ..wanted })
    }

    /// The inventory for a caller that gets only unchanged entries, for which `is_as_before` is
    /// true. Changed resources and templates cannot be read either (D5).
    #[must_use]
    pub fn frozen(
        self: &Arc<Self>,
        is_as_before: impl Fn(Listed, &InventoryEntry) -> bool,
    ) -> Arc<Self> {
        let seen = self.only(&is_as_before);
        if Arc::ptr_eq(&seen, self) {
            return seen;
        }
        let later = self.entries().filter(|(list, entry)| {
            matches!(list, Listed::Resource | Listed::Template) && !is_as_before(*list, entry)
        });
        let withheld = later.map(|(list, entry)| (list, entry.key.clone())).collect();
        Arc::new(Self { withheld, ..Arc::unwrap_or_clone(seen) })
    }

    /// True if the server has the URI, in any of its [spellings], among the resources or templates
    /// that this viewer may not have. A URI that a template of the viewer covers may be read.
    #[must_use]
    pub fn withholds(&self, uri: &str) -> bool {
        let is_there = |text: &str| self.resources.iter().any(|entry| *entry.key == *text);
        if self.withheld.is_empty() || is_there(uri) {
            return false;
        }
        let covers = |key: &str, text: &str| key == text || Template::parse(key).matches(text);
        let is_covered = |text: &str| self.templates.iter().any(|one| covers(&one.key, text));
        let is_later = |text: &str| {
            self.withheld.iter().any(|(list, key)| match list {
                Listed::Template => spellings(key).iter().any(|key| covers(key, text)),
                Listed::Tool | Listed::Prompt | Listed::Resource => {
                    spellings(key).iter().any(|key| key == text)
                }
            })
        };
        let is_withheld = |text: &str| !is_there(text) && !is_covered(text) && is_later(text);
        spellings(uri).iter().any(|text| is_withheld(text))
    }

    /// All entries, each with its list.
    pub fn entries(&self) -> impl Iterator<Item = (Listed, &InventoryEntry)> {
        let all = [Listed::Tool, Listed::Prompt, Listed::Resource, Listed::Template];
        all.into_iter().flat_map(|list| self.list(list).iter().map(move |entry| (list, entry)))
    }

    /// The entries of one list.
    #[must_use]
    pub fn list(&self, list: Listed) -> &[InventoryEntry] {
        match list {
            Listed::Tool => &self.tools,
            Listed::Prompt => &self.prompts,
            Listed::Resource => &self.resources,
            Listed::Template => &self.templates,
        }
    }

    fn indexed(mut self) -> Self {
        let index = |(index, entry): (usize, &InventoryEntry)| (entry.key.clone(), index);
        self.tool_index = self.tools.iter().enumerate().rev().map(index).collect();
        self
    }

    /// Reads the header annotations of tools, which modern clients follow whatever the era of the
    /// server (S13). If calls carry the headers to the server (`is_sent`), no call of a tool with
    /// an invalid annotation is possible, so the tool is dropped.
    fn read_header_params(&mut self, is_sent: bool) {
        let warnings = &mut self.warnings;
        self.tools.retain_mut(|tool| {
            let schema = Raw::new(&tool.raw).get("inputSchema");
            match schema.map(HeaderParams::parse).transpose() {
                Ok(params) => {
                    let params = params.filter(|params| !params.is_empty());
                    tool.header_params = params.map(Arc::new);
                    true
                }
                Err(_) if !is_sent => true,
                Err(faults) => {
                    let faults = faults.iter().map(ToString::to_string).collect::<Vec<_>>();
                    let (name, faults) = (shown_name(&tool.key), faults.join("; "));
                    warnings.push(RowWarning::new(
                        WarningKind::DefinitionLeftOut,
                        format!("tool `{name}` is left out: its header annotations: {faults}"),
                    ));
                    false
                }
            }
        });
    }
}

impl Listed {
    /// The kind of the definitions in this list.
    fn definition(self) -> DefinitionKind {
        match self {
            Self::Tool => DefinitionKind::Tool,
            Self::Prompt => DefinitionKind::Prompt,
            Self::Resource => DefinitionKind::Resource,
            Self::Template => DefinitionKind::Template,
        }
    }
}

/// A name from a server, shortened for people.
fn shown_name(name: &str) -> String {
    name.chars().take(NAME_SHOWN).collect()
}
