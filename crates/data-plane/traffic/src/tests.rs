//! Meters by a paused clock, by random traffic, and by many tasks at once.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, UNIX_EPOCH},
};

use narthex_model::{TrafficLimits, WorkspaceLimits};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Noon of the 20,000th day.
const NOON: Duration = Duration::from_secs(20_000 * 24 * 60 * 60 + 12 * 60 * 60);

fn limits(value: &Value) -> TrafficLimits {
    let read = WorkspaceLimits::parse(value.to_string().as_bytes(), &mut |place, problem| {
        panic!("{place}: {problem}");
    });
    read.unwrap().traffic
}

/// Meters whose day follows the clock of timers.
fn meters() -> Meters {
    let began = Instant::now();
    Meters::with_clock(
        WorkspaceId::default(),
        Arc::new(move || UNIX_EPOCH + NOON + began.elapsed()),
    )
}

fn meter(meters: &Meters, kind: MeterKind, name: &str) -> Arc<Meter> {
    let workspace = WorkspaceId::default();
    meters.get(&MeterKey { workspace, kind, name: name.into() })
}

/// Has all these count a call that is sent.
fn call(meters: &Meters, all: &[&Arc<Meter>]) -> Result<Admission, (LimitKind, u64)> {
    let mut counted = [None, None, None];
    for (counted, meter) in counted.iter_mut().zip(all) {
        *counted = Some((*meter, meter.limits()));
    }
    let taken = meters.admit(counted, true);
    let mut admission = taken.map_err(|excess| (excess.kind, excess.retry_after_ms))?;
    admission.set_sent(true);
    Ok(admission)
}

/// O100: a burst goes through at once, then one call in each interval. The reported wait is exactly
/// the time until the next call is admitted.
#[tokio::test(start_paused = true)]
async fn o100_a_rate_admits_a_burst_and_then_one_call_per_interval() {
    let meters = meters();
    let server = meter(&meters, MeterKind::Server, "tracker");
    server.set_limits(limits(&json!({"calls_per_second": 10, "burst": 3})));
    for _ in 0..3 {
        drop(call(&meters, &[&server]).unwrap());
    }
    assert_eq!(call(&meters, &[&server]).unwrap_err(), (LimitKind::Rate, 100));
    tokio::time::advance(Duration::from_millis(99)).await;
    assert_eq!(call(&meters, &[&server]).unwrap_err(), (LimitKind::Rate, 1));
    tokio::time::advance(Duration::from_millis(1)).await;
    drop(call(&meters, &[&server]).unwrap());
    assert_eq!(call(&meters, &[&server]).unwrap_err(), (LimitKind::Rate, 100));
    tokio::time::advance(Duration::from_secs(3600)).await;
    let admitted = (0..10).filter(|_| call(&meters, &[&server]).is_ok()).count();
    assert_eq!(admitted, 3, "a pause saves up no more than a burst");
}

/// O100: limits change at once, and counts stay; time taken up at a slow pace is no debt at a fast
/// one.
#[tokio::test(start_paused = true)]
async fn o100_counters_survive_a_change_of_limits() {
    let meters = meters();
    let agent = meter(&meters, MeterKind::Agent, "reader");
    agent.set_limits(limits(&json!({"calls_per_minute": 1, "burst": 5, "calls_per_day": 6})));
    for _ in 0..5 {
        drop(call(&meters, &[&agent]).unwrap());
    }
    assert_eq!(call(&meters, &[&agent]).unwrap_err(), (LimitKind::Rate, 60_000));
    agent.set_limits(limits(&json!({"calls_per_second": 1, "calls_per_day": 6})));
    assert_eq!(call(&meters, &[&agent]).unwrap_err(), (LimitKind::Rate, 1000));
    tokio::time::advance(Duration::from_secs(1)).await;
    drop(call(&meters, &[&agent]).unwrap());
    tokio::time::advance(Duration::from_secs(1)).await;
    let (kind, wait) = call(&meters, &[&agent]).unwrap_err();
    assert_eq!((kind, wait), (LimitKind::Daily, 12 * 60 * 60 * 1000 - 2000));
    agent.set_limits(TrafficLimits::default());
    drop(call(&meters, &[&agent]).unwrap());
    assert_eq!(agent.calls(meters.today()), 7);
}

/// O100: a day's quota is that of a day in UTC, and yesterday's count can still be stored.
#[tokio::test(start_paused = true)]
async fn o100_a_quota_ends_at_midnight() {
    let meters = meters();
    let server = meter(&meters, MeterKind::LocalServer, "git");
    server.set_limits(limits(&json!({"calls_per_day": 2})));
    for day in 20_000..20_004 {
        assert_eq!(meters.today(), day);
        drop(call(&meters, &[&server]).unwrap());
        drop(call(&meters, &[&server]).unwrap());
        assert_eq!(call(&meters, &[&server]).unwrap_err().0, LimitKind::Daily);
        tokio::time::advance(DAY).await;
        assert_eq!((server.calls(day), server.calls(day + 1)), (2, 0));
    }
}

/// O100: a call that one meter refuses is counted by none; and an unsent call counts nowhere.
#[tokio::test(start_paused = true)]
async fn o100_a_call_is_counted_by_all_meters_or_by_none() {
    let meters = meters();
    let workspace = meter(&meters, MeterKind::Workspace, "default");
    let agent = meter(&meters, MeterKind::Agent, "reader");
    workspace.set_limits(limits(&json!({"calls_per_second": 2, "calls_per_day": 9})));
    agent.set_limits(limits(&json!({"concurrent_calls": 1})));
    let open = call(&meters, &[&agent, &workspace]).unwrap();
    for _ in 0..50 {
        let refused = call(&meters, &[&agent, &workspace]).unwrap_err();
        assert_eq!(refused.0, LimitKind::Concurrency);
    }
    assert_eq!((workspace.calls(meters.today()), workspace.open()), (1, 1));
    drop(open);
    let mut unsent = call(&meters, &[&agent, &workspace]).unwrap();
    assert_eq!(workspace.calls(meters.today()), 2);
    unsent.set_sent(false);
    drop(unsent);
    assert_eq!((workspace.calls(meters.today()), workspace.open()), (1, 0));
    // The time of a rate stays taken.
    assert_eq!(call(&meters, &[&agent, &workspace]).unwrap_err(), (LimitKind::Rate, 500));
}

/// O100: a stream takes no place among open calls, and needs none.
#[tokio::test(start_paused = true)]
async fn o100_a_stream_takes_no_place() {
    let meters = meters();
    let server = meter(&meters, MeterKind::Server, "tracker");
    server.set_limits(limits(&json!({"concurrent_calls": 1, "calls_per_day": 3})));
    let _open = call(&meters, &[&server]).unwrap();
    let stream = || {
        let counted = [Some((&server, server.limits())), None, None];
        let mut stream = meters.admit(counted, false)?;
        stream.set_sent(true);
        Ok::<_, Exceeded>(stream)
    };
    let _first = stream().unwrap();
    let _second = stream().unwrap();
    assert_eq!((server.open(), server.calls(meters.today())), (1, 3));
    assert_eq!(stream().unwrap_err().kind, LimitKind::Daily);
}

/// O100: counts of other daemons under the same key count here once they are known. Each count is
/// stored once, and a restart begins with the stored counts.
#[tokio::test(start_paused = true)]
async fn o100_counts_of_other_daemons_and_stored_counts_are_added() {
    let meters = meters();
    let today = meters.today();
    let agent = meter(&meters, MeterKind::Agent, "reader");
    agent.restore(DayCount { day: today, calls: 10 });
    assert!(agent.unstored().is_empty());
    drop(call(&meters, &[&agent]).unwrap());
    drop(call(&meters, &[&agent]).unwrap());
    let (counted, more) = agent.unstored()[0];
    assert_eq!((counted, more), (DayCount { day: today, calls: 12 }, 2));
    // A call is made while two others are being stored, and another process has stored 5.
    drop(call(&meters, &[&agent]).unwrap());
    agent.note_stored(counted, 17);
    assert_eq!(agent.calls(today), 18);
    assert_eq!(agent.unstored(), [(DayCount { day: today, calls: 18 }, 1)]);
    agent.restore(DayCount { day: today, calls: 3 });
    assert_eq!(agent.calls(today), 18, "what is counted is not counted anew");
    let mut unsent = call(&meters, &[&agent]).unwrap();
    agent.note_stored(DayCount { day: today, calls: 19 }, 19);
    unsent.set_sent(false);
    drop(unsent);
    assert_eq!(agent.unstored(), [(DayCount { day: today, calls: 18 }, -1)]);
}

/// O100: unused meters are forgotten when their counts are over.
#[tokio::test(start_paused = true)]
async fn o100_unused_meters_are_forgotten() {
    let meters = meters();
    let kept = meter(&meters, MeterKind::Agent, "kept");
    drop(call(&meters, &[&meter(&meters, MeterKind::Agent, "called")]).unwrap());
    drop(meter(&meters, MeterKind::Agent, "silent"));
    let names = || {
        let mut names: Vec<_> = meters.all().iter().map(|one| one.key().name.to_string()).collect();
        names.sort();
        names
    };
    meters.forget_unused();
    assert_eq!(names(), ["called", "kept"]);
    tokio::time::advance(DAY).await;
    meters.forget_unused();
    assert_eq!(names(), ["called", "kept"], "yesterday's may still be stored");
    tokio::time::advance(DAY).await;
    meters.forget_unused();
    assert_eq!(names(), ["kept"]);
    drop(kept);
}

proptest! {
    /// O100: in any stretch of time there are at most a burst and the calls of the rate. So it is
    /// for any traffic, also where calls are given back unsent.
    #[test]
    fn o100_a_rate_is_never_exceeded(
        per_second in 1_u32..2000,
        burst in 1_u32..50,
        traffic in prop::collection::vec((0_u64..20_000_000, 1_u8..20, any::<bool>()), 1..80),
    ) {
        let meters = Meters::default();
        let server = meter(&meters, MeterKind::Server, "tracker");
        let limits = limits(&json!({"calls_per_second": per_second, "burst": burst}));
        let (mut ns, mut sent) = (0, Vec::new());
        for (pause, attempts, is_sent) in traffic {
            ns += pause;
            let now = clock::Moment { ns, day: 7, day_left_ms: 1 };
            for _ in 0..attempts {
                let Ok(taken) = server.take(&limits, now, true) else { continue };
                sent.extend(is_sent.then_some(ns));
                server.end(true);
                if !is_sent {
                    server.give_time_back(taken);
                    server.uncount(now.day);
                }
            }
        }
        for (first, &from) in sent.iter().enumerate() {
            for (last, &to) in sent.iter().enumerate().skip(first) {
                let allowed = f64::from(burst) + f64::from(per_second) * ((to - from) as f64) / 1e9;
                let there = (last - first + 1) as f64;
                prop_assert!(there <= allowed + 1e-6, "{there} calls, {allowed} allowed");
            }
        }
        prop_assert_eq!(server.calls(7), sent.len() as u64);
    }
}

/// State that the tasks of one test share.
struct Shared {
    meters: Meters,
    server: Arc<Meter>,
    workspace: Arc<Meter>,
    open: AtomicU32,
    was_exceeded: AtomicBool,
}

/// A call that is open. It is counted off before it gives its place back.
struct Held<'s> {
    open: &'s AtomicU32,
    _admission: Admission,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

const MOST: u32 = 5;

impl Shared {
    /// Makes a call that is held for a while, or dropped before it has come to its end.
    async fn call(&self, polls_wanted: u32, polls: u32) {
        let Ok(admission) = call(&self.meters, &[&self.server, &self.workspace]) else {
            return tokio::task::yield_now().await;
        };
        if self.open.fetch_add(1, Ordering::SeqCst) >= MOST {
            self.was_exceeded.store(true, Ordering::SeqCst);
        }
        let held = Held { open: &self.open, _admission: admission };
        let mut held = Box::pin(async move {
            let _held = held;
            for _ in 0..polls_wanted {
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..polls {
            if is_done(&mut held).await {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Polls a future once; whether it is done.
async fn is_done(of: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *of).poll(context).is_ready())
    })
    .await
}

/// O100: 64 tasks never have more calls open than the limit. However each of them ends, also
/// aborted in the middle, its place is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o100_places_are_never_too_many_and_never_leak() {
    let meters = Meters::default();
    let server = meter(&meters, MeterKind::Server, "tracker");
    let workspace = meter(&meters, MeterKind::Workspace, "default");
    server.set_limits(limits(&json!({"concurrent_calls": MOST})));
    let (open, was_exceeded) = (AtomicU32::new(0), AtomicBool::new(false));
    let shared = Arc::new(Shared { meters, server, workspace, open, was_exceeded });
    let mut tasks = JoinSet::new();
    for number in 0..64_u32 {
        let shared = shared.clone();
        tasks.spawn(async move {
            for round in 0..200_u32 {
                shared.call((number + round) % 7, (number * 31 + round * 17) % 5).await;
            }
        });
    }
    tasks.join_all().await;
    assert!(!shared.was_exceeded.load(Ordering::SeqCst), "more calls are open than may be");
    assert_eq!((shared.server.open(), shared.workspace.open()), (0, 0));
}
