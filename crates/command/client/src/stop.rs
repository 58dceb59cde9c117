//! The signals that stop a command.

use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;

/// Resolves at the first SIGINT, SIGTERM or SIGHUP from now on.
///
/// # Errors
/// When the system accepts no signal handler.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Unpin, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }))
}
