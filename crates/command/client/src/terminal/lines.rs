//! Lines for a terminal: tables for people, as wide as the terminal, and others' texts without
//! characters that move a cursor.

use std::io::stdout;

use comfy_table::{Table, presets};

use super::inert::inert;

/// A table with a line per row; the last column is cut at the terminal's width. Without rows, the
/// sentence `none`.
#[must_use]
pub fn render(header: &[&str], rows: &[Vec<String>], none: &str) -> String {
    if rows.is_empty() {
        return none.to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().map(|title| title.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|cell| one_line(cell)));
    }
    let width = width();
    let lines = table.lines().map(|line| cut(line.trim_end(), width));
    lines.collect::<Vec<_>>().join("\n")
}

/// Others' text, without characters that move a cursor or change the direction of letters.
#[must_use]
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// True if a terminal does more with a character than show it.
#[must_use]
pub fn is_harmful(c: char) -> bool {
    // Marks of direction, which make a line read otherwise than it is, and breaks of lines.
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' |
        '\u{2066}'..='\u{2069}');
    is_mark || c.is_control() && c != '\t'
}

/// The first line, without characters that could move a cursor.
fn one_line(text: &str) -> String {
    let first = text.trim_start().lines().next().unwrap_or_default();
    first.chars().map(|c| if c == '\t' || is_harmful(c) { ' ' } else { c }).collect()
}

fn cut(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        Some(_) | None => line.to_owned(),
    }
}

/// The width of the terminal; `None` without one: a file or another program gets everything.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Prints a text for a person, besides the result. Parts of it may come from others.
#[expect(clippy::print_stderr, reason = "what is no result goes to standard error")]
pub fn notice(text: &str) {
    eprintln!("{}", inert(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_show_one_line_and_long_lines_are_cut() {
        let rows = [vec!["a".to_owned(), "\nfirst \u{1b}[2K\nsecond".to_owned()]];
        let text = render(&["name", "text"], &rows, "There are none.");
        assert_eq!(render(&["name"], &[], "There are none."), "There are none.");
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("first") && !text.contains("second") && !text.contains('\u{1b}'));
        assert_eq!(cut("abcdef", Some(4)), "abc…");
        assert_eq!(cut("abcd", Some(4)), "abcd");
    }
}
