//! Edits of TOML: tables with a header, entries of lists, keys with a value, and inline tables.

use std::ops::Range;

use serde_json::{Map, Value};

use super::statement::{Statement, StatementKind};
use super::write::{member_text, path_text, table_text, value_text};
use crate::edit::fault::Fault;
use crate::edit::json;
use crate::edit::source::{New, Place, Removal, Source};
use crate::edit::text::{self, Splice};
use crate::edit::tree::{Kind, Node, walk};

/// Inserts a table or an entry below the last one of its parent, or a key below the last key.
pub(in super::super) fn insert(
    source: &Source<'_>,
    place: &Place<'_>,
    new: &New<'_>,
) -> Result<Vec<Splice>, Fault> {
    let editor = Editor::new(source);
    if let Some(container) = editor.inline(place.path) {
        let item = match new.key {
            Some(key) => member_text(key, new.value),
            None => value_text(new.value),
        };
        let item = item.map_err(|reason| Fault::new(0, reason))?;
        return Ok(json::insert_flow(source, container, new.raw.unwrap_or(&item)));
    }
    let form = Form::of(place.path, new);
    let body = match new.raw {
        Some(raw) => raw.to_owned(),
        None => form.text(source.newline).map_err(|reason| Fault::new(0, reason))?,
    };
    Ok(vec![match form {
        Form::Table { .. } | Form::Entry { .. } => {
            let at = editor.end_of_family(place.path);
            editor.add_table(at, &body)
        }
        Form::Key { .. } => editor.insert_key(place.path, &body),
    }])
}

/// Removes all statements of an item, with the empty line above each header. The last way leaves
/// what stands between the tables of the item.
pub(in super::super) fn remove(
    source: &Source<'_>,
    place: &Place<'_>,
    index: usize,
) -> Result<Removal, Fault> {
    let editor = Editor::new(source);
    if let Some(container) = editor.inline(place.path) {
        return Ok(json::remove_flow(source, container, index));
    }
    let text = source.text;
    let runs = editor.runs(place, index)?;
    let raw: String = runs.iter().map(|run| &text[run.lines.clone()]).collect();
    let raw = raw.trim_end_matches(['\r', '\n']).to_owned();
    let thorough = runs.iter().map(|run| Splice::delete(text, editor.with_gap(run))).collect();
    let careful = runs.iter().map(|run| Splice::delete(text, run.lines.clone())).collect();
    let mut end = 0;
    let tables = editor.tables(place, index)?;
    let by_table = tables.iter().map(|table| {
        let gap = editor.with_gap(table);
        // Two tables have one empty line between them.
        let range = gap.start.max(end)..gap.end;
        end = range.end;
        Splice::delete(text, range)
    });
    let by_table = by_table.collect();
    Ok(Removal { ways: vec![thorough, careful, by_table], raw })
}

/// Replaces the value of an item: the lines of a table, or the text after `=`.
pub(in super::super) fn replace(
    source: &Source<'_>,
    place: &Place<'_>,
    index: usize,
    value: &Value,
) -> Result<Vec<Splice>, Fault> {
    let (editor, text) = (Editor::new(source), source.text);
    let no_value = |reason| Fault::new(0, reason);
    if let Some(container) = editor.inline(place.path) {
        let spans = container.item_spans();
        let member = container.members().get(index);
        let old = member.map_or(&spans[index], |member| &member.value.span);
        let new = value_text(value).map_err(no_value)?;
        return Ok(vec![Splice::swap(text, old.clone(), new)]);
    }
    let runs = editor.runs(place, index)?;
    let key = place.walk.node.and_then(|node| node.members().get(index)).map(|item| &item.key);
    if let [Run { value: Some(old), .. }] = runs.as_slice() {
        let new = value_text(value).map_err(no_value)?;
        return Ok(vec![Splice::swap(text, old.clone(), new)]);
    }
    let new = New { key: key.map(String::as_str), value, raw: None };
    let body = Form::of(place.path, &new).text(source.newline).map_err(no_value)?;
    let mut splices = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let end = run.lines.start + text[run.lines.clone()].trim_end_matches(['\r', '\n']).len();
        splices.push(match at {
            0 => Splice::swap(text, run.lines.start..end, body.as_str()),
            _ => Splice::delete(text, editor.with_gap(run)),
        });
    }
    Ok(splices)
}

/// The way in which a new value is written.
enum Form<'a> {
    /// `[path]` with lines.
    Table { path: Vec<String>, map: &'a Map<String, Value> },
    /// `[[path]]` with lines.
    Entry { path: Vec<String>, map: &'a Map<String, Value> },
    /// `key = value` in the parent.
    Key { key: &'a str, value: &'a Value },
}

impl<'a> Form<'a> {
    fn of(parent: &[String], new: &New<'a>) -> Self {
        let mut path = parent.to_vec();
        let Some(mut key) = new.key else {
            let map = new.value.as_object();
            return match map {
                Some(map) => Self::Entry { path, map },
                None => Self::Key { key: "", value: new.value },
            };
        };
        let mut value = new.value;
        loop {
            let own = value.as_object();
            let only = own.filter(|map| map.len() == 1).and_then(|map| map.iter().next());
            let items = value.as_array().filter(|items| items.len() == 1);
            if let Some(map) = items.and_then(|items| items[0].as_object()) {
                path.push(key.to_owned());
                return Self::Entry { path, map };
            }
            match (own, only) {
                // A table that has only a table needs no header of its own.
                (_, Some((next, inner))) if has_header(inner) => {
                    path.push(key.to_owned());
                    (key, value) = (next, inner);
                }
                (Some(map), _) => {
                    path.push(key.to_owned());
                    return Self::Table { path, map };
                }
                (None, _) => return Self::Key { key, value },
            }
        }
    }

    fn text(&self, newline: &str) -> Result<String, &'static str> {
        match self {
            Self::Table { path, map } => {
                table_text(&format!("[{}]", path_text(path)), map, newline)
            }
            Self::Entry { path, map } => {
                table_text(&format!("[[{}]]", path_text(path)), map, newline)
            }
            Self::Key { key, value } => member_text(key, value),
        }
    }
}

/// True for a value that stands under a header of its own.
fn has_header(value: &Value) -> bool {
    let is_table = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    match value {
        Value::Array(items) => items.len() == 1 && is_table(&items[0]),
        value => is_table(value),
    }
}

/// Lines of statements that follow each other.
struct Run {
    lines: Range<usize>,
    has_header: bool,
    /// Place of the value, if the run is one key with a value and no more.
    value: Option<Range<usize>>,
}

struct Editor<'a> {
    source: &'a Source<'a>,
    text: &'a str,
    statements: &'a [Statement],
}

impl<'a> Editor<'a> {
    fn new(source: &'a Source<'a>) -> Self {
        Self { source, text: source.text, statements: &source.parsed.statements }
    }

    /// The value at a path, if it is written in brackets.
    fn inline(&self, path: &[String]) -> Option<&'a Node> {
        self.statements.iter().find_map(|statement| {
            let StatementKind::Value(value) = &statement.kind else { return None };
            let rest = path.strip_prefix(statement.path.as_slice())?;
            let found = walk(Some(value), rest);
            let node = found.node.filter(|_| found.depth == rest.len())?;
            matches!(node.kind, Kind::Map(_) | Kind::List(_)).then_some(node)
        })
    }

    /// The statements of an item, as runs of lines.
    fn runs(&self, place: &Place<'_>, index: usize) -> Result<Vec<Run>, Fault> {
        self.runs_up_to(place, index, |_statement| false)
    }

    /// The statements of an item, as one run of lines for each of its tables.
    fn tables(&self, place: &Place<'_>, index: usize) -> Result<Vec<Run>, Fault> {
        self.runs_up_to(place, index, Statement::is_header)
    }

    /// The statements of an item, as runs of lines. Some statements begin a new run.
    fn runs_up_to(
        &self,
        place: &Place<'_>,
        index: usize,
        begins: fn(&Statement) -> bool,
    ) -> Result<Vec<Run>, Fault> {
        let Some(container) = place.walk.node else { return Err(Fault::new(0, "no such table")) };
        let (mut path, mut part) = (place.path.to_vec(), 0..self.statements.len());
        if let Some(member) = container.members().get(index) {
            path.push(member.key.clone());
        } else {
            let is_entry = |statement: &Statement| {
                matches!(statement.kind, StatementKind::Entry) && statement.path == path
            };
            let entries: Vec<_> =
                (0..part.end).filter(|at| is_entry(&self.statements[*at])).collect();
            let start = entries.get(index).copied();
            part.start = start.ok_or_else(|| Fault::new(0, "no such entry"))?;
            part.end = entries.get(index + 1).copied().unwrap_or(part.end);
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut last = None;
        for at in part.filter(|at| self.statements[*at].path.starts_with(&path)) {
            let statement = &self.statements[at];
            let is_behind = at.checked_sub(1).is_some_and(|before| last == Some(before));
            let is_next = is_behind && !begins(statement);
            let lines = text::line_start(self.text, statement.span.start)
                ..text::next_line(self.text, statement.span.end);
            match runs.last_mut().filter(|_| is_next) {
                Some(run) => {
                    run.lines.end = lines.end;
                    run.value = None;
                }
                None => {
                    let value = match &statement.kind {
                        StatementKind::Value(value) if statement.path == path => {
                            Some(value.span.clone())
                        }
                        _ => None,
                    };
                    let has_header = statement.is_header();
                    runs.push(Run { lines, has_header, value });
                }
            }
            last = Some(at);
        }
        Ok(runs)
    }

    /// The lines of a run with the empty line above its header, or below it at the start of the
    /// text. At the end of a text without a last line end, with the line end above.
    fn with_gap(&self, run: &Run) -> Range<usize> {
        let mut start = run.lines.start;
        let above = text::previous_end(self.text, start);
        if run.has_header && above < start && text::line_start(self.text, above) == above {
            start = above;
        }
        let mut end = run.lines.end;
        if end == self.text.len() && !self.text.ends_with('\n') {
            start = text::previous_end(self.text, start);
        }
        // At the start of the text, the empty line is below.
        if start == 0 && text::line_end(self.text, end) == end {
            end = text::next_line(self.text, end);
        }
        start..end
    }

    /// The place below the last section of a table and of the tables in it; the end of the text if
    /// there is none.
    fn end_of_family(&self, path: &[String]) -> usize {
        let last = self.statements.iter().rev().find(|item| item.path.starts_with(path));
        let whole = self.statements.last();
        let section = last.or(whole).map_or(0, |statement| statement.section);
        let end = self.end_of_section(section);
        if whole.is_none_or(|whole| whole.section == section) {
            let comment = self.source.parsed.comments.last().map_or(0, |comment| comment.end);
            return text::next_line(self.text, end.max(comment));
        }
        self.below(end)
    }

    fn end_of_section(&self, section: usize) -> usize {
        let mut own = self.statements.iter().rev();
        own.find(|item| item.section == section).map_or(0, |item| item.span.end)
    }

    /// The line below a place, after comments that directly follow and have an empty line below.
    fn below(&self, end: usize) -> usize {
        let first = text::next_line(self.text, end);
        let mut next = first;
        for comment in self.source.comments_in(first..self.text.len()) {
            if text::line_start(self.text, comment.start) != next {
                break;
            }
            next = text::next_line(self.text, comment.end);
        }
        let is_free = text::is_blank(&self.text[next..text::line_end(self.text, next)]);
        if is_free { next } else { first }
    }

    fn add_table(&self, at: usize, body: &str) -> Splice {
        let newline = self.source.newline;
        if at == 0 {
            return Splice::insert(at, format!("{body}{newline}"));
        }
        if self.text[..at].ends_with('\n') {
            return Splice::insert(at, format!("{newline}{body}{newline}"));
        }
        Splice::insert(at, format!("{newline}{newline}{body}"))
    }

    /// A key in the section of a table: below its last key, or in a new section.
    fn insert_key(&self, path: &[String], body: &str) -> Splice {
        let newline = self.source.newline;
        let header = self.statements.iter().find(|statement| {
            matches!(statement.kind, StatementKind::Table) && statement.path == path
        });
        let section = match header {
            Some(header) => header.section,
            None if path.is_empty() => 0,
            None => {
                let body = format!("[{}]{newline}{body}", path_text(path));
                return self.add_table(self.end_of_family(&[]), &body);
            }
        };
        let has_any = self.statements.iter().any(|statement| statement.section == section);
        let at = match has_any {
            true => text::next_line(self.text, self.end_of_section(section)),
            // The first line, or the end of a text that has comments alone.
            false if self.statements.is_empty() => self.text.len(),
            false => 0,
        };
        if at == 0 || self.text[..at].ends_with('\n') {
            return Splice::insert(at, format!("{body}{newline}"));
        }
        Splice::insert(at, format!("{newline}{body}"))
    }
}
