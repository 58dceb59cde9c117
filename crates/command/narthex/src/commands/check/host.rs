//! The host: programs that usually start servers.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::{NetworkAccess, ServerDefinition, StdioTarget, Target};
use narthex_registry::config::Entry;

use super::{Check, Level, browsers};
use crate::{commands::source::Unfilled, config};

const NODE_HINT: &str = "install Node.js (https://nodejs.org)";

/// The programs of all entries that are to be started.
pub(super) fn targets(files: &[Unfilled]) -> impl Iterator<Item = (&str, &StdioTarget)> {
    definitions(files).filter_map(|definition| match &definition.target {
        Target::Stdio(target) => Some((definition.alias.as_str(), target)),
        Target::Http(_) => None,
    })
}

/// All entries that are not disabled.
pub(super) fn definitions(files: &[Unfilled]) -> impl Iterator<Item = &ServerDefinition> {
    let loaded = files.iter().filter_map(|file| file.loaded.as_ref().ok());
    loaded.flat_map(|loaded| &loaded.entries).filter_map(|entry| match entry {
        Entry::Server(definition) if !definition.is_disabled => Some(definition),
        Entry::Server(_) | Entry::Fault(_) => None,
    })
}

/// Checks for the usual launchers, and for other programs that entries need.
pub(super) fn programs(files: &[Unfilled]) -> Vec<Check> {
    let needs = |names: &[&str]| {
        targets(files).any(|(_, target)| names.contains(&program_name(&target.command)))
    };
    let mut checks = vec![program("NODE", "node", NODE_HINT)];
    let npx = program("NPX", "npx", NODE_HINT);
    // Most published servers are started with it.
    let level = if npx.level == Level::Warn { Level::Error } else { npx.level };
    checks.push(Check { level, ..npx });
    if needs(&["uv", "uvx"]) {
        checks.push(program("UVX", "uvx", "install uv (https://docs.astral.sh/uv)"));
    }
    if needs(&["python", "python3"]) {
        let hint = "install Python 3 (https://www.python.org)";
        checks.push(program("PYTHON", "python3", hint));
    }
    checks.extend(browsers::checks(targets(files).map(|(_, target)| target)));
    checks.extend(confinement(files));
    checks
}

fn program(code: &'static str, name: &str, hint: &str) -> Check {
    match find(name, Path::new("")) {
        Some(path) => Check::info(code, format!("{name} is {}", path.display())),
        None => Check::warn(code, format!("{name} is not in PATH"), hint),
    }
}

/// The programs and files that entries with a `confinement` need.
fn confinement(files: &[Unfilled]) -> Vec<Check> {
    let mut checks = Vec::new();
    let asked = || targets(files).filter_map(|(_, target)| target.confinement.as_deref());
    if asked().any(|one| one.has_namespaces) {
        checks.push(program("BWRAP", "bwrap", "install bubblewrap"));
    }
    let needs_landlock =
        asked().any(|one| one.files.is_some() || matches!(one.network, NetworkAccess::Connect(_)));
    if needs_landlock {
        checks.push(match fs::read_to_string("/sys/kernel/security/lsm") {
            Ok(modules) if modules.split(',').any(|one| one.trim() == "landlock") => {
                Check::info("LANDLOCK", "this kernel has Landlock")
            }
            Ok(modules) => {
                let hint = "start the kernel with landlock in its list lsm=, 5.13 or newer";
                Check::warn(
                    "LANDLOCK",
                    "this kernel has no Landlock, so confined servers are refused",
                    hint,
                )
                .detail(modules.trim())
            }
            Err(error) => {
                Check::info("LANDLOCK", "narthex cannot find out if this kernel has Landlock")
                    .detail(error.to_string())
            }
        });
    }
    checks
}

/// The last part of a command.
pub(super) fn program_name(command: &str) -> &str {
    command.rsplit('/').next().unwrap_or(command)
}

/// The file that a command names, if it can be executed.
pub(super) fn find(command: &str, folder: &Path) -> Option<PathBuf> {
    if command.contains('/') {
        let file = folder.join(command);
        return is_executable(&file).then_some(file);
    }
    let path = config::variable("PATH")?;
    let places = std::env::split_paths(&path).map(|place| folder.join(place).join(command));
    places.into_iter().find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
