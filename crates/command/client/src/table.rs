//! Tables for people, as wide as their terminal.

use std::process::ExitCode;

pub use crate::terminal::{Rows, render, render_fitting, row_fitting};
use narthex_model::command::CommandLine;
use serde_json::{Value, json};

use crate::{
    Context, Failure,
    output::{self, harmless},
};

/// Prints a list in the requested format: a table, `{"items": …}`, or only the first cells.
pub fn list(
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
    } else {
        output::line(&render(header, &rows, none))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The sentence for an empty table, with the command that adds the first row.
pub fn none_yet(plural: &str, add: &CommandLine) -> String {
    format!("There are no {plural} yet; add one with `{add}`.")
}

/// A text member of an answer, without characters that move a cursor; empty if it is no text.
pub fn text(value: &Value, member: &str) -> String {
    harmless(value[member].as_str().unwrap_or_default())
}

/// As [`text`], and `-` if the member is no text.
pub fn or_none(value: &Value, member: &str) -> String {
    value[member].as_str().map_or_else(|| "-".to_owned(), harmless)
}
