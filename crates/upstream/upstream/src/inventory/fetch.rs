//! Reads a server's lists: a failing list does not affect the others.

use std::{collections::HashMap, sync::Arc, time::Duration};

use narthex_model::{RowWarning, WarningKind};
use narthex_wire::{ListKind, Message, Raw, Readable, method, readable, rpc};
use tokio::time::timeout;

use super::{Inventory, InventoryEntry, Listed, Merged, output_schema::SchemaChecker, shown_name};
use crate::{Link, LinkError, aside::LARGE};

/// The failure of one list, which ends the reading of all lists.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{method}` failed: {error}")]
pub struct ListError {
    /// The method of the list.
    pub method: &'static str,
    /// The failure.
    #[source]
    pub error: LinkError,
}

/// Maximum number of entries of one list that are stored.
const ENTRIES_MAX: usize = 50_000;
/// Maximum number of entries that one warning names; further entries are counted.
const WARNINGS_MAX: usize = 10;

/// The result of reading one list.
struct Fetched {
    entries: Vec<InventoryEntry>,
    /// The failure of a list without any page.
    error: Option<LinkError>,
    warnings: Vec<RowWarning>,
    /// True if the list is so large that another thread must finish the inventory.
    is_large: bool,
}

/// The request for a list, and the members of its answers.
#[derive(Clone, Copy)]
struct Asked {
    list: Listed,
    method: &'static str,
    member: &'static str,
    key: &'static str,
}

const TOOLS: Asked = Asked {
    list: Listed::Tool,
    method: method::TOOLS_LIST,
    member: ListKind::Tools.member(),
    key: "name",
};
const PROMPTS: Asked = Asked {
    list: Listed::Prompt,
    method: method::PROMPTS_LIST,
    member: ListKind::Prompts.member(),
    key: "name",
};
const RESOURCES: Asked = Asked {
    list: Listed::Resource,
    method: method::RESOURCES_LIST,
    member: ListKind::Resources.member(),
    key: "uri",
};
const TEMPLATES: Asked = Asked {
    list: Listed::Template,
    method: method::RESOURCES_TEMPLATES_LIST,
    member: ListKind::Templates.member(),
    key: "uriTemplate",
};

impl Inventory {
    /// Reads all lists of `link`, each to its last page, within this time. A failed list is empty
    /// and has a warning, as long as another list was read.
    ///
    /// # Errors
    /// When the link fails, the server refuses its tools to the credential, or every list fails.
    pub async fn fetch(link: &Link, within: Duration) -> Result<Self, ListError> {
        Self::fetch_beside(link, within, None).await
    }

    /// As [`Inventory::fetch`], for a server that was listed before: a failed list keeps its known
    /// entries. `None` if the link fails, or lists no tools in time, which is logged.
    pub async fn fetch_anew(link: &Link, within: Duration, known: &Self) -> Option<Self> {
        match timeout(within, Self::fetch_beside(link, within, Some(known))).await {
            Ok(Ok(inventory)) => return Some(inventory),
            Ok(Err(error)) => {
                tracing::warn!(server.name = link.name(), %error, "listing again failed");
            }
            Err(_late) => tracing::warn!(server.name = link.name(), "listing again took too long"),
        }
        None
    }

    async fn fetch_beside(
        link: &Link,
        within: Duration,
        known: Option<&Self>,
    ) -> Result<Self, ListError> {
        // All lists together get the time `within`, so a silent list fails earlier. Without tools
        // the other lists are of no use, so the tools have no earlier limit.
        let each = |list| if list == Listed::Tool { within * 2 } else { within - within / 6 };
        let has = &link.facts().capabilities;
        let list = |is_declared: bool, asked| async move {
            match is_declared {
                true => Some(Box::pin(fetch_list(link, asked, each(asked.list))).await),
                false => None,
            }
        };
        let (tools, prompts, resources, templates) = tokio::join!(
            list(has.tools, TOOLS),
            list(has.prompts, PROMPTS),
            list(has.resources, RESOURCES),
            list(has.resources, TEMPLATES),
        );
        let mut inventory = Self::default();
        let mut failed = None;
        let mut has_read = false;
        let mut is_large = false;
        for (asked, fetched) in
            [(TOOLS, tools), (PROMPTS, prompts), (RESOURCES, resources), (TEMPLATES, templates)]
        {
            let Some(mut fetched) = fetched else { continue };
            match fetched.error.take() {
                None => has_read = true,
                Some(error) if ends_all(link, asked, &error) || is_silent(asked, &error) => {
                    return Err(ListError { method: asked.method, error });
                }
                Some(error) => {
                    let known = known.map(|known| known.list(asked.list));
                    fetched.entries = known.unwrap_or_default().to_vec();
                    fetched.warnings.push(failure(asked, &error, known.is_some()));
                    let error = ListError { method: asked.method, error };
                    if asked.list == Listed::Tool {
                        inventory.unlisted_tools = Some(error.to_string().into());
                    }
                    failed.get_or_insert(error);
                }
            }
            is_large |= fetched.is_large;
            inventory.warnings.append(&mut fetched.warnings);
            *inventory.list_mut(asked.list) = fetched.entries;
        }
        let is_fatal = |failed: &ListError| known.is_none() || is_refusal(&failed.error);
        if let Some(error) = failed.filter(|failed| !has_read && is_fatal(failed)) {
            return Err(error);
        }
        let is_sent = link.needs_headers();
        let finish = move || {
            inventory.read_header_params(is_sent);
            inventory.indexed()
        };
        Ok(match is_large {
            false => finish(),
            true => link.outlet().aside().run(finish).await,
        })
    }

    fn list_mut(&mut self, list: Listed) -> &mut Vec<InventoryEntry> {
        match list {
            Listed::Tool => &mut self.tools,
            Listed::Prompt => &mut self.prompts,
            Listed::Resource => &mut self.resources,
            Listed::Template => &mut self.templates,
        }
    }
}

/// True if the server refuses the credential.
fn is_refusal(error: &LinkError) -> bool {
    matches!(error, LinkError::AuthRejected { .. } | LinkError::SignIn { .. })
}

/// True if a failure concerns the link, and so every list. A server may accept a credential for
/// tools and refuse it for another list, so only a refusal for tools counts.
fn ends_all(link: &Link, asked: Asked, error: &LinkError) -> bool {
    link.closed().is_cancelled()
        || match error {
            LinkError::Closed(_)
            | LinkError::Unread(_)
            | LinkError::Cut(_)
            | LinkError::SessionEnded => true,
            LinkError::AuthRejected { .. } | LinkError::SignIn { .. } => asked.list == Listed::Tool,
            LinkError::BrokenOff(_)
            | LinkError::Client(_)
            | LinkError::Status { .. }
            | LinkError::Protocol(_)
            | LinkError::Refused { .. }
            | LinkError::Deadline(_)
            | LinkError::Request(_) => false,
        }
}

/// True if a server does not answer the request for its tools: waiting for other lists is of no use
/// then.
fn is_silent(asked: Asked, error: &LinkError) -> bool {
    asked.list == Listed::Tool && matches!(error, LinkError::Deadline(_))
}

fn failure(asked: Asked, error: &LinkError, is_known: bool) -> RowWarning {
    let what = match asked.list {
        Listed::Tool => "tools",
        Listed::Prompt => "prompts",
        Listed::Resource => "resources",
        Listed::Template => "resource templates",
    };
    let rest = match is_known {
        true => format!("the {what} are those of the last list"),
        false => format!("the server has no {what} until it is listed again"),
    };
    let text = format!("`{}` failed, so {rest}: {error}", asked.method);
    RowWarning::new(WarningKind::ListFailed, text)
}

async fn fetch_list(link: &Link, asked: Asked, within: Duration) -> Fetched {
    let mut reading = Reading::new(asked);
    let read = move |answer: &Message| read_page(asked, answer);
    let fetching = link.each_page(asked.method, read, |page| reading.page(page));
    let fetched = timeout(within, fetching).await;
    let fetched = fetched.unwrap_or_else(|_late| Err(LinkError::Deadline(within.as_millis())));
    let error = match fetched {
        Ok(()) => None,
        // A server may lack one of the lists that its capability suggests.
        Err(LinkError::Refused { code: rpc::code::METHOD_NOT_FOUND, .. }) if reading.pages == 0 => {
            None
        }
        Err(error) if reading.pages > 0 && !ends_all(link, asked, &error) => {
            reading.cut(&error);
            None
        }
        Err(error) => Some(error),
    };
    let warnings = reading.warnings();
    let is_large = reading.bytes >= LARGE;
    Fetched { entries: reading.entries, error, warnings, is_large }
}

/// An entry of a page, and the text of a warning about it.
struct ReadEntry {
    entry: InventoryEntry,
    odd: Option<String>,
}

/// The entries of a page, or the reason why the page has none. `None` stands for an entry without a
/// name.
type Page = Result<Vec<Option<ReadEntry>>, String>;

/// Reads the entries of a page, at most one more than a list may have.
fn read_page(asked: Asked, answer: &Message) -> Page {
    let items = answer.get(asked.member).map_or(Ok(Vec::new()), |list| entries(asked, list))?;
    let checker = SchemaChecker::default();
    let read = |item: Raw<'_>| {
        let name = item.get(asked.key).and_then(Raw::as_str)?;
        let mut entry = InventoryEntry::new(&name, answer.bytes().slice_ref(item.as_bytes()));
        let compiles = |schema: Raw<'_>| checker.compiles(schema);
        let (merged, odd) = match readable(asked.list.definition(), &entry.raw, compiles) {
            Readable::AsItIs => (Merged::AsItIs, None),
            Readable::Repaired { raw, members } => {
                let text = format!("`{}` (`{}`)", shown_name(&name), members.join("`, `"));
                (Merged::Repaired(raw), Some(text))
            }
            Readable::Not { why } => {
                (Merged::LeftOut, Some(format!("`{}`: {why}", shown_name(&name))))
            }
        };
        entry.merged = merged;
        Some(ReadEntry { entry, odd })
    };
    Ok(items.into_iter().take(ENTRIES_MAX + 1).map(read).collect())
}

/// The entries of a list. Some languages write an empty list as null or as an object.
fn entries(asked: Asked, list: Raw<'_>) -> Result<Vec<Raw<'_>>, String> {
    let is_empty = list.as_bytes() == b"null" || (list.is_object() && list.entries().is_empty());
    match list.as_bytes().first() {
        Some(b'[') => Ok(list.items()),
        _ if is_empty => Ok(Vec::new()),
        _ => Err(format!("`{}` is not an array", asked.member)),
    }
}

/// A list while it is read.
struct Reading {
    asked: Asked,
    entries: Vec<InventoryEntry>,
    /// The positions of the entries by their keys.
    keys: HashMap<Arc<str>, usize>,
    pages: usize,
    /// Number of bytes of all entries read so far.
    bytes: usize,
    /// Number of received entries, dropped ones included.
    count: usize,
    cut: Option<RowWarning>,
    /// The odd entries by kind, in the order of [`KINDS`].
    odd: [Vec<String>; 3],
}

/// The kinds of warnings about single definitions.
const KINDS: [WarningKind; 3] =
    [WarningKind::ListedTwice, WarningKind::DefinitionRepaired, WarningKind::DefinitionLeftOut];

impl Reading {
    fn new(asked: Asked) -> Self {
        let (entries, keys, odd) = (Vec::new(), HashMap::new(), Default::default());
        Self { asked, entries, keys, pages: 0, bytes: 0, count: 0, cut: None, odd }
    }

    fn page(&mut self, page: Page) -> Result<(), LinkError> {
        let page = page.map_err(LinkError::Protocol)?;
        self.pages += 1;
        for entry in page {
            self.count += 1;
            if self.count > ENTRIES_MAX {
                let method = self.asked.method;
                return Err(LinkError::Protocol(format!(
                    "{method} has more than {ENTRIES_MAX} entries"
                )));
            }
            self.entry(entry);
        }
        Ok(())
    }

    fn entry(&mut self, read: Option<ReadEntry>) {
        let Asked { key, member, .. } = self.asked;
        let [twice, repaired, left_out] = &mut self.odd;
        let Some(ReadEntry { entry, odd }) = read else {
            left_out.push(format!("an entry of `{member}` has no `{key}`, or one twice"));
            return;
        };
        if let Some(first) = self.keys.get(&entry.key) {
            // A page that the server sends twice adds no new entry.
            if self.entries[*first].raw != entry.raw {
                twice.push(format!("`{}`", shown_name(&entry.key)));
            }
            return;
        }
        match entry.merged {
            Merged::AsItIs => {}
            Merged::Repaired(_) => repaired.extend(odd),
            Merged::LeftOut => left_out.extend(odd),
        }
        self.bytes += entry.raw.len();
        self.keys.insert(entry.key.clone(), self.entries.len());
        self.entries.push(entry);
    }

    /// Notes that the list was not read to its end.
    fn cut(&mut self, error: &LinkError) {
        let (method, count) = (self.asked.method, self.entries.len());
        let text = format!("`{method}` ended after {count} entries, which are used: {error}");
        self.cut = Some(RowWarning::new(WarningKind::ListCut, text));
    }

    fn warnings(&mut self) -> Vec<RowWarning> {
        let mut warnings: Vec<_> = self.cut.take().into_iter().collect();
        for (kind, odd) in KINDS.into_iter().zip(&self.odd) {
            let Some(text) = some_of(odd) else { continue };
            let member = self.asked.member;
            let text = match kind {
                WarningKind::ListedTwice => {
                    format!("`{member}` lists a name twice, and the first entry is used: {text}")
                }
                WarningKind::DefinitionRepaired => format!(
                    "merged lists have these `{member}` without members that strict clients \
                     refuse: {text}"
                ),
                _ => format!(
                    "merged lists are without these `{member}`, which strict clients refuse: {text}"
                ),
            };
            warnings.push(RowWarning::new(kind, text));
        }
        warnings
    }
}

/// The first texts, and the number of further texts. `None` without any text.
fn some_of(all: &[String]) -> Option<String> {
    let shown = all.iter().take(WARNINGS_MAX).cloned().collect::<Vec<_>>().join("; ");
    let more = all.len().saturating_sub(WARNINGS_MAX);
    match (all.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, _) => Some(format!("{shown}; and {more} more")),
    }
}
