//! Random orders of starts, crashes, stops and drops must all reach the same end: no process is
//! left.

use std::time::Duration;

use narthex_supervisor::{ChildIo, Process, ProcessState, Shim};
use narthex_testkit::rounds;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::task::TaskTracker;

use crate::support::{
    DEAF, DEAF_LEAVER, LEAVER, POLITE, drain, in_time, members, shell, shim, start,
};

/// A step of the simulation. The number picks one of the existing processes.
#[derive(Debug, Clone, Copy)]
enum Step {
    Start(&'static str),
    /// The leader alone is killed, as by a crash.
    Crash(usize),
    /// A stop that is waited for.
    Stop(usize),
    /// Two stops at once, not waited for.
    StopTwice(usize),
    Kill(usize),
    Drop(usize),
    /// The pipes are closed, the handle stays.
    Close(usize),
    /// Lets the actors have a turn.
    Yield,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop_oneof![Just(POLITE), Just(DEAF), Just(LEAVER), Just(DEAF_LEAVER)]
            .prop_map(Step::Start),
        1 => any::<usize>().prop_map(Step::Crash),
        1 => any::<usize>().prop_map(Step::Stop),
        1 => any::<usize>().prop_map(Step::StopTwice),
        1 => any::<usize>().prop_map(Step::Kill),
        1 => any::<usize>().prop_map(Step::Drop),
        1 => any::<usize>().prop_map(Step::Close),
        2 => Just(Step::Yield),
    ]
}

struct World {
    shim: Shim,
    tracker: TaskTracker,
    living: Vec<(Process, Option<ChildIo>)>,
    groups: Vec<u32>,
}

impl World {
    async fn take(&mut self, step: Step) {
        match step {
            Step::Start(script) => self.start(script).await,
            Step::Yield => tokio::task::yield_now().await,
            Step::Crash(at)
            | Step::Stop(at)
            | Step::StopTwice(at)
            | Step::Kill(at)
            | Step::Drop(at)
            | Step::Close(at) => {
                if let Some(at) = at.checked_rem(self.living.len()) {
                    self.disturb(step, at).await;
                }
            }
        }
    }

    async fn start(&mut self, script: &str) {
        let mut spec = shell(script);
        spec.stop_grace = Duration::from_millis(20);
        spec.shim = self.shim.clone();
        let (process, io) = start(spec, &self.tracker).await;
        self.groups.push(process.id());
        self.living.push((process, Some(io)));
    }

    async fn disturb(&mut self, step: Step, at: usize) {
        let (process, io) = &mut self.living[at];
        match step {
            Step::Crash(_) => crash(process),
            Step::Stop(_) => {
                let exit = in_time(process.stop()).await;
                assert_eq!(process.state(), ProcessState::Exited(exit));
                assert_eq!(members(process.id()), 0);
            }
            Step::StopTwice(_) => {
                for process in [process.clone(), process.clone()] {
                    self.tracker.spawn(async move { process.stop().await });
                }
            }
            Step::Kill(_) => process.kill_now(),
            Step::Drop(_) => drop(self.living.swap_remove(at)),
            Step::Close(_) => drop(io.take()),
            Step::Start(_) | Step::Yield => unreachable!("these need no process"),
        }
    }
}

fn crash(process: &Process) {
    if process.state() == ProcessState::Running {
        let leader = Pid::from_raw(process.id().cast_signed()).unwrap();
        // The leader may have ended by itself.
        kill_process(leader, Signal::KILL).ok();
    }
}

#[test]
fn every_order_of_events_ends_clean() {
    simulate(&shim());
}

/// The same with process groups alone.
#[test]
fn every_order_of_events_ends_clean_without_a_shim() {
    simulate(&Shim::Absent);
}

fn simulate(shim: &Shim) {
    let config = Config {
        cases: rounds(48).try_into().expect("few enough"),
        rng_seed: RngSeed::Fixed(0x6e61_7274_6865_7800),
        failure_persistence: None,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let steps = proptest::collection::vec(step(), 1..16);
    TestRunner::new(config)
        .run(&steps, |steps| {
            runtime.block_on(async {
                let mut world = World {
                    shim: shim.clone(),
                    tracker: TaskTracker::new(),
                    living: Vec::new(),
                    groups: Vec::new(),
                };
                for step in steps {
                    world.take(step).await;
                }
                world.living.clear();
                drain(&world.tracker).await;
                let left: usize = world.groups.into_iter().map(members).sum();
                assert_eq!(left, 0);
            });
            Ok(())
        })
        .unwrap();
}
