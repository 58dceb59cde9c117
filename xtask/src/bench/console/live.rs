//! Open pages: their events while calls are made, and the processor time that they take.
#![expect(clippy::disallowed_types, reason = "synchronous: there is no tokio clock to pause here")]

use std::collections::HashSet;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde::Deserialize;

use super::costs::{IdleCost, LiveCost};
use super::person::{Asked, Connection, Person};
use super::{HOME, OPEN, median_and_most, plain};
use crate::bench::runs::{REQUEST, RUNS, Stage, WORKSPACE_TOKEN, ticks, wait_until_quiet};

/// Calls a second, and how long they are made.
const PER_SECOND: u32 = 20;
const SECONDS: u32 = 10;
const QUICK_SECONDS: u32 = 3;
/// How long nothing is done.
const IDLE: Duration = Duration::from_secs(20);
const QUICK_IDLE: Duration = Duration::from_secs(5);
/// Time for the last rows to arrive, and for a stream to begin.
const SETTLE: Duration = Duration::from_secs(2);
/// Milliseconds of one tick of a process's time.
const TICK_MS: u64 = 10;
const JSON: &str = "application/json";
/// The call at a server of the run, and its arguments.
const CALL: &str = "/mcp/lib/tools/echo";
const ARGUMENTS: &str = r#"{"message":"hello"}"#;
/// The beginning of a row of a call, and of an event's text.
const ROW: &str = "<li id=\"call-";
const DATA: &str = "data:";

/// A page that is open in a browser: its stream is read as it comes.
pub(super) struct Open {
    socket: TcpStream,
    reader: JoinHandle<()>,
    brought: Arc<Mutex<Brought>>,
}

/// The parts that a stream has brought.
#[derive(Default)]
pub(super) struct Brought {
    events: usize,
    bytes: usize,
    /// The rows of the page and of the stream.
    known: HashSet<String>,
    /// The time of each new row.
    rows: Vec<Instant>,
}

/// A run that makes calls.
#[derive(Deserialize)]
struct Run {
    run_id: String,
    token: String,
}

impl Open {
    /// Opens a page, and its stream on a connection of its own.
    pub(super) fn page(person: &Person, path: &str) -> Result<Self> {
        let html = person.connect()?.see(path)?.body;
        let (_, rest) = html.split_once("hx-sse:connect=\"").context("the page is not live")?;
        let stream = plain(rest.split_once('"').context("an attribute has an end")?.0);
        let brought = Brought { known: rows_of(&html).collect(), ..Brought::default() };
        let brought = Arc::new(Mutex::new(brought));
        let mut connection = person.connect()?;
        connection.open(&stream)?;
        let (socket, into) = (connection.socket()?, Arc::clone(&brought));
        let reader = thread::spawn(move || read(connection, &into));
        Ok(Self { socket, reader, brought })
    }

    /// Closes the page.
    pub(super) fn end(self) -> Result<Brought> {
        self.socket.shutdown(Shutdown::Both)?;
        if self.reader.join().is_err() {
            bail!("the reader of a stream panicked");
        }
        let mut brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *brought))
    }
}

impl Brought {
    /// Takes a part of the stream that came just now.
    fn take(&mut self, text: &str) {
        let now = Instant::now();
        self.bytes += text.len();
        self.events += text.lines().filter(|line| line.starts_with(DATA)).count();
        for row in rows_of(text) {
            if self.known.insert(row) {
                self.rows.push(now);
            }
        }
    }
}

/// Reads a stream until it is closed. The daemon sends each event in a part of its own.
fn read(mut connection: Connection, into: &Mutex<Brought>) {
    while let Ok(Some(chunk)) = connection.chunk() {
        let text = String::from_utf8_lossy(&chunk);
        into.lock().unwrap_or_else(PoisonError::into_inner).take(&text);
    }
}

/// The ids of the rows of calls.
fn rows_of(html: &str) -> impl Iterator<Item = String> {
    html.split(ROW).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
}

/// Makes calls at an even rate while the page of their run is open, and the same without it.
pub(super) fn measure(stage: &Stage, person: &Person, is_quick: bool) -> Result<LiveCost> {
    let token = fs::read_to_string(stage.data.join(WORKSPACE_TOKEN))?;
    let create = Asked {
        method: "POST",
        path: RUNS,
        bearer: Some(token.trim()),
        body: Some((JSON, REQUEST)),
    };
    let created = person.connect()?.ask(&create)?;
    ensure!(created.status / 100 == 2, "no run was created: {}", created.body);
    let run: Run = serde_json::from_str(&created.body).context("the answer shows no run")?;
    let calls = PER_SECOND * if is_quick { QUICK_SECONDS } else { SECONDS };
    // One-time costs are not counted.
    call(person, &run, PER_SECOND)?;
    wait_until_quiet(stage.daemon.pid())?;
    let (_, cpu_without_ms) = spent(stage, || call(person, &run, calls))?;
    wait_until_quiet(stage.daemon.pid())?;
    let page = Open::page(person, &format!("{HOME}runs/{}", run.run_id))?;
    pause(SETTLE);
    let (made, cpu_with_ms) = spent(stage, || call(person, &run, calls))?;
    let brought = page.end()?;
    let delays = made.iter().zip(&brought.rows).map(|(made, row)| row.duration_since(*made));
    let delays: Vec<_> = delays.collect();
    ensure!(!delays.is_empty(), "the page of the run has shown no call");
    let (delay_ms, longest_ms) = median_and_most(delays)?;
    Ok(LiveCost {
        per_second: PER_SECOND,
        calls: made.len(),
        shown: brought.rows.len(),
        events: brought.events,
        bytes: brought.bytes,
        delay_ms,
        longest_ms,
        cpu_without_ms,
        cpu_with_ms,
    })
}

/// Makes calls at an even rate. Gives the time of each answer.
fn call(person: &Person, run: &Run, calls: u32) -> Result<Vec<Instant>> {
    let mut connection = person.connect()?;
    let body = Some((JSON, ARGUMENTS));
    let asked = Asked { method: "POST", path: CALL, bearer: Some(&run.token), body };
    let (began, step) = (Instant::now(), Duration::from_secs(1) / PER_SECOND);
    let mut made = Vec::new();
    for number in 0..calls {
        pause((step * number).saturating_sub(began.elapsed()));
        let answer = connection.ask(&asked)?;
        ensure!(answer.status == 200, "a call was answered with {}", answer.status);
        made.push(Instant::now());
    }
    pause(SETTLE);
    Ok(made)
}

/// Watches the daemon while nothing is done, without an open page and with as many as one login
/// session may have.
pub(super) fn idle(stage: &Stage, person: &Person, is_quick: bool) -> Result<IdleCost> {
    let time = if is_quick { QUICK_IDLE } else { IDLE };
    let nothing = || {
        pause(time);
        Ok(())
    };
    let without_ms = spent(stage, nothing)?.1;
    let open = OPEN.iter().map(|page| Open::page(person, &format!("{HOME}{page}")));
    let open = open.collect::<Result<Vec<_>>>()?;
    pause(SETTLE);
    let with_ms = spent(stage, nothing)?.1;
    let pages = open.len();
    for page in open {
        let Brought { events, .. } = page.end()?;
        eprintln!("console: an idle page was sent {events} events");
    }
    Ok(IdleCost { pages, seconds: time.as_secs(), without_ms, with_ms })
}

/// The result of work, and the processor time of the daemon meanwhile, in milliseconds.
fn spent<T>(stage: &Stage, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let before = ticks(stage.daemon.pid())?;
    let done = work()?;
    let after = ticks(stage.daemon.pid())?;
    Ok((done, after.saturating_sub(before) * TICK_MS))
}

fn pause(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::Brought;

    #[test]
    fn each_row_counts_once() {
        let mut brought = Brought::default();
        let event = "event: x\ndata: <hx-partial><li id=\"call-a-1\"><li id=\"call-a-2\">\n\n";
        brought.take(event);
        brought.take(event);
        brought.take(": still there\n\n");
        assert_eq!((brought.events, brought.rows.len()), (2, 2));
    }
}
