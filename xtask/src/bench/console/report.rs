//! The section about the console, and its aims.

use std::fmt::Display;

use super::costs::{ConsoleCost, IdleCost, LiveCost, PageCost};
use crate::bench::aims::Aim;
use crate::bench::report::{add, bytes, heading, section};
use crate::bench::table::table;

/// Longest time to the first byte of a page.
const FIRST_MS: f64 = 150.0;
/// Largest page.
const PAGE_BYTES: usize = 100_000;
/// Largest part of a processor that open pages may take while nothing happens.
const IDLE_PART: f64 = 0.002;
/// Longest time from a call to its row on an open page.
const DELAY_MS: f64 = 1_000.0;
/// Largest growth of a call's instructions beside open pages.
const CALL_GROWTH: f64 = 0.01;

/// A page in one line.
pub(super) fn line(cost: &PageCost) -> String {
    let PageCost { path, page, api } = cost;
    let beside = api.as_ref().map_or_else(String::new, |(path, api)| {
        let ratio = page.first_ms / api.first_ms;
        format!(", × {ratio:.1} of {:.1} ms ({} bytes) for {path}", api.first_ms, api.bytes)
    });
    format!(
        "{path}: {:.1} ms, at most {:.1} ms, {} bytes{beside}",
        page.first_ms, page.slowest_ms, page.bytes
    )
}

/// Writes the section, if there is anything to tell.
pub(in crate::bench) fn write(out: &mut String, cost: Option<&ConsoleCost>) {
    let Some(cost) = cost else { return };
    let ConsoleCost { size, pages, live, idle, calls } = cost;
    section(out, "The console");
    add(
        out,
        format_args!(
            "`cargo xtask bench --only console` measures this part alone. {} servers with {}\n\
             tools, {} active runs and {} calls in the audit, with the store in SQLite. Each page\n\
             is loaded over one connection by a signed-in operator, and beside it the request of\n\
             the API that the page names as the same. Times are from the request to the first\n\
             byte: the median, and the greatest.\n\n",
            size.servers, size.tools, size.runs, size.calls
        ),
    );
    out.push_str(&pages_table(pages));
    out.push_str("\nOpen pages:\n\n");
    let mut rows = vec![heading(&["measured", "how much:"])];
    let mut row = |what: String, found: String| rows.push(vec![what, found]);
    row(format!("calls of a run, {} a second", live.per_second), live.calls.to_string());
    row("calls that the open page of the run has shown".to_owned(), live.shown.to_string());
    row("events of the page".to_owned(), format!("{}, {} bytes", live.events, live.bytes));
    let delay = format!("{:.0} ms, at most {:.0} ms", live.delay_ms, live.longest_ms);
    row("from the answer of a call to its row".to_owned(), delay);
    let LiveCost { cpu_without_ms, cpu_with_ms, .. } = live;
    row("processor time for the calls without the page".to_owned(), ms(cpu_without_ms));
    row("the same with the page".to_owned(), ms(cpu_with_ms));
    let IdleCost { pages, seconds, without_ms, with_ms } = idle;
    row(format!("processor time of {seconds} s without anything to do"), ms(without_ms));
    row(format!("the same with {pages} open pages"), ms(with_ms));
    if let Some(calls) = calls {
        row("instructions of a small call".to_owned(), format!("{:.0}", calls.without));
        let beside = format!("{:.0} ({:+.2} %)", calls.beside, calls.growth() * 100.0);
        row(format!("the same beside {} open pages", calls.pages), beside);
        let shown = "the same, and its share of the open page that shows it, under callgrind";
        row(shown.to_owned(), format!("{:.0}", calls.shown));
    }
    out.push_str(&table(&rows));
}

fn ms(time: impl Display) -> String {
    format!("{time} ms")
}

fn pages_table(pages: &[PageCost]) -> String {
    let titles = ["page", "ms:", "most ms:", "KB:", "API", "ms:", "KB:", "ratio:"];
    let mut rows = vec![heading(&titles)];
    let kb = |bytes: usize| format!("{:.1}", size(bytes) / 1e3);
    for PageCost { path, page, api } in pages {
        let mut row = vec![format!("`{path}`"), format!("{:.1}", page.first_ms)];
        row.extend([format!("{:.1}", page.slowest_ms), kb(page.bytes)]);
        row.extend(match api {
            Some((path, api)) => [
                format!("`{path}`"),
                format!("{:.1}", api.first_ms),
                kb(api.bytes),
                format!("{:.1}", page.first_ms / api.first_ms),
            ],
            None => ["–"; 4].map(str::to_owned),
        });
        rows.push(row);
    }
    table(&rows)
}

fn size(number: usize) -> f64 {
    bytes(u64::try_from(number).unwrap_or(u64::MAX))
}

/// The aims of the console.
pub(in crate::bench) fn aims(cost: &ConsoleCost) -> Vec<Aim> {
    let ConsoleCost { pages, live, idle, calls, .. } = cost;
    let by_time =
        |one: &&PageCost, other: &&PageCost| one.page.first_ms.total_cmp(&other.page.first_ms);
    let slowest = pages.iter().max_by(by_time).map(|one| Aim {
        name: "First byte of a page, median".to_owned(),
        wanted: format!("≤ {FIRST_MS} ms"),
        found: format!("{:.1} ms (`{}`)", one.page.first_ms, one.path),
        is_met: one.page.first_ms <= FIRST_MS,
    });
    let largest = pages.iter().max_by_key(|one| one.page.bytes).map(|one| Aim {
        name: "Size of a page".to_owned(),
        wanted: format!("< {} KB", PAGE_BYTES / 1000),
        found: format!("{:.1} KB (`{}`)", size(one.page.bytes) / 1e3, one.path),
        is_met: one.page.bytes < PAGE_BYTES,
    });
    let shown = Aim {
        name: format!("Calls on an open page, {} a second", live.per_second),
        wanted: format!("all, within {DELAY_MS} ms"),
        found: format!(
            "{} of {} (median {:.0} ms, at most {:.0} ms)",
            live.shown, live.calls, live.delay_ms, live.longest_ms
        ),
        is_met: live.shown == live.calls && live.longest_ms <= DELAY_MS,
    };
    let added = idle.with_ms.saturating_sub(idle.without_ms);
    let part = bytes(added) / (bytes(idle.seconds) * 1e3);
    let idle = Aim {
        name: format!("Processor time of {} open pages while nothing happens", idle.pages),
        wanted: format!("≤ {} %", IDLE_PART * 100.0),
        found: format!("{:.2} % ({added} ms of {} s)", part * 100.0, idle.seconds),
        is_met: part <= IDLE_PART,
    };
    let calls = calls.as_ref().map(|calls| Aim {
        name: format!("Instructions of a call more, {} open pages", calls.pages),
        wanted: format!("≤ {} %", CALL_GROWTH * 100.0),
        found: format!(
            "{:+.2} % ({:.0} to {:.0})",
            calls.growth() * 100.0,
            calls.beside,
            calls.without
        ),
        is_met: calls.growth() <= CALL_GROWTH,
    });
    slowest.into_iter().chain(largest).chain([shown, idle]).chain(calls).collect()
}

#[cfg(test)]
mod tests {
    use super::super::costs::{CallsBesidePages, Filled, Loaded};
    use super::*;

    fn cost() -> ConsoleCost {
        let page = Loaded { first_ms: 10.0, slowest_ms: 20.0, bytes: 50_000 };
        let api = Some(("/api/x".to_owned(), Loaded { first_ms: 5.0, ..page }));
        ConsoleCost {
            size: Filled { servers: 1, tools: 1, runs: 1, calls: 1 },
            pages: vec![PageCost { path: "/w/default/".to_owned(), page, api }],
            live: LiveCost {
                per_second: 20,
                calls: 200,
                shown: 200,
                events: 200,
                bytes: 1,
                delay_ms: 60.0,
                longest_ms: 120.0,
                cpu_without_ms: 10,
                cpu_with_ms: 20,
            },
            idle: IdleCost { pages: 4, seconds: 20, without_ms: 10, with_ms: 10 },
            calls: Some(CallsBesidePages {
                pages: 4,
                without: 1000.0,
                beside: 1005.0,
                shown: 2000.0,
            }),
        }
    }

    fn missed(cost: &ConsoleCost) -> Vec<String> {
        aims(cost).into_iter().filter(|aim| !aim.is_met).map(|aim| aim.name).collect()
    }

    #[test]
    fn the_slowest_and_the_largest_page_count() {
        assert_eq!(missed(&cost()), [""; 0]);
        let mut slow = cost();
        slow.pages[0].page.first_ms = 151.0;
        assert_eq!(missed(&slow), ["First byte of a page, median"]);
        let mut large = cost();
        large.pages[0].page.bytes = PAGE_BYTES;
        assert_eq!(missed(&large), ["Size of a page"]);
    }

    #[test]
    fn a_lost_row_and_a_busy_idle_page_are_seen() {
        let mut lost = cost();
        lost.live.shown = 199;
        lost.idle.with_ms = 60;
        let mut dear = cost();
        dear.calls.as_mut().unwrap().beside = 1011.0;
        assert_eq!(missed(&lost).len(), 2);
        assert_eq!(missed(&dear), ["Instructions of a call more, 4 open pages"]);
    }

    #[test]
    fn the_section_has_each_page_beside_its_request() {
        let mut out = String::new();
        write(&mut out, Some(&cost()));
        assert!(out.contains("| `/w/default/` | 10.0 |"), "{out}");
        assert!(out.contains("| `/api/x` |"), "{out}");
        assert!(out.contains("1005 (+0.50 %)"), "{out}");
    }
}
