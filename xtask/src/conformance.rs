//! The conformance suites against the fixture server, directly and through the gateway.
//!
//! No failure is expected, so there is no list of expected ones. Each suite also has a floor, so
//! that neither a shrunken fixture nor a skipped scenario can pass for a success.

mod suites;
mod target;

use anyhow::{Result, ensure};
use fs_err as fs;

use self::suites::{SUITES, Score};
use self::target::Target;
use crate::peers::Peers;
use crate::tally::Tally;
use crate::workspace;

/// Runs every suite against both targets.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let logs = workspace::target().join("e2e/conformance");
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;
    let target = Target::start(&logs)?;
    let mut tally = Tally::default();
    for suite in &SUITES {
        let direct = suite.run(peers, "direct", &target.direct, &logs)?;
        println!("  {} directly: {}", suite.name, direct.tally);
        let gateway = suite.run(peers, "gateway", &target.gateway, &logs)?;
        println!("  {} through the gateway: {}", suite.name, gateway.tally);
        for failed in direct.failed.iter().chain(&gateway.failed) {
            println!("  FAIL {failed}");
        }
        tally += direct.tally;
        tally += gateway.tally;
        let name = format!("{} meets its floor", suite.name);
        tally.check(&name, || floor(suite.floor, &direct, &gateway));
    }
    if tally.failed > 0 {
        println!("  what each suite said is in {}", logs.display());
    }
    tally.check("the gateway ends well", || target.stop());
    Ok(tally)
}

fn floor(floor: u64, direct: &Score, gateway: &Score) -> Result<()> {
    let (alone, behind) = (direct.tally.passed, gateway.tally.passed);
    ensure!(alone >= floor, "the fixture passes {alone} checks, {floor} are known to be possible");
    ensure!(behind >= alone, "the gateway passes {behind} checks, the fixture alone {alone}");
    ensure!(direct.is_success && gateway.is_success, "a required scenario failed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::floor;
    use super::suites::Score;
    use crate::tally::Tally;

    fn score(passed: u64, is_success: bool) -> Score {
        Score { tally: Tally { passed, failed: 0 }, failed: Vec::new(), is_success }
    }

    #[test]
    fn the_gateway_may_not_score_lower_than_the_fixture() {
        floor(40, &score(40, true), &score(40, true)).unwrap();
        assert!(floor(40, &score(39, true), &score(39, true)).is_err());
        assert!(floor(40, &score(41, true), &score(40, true)).is_err());
        assert!(floor(40, &score(40, true), &score(40, false)).is_err());
    }
}
