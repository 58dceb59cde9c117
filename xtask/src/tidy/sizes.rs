//! Limits on the length of files. Tests do not count.

use super::Finding;
use super::source::Source;
use super::syntax::Syntax;

/// Aim for files of at most this many lines. Longer ones are counted, not refused.
const LONG: usize = 400;
const LIMIT: usize = 800;

/// Number of files above the aim, so far.
#[derive(Default)]
pub(super) struct Sizes {
    long: usize,
}

impl Sizes {
    /// Counts one Rust file, and refuses one above the limit.
    pub(super) fn add(&mut self, source: &Source, syntax: &Syntax) -> Option<Finding> {
        if source.is_test() {
            return None;
        }
        let lines = syntax.code_lines(source);
        self.long += usize::from(lines > LONG);
        let message = format!("has {lines} lines without tests, the limit is {LIMIT}");
        (lines > LIMIT).then(|| Finding::new(&source.path, message))
    }

    /// Reports how many files are above the aim, if any are.
    pub(super) fn remark(&self) -> Option<String> {
        (self.long > 0).then(|| format!("{} files have more than {LONG} lines", self.long))
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::syntax::Syntax;
    use super::Sizes;

    #[test]
    fn a_long_file_is_counted_and_a_very_long_file_is_refused() {
        let mut sizes = Sizes::default();
        let mut is_refused = |path: &str, lines: usize| {
            let file = Source { path: path.to_owned(), text: "//! x\n".repeat(lines) };
            let syntax = Syntax::parse(&file).unwrap_or_default();
            sizes.add(&file, &syntax).is_some()
        };
        assert!(!is_refused("crates/a/src/lib.rs", 400));
        assert!(!is_refused("crates/a/src/b.rs", 401));
        assert!(!is_refused("crates/a/src/c.rs", 800));
        assert!(is_refused("crates/a/src/d.rs", 801));
        assert!(!is_refused("crates/a/tests/it/main.rs", 900));
        assert_eq!(sizes.remark().unwrap(), "3 files have more than 400 lines");
    }
}
