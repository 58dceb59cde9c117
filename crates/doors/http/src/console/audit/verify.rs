//! The verification of all events of a workspace, with the verifier of the command line.

use std::time::SystemTime;

use narthex_audit::{Report, Verifier};
use narthex_console::{
    pages::audit::Verified,
    parts::{Moment, Words},
};
use narthex_model::Timestamp;
use serde::Deserialize;

use crate::{console::viewer::Viewer, problem::Problem};

/// Number of faults that the page shows.
const FAULTS: usize = 20;

/// The time of a line.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    time: Option<&'l str>,
}

/// Reads every event, and compares it with its hash and with the event before it.
pub(super) async fn verified(viewer: &Viewer<'_>) -> Result<Verified, Problem> {
    let mut export = viewer.control().audit_export(viewer.audited().as_ref()).await?;
    let (mut verifier, mut until) = (Verifier::new(), None);
    while let Some(lines) = export.next().await? {
        lines.lines().for_each(|line| verifier.line(line));
        // The last line of a batch is its newest.
        until = until.max(lines.lines().next_back().and_then(time_of));
    }
    Ok(told(&verifier.finish(), until))
}

fn time_of(line: &str) -> Option<SystemTime> {
    let line: Line<'_> = serde_json::from_str(line).ok()?;
    Timestamp::read(line.time?)
}

/// The report in words. The time is that of the newest event which was read.
fn told(report: &Report, until: Option<SystemTime>) -> Verified {
    let (events, chains) = (report.events, report.chains.len());
    let found = format!("{events} events in {chains} chains");
    let is_stuck = report.waiting.iter().any(|one| one.is_stuck);
    let unsure = report.chains.iter().filter(|one| one.declared.is_vouched.is_none()).count();
    let sentence = if !report.is_whole() {
        format!("The audit was changed after it was written: {found} were read.")
    } else if is_stuck {
        format!("{found} are as they were written. Others are not in the store, and unverified.")
    } else if unsure > 0 {
        format!("{found} are as they were written; the ends of {unsure} chains have no proof.")
    } else {
        format!("Verified just now: {found} are as they were written.")
    };
    let broken = report.broken.iter().map(ToString::to_string);
    let waiting = report.waiting.iter().map(ToString::to_string);
    Verified {
        sentence: Words::new(&sentence),
        is_broken: !report.is_whole() || is_stuck,
        faults: broken.chain(waiting).take(FAULTS).map(|text| Words::new(&text)).collect(),
        until: until.filter(|_| report.is_whole()).map(Moment::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R3: a text that is cut is not called verified.
    #[test]
    fn r3_a_text_that_is_cut_is_not_verified() {
        let whole = |text: &str| {
            let mut verifier = Verifier::new();
            text.lines().for_each(|line| verifier.line(line));
            told(&verifier.finish(), Some(SystemTime::UNIX_EPOCH))
        };
        let cut = whole("");
        assert!(cut.is_broken && cut.until.is_none() && !cut.faults.is_empty());
        let empty = whole(r#"{"end":{"events":0,"known":[]}}"#);
        assert!(!empty.is_broken, "{}", empty.sentence);
        assert!(empty.sentence.as_str().starts_with("Verified just now: 0 events"));
    }

    #[test]
    fn times_are_read_from_lines_of_events() {
        let line = r#"{"v":1,"time":"2026-11-22T13:00:00.000Z","kind":"x"}"#;
        assert_eq!(time_of(line), Timestamp::read("2026-11-22T13:00:00.000Z"));
        assert_eq!(time_of(r#"{"end":{}}"#), None);
    }
}
