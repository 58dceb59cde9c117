//! The guard of cost in `cargo xtask test`: a call of the debug build may not take far more
//! instructions, nor an idle daemon far more memory, than when their limits were set. A call with a
//! token of OAuth may take no more instructions than one with an API key.
//!
//! The numbers say nothing about the product's speed, which `cargo xtask bench` measures: they only
//! show a change. A change that is meant sets its limit anew here.

use anyhow::{Result, ensure};
use fs_err as fs;

use super::{report::bytes, runs};
use crate::tally::Tally;
use crate::workspace;

/// Instructions of a small call.
const CALL: u64 = 846_000;
/// Memory of an idle daemon with one server, apart from its program and libraries, in KiB.
const IDLE_KIB: u64 = 17_400;
/// Percent by which a measurement may differ from another one of the same program.
const SPREAD: u64 = 20;
/// Percent by which two measurements of one daemon may differ.
const NOISE: u64 = 2;
const PROFILE: &str = "debug";

/// Measures the programs as the last build left them.
pub(crate) fn check() -> Result<Tally> {
    let logs = workspace::target().join("guard");
    fs::create_dir_all(&logs)?;
    let mut tally = Tally::default();
    tally.check("instructions of a small call", || {
        let counted = runs::small_call(PROFILE, &logs)?;
        within("instructions per call", counted, CALL)
    });
    tally.check("a call with a token of OAuth costs no more than with an API key", || {
        as_cheap(&runs::by_credential(PROFILE, &logs)?)
    });
    tally.check("memory of an idle daemon", || {
        within("KiB when idle", bytes(runs::idle_kib(PROFILE, &logs)?), IDLE_KIB)
    });
    Ok(tally)
}

fn within(unit: &str, found: f64, limit: u64) -> Result<()> {
    println!("       {found:.0} {unit}; the limit is {limit} and {SPREAD} %");
    ensure!(
        found * 100.0 <= bytes(limit * (100 + SPREAD)),
        "{found:.0} {unit} are more than {limit} and {SPREAD} %: find the cause; if it is meant, \
         set the limit in xtask/src/bench/guard.rs"
    );
    Ok(())
}

/// Checks that no token of OAuth adds to the instructions of a call with an API key.
fn as_cheap(counted: &runs::ByCredential) -> Result<()> {
    let runs::ByCredential { key, machine, person } = *counted;
    for (credential, found) in [("clientCredentials", machine), ("authorizationCode", person)] {
        println!(
            "       {found:.0} instructions per call with {credential}, {key:.0} with an API key"
        );
        ensure!(
            found * 100.0 <= key * bytes(100 + NOISE),
            "a call with a token of `{credential}` takes {found:.0} instructions, one with an API \
             key {key:.0}: more than {NOISE} % apart; find the cause"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::as_cheap;
    use crate::bench::runs::ByCredential;

    /// E24.
    #[test]
    fn a_token_may_cost_as_much_as_a_key_and_no_more() {
        let counted = |machine, person| ByCredential { key: 1000.0, machine, person };
        as_cheap(&counted(1020.0, 900.0)).unwrap();
        assert!(as_cheap(&counted(1021.0, 900.0)).is_err());
        assert!(as_cheap(&counted(900.0, 1021.0)).is_err());
    }
}
