//! The shim's plan for confining a child as requested.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use narthex_model::{Confinement, FileAccess, NetworkAccess, ProcessLimits};
use serde::{Deserialize, Serialize};

use super::{Abilities, ConfinementFault, base, temporary};
use crate::ProcessSpec;

/// All parts are settled: the shim asks nothing any more.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) files: Option<Paths>,
    /// The only ports that TCP may be connected to.
    pub(crate) ports: Option<Vec<u16>>,
    pub(crate) sockets: Sockets,
    /// True if the program may make Unix sockets that reach other processes. The rules for files do
    /// not know them.
    pub(crate) has_unix_sockets: bool,
    pub(crate) filters_system_calls: bool,
    pub(crate) privileges: Privileges,
    pub(crate) limits: ProcessLimits,
    /// The program that makes the namespaces.
    pub(crate) bwrap: Option<OsString>,
}

/// The permitted kinds of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    All,
    None,
    /// TCP to the permitted ports, UDP, and sockets within the machine.
    Usual,
}

/// The daemon's privileges that a child keeps; the daemon has any only as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Privileges {
    All,
    /// Only privileges that cannot undo the confinement.
    Few,
    None,
}

/// Paths that exist, and those of the base, which may not.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Paths {
    pub(crate) base_read: Vec<OsString>,
    pub(crate) base_write: Vec<OsString>,
    /// The folder for temporary files. With `bwrap` an empty one is put in its place; else it is
    /// one of the program's own.
    pub(crate) temporary: OsString,
    pub(crate) read: Vec<OsString>,
    pub(crate) write: Vec<OsString>,
}

impl Plan {
    /// Checks the request; `file` is the program that was found for the command.
    pub(crate) fn make(
        asked: &Confinement,
        spec: &ProcessSpec,
        file: Option<&Path>,
        abilities: &Abilities,
    ) -> Result<Self, ConfinementFault> {
        let Confinement { files, network, filters_system_calls, limits, has_namespaces } = asked;
        let bwrap = match (has_namespaces, &abilities.bwrap) {
            (false, _) => None,
            (true, Some(bwrap)) => Some(bwrap.clone().into_os_string()),
            (true, None) => return Err(ConfinementFault::NoBwrap),
        };
        if files.is_some() && bwrap.is_none() && !abilities.files {
            return Err(ConfinementFault::NoFiles);
        }
        let (ports, sockets) = match network {
            NetworkAccess::All => (None, Sockets::All),
            // A domain of Landlock's keeps it out of other processes, which have sockets.
            NetworkAccess::None => (abilities.ports.then(Vec::new), Sockets::None),
            NetworkAccess::Connect(_) if !abilities.ports => return Err(ConfinementFault::NoPorts),
            NetworkAccess::Connect(ports) => (Some(ports.clone()), Sockets::Usual),
        };
        let has_unix_sockets = match files {
            Some(files) if bwrap.is_none() => names_socket(files),
            Some(_) | None => true,
        };
        let filters_sockets = sockets != Sockets::All || !has_unix_sockets;
        if (*filters_system_calls || filters_sockets) && !abilities.filter {
            return Err(ConfinementFault::NoFilter);
        }
        if limits.processes.is_some() && abilities.is_root {
            return Err(ConfinementFault::RootProcesses);
        }
        let files = files.as_ref().map(|files| paths(files, spec, file)).transpose()?;
        let filters_system_calls = *filters_system_calls;
        let privileges = match (filters_system_calls, abilities.is_root) {
            (true, _) => Privileges::None,
            (false, true) => Privileges::Few,
            (false, false) => Privileges::All,
        };
        let limits = *limits;
        Ok(Self {
            files,
            ports,
            sockets,
            has_unix_sockets,
            filters_system_calls,
            privileges,
            limits,
            bwrap,
        })
    }

    /// The place for the program's own folder for temporary files; `None` where it shares one, or
    /// `bwrap` makes it.
    pub(crate) fn own_temporary(&mut self) -> Option<&mut OsString> {
        let files = self.files.as_mut().filter(|_| self.bwrap.is_none());
        files.map(|files| &mut files.temporary)
    }
}

/// True if the files of a program include a socket by its own name: its author wants it reached.
fn names_socket(files: &FileAccess) -> bool {
    let is_socket =
        |path: &PathBuf| fs_err::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    files.read.iter().chain(&files.write).any(is_socket)
}

fn paths(
    asked: &FileAccess,
    spec: &ProcessSpec,
    file: Option<&Path>,
) -> Result<Paths, ConfinementFault> {
    let missing = asked.read.iter().chain(&asked.write).find(|path| !path.exists());
    if let Some(path) = missing {
        return Err(ConfinementFault::PathMissing { path: path.clone() });
    }
    let variable = |name: &str| spec.variable(name).map(PathBuf::from);
    let mut base_read: Vec<PathBuf> = base::SYSTEM.iter().map(PathBuf::from).collect();
    base_read.extend(file.map(base::of_program).unwrap_or_default());
    base_read.extend(spec.working_dir.clone().filter(|folder| !base::is_open(folder)));
    let texts = |paths: Vec<PathBuf>| paths.into_iter().map(PathBuf::into_os_string).collect();
    Ok(Paths {
        base_read: texts(base_read),
        base_write: texts(base::caches(Path::new(&spec.command), variable)),
        temporary: temporary::shared(spec).into_os_string(),
        read: texts(asked.read.clone()),
        write: texts(asked.write.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BaseEnvironment;

    fn all() -> Abilities {
        Abilities {
            files: true,
            ports: true,
            filter: true,
            bwrap: Some("/usr/bin/bwrap".into()),
            is_root: false,
        }
    }

    fn made(asked: &Confinement, abilities: &Abilities) -> Result<Plan, ConfinementFault> {
        let spec = ProcessSpec::new("tool", BaseEnvironment::default());
        Plan::make(asked, &spec, None, abilities)
    }

    /// A server is refused, and not run loose, where the system lacks a requested ability.
    #[test]
    fn d22_a_confinement_that_the_system_lacks_is_refused() {
        let files = Some(FileAccess::default());
        let with_files = Confinement { files: files.clone(), ..Confinement::default() };
        let with_bwrap = Confinement { files, has_namespaces: true, ..Confinement::default() };
        let network = NetworkAccess::Connect(vec![443]);
        let with_ports = Confinement { network, ..Confinement::default() };
        let with_filter = Confinement { filters_system_calls: true, ..Confinement::default() };
        let limits = ProcessLimits { processes: Some(9), ..ProcessLimits::default() };
        let with_processes = Confinement { limits, ..Confinement::default() };
        let refused = |asked: &Confinement, abilities| made(asked, &abilities).unwrap_err();
        for asked in [&with_files, &with_bwrap, &with_ports, &with_filter, &with_processes] {
            assert!(made(asked, &all()).is_ok(), "{asked:?}");
        }
        let no_files = Abilities { files: false, ..all() };
        assert_eq!(refused(&with_files, no_files.clone()), ConfinementFault::NoFiles);
        assert!(made(&with_bwrap, &no_files).is_ok(), "namespaces need no Landlock");
        let fault = refused(&with_bwrap, Abilities { bwrap: None, ..all() });
        assert_eq!(fault, ConfinementFault::NoBwrap);
        let fault = refused(&with_ports, Abilities { ports: false, ..all() });
        assert_eq!(fault, ConfinementFault::NoPorts);
        for asked in [&with_filter, &with_files] {
            let fault = refused(asked, Abilities { filter: false, ..all() });
            assert_eq!(fault, ConfinementFault::NoFilter);
        }
        let fault = refused(&with_processes, Abilities { is_root: true, ..all() });
        assert_eq!(fault, ConfinementFault::RootProcesses);
    }

    #[test]
    fn a_missing_path_of_a_confinement_is_named() {
        let files = FileAccess { read: vec!["/nowhere/at/all".into()], write: Vec::new() };
        let asked = Confinement { files: Some(files), ..Confinement::default() };
        let fault = made(&asked, &all()).unwrap_err();
        assert!(fault.to_string().contains("`/nowhere/at/all` does not exist"), "{fault}");
    }
}
