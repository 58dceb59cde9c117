//! The guard of cost in `cargo xtask test`: a call of the debug build may not take far more
//! instructions, nor an idle daemon far more memory, than when their limits were set.
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
