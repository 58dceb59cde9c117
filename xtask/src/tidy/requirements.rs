//! Every claim in docs/requirements.md has a test, and every number in a test's name has a claim.
//!
//! An entry begins with `- **E42** …`, or `- **E42**, **E43** …`, and ends before the next entry,
//! heading or empty line. A test belongs to the numbers at the head of its name
//! (`x_m39_e7_keeps_order`) and to those in the comments above it (`/// X-M39, E7: keeps order.`).
//! The index of tests is read from there; `cargo xtask requirements` prints it.

pub(super) mod tests_of;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use self::tests_of::{Test, key};
use super::Finding;
use super::source::Source;

/// The heading of the classes of attacks, which are numbered `S1` to this.
const THREATS: &str = "## Threats";
const THREATS_MAX: u32 = 32;
/// The heading of security.md above the missing parts.
const NOT_YET: &str = "## Not yet";
/// The text of an entry about a class of attacks on a part that does not exist yet.
const NOT_BUILT: &str = "Not built";

struct Entry {
    numbers: Vec<String>,
    line: usize,
    text: String,
}

pub(super) fn check(document: &Source, sources: &[Source]) -> Vec<Finding> {
    let (entries, tests) = (entries(document), tests_of::all(sources));
    let mut findings = Vec::new();
    let mut seen = BTreeMap::new();
    for entry in &entries {
        for number in &entry.numbers {
            let mut find = |message: String| {
                let message = format!("{number}: {message}");
                findings.push(Finding::at(document, entry.line, message));
            };
            if let Some(first) = seen.insert(key(number), entry.line) {
                find(format!("was already in line {first}"));
            }
            // An attack on a missing part needs no defence. Its entry says so.
            let is_open = threat(number).is_some() && entry.text.contains(NOT_BUILT);
            if !is_open && !tests.iter().any(|test| test.belongs_to(number)) {
                find(format!("no test carries the number (`/// {number}: …` above a test)"));
            }
            if entry.text.contains("Test: `") || entry.text.contains("Tests: `") {
                find("names tests: write the number above the test instead".to_owned());
            }
        }
    }
    findings.extend(unclaimed(&entries, &tests));
    findings.extend(threats(document));
    findings
}

/// Numbers in names of tests that no entry has.
fn unclaimed(entries: &[Entry], tests: &[Test<'_>]) -> Vec<Finding> {
    let claimed: BTreeSet<_> = entries.iter().flat_map(|e| &e.numbers).map(|n| key(n)).collect();
    let series: BTreeSet<_> = claimed.iter().map(|key| tests_of::series(key)).collect();
    let mut findings = Vec::new();
    for test in tests {
        let numbers = test.named.iter().filter(|key| !claimed.contains(*key));
        // A name may begin with a word such as `v2`, which numbers no claim.
        for number in numbers.filter(|key| series.contains(tests_of::series(key))) {
            let name = test.name;
            let message = format!("`{name}` carries {number}, which is not in requirements.md");
            findings.push(Finding::at(test.source, test.line, message));
        }
    }
    findings
}

/// The index: each entry with its tests. Only the entry with this number, if one is given.
pub(super) fn index(document: &Source, sources: &[Source], number: Option<&str>) -> String {
    let tests = tests_of::all(sources);
    let is_asked = |entry: &Entry| {
        number.is_none_or(|number| entry.numbers.iter().any(|own| key(own) == key(number)))
    };
    let mut text = String::new();
    for entry in entries(document).into_iter().filter(is_asked) {
        _ = writeln!(text, "{}:{}", entry.numbers.join(", "), entry.text);
        for test in tests.iter().filter(|test| entry.numbers.iter().any(|n| test.belongs_to(n))) {
            _ = writeln!(text, "  {}::{}", test.source.path, test.name);
        }
    }
    text
}

/// Checks that every class of attacks is below its heading, and nowhere else.
fn threats(document: &Source) -> Vec<Finding> {
    let is_heading = |line: &str| line.starts_with("## ");
    let begin = document.lines().find(|(_, line)| *line == THREATS).map(|(at, _)| at);
    let Some(begin) = begin else { return Vec::new() };
    let end = document.lines().find(|(at, line)| *at > begin && is_heading(line));
    let end = end.map_or(usize::MAX, |(at, _)| at);
    let (mut findings, mut named) = (Vec::new(), BTreeSet::new());
    for entry in entries(document) {
        for number in entry.numbers.iter().filter_map(|number| threat(number)) {
            named.insert(number);
            if !(begin..end).contains(&entry.line) {
                let message = format!("S{number} belongs below `{THREATS}`");
                findings.push(Finding::at(document, entry.line, message));
            }
        }
    }
    let missing = (1..=THREATS_MAX).filter(|number| !named.contains(number));
    findings.extend(missing.map(|number| {
        Finding::at(
            document,
            begin,
            format!("S{number} is missing: add its claim, or say that it is not built"),
        )
    }));
    findings
}

/// Checks that the missing parts of security.md are those that the threats call not built.
pub(super) fn not_yet(document: &Source, security: &Source) -> Vec<Finding> {
    let open = entries(document).into_iter().filter(|entry| entry.text.contains(NOT_BUILT));
    let open = open.flat_map(|entry| entry.numbers);
    let open: BTreeSet<_> = open.filter_map(|number| threat(&number)).collect();
    let mut lines = security.lines().skip_while(|(_, line)| *line != NOT_YET);
    let Some((begin, _)) = lines.next() else {
        return vec![Finding::new(&security.path, format!("has no section `{NOT_YET}`"))];
    };
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let mut told = BTreeSet::new();
    for (_, line) in section {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric());
        told.extend(words.filter_map(threat));
    }
    let missing = open.difference(&told).map(|number| {
        let message = format!("`{NOT_YET}` does not name S{number}, which is not built");
        Finding::at(security, begin, message)
    });
    let stale = told.difference(&open).map(|number| {
        let message = format!("`{NOT_YET}` names S{number}, which is built");
        Finding::at(security, begin, message)
    });
    missing.chain(stale).collect()
}

/// The number of a class of attacks: that of `S12`.
fn threat(number: &str) -> Option<u32> {
    number.strip_prefix('S')?.parse().ok()
}

fn entries(document: &Source) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut is_open = false;
    for (line, text) in document.lines() {
        if let Some((numbers, rest)) = head(text) {
            entries.push(Entry { numbers, line, text: rest.to_owned() });
            is_open = true;
        } else if text.trim().is_empty() || text.starts_with('#') {
            is_open = false;
        } else if is_open && let Some(entry) = entries.last_mut() {
            entry.text.push(' ');
            entry.text.push_str(text.trim());
        }
    }
    entries
}

/// The numbers at the head of an entry, `- **E1**, **E2**`, and the text behind them.
fn head(line: &str) -> Option<(Vec<String>, &str)> {
    let (first, mut rest) = line.trim_start().strip_prefix("- **")?.split_once("**")?;
    let mut numbers = vec![first.to_owned()];
    while let Some((next, behind)) =
        rest.strip_prefix(", **").and_then(|rest| rest.split_once("**"))
    {
        numbers.push(next.to_owned());
        rest = behind;
    }
    Some((numbers, rest))
}

#[cfg(test)]
mod tests;
