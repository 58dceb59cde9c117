//! Sentences in lines that a terminal has room for.

use unicode_width::UnicodeWidthStr as _;

/// The beginning of a colour's code, and its end.
const COLOUR: (&str, char) = ("\u{1b}[", 'm');
/// The mark around a command.
const QUOTE: char = '`';
/// The blanks in front of the further lines of an indented line.
const INDENT: &str = "  ";

/// The text in lines of at most this width. A command in backticks stays in one piece, so that it
/// can be copied, and so does a word that is longer than a line.
pub(super) fn wrapped(text: &str, width: Option<u16>) -> String {
    let Some(width) = width.map(usize::from) else { return text.to_owned() };
    let mut lines = Vec::new();
    for line in text.split('\n') {
        match shown_width(line) > width {
            true => lines.extend(broken(line, width)),
            false => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

fn broken(line: &str, width: usize) -> Vec<String> {
    let rest = line.trim_start_matches(' ');
    let indent = " ".repeat(line.len() - rest.len());
    let further = if indent.is_empty() { "" } else { INDENT };
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces(rest) {
        match lines.last_mut() {
            Some(last) if shown_width(last) + 1 + shown_width(&piece) <= width => {
                last.push(' ');
                last.push_str(&piece);
            }
            Some(_) => lines.push(format!("{indent}{further}{piece}")),
            None => lines.push(format!("{indent}{piece}")),
        }
    }
    lines
}

/// The words of a line. A command is one.
fn pieces(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut is_command = false;
    for word in line.split(' ') {
        match pieces.last_mut() {
            Some(last) if is_command => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) | None => pieces.push(word.to_owned()),
        }
        is_command ^= word.matches(QUOTE).count() % 2 == 1;
    }
    pieces
}

/// Number of columns of a text, whose codes of colours have none.
fn shown_width(text: &str) -> usize {
    let (begin, end) = COLOUR;
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().width();
    let rest = parts.map(|part| part.split_once(end).map_or(part, |(_code, rest)| rest).width());
    first + rest.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_between_words() {
        let text = "one two three four\n  five six seven";
        assert_eq!(wrapped(text, Some(11)), "one two\nthree four\n  five six\n    seven");
        assert_eq!(wrapped(text, Some(18)), text);
        assert_eq!(wrapped(text, None), text);
        assert_eq!(wrapped("", Some(5)), "");
    }

    /// Text that a person copies has no line end in it.
    #[test]
    fn commands_and_long_words_stay_in_one_piece() {
        let text = "start it with `narthex up --detach`, or stop";
        let expected = "start it with\n`narthex up --detach`,\nor stop";
        assert_eq!(wrapped(text, Some(16)), expected);
        assert_eq!(wrapped("see /a/long/path now", Some(6)), "see\n/a/long/path\nnow");
    }

    #[test]
    fn colours_and_wide_letters_are_counted_as_they_are_shown() {
        let text = "\u{1b}[33m[WARN]\u{1b}[0m a b";
        assert_eq!(wrapped(text, Some(10)), text);
        assert_eq!(wrapped("日本 語", Some(5)), "日本\n語");
    }
}
