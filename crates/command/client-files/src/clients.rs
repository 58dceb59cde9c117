//! The table of MCP client programs: where each has its configuration files, and their shape.
//!
//! The table is `clients.toml`, where its fields are explained. Code that reads files of clients
//! has no names of clients: only their rows and the [`Shape`] of their entries.

mod dialect;
mod machine;
mod own_entry;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use toml::value::Datetime;

pub use dialect::{ClientFile, Dialect, DialectError, OWN};
pub use machine::{Machine, System};
pub use own_entry::OwnEntry;

use crate::edit::{Format, Parent};

const TABLE: &str = include_str!("../clients.toml");

/// The key that stands for the folder of a project, in [`Client::key`].
const FOLDER: &str = "{folder}";

/// One client program in one scope.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// The name for commands; unique together with the scope.
    pub id: String,
    /// The range of the file.
    pub scope: Scope,
    /// The name for people.
    pub name: String,
    paths: Paths,
    #[serde(default)]
    env_paths: Vec<String>,
    create: Option<String>,
    /// The language of the file.
    pub format: Format,
    /// True if the client takes a comma after the last member.
    #[serde(default)]
    pub trailing_commas: bool,
    /// Keys from the root to the servers.
    pub key: Vec<String>,
    /// Further places of servers in the same file.
    #[serde(default)]
    pub also_keys: Vec<Vec<String>>,
    /// The dialect of an entry.
    pub shape: Shape,
    /// The kind of the container of entries.
    pub list: Container,
    /// The field with the name, in the entries of a list.
    pub name_field: Option<String>,
    /// The transports that the client speaks.
    pub transports: Vec<Transport>,
    /// The transport by which the client reaches narthex.
    pub connect: Transport,
    /// The entry that reaches narthex over HTTP.
    pub http_entry: Option<String>,
    /// The entry that starts `narthex connect`.
    pub stdio_entry: String,
    /// The way in which the client takes a change of the file.
    pub refresh: Refresh,
    /// Words for people on the refresh.
    pub refresh_hint: Option<String>,
    detect: Vec<String>,
    /// Rows with the same file, as `id/scope`.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Facts that a writer of the file must know.
    pub note: Option<String>,
    /// The client's own documentation or source.
    pub source: String,
    /// The day on which the source was read.
    pub seen: Datetime,
    /// True if path, key, shape and entry were read in the client's own texts.
    #[serde(rename = "verified")]
    pub is_verified: bool,
    /// The facts that were not read there, for a row that is not verified.
    pub reason: Option<String>,
}

/// The range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All folders of this user.
    User,
    /// A folder, and everyone who has it.
    Project,
    /// A folder, and this user only.
    Local,
    /// A folder, in the words of clients that call it a workspace.
    Workspace,
}

/// The dialect of an entry; `clients.toml` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    Claude,
    ClaudeDesktop,
    Cursor,
    Vscode,
    VisualStudio,
    Windsurf,
    Codex,
    Gemini,
    Qwen,
    Cline,
    Roo,
    Zed,
    Goose,
    Continue,
    Opencode,
    Copilot,
    Junie,
    LmStudio,
    Kiro,
    AmazonQ,
    Warp,
    Crush,
}

/// The kind of a container of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// The name is the key of the entry.
    Object,
    /// The name is a field of the entry.
    Array,
}

/// A way to reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A program that the client starts.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// The way in which a client takes a change of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refresh {
    /// The client watches the file.
    Watches,
    /// The client reads the file when it starts.
    Restart,
    /// A person gives the client a command.
    Command,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paths {
    linux: Vec<String>,
    macos: Vec<String>,
    windows: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    client: Vec<Client>,
}

/// All rows, in the order of the table.
#[must_use]
pub fn clients() -> &'static [Client] {
    static CLIENTS: LazyLock<Vec<Client>> = LazyLock::new(|| {
        let table: Table = toml::from_str(TABLE).expect("a test reads the embedded table");
        table.client
    });
    &CLIENTS
}

/// The ids of all clients, each once, in the order of the table.
#[must_use]
pub fn ids() -> Vec<&'static str> {
    let mut ids: Vec<_> = clients().iter().map(|client| client.id.as_str()).collect();
    ids.dedup();
    ids
}

impl Client {
    /// The id and the scope, as in `cursor/user`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.id, self.scope.as_str())
    }

    /// True for a file that goes with a folder, so that others may have written it.
    #[must_use]
    pub fn is_of_project(&self) -> bool {
        matches!(self.scope, Scope::Project | Scope::Workspace)
    }

    /// The keys before that of the folder, in a file that has servers for many folders.
    #[must_use]
    pub fn before_folder(&self) -> Option<Vec<&str>> {
        let at = self.key.iter().position(|key| key == FOLDER)?;
        Some(self.key[..at].iter().map(String::as_str).collect())
    }

    /// The places of servers in the file. `folder` is the folder of the project, which the keys of
    /// local scopes have.
    #[must_use]
    pub fn parents(&self, folder: &str) -> Vec<Parent> {
        let keys = std::iter::once(&self.key).chain(&self.also_keys);
        let path = |keys: &Vec<String>| {
            let keys = keys.iter().map(|key| if key == FOLDER { folder } else { key });
            keys.map(str::to_owned).collect()
        };
        keys.map(|keys| Parent::new(path(keys), self.name_field.clone())).collect()
    }
}

impl Scope {
    /// The name in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Workspace => "workspace",
        }
    }
}

impl Transport {
    /// The name in the table, and in the configuration of narthex.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

#[cfg(test)]
mod tests;
