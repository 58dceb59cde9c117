//! The tests of the repository, with the numbers that each of them carries.

use std::collections::BTreeSet;

use crate::tidy::source::Source;

/// One test, and the keys of the requirements that it belongs to.
pub(in crate::tidy) struct Test<'a> {
    pub(super) source: &'a Source,
    pub(super) line: usize,
    pub(in crate::tidy) name: &'a str,
    /// The keys at the head of its name.
    pub(super) named: Vec<String>,
    /// The keys in the comments above it.
    noted: BTreeSet<String>,
}

impl Test<'_> {
    pub(super) fn belongs_to(&self, number: &str) -> bool {
        let key = key(number);
        self.noted.contains(&key) || self.named.contains(&key)
    }
}

/// One spelling for numbers in documents, names and comments: `xm39` for `X-M39` and `x_m39`.
pub(super) fn key(number: &str) -> String {
    number.replace(['-', '_'], "").to_lowercase()
}

/// The letters of a key: `xm` of `xm39`.
pub(super) fn series(key: &str) -> &str {
    key.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Every test in these Rust files, in their order.
pub(in crate::tidy) fn all(sources: &[Source]) -> Vec<Test<'_>> {
    sources.iter().filter(|source| source.is_rust()).flat_map(tests_in).collect()
}

fn tests_in(source: &Source) -> Vec<Test<'_>> {
    let mut tests = Vec::new();
    let mut above = Above::default();
    for (line, text) in source.lines() {
        let text = text.trim();
        if above.takes(text) {
            continue;
        }
        let above = std::mem::take(&mut above);
        if above.is_test
            && let Some(name) = function(text)
        {
            tests.push(Test { source, line, name, named: named(name), noted: above.noted });
        }
    }
    tests
}

/// The comments and attributes above an item.
#[derive(Default)]
struct Above {
    is_test: bool,
    /// True between the lines of one attribute.
    is_open: bool,
    noted: BTreeSet<String>,
}

impl Above {
    /// Reads a line. False if it is neither a comment nor part of an attribute.
    fn takes(&mut self, line: &str) -> bool {
        if line.starts_with("//") {
            self.noted.extend(noted(line));
            return true;
        }
        let is_attribute = self.is_open || line.starts_with("#[");
        self.is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        self.is_open = is_attribute && !line.ends_with(']');
        is_attribute
    }
}

/// The name of the function that begins in this line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix("fn ")?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The keys at the head of a name: `xm39` and `e7` of `x_m39_e7_keeps_order`.
fn named(name: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut words = name.split('_').peekable();
    while let Some(word) = words.next() {
        if is_number(word) {
            keys.push(word.to_owned());
        } else if word.len() == 1
            && let Some(rest) = words.next_if(|rest| is_number(rest))
        {
            keys.push(format!("{word}{rest}"));
        } else {
            break;
        }
    }
    keys
}

/// True for a letter and digits, such as `e42`.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(|c: char| c.is_ascii_lowercase());
    digits.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The keys in a comment: each word such as `E42`, `A-9` or `X-M39`.
fn noted(comment: &str) -> impl Iterator<Item = String> {
    let words = comment.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_'));
    words.filter(|word| is_noted(word)).map(key)
}

fn is_noted(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    letters.len() < word.len()
        && match letters.as_bytes() {
            [letter] | [letter, b'-'] => letter.is_ascii_uppercase(),
            [series, b'-', letter] => series.is_ascii_uppercase() && letter.is_ascii_uppercase(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::{all, function, named};
    use crate::tidy::source::Source;

    fn source(text: &str) -> [Source; 1] {
        [Source { path: "crates/a/b/tests/it/main.rs".to_owned(), text: text.to_owned() }]
    }

    #[test]
    fn names_carry_numbers_at_their_head() {
        assert_eq!(named("e113_values"), ["e113"]);
        assert_eq!(named("r_m35_x_e7_e8_order"), ["rm35", "xe7", "e8"]);
        assert_eq!(named("a9_the_token"), ["a9"]);
        for name in ["a_404_is_an_answer", "reads_e7", "e_is_a_letter", "sha256_of_it", "e7th_try"]
        {
            assert_eq!(named(name), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn functions_are_read_by_their_line() {
        for line in ["fn a1_b() {", "async fn a1_b<T>() {", "pub async fn a1_b(", "pub fn a1_b("] {
            assert_eq!(function(line), Some("a1_b"));
        }
        assert_eq!(function("let a = b.fn_c();"), None);
    }

    #[test]
    fn comments_above_a_test_carry_numbers() {
        let text = "/// E1, X-M2: a.\n/// Also A-3 (S4), E5–E6.\n#[tokio::test(\n  x = 1\n)]\n\
            // R-M7.\nasync fn reads() {\n    // E8: inside.\n}\n";
        let sources = source(text);
        let tests = all(&sources);
        let [test] = tests.as_slice() else { panic!("{} tests", tests.len()) };
        assert_eq!((test.name, test.line), ("reads", 7));
        for number in ["E1", "X-M2", "A-3", "S4", "E5", "E6", "R-M7"] {
            assert!(test.belongs_to(number), "{number}");
        }
        for number in ["E8", "M2", "E2"] {
            assert!(!test.belongs_to(number), "{number}");
        }
    }

    #[test]
    fn a_comment_belongs_to_the_next_item_only() {
        let text =
            "/// E1.\nfn helps() {}\n#[test]\nfn reads() {}\n\n// E2.\n\n#[test]\nfn sees() {}";
        let sources = source(text);
        let tests = all(&sources);
        assert_eq!(tests.len(), 2);
        assert!(tests.iter().all(|test| !test.belongs_to("E1") && !test.belongs_to("E2")));
    }
}
