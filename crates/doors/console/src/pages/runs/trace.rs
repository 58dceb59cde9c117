//! The trace of a run: its calls as rows, and as bars over the time.

use askama::Template;

use super::{
    Link, RunNone,
    tabs::{RunTabs, RunTop},
};
use crate::{
    Frame, filters,
    parts::{Filter, Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "run_trace.html")]
pub struct TracePage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run, live.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// The list or the timeline, as links.
    pub views: Vec<Filter>,
    /// The filters by result and by server.
    pub filters: Vec<Filter>,
    /// The other filters in the address, which the form repeats.
    pub kept: Vec<(&'static str, String)>,
    /// The text of the filter by tool.
    pub tool: String,
    /// The path of this page.
    pub path: String,
    /// The origin of the rows, in a sentence.
    pub source: Words,
    /// The part below the filters.
    pub shown: Shown,
    /// The words where there are no calls.
    pub none: RunNone,
    /// The rows as text, to copy: a line for each.
    pub text: String,
    /// The address of the same events for programs.
    pub download: Option<String>,
    /// The address of the page with older calls.
    pub older: Option<String>,
}

/// The view of the calls.
#[derive(Debug)]
pub enum Shown {
    /// Rows.
    List(CallList),
    /// Bars over the time.
    Timeline(Timeline),
}

/// The rows of a page.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/call_list.html")]
pub struct CallList {
    /// The rows, the newest first.
    pub rows: Vec<CallRow>,
}

/// One row, as the event stream sends it.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/call_row.html")]
pub struct CallRowPart {
    /// The row.
    pub row: CallRow,
}

/// A call, or an operation on a file.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// The id of the row's element.
    pub id: String,
    /// The time of the start.
    pub at: Moment,
    /// Microseconds from 1970 to the start.
    pub began_us: u64,
    /// The duration in microseconds.
    pub took_us: u64,
    /// The server's own name of the tool, or of another object; the server or the endpoint
    /// otherwise.
    pub name: Words,
    /// The server.
    pub server: Option<Words>,
    /// The method of MCP, or the operation on a file.
    pub method: Words,
    /// The result.
    pub outcome: Outcome,
    /// Number of bytes of the arguments, if it was measured.
    pub sent: Option<u64>,
    /// Number of bytes of the answer, if it was measured.
    pub answered: Option<u64>,
    /// The permit, or the check that refused the call.
    pub decision: Option<Decision>,
    /// The reason of a failure, and the way to mend it.
    pub cause: Option<Cause>,
}

/// The result of a call: one word, as in the audit and in metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The word.
    pub word: Words,
    /// True for a failure.
    pub is_failure: bool,
    /// True if a check refused the call.
    pub is_refused: bool,
}

/// The permit of a call, or the check that refused it.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The words.
    pub words: Words,
    /// The page with the grants, if grants allowed the call.
    pub href: Option<String>,
}

/// The reason of a failure.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The reason.
    pub sentence: Words,
    /// The words of the server or the gateway about this call.
    pub said: Option<Words>,
    /// The remedy.
    pub remedy: Words,
    /// The page on which it is mended.
    pub page: Option<Link>,
    /// The command that mends it, or shows more.
    pub command: Option<Words>,
}

/// The calls of a page as bars, one line for each server.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/timeline.html")]
pub struct Timeline {
    /// The lines.
    pub lanes: Vec<Lane>,
    /// The time at the left and at the right.
    pub span: Option<(Moment, Moment)>,
}

/// The calls of one server.
#[derive(Debug, Clone)]
pub struct Lane {
    /// The server.
    pub server: Words,
    /// Number of calls.
    pub calls: usize,
    /// Number of failures.
    pub failures: usize,
    /// The calls.
    pub bars: Vec<Bar>,
}

/// A call in a timeline that is [`WIDTH`] wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The start.
    pub x: u64,
    /// The duration, and at least enough to be seen.
    pub width: u64,
    /// True for a failure.
    pub is_failure: bool,
    /// The call in words.
    pub title: Words,
}

/// The width of a timeline, in its own units.
pub const WIDTH: u64 = 1_000;
/// The least width of a bar.
const BAR: u64 = 4;

impl Outcome {
    /// The class and the icon.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match (self.is_failure, self.is_refused) {
            (false, _) => "ready",
            (true, true) => "authenticating",
            (true, false) => "error",
        }
    }

    /// The icon.
    #[must_use]
    pub fn icon(&self) -> &'static str {
        match (self.is_failure, self.is_refused) {
            (false, _) => "check",
            (true, true) => "lock",
            (true, false) => "warning",
        }
    }
}

impl CallRow {
    /// The duration for people.
    #[must_use]
    pub fn took(&self) -> String {
        took(self.took_us)
    }

    /// The start to the millisecond, in UTC.
    #[must_use]
    pub fn clock(&self) -> &str {
        self.at.exact().split_once('T').map_or("", |(_, clock)| clock.trim_end_matches('Z'))
    }

    /// One line of text.
    #[must_use]
    pub fn line(&self) -> String {
        let server = self.server.as_ref().map_or("-", Words::as_str);
        let cause = self.cause.as_ref().map_or("", |cause| cause.sentence.as_str());
        let (at, outcome) = (self.at.exact(), &self.outcome.word);
        let line = format!("{at} {server} {} {outcome} {} {cause}", self.name, self.took());
        line.trim_end().to_owned()
    }
}

/// A duration for people.
fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000_000 => format!("{} ms", micros / 1_000),
        _ => format!("{} s", micros / 1_000_000),
    }
}

impl Timeline {
    /// The timeline of some calls.
    #[must_use]
    pub fn of(rows: &[CallRow]) -> Self {
        let from = rows.iter().min_by_key(|row| row.began_us);
        let to = rows.iter().max_by_key(|row| row.began_us.saturating_add(row.took_us));
        let Some((from, to)) = from.zip(to) else {
            return Self { lanes: Vec::new(), span: None };
        };
        let start = from.began_us;
        let end = to.began_us.saturating_add(to.took_us);
        let whole = end.saturating_sub(start).max(1);
        let at = |micros: u64| micros.saturating_mul(WIDTH) / whole;
        let mut lanes: Vec<Lane> = Vec::new();
        for row in rows.iter().rev() {
            let server = row.server.clone().unwrap_or_else(|| Words::new("all servers"));
            let bar = Bar {
                x: at(row.began_us.saturating_sub(start)).min(WIDTH - BAR),
                width: at(row.took_us).max(BAR),
                is_failure: row.outcome.is_failure,
                title: Words::new(&row.line()),
            };
            let failures = usize::from(bar.is_failure);
            match lanes.iter_mut().find(|lane| lane.server == server) {
                Some(lane) => {
                    lane.calls += 1;
                    lane.failures += failures;
                    lane.bars.push(bar);
                }
                None => lanes.push(Lane { server, calls: 1, failures, bars: vec![bar] }),
            }
        }
        let (from, to) = (from.at.clone(), to.at.clone());
        Self { lanes, span: Some((from, to)) }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::samples::calls_of, *};

    #[test]
    fn durations_are_short_for_people() {
        for (micros, shown) in [(7, "7 µs"), (1_500, "1 ms"), (9_999_999, "9999 ms")] {
            assert_eq!(took(micros), shown);
        }
        assert_eq!(took(75_000_000), "75 s");
    }

    /// Each call is a bar in the line of its server, within the picture.
    #[test]
    fn calls_are_bars_in_the_line_of_their_server() {
        let rows = calls_of("");
        let timeline = Timeline::of(&rows);
        let bars: usize = timeline.lanes.iter().map(|lane| lane.bars.len()).sum();
        assert_eq!(bars, rows.len());
        for bar in timeline.lanes.iter().flat_map(|lane| &lane.bars) {
            assert!(bar.x < WIDTH && bar.width >= BAR, "{bar:?}");
        }
        let failures: usize = timeline.lanes.iter().map(|lane| lane.failures).sum();
        assert_eq!(failures, rows.iter().filter(|row| row.outcome.is_failure).count());
        assert!(Timeline::of(&[]).span.is_none());
    }
}
