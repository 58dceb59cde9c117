//! The program of a release: its build, and what it needs of the machine that runs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process;
use crate::tools;
use crate::workspace;

const PROFILE: &str = "dist";
/// The section of the program with the list of its dependencies.
const LIST: &str = ".dep-v0";
const READ: Duration = Duration::from_secs(60);

/// Builds the program with the list of its dependencies inside.
pub(super) fn build() -> Result<PathBuf> {
    let mut cargo = tools::AUDITABLE.command()?;
    cargo.args(["auditable", "build", "--locked", "--profile", PROFILE]);
    process::run(cargo.args(["--package", "narthex", "--bin", "narthex"]))?;
    let binary = workspace::built_as(PROFILE, "narthex");
    if cfg!(target_os = "linux") {
        let sections = readelf(&["--section-headers"], &binary)?;
        let has_list = sections.contains(LIST);
        ensure!(has_list, "{} has no list of its dependencies", binary.display());
    }
    Ok(binary)
}

/// The parts of the system that a program needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// The oldest version of glibc that has all its functions; `None` on other systems.
    pub(super) glibc: Option<(u32, u32)>,
    /// Shared libraries by name.
    pub(super) libraries: Vec<String>,
}

impl Needs {
    /// Reads them with `readelf`, which comes with the linker of Linux.
    pub(super) fn of(binary: &Path) -> Result<Self> {
        if !cfg!(target_os = "linux") {
            return Ok(Self { glibc: None, libraries: Vec::new() });
        }
        let versions = readelf(&["--version-info"], binary)?;
        let glibc = glibc(&versions)
            .with_context(|| format!("{} names no version of glibc", binary.display()))?;
        let libraries = libraries(&readelf(&["--dynamic"], binary)?);
        Ok(Self { glibc: Some(glibc), libraries })
    }
}

fn readelf(args: &[&str], binary: &Path) -> Result<String> {
    let mut command = Command::new("readelf");
    command.arg("--wide").args(args).arg(binary);
    let done = process::capture(&mut command, READ)?;
    ensure!(done.status.success(), "readelf cannot read {}: {}", binary.display(), done.stderr);
    Ok(done.stdout)
}

/// The newest version of glibc among the versions that a program asks for.
fn glibc(versions: &str) -> Option<(u32, u32)> {
    let names = versions.split("GLIBC_").skip(1);
    let read = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    names.filter_map(read).max()
}

/// The names of libraries in `readelf --dynamic`.
fn libraries(dynamic: &str) -> Vec<String> {
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let names = needed.filter_map(|line| line.split_once('[')?.1.split_once(']'));
    let mut names: Vec<_> = names.map(|(name, _)| name.to_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_counts_by_number() {
        let said = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 5\n\
                    0x0020:   Name: GLIBC_2.34  Flags: none  Version: 4\n\
                    0x0030:   Name: GLIBC_2.2.5  Flags: none\n  0x4: Name: GLIBC_PRIVATE\n";
        assert_eq!(glibc(said), Some((2, 34)));
        assert_eq!(glibc("No version information found in this file.\n"), None);
    }

    #[test]
    fn needed_libraries_are_read() {
        let said = " 0x01 (NEEDED)  Shared library: [libm.so.6]\n\
                    0x01 (NEEDED)  Shared library: [libc.so.6]\n\
                    0x0e (SONAME)  Library soname: [x.so]\n";
        assert_eq!(libraries(said), ["libc.so.6", "libm.so.6"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_needs_of_this_test_program_are_found() {
        let needs = Needs::of(&std::env::current_exe().unwrap()).unwrap();
        assert!(needs.glibc.unwrap() >= (2, 17), "{needs:?}");
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"), "{needs:?}");
    }
}
