//! Lines for a terminal: tables for people, as wide as the terminal, and others' texts without
//! characters that move a cursor.

use std::{
    io::{stderr, stdout},
    os::fd::AsFd,
};

use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table, presets};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{inert::inert, sentences::wrapped};

/// Maximum number of lines of a row on a narrow terminal.
const ROW_LINES: usize = 4;
/// Columns with names, which stay in one piece, so that they can be copied. The first column is
/// such a column, too.
const NAMES: [&str; 9] =
    ["agent", "alias", "id", "name", "run", "server", "session", "tool", "user"];
/// Columns that a person reads whole before an answer, so that no row of theirs is shortened.
const WHOLE: [&str; 1] = ["starts"];
/// Minimum width of another column, unless its cells are shorter.
const LEAST: usize = 10;
/// The blanks beside each column.
const PADDING: usize = 2;
/// The blanks between the cells of a row without a table, and in front of its further lines.
const GAP: &str = "  ";
const INDENT: &str = "    ";

/// A table with a line per row. Where a terminal is too narrow, long cells continue below, inside
/// of their columns; where the columns have no room, each cell is a line. Without rows, the
/// sentence `none`.
#[must_use]
pub fn render(header: &[&str], rows: &[Vec<String>], none: &str) -> String {
    match rows.is_empty() {
        true => none.to_owned(),
        false => laid_out(header, rows, width()),
    }
}

/// The columns of a table, and its rows.
#[derive(Debug)]
pub struct Rows<'h> {
    /// The titles of the columns.
    pub header: &'h [&'h str],
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// A table for which the terminal has room: the wide one, or the narrow one if a row of the wide
/// one needs several lines, or else the narrow rows as [`row_fitting`] has them.
///
/// A file or another program gets the wide one.
#[must_use]
pub fn render_fitting(wide: &Rows<'_>, narrow: &Rows<'_>, none: &str) -> String {
    match wide.rows.is_empty() {
        true => none.to_owned(),
        false => fitted(wide, narrow, width()),
    }
}

fn fitted(wide: &Rows<'_>, narrow: &Rows<'_>, width: Option<u16>) -> String {
    let Some(columns) = width else { return laid_out(wide.header, &wide.rows, None) };
    let has_room = |rows: &&Rows<'_>| natural(rows) <= usize::from(columns);
    match [wide, narrow].into_iter().find(has_room) {
        Some(table) => laid_out(table.header, &table.rows, width),
        None => {
            let rows = narrow.rows.iter().map(|row| flowing(row, columns));
            rows.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A row without a table, for a list that grows: the wide one, or the narrow one if the terminal is
/// too narrow for it.
///
/// A cell of the narrow one that has no room in its line begins the next one, and one that is
/// longer than a line is cut at its end. A file or another program gets the wide one.
#[must_use]
pub fn row_fitting(wide: &[String], narrow: &[String]) -> String {
    fitted_row(wide, narrow, width())
}

fn fitted_row(wide: &[String], narrow: &[String], width: Option<u16>) -> String {
    let cells: Vec<_> = wide.iter().map(|cell| one_line(cell)).collect();
    let wide = cells.join(GAP);
    match width {
        Some(width) if wide.width() > usize::from(width) => flowing(narrow, width),
        Some(_) | None => wide,
    }
}

/// The cells of a row in as many lines as they need, each in one piece.
fn flowing(cells: &[String], width: u16) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cell in cells.iter().map(|cell| one_line(cell)) {
        match lines.last_mut() {
            Some(line) if line.width() + GAP.len() + cell.width() <= usize::from(width) => {
                line.push_str(GAP);
                line.push_str(&cell);
            }
            Some(_) => lines.push(cut(&format!("{INDENT}{cell}"), Some(width))),
            None => lines.push(cut(&cell, Some(width))),
        }
    }
    lines.join("\n")
}

/// The width of a table with a line for each row.
fn natural(table: &Rows<'_>) -> usize {
    let of_column = |(at, title): (usize, &&str)| {
        let cells = table.rows.iter().filter_map(|row| row.get(at));
        let longest = cells.map(|cell| one_line(cell).width()).max().unwrap_or_default();
        PADDING + longest.max(title.width())
    };
    table.header.iter().enumerate().map(of_column).sum()
}

/// The table for a terminal of this width.
fn laid_out(header: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let one_line = |row: &Vec<String>| row.iter().map(|cell| one_line(cell)).collect::<Vec<_>>();
    let rows: Vec<_> = rows.iter().map(one_line).collect();
    if width.is_some_and(|width| least(header, &rows) > usize::from(width)) {
        return in_lines(header, &rows);
    }
    let is_whole = header.iter().any(|title| WHOLE.contains(title));
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().map(|title| title.to_uppercase()));
    for row in rows {
        let mut row = Row::from(row);
        if !is_whole {
            row.max_height(ROW_LINES);
        }
        table.add_row(row);
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        for at in (0..header.len()).filter(|at| is_name(header, *at)) {
            if let Some(column) = table.column_mut(at) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    let lines = table.lines().map(|line| cut(line.trim_end(), width));
    lines.collect::<Vec<_>>().join("\n")
}

/// The least width of a table whose names stay in one piece.
fn least(header: &[&str], rows: &[Vec<String>]) -> usize {
    let of_column = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let longest = cells.map(|cell| cell.width()).max().unwrap_or_default();
        let whole = longest.max(header[at].width());
        PADDING + if is_name(header, at) { whole } else { whole.min(LEAST) }
    };
    (0..header.len()).map(of_column).sum()
}

fn is_name(header: &[&str], at: usize) -> bool {
    at == 0 || NAMES.contains(&header[at])
}

/// The rows with a line for each cell, and a blank line between rows.
fn in_lines(header: &[&str], rows: &[Vec<String>]) -> String {
    let block = |row: &Vec<String>| {
        let cells = header.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty());
        let lines = cells.map(|(title, cell)| format!("{}: {cell}", title.to_uppercase()));
        lines.collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
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

fn cut(line: &str, width: Option<u16>) -> String {
    match width.map(usize::from) {
        Some(width) if line.width() > width => {
            format!("{}…", fitting(line, width.saturating_sub(1)))
        }
        Some(_) | None => line.to_owned(),
    }
}

/// The beginning of a line that has at most so many columns; some letters have two.
pub(super) fn fitting(line: &str, columns: usize) -> &str {
    let mut width = 0;
    let beyond = line.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or_default();
        width > columns
    });
    beyond.map_or(line, |(at, _)| &line[..at])
}

/// The width of the terminal; `None` without one: a file or another program gets everything.
fn width() -> Option<u16> {
    width_of(stdout())
}

fn width_of(output: impl AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// Sentences in lines for which the terminal of standard output has room. A command in backticks
/// stays in one piece.
#[must_use]
pub fn sentences_fitting(text: &str) -> String {
    wrapped(text, width())
}

/// Prints a text for a person, besides the result. Parts of it may come from others.
#[expect(clippy::print_stderr, reason = "what is no result goes to standard error")]
pub fn notice(text: &str) {
    eprintln!("{}", wrapped(&inert(text), width_of(stderr())));
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
        // These letters have two columns each.
        assert_eq!(cut("日本", Some(4)), "日本");
        assert_eq!(cut("日本語", Some(4)), "日…");
    }

    /// Columns begin at the same place in all lines, and no line is longer than the terminal.
    #[test]
    fn columns_stay_aligned_on_narrow_terminals() {
        let header = ["server", "workspace", "status", "agent"];
        let long = "error: the program `example-server` did not start; look at its log, then try \
                    again with the command that is named there";
        let row = |name: &str, status: &str| {
            vec![name.to_owned(), "default".to_owned(), status.to_owned(), "helper".to_owned()]
        };
        let rows = [row("git", "ready: 3 tools"), row("a-server-with-a-name", long)];
        for width in [80, 60] {
            let text = laid_out(&header, &rows, Some(width));
            let lines: Vec<_> = text.lines().collect();
            let is_in = |line: &&str| line.chars().count() <= usize::from(width);
            assert!(lines.len() > 3 && lines.iter().all(is_in), "{text}");
            assert!(text.contains(" a-server-with-a-name "), "a name is not split: {text}");
            let at = lines[0].find("STATUS").unwrap();
            for line in &lines[1..] {
                let before: String = line.chars().take(at).collect();
                assert!(before.is_empty() || before.ends_with(' '), "{text}");
                let cell = line.chars().nth(at);
                assert!(cell.is_none_or(|first| !first.is_whitespace()), "{text}");
            }
        }
        let whole = laid_out(&header, &rows, None);
        assert!(whole.lines().count() == 3 && whole.contains(long), "{whole}");
    }

    /// A table with fewer columns takes the place of one whose rows would need several lines.
    #[test]
    fn a_narrow_terminal_gets_the_narrow_table() {
        let rows = |cells: &[&str]| vec![cells.iter().map(|cell| (*cell).to_owned()).collect()];
        let wide = Rows { header: &["time", "kind", "more"], rows: rows(&["now", "set", "all"]) };
        let narrow = Rows { header: &["time", "kind"], rows: rows(&["now", "set"]) };
        // Three columns of four letters, each with its blanks.
        for width in [None, Some(80), Some(18)] {
            assert!(fitted(&wide, &narrow, width).contains("MORE"), "{width:?}");
        }
        let text = fitted(&wide, &narrow, Some(17));
        assert!(text.contains("KIND") && !text.contains("MORE"), "{text}");
        let empty = Rows { header: &["time"], rows: Vec::new() };
        assert_eq!(render_fitting(&empty, &empty, "There are none."), "There are none.");
    }

    /// A row that is printed alone has the columns for which the terminal has room.
    #[test]
    fn a_narrow_terminal_gets_the_narrow_row() {
        let cells = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let (wide, narrow): (Vec<_>, Vec<_>) = (cells(&["now", "set", "all"]), cells(&["now"]));
        for width in [None, Some(80), Some(13)] {
            assert_eq!(fitted_row(&wide, &narrow, width), "now  set  all", "{width:?}");
        }
        assert_eq!(fitted_row(&wide, &narrow, Some(12)), "now");
    }

    /// No cell is broken: it begins a line of its own, and only one that is longer than a line is
    /// cut at its end. A list and its growing form have the same lines.
    #[test]
    fn cells_of_a_narrow_row_stay_in_one_piece() {
        let cells = |cells: &[&str]| -> Vec<String> {
            cells.iter().map(|cell| (*cell).to_owned()).collect()
        };
        let row = cells(&["10:39:14", "session.mcp.tool_called", "run_0123456789", "docs find"]);
        let expected = "10:39:14  session.mcp.tool_called\n    run_0123456789  docs find";
        assert_eq!(fitted_row(&row, &row, Some(40)), expected);
        let long = cells(&["10:39:14", "a-name-that-is-longer-than-the-line", "ok"]);
        let cut = "10:39:14\n    a-name-that-is-l…\n    ok";
        assert_eq!(fitted_row(&long, &long, Some(21)), cut);
        let table = |rows: &[&Vec<String>]| Rows {
            header: &["time", "kind", "actor", "object"],
            rows: rows.iter().map(|row| (*row).clone()).collect(),
        };
        let rows = table(&[&row, &row]);
        assert_eq!(fitted(&rows, &rows, Some(40)), format!("{expected}\n{expected}"));
        let whole = fitted(&rows, &rows, None);
        assert!(whole.lines().count() == 3 && !whole.contains('…'), "{whole}");
    }

    /// A name can be copied from any terminal.
    #[test]
    fn names_stay_in_one_piece() {
        let header = ["server", "tool", "description"];
        let name = "read_several_files_at_once";
        let rows = [vec!["files".to_owned(), name.to_owned(), "Reads many files".to_owned()]];
        for width in [60, 50] {
            let text = laid_out(&header, &rows, Some(width));
            assert!(text.contains(&format!(" {name} ")), "{text}");
        }
        let expected = format!("SERVER: files\nTOOL: {name}\nDESCRIPTION: Reads many files");
        assert_eq!(laid_out(&header, &rows, Some(40)), expected);
        let two = [rows[0].clone(), vec!["git".to_owned(), "log".to_owned(), String::new()]];
        let text = laid_out(&header, &two, Some(40));
        assert_eq!(text, format!("{expected}\n\nSERVER: git\nTOOL: log"));
    }

    /// A person sees all of a program before it is agreed to.
    #[test]
    fn a_start_is_shown_whole() {
        let rows = [vec!["a".to_owned(), "word ".repeat(200)]];
        for width in [60, 10] {
            let text = laid_out(&["server", "starts"], &rows, Some(width));
            assert_eq!(text.matches("word").count(), 200, "{text}");
            assert!(!text.contains('…'), "{text}");
        }
    }

    #[test]
    fn letters_of_two_columns_are_counted_as_two() {
        let rows = [vec!["日本語".to_owned(), "short text of a cell".to_owned()]];
        for width in [20, 30] {
            let text = laid_out(&["name", "text"], &rows, Some(width));
            assert!(text.contains("日本語"), "{text}");
            assert!(text.lines().all(|line| line.width() <= usize::from(width)), "{text}");
        }
        assert_eq!(fitting("a日本", 2), "a");
        assert_eq!(fitting("a日本", 3), "a日");
    }

    /// A row is as long as a few lines at most.
    #[test]
    fn a_very_long_cell_is_shortened() {
        let rows = [vec!["a".to_owned(), "word ".repeat(200)]];
        let text = laid_out(&["name", "text"], &rows, Some(60));
        assert_eq!(text.lines().count(), 1 + ROW_LINES, "{text}");
        assert!(text.ends_with('…'), "{text}");
    }
}
