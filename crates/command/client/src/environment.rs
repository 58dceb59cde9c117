//! Reads the environment. No other module of the project reads environment variables.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use narthex_model::{ErrorKind, Secret};

use crate::Failure;

/// The variable with the token for an operator's commands.
pub const TOKEN: &str = "NARTHEX_TOKEN";

/// One environment variable, if it is set and valid text.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The names of all environment variables that are text. No value is read.
pub fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// The token in the environment. Scripts unset it by an empty value.
pub fn token() -> Option<Secret> {
    variable(TOKEN).filter(|text| !text.is_empty()).map(Secret::new)
}

/// True if the environment has an empty token.
pub fn is_token_empty() -> bool {
    variable(TOKEN).is_some_and(|text| text.is_empty())
}

/// True if the terminal's language setting can show more than ASCII.
pub fn is_utf8_locale() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// True if the environment does not forbid colours.
pub fn may_have_colours() -> bool {
    let is_refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_refused && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Variables that lead to the data and the settings, which are named where they matter, and those
/// of commands alone.
const NOT_OF_A_DAEMON: [&str; 10] = [
    "NARTHEX_DATA",
    "NARTHEX_SETTINGS",
    TOKEN,
    "NARTHEX_CLIENT_TOKEN",
    "NARTHEX_DAEMON_URL",
    "NARTHEX_TOKEN_FILE",
    "NARTHEX_CA_FILE",
    "NARTHEX_DAEMON_FINGERPRINT",
    "NARTHEX_REGISTRY",
    "NARTHEX_RELEASES",
];
/// The variables of other programs that a daemon reads, in capitals.
const SHARED: [&str; 5] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Beginnings of the variables that no settings file may hold: keys and passwords.
const SECRETS: [&str; 3] = ["NARTHEX_MASTER_KEY", "NARTHEX_OIDC_SECRET_", "NARTHEX_OAUTH_SECRET_"];

/// Variables of this process that a daemon reads, and that a service, or a client which starts the
/// daemon, does not have.
#[derive(Debug, Default)]
pub struct Lost {
    settings: Vec<String>,
    secrets: Vec<String>,
}

impl Lost {
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(names().filter(|name| variable(name).is_some_and(|value| !value.is_empty())))
    }

    fn of(names: impl Iterator<Item = String>) -> Self {
        let is_read = |name: &String| {
            let is_ours = name.starts_with("NARTHEX_");
            let is_shared = SHARED.contains(&name.to_ascii_uppercase().as_str());
            is_shared || is_ours && !NOT_OF_A_DAEMON.contains(&name.as_str())
        };
        let mut all: Vec<_> = names.filter(is_read).collect();
        all.sort_unstable();
        let is_secret = |name: &String| SECRETS.iter().any(|secret| name.starts_with(secret));
        let (secrets, settings) = all.into_iter().partition(is_secret);
        Self { settings, secrets }
    }

    /// True if the variable is among them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.settings.iter().chain(&self.secrets).any(|one| one == name)
    }

    /// Sentences for the user about what `which` does not have; none if it lacks nothing.
    #[must_use]
    pub fn sentences(&self, which: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        if !self.settings.is_empty() {
            sentences.push(format!(
                "{which} has no variables of this shell. Put these into the settings file: {}",
                self.settings.join(", ")
            ));
        }
        if !self.secrets.is_empty() {
            sentences.push(format!(
                "{which} has no secrets of this shell, and the settings file holds none: {}. Set \
                 them where it starts, or name their places in the settings file: a keychain for \
                 the master key (`vault.keychain`), a file for a password (`client_secret_file`).",
                self.secrets.join(", ")
            ));
        }
        sentences
    }
}

/// A user's folder by the rules of the XDG base directories; `env` looks up variables.
pub fn user_folder(
    env: &dyn Fn(&str) -> Option<String>,
    variable: &str,
    below_home: &str,
) -> Option<PathBuf> {
    // By the rules of XDG a relative path counts as unset.
    let folder = env(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    folder.or_else(|| Some(home(env)?.join(below_home)))
}

/// The user's home directory; `env` looks up variables.
pub fn home(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The default data directory of the user; `env` looks up variables.
///
/// # Errors
/// When the user has no home directory.
pub fn usual_data(env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    let folder = user_folder(env, "XDG_DATA_HOME", ".local/share");
    folder.map(|folder| folder.join("narthex")).ok_or_else(|| {
        Failure::new(
            ErrorKind::NotFound,
            "there is no home directory to keep data in; name a directory with --data",
        )
    })
}

/// The path of this program, for lines that a user pastes elsewhere and for later starts.
///
/// It is the path by which the program was called: a package manager links it to the present
/// version, and an update has the link lead to another file.
pub fn program() -> OsString {
    let Ok(own) = std::env::current_exe() else { return "narthex".into() };
    let called = std::env::args_os().next().unwrap_or_default();
    let path = path_entries();
    called_path(Path::new(&called), &path, &own).unwrap_or(own).into_os_string()
}

/// The folders in which a shell looks for programs.
fn path_entries() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The whole path for the word by which a program was called; `None` if it leads to another file
/// than the program itself.
fn called_path(called: &Path, folders: &[PathBuf], own: &Path) -> Option<PathBuf> {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    let own = real(own)?;
    let is_own = |path: &PathBuf| path.is_absolute() && real(path).is_some_and(|path| path == own);
    let is_word = called.components().count() == 1 && !called.has_root();
    let candidates: Vec<_> = match is_word {
        true => folders.iter().map(|folder| folder.join(called)).collect(),
        false => std::path::absolute(called).into_iter().collect(),
    };
    candidates.into_iter().find(is_own)
}

/// Refuses to write the path of this program into files that last, if the program lies in the cache
/// of a tool, which may empty it: `npx`, `uvx` or `pipx run`.
///
/// # Errors
/// With the command that installs the program for good.
pub fn check_lasting() -> Result<(), Failure> {
    // A link elsewhere that leads into the cache lasts no longer than the cache.
    let paths = [PathBuf::from(program()), std::env::current_exe().unwrap_or_default()];
    let in_cache = paths.iter().find_map(|path| Some((path, lasting_install(path)?)));
    let Some((program, install)) = in_cache else { return Ok(()) };
    let text = format!(
        "the program {} lies in a cache that may be emptied, so clients and services could not \
         start it later; install it first with `{install}`, then run this command with the \
         installed program",
        program.display()
    );
    Err(Failure::new(ErrorKind::Conflict, text))
}

/// The command that installs a program for good; `None` for a program that no tool's cache has.
fn lasting_install(program: &Path) -> Option<&'static str> {
    let names: Vec<_> = program.iter().filter_map(|name| name.to_str()).collect();
    let has = |first: &str, second: &str| {
        names
            .iter()
            .position(|name| *name == first)
            .is_some_and(|at| names[at..].iter().any(|name| name.starts_with(second)))
    };
    if names.contains(&"_npx") {
        return Some("npm install --global narthex");
    }
    if has("uv", "archive-") || has("uv", "environments-") {
        return Some("uv tool install narthex");
    }
    has("pipx", ".cache").then_some("pipx install narthex")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_the_link_that_it_was_called_by() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for folder in ["bin", "cellar/1.0", "cellar/1.1"] {
            fs_err::create_dir_all(path(folder)).unwrap();
        }
        let (own, link) = (path("cellar/1.0/narthex"), path("bin/narthex"));
        for program in [&own, &path("cellar/1.1/narthex")] {
            fs_err::write(program, "").unwrap();
        }
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let folders = [path("none"), path("bin"), path("cellar/1.0")];
        let called = |word: &Path| called_path(word, &folders, &own);
        assert_eq!(called(&link), Some(link.clone()));
        assert_eq!(called("narthex".as_ref()), Some(link.clone()));
        assert_eq!(called(&own), Some(own.clone()));
        // A word that another program chose, and a link that leads elsewhere by now.
        assert_eq!(called("other".as_ref()), None);
        assert_eq!(called("".as_ref()), None);
        assert_eq!(called_path("narthex".as_ref(), &[PathBuf::from("bin")], &own), None);
        fs_err::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(path("cellar/1.1/narthex"), &link).unwrap();
        assert_eq!(called(&link), None);
        assert_eq!(called("narthex".as_ref()), Some(own.clone()));
    }

    #[test]
    fn variables_that_a_daemon_reads_are_named_and_no_others() {
        let names = [
            "NARTHEX_TOOLS",
            "HOME",
            "NARTHEX_DATA",
            "NARTHEX_DAEMON_URL",
            "NARTHEX_MASTER_KEY",
            "https_proxy",
            "NARTHEX_OIDC_SECRET_CORP",
            "NARTHEX_OAUTH_SECRET_CHAT",
        ];
        let lost = Lost::of(names.into_iter().map(str::to_owned));
        let sentences = lost.sentences("The service");
        assert_eq!(
            sentences[0],
            "The service has no variables of this shell. Put these into the settings file: \
             NARTHEX_TOOLS, https_proxy"
        );
        let secrets = "holds none: NARTHEX_MASTER_KEY, NARTHEX_OAUTH_SECRET_CHAT, \
                       NARTHEX_OIDC_SECRET_CORP. Set them where";
        assert!(sentences[1].contains(secrets), "{sentences:?}");
        assert!(lost.has("NARTHEX_MASTER_KEY") && !lost.has("HOME"));
        assert!(Lost::default().sentences("The service").is_empty());
    }

    #[test]
    fn a_program_in_the_cache_of_a_tool_is_known() {
        for (path, install) in [
            ("/home/x/.npm/_npx/1a2b/node_modules/@narthex/linux-x64/bin/narthex", Some("npm")),
            ("/home/x/.cache/uv/archive-v0/1a2b/bin/narthex", Some("uv")),
            ("/home/x/.cache/uv/environments-v2/1a2b/bin/narthex", Some("uv")),
            ("/home/x/.local/pipx/.cache/1a2b/bin/narthex", Some("pipx")),
            ("/usr/lib/node_modules/@narthex/linux-x64/bin/narthex", None),
            ("/home/x/.local/share/uv/tools/narthex/bin/narthex", None),
            ("/home/x/.local/pipx/venvs/narthex/bin/narthex", None),
            ("/usr/bin/narthex", None),
        ] {
            let found = lasting_install(Path::new(path));
            assert_eq!(found.and_then(|words| words.split(' ').next()), install, "{path}");
        }
    }
}
