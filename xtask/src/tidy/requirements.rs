//! Every requirement in docs/requirements.md names a test that exists.
//!
//! An entry begins with `- **E42** …` and ends before the next entry, heading or empty line. After
//! the word `Test:` (or `Tests:`) it names tests in backticks: by path, such as
//! `narthex_wire::sse::tests::joins_lines` (`wire` alone will do for the crate), or by file, as in
//! `crates/words/wire/tests/it/sse.rs::joins_lines`. Python and JavaScript files count as well.

use std::collections::{BTreeMap, BTreeSet};

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
    number: String,
    line: usize,
    text: String,
}

pub(super) fn check(document: &Source, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeMap::new();
    for entry in entries(document) {
        let mut find = |message: String| {
            findings.push(Finding::at(
                document,
                entry.line,
                format!("{}: {message}", entry.number),
            ));
        };
        if let Some(first) = seen.insert(entry.number.clone(), entry.line) {
            find(format!("was already in line {first}"));
        }
        let tests = tests(&entry.text);
        // An attack on what there is not needs no defence, and is named all the same.
        let is_threat = threat(&entry.number).is_some();
        if tests.is_empty() && !(is_threat && entry.text.contains(NOT_BUILT)) {
            find("names no test (`Test: crate::path::name` in backticks)".to_owned());
        }
        for test in tests.into_iter().filter(|test| !exists(test, sources)) {
            find(format!("there is no test `{test}`"));
        }
    }
    findings.extend(threats(document));
    findings
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
        let Some(number) = threat(&entry.number) else { continue };
        named.insert(number);
        if !(begin..end).contains(&entry.line) {
            let message = format!("{} belongs below `{THREATS}`", entry.number);
            findings.push(Finding::at(document, entry.line, message));
        }
    }
    let missing = (1..=THREATS_MAX).filter(|number| !named.contains(number));
    findings.extend(missing.map(|number| {
        Finding::at(
            document,
            begin,
            format!("S{number} is missing: name its tests, or say that it is not built"),
        )
    }));
    findings
}

/// Checks that the missing parts of security.md are those that the threats call not built.
pub(super) fn not_yet(document: &Source, security: &Source) -> Vec<Finding> {
    let open = entries(document).into_iter().filter(|entry| entry.text.contains(NOT_BUILT));
    let open: BTreeSet<_> = open.filter_map(|entry| threat(&entry.number)).collect();
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
        if let Some(rest) = text.trim_start().strip_prefix("- **")
            && let Some((number, rest)) = rest.split_once("**")
        {
            entries.push(Entry { number: number.to_owned(), line, text: rest.to_owned() });
            is_open = true;
        } else if text.trim().is_empty() || text.starts_with('#') {
            is_open = false;
        } else if is_open && let Some(entry) = entries.last_mut() {
            entry.text.push(' ');
            entry.text.push_str(text);
        }
    }
    entries
}

/// The names in backticks after the word for tests.
fn tests(text: &str) -> Vec<&str> {
    let after = ["Test:", "Tests:"].iter().filter_map(|word| text.split_once(word)).next();
    let Some((_, named)) = after else { return Vec::new() };
    named.split('`').skip(1).step_by(2).collect()
}

fn exists(test: &str, sources: &[Source]) -> bool {
    let Some((place, name)) = test.rsplit_once("::") else { return false };
    let is_here = |source: &&Source| match place.contains('/') {
        true => source.path == place,
        false => source.is_rust() && source.crate_dir().is_some_and(|dir| is_of(dir, place)),
    };
    sources.iter().filter(is_here).any(|source| has_function(&source.text, name))
}

/// True if a path, such as `narthex_wire::sse::reads`, begins with the crate in this folder.
fn is_of(dir: &str, path: &str) -> bool {
    let first = path.split("::").next().unwrap_or(path).replace('_', "-");
    let name = first.strip_prefix("narthex-").unwrap_or(&first);
    dir.rsplit('/').next() == Some(name)
}

fn has_function(text: &str, name: &str) -> bool {
    ["fn ", "def ", "function "].iter().any(|keyword| {
        text.match_indices(&format!("{keyword}{name}")).any(|(at, found)| {
            let rest = &text[at + found.len()..];
            let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            is_whole && (*keyword != "fn " || is_test(&text[..at]))
        })
    })
}

/// True if the function that comes after this text is marked as a test.
fn is_test(before: &str) -> bool {
    let lines = before.lines().rev().map(str::trim);
    let above = lines.skip_while(|line| matches!(*line, "" | "async"));
    let mut attributes = above.take_while(|line| line.starts_with(['#', '/']));
    attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{check, not_yet};

    fn found(text: &str) -> Vec<String> {
        let source =
            |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source("crates/words/wire/src/sse.rs", "#[test]\nfn joins_lines() {}\nfn helps() {}\n"),
            source(
                "crates/words/wire/tests/it/main.rs",
                "#[tokio::test(x)]\n// Why.\nasync fn reads<T>() {}\n",
            ),
            source("crates/doors/http/src/lib.rs", "fn other() {}\n"),
        ];
        let document = source("docs/requirements.md", text);
        let findings = check(&document, &sources).into_iter();
        findings.map(|f| f.place.replace("docs/requirements.md:", "") + ": " + &f.message).collect()
    }

    #[test]
    fn a_test_may_be_named_by_crate_or_by_file() {
        let text = "- **E1** It joins lines.\n  Test: `narthex_wire::sse::tests::joins_lines`.\n\
            - **E2** It reads. Tests: `crates/words/wire/tests/it/main.rs::reads`, `wire::reads`\n";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn an_entry_without_a_test_is_found() {
        let text = "- **E1** It joins `lines`.\n\nTest: `wire::joins_lines`\n";
        assert_eq!(found(text), ["1: E1: names no test (`Test: crate::path::name` in backticks)"]);
    }

    #[test]
    fn a_test_that_is_not_there_is_found() {
        for name in [
            "wire::sse::joins",
            "http::joins_lines",
            "crates/words/wire/src/sse.rs::reads",
            "x",
            "wire::helps",
        ] {
            let found = found(&format!("- **E1** A. Test: `{name}`\n"));
            assert_eq!(found, [format!("1: E1: there is no test `{name}`")]);
        }
    }

    /// The threats are all there, each with tests or as not built, and below their heading.
    #[test]
    fn every_class_of_attacks_is_named_once() {
        let entry = |number: u32| match number {
            1 => "- **S1** A. Not built: there is no b.\n".to_owned(),
            number => format!("- **S{number}** A. Test: `wire::reads`\n"),
        };
        let all: String = (1..=32).map(entry).collect();
        assert_eq!(found(&format!("## Threats\n\n{all}\n## More\n")), Vec::<String>::new());
        let some: String = (1..=31).map(entry).collect();
        let missing = "1: S32 is missing: name its tests, or say that it is not built";
        assert_eq!(found(&format!("## Threats\n\n{some}")), [missing]);
        let elsewhere = format!("## Threats\n\n{some}\n## More\n\n{}", entry(32));
        assert_eq!(found(&elsewhere), ["37: S32 belongs below `## Threats`"]);
        // Only a threat may go without a test.
        let untested = "- **E1** A. Not built: b.\n";
        assert_eq!(found(untested).len(), 1);
    }

    #[test]
    fn what_is_missing_is_the_same_in_both_documents() {
        let source =
            |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let threats = source("r.md", "- **S1** A. Not built: b.\n- **S2** C. Test: `x`.\n");
        let told = |text: &str| {
            let found = not_yet(&threats, &source("s.md", text)).into_iter();
            found.map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(told("## Not yet\n\n* no b (S1)\n\n## More\n\nS2\n"), Vec::<String>::new());
        let both = [
            "`## Not yet` does not name S1, which is not built",
            "`## Not yet` names S2, which is built",
        ];
        assert_eq!(told("## Not yet\n\n* no c (S2)\n"), both);
        assert_eq!(told("# Security\n"), ["has no section `## Not yet`"]);
    }

    #[test]
    fn a_number_stands_once() {
        let text = "- **E1** A. Test: `wire::reads`\n- **E1** B. Test: `wire::reads`\n";
        assert_eq!(found(text), ["2: E1: was already in line 1"]);
    }
}
