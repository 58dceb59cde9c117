//! A child process as a duplex link: newline-delimited JSON-RPC on its pipes.

use std::{sync::Arc, time::Duration};

use narthex_model::StdioTarget;
use narthex_supervisor::{
    BaseEnvironment, ChildIo, ExitInfo, Process, ProcessSpec, Redact, SpawnError,
};
use narthex_wire::{Limits, LineParser, Message, Payload, line_frame};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
};
use tokio_util::task::TaskTracker;

use crate::{LinkEvent, duplex::Duplex};

const READ_BYTES: usize = 64 * 1024;
/// How long the last words on a dead process's stderr are waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A running child and the link over its pipes.
#[derive(Debug)]
pub(crate) struct StdioLink {
    pub(crate) duplex: Arc<Duplex>,
    process: Process,
}

/// What a child is started with besides its own target.
#[derive(Clone)]
pub(crate) struct StdioContext {
    pub(crate) name: String,
    pub(crate) environment: BaseEnvironment,
    pub(crate) redact: Option<Redact>,
    pub(crate) limits: Limits,
    pub(crate) tasks: TaskTracker,
}

impl StdioLink {
    pub(crate) async fn start(
        target: &StdioTarget,
        context: &StdioContext,
        events: mpsc::Sender<LinkEvent>,
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
        let (process, ChildIo { stdin, stdout }) = Process::spawn(spec, &context.tasks).await?;
        let (duplex, queue) = Duplex::new(events);
        context.tasks.spawn(write(stdin, queue, duplex.clone()));
        let reader = read(stdout, duplex.clone(), context.limits);
        context.tasks.spawn(read_to_the_end(reader, process.clone(), duplex.clone()));
        Ok(Self { duplex, process })
    }

    /// The last lines of the child's stderr.
    pub(crate) fn log_tail(&self) -> Vec<String> {
        self.process.log_tail()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Closes stdin and stops the whole group; returns when it is gone.
    pub(crate) async fn stop(&self) {
        self.duplex.close("it was stopped");
        let exit = self.process.stop().await;
        if exit.forced {
            tracing::warn!(process.id = self.process.id(), "a server had to be killed");
        }
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Payload>, duplex: Arc<Duplex>) {
    loop {
        let payload = tokio::select! {
            biased;
            () = duplex.closed().cancelled() => return,
            payload = queue.recv() => match payload {
                Some(payload) => payload,
                None => return,
            },
        };
        for piece in line_frame(&payload).pieces() {
            if let Err(error) = stdin.write_all(piece).await {
                // The reader sees the end of the process and tells why.
                tracing::debug!(%error, "a server does not read its stdin any more");
                return;
            }
        }
    }
}

async fn read(mut stdout: ChildStdout, duplex: Arc<Duplex>, limits: Limits) -> &'static str {
    let mut lines = LineParser::new(limits.message_bytes);
    let mut buffer = bytes::BytesMut::with_capacity(READ_BYTES);
    loop {
        let got = tokio::select! {
            biased;
            () = duplex.closed().cancelled() => return "it was stopped",
            got = stdout.read_buf(&mut buffer) => got,
        };
        match got {
            Ok(0) => return "it closed its stdout",
            Err(_) => return "its stdout broke",
            Ok(_) => lines.push(buffer.split().freeze()),
        }
        buffer.reserve(READ_BYTES);
        loop {
            match lines.next_line() {
                Ok(Some(line)) => take_line(line, &duplex, &limits),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "a server wrote a line that is too long");
                    return "it wrote a line longer than allowed";
                }
            }
        }
    }
}

fn take_line(line: bytes::Bytes, duplex: &Duplex, limits: &Limits) {
    match Message::parse_batch(&line, limits, 100) {
        Ok(messages) => messages.into_iter().for_each(|message| duplex.dispatch(message)),
        // Servers print banners and log lines to stdout by mistake; one does not end the link.
        Err(error) => tracing::warn!(%error, "a server wrote a line that is no message"),
    }
}

/// Reads until the child has ended, then says why.
async fn read_to_the_end(
    reader: impl Future<Output = &'static str>,
    process: Process,
    duplex: Arc<Duplex>,
) {
    tokio::pin!(reader);
    let why = tokio::select! {
        why = &mut reader => why,
        // An escaped descendant may hold stdout open: after the child's own end, only what it
        // has already written is waited for.
        _ = process.exited() => {
            tokio::time::timeout(LAST_WORDS, reader).await.unwrap_or("it ended")
        }
    };
    if duplex.closed().is_cancelled() {
        return;
    }
    let exit = tokio::time::timeout(LAST_WORDS, process.stop()).await;
    let mut text = exit.map_or_else(|_| why.to_owned(), |exit| describe(exit, why));
    let tail = process.log_tail();
    if let Some(line) = tail.iter().rev().find(|line| !line.trim().is_empty()) {
        text.push_str("; its last words: ");
        text.push_str(line.trim());
    }
    duplex.close(&text);
}

fn describe(exit: ExitInfo, why: &str) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("the process ended with exit code {code}"),
        (None, Some(signal)) => format!("the process was ended by signal {signal}"),
        (None, None) => why.to_owned(),
    }
}
