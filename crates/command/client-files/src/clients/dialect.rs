//! The dialect of a file: it follows from the place at which a client has the file, or from the
//! client's name.

use std::path::{Component, Path, PathBuf};

use narthex_model::did_you_mean;

use super::{Client, Machine, Scope, clients, ids, machine::fits};

/// The name of narthex's own notation, beside the ids of clients.
pub const OWN: &str = "narthex";

/// The notation of a file with servers.
#[derive(Debug, Clone)]
pub enum Dialect {
    /// The notation of narthex: `mcp.json`, `settings.json`, and every file that is of no client.
    Own,
    /// The notation of a client.
    Of(ClientFile),
}

/// A file in the notation of a client.
#[derive(Debug, Clone)]
pub struct ClientFile {
    /// The row of the client.
    pub client: &'static Client,
    /// The folder of the project, if the client has this file in each of its projects.
    pub project: Option<PathBuf>,
}

/// The reason for which a file has no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// No client has this id.
    #[error("--format: no client is called `{name}`; {hint}")]
    Unknown {
        /// The id.
        name: String,
        /// The nearest id, or all of them.
        hint: String,
    },
    /// Several clients have their file at this path.
    #[error(
        "`{}` can be a file of {}; name the client with {}", path.display(), names.join(" or of "),
        flags.join(" or ")
    )]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// The names of the clients.
        names: Vec<String>,
        /// The flags that name one of them.
        flags: Vec<String>,
    },
}

impl Machine<'_> {
    /// The dialect of a file: the one of `format`, a client's id or [`OWN`], else that of the
    /// client whose file is at this path. A path of no client has narthex's own notation.
    ///
    /// # Errors
    /// [`DialectError::Unknown`] when no client has the id, and [`DialectError::Ambiguous`] when
    /// several clients have their file at the path.
    pub fn dialect(&self, path: &Path, format: Option<&str>) -> Result<Dialect, DialectError> {
        if format == Some(OWN) {
            return Ok(Dialect::Own);
        }
        let rows = self.rows_at(&place(path));
        if let Some(id) = format {
            let of_path = rows.into_iter().map(|(_, file)| file).find(|file| file.client.id == id);
            let named = || named(id).map(|client| ClientFile { client, project: None });
            return of_path.or_else(named).map(Dialect::Of).ok_or_else(|| unknown(id));
        }
        // Prefers the clients that list this path first.
        let best = rows.iter().map(|(rank, _)| *rank).min();
        let files = rows.into_iter().filter(|(rank, _)| Some(*rank) == best);
        let files: Vec<_> = files.map(|(_, file)| file).collect();
        let Some(first) = files.first() else { return Ok(Dialect::Own) };
        if files.iter().all(|file| file.client.id == first.client.id) {
            return Ok(Dialect::Of(first.clone()));
        }
        Err(DialectError::Ambiguous {
            path: path.to_owned(),
            names: files.iter().map(|file| file.client.name.clone()).collect(),
            flags: files.iter().map(|file| format!("`--format {}`", file.client.id)).collect(),
        })
    }

    /// The rows of a path, each with the rank of the path among the client's paths, from 0. Files
    /// of the user come before those of projects: in the home folder a path can be both.
    fn rows_at(&self, path: &Path) -> Vec<(usize, ClientFile)> {
        let of_user = clients().iter().filter(|client| client.scope == Scope::User);
        let of_user = of_user.filter_map(|client| {
            let mut candidates = self.candidates(client).into_iter();
            let rank = candidates.position(|candidate| place(&candidate) == path)?;
            Some((rank, ClientFile { client, project: None }))
        });
        let of_user: Vec<_> = of_user.collect();
        if !of_user.is_empty() {
            return of_user;
        }
        let of_folder = clients().iter().filter(|client| client.scope != Scope::User);
        let of_folder = of_folder.filter_map(|client| {
            let mut patterns = client.paths.on(self.system).iter().enumerate();
            patterns.find_map(|(rank, pattern)| {
                let project = Some(folder_before(path, pattern)?);
                Some((rank, ClientFile { client, project }))
            })
        });
        of_folder.collect()
    }
}

/// The folder below which a path has the form of a pattern, such as `.vscode/mcp.json`.
fn folder_before(path: &Path, pattern: &str) -> Option<PathBuf> {
    if pattern.starts_with(['~', '$', '%']) {
        return None;
    }
    let mut rest = path.components();
    for part in pattern.rsplit('/') {
        let Some(Component::Normal(name)) = rest.next_back() else { return None };
        let name = name.to_str()?;
        let is_of_part = match part.split_once('*') {
            Some((begin, end)) => fits(name, begin, end),
            None => name == part,
        };
        if !is_of_part {
            return None;
        }
    }
    Some(rest.as_path().to_owned())
}

/// The row that stands for all files of a client.
fn named(id: &str) -> Option<&'static Client> {
    clients().iter().find(|client| client.id == id)
}

fn unknown(name: &str) -> DialectError {
    let mut ids = ids();
    ids.push(OWN);
    let meant = did_you_mean(name, ids.iter().copied());
    let hint = meant.unwrap_or_else(|| format!("known: {}", ids.join(", ")));
    DialectError::Unknown { name: name.to_owned(), hint }
}

/// The path with the links of its folder followed. The file itself may be a link.
fn place(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_unknown| path.to_owned());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path };
    match fs_err::canonicalize(folder) {
        Ok(folder) => folder.join(name),
        Err(_absent) => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::System;

    const HOME: &str = "/nowhere/ada";

    fn dialect(system: System, path: &str, format: Option<&str>) -> Result<String, DialectError> {
        let (home, folder) = (Path::new(HOME), Path::new("/nowhere/shop"));
        let machine = Machine { system, home, folder, variable: &|_name| None };
        machine.dialect(Path::new(path), format).map(|dialect| match dialect {
            Dialect::Own => OWN.to_owned(),
            Dialect::Of(ClientFile { client, project: None }) => client.label(),
            Dialect::Of(ClientFile { client, project: Some(folder) }) => {
                format!("{} in {}", client.label(), folder.display())
            }
        })
    }

    #[test]
    fn the_dialect_follows_from_the_path() {
        for (path, expected) in [
            ("/nowhere/shop/.vscode/mcp.json", "vscode/workspace in /nowhere/shop"),
            ("/nowhere/shop/sub/.cursor/mcp.json", "cursor/project in /nowhere/shop/sub"),
            ("/nowhere/shop/.gemini/settings.json", "gemini-cli/project in /nowhere/shop"),
            ("/nowhere/shop/.codex/config.toml", "codex/project in /nowhere/shop"),
            ("/nowhere/shop/.zed/settings.json", "zed/project in /nowhere/shop"),
            ("/nowhere/shop/.mcp.json", "claude-code/project in /nowhere/shop"),
            ("/nowhere/shop/.github/mcp.json", "copilot-cli/project in /nowhere/shop"),
            ("/nowhere/shop/.continue/mcpServers/a.yaml", "continue/project in /nowhere/shop"),
            ("/nowhere/ada/.cursor/mcp.json", "cursor/user"),
            ("/nowhere/ada/.claude.json", "claude-code/user"),
            ("/nowhere/ada/.config/zed/settings.json", "zed/user"),
            ("/nowhere/shop/mcp.json", OWN),
            ("/nowhere/shop/.continue/mcpServers/a.json", OWN),
            ("/nowhere/ada/.config/narthex/settings.json", OWN),
            ("/nowhere/shop/desktop.json", OWN),
            ("mcp.json", OWN),
            ("/", OWN),
        ] {
            assert_eq!(dialect(System::Linux, path, None).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn a_named_client_comes_before_the_path() {
        for (path, format, expected) in [
            ("/nowhere/shop/.mcp.json", "copilot-cli", "copilot-cli/project in /nowhere/shop"),
            ("/nowhere/shop/.vscode/mcp.json", OWN, OWN),
            ("/nowhere/shop/other.toml", "codex", "codex/user"),
            ("/nowhere/ada/.cursor/mcp.json", "cursor", "cursor/user"),
        ] {
            assert_eq!(dialect(System::Linux, path, Some(format)).unwrap(), expected, "{path}");
        }
        let unknown = dialect(System::Linux, "mcp.json", Some("cursr")).unwrap_err().to_string();
        assert!(unknown.contains("`cursr`; did you mean `cursor`?"), "{unknown}");
        let unknown = dialect(System::Linux, "mcp.json", Some("zzzzzz")).unwrap_err().to_string();
        assert!(unknown.contains("known: claude-code, ") && unknown.ends_with(OWN), "{unknown}");
    }

    /// On Windows two clients have the same first path.
    #[test]
    fn a_path_of_two_clients_needs_a_name() {
        let path = "/nowhere/shop/.mcp.json";
        let error = dialect(System::Windows, path, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`/nowhere/shop/.mcp.json` can be a file of Claude Code or of Visual Studio; name the \
             client with `--format claude-code` or `--format visual-studio`"
        );
        let named = dialect(System::Windows, path, Some("visual-studio")).unwrap();
        assert_eq!(named, "visual-studio/project in /nowhere/shop");
    }
}
