//! The signals that stop a command.

use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;

/// Resolves at the first SIGINT, SIGTERM or SIGHUP from now on.
///
/// # Errors
/// When the system accepts no signal handler.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Unpin, Failure> {
    stop_signal_with(Hangup::Stops)
}

/// The effect of SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangup {
    /// The command ends, as at the other signals.
    Stops,
    /// The command handles it otherwise.
    IsHandled,
}

/// As [`stop_signal`], for a command that may have another use for SIGHUP.
///
/// # Errors
/// When the system accepts no signal handler.
pub fn stop_signal_with(hangup: Hangup) -> Result<impl Future<Output = ()> + Unpin, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangups = signal(SignalKind::hangup())?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangups.recv(), if hangup == Hangup::Stops => {}
        }
    }))
}
