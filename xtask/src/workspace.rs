//! The folders and files of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

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
    // The first command decides for all: cargo compiles a crate anew that was built the other way.
    static IS_WHOLE: OnceLock<bool> = OnceLock::new();
    let is_whole = || {
        std::env::var_os(INCREMENTAL).is_none() && !has_parts(&target().join("debug/incremental"))
    };
    if *IS_WHOLE.get_or_init(is_whole) {
        command.env(INCREMENTAL, "0");
    }
    command
}

/// Has cargo keep the parts of each crate, so that it compiles less of the crate when that changes.
/// A first build takes half as long again for it.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// True if someone who works on the product has built it in parts. Those of this program do not
/// count: it is built before it can decide.
fn has_parts(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with("narthex"))
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::has_parts;

    #[test]
    fn only_parts_of_the_product_make_builds_incremental() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_parts(&dir.path().join("absent")));
        fs::create_dir(dir.path().join("xtask-1a2b")).unwrap();
        assert!(!has_parts(dir.path()));
        fs::create_dir(dir.path().join("narthex_wire-1a2b")).unwrap();
        assert!(has_parts(dir.path()));
    }
}
