//! The client files of one user on one machine, with the servers in them. Reads, and never writes.

use std::path::{Path, PathBuf};

use crate::clients::{Client, Machine, Scope, clients};
use crate::edit::{Document, EditError};
use crate::{file, rewrite, servers, servers::Found};

/// The largest file that is read.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// A file of a client.
#[derive(Debug, Clone)]
pub struct FoundFile {
    /// The row of the client.
    pub client: &'static Client,
    /// The path.
    pub path: PathBuf,
    /// The content.
    pub content: Content,
}

/// The content of a client's file.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Servers of all folders of the user.
    Servers(Vec<Found>),
    /// Servers that belong to one folder.
    OfFolder(OfFolder),
    /// The file is not of its format.
    Broken {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The fault and its remedy.
        message: String,
    },
    /// The file cannot be read.
    Unreadable(String),
}

/// The servers of a file that belong to one folder.
#[derive(Debug, Clone, PartialEq)]
pub struct OfFolder {
    /// The servers as they are written.
    pub servers: Vec<Found>,
    /// The text that the servers were read from.
    pub text: Vec<u8>,
}

impl OfFolder {
    /// The servers with the paths that they have in their folder.
    #[must_use]
    pub fn in_folder(&self, folder: &Path) -> Vec<Found> {
        self.servers.iter().map(|one| one.in_folder(folder)).collect()
    }
}

/// Finds and reads the files of the wanted clients: those of the user, and those of the folder that
/// have servers. A file that two rows share is listed for each of its places of servers.
#[must_use]
pub fn look(machine: &Machine<'_>, is_wanted: &dyn Fn(&Client) -> bool) -> Vec<FoundFile> {
    let mut seen = Vec::new();
    let mut files = Vec::new();
    // In the home folder itself a path of a project can be that of the user.
    let (of_user, of_folder): (Vec<_>, Vec<_>) = clients()
        .iter()
        .filter(|client| is_wanted(client))
        .partition(|client| client.scope == Scope::User);
    for client in of_user.into_iter().chain(of_folder) {
        for path in machine.candidates(client) {
            let Ok(real) = fs_err::canonicalize(&path) else { continue };
            let place = (real, client.key.clone());
            if !seen.contains(&place)
                && let Some(content) = content(client, &path, machine.folder)
            {
                seen.push(place);
                files.push(FoundFile { client, path, content });
            }
        }
    }
    files
}

/// Servers that a client uses in one folder alone, by entries in a file of the user.
#[derive(Debug, Clone)]
pub struct InOneFolder {
    /// The row of the client.
    pub client: &'static Client,
    /// The file of the user.
    pub path: PathBuf,
    /// The folder.
    pub folder: String,
    /// The servers as they are written.
    pub servers: Vec<Found>,
}

/// Finds the servers that the wanted clients use in one folder alone, for all folders that a file
/// of the user names. A file that cannot be read has none here: [`look`] names it.
#[must_use]
pub fn look_by_folder(
    machine: &Machine<'_>,
    is_wanted: &dyn Fn(&Client) -> bool,
) -> Vec<InOneFolder> {
    let rows = clients().iter().filter(|client| client.before_folder().is_some());
    let rows = rows.filter(|client| is_wanted(client));
    let files = rows
        .flat_map(|client| machine.candidates(client).into_iter().map(move |path| (client, path)));
    files.flat_map(|(client, path)| by_folder(client, &path).unwrap_or_default()).collect()
}

fn by_folder(client: &'static Client, path: &Path) -> Result<Vec<InOneFolder>, Unread> {
    let (document, _) = document(client, path)?;
    let mut all = Vec::new();
    for folder in servers::folders(client, &document).map_err(Unread::Text)? {
        let servers = servers::read(client, &document, &folder).map_err(Unread::Text)?;
        if !servers.is_empty() {
            all.push(InOneFolder { client, path: path.to_owned(), folder, servers });
        }
    }
    Ok(all)
}

/// The content of a file; `None` for a file of a folder without servers.
fn content(client: &Client, path: &Path, folder: &Path) -> Option<Content> {
    let (servers, text) = match read(client, path, folder) {
        Ok(read) => read,
        Err(Unread::Text(error)) => return Some(broken(&error)),
        Err(Unread::File(message)) => return Some(Content::Unreadable(message)),
    };
    if client.scope == Scope::User {
        return Some(Content::Servers(servers));
    }
    (!servers.is_empty()).then_some(Content::OfFolder(OfFolder { servers, text }))
}

enum Unread {
    File(String),
    Text(EditError),
}

fn read(client: &Client, path: &Path, folder: &Path) -> Result<(Vec<Found>, Vec<u8>), Unread> {
    let (document, text) = document(client, path)?;
    let folder = folder.to_string_lossy();
    let servers = servers::read(client, &document, &folder).map_err(Unread::Text)?;
    Ok((servers, text))
}

fn document(client: &Client, path: &Path) -> Result<(Document, Vec<u8>), Unread> {
    let metadata = fs_err::metadata(path).map_err(|error| Unread::File(error.to_string()))?;
    if !metadata.is_file() {
        return Err(Unread::File("it is not a regular file".to_owned()));
    }
    if metadata.len() > FILE_MAX {
        return Err(Unread::File(format!("it has more than {FILE_MAX} bytes")));
    }
    let bytes = file::read(path).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Unread::File(cause.unwrap_or_else(|| error.to_string()))
    })?;
    let text = bytes.unwrap_or_default();
    let document = rewrite::parse(client.format, &text).map_err(Unread::Text)?;
    Ok((document, text))
}

fn broken(error: &EditError) -> Content {
    let message = error.to_string();
    let (line, column) = match error {
        EditError::Syntax { line, column, .. }
        | EditError::Kind { line, column, .. }
        | EditError::Unsupported { line, column, .. } => (*line, *column),
        EditError::Exists { line, .. } | EditError::Ambiguous { line, .. } => (*line, 1),
        EditError::Missing { .. } | EditError::Unsafe { .. } | EditError::Value { .. } => (1, 1),
    };
    Content::Broken { line, column, message }
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;
    use crate::clients::System;

    fn look_at(home: &Path, folder: &Path) -> Vec<FoundFile> {
        let none = |_: &str| None;
        let machine = Machine { system: System::Linux, home, folder, variable: &none };
        look(&machine, &|_client| true)
    }

    /// The file of a user of Claude Code, with servers of this folder and of others.
    fn claude(folder: &Path) -> String {
        let local = folder.display();
        format!(
            r#"{{"mcpServers": {{"a": {{"command": "x"}}}}, "projects": {{
            "{local}": {{"mcpServers": {{"b": {{"command": "y"}}}}}},
            "/srv/shop": {{"mcpServers": {{"c": {{"url": "https://c.example/mcp"}}}}}},
            "/srv/empty": {{"mcpServers": {{}}}}, "/srv/none": {{}}}}}}"#
        )
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn files_are_read_where_they_are_and_faults_are_named() {
        let place = tempfile::tempdir().unwrap();
        let (home, folder) = (place.path().join("home"), place.path().join("work"));
        write(home.join(".claude.json"), &claude(&folder));
        // Comments in a file that should have none are read.
        write(home.join(".cursor/mcp.json"), "{ // mine\n \"mcpServers\": {},\n}");
        write(home.join(".gemini/settings.json"), "{\n  \"mcpServers\": {,}\n}");
        fs::create_dir_all(home.join(".codex/config.toml")).unwrap();
        write(folder.join(".zed/settings.json"), "{}");
        write(folder.join(".roo/mcp.json"), r#"{"mcpServers": {"c": {"command": "z"}}}"#);
        let files = look_at(&home, &folder);
        let found = |label: &str| {
            let mut files = files.iter().filter(|file| file.client.label() == label);
            files.next().map(|file| &file.content)
        };
        let Some(Content::Servers(claude)) = found("claude-code/user") else { panic!("{files:?}") };
        assert_eq!(claude[0].name(), "a");
        let of_folder = |label: &str| match found(label) {
            Some(Content::OfFolder(of)) => {
                of.servers.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(of_folder("claude-code/local"), ["b"]);
        assert_eq!(found("cursor/user"), Some(&Content::Servers(Vec::new())));
        let Some(Content::Broken { line: 2, message, .. }) = found("gemini-cli/user") else {
            panic!("{files:?}")
        };
        assert!(message.starts_with("line 2, column "), "{message}");
        let unreadable = Content::Unreadable("it is not a regular file".to_owned());
        assert_eq!(found("codex/user"), Some(&unreadable));
        assert_eq!(found("zed/project"), None, "a file without servers");
        assert_eq!(of_folder("roo/project"), ["c"]);
        assert_eq!(files.len(), 6, "{files:?}");
    }

    #[test]
    fn servers_of_each_folder_in_a_file_of_the_user_are_found() {
        let place = tempfile::tempdir().unwrap();
        let (home, folder) = (place.path().join("home"), place.path().join("work"));
        write(home.join(".claude.json"), &claude(&folder));
        let none = |_: &str| None;
        let machine =
            Machine { system: System::Linux, home: &home, folder: &folder, variable: &none };
        let found = look_by_folder(&machine, &|_client| true);
        let mut found: Vec<_> = found
            .iter()
            .map(|one| {
                let names: Vec<_> = one.servers.iter().map(Found::name).collect();
                (one.folder.as_str(), names)
            })
            .collect();
        found.sort_unstable();
        let mut expected = vec![("/srv/shop", vec!["c"]), (folder.to_str().unwrap(), vec!["b"])];
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(look_by_folder(&machine, &|client| client.id != "claude-code").len(), 0);
        write(home.join(".claude.json"), "{ \"projects\": [] ");
        assert_eq!(look_by_folder(&machine, &|_client| true).len(), 0);
    }

    #[test]
    fn in_the_home_folder_a_file_is_that_of_the_user() {
        let place = tempfile::tempdir().unwrap();
        write(place.path().join(".cursor/mcp.json"), r#"{"mcpServers": {"a": {"command": "x"}}}"#);
        let files = look_at(place.path(), place.path());
        let labels: Vec<_> = files.iter().map(|file| file.client.label()).collect();
        assert_eq!(labels, ["cursor/user"]);
    }
}
