//! The results as a document.

use std::fmt::Write as _;

use super::aims::Aim;
use super::plan::{Era, Way, Work};
use super::results::{Results, Row, Spread};
use super::table::table;

const OPENING: &str = "\
# Benchmarks

Written by `cargo xtask bench`, which measures everything on this page in one run.

A closed loop calls a small MCP server over HTTP: each connection sends its next call when it has
read and checked the answer to the last one. The load generator, whatever is in between, and the
servers share the machine. *direct* is without anything in between; *nginx* is a plain reverse
proxy, configured as shown below; *narthex, one server* is the transparent endpoint `/mcp/{alias}`;
*narthex, all servers* is the aggregated endpoint `/mcp` in front of two servers of 100 tools each,
called in turn. narthex authenticates and authorizes every call, checks and parses it, and keeps
its audit record; nginx writes its access log.

Client and servers are of the same era, *legacy* (sessions, 2025-11-25) or *modern* (2026-07-28).
";

const READING: &str = "\
Numbers are medians of the rounds, with the least and the greatest in parentheses; in each round
every way has its turn. Processor time is what the system accounts to the processes in between, in
user and kernel mode; memory is theirs at the end of a run, pages that several have counted once.
";

pub(super) fn write(results: &Results, aims: &[Aim]) -> String {
    let mut out = OPENING.to_owned();
    section(&mut out, "Machine");
    for line in &results.machine {
        add(&mut out, format_args!("- {line}\n"));
    }
    add(&mut out, format_args!("- {} rounds\n", results.rounds));
    section(&mut out, "Aims");
    out.push_str(&aims_table(aims));
    section(&mut out, "Measurements");
    out.push_str(READING);
    for era in Era::ALL {
        for work in Work::ALL {
            let rows: Vec<&Row> = results.rows_of(era, work).collect();
            if !rows.is_empty() {
                add(&mut out, format_args!("\n### {}, {}\n\n", work.title(), era.name()));
                out.push_str(&measurements(results, &rows));
            }
        }
    }
    write_idle(&mut out, results);
    for profile in &results.profiles {
        section(&mut out, &profile.title);
        add(&mut out, format_args!("{}\n", profile.text.trim_end()));
    }
    section(&mut out, "Configuration of nginx");
    add(&mut out, format_args!("```nginx\n{}```\n", results.nginx_config));
    out
}

fn section(out: &mut String, title: &str) {
    add(out, format_args!("\n## {title}\n\n"));
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all writes");
}

fn aims_table(aims: &[Aim]) -> String {
    let mut rows = vec![heading(&["aim", "wanted", "worst case", ""])];
    for Aim { name, wanted, found, is_met } in aims {
        let verdict = if *is_met { "met" } else { "**not met**" };
        rows.push(vec![name.clone(), wanted.clone(), found.clone(), verdict.to_owned()]);
    }
    table(&rows)
}

fn heading(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn measurements(results: &Results, rows: &[&Row]) -> String {
    let mut lines = vec![heading(&[
        "connections:",
        "way",
        "calls/s:",
        "p50 µs:",
        "p99 µs:",
        "CPU µs/call:",
        "× nginx:",
        "memory MiB:",
        "faults:",
    ])];
    for row in rows {
        let is_direct = row.way == Way::Direct;
        let own = |text: String| if is_direct { "–".to_owned() } else { text };
        let memory = row.spread(|sample| bytes(sample.memory_bytes) / (1024.0 * 1024.0)).median;
        lines.push(vec![
            row.case.connections.to_string(),
            row.way.title().to_owned(),
            spread(row.spread(|sample| sample.per_second), 0),
            spread(row.spread(|sample| sample.p50_us), 0),
            spread(row.spread(|sample| sample.p99_us), 0),
            own(spread(row.spread(|sample| sample.cpu_us_per_call), 1)),
            ratio(results, row),
            own(format!("{memory:.1}")),
            row.faults().to_string(),
        ]);
    }
    table(&lines)
}

fn ratio(results: &Results, row: &Row) -> String {
    match results.row(row.case, Way::Nginx) {
        Some(nginx) if row.way.is_narthex() => format!("{:.2}", row.cpu_us() / nginx.cpu_us()),
        _ => "–".to_owned(),
    }
}

fn spread(spread: Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    format!("{median:.digits$} ({min:.digits$}–{max:.digits$})")
}

/// Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no process has so much memory")]
pub(super) fn bytes(number: u64) -> f64 {
    number as f64
}

fn write_idle(out: &mut String, results: &Results) {
    if results.idle.is_empty() {
        return;
    }
    section(out, "Idle sessions");
    out.push_str("Live sessions of the legacy era, each after its handshake.\n\n");
    let mut rows = vec![heading(&["way", "open stream", "sessions:", "KiB each:"])];
    for idle in &results.idle {
        rows.push(vec![
            idle.way.title().to_owned(),
            if idle.has_streams { "yes" } else { "no" }.to_owned(),
            idle.sessions.to_string(),
            format!("{:.1}", idle.bytes_per_session / 1024.0),
        ]);
    }
    out.push_str(&table(&rows));
}
