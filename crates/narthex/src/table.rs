//! Tables for people, as wide as their terminal.

use std::{io::stdout, process::ExitCode};

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use crate::{
    Failure,
    cli::Context,
    output::{self, harmless, is_harmful},
};

/// Gives one line each; the last column is cut where the terminal ends.
pub(crate) fn render(header: &[&str], rows: &[Vec<String>]) -> String {
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

/// Prints a list as it is wanted: a table, `{"items": …}`, or the first cells alone.
pub(crate) fn list(
    items: &[Value],
    header: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
    none: &str,
    context: &Context,
) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(&json!({ "items": items }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = items.iter().map(row).collect();
    if context.format.is_quiet() {
        for row in &rows {
            output::line(&row[0])?;
        }
    } else if rows.is_empty() {
        output::line(none)?;
    } else {
        output::line(&render(header, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A member of an answer without what could move a cursor; empty if it is no text.
pub(crate) fn text(value: &Value, member: &str) -> String {
    harmless(value[member].as_str().unwrap_or_default())
}

/// The same, and `-` if it is no text.
pub(crate) fn or_none(value: &Value, member: &str) -> String {
    value[member].as_str().map_or_else(|| "-".to_owned(), harmless)
}

/// The first line, without what could move a cursor.
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

/// `None` if nobody looks: a file or another program gets everything.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_one_line_and_lines_are_cut() {
        let rows = [vec!["a".to_owned(), "\nfirst \u{1b}[2K\nsecond".to_owned()]];
        let text = render(&["name", "text"], &rows);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("first") && !text.contains("second") && !text.contains('\u{1b}'));
        assert_eq!(cut("abcdef", Some(4)), "abc…");
        assert_eq!(cut("abcd", Some(4)), "abcd");
    }
}
