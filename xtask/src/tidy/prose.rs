//! Counts of unclear prose, which may only fall: see "Plain English" in CONTRIBUTING.md.

use super::ratchets::Counted;
use super::source::Source;
use super::words::words;

/// Openings of a comment that have neither a noun nor a verb.
const OPENINGS: [&str; 4] = ["What", "Whether", concat!("Who", "ever"), "By what"];

/// Words that hide the actor or the event. Split, so that this file does not find itself.
const WORDS: [&str; 7] = [
    concat!("no", "body"),
    concat!("who", "ever"),
    concat!("some", "body"),
    concat!("goes on", " with"),
    concat!("set", " aside"),
    concat!("held", " back"),
    concat!("cut", " off"),
];

/// Maximum number of words of a sentence in the documents of users.
const SENTENCE_MAX: usize = 40;

/// Numbers of places.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    vague_openings: usize,
    vague_words: usize,
    long_sentences: usize,
}

/// Counts unclear prose in all texts, and reports each place.
pub(super) fn counted(sources: &[Source], mut report: impl FnMut(String)) -> Vec<Counted> {
    let mut found = Counts::default();
    for source in sources {
        let more = count(source, |line, what| report(format!("{}:{line}: {what}", source.path)));
        found.vague_openings += more.vague_openings;
        found.vague_words += more.vague_words;
        found.long_sentences += more.long_sentences;
    }
    let remedy = "write it plainly, see \"Plain English\" in CONTRIBUTING.md";
    let counted = |name, number| Counted { name, number, remedy };
    vec![
        counted("vague_openings", found.vague_openings),
        counted("vague_words", found.vague_words),
        counted("long_sentences", found.long_sentences),
    ]
}

/// Counts the places of one text, and reports each with its line.
fn count(source: &Source, mut report: impl FnMut(usize, String)) -> Counts {
    let mut counts = Counts::default();
    let is_document = source.path.ends_with(".md");
    if !source.is_rust() && !is_document {
        return counts;
    }
    for (at, line) in source.lines() {
        if source.is_rust()
            && let Some(opening) = OPENINGS.iter().find(|opening| opens(line, opening))
        {
            counts.vague_openings += 1;
            report(at, format!("a comment begins with `{opening}`"));
        }
        let lower = line.to_lowercase();
        for word in WORDS {
            let many = words(&lower, word).count();
            counts.vague_words += many;
            if many > 0 {
                report(at, format!("`{word}`"));
            }
        }
    }
    if is_document && source.path.starts_with("docs/") && !source.path.contains("/decisions/") {
        for (at, words) in long_sentences(source) {
            counts.long_sentences += 1;
            report(at, format!("a sentence has {words} words"));
        }
    }
    counts
}

/// True if a line is a comment that begins with these words.
fn opens(line: &str, opening: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let comment = comment.trim_start_matches(['/', '!']).trim_start();
    let rest = comment.strip_prefix(opening);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Each sentence with too many words: the line in which it begins, and their number. Code, tables
/// and headings have no sentences; an item of a list begins one.
fn long_sentences(source: &Source) -> Vec<(usize, usize)> {
    let (mut found, mut is_code) = (Vec::new(), false);
    let mut sentence = (0, 0);
    let mut end = |sentence: &mut (usize, usize)| {
        if sentence.1 > SENTENCE_MAX {
            found.push(*sentence);
        }
        *sentence = (0, 0);
    };
    for (at, line) in source.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let is_prose = !is_code && !line.is_empty() && !line.starts_with(['|', '#', '`']);
        let is_item = line.starts_with("* ")
            || line.starts_with("- ")
            || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if !is_prose || is_item {
            end(&mut sentence);
        }
        if !is_prose {
            continue;
        }
        for word in line.split_whitespace() {
            if sentence.1 == 0 {
                sentence.0 = at;
            }
            sentence.1 += 1;
            if word.trim_end_matches(['"', ')', '*', '`']).ends_with(['.', '!', '?', ':', ';']) {
                end(&mut sentence);
            }
        }
    }
    end(&mut sentence);
    found
}

#[cfg(test)]
mod tests {
    use super::{Counts, count, long_sentences};
    use crate::tidy::source::Source;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn of(path: &str, text: &str) -> Counts {
        count(&source(path, text), |_, _| {})
    }

    #[test]
    fn openings_and_words_are_counted() {
        let word = concat!("No", "body");
        let text =
            format!("/// What it is.\n//! Whatever\n // By what is\nlet What = 1;\n// {word}");
        let counts = of("crates/a/src/a.rs", &text);
        assert_eq!((counts.vague_openings, counts.vague_words), (2, 1));
        let document = of("README.md", &format!("What {word}{word} {word}."));
        assert_eq!((document.vague_openings, document.vague_words), (0, 1));
        assert_eq!(of("a.json", &text), Counts::default());
    }

    #[test]
    fn sentences_end_at_points_blank_lines_and_items() {
        let words = |number: usize| "word ".repeat(number);
        let text = format!(
            "{}\n{}end.\n\n* {}\n* {}\n\n```\n{}\n```\n| {} |\n",
            words(30),
            words(10),
            words(25),
            words(25),
            words(99),
            words(99)
        );
        assert_eq!(long_sentences(&source("docs/a.md", &text)), [(1, 41)]);
        assert_eq!(of("docs/a.md", &text).long_sentences, 1);
        assert_eq!(of("docs/decisions/a.md", &text).long_sentences, 0);
    }
}
