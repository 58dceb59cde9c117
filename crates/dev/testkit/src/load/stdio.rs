//! The closed loop over the pipes of a child process: several callers share one child.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::Target;
use super::check::{Checker, Fault};
use super::outcome::{Outcome, Tally};
use super::script::{Era, Script, Work};
use super::watch::{self, Watch};
use super::worker::{FIRST_ID, IDS};
use crate::fixture::lock;
use crate::spawn;

/// Requests that may wait for a child that reads slowly.
const QUEUE: usize = 64;

/// A measurement of a program that is started for it.
#[derive(Debug, Clone)]
pub struct StdioPlan {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub era: Era,
    pub work: Work,
    /// Number of callers that wait for an answer at any time.
    pub callers: usize,
    pub warm_up: Duration,
    pub window: Duration,
}

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Bytes>>>>;

/// The pipes of the child, shared by all callers.
#[derive(Clone)]
struct Pipes {
    requests: mpsc::Sender<Bytes>,
    waiting: Waiting,
}

/// The id of the call that a line answers.
#[derive(Deserialize)]
struct Id {
    id: Option<u64>,
}

impl StdioPlan {
    /// Measures once, and ends the child.
    ///
    /// # Errors
    ///
    /// If the child cannot be started or shakes no hands. Calls that fail later are counted.
    pub async fn run(&self) -> anyhow::Result<Outcome> {
        let (pipes, mut child) = self.start().await?;
        let begin = Instant::now() + self.warm_up;
        let end = begin + self.window;
        let mut running = JoinSet::new();
        for number in 0..self.callers {
            running.spawn(self.caller(pipes.clone(), number)?.run(begin, end));
        }
        sleep_until(begin).await;
        let first = Watch::look(&[])?;
        sleep_until(end).await;
        let last = Watch::look(&[])?;
        let mut tally = Tally::default();
        while let Some(done) = running.join_next().await {
            tally.add(done.context("a caller's task panicked")?);
        }
        let memory_bytes = watch::memory(&[])?;
        child.kill().await.context("the child cannot be ended")?;
        Ok(tally.into_outcome(self.window, &first, &last, memory_bytes))
    }

    async fn start(&self) -> anyhow::Result<(Pipes, Child)> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("the program cannot be started")?;
        let (requests, queue) = mpsc::channel(QUEUE);
        let pipes = Pipes { requests, waiting: Waiting::default() };
        spawn(write(child.stdin.take().context("no stdin")?, queue));
        spawn(read(child.stdout.take().context("no stdout")?, pipes.waiting.clone()));
        if self.era == Era::Legacy {
            let script = self.script()?;
            let answer = pipes.ask(0, body(script.initialize()).await).await?;
            let text = String::from_utf8_lossy(&answer);
            ensure!(text.contains("protocolVersion"), "the handshake was answered with {text}");
            let ready = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            pipes.requests.send(Bytes::from_static(ready)).await.context("the child is gone")?;
        }
        Ok((pipes, child))
    }

    /// Requests are those of a measurement over HTTP, without what is around them.
    fn script(&self) -> anyhow::Result<Script> {
        let url = Uri::from_static("http://child/mcp");
        Script::new(&Target { url, authorization: None, era: self.era })
    }

    fn caller(&self, pipes: Pipes, number: usize) -> anyhow::Result<Caller> {
        let next_id = FIRST_ID + IDS * number as u64;
        Ok(Caller { pipes, script: self.script()?, work: self.work, next_id })
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Bytes>) {
    while let Some(line) = queue.recv().await {
        // The reader sees the end of a child that does not read.
        if stdin.write_all(&[&line[..], b"\n"].concat()).await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, waiting: Waiting) {
    let mut lines = BufReader::with_capacity(1 << 16, stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let id = serde_json::from_str::<Id>(&line).ok().and_then(|line| line.id);
        let asked = id.and_then(|id| lock(&waiting).remove(&id));
        if let Some(asked) = asked {
            // A caller that is gone has already got an error.
            drop(asked.send(line.into()));
        }
    }
    // The callers that still wait get no answer.
    lock(&waiting).clear();
}

async fn body(request: Request<Full<Bytes>>) -> Bytes {
    let Ok(body) = request.into_body().collect().await;
    body.to_bytes()
}

impl Pipes {
    async fn ask(&self, id: u64, request: Bytes) -> anyhow::Result<Bytes> {
        let (asked, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, asked);
        self.requests.send(request).await.context("the child does not read any more")?;
        answer.await.map_err(|_gone| anyhow!("the child ended without an answer"))
    }
}

struct Caller {
    pipes: Pipes,
    script: Script,
    work: Work,
    next_id: u64,
}

impl Caller {
    async fn run(mut self, begin: Instant, end: Instant) -> Tally {
        let mut tally = Tally::default();
        let mut checker = Checker::new(self.work);
        loop {
            let start = Instant::now();
            if start >= end || tally.failed > 0 {
                return tally;
            }
            tally.sent += 1;
            let outcome = self.call(&mut checker).await;
            let now = Instant::now();
            match outcome {
                Ok(()) => tally.note_right(start..now, begin..end),
                Err(fault) => tally.note(fault),
            }
        }
    }

    async fn call(&mut self, checker: &mut Checker) -> Result<(), Fault> {
        let id = self.next_id;
        self.next_id += 1;
        let request = body(self.script.work(self.work, "", id)).await;
        let answered = self.pipes.ask(id, request).await;
        let answer = answered.map_err(|error| Fault::Failed(format!("{error:#}")))?;
        checker.check(&Response::new(vec![answer]), id)
    }
}
