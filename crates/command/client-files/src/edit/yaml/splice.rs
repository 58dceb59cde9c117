//! Edits of YAML: whole lines of a block map or a block list.

use std::ops::Range;

use serde_json::Value;

use super::write::{Layout, entry_lines, flow, member_lines, value_after_key};
use crate::edit::fault::Fault;
use crate::edit::json;
use crate::edit::source::{New, Place, Removal, Source};
use crate::edit::text::{self, Splice};
use crate::edit::tree::{Kind, Member, Node};

/// Spaces of an indentation in a text that shows none.
const UNIT: usize = 2;

/// Inserts lines at the end of a block map or list, or below a key without a value.
pub(in super::super) fn insert(
    source: &Source<'_>,
    place: &Place<'_>,
    new: &New<'_>,
) -> Result<Vec<Splice>, Fault> {
    let editor = Editor::new(source);
    let Some(container) = place.walk.node else { return Ok(vec![editor.insert_root(new)]) };
    if container.is_empty() || container.is_null() {
        return editor.insert_first(place, container, new);
    }
    if container.is_flow {
        let value = flow(new.value);
        let item = new.key.map_or(value.clone(), |key| format!("{}: {value}", flow(&key.into())));
        return Ok(json::insert_flow(source, container, new.raw.unwrap_or(&item)));
    }
    let spans = editor.items(container)?;
    let Some(last) = spans.last() else { return Err(Fault::new(0, "the parent is empty")) };
    let indent = editor.column(last.start);
    // Comments below belong to the last item if they are indented at least as much.
    let is_list = matches!(container.kind, Kind::List(_));
    let least = if is_list { indent + 1 } else { indent };
    Ok(vec![editor.add_lines(editor.below(last.end, least), &editor.lines(new, indent))])
}

/// Removes the lines of an item. An emptied parent keeps its kind as `{}` or `[]`.
pub(in super::super) fn remove(
    source: &Source<'_>,
    place: &Place<'_>,
    index: usize,
) -> Result<Removal, Fault> {
    let Some(container) = place.walk.node else { return Err(Fault::new(0, "the file is empty")) };
    if container.is_flow {
        return Ok(json::remove_flow(source, container, index));
    }
    let (editor, text) = (Editor::new(source), source.text);
    let spans = editor.items(container)?;
    let start = text::line_start(text, spans[index].start);
    let last = text::line_end(text, spans[index].end);
    let raw = text[start..last].to_owned();
    let end = text::next_line(text, last);
    let is_last_line = end == text.len() && !text.ends_with('\n');
    let from = if is_last_line { text::previous_end(text, start) } else { start };
    let mut splices = Vec::new();
    if spans.len() == 1
        && let Some(member) = place.walk.member
    {
        let empty = if matches!(container.kind, Kind::Map(_)) { " {}" } else { " []" };
        splices.push(Splice::insert(editor.after_colon(member)?, empty));
    }
    splices.push(Splice::delete(text, from..end));
    Ok(Removal { ways: vec![splices], raw })
}

/// Replaces the value of an item. A single value leaves the rest of its line.
pub(in super::super) fn replace(
    source: &Source<'_>,
    place: &Place<'_>,
    index: usize,
    value: &Value,
) -> Result<Vec<Splice>, Fault> {
    let Some(container) = place.walk.node else { return Err(Fault::new(0, "the file is empty")) };
    let (editor, text) = (Editor::new(source), source.text);
    if container.is_flow {
        let spans = container.item_spans();
        let old = container.members().get(index).map_or(&spans[index], |old| &old.value.span);
        return Ok(vec![Splice::swap(text, old.clone(), flow(value))]);
    }
    let spans = editor.items(container)?;
    let indent = editor.column(spans[index].start);
    let end = text::line_end(text, spans[index].end);
    let Some(member) = container.members().get(index) else {
        let start = text::line_start(text, spans[index].start);
        let lines = entry_lines(value, indent, editor.layout);
        return Ok(vec![Splice::swap(text, start..end, lines)]);
    };
    editor.refuse_marks(&member.value)?;
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    let old = &member.value;
    if is_scalar(value) && old.is_flow && !old.span.is_empty() {
        return Ok(vec![Splice::swap(text, old.span.clone(), flow(value))]);
    }
    let colon = editor.after_colon(member)?;
    Ok(vec![Splice::swap(text, colon..end, value_after_key(value, indent, editor.layout))])
}

struct Editor<'a> {
    source: &'a Source<'a>,
    text: &'a str,
    layout: Layout<'a>,
}

impl<'a> Editor<'a> {
    fn new(source: &'a Source<'a>) -> Self {
        let text = source.text;
        let mut found = Found::default();
        if let Some(root) = &source.parsed.root {
            found.look(text, root);
        }
        let unit = found.unit.unwrap_or(UNIT);
        let dash = found.dash.unwrap_or(unit);
        Self { source, text, layout: Layout { newline: source.newline, unit, dash } }
    }

    /// Number of characters before a place in its line.
    fn column(&self, at: usize) -> usize {
        column(self.text, at)
    }

    fn lines(&self, new: &New<'_>, indent: usize) -> String {
        let raw = new.raw.filter(|raw| raw.len() - raw.trim_start_matches(' ').len() == indent);
        match (raw, new.key) {
            (Some(raw), _) => raw.to_owned(),
            (None, Some(key)) => member_lines(key, new.value, indent, self.layout),
            (None, None) => entry_lines(new.value, indent, self.layout),
        }
    }

    /// Places of the items, from their key or dash. Each must begin its line, so that lines can be
    /// moved.
    fn items(&self, container: &Node) -> Result<Vec<Range<usize>>, Fault> {
        let is_list = matches!(container.kind, Kind::List(_));
        let mut spans = container.item_spans();
        for span in &mut spans {
            if is_list {
                let line = text::line_start(self.text, span.start);
                let before = self.text[line..span.start].trim_end_matches(' ');
                let dash = before.strip_suffix('-').map(|before| line + before.len());
                let reason = "the entry does not begin on the line of its dash";
                span.start = dash.ok_or_else(|| Fault::new(span.start, reason))?;
            }
            let is_first = self.text[text::line_start(self.text, span.start)..span.start]
                .chars()
                .all(|c| c == ' ');
            if !is_first {
                let reason = "the entry does not begin its line";
                return Err(Fault::new(span.start, reason));
            }
        }
        Ok(spans)
    }

    fn refuse_marks(&self, node: &Node) -> Result<(), Fault> {
        if node.is_marked {
            let reason = "the value has an anchor or a tag, which an edit would lose";
            return Err(Fault::new(node.span.start, reason));
        }
        Ok(())
    }

    /// The place after the colon of a key.
    fn after_colon(&self, member: &Member) -> Result<usize, Fault> {
        let end = member.key_span.end;
        let rest = &self.text[end..];
        let colon = rest.trim_start_matches([' ', '\t']);
        match colon.starts_with(':') {
            true => Ok(end + rest.len() - colon.len() + 1),
            false => Err(Fault::new(end, "no colon follows the key on its line")),
        }
    }

    /// Start of the line below a place, after comments that directly follow with at least this
    /// indentation.
    fn below(&self, at: usize, least: usize) -> usize {
        let mut next = text::next_line(self.text, at);
        for comment in self.source.comments_in(next..self.text.len()) {
            let is_own_line = text::line_start(self.text, comment.start) == next
                && text::starts_line(self.text, comment.start);
            if !is_own_line || self.column(comment.start) < least {
                break;
            }
            next = text::next_line(self.text, comment.end);
        }
        next
    }

    /// Lines at the start of a line, or after the last one.
    fn add_lines(&self, at: usize, lines: &str) -> Splice {
        let newline = self.layout.newline;
        if at == self.text.len() && !self.text.is_empty() && !self.text.ends_with('\n') {
            return Splice::insert(at, format!("{newline}{lines}"));
        }
        Splice::insert(at, format!("{lines}{newline}"))
    }

    /// The first value of a text.
    fn insert_root(&self, new: &New<'_>) -> Splice {
        // An end marker `...` must stay below.
        let end = self.text.trim_end();
        let at = match end.strip_suffix("...") {
            Some(before) if before.is_empty() || before.ends_with('\n') => before.len(),
            Some(_) | None => self.text.len(),
        };
        self.add_lines(at, &self.lines(new, 0))
    }

    /// The first item of a parent without a value, or with `{}` or `[]`.
    fn insert_first(
        &self,
        place: &Place<'_>,
        container: &Node,
        new: &New<'_>,
    ) -> Result<Vec<Splice>, Fault> {
        self.refuse_marks(container)?;
        let span = &container.span;
        if self.source.comments_in(span.clone()).next().is_some() {
            return Err(Fault::new(span.start, "the empty brackets have a comment in them"));
        }
        let Some(member) = place.walk.member else {
            return Ok(vec![Splice::swap(self.text, span.clone(), self.lines(new, 0))]);
        };
        let outer = self.column(member.key_span.start);
        if !text::starts_line(self.text, member.key_span.start) {
            return Err(Fault::new(member.key_span.start, "the key does not begin its line"));
        }
        let step = if new.key.is_some() { self.layout.unit } else { self.layout.dash };
        let lines = self.lines(new, outer + step);
        let mut splices = Vec::new();
        if !span.is_empty() {
            let colon = self.after_colon(member)?;
            splices.push(Splice::delete(self.text, colon..span.end));
        }
        let at = self.below(span.end.max(member.key_span.end), outer + 1);
        splices.push(self.add_lines(at, &lines));
        Ok(splices)
    }
}

/// Indentations that the text shows.
#[derive(Default)]
struct Found {
    unit: Option<usize>,
    dash: Option<usize>,
}

impl Found {
    fn look(&mut self, text: &str, node: &Node) {
        if let Kind::List(items) = &node.kind {
            items.iter().for_each(|item| self.look(text, item));
        }
        for member in node.members() {
            self.measure(text, member);
            self.look(text, &member.value);
        }
    }

    fn measure(&mut self, text: &str, member: &Member) {
        let (outer, value) = (column(text, member.key_span.start), &member.value);
        let Some(first) = value.item_spans().into_iter().next().filter(|_| !value.is_flow) else {
            return;
        };
        if matches!(value.kind, Kind::Map(_)) {
            let inner = column(text, first.start);
            self.unit = self.unit.or(inner.checked_sub(outer).filter(|unit| *unit > 0));
        } else {
            let inner = text::line_indent(text, first.start).len();
            self.dash = self.dash.or(inner.checked_sub(outer));
        }
    }
}

fn column(text: &str, at: usize) -> usize {
    text[text::line_start(text, at)..at].chars().count()
}
