//! Two daemons on one PostgreSQL whose tokens of a server end, and a daemon that is killed while it
//! renews them.
//!
//! `cargo xtask soak --only kills` runs 200 seeds of [`c23_a_killed_renewal_ends_no_call`]. A plain
//! run takes [`SEEDS`]. `NARTHEX_TEST_SEED` repeats one.

mod stage;

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use narthex_testkit::{
    authorization::{Endpoint, Gate, Moment, Quirks},
    postgres,
};
use tokio::{runtime::Builder, task::yield_now, time::timeout};

use self::stage::{Stage, all_work, is_right, lost};
use crate::{killed::chance::Chance, server_sign_ins::until, support::SOON};

/// Number of calls at one time, over both daemons.
const CALLS: usize = 200;
/// Calls that show that a daemon works.
const SOME: usize = 10;
/// Number of seeds of a plain run: each position once.
const SEEDS: u64 = 4;
/// The variable with the number of seeds of a long run.
const KILLS: &str = "NARTHEX_TEST_KILLS";
/// The variable with the one seed to be repeated.
const SEED: &str = "NARTHEX_TEST_SEED";
/// Number of seeds at one time. Most of its time, each waits for the end of a lease.
const WORKERS: usize = 4;
/// The time in which the authorization server takes a used refresh token once more.
const GRACE_MS: u64 = 30_000;
/// Most calls and turns of tasks before a kill.
const CALLS_MAX: usize = 20;
const TURNS_MAX: usize = 500;

/// The step of a renewal at which its daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The request is sent, and the authorization server has not worked on it.
    Asked,
    /// The refresh token is rotated, and the answer is not sent.
    Rotated,
    /// The answer is sent.
    Answered,
    /// Any moment from the time at which the token is due.
    Any,
}

const POSITIONS: [Position; 4] =
    [Position::Asked, Position::Rotated, Position::Answered, Position::Any];

impl Position {
    /// Closes the gate at which the renewal waits, if it waits.
    fn hold(self, stage: &Stage) -> Option<Gate> {
        match self {
            Self::Asked => Some(stage.fixture.hold(Endpoint::Token, Moment::Before)),
            Self::Rotated | Self::Answered => {
                Some(stage.fixture.hold(Endpoint::Token, Moment::After))
            }
            Self::Any => None,
        }
    }

    /// True for each possible number of renewals, those of the killed daemon among them.
    fn allows(self, refreshes: usize) -> bool {
        match self {
            // The other daemon renews, and the request of the killed one is not worked on.
            Self::Asked => refreshes == 1,
            Self::Rotated => refreshes == 2,
            Self::Answered | Self::Any => refreshes == 1 || refreshes == 2,
        }
    }
}

/// Fails after a time in which everything happens.
async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = timeout(SOON, work).await;
    done.unwrap_or_else(|_late| panic!("it does not happen: {what}"))
}

/// C23, E158, Q10: of two hundred calls at two daemons, over the end of a token, none fails, and
/// the token is renewed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_two_hundred_calls_at_two_daemons_renew_once() {
    let Some(stage) = Stage::start(Quirks::default()) else { return };
    let short = stage.gives_short_token(0).await;
    let before = stage.fixture.counts();
    let gate = stage.fixture.hold(Endpoint::Token, Moment::Before);
    let quarter = || [0, 1].map(|daemon| stage.calls(daemon, CALLS / 4));
    // Half of the calls begin before the end of the token, and the others after it.
    let early = quarter();
    soon("a renewal", is_renewing(&stage, 0, Some(&gate), short.due)).await;
    until(|| {
        assert_eq!(stage.row(0)["status"], "ready", "the row shows no renewal");
        (SystemTime::now() > short.ends).then_some(())
    });
    let late = quarter();
    gate.open();
    for calls in early.into_iter().chain(late) {
        soon("all calls", all_work(calls)).await;
    }
    let counts = stage.fixture.counts();
    assert!(counts.calls - before.calls >= CALLS, "{counts:?}");
    assert_eq!(counts.refreshes - before.refreshes, 1, "{counts:?}");
    assert_eq!((counts.refused_refreshes, counts.families_revoked), (0, 0), "{counts:?}");
}

/// C23: an authorization server without a grace takes a lost answer for a theft. Then a person
/// signs in again, and both daemons go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_an_answer_lost_without_a_grace_needs_a_person() {
    let Some(mut stage) = Stage::start(Quirks::default()) else { return };
    let short = stage.gives_short_token(0).await;
    let gate = stage.fixture.hold(Endpoint::Token, Moment::After);
    soon("a renewal", is_renewing(&stage, 0, Some(&gate), short.due)).await;
    stage.kill(0);
    gate.open();
    let refused = soon("a refusal", async {
        loop {
            let (called, _) = stage.calls(1, 1).join_next().await.unwrap().unwrap();
            let answer = called.unwrap();
            if !is_right(&answer) {
                return answer;
            }
        }
    })
    .await;
    assert!(refused.to_string().contains("auth_unavailable"), "{refused}");
    stage.until_in(1, "authenticating");
    assert_eq!(stage.fixture.counts().families_revoked, 1);
    stage.sign_in(1);
    stage.start_daemon(0);
    for daemon in [0, 1] {
        soon("all calls", all_work(stage.calls(daemon, SOME))).await;
    }
    assert_eq!(stage.fixture.counts().families_revoked, 1);
}

/// C23, Q10: a daemon that is killed at any step of a renewal fails no call of the other one, no
/// family is revoked, and no person signs in again. The killed daemon works after its restart.
#[test]
fn c23_a_killed_renewal_ends_no_call() {
    if postgres::database(&[]).is_none() {
        return;
    }
    let seeds = seeds();
    let next = AtomicUsize::new(0);
    let mut failed = Vec::new();
    let (sender, outcomes) = sync_channel(WORKERS);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let sender = sender.clone();
            scope.spawn(|| work(&seeds, &next, sender));
        }
        drop(sender);
        for (seed, outcome) in outcomes {
            match outcome {
                Ok(told) => println!("seed {seed}: ok, {told}"),
                Err(_panic) => failed.push(seed),
            }
        }
    });
    assert!(failed.is_empty(), "repeat one of these with {SEED}: {failed:?}");
}

/// The seeds of this run.
fn seeds() -> Vec<u64> {
    let read = |name: &str| -> Option<u64> {
        let text = std::env::var_os(name)?;
        Some(text.to_str().unwrap().parse().unwrap())
    };
    match read(SEED) {
        Some(seed) => vec![seed],
        None => (0..read(KILLS).unwrap_or(SEEDS)).collect(),
    }
}

/// The story of a seed, or its panic.
type Outcome = (u64, thread::Result<String>);

/// Runs seeds until none is left.
fn work(seeds: &[u64], next: &AtomicUsize, outcomes: SyncSender<Outcome>) {
    while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
        let run = move || {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(2).enable_all().build().unwrap().block_on(kill(seed))
        };
        // In a thread of its own, so that its panic ends no other seed.
        let ended = thread::spawn(run).join();
        outcomes.send((seed, ended)).unwrap();
    }
}

/// Kills a daemon during a renewal. Gives the story in words.
async fn kill(seed: u64) -> String {
    let mut chance = Chance::of(seed);
    let number = usize::try_from(seed).unwrap();
    let position = POSITIONS[number % POSITIONS.len()];
    let (killed, other) = match (number / POSITIONS.len()).is_multiple_of(2) {
        true => (0, 1),
        false => (1, 0),
    };
    let grace = Quirks { rotates_with_grace: Some(GRACE_MS), ..Quirks::default() };
    let mut stage = Stage::start(Quirks { grace_rotates: true, ..grace }).unwrap();
    let short = stage.gives_short_token(killed).await;
    let before = stage.fixture.counts();
    let gate = position.hold(&stage);
    soon("a renewal", is_renewing(&stage, killed, gate.as_ref(), short.due)).await;
    let calls = [killed, other].map(|daemon| stage.calls(daemon, CALLS / 2));
    let gate = gate.filter(|_| position != Position::Answered);
    if position == Position::Any {
        for _ in 0..chance.below(CALLS_MAX) {
            soon("a call", stage.works(killed)).await;
        }
    }
    for _ in 0..chance.below(TURNS_MAX) {
        yield_now().await;
    }
    stage.kill(killed);
    let open = async {
        let Some(gate) = gate else { return };
        if position == Position::Asked {
            // The request of the killed daemon has gone with its connection by then.
            gate.until(2).await;
        }
        gate.open();
    };
    let [of_killed, of_other] = calls;
    let all = async { tokio::join!(open, all_work(of_other), lost(of_killed)) };
    let ((), longest, lost) = soon("all calls", all).await;
    soon("a token that lives long", stage.has_long_token(other, &short)).await;
    let counts = stage.fixture.counts();
    let refreshes = counts.refreshes - before.refreshes;
    assert!(position.allows(refreshes), "{position:?}, {refreshes} renewals: {counts:?}");
    goes_on(&mut stage, killed).await;
    format!(
        "{position:?}, daemon {killed} killed, {lost} calls of it lost, {refreshes} renewals, the \
         longest call took {:.1} s",
        longest.as_secs_f64()
    )
}

/// Has a daemon call, until its renewal is at the gate, or without one until the token is due.
async fn is_renewing(stage: &Stage, daemon: usize, gate: Option<&Gate>, due: SystemTime) {
    match gate {
        Some(gate) => tokio::select! {
            biased;
            () = gate.until(1) => {}
            () = stage.calls_on(daemon) => {}
        },
        None => {
            while SystemTime::now() < due {
                stage.works(daemon).await;
            }
        }
    }
}

/// Starts the killed daemon again. Both daemons work, now and after the next renewal, and no person
/// has signed in a second time.
async fn goes_on(stage: &mut Stage, killed: usize) {
    stage.start_daemon(killed);
    for is_renewed in [false, true] {
        if is_renewed {
            stage.fixture.end_access_tokens();
        }
        let before = stage.fixture.counts().refreshes;
        for calls in [0, 1].map(|daemon| stage.calls(daemon, SOME)) {
            soon("calls of both", all_work(calls)).await;
        }
        let counts = stage.fixture.counts();
        assert_eq!(counts.refreshes - before, usize::from(is_renewed), "{counts:?}");
        assert_eq!((counts.refused_refreshes, counts.families_revoked), (0, 0), "{counts:?}");
        assert_eq!(counts.exchanged_codes, 1, "{counts:?}");
    }
}

/// Each position is among the seeds of a plain run, and is tried with each daemon in a long one.
#[test]
fn seeds_of_a_plain_run_have_each_position() {
    assert_eq!(u64::try_from(POSITIONS.len()).unwrap(), SEEDS);
    assert!(Duration::from_millis(GRACE_MS) < SOON);
}
