//! Sign-ins by OAuth: the conformance suite's scenarios for clients, with narthex as the client,
//! real authorization servers, and real clients and a real browser at the door.
//!
//! Each scenario and each driver starts a daemon and peers of its own, so they run side by side.
//! Each revision has a floor of different passed checks, so that no scenario can pass by testing
//! nothing.

mod drivers;
mod scenarios;
mod suite;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, ensure};
use fs_err as fs;

use self::drivers::{DRIVERS, Driver, Programs};
use self::scenarios::{COUNT, REVISIONS, Revision};
use crate::peers::Peers;
use crate::tally::Tally;
use crate::workspace;

/// Number of jobs at one time.
const WORKERS: usize = 2;

/// Runs every scenario and every driver.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let logs = workspace::target().join("e2e/oauth");
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;
    let programs = Programs::install(peers)?;
    let mut total = Done::default();
    for done in work(&jobs(), |job| job.run(&programs, &logs)) {
        total.add(&done);
    }
    let mut tally = total.tally;
    for (revision, passed) in REVISIONS.iter().zip(total.passed) {
        tally.check(&format!("enough checks of {}", revision.name), || {
            is_above(revision.floor, passed)
        });
        tally.passed += passed;
    }
    for (scenario, reason) in scenarios::NOT_BUILT {
        println!("  not run: auth/{scenario}, since {reason}");
    }
    if tally.failed > 0 {
        println!("  the logs are in {}", logs.display());
    }
    Ok(tally)
}

/// One check that runs beside others.
enum Job {
    /// A scenario of the suite, and the index of its revision.
    Scenario(usize, &'static Revision, &'static str),
    Driver(&'static Driver),
}

/// All checks. Drivers are first, since they take longest.
fn jobs() -> Vec<Job> {
    let drivers = DRIVERS.iter().map(Job::Driver);
    let scenarios = REVISIONS.iter().enumerate().flat_map(|(index, revision)| {
        revision.scenarios.iter().map(move |name| Job::Scenario(index, revision, name))
    });
    drivers.chain(scenarios).collect()
}

impl Job {
    /// Runs the check. Gives the number of different checks that the suite counts as passed.
    fn run(&self, programs: &Programs<'_>, logs: &Path) -> Outcome {
        let mut outcome = Outcome::default();
        match self {
            Self::Driver(driver) => {
                outcome.tally.check(driver.name, || driver.run(programs, logs));
            }
            Self::Scenario(index, revision, scenario) => {
                outcome.revision = Some(*index);
                let name = format!("narthex as a client, {}: auth/{scenario}", revision.name);
                outcome.tally.check(&name, || {
                    outcome.passed = suite::run(programs.peers, logs, revision, scenario)?;
                    Ok(())
                });
            }
        }
        outcome
    }
}

/// The outcome of one job.
#[derive(Default)]
struct Outcome {
    tally: Tally,
    revision: Option<usize>,
    passed: u64,
}

/// The outcome of all jobs of one worker.
#[derive(Default)]
struct Done {
    tally: Tally,
    /// Number of passed checks of each revision.
    passed: [u64; COUNT],
}

impl Done {
    fn add(&mut self, other: &Self) {
        self.tally += other.tally;
        for (sum, more) in self.passed.iter_mut().zip(other.passed) {
            *sum += more;
        }
    }

    fn take(&mut self, outcome: &Outcome) {
        self.tally += outcome.tally;
        if let Some(index) = outcome.revision
            && let Some(sum) = self.passed.get_mut(index)
        {
            *sum += outcome.passed;
        }
    }
}

/// Runs all jobs, a few at one time, and gives the sums of each worker.
fn work<T: Sync>(jobs: &[T], run: impl Fn(&T) -> Outcome + Sync) -> Vec<Done> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Done::default();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.take(&run(job));
        }
        done
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        let done = |running: thread::ScopedJoinHandle<'_, Done>| {
            running.join().expect("a job does not panic")
        };
        workers.into_iter().map(done).collect()
    })
}

fn is_above(floor: u64, passed: u64) -> Result<()> {
    ensure!(passed >= floor, "{passed} different checks pass, {floor} are known to be possible");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Done, Outcome, is_above, work};
    use crate::tally::Tally;

    #[test]
    fn each_job_runs_once_and_counts_for_its_revision() {
        let jobs: Vec<u64> = (0..50).collect();
        let done = work(&jobs, |job| Outcome {
            tally: Tally { passed: 1, failed: 0 },
            revision: Some(usize::from(job % 2 == 1)),
            passed: *job,
        });
        let mut total = Done::default();
        for worker in &done {
            total.add(worker);
        }
        assert_eq!(total.tally, Tally { passed: 50, failed: 0 });
        assert_eq!(total.passed[..2], [600, 625]);
    }

    /// E213.
    #[test]
    fn fewer_checks_than_are_possible_are_a_failure() {
        assert!(is_above(3, 2).is_err());
        assert!(is_above(3, 3).is_ok());
    }
}
