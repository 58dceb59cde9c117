//! Measures a registry with many rows: `registry_bench [ROWS] [REPEATS]` prints one line of JSON.
//!
//! Two kinds of rows are measured. Rows that are disabled hold no connection; rows whose
//! servers could not be reached hold a connection and its task. Linux only.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use std::{collections::BTreeMap, error::Error, hint::black_box, time::Duration};

use bytes::Bytes;
use narthex_model::{Alias, HttpTarget, ServerAuth, ServerDefinition, StdioTarget, Target};
use narthex_registry::{Declared, Registry, RegistryOptions, ServerResult, config::Entry};
use narthex_supervisor::BaseEnvironment;
use narthex_upstream::ClientIdentity;
use narthex_wire::Revision;
use serde::Serialize;
use tokio::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Number of snapshots in one measurement: a single snapshot is too cheap to be timed.
const SNAPSHOTS: u32 = 1_000_000;
/// Longer than all attempts to connect to a closed port take.
const SETTLED: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct Measured {
    kind: &'static str,
    rows: u32,
    bytes_per_row: f64,
    /// Median time of an apply of the whole set with one changed entry.
    apply_us: f64,
    /// Median time of an apply of the same set once more.
    same_us: f64,
    /// Time to read the present snapshot.
    snapshot_ns: f64,
    /// Median time to disable one server, which makes a snapshot.
    switch_us: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (rows, repeats) = (next(1000)?, next(50)?);
    // A first run, so that one-time costs are not counted.
    measure("disabled", 10, 1).await?;
    let mut all = Vec::new();
    for kind in ["disabled", "not reached"] {
        all.push(measure(kind, rows, repeats).await?);
    }
    let start = start(repeats.clamp(1, 5)).await?;
    println!("{}", serde_json::to_string(&Printed { rows: all, start })?);
    Ok(())
}

/// All printed results.
#[derive(Serialize)]
struct Printed {
    rows: Vec<Measured>,
    start: Start,
}

/// Programs that start side by side.
#[derive(Serialize)]
struct Start {
    servers: u32,
    /// Time that each server waits before it answers.
    start_up_ms: u32,
    /// Median time from the apply until all servers are ready.
    ready_ms: f64,
}

const PROGRAMS: u32 = 50;
const START_UP_MS: u32 = 200;
/// A legacy server in a few lines, which does nothing for a while.
const PROGRAM: &str = r#"sleep 0.2; while read -r line; do
id=${line#*'"id":'}; id=${id%%[,\}]*}
case "$line" in
*'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
result="$result"'"serverInfo":{"name":"s","version":"1"}}';;
*tools/list*) result='{"tools":[]}';;
*'"id"'*) error='{"code":-32601,"message":"-"}'
printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$error"; continue;;
*) continue;;
esac
printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;

async fn start(repeats: u32) -> Outcome<Start> {
    let mut all = Vec::new();
    for _ in 0..repeats {
        let registry = open()?;
        let set = (0..PROGRAMS).map(program).collect();
        let began = Instant::now();
        let results = registry.apply_config(set).await?;
        all.push(began.elapsed());
        if !results.iter().all(ServerResult::is_ready) {
            return Err(format!("not all programs start: {results:?}").into());
        }
        registry.close().await;
    }
    all.sort_unstable();
    let ready_ms = all[all.len() / 2].as_secs_f64() * 1e3;
    Ok(Start { servers: PROGRAMS, start_up_ms: START_UP_MS, ready_ms })
}

fn program(number: u32) -> Declared {
    let target = StdioTarget {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), PROGRAM.to_owned()],
        env: BTreeMap::new(),
        working_dir: None,
        confinement: None,
    };
    let alias = Alias::new(&name(number)).expect("the name is an alias");
    Entry::Server(ServerDefinition::new(alias, Target::Stdio(target))).into()
}

async fn measure(kind: &'static str, rows: u32, repeats: u32) -> Outcome<Measured> {
    let registry = open()?;
    let is_off = kind == "disabled";
    let before = resident_bytes()?;
    registry.apply(set(rows, 0, is_off))?;
    let settled = registry.wait_until(SETTLED, |snapshot| snapshot.is_settled()).await;
    if !settled.is_settled() || settled.servers.len() != usize::try_from(rows)? {
        return Err("the rows do not settle".into());
    }
    drop(settled);
    let bytes = resident_bytes()?.saturating_sub(before);
    let apply_us = median_us(repeats, |number| {
        let set = set(rows, number + 1, is_off);
        timed(|| drop(registry.apply(set)))
    });
    let same_us = median_us(repeats, |_| {
        let set = set(rows, repeats, is_off);
        timed(|| drop(registry.apply(set)))
    });
    let snapshots = timed(|| {
        for _ in 0..SNAPSHOTS {
            drop(black_box(registry.snapshot()));
        }
    });
    let switch_us = median_us(repeats, |number| {
        let name = name(number % rows);
        timed(|| drop(registry.disable(&name)))
    });
    registry.close().await;
    Ok(Measured {
        kind,
        rows,
        bytes_per_row: f64::from(u32::try_from(bytes)?) / f64::from(rows),
        apply_us,
        same_us,
        snapshot_ns: snapshots.as_secs_f64() * 1e9 / f64::from(SNAPSHOTS),
        switch_us,
    })
}

fn open() -> Outcome<Registry> {
    let identity = ClientIdentity {
        info: Bytes::from_static(br#"{"name":"registry-bench","version":"0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    };
    Ok(Registry::new(RegistryOptions::new(identity, BaseEnvironment::from_process()))?)
}

fn name(number: u32) -> String {
    format!("server-{number}")
}

/// The set in which one server has changed `version` times.
fn set(rows: u32, version: u32, is_disabled: bool) -> Vec<Declared> {
    let one = |number| {
        let version = if number == rows / 2 { version } else { 0 };
        let target = HttpTarget {
            // No server listens on this port.
            url: format!("http://127.0.0.1:9/mcp/{number}/{version}"),
            is_sse: false,
            headers: BTreeMap::new(),
            auth: ServerAuth::None,
        };
        let alias = Alias::new(&name(number)).expect("the name is an alias");
        let target = Target::Http(target);
        let definition = ServerDefinition { is_disabled, ..ServerDefinition::new(alias, target) };
        Declared::from(Entry::Server(definition))
    };
    (0..rows).map(one).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn median_us(repeats: u32, mut once: impl FnMut(u32) -> Duration) -> f64 {
    let mut all: Vec<_> = (0..repeats.max(1)).map(&mut once).collect();
    all.sort_unstable();
    all[all.len() / 2].as_secs_f64() * 1e6
}

fn resident_bytes() -> Outcome<u64> {
    let text = fs_err::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no resident memory")?;
    Ok(kib.trim().parse::<u64>()? * 1024)
}
