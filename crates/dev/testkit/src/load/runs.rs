//! The cost of runs: the time of their creation and their end, and the memory of live ones.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Uri};
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::Target;
use super::connection::{Connection, Exchanged};
use super::outcome::percentile_us;
use super::watch;

/// Time for the other side to tidy up before its memory is read.
const SETTLE: Duration = Duration::from_secs(3);
/// Number of runs created and ended first, so that one-time costs are not counted.
const WARM_UP: usize = 50;

/// Creates runs one after the other over one connection, and leaves most of them alone.
#[derive(Debug, Clone)]
pub struct RunsPlan {
    /// The collection of runs.
    pub target: Target,
    /// The body of the POST.
    pub body: String,
    /// Number of live runs at the end, besides one that keeps the shared parts in use.
    pub runs: usize,
    /// Number of further runs that are ended.
    pub ended: usize,
    pub watched: Vec<u32>,
}

/// Times in microseconds, memory of the watched processes.
#[derive(Debug, Serialize)]
pub struct RunsOutcome {
    pub runs: usize,
    pub create_p50_us: f64,
    pub create_p99_us: f64,
    pub end_p50_us: f64,
    pub end_p99_us: f64,
    pub before_bytes: u64,
    pub after_bytes: u64,
    /// The token of one of the runs.
    pub token: String,
}

/// The members of a created run that are read.
#[derive(Deserialize)]
struct Created {
    run_id: String,
    token: String,
}

impl RunsPlan {
    /// Creates the runs, reads the memory, and ends some.
    ///
    /// # Errors
    ///
    /// If a run cannot be created or ended.
    pub async fn run(&self) -> anyhow::Result<RunsOutcome> {
        let mut client =
            Client { connection: Connection::open(&self.target.url).await?, plan: self };
        let kept = client.create().await?.0;
        for _ in 0..WARM_UP {
            let (run, _) = client.create().await?;
            client.end(&run.run_id).await?;
        }
        sleep(SETTLE).await;
        let before_bytes = watch::memory(&self.watched)?;
        let mut creating = Vec::with_capacity(self.runs);
        for number in 0..self.runs {
            let created = client.create().await.with_context(|| format!("run {number}"))?;
            creating.push(created.1);
        }
        sleep(SETTLE).await;
        let after_bytes = watch::memory(&self.watched)?;
        let mut ending = Vec::with_capacity(self.ended);
        for _ in 0..self.ended {
            let (run, _) = client.create().await?;
            ending.push(client.end(&run.run_id).await?);
        }
        creating.sort_unstable();
        ending.sort_unstable();
        Ok(RunsOutcome {
            runs: self.runs,
            create_p50_us: percentile_us(&creating, 50),
            create_p99_us: percentile_us(&creating, 99),
            end_p50_us: percentile_us(&ending, 50),
            end_p99_us: percentile_us(&ending, 99),
            before_bytes,
            after_bytes,
            token: kept.token,
        })
    }
}

struct Client<'p> {
    connection: Connection,
    plan: &'p RunsPlan,
}

impl Client<'_> {
    async fn create(&mut self) -> anyhow::Result<(Created, u64)> {
        let url = self.plan.target.url.clone();
        let (body, took) = self.ask(Method::POST, &url, self.plan.body.clone()).await?;
        let created = serde_json::from_slice(&body).context("the answer shows no run")?;
        Ok((created, took))
    }

    async fn end(&mut self, run: &str) -> anyhow::Result<u64> {
        let url = format!("{}/{run}", self.plan.target.url).parse()?;
        Ok(self.ask(Method::DELETE, &url, String::new()).await?.1)
    }

    /// The body of the answer, and how many nanoseconds it took.
    async fn ask(
        &mut self,
        method: Method,
        url: &Uri,
        body: String,
    ) -> anyhow::Result<(Vec<u8>, u64)> {
        let host = url.authority().context("the URL has no host")?.as_str();
        let mut request = Request::builder()
            .method(method)
            .uri(url.path())
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.plan.target.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        let begin = Instant::now();
        let answer = match self.connection.exchange(request).await {
            Exchanged::Answered(answer) => answer,
            Exchanged::Unsent => bail!("the connection was closed"),
            Exchanged::Failed(error) => return Err(error.into()),
        };
        let took = u64::try_from(begin.elapsed().as_nanos())?;
        let (status, body) = (answer.status(), answer.into_body().concat());
        let shown = String::from_utf8_lossy(&body);
        ensure!(status.is_success(), "{url} answered {status}: {shown}");
        Ok((body, took))
    }
}
