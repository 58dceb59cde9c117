//! PostgreSQL for the tests of the store: Debian's, and one private server for a whole run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::peers::install;
use crate::process::Service;
use crate::workspace;

/// The variable that gives tests the server. Has to be the name that `narthex_testkit::postgres`
/// reads.
const VARIABLE: &str = "NARTHEX_TEST_POSTGRES";
const PROGRAM: &str = "narthex-test-postgres";
/// The folder in which Debian has each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Keeps the package from starting a server for the whole machine.
const NO_SERVER: &str = "/etc/postgresql-common/createcluster.d/narthex-tests.conf";
/// A first start takes seconds, and more on a machine that is busy.
const START: Duration = Duration::from_secs(600);

/// A server that ends with this, and with this program however that ends.
pub(super) struct Postgres {
    folder: String,
    _service: Service,
}

impl Postgres {
    /// Installs PostgreSQL if it is missing, and starts a server. Its program must be built.
    pub(super) fn start() -> Result<Self> {
        install_it()?;
        let log = workspace::target().join("test-postgres.log");
        let mut command = Command::new(workspace::built(PROGRAM));
        let service = Service::start("PostgreSQL", &mut command, &log)?;
        let folder = service
            .wait_for("folder", START, |line| line.strip_prefix("folder ").map(str::to_owned))?;
        Ok(Self { folder, _service: service })
    }

    /// Gives the server to a command.
    pub(super) fn tell(&self, command: &mut Command) {
        command.env(VARIABLE, &self.folder);
    }
}

fn install_it() -> Result<()> {
    if is_installed(Path::new(DEBIAN))? {
        return Ok(());
    }
    if install::is_able() {
        let parent = Path::new(NO_SERVER).parent().context("it has a folder")?;
        fs::create_dir_all(parent)?;
        fs::write(NO_SERVER, "create_main_cluster = false\n")?;
    }
    install::apt_install(&["postgresql"])?;
    let is_there = is_installed(Path::new(DEBIAN))?;
    anyhow::ensure!(is_there, "there is no initdb below {DEBIAN}, though postgresql is installed");
    Ok(())
}

/// True if a version has its programs there.
fn is_installed(dir: &Path) -> Result<bool> {
    if !dir.is_dir() {
        return Ok(false);
    }
    let versions: Vec<_> = fs::read_dir(dir)?.collect::<Result<_, _>>()?;
    Ok(versions.iter().any(|version| version.path().join("bin/initdb").is_file()))
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::is_installed;

    #[test]
    fn a_folder_without_programs_is_no_installation() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_installed(&dir.path().join("none")).unwrap());
        fs::create_dir_all(dir.path().join("17/bin")).unwrap();
        assert!(!is_installed(dir.path()).unwrap());
        fs::write(dir.path().join("17/bin/initdb"), "").unwrap();
        assert!(is_installed(dir.path()).unwrap());
    }
}
