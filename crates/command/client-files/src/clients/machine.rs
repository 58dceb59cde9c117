//! Paths of the table on one machine: home folder, variables and project folder filled in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Client, Paths, Scope};

/// An operating system, as far as paths of clients differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux, and systems with its paths.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl System {
    /// The system of this program.
    #[must_use]
    pub fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::Macos
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// The facts of a machine and its user that paths of clients depend on.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// The operating system.
    pub system: System,
    /// The home folder of the user.
    pub home: &'a Path,
    /// The folder of the project.
    pub folder: &'a Path,
    /// Looks up one environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Machine<'_> {
    /// Paths at which a client may have its file, best first. A pattern with `*` gives the files
    /// that exist.
    #[must_use]
    pub fn candidates(&self, client: &Client) -> Vec<PathBuf> {
        let patterns = client.env_paths.iter().chain(client.paths.on(self.system));
        let mut paths = Vec::new();
        for path in patterns.flat_map(|pattern| self.expand(pattern)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// The file to create where no candidate exists; `None` if the client is not made for the
    /// system.
    #[must_use]
    pub fn to_create(&self, client: &Client) -> Option<PathBuf> {
        let first = client.paths.on(self.system).first()?;
        let env = client.env_paths.iter().find_map(|pattern| self.place(pattern));
        env.or_else(|| self.place(client.create.as_ref().unwrap_or(first)))
    }

    /// True if the client seems to be there: a folder of it, or its program in `PATH`.
    #[must_use]
    pub fn has(&self, client: &Client) -> bool {
        !client.paths.on(self.system).is_empty()
            && client.detect.iter().any(|pattern| {
                if client.scope != Scope::User || is_path(pattern) {
                    self.expand(pattern).iter().any(|path| path.exists())
                } else {
                    self.has_program(pattern)
                }
            })
    }

    /// The paths of a pattern: one, or the existing ones that fit a `*`.
    fn expand(&self, pattern: &str) -> Vec<PathBuf> {
        let Some(place) = self.place(pattern) else { return Vec::new() };
        let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((begin, end)) = name.split_once('*') else { return vec![place] };
        let folder = place.parent().unwrap_or(self.folder);
        let entries = fs_err::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| fits(name, begin, end)).collect();
        names.sort_unstable();
        names.into_iter().map(|name| folder.join(name)).collect()
    }

    /// The path of a pattern; `None` if the variable at its beginning is not set.
    fn place(&self, pattern: &str) -> Option<PathBuf> {
        let (first, rest) = pattern.split_once('/').unwrap_or((pattern, ""));
        let base = match first.strip_prefix('$') {
            _ if first == "~" => self.home.to_owned(),
            Some("XDG_CONFIG_HOME") => {
                // By the rules of XDG a relative path counts as unset.
                let set = self.value("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
                set.unwrap_or_else(|| self.home.join(".config"))
            }
            Some(name) => self.folder_of(name)?,
            None if first.starts_with('%') => self.of_windows(first.trim_matches('%'))?,
            None => return Some(self.folder.join(pattern)),
        };
        Some(if rest.is_empty() { base } else { base.join(rest) })
    }

    fn of_windows(&self, name: &str) -> Option<PathBuf> {
        if self.system != System::Windows {
            return None;
        }
        self.folder_of(name).or_else(|| match name {
            "APPDATA" => Some(self.home.join("AppData/Roaming")),
            "LOCALAPPDATA" => Some(self.home.join("AppData/Local")),
            _ => None,
        })
    }

    /// The whole path of the folder that a variable names: an undo may run in another folder.
    fn folder_of(&self, name: &str) -> Option<PathBuf> {
        let folder = self.value(name)?;
        Some(std::path::absolute(&folder).unwrap_or(folder))
    }

    fn value(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name).filter(|value| !value.is_empty())?;
        Some(match value.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => PathBuf::from(value),
        })
    }

    fn has_program(&self, name: &str) -> bool {
        let path = (self.variable)("PATH").unwrap_or_default();
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).any(|folder| {
            let metadata = fs_err::metadata(folder.join(name));
            metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
    }
}

impl Paths {
    pub(super) fn on(&self, system: System) -> &[String] {
        match system {
            System::Linux => &self.linux,
            System::Macos => &self.macos,
            System::Windows => &self.windows,
        }
    }
}

/// True if a name has the form of a pattern with these texts around its `*`.
pub(super) fn fits(name: &str, begin: &str, end: &str) -> bool {
    name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end))
}

/// True if a word of `detect` is a path, and no program.
fn is_path(pattern: &str) -> bool {
    pattern.contains(['/', '.', '*']) || pattern.starts_with(['~', '$', '%'])
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("system", &self.system)
            .field("home", &self.home)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
