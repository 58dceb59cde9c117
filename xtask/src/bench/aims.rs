//! The aims, and whether they are met.
//!
//! An aim holds in the worst of the cases that it is about. One that was not measured is no aim
//! of this run.

use super::plan::{Case, Era, Way, Work};
use super::results::{FileCallCost, MountCost, Results, Row, RunsCost};

/// Most processor time of a call, in nginx's.
const CPU_RATIO: f64 = 2.0;
const SMALL_CPU_RATIO: f64 = 1.6;
/// Longest time of all but one in a hundred small calls, in nginx's.
const TAIL_RATIO: f64 = 1.5;
/// The numbers of connections that the tail is about. With more, callers wait for each other.
const TAIL_CONNECTIONS: [usize; 2] = [1, 8];
/// Most added time of a call against a direct one, alone on its connection.
const ADDED_P50_US: f64 = 150.0;
/// The least rate of a cached list, as part of the small call's.
const LIST_RATE: f64 = 0.7;
/// Most memory that an idle session may add.
const SESSION_BYTES: f64 = 32.0 * 1024.0;
/// Most memory of a daemon that has just started, and of one that 64 callers have used.
const IDLE_BYTES: f64 = 35e6;
const BUSY_BYTES: f64 = 45e6;
const BUSY_CALLERS: usize = 64;
/// Longest time for the creation of a run, once its servers are there.
const RUN_US: f64 = 5000.0;
/// Most memory that an unused live run may add.
const RUN_BYTES: f64 = 16.0 * 1024.0;
/// Longest time for a decision with ten thousand grants and no rules, and with a hundred rules.
const DECISION_NS: f64 = 5_000.0;
const RULED_NS: f64 = 50_000.0;
/// Most added time of a call as a file against one over HTTP.
const FILE_US: f64 = 80.0;
/// Longest time for listing the files of ten thousand tools.
const LS_MS: f64 = 100.0;
/// Least share of the calls that readers of files make at once, out of those over HTTP.
const FILES_SCALE: f64 = 0.9;
/// Largest growth of a call's instructions beside many runs and servers.
const CALL_GROWTH: f64 = 0.05;
/// The instructions of a call before there were gates, grants and rules on its way, measured on
/// 2026-11-22, and their largest growth since.
const UNGATED_CALL: f64 = 221_039.0;
const GATES_GROWTH: f64 = 0.03;

pub(super) struct Aim {
    pub(super) name: String,
    pub(super) wanted: String,
    pub(super) found: String,
    pub(super) is_met: bool,
}

pub(super) fn check(results: &Results) -> Vec<Aim> {
    let mut aims = Vec::new();
    let works = [Work::Echo, Work::Progress, Work::Blob100k, Work::Blob5m];
    for work in works {
        aims.extend(cpu(results, work));
    }
    aims.extend(tail(results));
    aims.extend(added_latency(results));
    aims.extend(no_faults(results));
    aims.extend(list_rate(results));
    aims.extend(idle(results));
    aims.extend(idle_daemon(results));
    aims.extend(busy_daemon(results));
    aims.extend(decisions(results));
    aims.extend(results.runs.iter().flat_map(runs));
    aims.extend(results.mounts.iter().flat_map(mounts));
    aims.extend(results.console.iter().flat_map(super::console::aims));
    aims
}

fn decisions(results: &Results) -> Vec<Aim> {
    let aim = |what: &str, wanted: f64, is_ruled: bool| {
        let those = results.decisions.iter().filter(|cost| (cost.rules > 0) == is_ruled);
        let found = those.map(|cost| {
            let text = format!("{:.1} µs ({})", cost.decision_ns / 1e3, cost.name);
            Found { value: cost.decision_ns, text }
        });
        worst(found).map(|found| Aim {
            name: format!("A decision, {what}"),
            wanted: format!("≤ {} µs", wanted / 1e3),
            is_met: found.value <= wanted,
            found: found.text,
        })
    };
    let without = aim("10,000 grants and no rules", DECISION_NS, false);
    without.into_iter().chain(aim("100 rules", RULED_NS, true)).collect()
}

fn mounts(cost: &MountCost) -> Vec<Aim> {
    let added = |call: &FileCallCost| call.file_us - call.http_us;
    let as_it_is = format!("{:.0} µs as the machine is", added(&cost.call));
    let (call, machine) = match &cost.awake {
        Some(call) => (call, format!("with `--low-latency`; {as_it_is}")),
        None => (&cost.call, as_it_is),
    };
    let added = added(call);
    let mut aims = vec![
        Aim {
            name: "Opening, writing, reading and closing a file, beyond a call over HTTP, median"
                .to_owned(),
            wanted: format!("≤ {FILE_US} µs"),
            found: format!("{added:.0} µs (of {:.0} µs, {machine})", call.file_us),
            is_met: added <= FILE_US,
        },
        Aim {
            name: format!("`ls` of {} tools", cost.tools),
            wanted: format!("≤ {LS_MS} ms"),
            found: format!("{:.0} ms", cost.ls_ms),
            is_met: cost.ls_ms <= LS_MS,
        },
    ];
    // For a tool that takes no time, the number of calls only depends on the processors.
    aims.extend(cost.rates.iter().filter(|rate| rate.tool_ms > 0).map(|rate| {
        let part = rate.files / rate.http;
        Aim {
            name: format!(
                "Calls of {} readers of a tool that takes {} ms, of those over HTTP",
                rate.at_once, rate.tool_ms
            ),
            wanted: format!("≥ {:.0} %", FILES_SCALE * 100.0),
            found: format!("{:.0} % ({rate})", part * 100.0),
            is_met: part >= FILES_SCALE,
        }
    }));
    aims
}

fn runs(cost: &RunsCost) -> Vec<Aim> {
    let disk = format!("one write to this disk takes {:.1} ms", cost.sync_us / 1e3);
    let time = |what: &str, us: f64| Aim {
        name: format!("{what} of a run, median"),
        wanted: format!("≤ {} ms", RUN_US / 1e3),
        found: format!("{:.1} ms ({disk})", us / 1e3),
        is_met: us <= RUN_US,
    };
    let mut aims = vec![time("Creation", cost.create_p50_us), time("End", cost.end_p50_us)];
    aims.push(Aim {
        name: "Memory of a live run".to_owned(),
        wanted: format!("≤ {} KiB", RUN_BYTES / 1024.0),
        found: format!("{:.1} KiB ({} runs)", cost.bytes_per_run / 1024.0, cost.runs),
        is_met: cost.bytes_per_run <= RUN_BYTES,
    });
    let found = cost.calls.iter().map(|call| {
        let text = format!("{:+.1} % ({})", call.growth() * 100.0, call.caller);
        Found { value: call.growth(), text }
    });
    aims.extend(cost.calls.first().map(|call| {
        let growth = call.one / UNGATED_CALL - 1.0;
        Aim {
            name: "Instructions of a call more than before there were gates".to_owned(),
            wanted: format!("≤ {} %", GATES_GROWTH * 100.0),
            found: format!(
                "{:+.1} % ({:.0} to {UNGATED_CALL:.0}; {})",
                growth * 100.0,
                call.one,
                call.caller
            ),
            is_met: growth <= GATES_GROWTH,
        }
    }));
    aims.extend(worst(found).map(|found| Aim {
        name: format!(
            "Instructions of a call more, {} runs, {} servers",
            cost.counted_runs, cost.counted_servers
        ),
        wanted: format!("≤ {} %", CALL_GROWTH * 100.0),
        is_met: found.value <= CALL_GROWTH,
        found: found.text,
    }));
    aims
}

/// A value of a case, and its text.
struct Found {
    value: f64,
    text: String,
}

fn worst(found: impl Iterator<Item = Found>) -> Option<Found> {
    found.max_by(|one, other| one.value.total_cmp(&other.value))
}

fn narthex(results: &Results, work: Work) -> impl Iterator<Item = &Row> {
    results.rows.iter().filter(move |row| row.case.work == work && row.way.is_narthex())
}

fn place(row: &Row) -> String {
    let Case { era, connections, work: _ } = row.case;
    format!("{}, {} connections, {}", era.name(), connections, row.way.title())
}

fn cpu(results: &Results, work: Work) -> Option<Aim> {
    let wanted = if work == Work::Echo { SMALL_CPU_RATIO } else { CPU_RATIO };
    let found = narthex(results, work).filter_map(|row| {
        let (own, nginx) = (row.cpu_us(), results.row(row.case, Way::Nginx)?.cpu_us());
        let text = format!("{:.2} × ({own:.1} to {nginx:.1} µs; {})", own / nginx, place(row));
        Some(Found { value: own / nginx, text })
    });
    worst(found).map(|found| Aim {
        name: format!("Processor time per call: {}", work.title()),
        wanted: format!("≤ {wanted} × nginx's"),
        is_met: found.value <= wanted,
        found: found.text,
    })
}

fn tail(results: &Results) -> Option<Aim> {
    let is_meant = |row: &&Row| TAIL_CONNECTIONS.contains(&row.case.connections);
    let found = narthex(results, Work::Echo).filter(is_meant).filter_map(|row| {
        let (own, nginx) = (row.p99_us(), results.row(row.case, Way::Nginx)?.p99_us());
        let text = format!("{:.2} × ({own:.0} to {nginx:.0} µs; {})", own / nginx, place(row));
        Some(Found { value: own / nginx, text })
    });
    worst(found).map(|found| Aim {
        name: "p99 of a small call, 1 and 8 connections".to_owned(),
        wanted: format!("≤ {TAIL_RATIO} × nginx's"),
        is_met: found.value <= TAIL_RATIO,
        found: found.text,
    })
}

fn added_latency(results: &Results) -> Option<Aim> {
    let found = narthex(results, Work::Echo).filter(|row| row.case.connections == 1);
    let found = found.filter_map(|row| {
        let direct = results.row(row.case, Way::Direct)?.p50_us();
        let added = row.p50_us() - direct;
        let nginx = results.row(row.case, Way::Nginx).map(|nginx| nginx.p50_us() - direct);
        let nginx = nginx.map(|added| format!("; nginx {added:.0} µs")).unwrap_or_default();
        Some(Found { value: added, text: format!("{added:.0} µs ({}{nginx})", place(row)) })
    });
    worst(found).map(|found| Aim {
        name: "Added median latency of a small call, 1 connection".to_owned(),
        wanted: format!("≤ {ADDED_P50_US} µs"),
        is_met: found.value <= ADDED_P50_US,
        found: found.text,
    })
}

fn no_faults(results: &Results) -> Option<Aim> {
    let rows: Vec<&Row> = results.rows.iter().filter(|row| row.way.is_narthex()).collect();
    let busy = |row: &&&Row| row.case.connections == 64;
    let count = |rows: &[&Row]| -> u64 { rows.iter().map(|row| row.faults()).sum() };
    let at_64: Vec<&Row> = rows.iter().filter(busy).copied().collect();
    let sent: u64 = at_64.iter().map(|row| row.sent()).sum();
    let (faults, all) = (count(&at_64), count(&rows));
    (!at_64.is_empty()).then(|| Aim {
        name: "Failed, wrong, lost or doubled calls, 64 connections".to_owned(),
        wanted: "none".to_owned(),
        found: format!("{faults} of {sent} calls ({all} in all cases together)"),
        is_met: faults == 0 && all == 0,
    })
}

fn list_rate(results: &Results) -> Option<Aim> {
    let found = narthex(results, Work::List).filter_map(|row| {
        let case = Case { work: Work::Echo, ..row.case };
        let rate = row.per_second() / results.row(case, row.way)?.per_second();
        let text = format!("{:.0} % ({})", rate * 100.0, place(row));
        Some(Found { value: -rate, text })
    });
    worst(found).map(|found| Aim {
        name: "Rate of the cached list of 200 tools, as part of the small call's".to_owned(),
        wanted: format!("≥ {:.0} %", LIST_RATE * 100.0),
        is_met: -found.value >= LIST_RATE,
        found: found.text,
    })
}

fn idle(results: &Results) -> Option<Aim> {
    let found = results.idle.iter().map(|idle| {
        let streams = if idle.has_streams { "with" } else { "without" };
        let kib = idle.bytes_per_session / 1024.0;
        let text = format!("{kib:.1} KiB ({} an open stream, {})", streams, idle.way.title());
        Found { value: idle.bytes_per_session, text }
    });
    worst(found).map(|found| Aim {
        name: format!("Memory of an idle session ({})", Era::Legacy.name()),
        wanted: format!("≤ {:.0} KiB", SESSION_BYTES / 1024.0),
        is_met: found.value <= SESSION_BYTES,
        found: found.text,
    })
}

fn idle_daemon(results: &Results) -> Option<Aim> {
    let found = results.idle.iter().map(|idle| idle.daemon_bytes);
    memory("Memory of an idle daemon", IDLE_BYTES, found)
}

fn busy_daemon(results: &Results) -> Option<Aim> {
    let is_meant = |row: &&Row| row.case.era == Era::Legacy && row.case.connections == BUSY_CALLERS;
    let found = narthex(results, Work::Echo).filter(is_meant).map(Row::memory_bytes);
    let name = format!("Memory of a daemon after the calls of {BUSY_CALLERS} legacy sessions");
    memory(&name, BUSY_BYTES, found)
}

fn memory(name: &str, most: f64, found: impl Iterator<Item = f64>) -> Option<Aim> {
    let text = |value| format!("{:.1} MB", value / 1e6);
    worst(found.map(|value| Found { value, text: text(value) })).map(|found| Aim {
        name: name.to_owned(),
        wanted: format!("≤ {:.0} MB", most / 1e6),
        is_met: found.value <= most,
        found: found.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::Sample;

    fn row(work: Work, connections: usize, way: Way, change: impl Fn(&mut Sample)) -> Row {
        let mut sample = Sample {
            per_second: 1000.0,
            p50_us: 100.0,
            p99_us: 200.0,
            cpu_us_per_call: 10.0,
            memory_bytes: 0,
            sent: 5,
            right: 5,
            failed: 0,
            wrong: 0,
            doubled: 0,
            reconnected: 0,
            received: Some(5),
            first_problem: None,
        };
        change(&mut sample);
        Row { case: Case { era: Era::Modern, work, connections }, way, samples: vec![sample] }
    }

    fn missed(rows: Vec<Row>) -> Vec<String> {
        let results = Results { rows, ..Results::new(Vec::new(), 1) };
        let missed = check(&results).into_iter().filter(|aim| !aim.is_met);
        missed.map(|aim| aim.found).collect()
    }

    #[test]
    fn the_worst_case_counts() {
        let good = |connections| row(Work::Echo, connections, Way::Nginx, |_| {});
        let cheap = row(Work::Echo, 1, Way::Transparent, |s| s.cpu_us_per_call = 16.0);
        let dear = row(Work::Echo, 8, Way::Transparent, |s| s.cpu_us_per_call = 16.1);
        assert_eq!(missed(vec![good(1), cheap]), Vec::<String>::new());
        let cheap = row(Work::Echo, 1, Way::Transparent, |_| {});
        let missed = missed(vec![good(1), good(8), cheap, dear]);
        assert!(missed.len() == 1 && missed[0].starts_with("1.61 ×"), "{missed:?}");
    }

    #[test]
    fn latency_is_compared_with_a_direct_connection() {
        let direct = row(Work::Echo, 1, Way::Direct, |_| {});
        let slow = row(Work::Echo, 1, Way::Aggregated, |sample| sample.p50_us = 251.0);
        assert_eq!(
            missed(vec![direct, slow]),
            ["151 µs (modern, 1 connections, narthex, all servers)"]
        );
    }

    #[test]
    fn the_tail_is_compared_with_nginx_where_callers_are_few() {
        let nginx = |connections| row(Work::Echo, connections, Way::Nginx, |_| {});
        let slow = |connections| {
            row(Work::Echo, connections, Way::Transparent, |sample| sample.p99_us = 301.0)
        };
        assert_eq!(missed(vec![nginx(64), slow(64)]), Vec::<String>::new());
        assert_eq!(
            missed(vec![nginx(8), slow(8)]),
            ["1.50 × (301 to 200 µs; modern, 8 connections, narthex, one server)"]
        );
    }

    #[test]
    fn a_call_that_arrived_twice_is_a_fault() {
        let twice = row(Work::Echo, 64, Way::Transparent, |sample| sample.received = Some(6));
        assert_eq!(missed(vec![twice]), ["1 of 5 calls (1 in all cases together)"]);
    }

    #[test]
    fn the_list_is_compared_with_the_small_call() {
        let echo = row(Work::Echo, 64, Way::Aggregated, |_| {});
        let list = row(Work::List, 64, Way::Aggregated, |sample| {
            sample.per_second = 699.0;
            sample.received = None;
        });
        assert_eq!(
            missed(vec![echo, list]),
            ["70 % (modern, 64 connections, narthex, all servers)"]
        );
    }
}
