//! The files that every program needs to run, in addition to its permitted files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs, libraries, settings of the system, and its information about itself.
pub(super) const SYSTEM: [&str; 11] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/proc", "/sys",
];

/// Devices that keep nothing and give nothing away.
pub(super) const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The download folders of package runners: the program, the variable that names the folder, and
/// the folder below HOME if there is none.
const CACHES: [(&str, &str, &str); 13] = [
    ("npx", "npm_config_cache", ".npm"),
    ("npm", "npm_config_cache", ".npm"),
    ("pnpm", "XDG_CACHE_HOME", ".cache/pnpm"),
    ("pnpm", "", ".local/share/pnpm"),
    ("yarn", "XDG_CACHE_HOME", ".cache/yarn"),
    ("bunx", "", ".bun"),
    ("uvx", "UV_CACHE_DIR", ".cache/uv"),
    ("uvx", "", ".local/share/uv"),
    ("uv", "UV_CACHE_DIR", ".cache/uv"),
    ("uv", "", ".local/share/uv"),
    ("pipx", "PIP_CACHE_DIR", ".cache/pip"),
    ("pipx", "", ".local/share/pipx"),
    ("pipx", "", ".cache/pipx"),
];

/// The parts of a program with its own installation folder, such as a version of node below its
/// user's home.
const INSTALLED: [&str; 5] = ["bin", "lib", "lib64", "libexec", "pyvenv.cfg"];

/// The folders of a program and its parts: the folder of the file, and its neighbours where that is
/// a `bin`. Never the folder above it as a whole, which may be a user's home.
pub(super) fn of_program(file: &Path) -> Vec<PathBuf> {
    let resolved = fs_err::canonicalize(file).ok();
    let files = [Some(file.to_owned()), resolved].into_iter().flatten();
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in files.filter_map(|file| file.parent().map(Path::to_owned)) {
        let above = folder.parent().filter(|_| folder.file_name() == Some(OsStr::new("bin")));
        match above {
            Some(above) => found.extend(INSTALLED.iter().map(|part| above.join(part))),
            // A single program in an open folder brings no neighbours.
            None if is_open(&folder) => found.push(file.to_owned()),
            None => found.push(folder),
        }
    }
    found
}

/// Folders for temporary files of all programs.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// True if a folder is too wide to be allowed only because a program lies or runs there: it has
/// files of others, or a user's home.
pub(super) fn is_open(folder: &Path) -> bool {
    let shared = SHARED.iter().map(PathBuf::from).chain([std::env::temp_dir()]);
    let mut wide = std::env::home_dir().into_iter().chain(shared);
    folder.parent().is_none() || wide.any(|wide| wide.starts_with(folder))
}

/// The caches that a package runner must be able to write.
pub(super) fn caches(command: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let Some(program) = command.file_name().and_then(OsStr::to_str) else { return Vec::new() };
    let home = variable("HOME");
    let own = CACHES.iter().filter(|(runner, _, _)| *runner == program);
    own.filter_map(|(_, name, below_home)| {
        variable(name).or_else(|| home.as_ref().map(|home| home.join(below_home)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_bin_folder_may_read_its_libraries_and_not_its_home() {
        let found = of_program(Path::new("/nowhere/home/bin/tool"));
        assert!(found.contains(&"/nowhere/home/lib".into()), "{found:?}");
        assert!(!found.contains(&"/nowhere/home".into()), "{found:?}");
    }

    /// Only the program itself is added, without its neighbours.
    #[test]
    fn a_program_in_a_shared_folder_brings_no_neighbours() {
        for folder in ["/tmp", "/var/tmp", "/dev/shm", "/"] {
            let file = Path::new(folder).join("no-such-tool");
            assert_eq!(of_program(&file), std::slice::from_ref(&file), "{folder}");
        }
        assert_eq!(of_program(Path::new("/tmp/own/tool")), [PathBuf::from("/tmp/own")]);
    }

    #[test]
    fn cache_folders_follow_their_environment_variables() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/u".into()),
            "UV_CACHE_DIR" => Some("/cache".into()),
            _ => None,
        };
        let expected: [PathBuf; 2] = ["/cache".into(), "/home/u/.local/share/uv".into()];
        assert_eq!(caches(Path::new("/usr/bin/uvx"), variable), expected);
        assert!(caches(Path::new("node"), variable).is_empty());
    }
}
