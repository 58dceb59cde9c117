//! The package of Debian in a system that has nothing but `apt`, made for it by `mmdebstrap`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use fs_err as fs;

use super::place::{Place, config, fixture};
use crate::peers::install;
use crate::process;
use crate::workspace;

const SERVER: &str = "/usr/local/bin/narthex-fixture";
const CONFIG: &str = "/etc/narthex/mcp.json";
const DATA: &str = "/var/lib/narthex";
const CHECKED: Duration = Duration::from_secs(120);
/// Findings about texts that the program has by itself, not about the package.
const SUPPRESSED: &str = "spelling-error-in-binary,no-manual-page,initial-upload-closes-no-bugs";

/// Installs the package with `apt`, which fetches what it depends on.
pub(super) fn installed(package: &Path) -> Result<Place> {
    lint(package)?;
    let system = System::new()?;
    let inside = system.path("/tmp/narthex.deb");
    fs::copy(package, &inside)?;
    system.run(&["apt-get", "install", "--yes", "-qq", "/tmp/narthex.deb"])?;
    fs::remove_file(inside)?;
    verify_units(&system)?;
    fs::copy(fixture(), system.path(SERVER))?;
    fs::set_permissions(system.path(SERVER), PermissionsExt::from_mode(0o755))?;
    fs::write(system.path(CONFIG), config(Path::new(SERVER)))?;
    // As the system's unit does it.
    let state = ["install", "-d", "-o", "narthex", "-g", "narthex", "-m", "0700", DATA];
    system.run(&state)?;
    let root = system.root.path().to_string_lossy().into_owned();
    let words = ["chroot", "--userspec=narthex:narthex", &root, "/usr/bin/narthex"];
    let words: Vec<String> = words.map(str::to_owned).to_vec();
    Ok(Place {
        name: "Debian by apt, as user narthex".to_owned(),
        up: words.clone(),
        call: words,
        has_signals: true,
        config: PathBuf::from(CONFIG),
        data: PathBuf::from(DATA),
        folder: PathBuf::from("/"),
        _guards: vec![Box::new(system)],
    })
}

/// A Debian in a folder.
struct System {
    root: tempfile::TempDir,
}

impl System {
    fn new() -> Result<Self> {
        install::provide("mmdebstrap", &["--version"], &["mmdebstrap"])?;
        let folder = workspace::target().join("debian");
        fs::create_dir_all(&folder)?;
        let root = tempfile::tempdir_in(folder)?;
        // Servers and the user of the package go through the folder.
        fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755))?;
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=apt", "--mode=root", &release()?]);
        process::run(command.arg(root.path()))?;
        Ok(Self { root })
    }

    /// A path of the system, from outside.
    fn path(&self, inside: &str) -> PathBuf {
        self.root.path().join(inside.trim_start_matches('/'))
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new("chroot");
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
        process::run(command.arg(self.root.path()).args(words))
    }
}

/// The name of this Debian's release.
fn release() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    ensure!(text.contains("ID=debian"), "the package is tried on Debian only");
    Ok(name.unwrap_or("stable").trim_matches('"').to_owned())
}

/// Has Debian's own checker look for errors in the package.
fn lint(package: &Path) -> Result<()> {
    install::provide("lintian", &["--version"], &["lintian"])?;
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error", "--suppress-tags", SUPPRESSED, "--allow-root"]);
    let done = process::capture(lintian.arg(package), CHECKED)?;
    print!("{}{}", done.stdout, done.stderr);
    ensure!(done.status.success(), "lintian has findings:\n{}", done.stdout);
    Ok(())
}

/// Has systemd read both units. It ends with 0 also when a key is unknown, and prints that.
fn verify_units(system: &System) -> Result<()> {
    install::provide("systemd-analyze", &["--version"], &["systemd"])?;
    for manager in ["system", "user"] {
        let unit = system.path(&format!("/usr/lib/systemd/{manager}/narthex.service"));
        // Its program is not on this machine.
        let text = fs::read_to_string(&unit)?.replace("=/usr/bin/narthex ", "=/bin/sh ");
        let folder = tempfile::tempdir()?;
        let copy = folder.path().join("narthex.service");
        fs::write(&copy, text)?;
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--recursive-errors=no", &format!("--{manager}")]).arg(&copy);
        command.env("XDG_RUNTIME_DIR", folder.path());
        let done = process::capture(&mut command, CHECKED)?;
        let is_good = done.status.success() && done.stderr.is_empty();
        ensure!(is_good, "the unit of {manager}: {}", done.stderr);
    }
    Ok(())
}
