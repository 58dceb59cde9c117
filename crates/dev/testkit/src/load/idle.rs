//! The cost of idle sessions.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use hyper::body::Incoming;
use serde::Serialize;
use tokio::time::sleep;

use super::script::Era;
use super::worker::Peer;
use super::{Target, watch};

/// Time for the other side to tidy up before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);
/// Number of sessions opened and closed first, so that one-time costs are not counted.
const WARM_UP: usize = 20;

/// Opens sessions of the legacy era and leaves them alone.
#[derive(Debug, Clone)]
pub struct IdlePlan {
    pub target: Target,
    pub sessions: usize,
    /// True if each session has a connection with an open stream.
    pub has_streams: bool,
    pub watched: Vec<u32>,
}

/// The memory of the watched processes.
#[derive(Debug, Serialize)]
pub struct IdleOutcome {
    pub sessions: usize,
    pub before_bytes: u64,
    pub after_bytes: u64,
}

impl IdlePlan {
    /// Opens the sessions, reads the memory and ends them.
    ///
    /// # Errors
    ///
    /// If a session or a stream cannot be opened.
    pub async fn run(&self) -> anyhow::Result<IdleOutcome> {
        ensure!(self.target.era == Era::Legacy, "only the legacy era has sessions");
        close(self.open(WARM_UP).await?).await?;
        sleep(SETTLE).await;
        let before_bytes = watch::memory(&self.watched)?;
        let open = self.open(self.sessions).await?;
        sleep(SETTLE).await;
        let after_bytes = watch::memory(&self.watched)?;
        close(open).await?;
        Ok(IdleOutcome { sessions: self.sessions, before_bytes, after_bytes })
    }

    async fn open(&self, count: usize) -> anyhow::Result<Vec<(Peer, Option<Incoming>)>> {
        let mut open = Vec::with_capacity(count);
        for number in 0..count {
            let opened = self.open_one().await;
            open.push(opened.with_context(|| format!("session {number}"))?);
        }
        Ok(open)
    }

    async fn open_one(&self) -> anyhow::Result<(Peer, Option<Incoming>)> {
        let mut peer = Peer::open(&self.target).await?;
        if !self.has_streams {
            // The session lives on without its connection.
            peer.connection.close();
            return Ok((peer, None));
        }
        let request = peer.script.stream();
        let stream = peer.connection.start(request).await?;
        let status = stream.status();
        ensure!(status.is_success(), "the stream was answered with {status}");
        Ok((peer, Some(stream.into_body())))
    }
}

async fn close(open: Vec<(Peer, Option<Incoming>)>) -> anyhow::Result<()> {
    for (peer, stream) in open {
        drop(stream);
        peer.end_elsewhere().await?;
    }
    Ok(())
}
