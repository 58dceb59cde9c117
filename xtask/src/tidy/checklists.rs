//! The checklists `docs/adding-*.md`: each path, item and test that they name exists.

use std::collections::BTreeSet;

use super::Finding;
use super::requirements::tests_of;
use super::source::Source;

/// The words in front of the name that an item is defined with.
const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "mod"];
/// Words in code style that are neither paths nor items.
const WORDS: [&str; 2] = ["_meta", "narthex"];

/// Finds names in the checklists that nothing in the repository has, and steps without a check.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let pages = sources.iter().filter(|source| is_checklist(&source.path));
    let known = Known::of(sources);
    pages.flat_map(|page| check_page(page, &known)).collect()
}

fn is_checklist(path: &str) -> bool {
    path.starts_with("docs/adding-") && path.ends_with(".md")
}

/// Everything that a checklist may name.
struct Known<'a> {
    paths: BTreeSet<&'a str>,
    items: BTreeSet<&'a str>,
    tests: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(sources: &'a [Source]) -> Self {
        let rust = sources.iter().filter(|source| source.is_rust());
        Self {
            paths: sources.iter().map(|source| source.path.as_str()).collect(),
            items: rust.flat_map(|source| source.text.lines().filter_map(defined)).collect(),
            tests: tests_of::all(sources).iter().map(|test| test.name).collect(),
        }
    }

    /// The fault of a name in backticks outside of the checks of a step.
    fn fault(&self, name: &str) -> Option<String> {
        if name.contains([' ', '=']) || name.starts_with("--") || WORDS.contains(&name) {
            return None;
        }
        if name.ends_with('/') && !name.starts_with("crates/") {
            return None;
        }
        if name.contains(['/', '.']) {
            let folder = format!("{}/", name.trim_end_matches('/'));
            let is_there = self.paths.contains(name)
                || self.paths.iter().any(|path| path.starts_with(&folder));
            return (!is_there).then(|| format!("there is no file or folder `{name}`"));
        }
        let parts = name.split("::").find(|part| !self.items.contains(part));
        parts.map(|part| format!("no item of the code is named `{part}`"))
    }
}

/// The name of the item that is defined in a line of Rust.
fn defined(line: &str) -> Option<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        let within = public.split_once(')').filter(|_| public.starts_with('('));
        rest = within.map_or(public, |(_, rest)| rest).trim_start();
    }
    for word in ["const ", "async ", "unsafe "] {
        let after = rest.strip_prefix(word);
        // `const` is also the keyword of an item.
        rest = after.filter(|after| word != "const " || after.starts_with("fn ")).unwrap_or(rest);
    }
    let (keyword, rest) = rest.split_once(' ')?;
    if KEYWORDS.contains(&keyword) {
        return rest.split(|c| !is_name(c)).next().filter(|name| !name.is_empty());
    }
    // A field of a struct, such as `pub spelling: …`.
    keyword.strip_suffix(':').filter(|name| !name.is_empty() && name.chars().all(is_name))
}

fn check_page(page: &Source, known: &Known<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut step: Option<(usize, bool)> = None;
    let mut is_check = false;
    for (line, text) in page.lines() {
        let begins = text.split_once(". ").is_some_and(|(number, _)| is_number(number));
        if begins || !text.starts_with(' ') {
            findings.extend(unchecked(page, step.take()));
            is_check = false;
        }
        if begins {
            step = Some((line, false));
        }
        let (before, check) = match text.split_once("Fails: ") {
            Some((before, check)) => (before, Some(check)),
            None if is_check => ("", Some(text)),
            None => (text, None),
        };
        is_check |= check.is_some();
        if let (Some((_, has_check)), true) = (&mut step, check.is_some()) {
            *has_check = true;
        }
        let faults = quoted(before).filter_map(|name| known.fault(name));
        findings.extend(faults.map(|fault| Finding::at(page, line, fault)));
        let named = quoted(check.unwrap_or_default()).filter(|name| !name.contains(' '));
        for name in named.filter(|name| !known.tests.contains(name)) {
            findings.push(Finding::at(page, line, format!("no test is named `{name}`")));
        }
    }
    findings.extend(unchecked(page, step));
    findings
}

fn unchecked(page: &Source, step: Option<(usize, bool)>) -> Option<Finding> {
    let (line, has_check) = step?;
    let message = "the step names no check: write `Fails: ` and a test, or `the compiler`";
    (!has_check).then(|| Finding::at(page, line, message))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::{check, defined};
    use crate::tidy::source::Source;

    const PAGE: &str = "# A\n\nSee `docs/a.md`.\n\n\
        1. **Row.** In `ROWS` of `crates/a/b/src/rows.rs`, by `Table::find`.\n   \
        Fails: `rows_are_true`,\n   `rows_are_few`.\n\
        2. **Type.** Fails: the compiler.\n";
    const ROWS: &str = "pub(crate) const ROWS: &[u8] = &[];\npub struct Table;\nimpl Table {\n    \
        pub const fn find() {}\n}\n";
    const TESTS: &str =
        "#[test]\nfn rows_are_true() {}\n#[tokio::test]\nasync fn rows_are_few() {}\n";

    fn found(page: &str, rows: &str, tests: &str) -> Vec<String> {
        let files = [
            ("docs/adding-a-row.md", page),
            ("docs/a.md", ""),
            ("crates/a/b/src/rows.rs", rows),
            ("crates/a/b/tests/it/rows.rs", tests),
        ];
        let source = |(path, text): (&str, &str)| Source { path: path.into(), text: text.into() };
        let findings = check(&files.map(source));
        findings.into_iter().map(|one| format!("{}: {}", one.place, one.message)).collect()
    }

    #[test]
    fn a_checklist_may_only_name_existing_items_tests_and_files() {
        assert_eq!(found(PAGE, ROWS, TESTS), [""; 0]);
        let page = "docs/adding-a-row.md";
        let message = format!("{page}:5: no item of the code is named `ROWS`");
        assert_eq!(found(PAGE, &ROWS.replace("ROWS", "LINES"), TESTS), [message]);
        let message = format!("{page}:5: no item of the code is named `find`");
        assert_eq!(found(PAGE, &ROWS.replace("find", "seek"), TESTS), [message]);
        let message = format!("{page}:6: no test is named `rows_are_true`");
        assert_eq!(found(PAGE, ROWS, &TESTS.replace("_true", "_good")), [message]);
        let message = format!("{page}:7: no test is named `rows_are_few`");
        assert_eq!(found(PAGE, ROWS, &TESTS.replace("#[tokio::test]", "")), [message]);
        let message = format!("{page}:3: there is no file or folder `docs/b.md`");
        assert_eq!(found(&PAGE.replace("a.md", "b.md"), ROWS, TESTS), [message]);
        let silent = PAGE.replace("Fails: the compiler.", "That is all.");
        assert!(found(&silent, ROWS, TESTS)[0].contains(":8: the step names no check"));
    }

    #[test]
    fn items_are_read_by_their_line() {
        for line in [
            "    pub(in crate::a) const A: u8 = 1;",
            "async fn A<T>() {",
            "pub const fn A() {",
            "enum A {",
            "    pub A: Option<u8>,",
        ] {
            assert_eq!(defined(line), Some("A"), "{line}");
        }
        for line in ["let A = 1;", "use a::A;", "// fn A"] {
            assert_eq!(defined(line), None, "{line}");
        }
    }
}
