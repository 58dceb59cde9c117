//! Confinement of a child. The request is compared with the system's abilities, and becomes a plan
//! for the shim. A child that cannot be confined as requested is not started.

#[cfg(target_os = "linux")]
mod abilities;
#[cfg(target_os = "linux")]
pub(crate) mod apply;
#[cfg(target_os = "linux")]
mod base;
#[cfg(target_os = "linux")]
mod bubble;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
pub(crate) mod temporary;

use std::path::PathBuf;

use thiserror::Error;

#[cfg(target_os = "linux")]
pub(crate) use abilities::Abilities;
#[cfg(target_os = "linux")]
pub(crate) use plan::Plan;

/// The reason for which a child cannot be confined as requested, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfinementFault {
    /// No shim could confine the child.
    #[error(
        "confinement needs the supervising shim, which does not run here: use the program narthex \
         on Linux, or leave out `confinement`"
    )]
    NoShim,
    /// The kernel cannot limit files.
    #[error(
        "this kernel cannot limit files: it needs Linux 6.2 with Landlock enabled; set \
         `bwrap`, or leave out `filesystem`"
    )]
    NoFiles,
    /// The kernel cannot limit ports.
    #[error(
        "this kernel cannot limit ports: it needs Linux 6.7 with Landlock enabled; set \
         `\"network\": \"none\"`, or leave out `network`"
    )]
    NoPorts,
    /// The kernel has no filter of system calls.
    #[error(
        "this kernel cannot filter system calls; leave out `syscalls` and `network`, and set \
         `bwrap` if `filesystem` is set"
    )]
    NoFilter,
    /// The program `bwrap` is missing.
    #[error("`bwrap` was not found in PATH: install bubblewrap, or leave out `bwrap`")]
    NoBwrap,
    /// The system does not limit the number of root's processes.
    #[error(
        "the system does not limit the number of processes of root: run narthex as another user, \
         or leave the limit out"
    )]
    RootProcesses,
    /// A path of the configuration does not exist.
    #[error("`{}` does not exist: create it, or name another path", .path.display())]
    PathMissing {
        /// The path.
        path: PathBuf,
    },
    /// The child's folder for temporary files could not be made.
    #[error(
        "a folder for its temporary files cannot be created in `{}`: {text}; create that folder, \
         or set the daemon's TMPDIR to another one",
        .folder.display()
    )]
    NoTemporary {
        /// The parent folder.
        folder: PathBuf,
        /// The system's error.
        text: String,
    },
    /// The shim could not confine the child.
    #[error("{text}")]
    Failed {
        /// The shim's error text.
        text: String,
    },
}
