//! The shim: a small process between the daemon and one server, which controls all processes below
//! the server (Linux).
//!
//! A process group misses a process that leaves it, and a parent-death signal ends with the next
//! fork. The shim is a subreaper: orphans below it become its own children, whatever sessions and
//! groups they made. The shim kills them all when the daemon asks for it, and when the daemon is
//! dead: then the daemon's end of their socket closes. The shim is the daemon's program itself,
//! started anew with a hidden argument, or the program `narthex-shim` of this crate.

use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod leader;
#[cfg(target_os = "linux")]
pub(crate) mod message;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod tree;

/// The first argument by which a program knows that it is to be the shim.
#[cfg(target_os = "linux")]
pub(crate) const ARGUMENT: &str = "__supervise";

/// The program between the daemon and its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Shim {
    /// This program itself, if its `main` began with [`run_if_asked`]; otherwise as `Absent`.
    #[default]
    Own,
    /// Another program that begins with [`run_if_asked`], of the same version: `narthex-shim`.
    Program(PathBuf),
    /// No shim. The daemon controls a child by its process group, and when the daemon is killed
    /// only the child itself ends for certain.
    Absent,
}

/// Runs the shim if this process was started as one; `main` must then return the value in `Some`.
///
/// Call this at the very start of `main`, before there is a thread or a runtime. Without this call,
/// [`Shim::Own`] has no effect.
#[must_use]
pub fn run_if_asked() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    {
        let is_asked = std::env::args_os().nth(1).is_some_and(|first| first == ARGUMENT);
        if is_asked {
            // The daemon sees an early end, and no other process could read the reason.
            let code = program::run().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
            return Some(code);
        }
        own::offer();
    }
    None
}

#[cfg(target_os = "linux")]
impl Shim {
    /// The program to start; `None` where there is no shim.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        match self {
            Self::Own => own::program(),
            Self::Program(program) => Some(program.clone()),
            Self::Absent => None,
        }
    }
}

/// Tells if this program can be its own shim.
#[cfg(target_os = "linux")]
mod own {
    use std::path::PathBuf;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The running program, also when its file was replaced or deleted meanwhile.
    const EXECUTABLE: &str = "/proc/self/exe";

    static IS_OFFERED: AtomicBool = AtomicBool::new(false);
    static TOLD: Once = Once::new();

    pub(super) fn offer() {
        IS_OFFERED.store(true, Ordering::Release);
    }

    pub(super) fn program() -> Option<PathBuf> {
        let executable = PathBuf::from(EXECUTABLE);
        if IS_OFFERED.load(Ordering::Acquire) && executable.exists() {
            return Some(executable);
        }
        TOLD.call_once(|| {
            tracing::warn!(
                "servers run without a supervising shim: processes that leave a server's group \
                 may outlive it; call narthex_supervisor::shim::run_if_asked at the start of \
                 main, or name a narthex-shim"
            );
        });
        None
    }
}
