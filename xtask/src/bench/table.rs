//! Tables as Markdown, with columns that also line up in a terminal.

use std::fmt::Write as _;

/// The first row is the heading. Numbers are aligned to the right if the heading ends with a colon,
/// which is left out.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let is_right: Vec<bool> =
        rows.first().into_iter().flatten().map(|h| h.ends_with(':')).collect();
    let cell = |row: usize, column: usize| {
        let text = rows[row].get(column).map_or("", String::as_str);
        if row == 0 { text.trim_end_matches(':') } else { text }
    };
    let width = |column| (0..rows.len()).map(|row| cell(row, column).chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in 0..rows.len() {
        for (column, width) in widths.iter().enumerate() {
            let text = cell(row, column);
            let padded = if is_right[column] {
                format!("{text:>width$}")
            } else {
                format!("{text:<width$}")
            };
            write!(out, "| {padded} ").expect("a string takes all writes");
        }
        out.push_str("|\n");
        if row == 0 {
            for (width, is_right) in widths.iter().zip(&is_right) {
                let line = "-".repeat(width + 1);
                let end = if *is_right { ":" } else { "-" };
                write!(out, "|{line}{end}").expect("a string takes all writes");
            }
            out.push_str("|\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_line_up() {
        let row = |one: &str, two: &str| vec![one.to_owned(), two.to_owned()];
        let text = table(&[row("what", "µs:"), row("a", "100")]);
        assert_eq!(text, "| what |  µs |\n|------|----:|\n| a    | 100 |\n");
    }
}
