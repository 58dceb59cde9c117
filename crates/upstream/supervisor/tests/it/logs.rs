//! The captured stderr and its limits.

use std::borrow::Cow;
use std::sync::Arc;

use narthex_supervisor::{LogLimits, LogPart, LogRing, Process, ProcessSpec};
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::task::TaskTracker;

use crate::support::{in_time, shell, unshimmed};

/// Runs a script to its end, for its output on stderr.
async fn run(spec: ProcessSpec) -> Process {
    let (process, _io) = Process::spawn(spec, &TaskTracker::new()).await.unwrap();
    in_time(process.exited()).await;
    process
}

#[tokio::test]
async fn the_last_log_lines_are_readable_after_the_end_of_the_child() {
    let mut spec = shell("for i in 1 2 3 4 5; do echo line $i >&2; done; printf end >&2");
    spec.log = LogRing::new(LogLimits { lines: 3, ..LogLimits::default() });
    let process = run(spec).await;
    assert_eq!(process.log_tail(), ["line 4", "line 5", "end"]);
    assert_eq!(process.log().cut_lines(), 0);
}

#[tokio::test]
async fn long_lines_are_cut_and_counted() {
    let mut spec = shell("printf '%020000d\\nshort\\n' 7 >&2");
    spec.log = LogRing::new(LogLimits { line_bytes: 4, ..LogLimits::default() });
    let process = run(spec).await;
    assert_eq!(process.log_tail(), ["0000 […19996 bytes cut]", "shor […1 bytes cut]"]);
    assert_eq!(process.log().cut_lines(), 2);
}

#[tokio::test]
async fn all_lines_together_are_limited() {
    let mut spec = shell("printf '%0100d\\n' 1 2 3 4 5 >&2");
    spec.log = LogRing::new(LogLimits { total_bytes: 250, ..LogLimits::default() });
    let process = run(spec).await;
    let tail = process.log_tail();
    assert_eq!(tail.len(), 2);
    assert!(tail[1].ends_with('5'));
}

#[tokio::test]
async fn invalid_text_is_replaced_and_secrets_are_redacted() {
    let mut spec = shell("printf 'token=hunter2 \\377\\n' >&2");
    spec.redact = Some(Arc::new(|line| match line.contains("hunter2") {
        true => Cow::Owned(line.replace("hunter2", "***")),
        false => Cow::Borrowed(line),
    }));
    assert_eq!(run(spec).await.log_tail(), ["token=*** \u{fffd}"]);
}

#[tokio::test]
async fn subscribers_get_lines_as_they_come() {
    let spec = shell("read go; echo one >&2; read go; echo two >&2");
    let (process, mut io) = Process::spawn(spec, &TaskTracker::new()).await.unwrap();
    let mut lines = process.log_subscribe();
    for expected in ["one", "two"] {
        tokio::io::AsyncWriteExt::write_all(&mut io.stdin, b"go\n").await.unwrap();
        assert_eq!(in_time(lines.recv()).await.unwrap().as_ref(), expected);
    }
}

#[tokio::test]
async fn an_escaped_grandchild_that_holds_stderr_delays_nothing() {
    // The substitution ends when the grandchild, in its new session, lets go of its stdout.
    let script = "x=$(setsid sh -c 'echo $$ >&2; exec sleep 1000 >/dev/null' &); exit 1";
    let process = run(unshimmed(script)).await;
    let tail = process.log_tail();
    let escaped = Pid::from_raw(tail[0].parse().unwrap()).unwrap();
    kill_process(escaped, Signal::KILL).expect("it was still there, and out of reach");
}

/// R-E17: a holder of the ring sees lines from before a server was started again.
#[tokio::test]
async fn r_e17_a_log_ring_survives_restarts() {
    let log = LogRing::default();
    let mut lines = log.subscribe();
    let mut ids = Vec::new();
    for word in ["first", "second"] {
        let mut spec = shell(&format!("echo {word} >&2"));
        spec.log = log.clone();
        let process = run(spec).await;
        assert_eq!(process.log_tail(), [word], "each has words of its own");
        ids.push(process.id());
        log.append("a result was cut");
    }
    let parting = format!("--- started again as process {} ---", ids[1]);
    let expected = ["first", "a result was cut", &parting, "second", "a result was cut"];
    assert_eq!(log.tail(), expected);
    for expected in expected {
        assert_eq!(in_time(lines.recv()).await.unwrap().as_ref(), expected);
    }
}

/// R-E17: the limits are those of the ring for all writers; secrets stay out at each start.
#[tokio::test]
async fn r_e17_a_shared_log_ring_is_bounded_and_redacted() {
    let log = LogRing::new(LogLimits { lines: 4, line_bytes: 8, total_bytes: 1000 });
    for _ in 0..2 {
        let mut spec = shell("echo one >&2; echo hunter2 >&2");
        spec.redact = Some(Arc::new(|line| Cow::Owned(line.replace("hunter2", "***"))));
        spec.log = log.clone();
        let process = run(spec).await;
        assert_eq!(process.log_tail(), ["one", "***"]);
    }
    log.append("0123456789\nend");
    let tail = log.tail();
    assert_eq!(tail, ["one", "***", "01234567 […2 bytes cut]", "end"]);
    assert_eq!(log.cut_lines(), 2, "the parting line and the long one");
}

/// A repeated reader gets each line once, and the number of lines that were gone before.
#[test]
fn a_log_reader_continues_after_its_last_line() {
    let log = LogRing::new(LogLimits { lines: 3, ..LogLimits::default() });
    let part = |missed, lines: &[&str], next| LogPart {
        missed,
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        next,
    };
    assert_eq!(log.read_from(0), part(0, &[], 0));
    log.append("a\nb");
    assert_eq!(log.read_from(0), part(0, &["a", "b"], 2));
    assert_eq!(log.read_from(2), part(0, &[], 2));
    log.append("b\nc\nd\ne");
    assert_eq!(log.read_from(2), part(1, &["c", "d", "e"], 6));
    assert!(log.is_same(&log.clone()) && !log.is_same(&LogRing::default()));
}
