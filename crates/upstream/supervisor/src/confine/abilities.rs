//! Abilities of this system to confine programs.

use std::path::PathBuf;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr};

/// The available abilities. A value, so that tests can take abilities away.
#[derive(Debug, Clone)]
pub(crate) struct Abilities {
    /// True if the kernel limits files, cutting them short included.
    pub(crate) files: bool,
    /// True if the kernel limits ports.
    pub(crate) ports: bool,
    /// True if the kernel filters system calls.
    pub(crate) filter: bool,
    /// The path of `bwrap`, if it is installed.
    pub(crate) bwrap: Option<PathBuf>,
    pub(crate) is_root: bool,
}

impl Abilities {
    /// Asks the system. `path` is where programs are searched.
    pub(crate) fn probe(path: Option<&std::ffi::OsStr>) -> Self {
        let strictly = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let files = strictly().handle_access(AccessFs::from_all(ABI::V3));
        let ports = strictly().handle_access(AccessNet::from_all(ABI::V4));
        let folders = path.map(std::env::split_paths).into_iter().flatten();
        Self {
            files: files.and_then(Ruleset::create).is_ok(),
            ports: ports.and_then(Ruleset::create).is_ok(),
            filter: rustix::thread::secure_computing_mode().is_ok(),
            bwrap: folders.map(|folder| folder.join("bwrap")).find(|file| file.is_file()),
            is_root: rustix::process::getuid().is_root(),
        }
    }
}
