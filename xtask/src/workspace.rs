//! The folders and files of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the checkout that this program was built from.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the root of the workspace").to_path_buf()
}

/// The folder of all that builds and installs leave behind.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A program of the workspace, as `cargo build` leaves it.
pub(crate) fn built(program: &str) -> PathBuf {
    target().join("debug").join(program)
}

/// A program of the workspace, as `cargo build --profile` leaves it.
pub(crate) fn built_as(profile: &str, program: &str) -> PathBuf {
    target().join(profile).join(program)
}

/// The cargo that runs this program, started in the root.
///
/// It does not inherit what cargo tells this program about its package: build scripts such as
/// ring's ask for these variables, and would run again whenever a person starts cargo by hand.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    let is_of_package =
        |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.starts_with(start));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}
