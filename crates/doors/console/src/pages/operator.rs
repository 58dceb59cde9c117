//! The pages of operators: the daemon, all workspaces, the master keys, and the files of the
//! configuration. They belong to no workspace.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Action, Empty, Moment, Words, form::Field, item::Item},
};

/// The daemon.
#[derive(Debug, Template)]
#[template(path = "operator.html")]
pub struct OperatorPage {
    /// The frame.
    pub frame: Frame,
    /// Numbers of this moment, each with its name.
    pub numbers: Vec<(&'static str, String)>,
    /// The facts, each with its name.
    pub pairs: Vec<(&'static str, Words)>,
    /// The start of the daemon.
    pub started_at: Moment,
    /// True if the last attempt to move events of the audit into the store failed.
    pub is_audit_stuck: bool,
    /// The path of the metrics.
    pub metrics: String,
    /// The address of the metrics, for Prometheus.
    pub metrics_address: Words,
}

/// All workspaces.
#[derive(Debug, Template)]
#[template(path = "operator_workspaces.html")]
pub struct OperatorWorkspacesPage {
    /// The frame.
    pub frame: Frame,
    /// The page that creates one.
    pub add: String,
    /// The path of this page.
    pub path: String,
    /// The text of the filter.
    pub filtered: String,
    /// The workspaces of this page.
    pub rows: Vec<WorkspaceRow>,
    /// Number of workspaces that fit the filter.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
}

/// A workspace, with the numbers of its objects.
#[derive(Debug, Clone)]
pub struct WorkspaceRow {
    /// Its first page.
    pub href: String,
    /// The id.
    pub id: Words,
    /// The name.
    pub name: Words,
    /// Number of members.
    pub members: u64,
    /// Number of servers of the catalog.
    pub servers: u64,
    /// Number of servers of configuration files.
    pub file_servers: u64,
    /// Number of active runs.
    pub runs: u64,
    /// Number of calls today.
    pub calls: u64,
    /// The page that asks before the deletion.
    pub delete: String,
    /// The reason why it is never deleted.
    pub stays: Option<&'static str>,
}

/// The form for a new workspace.
#[derive(Debug, Template)]
#[template(path = "operator_new.html")]
pub struct OperatorNewPage {
    /// The frame.
    pub frame: Frame,
    /// The path that the form is sent to.
    pub path: String,
    /// The list.
    pub back: String,
    /// The id.
    pub id: Field,
    /// The name.
    pub name: Field,
}

/// The page that asks before a workspace is deleted.
#[derive(Debug, Template)]
#[template(path = "operator_delete.html")]
pub struct OperatorDeletePage {
    /// The frame.
    pub frame: Frame,
    /// The id of the workspace.
    pub id: Words,
    /// The objects that are deleted with it, in words.
    pub contents: Vec<String>,
    /// The path that the form is sent to.
    pub action: String,
    /// The list.
    pub back: String,
    /// The reason why the workspace is never deleted.
    pub stays: Option<&'static str>,
}

/// The master keys.
#[derive(Debug, Template)]
#[template(path = "operator_keys.html")]
pub struct OperatorKeysPage {
    /// The frame.
    pub frame: Frame,
    /// The place of the keys.
    pub place: Words,
    /// The keys, that which seals first.
    pub keys: Vec<Item>,
    /// True if a change of the key is not complete.
    pub is_open: bool,
    /// The button that changes the key, or completes a change.
    pub rotate: Action,
    /// The button as a command.
    pub command: Words,
    /// The button as a request of the API.
    pub request: Words,
}

/// The files of the configuration.
#[derive(Debug, Template)]
#[template(path = "operator_files.html")]
pub struct OperatorFilesPage {
    /// The frame.
    pub frame: Frame,
    /// The files, in the order in which they count.
    pub files: Vec<Item>,
    /// The file with the settings of the daemon itself.
    pub settings: Option<Words>,
    /// The button that reads the files again.
    pub reload: Action,
    /// The button as a command.
    pub command: Words,
    /// The button as a request of the API.
    pub request: Words,
    /// Shown where there are no files.
    pub empty: Empty,
}

#[cfg(test)]
pub(super) mod samples;
