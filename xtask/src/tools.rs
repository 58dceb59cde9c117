//! Programs of crates.io that checks run: pinned, and built into `target/tools` where missing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::process;
use crate::workspace::{self, cargo};

/// A program of crates.io.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

/// Licences, sources, double versions and advisories of dependencies.
pub(crate) const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
/// Dependencies that no code uses.
pub(crate) const MACHETE: Tool = Tool { name: "cargo-machete", version: "0.9.2" };
/// A list of dependencies inside of the program that it builds.
pub(crate) const AUDITABLE: Tool = Tool { name: "cargo-auditable", version: "0.7.7" };
/// A list of dependencies as a document of its own.
pub(crate) const CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9" };

impl Tool {
    /// The program, started in the root. It is built first unless this version is there; that
    /// needs crates.io, and minutes.
    pub(crate) fn command(&self) -> Result<Command> {
        let program = self.program();
        if !self.is_installed() {
            let folder = folder();
            println!("{} {}: building it into {}", self.name, self.version, folder.display());
            let install = ["install", "--locked", "--force", "--debug", "--version", self.version];
            let mut install = cargo(&install);
            // It runs once or twice: to build it fast counts for more than to run it fast.
            install.env("CARGO_PROFILE_DEV_DEBUG", "0");
            process::run(install.arg("--root").arg(folder).arg(self.name))?;
        }
        let mut command = Command::new(program);
        command.current_dir(workspace::root());
        Ok(command)
    }

    fn program(&self) -> PathBuf {
        folder().join("bin").join(self.name)
    }

    fn is_installed(&self) -> bool {
        let record = fs::read_to_string(folder().join(RECORD)).unwrap_or_default();
        self.program().exists() && has_version(&record, self.name, self.version)
    }
}

/// The file in which `cargo install` records the versions of a folder.
const RECORD: &str = ".crates.toml";

fn folder() -> PathBuf {
    workspace::target().join("tools")
}

/// True if the record of `cargo install` has this version of a program.
fn has_version(record: &str, name: &str, version: &str) -> bool {
    record.lines().any(|line| line.starts_with(&format!("\"{name} {version} (")))
}

#[cfg(test)]
mod tests {
    use super::has_version;

    #[test]
    fn a_version_must_equal_the_pinned_version() {
        let record = |what: &str| format!("[v1]\n\"{what} (registry+x)\" = [\"cargo-deny\"]\n");
        let has = |what: &str| has_version(&record(what), "cargo-deny", "0.20.2");
        assert!(has("cargo-deny 0.20.2"));
        for other in ["cargo-deny 0.20.20", "cargo-deny 0.20", "my-cargo-deny 0.20.2", ""] {
            assert!(!has(other), "{other:?}");
        }
    }
}
