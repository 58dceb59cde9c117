//! Signals that are ignored, and processes that outlive their parent.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::VARIABLE;
use super::settings::Offspring;

/// Longest life of a process, so that none is left when a test fails to end it.
const LIFE: Duration = Duration::from_secs(120);

/// Starts this program again; it holds standard output and error open. Gives its process id.
pub(super) fn start(kind: Offspring, ignores_term: bool) -> io::Result<u32> {
    let mut words = String::from("offspring");
    words.push_str(if kind == Offspring::Escaped { ",escaped-child" } else { "" });
    words.push_str(if ignores_term { ",ignores-term" } else { "" });
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(VARIABLE, words).stdin(Stdio::null());
    Ok(command.spawn()?.id())
}

/// The life of such a process.
pub(super) async fn live(kind: Option<Offspring>) -> io::Result<()> {
    if kind == Some(Offspring::Escaped) {
        leave_session()?;
    }
    tokio::time::sleep(LIFE).await;
    Ok(())
}

/// From now on SIGTERM does nothing, for the whole life of the process.
pub(super) fn ignore_term() -> io::Result<()> {
    // A process that never reads the signal ignores it; the handler stays when this is dropped.
    let term = tokio::signal::unix::SignalKind::terminate();
    tokio::signal::unix::signal(term).map(drop)
}

#[cfg(target_os = "linux")]
fn leave_session() -> io::Result<()> {
    nix::unistd::setsid().map(drop).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn leave_session() -> io::Result<()> {
    Err(io::Error::other("only built for Linux"))
}
