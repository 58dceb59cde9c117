//! The distribution of the gateway's processor time, by samples of `perf`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::load::Load;
use super::plan::{Case, Way, Work};
use super::results::Profile;
use super::stage::Stage;
use crate::process::{Service, answers, capture};

const CONNECTIONS: usize = 8;
/// Duration of the load, and the recorded part of it.
const LOAD_MS: (u64, u64) = (1000, 9000);
const RECORDED_SECONDS: &str = "6";
const DONE: Duration = Duration::from_secs(60);
/// The part that a function belongs to, by a beginning or a piece of its name; the first match
/// counts.
const PARTS: [(&str, &[&str]); 9] = [
    ("narthex: parsing and rewriting JSON, event streams", &["narthex_wire"]),
    ("narthex: the connection to the server", &["narthex_http_client", "narthex_upstream"]),
    (
        "narthex: routing, policy, records",
        &["narthex_gateway", "narthex_audit", "narthex_policy", "narthex_registry"],
    ),
    ("narthex: the HTTP door", &["narthex_http"]),
    ("allocating and copying memory", &["mi_", "malloc", "memmove", "memset", "memcmp", "alloc::"]),
    ("shared buffers (`bytes`)", &["bytes::"]),
    ("HTTP/1.1 (`hyper`, `http`, `httparse`)", &["hyper", "http::", "httparse"]),
    ("the runtime (`tokio`)", &["tokio", "mio::", "parking_lot"]),
    ("hashing of tokens", &["sha2", "digest", "base64", "subtle"]),
];

/// Records calls at one server's endpoint. The programs keep their symbols for it.
pub(super) fn record(stage: &Stage, dir: &Path) -> Result<Vec<Profile>> {
    ensure!(answers("perf", &["--version"]), "perf is needed (Debian: package linux-perf)");
    let mut profiles = Vec::new();
    for work in [Work::Echo, Work::Progress] {
        let text = record_work(stage, work, dir)?;
        let title = format!("Processor time by part: {}, {}", work.title(), stage.era.name());
        profiles.push(Profile { title, text });
    }
    Ok(profiles)
}

fn record_work(stage: &Stage, work: Work, dir: &Path) -> Result<String> {
    let way = Way::Transparent;
    let case = Case { era: stage.era, work, connections: CONNECTIONS };
    let mut load = Load::lasting(stage, &case, way, LOAD_MS).into_command();
    let load = Service::start("narthex-load", &mut load, &dir.join("load.log"))?;
    let file = dir.join(format!("perf-{}-{}.data", stage.era.name(), work.name()));
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-F", "1999", "-e", "cpu-clock", "-g", "-o"]).arg(&file);
    for process in stage.processes(way) {
        perf.args(["-p", &process.to_string()]);
    }
    perf.args(["--", "sleep", RECORDED_SECONDS]);
    let recorded = capture(&mut perf, DONE)?;
    ensure!(recorded.status.success(), "perf cannot record: {}", recorded.stderr);
    load.wait_for("result", DONE, |line| line.starts_with('{').then_some(()))?;
    let mut report = Command::new("perf");
    report.args(["report", "--stdio", "--no-children", "-g", "none", "--sort", "symbol", "-i"]);
    report.arg(&file);
    Ok(summed(&capture(&mut report, DONE)?.stdout))
}

/// A table of parts, from a report of single functions.
fn summed(report: &str) -> String {
    let mut sums = vec![("the system: TCP, waiting, switching", 0.0)];
    sums.extend(PARTS.map(|(part, _)| (part, 0.0)));
    sums.push(("everything else", 0.0));
    let last = sums.len() - 1;
    for line in report.lines() {
        let Some((percent, function)) = line.trim().split_once('%') else { continue };
        let Ok(percent) = percent.parse::<f64>() else { continue };
        let fits = |(_, names): &(&str, &[&str])| names.iter().any(|name| function.contains(name));
        let at = match function.contains("[k]") {
            true => 0,
            false => PARTS.iter().position(fits).map_or(last, |at| at + 1),
        };
        sums[at].1 += percent;
    }
    let rows = sums.iter().map(|(part, percent)| format!("| {part} | {percent:.0} |\n"));
    format!("| part | % |\n|---|--:|\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_profile_are_summed_by_component() {
        let report = "# a comment\n  40.10%  [k] tcp_sendmsg\n  10.20%  [.] <hyper::A as B>::c\n\
                      2.00%  [.] narthex_wire::json::x\n   1.60%  [.] narthex_wire::sse::y\n\
                      0.50%  [.] main\n";
        let table = summed(report);
        for row in ["TCP, waiting, switching | 40 |", "`httparse`) | 10 |", "event streams | 4 |"] {
            assert!(table.contains(row), "{table}");
        }
        assert!(
            table.contains("| everything else | 0 |") || table.contains("else | 1 |"),
            "{table}"
        );
    }
}
