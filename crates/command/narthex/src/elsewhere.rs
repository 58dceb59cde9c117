//! The flags by which a client starts `narthex connect` for the same daemon.
//!
//! A client has the home directory of its user, and no other variable of this shell: so each place
//! that a variable has changed is named.

use std::path::{Path, PathBuf};

use narthex_client::{Failure, environment::usual_data, settings_files::SETTINGS_FILE};

use crate::config::{self, Settings, own_folder, usual_servers};

/// The variable with the file of the user's servers.
const SERVERS: &str = "NARTHEX_SERVERS";
/// The flag with it.
const SERVERS_FLAG: &str = "--servers";

/// The places that a program without the variables of this shell would not find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The data directory.
    pub(crate) data: Option<PathBuf>,
    /// The settings file.
    pub(crate) settings: Option<PathBuf>,
    /// The file of the user's servers.
    pub(crate) servers: Option<PathBuf>,
}

impl Elsewhere {
    /// The places of this process.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self::with(settings, &config::variable)
    }

    fn with(settings: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let bare = |name: &str| env(name).filter(|_| name == "HOME");
        let unless = |found: &Path, usual: Option<PathBuf>| {
            (usual.as_deref() != Some(found)).then(|| found.to_owned())
        };
        let daemon = &settings.daemon;
        // A file that is named must be there.
        let file =
            |env: &dyn Fn(&str) -> Option<String>| Some(own_folder(env)?.join(SETTINGS_FILE));
        let own = file(env).filter(|file| file.exists());
        let named = daemon.settings.clone().or_else(|| unless(&own?, file(&bare)));
        // A line of the settings file goes with that file.
        let is_of_shell = matches!(settings.source("servers"), None | Some(SERVERS | SERVERS_FLAG));
        let servers = settings.servers.as_deref().filter(|file| is_of_shell && file.exists());
        Self {
            data: unless(&daemon.data, usual_data(&bare).ok()),
            settings: named,
            servers: servers.and_then(|file| unless(file, usual_servers(&bare))),
        }
    }

    /// The arguments of `narthex connect`, with whole paths.
    ///
    /// # Errors
    /// When the current folder, from which a path counts, cannot be used.
    pub(crate) fn arguments(&self) -> Result<Vec<String>, Failure> {
        let Self { data, settings, servers } = self;
        let mut arguments = Vec::new();
        for (flag, path) in [("--data", data), ("--settings", settings), (SERVERS_FLAG, servers)] {
            let Some(path) = path else { continue };
            let path = std::path::absolute(path)?.to_string_lossy().into_owned();
            arguments.extend([flag.to_owned(), path]);
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use narthex_client::settings_files::SERVERS_FILE;

    use super::*;
    use crate::config::{Flags, load_from};

    /// A home folder, and another one for configurations with both files.
    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("other/narthex");
        fs_err::create_dir_all(&own).unwrap();
        fs_err::write(own.join(SETTINGS_FILE), "").unwrap();
        fs_err::write(own.join(SERVERS_FILE), "{}").unwrap();
        home
    }

    fn elsewhere(home: &Path, variables: &[(&str, &str)], flags: &Flags) -> Vec<String> {
        let env = |name: &str| {
            let set = variables.iter().find(|(known, _)| *known == name);
            let below = set.map(|(_, path)| home.join(path).display().to_string());
            below.or_else(|| (name == "HOME").then(|| home.display().to_string()))
        };
        let settings = load_from(flags, &env).unwrap();
        let arguments = Elsewhere::with(&settings, &env).arguments().unwrap();
        let home = format!("{}/", home.display());
        arguments.into_iter().map(|one| one.replace(&home, "")).collect()
    }

    #[test]
    fn places_that_variables_have_changed_are_named() {
        let home = home();
        let of = |variables: &[(&str, &str)]| {
            elsewhere(home.path(), variables, &Flags::default()).join(" ")
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")]), "");
        assert_eq!(of(&[("XDG_DATA_HOME", "data")]), "--data data/narthex");
        assert_eq!(of(&[("NARTHEX_DATA", "data")]), "--data data");
        let both = "--settings other/narthex/narthex.toml --servers other/narthex/settings.json";
        assert_eq!(of(&[("XDG_CONFIG_HOME", "other")]), both);
        // Files that are not there would be refused.
        assert_eq!(of(&[("XDG_CONFIG_HOME", "empty")]), "");
        let servers = "other/narthex/settings.json";
        assert_eq!(of(&[("NARTHEX_SERVERS", servers)]), format!("--servers {servers}"));
        let file = "other/narthex/narthex.toml";
        assert_eq!(of(&[("NARTHEX_SETTINGS", file)]), format!("--settings {file}"));
    }

    #[test]
    fn a_line_of_the_settings_file_goes_with_that_file() {
        let home = home();
        let file = home.path().join("own.toml");
        let servers = home.path().join("other/narthex/settings.json");
        fs_err::write(&file, format!("servers = '{}'\n", servers.display())).unwrap();
        let flags = Flags { settings: Some(file), ..Flags::default() };
        assert_eq!(elsewhere(home.path(), &[], &flags), ["--settings", "own.toml"]);
    }
}
