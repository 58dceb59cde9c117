//! The conformance suites against servers, directly and through the gateway.
//!
//! The fixture runs behind the gateway with both eras and with each alone, and beside it servers
//! built with the official SDKs. A server has to pass behind the gateway what it passes alone,
//! scenario by scenario; that is measured anew each time. Each pair of server and suite also has a
//! floor, so that neither a shrunken server nor a skipped scenario can pass for a success.

mod servers;
mod suites;
mod target;

use std::{path::Path, thread};

use anyhow::{Result, ensure};
use fs_err as fs;

use self::servers::{SERVERS, Server};
use self::suites::{SUITES, Score, Suite};
use self::target::Target;
use crate::peers::Peers;
use crate::tally::Tally;
use crate::workspace;

/// Runs every suite against every server.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let logs = workspace::target().join("e2e/conformance");
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;
    let target = Target::start(peers, &logs)?;
    let mut tally = Tally::default();
    for server in &SERVERS {
        for (suite, floor) in SUITES.iter().zip(server.floors) {
            let name = format!("{} behind the gateway, {}", server.name, suite.name);
            let mut passed = 0;
            tally.check(&name, || {
                let pair = Pair { peers, target: &target, logs: &logs, server, suite };
                passed = pair.compare(floor)?;
                Ok(())
            });
            tally.passed += passed;
        }
    }
    if tally.failed > 0 {
        println!("  what each suite said is in {}", logs.display());
    }
    tally.check("the gateway ends well", || target.stop());
    Ok(tally)
}

/// One server and one suite.
struct Pair<'a> {
    peers: &'a Peers,
    target: &'a Target,
    logs: &'a Path,
    server: &'a Server,
    suite: &'a Suite,
}

impl Pair<'_> {
    /// Returns the number of checks that the server passes behind the gateway: as many as it passes
    /// alone, and no fewer than `floor`.
    fn compare(&self, floor: u64) -> Result<u64> {
        let Self { peers, target, logs, server, suite } = self;
        let run = |how, url: &str| suite.run(peers, &format!("{}-{how}", server.name), url, logs);
        // Both at once: a suite spends much of its time waiting.
        let (behind, alone) = thread::scope(|scope| {
            let url = target.direct(server);
            let alone = server.speaks(suite).then(|| scope.spawn(move || run("direct", url)));
            let behind = run("gateway", &target.gateway(server));
            (behind, alone.map(|running| running.join().expect("a run does not panic")))
        });
        let behind = behind?;
        if let Some(alone) = alone.transpose()? {
            println!("  {} alone: {}", server.name, alone.tally);
            behind.is_no_worse_than(&alone)?;
        }
        println!("  {} behind the gateway: {}", server.name, behind.tally);
        is_above(floor, &behind)?;
        Ok(behind.tally.passed)
    }
}

fn is_above(floor: u64, behind: &Score) -> Result<()> {
    let passed = behind.tally.passed;
    ensure!(passed >= floor, "{passed} checks pass, {floor} are known to be possible");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_above;
    use super::suites::Score;

    fn score(scenarios: &[(&str, u64, u64)]) -> Score {
        let scenarios = scenarios.iter().map(|(name, passed, failed)| {
            format!(
                "{} {name}: {passed} passed, {failed} failed\n",
                if *failed == 0 { "✓" } else { "✗" }
            )
        });
        let total = "Total: 0 passed, 0 failed\n";
        Score::read(&(scenarios.collect::<String>() + total), true).unwrap()
    }

    /// E173.
    #[test]
    fn a_server_must_pass_the_same_scenarios_behind_the_gateway() {
        let alone = score(&[("ping", 2, 0), ("tasks", 1, 3)]);
        let no_worse = |behind: &[(&str, u64, u64)]| score(behind).is_no_worse_than(&alone);
        no_worse(&[("ping", 2, 0), ("tasks", 1, 3)]).unwrap();
        no_worse(&[("ping", 3, 0), ("tasks", 4, 0)]).unwrap();
        for worse in [
            &[("ping", 1, 1), ("tasks", 4, 0)][..],
            &[("ping", 2, 1), ("tasks", 1, 3)],
            &[("ping", 2, 0), ("tasks", 0, 4)],
            &[("ping", 2, 0)],
        ] {
            assert!(no_worse(worse).is_err(), "{worse:?}");
        }
    }

    /// E173.
    #[test]
    fn a_suite_without_passed_checks_is_no_success() {
        let nothing = score(&[("ping", 0, 0)]);
        nothing.is_no_worse_than(&nothing).unwrap();
        assert!(is_above(1, &nothing).is_err());
        assert!(is_above(0, &nothing).is_ok());
    }
}
