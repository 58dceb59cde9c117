//! Every requirement in docs/requirements.md names a test that exists.
//!
//! An entry begins with `- **E42** …` and goes on to the next entry, heading or empty line. After
//! the word `Test:` (or `Tests:`) it names tests in backticks: by path, such as
//! `narthex_wire::sse::tests::joins_lines` (`wire` alone will do for the crate), or by file, as in
//! `crates/wire/tests/it/sse.rs::joins_lines`. Python and JavaScript files count as well.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;

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
        if tests.is_empty() {
            find("names no test (`Test: crate::path::name` in backticks)".to_owned());
        }
        for test in tests.into_iter().filter(|test| !exists(test, sources)) {
            find(format!("there is no test `{test}`"));
        }
    }
    findings
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
        false => source.is_rust() && source.crate_dir() == Some(&crate_dir(place)),
    };
    sources.iter().filter(is_here).any(|source| has_function(&source.text, name))
}

/// The folder of the crate that a path begins with.
fn crate_dir(path: &str) -> String {
    let first = path.split("::").next().unwrap_or(path).replace('_', "-");
    match first.strip_prefix("narthex-").unwrap_or(&first) {
        "xtask" => "xtask".to_owned(),
        name => format!("crates/{name}"),
    }
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

/// Whether the function that comes after this text is marked as a test.
fn is_test(before: &str) -> bool {
    let lines = before.lines().rev().map(str::trim);
    let above = lines.skip_while(|line| matches!(*line, "" | "async"));
    let mut attributes = above.take_while(|line| line.starts_with(['#', '/']));
    attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::check;

    fn found(text: &str) -> Vec<String> {
        let source =
            |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source("crates/wire/src/sse.rs", "#[test]\nfn joins_lines() {}\nfn helps() {}\n"),
            source(
                "crates/wire/tests/it/main.rs",
                "#[tokio::test(x)]\n// Why.\nasync fn reads<T>() {}\n",
            ),
            source("crates/http/src/lib.rs", "fn other() {}\n"),
        ];
        let document = source("docs/requirements.md", text);
        let findings = check(&document, &sources).into_iter();
        findings.map(|f| f.place.replace("docs/requirements.md:", "") + ": " + &f.message).collect()
    }

    #[test]
    fn a_test_may_be_named_by_crate_or_by_file() {
        let text = "- **E1** It joins lines.\n  Test: `narthex_wire::sse::tests::joins_lines`.\n\
            - **E2** It reads. Tests: `crates/wire/tests/it/main.rs::reads`, `wire::reads`\n";
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
            "crates/wire/src/sse.rs::reads",
            "x",
            "wire::helps",
        ] {
            let found = found(&format!("- **E1** A. Test: `{name}`\n"));
            assert_eq!(found, [format!("1: E1: there is no test `{name}`")]);
        }
    }

    #[test]
    fn a_number_stands_once() {
        let text = "- **E1** A. Test: `wire::reads`\n- **E1** B. Test: `wire::reads`\n";
        assert_eq!(found(text), ["2: E1: was already in line 1"]);
    }
}
