//! A child process as a duplex link: newline-delimited JSON-RPC on its pipes.

mod input;

use std::{sync::Arc, time::Duration};

use narthex_model::StdioTarget;
use narthex_supervisor::{
    BaseEnvironment, ChildIo, ExitInfo, LogRing, Process, ProcessSpec, Redact, SpawnError,
};
use narthex_wire::{Limits, LineParser, Payload};
use tokio::{io::AsyncReadExt, process::ChildStdout, sync::mpsc};
use tokio_util::task::TaskTracker;

pub(crate) use self::input::Input;
use crate::{
    Ended, Supervision,
    aside::is_large,
    cause::{cause, likely_cause},
    duplex::{Duplex, Outgoing},
    outlet::Outlet,
};

const READ_BYTES: usize = 64 * 1024;
/// Maximum number of messages in one write to the child.
const GATHERED: usize = 32;
/// Longest wait for the rest of a dead child's output, and for the end of a child that cannot be
/// used any more.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Time that a server gets to end by itself when its stdin is closed, before narthex ends it.
const STDIN_GRACE: Duration = Duration::from_secs(1);

/// A running child and the link over its pipes.
#[derive(Debug)]
pub(crate) struct StdioLink {
    pub(crate) duplex: Arc<Duplex>,
    process: Process,
}

/// The parameters of a child's start, besides the child's target.
#[derive(Clone)]
pub(crate) struct StdioContext {
    pub(crate) name: String,
    pub(crate) environment: BaseEnvironment,
    pub(crate) redact: Option<Redact>,
    pub(crate) log: Option<LogRing>,
    pub(crate) supervision: Supervision,
    pub(crate) limits: Limits,
    pub(crate) tasks: TaskTracker,
}

impl StdioLink {
    pub(crate) async fn start(
        target: &StdioTarget,
        context: &StdioContext,
        outlet: Outlet,
    ) -> Result<Self, SpawnError> {
        let mut spec = ProcessSpec::new(&target.command, context.environment.clone());
        spec.args.clone_from(&target.args);
        let exposed = |(name, value): (&String, &narthex_model::Secret)| {
            (name.clone(), value.expose().to_owned())
        };
        spec.env = target.env.iter().map(exposed).collect();
        spec.working_dir.clone_from(&target.working_dir);
        spec.server_name = Some(context.name.clone());
        spec.redact.clone_from(&context.redact);
        spec.shim.clone_from(&context.supervision.shim);
        let confinement =
            target.confinement.as_deref().or(context.supervision.confinement.as_ref());
        spec.confinement = confinement.cloned();
        if let Some(log) = &context.log {
            spec.log = log.clone();
        }
        let (process, ChildIo { stdin, stdout }) = Process::spawn(spec, &context.tasks).await?;
        let input = Arc::new(Input::new(stdin));
        let (duplex, queue) = Duplex::new(outlet, Some(input.clone()));
        context.tasks.spawn(write(input, queue, duplex.clone()));
        let reader = read(stdout, duplex.clone(), context.limits);
        context.tasks.spawn(read_to_the_end(reader, process.clone(), duplex.clone()));
        Ok(Self { duplex, process })
    }

    /// The child's log.
    pub(crate) fn log(&self) -> &LogRing {
        self.process.log()
    }

    /// The last lines of the child's stderr.
    pub(crate) fn log_tail(&self) -> Vec<String> {
        self.process.log_tail()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Closes stdin and stops the child's process group; returns when no process of the group is
    /// left.
    pub(crate) async fn stop(&self) -> Ended {
        self.duplex.close("it was stopped");
        // In MCP over stdio, the end of its input tells a server to end.
        if let Ok(exit) = tokio::time::timeout(STDIN_GRACE, self.process.exited()).await {
            tracing::debug!(process.id = self.process.id(), code = exit.code, "a server ended");
            return how(exit);
        }
        self.end().await
    }

    /// As [`Self::stop`], without waiting for the child to notice the end of stdin.
    pub(crate) async fn end(&self) -> Ended {
        self.duplex.close("it was stopped");
        let exit = self.process.stop().await;
        if exit.forced {
            tracing::warn!(process.id = self.process.id(), "a server had to be killed");
        }
        how(exit)
    }
}

fn how(exit: ExitInfo) -> Ended {
    if exit.forced { Ended::Killed } else { Ended::Gracefully }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        // The tasks of the pipes end with the link, and drop the last handle to the child.
        self.duplex.close("it was cancelled");
    }
}

async fn write(input: Arc<Input>, mut queue: mpsc::Receiver<Outgoing>, duplex: Arc<Duplex>) {
    let mut waiting = Vec::with_capacity(GATHERED);
    loop {
        let count = tokio::select! {
            biased;
            () = duplex.closed().cancelled() => break,
            // Many callers share the pipe, so one write takes all waiting messages.
            count = queue.recv_many(&mut waiting, GATHERED) => count,
        };
        if count == 0 {
            break;
        }
        let messages: Vec<Payload> = waiting.drain(..).map(|outgoing| outgoing.payload).collect();
        if let Err(error) = input.write(&messages).await {
            // The reader notices the end of the process and reports the reason. Until then the pipe
            // stays open, because the reader must find out how much of the input was read.
            tracing::debug!(%error, "a server has stopped reading its stdin");
            duplex.closed().cancelled().await;
            break;
        }
    }
    input.close().await;
}

/// The reason why narthex reads no more output of a child.
enum ReadEnd {
    /// Narthex closed the link.
    Ours,
    /// The child ended, or closed its stdout.
    Eof,
    /// The child's output cannot be used.
    Unusable(&'static str),
}

/// The error for a server that frames messages as language servers do.
const CONTENT_LENGTH: &str = "it frames messages with `Content-Length`, as language servers do; \
                              MCP over stdio has one JSON message per line: use a version of the \
                              server that supports MCP";

async fn read(mut stdout: ChildStdout, duplex: Arc<Duplex>, limits: Limits) -> ReadEnd {
    let mut lines = LineParser::new(limits.message_bytes);
    let mut buffer = bytes::BytesMut::with_capacity(READ_BYTES);
    loop {
        let got = tokio::select! {
            biased;
            () = duplex.closed().cancelled() => return ReadEnd::Ours,
            got = stdout.read_buf(&mut buffer) => got,
        };
        match got {
            Ok(0) => return ReadEnd::Eof,
            Err(_) => return ReadEnd::Unusable("its stdout failed"),
            Ok(_) => lines.push(buffer.split().freeze()),
        }
        buffer.reserve(READ_BYTES);
        loop {
            match lines.next_line() {
                Ok(Some(line)) if is_content_length(&line) => {
                    return ReadEnd::Unusable(CONTENT_LENGTH);
                }
                Ok(Some(line)) if is_large(&line) => tokio::select! {
                    biased;
                    () = duplex.closed().cancelled() => return ReadEnd::Ours,
                    () = duplex.take_large(line, limits) => {}
                },
                Ok(Some(line)) => duplex.take(&line, &limits),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "a server wrote a line that is too long");
                    return ReadEnd::Unusable("it wrote a line that is longer than the limit");
                }
            }
        }
    }
}

/// True if a line is the header with which language servers frame their messages.
fn is_content_length(line: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length:";
    line.get(..NAME.len()).is_some_and(|start| start.eq_ignore_ascii_case(NAME))
}

/// Reads until the child has ended or its output is unusable, then ends the link with the reason.
async fn read_to_the_end(
    reader: impl Future<Output = ReadEnd>,
    process: Process,
    duplex: Arc<Duplex>,
) {
    tokio::pin!(reader);
    let end = tokio::select! {
        end = &mut reader => end,
        // A descendant outside of the process group may hold stdout open. So after the child's own
        // end, narthex waits only for output that the child has already written.
        _ = process.exited() => {
            tokio::time::timeout(LAST_WORDS, reader).await.unwrap_or(ReadEnd::Eof)
        }
    };
    let mut is_killed = false;
    let mut text = match end {
        ReadEnd::Ours => return,
        ReadEnd::Unusable(why) => {
            stop_soon(&process).await;
            why.to_owned()
        }
        ReadEnd::Eof => match tokio::time::timeout(LAST_WORDS, process.exited()).await {
            Ok(exit) => {
                is_killed = exit.signal.is_some();
                describe(exit)
            }
            Err(_) => {
                stop_soon(&process).await;
                "it closed its stdout".to_owned()
            }
        },
    };
    let tail = process.log_tail();
    // The last line of a program that was killed does not explain its end.
    let line = if is_killed { likely_cause(&tail) } else { cause(&tail) };
    if let Some(line) = line {
        text.push_str("; it wrote: ");
        text.push_str(&line);
    }
    // Up to here, a process may have read the input, so the unread bytes are counted only now.
    duplex.end_unread(&text);
}

/// Asks the child to end, and waits only a short time for its end.
async fn stop_soon(process: &Process) {
    if tokio::time::timeout(LAST_WORDS, process.stop()).await.is_err() {
        tracing::debug!(process.id = process.id(), "a server has not ended in time");
    }
}

fn describe(exit: ExitInfo) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("the process ended with exit code {code}"),
        (None, Some(signal)) => format!("the process was ended by signal {signal}"),
        (None, None) => "the process ended".to_owned(),
    }
}
