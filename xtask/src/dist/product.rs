//! The contents of all packages: the program, and the texts that it writes about itself.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use fs_err as fs;

use super::build::Needs;
use super::entry::Entry;
use super::platform::Platform;
use crate::process;
use crate::workspace;

/// The version of the workspace, which is that of each package.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The sentence about the program in indexes of packages.
pub(super) const SUMMARY: &str = "Gateway between AI agents and their MCP servers";
pub(super) const LICENSE: &str = "Apache-2.0";

const ANSWERS: Duration = Duration::from_secs(30);
/// Shells with the names of their scripts.
const SHELLS: [(&str, &str); 3] =
    [("bash", "narthex.bash"), ("zsh", "_narthex"), ("fish", "narthex.fish")];

/// The program of one platform with its texts.
pub(super) struct Product {
    pub(super) version: String,
    pub(super) platform: &'static Platform,
    pub(super) binary: Vec<u8>,
    pub(super) needs: Needs,
    /// Manual pages, such as `narthex-call.1`.
    pub(super) manual: Vec<Entry>,
    /// Completion scripts: `narthex.bash`, `_narthex`, `narthex.fish`.
    pub(super) completions: Vec<Entry>,
    pub(super) license: Vec<u8>,
    pub(super) readme: Vec<u8>,
}

impl Product {
    /// Reads a program, and has it write its texts.
    ///
    /// # Errors
    /// When the program cannot run here, or has another version than the workspace.
    pub(super) fn read(binary: &Path, platform: &'static Platform) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let said = ask(binary, home.path(), &["--version"])?;
        ensure!(
            said.trim() == format!("narthex {VERSION}"),
            "{} is {:?}, not narthex {VERSION}",
            binary.display(),
            said.trim()
        );
        let pages = home.path().join("pages");
        ask(binary, home.path(), &["man", &pages.to_string_lossy()])?;
        let mut manual = Vec::new();
        for page in fs::read_dir(&pages)? {
            let page = page?;
            let name = page.file_name().to_string_lossy().into_owned();
            manual.push(Entry::file(name, fs::read(page.path())?));
        }
        ensure!(!manual.is_empty(), "{} wrote no manual pages", binary.display());
        let mut completions = Vec::new();
        for (shell, name) in SHELLS {
            let script = ask(binary, home.path(), &["completions", shell])?;
            completions.push(Entry::file(name, script));
        }
        let root = workspace::root();
        Ok(Self {
            version: VERSION.to_owned(),
            platform,
            binary: fs::read(binary)?,
            needs: Needs::of(binary)?,
            manual,
            completions,
            license: fs::read(root.join("LICENSE"))?,
            readme: fs::read(root.join("README.md"))?,
        })
    }

    pub(super) fn program(&self, path: &str) -> Entry {
        Entry::program(path, self.binary.clone())
    }

    pub(super) fn license(&self, path: &str) -> Entry {
        Entry::file(path, self.license.clone())
    }

    pub(super) fn readme(&self, path: &str) -> Entry {
        Entry::file(path, self.readme.clone())
    }

    /// The completion script of this name.
    pub(super) fn completion(&self, name: &str, path: &str) -> Entry {
        let found = self.completions.iter().find(|entry| entry.path == name);
        Entry::file(path, found.map(|entry| entry.bytes.clone()).unwrap_or_default())
    }
}

/// The output of the program, without settings or variables of this user.
fn ask(binary: &Path, home: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(binary);
    command.args(words).env_clear().env("HOME", home).env("LANG", "C.UTF-8");
    let done = process::capture(&mut command, ANSWERS)?;
    ensure!(
        done.status.success(),
        "{} {} ended with {}\n{}",
        binary.display(),
        words.join(" "),
        done.status,
        done.stderr
    );
    Ok(done.stdout)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::platform::PLATFORMS;
    use super::*;

    /// A product without a program that could run, for tests of the layout of packages.
    pub(in crate::dist) fn product() -> Product {
        Product {
            version: VERSION.to_owned(),
            platform: &PLATFORMS[0],
            binary: b"\x7fELF, as far as a package sees it".to_vec(),
            needs: Needs {
                glibc: Some((2, 34)),
                libraries: ["libc.so.6", "libgcc_s.so.1", "libm.so.6"].map(str::to_owned).into(),
            },
            manual: vec![Entry::file("narthex.1", ".TH narthex 1\n")],
            completions: SHELLS.map(|(shell, name)| Entry::file(name, shell)).into(),
            license: b"the licence".to_vec(),
            readme: b"# narthex\n".to_vec(),
        }
    }

    #[test]
    fn another_program_is_not_packaged() {
        let refused = Product::read(Path::new("/bin/true"), &PLATFORMS[0]);
        let message = refused.err().expect("it has no version").to_string();
        assert!(message.contains("not narthex"), "{message}");
    }
}
