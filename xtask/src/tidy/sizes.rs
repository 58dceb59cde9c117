//! Limits on files and crates. Tests do not count.

use std::collections::BTreeMap;

use super::Finding;
use super::exceptions::{self, Exceptions};
use super::source::Source;
use super::syntax::Syntax;

const FILE_LINES: usize = 400;
const EXCEPTION_LINES: usize = 800;
const CRATE_LINES: usize = 10_000;

/// What has been counted so far.
#[derive(Default)]
pub(super) struct Sizes {
    crates: BTreeMap<String, usize>,
    long_files: Vec<String>,
}

impl Sizes {
    /// Counts one Rust file, and finds out whether it is too long.
    pub(super) fn add(
        &mut self,
        source: &Source,
        syntax: &Syntax,
        exceptions: &Exceptions,
    ) -> Option<Finding> {
        if source.is_test() {
            return None;
        }
        let lines = syntax.code_lines(source);
        if let Some(name) = source.crate_dir() {
            *self.crates.entry(name.to_owned()).or_default() += lines;
        }
        if lines <= FILE_LINES {
            return None;
        }
        self.long_files.push(source.path.clone());
        let limit = if exceptions.allows(&source.path) { EXCEPTION_LINES } else { FILE_LINES };
        let message = format!("has {lines} lines without tests, the limit is {limit}");
        (lines > limit).then(|| Finding::new(&source.path, message))
    }

    /// What can only be said when all files are counted.
    pub(super) fn finish(self, exceptions: &Exceptions) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, lines) in self.crates.into_iter().filter(|(_, lines)| *lines > CRATE_LINES) {
            let message = format!("has {lines} lines without tests, the limit is {CRATE_LINES}");
            findings.push(Finding::new(name, message));
        }
        for file in &exceptions.file {
            if !self.long_files.contains(&file.path) {
                let message = format!("`{}` is not long: remove the exception", file.path);
                findings.push(Finding::new(exceptions::FILE, message));
            }
            if file.reason.trim().is_empty() {
                let message = format!("`{}` has no reason", file.path);
                findings.push(Finding::new(exceptions::FILE, message));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::super::Finding;
    use super::super::exceptions::{Exceptions, LongFile};
    use super::super::source::Source;
    use super::super::syntax::Syntax;
    use super::Sizes;

    fn file(path: &str, lines: usize) -> Source {
        Source { path: path.to_owned(), text: "//! x\n".repeat(lines) }
    }

    fn exception(path: &str, reason: &str) -> Exceptions {
        let file = LongFile { path: path.to_owned(), reason: reason.to_owned() };
        Exceptions { file: vec![file] }
    }

    fn check(files: &[Source], exceptions: &Exceptions) -> Vec<Finding> {
        let mut sizes = Sizes::default();
        let mut findings = Vec::new();
        for file in files {
            let syntax = Syntax::parse(file).unwrap_or_default();
            findings.extend(sizes.add(file, &syntax, exceptions));
        }
        findings.extend(sizes.finish(exceptions));
        findings
    }

    #[test]
    fn a_long_file_needs_an_exception_which_has_a_limit_too() {
        let none = Exceptions::default();
        let path = "crates/a/src/lib.rs";
        assert!(check(&[file(path, 400)], &none).is_empty());
        assert_eq!(check(&[file(path, 401)], &none).len(), 1);
        assert!(check(&[file(path, 800)], &exception(path, "a table")).is_empty());
        assert_eq!(check(&[file(path, 801)], &exception(path, "a table")).len(), 1);
        assert!(check(&[file("crates/a/tests/it/main.rs", 900)], &none).is_empty());
    }

    #[test]
    fn an_exception_must_be_needed_and_have_a_reason() {
        let path = "crates/a/src/lib.rs";
        let stale = check(&[file(path, 10)], &exception(path, "a table"));
        assert!(stale[0].message.contains("remove the exception"), "{stale:?}");
        let silent = check(&[file(path, 500)], &exception(path, " "));
        assert!(silent[0].message.contains("no reason"), "{silent:?}");
    }

    #[test]
    fn a_large_crate_is_found() {
        let files: Vec<Source> =
            (0..26).map(|n| file(&format!("crates/a/src/m{n}.rs"), 400)).collect();
        let found = check(&files, &Exceptions::default());
        assert_eq!(
            found,
            [Finding::new("crates/a", "has 10400 lines without tests, the limit is 10000")]
        );
    }
}
