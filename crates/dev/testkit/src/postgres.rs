//! A private PostgreSQL server for tests: in a temporary folder, on a Unix socket alone, and gone
//! with the process that started it, however that ended.
//!
//! `cargo xtask test` starts one for all tests and names its folder in [`VARIABLE`]. Without that,
//! each process that asks for a database starts one of its own.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context, Result, bail};
use fs_err as fs;

/// Names the folder of a server that runs already.
pub const VARIABLE: &str = "NARTHEX_TEST_POSTGRES";
/// The superuser of the server, and its password.
const USER: &str = "narthex";
const PASSWORD: &str = "pw-of-tests";
/// The folder in which Debian has the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Makes the server, and takes it away when its standard input ends: the system sees to that, also
/// when the owner is killed.
const SCRIPT: &str = include_str!("postgres/server.sh");

/// A running server. It is stopped and its folder removed once this is dropped or its process ends.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    programs: PathBuf,
    keeper: Option<Child>,
}

/// An empty database.
#[derive(Debug, Clone)]
pub struct Database {
    /// The URL, with user and password.
    pub url: String,
    /// The name alone.
    pub name: String,
}

impl Server {
    /// Starts one; `None` if PostgreSQL is not installed.
    ///
    /// # Errors
    /// When it does not start; its output is in the standard error of this process.
    pub fn start() -> Result<Option<Self>> {
        let Some(programs) = programs()? else { return Ok(None) };
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&programs).args([USER, PASSWORD]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Apart from this process's group, which may be killed as one.
        let mut keeper = command.process_group(0).spawn().context("cannot start sh")?;
        let stdout = keeper.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let dir = line.trim_end();
        if dir.is_empty() {
            bail!("PostgreSQL of {} did not start, see above", programs.display());
        }
        Ok(Some(Self { dir: dir.into(), programs, keeper: Some(keeper) }))
    }

    /// The folder of its socket.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes a database. `options` are those of `createdb`.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn create(&self, options: &[&str]) -> Result<Database> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).context("there is no randomness")?;
        let name = format!("t{:016x}", u64::from_ne_bytes(random));
        let mut command = Command::new(self.programs.join("createdb"));
        command.args(["--template", "template0", "--username", USER, "--host"]).arg(&self.dir);
        command.env("PGPASSWORD", PASSWORD).args(options).arg(&name).stdin(Stdio::null());
        let done = command.output().context("cannot start createdb")?;
        if !done.status.success() {
            bail!("createdb failed: {}", String::from_utf8_lossy(&done.stderr));
        }
        let socket = self.dir.display().to_string().replace('/', "%2F");
        Ok(Database { url: format!("postgres://{USER}:{PASSWORD}@{socket}/{name}"), name })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            drop(keeper.stdin.take());
            // If it was killed, there is nothing left to wait for.
            keeper.wait().ok();
        }
    }
}

/// An empty database for one test. `None`, with a note on standard error, if PostgreSQL is not
/// installed and not required.
///
/// # Panics
/// If there is a server that gives none.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn database(options: &[&str]) -> Option<Database> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| server().expect("PostgreSQL starts"));
    let Some(server) = server else {
        eprintln!("SKIPPED on PostgreSQL, which is not installed");
        return None;
    };
    Some(server.create(options).expect("a database is made"))
}

#[expect(clippy::disallowed_methods, reason = "the test command tells its tests of its server")]
fn server() -> Result<Option<Server>> {
    let Ok(dir) = std::env::var(VARIABLE) else { return Server::start() };
    let programs = programs()?.context("PostgreSQL was promised and is not installed")?;
    Ok(Some(Server { dir: dir.into(), programs, keeper: None }))
}

/// The folder of the newest version's programs.
fn programs() -> Result<Option<PathBuf>> {
    let mut found: Option<(u32, PathBuf)> = None;
    if Path::new(DEBIAN).is_dir() {
        for entry in fs::read_dir(DEBIAN)? {
            let entry = entry?;
            let version = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let programs = entry.path().join("bin");
            if let (Some(version), true) = (version, programs.join("initdb").is_file()) {
                found = found.max(Some((version, programs)));
            }
        }
    }
    Ok(found.map(|(_, programs)| programs))
}
