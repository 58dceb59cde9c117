//! `narthex daemon restart`: the present program takes the place of the running one.

use std::{process::ExitCode, time::Duration};

use narthex_model::{ErrorKind, command::narthex};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::process::Process;
use crate::{
    Context, Failure,
    cli::RestartArgs,
    commands::waiting::waiting,
    data_dir::{DaemonState, DataDir},
    output,
};

const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run(args: &RestartArgs, context: &Context) -> Result<ExitCode, Failure> {
    let data = DataDir::at(&context.daemon.data);
    let old = data.running()?;
    let old = old.map_or_else(|| Err(absent(&data)), Ok)?;
    let pid = old.pid;
    if !old.can_restart {
        let text = format!(
            "process {pid} cannot be restarted: it restarts already, or it is an older daemon; \
             stop it with `{}`, and start the new one with `{}`",
            narthex("daemon stop", &[]),
            narthex("up", &[])
        );
        return Err(Failure::new(ErrorKind::Conflict, text));
    }
    let process = Process::of_daemon(&data)?.filter(|process| process.pid == pid);
    process.ok_or_else(|| ended(pid))?.send(Signal::USR2)?;
    let replaced = replaced(&data, &old, args.timeout);
    let state = waiting(&format!("restarting process {pid}"), context, replaced).await?;
    let DaemonState { pid, url, version, .. } = &state;
    let value = json!({
        "pid": pid,
        "url": url,
        "version": version,
        "previous_version": old.version,
    });
    let program = program(version.as_deref(), old.version.as_deref());
    let sentence =
        format!("The daemon, process {pid}, has restarted{program}; it listens at {url}.");
    output::told(&value, &sentence, context.format)
}

/// The words about the program that has taken over, and the one before it if it was another.
fn program(new: Option<&str>, old: Option<&str>) -> String {
    match (new, old) {
        (None, _) => String::new(),
        (Some(new), Some(old)) if new == old => format!(" with narthex {new}"),
        (Some(new), Some(old)) => format!(" with narthex {new}, after {old}"),
        (Some(new), None) => format!(" with narthex {new}, after an earlier version"),
    }
}

/// Waits for the state that the new program publishes, or for the reason why there is none.
async fn replaced(
    data: &DataDir,
    old: &DaemonState,
    within: Duration,
) -> Result<DaemonState, Failure> {
    let end = Instant::now() + within;
    loop {
        let state = data.running()?;
        if let Some(reason) = state.as_ref().and_then(|state| refused(state, old)) {
            let text = format!("process {} was not restarted, and serves on: {reason}", old.pid);
            return Err(Failure::new(ErrorKind::Conflict, text));
        }
        if let Some(state) = state.filter(|state| is_successor(state, old)) {
            return Ok(state);
        }
        if data.holder()? != Some(old.pid) {
            return Err(ended(old.pid));
        }
        if Instant::now() >= end {
            return Err(late(old.pid, within));
        }
        sleep(PAUSE).await;
    }
}

/// True for the state of a program that serves in place of the old one. The state of one program is
/// published more than once: also when its certificate is renewed.
fn is_successor(state: &DaemonState, old: &DaemonState) -> bool {
    state.generation != old.generation && state.can_restart
}

/// The reason for which the old program refused this restart.
fn refused<'s>(state: &'s DaemonState, old: &DaemonState) -> Option<&'s str> {
    let refused = state.refused.as_ref().filter(|_| state.generation == old.generation)?;
    let before = old.refused.as_ref().map_or(0, |refused| refused.number);
    (refused.number > before).then_some(&*refused.reason)
}

/// The failure of a directory without a daemon that can be asked.
fn absent(data: &DataDir) -> Failure {
    let folder = data.path().display();
    let text = match data.holder() {
        Ok(Some(pid)) => format!(
            "the daemon of {folder}, process {pid}, is starting or stopping; see its state with \
             `{}`, and try again",
            narthex("daemon status", &[])
        ),
        Ok(None) => format!(
            "no daemon runs with the data directory {folder}, so none can be restarted; start one \
             with `{}`",
            narthex("up --detach", &[])
        ),
        Err(failure) => return failure,
    };
    Failure::daemon_down(text)
}

fn late(pid: u32, within: Duration) -> Failure {
    let text = format!(
        "process {pid} was not replaced within {} s: it still finishes open calls or checks the \
         new program, or it hangs; its log says more: `{}`; `{}` ends it in any case",
        within.as_secs_f64(),
        narthex("service logs", &[]),
        narthex("daemon stop --force", &[])
    );
    Failure::new(ErrorKind::Timeout, text)
}

fn ended(pid: u32) -> Failure {
    let text = format!(
        "process {pid} has ended instead of restarting; its log has the reason: `{}`; then start \
         the daemon with `{}`",
        narthex("service logs", &[]),
        narthex("up --detach", &[])
    );
    Failure::new(ErrorKind::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_dir::RefusedRestart;

    fn state(generation: &str) -> DaemonState {
        let generation = generation.to_owned();
        DaemonState { generation, can_restart: true, ..DaemonState::default() }
    }

    #[test]
    fn only_another_program_that_serves_is_a_successor() {
        let old = state("a");
        // A renewed certificate, and the time of the hand-over.
        let renewed = DaemonState { url: "https://127.0.0.1:1".to_owned(), ..old.clone() };
        let handing_over = DaemonState { can_restart: false, ..old.clone() };
        for state in [&old, &renewed, &handing_over] {
            assert!(!is_successor(state, &old), "{state:?}");
        }
        assert!(is_successor(&state("b"), &old));
        // Before and after a program that publishes no generation.
        assert!(is_successor(&state("b"), &state("")) && is_successor(&state(""), &old));
    }

    #[test]
    fn a_refusal_counts_once() {
        let of = |number| Some(RefusedRestart { number, reason: "it is taken".to_owned() });
        let first = DaemonState { refused: of(1), ..state("a") };
        assert_eq!(refused(&first, &state("a")), Some("it is taken"));
        assert_eq!(refused(&first, &first), None);
        let second = DaemonState { refused: of(2), ..state("a") };
        assert_eq!(refused(&second, &first), Some("it is taken"));
        assert_eq!(refused(&first, &state("b")), None);
    }

    #[test]
    fn another_version_is_named_with_the_one_before() {
        assert_eq!(program(Some("2"), Some("1")), " with narthex 2, after 1");
        assert_eq!(program(Some("2"), Some("2")), " with narthex 2");
        assert_eq!(program(Some("2"), None), " with narthex 2, after an earlier version");
        assert_eq!(program(None, Some("2")), "");
    }
}
