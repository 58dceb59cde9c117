//! The results as a document.

use std::fmt::Write as _;

use super::aims::Aim;
use super::plan::{Era, Way, Work};
use super::results::{Results, Row, Spread, StdioRow};
use super::table::table;

const OPENING: &str = "\
# Benchmarks

`cargo xtask bench` writes this page and measures everything in one run.

A closed loop calls a small MCP server over HTTP: each connection sends its next call when it has
read and checked the answer to the last one. Load generator, gateway and servers share the machine.

| way | in between |
|---|---|
| *direct* | nothing |
| *nginx* | a reverse proxy, [configured as below](#configuration-of-nginx), with its access log |
| *narthex, one server* | the transparent endpoint `/mcp/{alias}` |
| *narthex, all servers* | the aggregated endpoint `/mcp` in front of two servers of 100 tools \
each, called in turn, without narthex's own tools and limit of output |

narthex authenticates, authorizes, checks, parses and records every call. Client and servers are of
the same era: *legacy* (sessions, 2025-11-25) or *modern* (2026-07-28).
";

const READING: &str = "\
Numbers are medians of the rounds, with the least and the greatest in parentheses. In each round
every way has its turn. Processor time is that of the processes in between, in user and kernel mode.
Memory is theirs at the end of a run; a page that several processes share counts once.
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
    write_stdio(&mut out, results);
    write_registry(&mut out, results);
    write_decisions(&mut out, results);
    write_idle(&mut out, results);
    write_runs(&mut out, results);
    write_mounts(&mut out, results);
    super::console::write(&mut out, results.console.as_ref());
    for profile in &results.profiles {
        section(&mut out, &profile.title);
        add(&mut out, format_args!("{}\n", profile.text.trim_end()));
    }
    section(&mut out, "Configuration of nginx");
    add(&mut out, format_args!("```nginx\n{}```\n", results.nginx_config));
    out
}

pub(super) fn section(out: &mut String, title: &str) {
    add(out, format_args!("\n## {title}\n\n"));
}

pub(super) fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
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

pub(super) fn heading(words: &[&str]) -> Vec<String> {
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

fn write_stdio(out: &mut String, results: &Results) {
    if results.stdio.is_empty() {
        return;
    }
    section(out, "Calls over stdio");
    out.push_str(
        "Small calls to one process that all callers share: through its pipes, and through the\n\
         transparent endpoint. The ratio compares the medians of calls/s.\n\n",
    );
    let mut rows = vec![heading(&[
        "era",
        "callers:",
        "direct calls/s:",
        "narthex calls/s:",
        "ratio:",
        "direct p50 µs:",
        "narthex p50 µs:",
        "CPU µs/call:",
        "faults:",
    ])];
    for row in &results.stdio {
        let rate = |samples| StdioRow::spread(samples, |sample| sample.per_second);
        let p50 = |samples| StdioRow::spread(samples, |sample| sample.p50_us);
        let (direct, narthex) = (rate(&row.direct), rate(&row.narthex));
        let ratio = narthex.median / direct.median;
        let cpu = StdioRow::spread(&row.narthex, |sample| sample.cpu_us_per_call);
        rows.push(vec![
            row.era.name().to_owned(),
            row.callers.to_string(),
            spread(direct, 0),
            spread(narthex, 0),
            format!("{ratio:.2}"),
            spread(p50(&row.direct), 0),
            spread(p50(&row.narthex), 0),
            spread(cpu, 1),
            row.faults().to_string(),
        ]);
    }
    out.push_str(&table(&rows));
}

fn write_registry(out: &mut String, results: &Results) {
    let Some(cost) = &results.registry else { return };
    section(out, "A registry with many rows");
    out.push_str(
        "In a process of its own, without any door. An apply is of the whole set, with one\n\
         changed entry or none. Disabling one server makes a snapshot of all rows.\n\n",
    );
    let mut rows = vec![heading(&[
        "servers",
        "rows:",
        "KiB/row:",
        "apply, one changed, µs:",
        "apply, the same, µs:",
        "disable, µs:",
        "read a snapshot, ns:",
    ])];
    for row in &cost.rows {
        rows.push(vec![
            row.kind.clone(),
            row.rows.to_string(),
            format!("{:.1}", row.bytes_per_row / 1024.0),
            format!("{:.0}", row.apply_us),
            format!("{:.0}", row.same_us),
            format!("{:.0}", row.switch_us),
            format!("{:.0}", row.snapshot_ns),
        ]);
    }
    out.push_str(&table(&rows));
    let start = &cost.start;
    out.push_str(&format!(
        "\n{} programs that each take {} ms before they answer were all ready after {:.0} ms.\n",
        start.servers, start.start_up_ms, start.ready_ms
    ));
}

fn write_decisions(out: &mut String, results: &Results) {
    if results.decisions.is_empty() {
        return;
    }
    section(out, "Decisions");
    out.push_str("Time to decide on an allowed call, in a process of its own: the median.\n\n");
    let mut rows = vec![heading(&["decision", "grants:", "rules:", "µs:"])];
    rows.extend(results.decisions.iter().map(|cost| {
        let us = format!("{:.2}", cost.decision_ns / 1e3);
        vec![cost.name.clone(), cost.grants.to_string(), cost.rules.to_string(), us]
    }));
    out.push_str(&table(&rows));
}

fn write_idle(out: &mut String, results: &Results) {
    if results.idle.is_empty() {
        return;
    }
    section(out, "Idle sessions");
    out.push_str("Live sessions of the legacy era, each after its handshake.\n\n");
    let mut rows = vec![heading(&["way", "open stream", "sessions:", "KiB each:", "MB before:"])];
    for idle in &results.idle {
        rows.push(vec![
            idle.way.title().to_owned(),
            if idle.has_streams { "yes" } else { "no" }.to_owned(),
            idle.sessions.to_string(),
            format!("{:.1}", idle.bytes_per_session / 1024.0),
            format!("{:.1}", idle.daemon_bytes / 1e6),
        ]);
    }
    out.push_str(&table(&rows));
}

fn write_mounts(out: &mut String, results: &Results) {
    let Some(cost) = &results.mounts else { return };
    section(out, "Servers as files");
    out.push_str(
        "Calls at a folder of Linux, and the same calls over HTTP, with one descriptor or\n\
         connection for each reader. A file is opened, written, read and closed. It is read once,\n\
         or until there is no more, as `cat` does.\n\n\
         A file needs four more switches between programs than a call over HTTP. Where idle\n\
         processors sleep at once, as in many virtual machines, waking them costs most of that.\n\
         `narthex mount --low-latency` keeps them awake. Calls of a tool that takes no time are\n\
         limited by the processors, which this process uses, too.\n\n",
    );
    let mut rows = vec![heading(&["measured", "how much:"])];
    let mut row = |what: String, found: String| rows.push(vec![what, found]);
    let calls = [("as it is", Some(&cost.call)), ("with `--low-latency`", cost.awake.as_ref())];
    for (machine, call) in calls.into_iter().filter_map(|(how, call)| Some((how, call?))) {
        row(format!("a call over HTTP, {machine}"), format!("{:.0} µs", call.http_us));
        row(format!("a call as a file, {machine}"), format!("{:.0} µs", call.file_us));
        let to_end = format!("{:.0} µs", call.to_end_us);
        row(format!("the same until there is no more, {machine}"), to_end);
    }
    row(format!("`ls` of {} tools", cost.tools), format!("{:.0} ms", cost.ls_ms));
    for rate in &cost.rates {
        let what = match rate.tool_ms {
            0 => format!("{} readers at once", rate.at_once),
            ms => format!("{} readers of a tool that takes {ms} ms", rate.at_once),
        };
        row(what, rate.to_string());
    }
    out.push_str(&table(&rows));
}

fn write_runs(out: &mut String, results: &Results) {
    let Some(cost) = &results.runs else { return };
    section(out, "Runs");
    out.push_str(
        "Runs of an agent with one shared server over HTTP, created over REST one after the\n\
         other, with the store in SQLite. Each creation waits for the disk three times: for the\n\
         run, and for the records of its begin and end. Memory is the daemon's growth while all\n\
         runs are active and unused.\n\n",
    );
    let ms = |us: f64| format!("{:.1}", us / 1e3);
    let rows = [
        heading(&[
            "runs:",
            "create p50 ms:",
            "p99 ms:",
            "end p50 ms:",
            "p99 ms:",
            "disk p50 ms:",
            "KiB each:",
        ]),
        vec![
            cost.runs.to_string(),
            ms(cost.create_p50_us),
            ms(cost.create_p99_us),
            ms(cost.end_p50_us),
            ms(cost.end_p99_us),
            ms(cost.sync_us),
            format!("{:.1}", cost.bytes_per_run / 1024.0),
        ],
    ];
    out.push_str(&table(&rows));
    if cost.calls.is_empty() {
        return;
    }
    add(
        out,
        format_args!(
            "\nInstructions of the daemon for a small call at `/mcp` by a modern client, counted\n\
             by callgrind: beside one run and one server, and beside {} runs and {} servers.\n\n",
            cost.counted_runs, cost.counted_servers
        ),
    );
    let mut rows = vec![heading(&["caller", "one:", "many:", "more, %:"])];
    for call in &cost.calls {
        rows.push(vec![
            call.caller.clone(),
            format!("{:.0}", call.one),
            format!("{:.0}", call.many),
            format!("{:+.1}", call.growth() * 100.0),
        ]);
    }
    out.push_str(&table(&rows));
}
