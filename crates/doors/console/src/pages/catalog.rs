//! The servers of a workspace's catalog: the list, one entry, its form, and its removal.

pub mod form;
pub mod samples;

use askama::Template;

use self::form::EntryForm;
use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Moment, Words},
};

/// The list.
#[derive(Debug, Template)]
#[template(path = "catalog.html")]
pub struct CatalogPage {
    /// The frame.
    pub frame: Frame,
    /// The text of the filter.
    pub filtered: Words,
    /// The path of this page.
    pub path: String,
    /// The path of the form for a new entry; `None` for a human who may not add one.
    pub add: Option<String>,
    /// The filters.
    pub filters: Vec<Filter>,
    /// The rows of this page.
    pub rows: Vec<CatalogRow>,
    /// Number of rows that fit the filters.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
    /// The servers of the daemon's files, which have their own page.
    pub files: Option<FileServers>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// The servers of the daemon's files, which are no entries of the catalog.
#[derive(Debug, Clone)]
pub struct FileServers {
    /// Number of servers.
    pub count: usize,
    /// The path of their page.
    pub path: String,
}

/// An entry.
#[derive(Debug, Clone)]
pub struct CatalogRow {
    /// The path of its page.
    pub href: String,
    /// The id.
    pub id: Words,
    /// The name for people.
    pub name: Words,
    /// The shape in words; `None` for a human who may not see it.
    pub shape: Option<&'static str>,
    /// The address, the program with its arguments, or the image.
    pub target: Option<Words>,
    /// Number of keys of its configuration.
    pub keys: usize,
    /// The reason why runs do not get it; `None` for an entry that is enabled.
    pub off: Option<Off>,
    /// Number of faults of a stored form that cannot be used.
    pub faults: usize,
    /// The reason why this version never starts it.
    pub never_starts: Option<Words>,
    /// The agents and capabilities that attach it.
    pub users: Users,
    /// The agent whose manifest has made it.
    pub made_by: Option<Words>,
}

/// An entry that runs do not get.
#[derive(Debug, Clone)]
pub struct Off {
    /// True if it was added so, and nothing has changed it since.
    pub is_draft: bool,
    /// The button that enables it, for those who may change it.
    pub enable: Option<Action>,
}

impl Off {
    /// The word for the state.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.is_draft { "draft" } else { "disabled" }
    }

    /// The meaning of the state.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match self.is_draft {
            true => {
                "It was added disabled, and nothing has changed it since: runs do not get it \
                 before it is enabled."
            }
            false => "Runs do not get it before it is enabled.",
        }
    }
}

/// The agents and capabilities that attach a server.
#[derive(Debug, Clone, Default)]
pub struct Users {
    /// The first ones.
    pub first: Vec<User>,
    /// Number of further ones.
    pub more: usize,
}

/// An agent or a capability that attaches a server.
#[derive(Debug, Clone)]
pub struct User {
    /// The kind and the name.
    pub what: Words,
    /// The path of its page, for those who may open it.
    pub href: Option<String>,
}

/// One entry.
#[derive(Debug, Template)]
#[template(path = "catalog_entry.html")]
pub struct CatalogEntryPage {
    /// The frame.
    pub frame: Frame,
    /// The entry as a row of the list.
    pub row: CatalogRow,
    /// The purpose of the server, in the words of its author.
    pub description: Words,
    /// The keys of its configuration.
    pub keys: Vec<Key>,
    /// True if other keys are refused.
    pub is_closed: bool,
    /// The faults of a stored form that cannot be used.
    pub faults: Vec<Words>,
    /// The normal form, without literal values of hidden keys.
    pub definition: String,
    /// The last write.
    pub written: Written,
    /// The path of the form; `None` for a human who may not change it.
    pub edit: Option<String>,
    /// The path of the page that removes it.
    pub remove: Option<String>,
    /// The path of the list.
    pub back: String,
}

/// The last write of an entry.
#[derive(Debug, Clone)]
pub struct Written {
    /// Number of writes.
    pub revision: u64,
    /// The time.
    pub at: Moment,
    /// The actor.
    pub by: Words,
}

/// A key of a server's configuration.
#[derive(Debug, Clone)]
pub struct Key {
    /// The name.
    pub name: Words,
    /// The type and the flags.
    pub facts: Words,
    /// The purpose.
    pub description: Words,
    /// The value of the entry; `None` without one.
    pub value: Option<Words>,
}

/// The form of an entry.
#[derive(Debug, Template)]
#[template(path = "catalog_edit.html")]
pub struct CatalogEditPage {
    /// The frame.
    pub frame: Frame,
    /// The form.
    pub form: EntryForm,
    /// The page to go back to.
    pub back: String,
}

/// The page that removes an entry.
#[derive(Debug, Template)]
#[template(path = "catalog_remove.html")]
pub struct CatalogRemovePage {
    /// The frame.
    pub frame: Frame,
    /// The id.
    pub id: Words,
    /// The path that the form is sent to.
    pub action: String,
    /// The version tag of the entry that is removed.
    pub tag: String,
    /// The references that break.
    pub users: Vec<Words>,
    /// Number of further ones.
    pub more: usize,
    /// The page to go back to.
    pub back: String,
}
