//! One connection's closed loop.

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::header::HeaderValue;
use http::{Request, Response};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::Instant;

use super::Target;
use super::check::{Checker, Fault};
use super::connection::{Connection, Exchanged};
use super::outcome::Tally;
use super::script::{Era, SESSION, Script, Work};

/// The first id of the first connection. All ids have as many digits.
pub(super) const FIRST_ID: u64 = 1_000_000_000;
/// Most calls that a connection can make.
pub(super) const IDS: u64 = 10_000_000;

/// Maximum number of pages of a list that is counted.
const PAGES_MAX: u64 = 1_000;

/// An open connection, with a session if the era has them.
pub(super) struct Peer {
    target: Target,
    pub(super) script: Script,
    pub(super) connection: Connection,
}

impl Peer {
    pub(super) async fn open(target: &Target) -> anyhow::Result<Self> {
        let connection = Connection::open(&target.url).await?;
        let mut peer = Self { target: target.clone(), script: Script::new(target)?, connection };
        if target.era == Era::Legacy {
            peer.open_session().await?;
        }
        Ok(peer)
    }

    pub(super) async fn open_session(&mut self) -> anyhow::Result<()> {
        let initialize = self.script.initialize();
        let answer = self.ask(initialize).await.context("initialize")?;
        let session: HeaderValue = answer.headers().get(SESSION).context("no session")?.clone();
        let initialized = self.script.initialized(session);
        self.ask(initialized).await.context("initialized")?;
        Ok(())
    }

    /// Sends what must succeed.
    pub(super) async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> anyhow::Result<Response<Vec<Bytes>>> {
        match self.connection.exchange(request).await {
            Exchanged::Answered(answer) => {
                let status = answer.status();
                let text = answer.body().concat();
                let text = String::from_utf8_lossy(&text);
                ensure!(status.is_success(), "answered with {status}: {text}");
                Ok(answer)
            }
            Exchanged::Unsent => bail!("the connection was closed"),
            Exchanged::Failed(error) => Err(error.into()),
        }
    }

    /// Gives the session back over a new connection, the old one being closed or taken.
    pub(super) async fn end_elsewhere(mut self) -> anyhow::Result<()> {
        self.connection = Connection::open(&self.target.url).await?;
        self.close().await;
        Ok(())
    }

    /// Gives the session back. Whether that works is not what is measured.
    pub(super) async fn close(mut self) {
        if self.target.era == Era::Legacy {
            self.connection.exchange(self.script.delete()).await;
        }
    }
}

pub(super) struct Worker {
    peer: Peer,
    work: Work,
    prefixes: Vec<String>,
    next_id: u64,
}

impl Worker {
    pub(super) async fn open(
        target: &Target,
        work: Work,
        prefixes: &[String],
        number: usize,
    ) -> anyhow::Result<Self> {
        let peer = Peer::open(target).await?;
        let next_id = FIRST_ID + IDS * number as u64;
        Ok(Self { peer, work, prefixes: prefixes.to_vec(), next_id })
    }

    /// Calls until the end of the window.
    pub(super) async fn run(mut self, begin: Instant, end: Instant) -> (Self, Tally) {
        let mut tally = Tally::default();
        let mut checker = Checker::new(self.work);
        let mut turn = self.prefixes.clone().into_iter().cycle();
        loop {
            let start = Instant::now();
            if start >= end {
                return (self, tally);
            }
            let prefix = turn.next().unwrap_or_default();
            let id = self.next_id;
            self.next_id += 1;
            let outcome = self.call(&prefix, id, &mut checker, &mut tally).await;
            let now = Instant::now();
            match outcome {
                Ok(()) => tally.note_right(start..now, begin..end),
                Err(fault) => tally.note(fault),
            }
            if tally.failed > 1000 {
                return (self, tally);
            }
        }
    }

    async fn call(
        &mut self,
        prefix: &str,
        id: u64,
        checker: &mut Checker,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        tally.sent += 1;
        let mut is_second = false;
        loop {
            let request = self.peer.script.work(self.work, prefix, id);
            match self.peer.connection.exchange(request).await {
                Exchanged::Answered(answer) => return checker.check(&answer, id),
                Exchanged::Unsent if !is_second => {
                    is_second = true;
                    tally.reconnected += 1;
                    self.reconnect().await?;
                }
                Exchanged::Unsent => return Err(Fault::Failed("closed twice".to_owned())),
                Exchanged::Failed(error) => {
                    self.reconnect().await?;
                    return Err(Fault::Failed(format!("{error:?}")));
                }
            }
        }
    }

    async fn reconnect(&mut self) -> Result<(), Fault> {
        let connection = Connection::open(&self.peer.target.url).await;
        self.peer.connection = connection.map_err(|error| Fault::Failed(format!("{error:#}")))?;
        Ok(())
    }

    pub(super) async fn close(self) {
        self.peer.close().await;
    }
}

impl Tally {
    pub(super) fn note(&mut self, fault: Fault) {
        let (count, text) = match fault {
            Fault::Failed(text) => (&mut self.failed, text),
            Fault::Wrong(text) => (&mut self.wrong, text),
            Fault::Doubled(text) => (&mut self.doubled, text),
        };
        *count += 1;
        self.first_problem.get_or_insert(text);
    }
}

/// Number of calls that a fixture has seen, including the one that asks for the number.
pub(super) async fn calls_seen(target: &Target) -> anyhow::Result<u64> {
    let result = ask_once(target, |script| script.counters(FIRST_ID)).await?;
    let calls = result["structuredContent"]["calls"].as_u64();
    calls.context("the fixture shows no counters")
}

pub(super) async fn count_tools(target: &Target) -> anyhow::Result<usize> {
    let mut peer = Peer::open(target).await?;
    let (mut count, mut cursor) = (0, String::new());
    for id in FIRST_ID..FIRST_ID + PAGES_MAX {
        let page = answered(&mut peer, |script| script.page(&cursor, id)).await?;
        count += page["tools"].as_array().context("no list of tools")?.len();
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => {
                peer.close().await;
                return Ok(count);
            }
        }
    }
    bail!("the list of tools has more than {PAGES_MAX} pages")
}

async fn ask_once(
    target: &Target,
    request: impl FnOnce(&Script) -> Request<Full<Bytes>>,
) -> anyhow::Result<Value> {
    let mut peer = Peer::open(target).await?;
    let result = answered(&mut peer, request).await?;
    peer.close().await;
    Ok(result)
}

async fn answered(
    peer: &mut Peer,
    request: impl FnOnce(&Script) -> Request<Full<Bytes>>,
) -> anyhow::Result<Value> {
    let answer = peer.ask(request(&peer.script)).await?;
    let mut answer: Value = serde_json::from_slice(&answer.body().concat())?;
    Ok(answer["result"].take())
}
