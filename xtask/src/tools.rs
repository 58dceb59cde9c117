//! Programs of crates.io that checks run: pinned, and built into `target/tools` where missing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

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
        let said = Command::new(self.program()).arg("--version").output();
        said.is_ok_and(|said| is_version(&String::from_utf8_lossy(&said.stdout), self.version))
    }
}

fn folder() -> PathBuf {
    workspace::target().join("tools")
}

/// True if a program says that it has this version, with or without its name.
fn is_version(said: &str, version: &str) -> bool {
    said.split_whitespace().next_back() == Some(version)
}

#[cfg(test)]
mod tests {
    use super::is_version;

    #[test]
    fn a_version_must_equal_the_pinned_version() {
        assert!(is_version("cargo-deny 0.20.2\n", "0.20.2") && is_version("0.9.2\n", "0.9.2"));
        for other in ["cargo-deny 0.20.20\n", "0.20\n", "", "cargo-deny\n"] {
            assert!(!is_version(other, "0.20.2"), "{other:?}");
        }
    }
}
