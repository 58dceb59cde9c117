//! Instructions that a process executes, by callgrind: the same on a busy machine as on a quiet
//! one, and on machines whose counters may not be read.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::peers::install;
use crate::process::{answers, capture};

const SOON: Duration = Duration::from_secs(120);

pub(in crate::bench) struct Counter {
    out: std::cell::RefCell<PathBuf>,
}

impl Counter {
    /// `None` if the programs are not there.
    pub(in crate::bench) fn find() -> Option<Self> {
        answers("valgrind", &["--version"]).then(|| Self { out: Default::default() })
    }

    /// Installs the programs if they are missing.
    pub(in crate::bench) fn find_or_install() -> Result<Self> {
        if let Some(counter) = Self::find() {
            return Ok(counter);
        }
        install::apt_install(&["valgrind"])?;
        Self::find().context("valgrind was installed and does not start")
    }

    /// A program to be started under it. Nothing is counted yet.
    pub(in crate::bench) fn under(&self, program: &Command, dir: &Path) -> Command {
        let out = dir.join("callgrind.out");
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--instr-atstart=no", "--quiet"]);
        let mut to = std::ffi::OsString::from("--callgrind-out-file=");
        to.push(&out);
        command.arg(to).arg(program.get_program());
        self.out.replace(out);
        command
    }

    /// The instructions of `work`, for each of the calls that it has made.
    pub(in crate::bench) fn count(
        &self,
        process: u32,
        work: impl FnOnce() -> Result<u64>,
    ) -> Result<f64> {
        let out = self.out.borrow();
        // Switched on once and for all: counts that resume after a break come out wrong.
        control(process, "--instr=on")?;
        control(process, "--dump")?;
        for old in dumps(&out)? {
            fs::remove_file(old)?;
        }
        let calls = work()?;
        control(process, "--dump")?;
        let mut all = 0;
        for dump in dumps(&out)? {
            all += summary(&fs::read_to_string(&dump)?)
                .with_context(|| format!("{} has no summary", dump.display()))?;
        }
        ensure!(all > 0 && calls > 0, "nothing was counted");
        Ok(super::super::report::bytes(all) / super::super::report::bytes(calls))
    }
}

fn control(process: u32, order: &str) -> Result<()> {
    let done =
        capture(Command::new("callgrind_control").args([order, &process.to_string()]), SOON)?;
    ensure!(done.status.success(), "callgrind_control {order}: {}{}", done.stdout, done.stderr);
    Ok(())
}

/// The files written so far: the given name, with numbers.
fn dumps(out: &Path) -> Result<Vec<PathBuf>> {
    let name = out.file_name().context("a file has a name")?.to_string_lossy().into_owned();
    let folder = out.parent().context("a file is in a folder")?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The instructions that a dump has counted.
fn summary(dump: &str) -> Option<u64> {
    let line = dump.lines().find_map(|line| line.strip_prefix("summary:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn the_summary_is_read() {
        let dump = "# callgrind format\nevents: Ir\nsummary: 12345\n\nfn=(1) x\n1 12\ntotals: 12\n";
        assert_eq!(summary(dump), Some(12_345));
        assert_eq!(summary("events: Ir\n"), None);
    }
}
