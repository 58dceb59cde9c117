//! Edits of JSON: a member of an object, an entry of a list.

use std::ops::Range;

use serde_json::Value;

use super::write::{Layout, member_text, value_text};
use crate::edit::fault::Fault;
use crate::edit::source::{New, Place, Removal, Source};
use crate::edit::text::{self, Splice};
use crate::edit::tree::Node;

/// The indentation of a text that shows none.
const UNIT: &str = "  ";

/// Inserts at the end of the map or list, in the way in which the text is written.
pub(in super::super) fn insert(
    source: &Source<'_>,
    place: &Place<'_>,
    new: &New<'_>,
) -> Result<Vec<Splice>, Fault> {
    let editor = Editor::new(source);
    let Some(container) = place.walk.node else { return Ok(vec![editor.insert_root(new)]) };
    Ok(match container.item_spans().pop() {
        Some(last) => editor.insert_after(container, &last, new),
        None => vec![editor.insert_first(container, new)],
    })
}

/// Inserts an item, given as text, into brackets of another format, without new lines if the
/// brackets are empty.
pub(in super::super) fn insert_flow(
    source: &Source<'_>,
    container: &Node,
    item: &str,
) -> Vec<Splice> {
    let editor = Editor::flow(source);
    let new = New { key: None, value: &Value::Null, raw: Some(item) };
    match container.item_spans().pop() {
        Some(last) => editor.insert_after(container, &last, &new),
        None => vec![editor.insert_first(container, &new)],
    }
}

/// Removes the item with its comma, and with its line if nothing else stands there.
pub(in super::super) fn remove(
    source: &Source<'_>,
    place: &Place<'_>,
    index: usize,
) -> Result<Removal, Fault> {
    let Some(container) = place.walk.node else { return Err(Fault::new(0, "the file is empty")) };
    Ok(Editor::new(source).remove(container, index))
}

/// Removes the item of brackets of any format.
pub(in super::super) fn remove_flow(
    source: &Source<'_>,
    container: &Node,
    index: usize,
) -> Removal {
    Editor::flow(source).remove(container, index)
}

/// Replaces the value of an item, and leaves its key.
pub(in super::super) fn replace(
    source: &Source<'_>,
    place: &Place<'_>,
    index: usize,
    value: &Value,
) -> Result<Vec<Splice>, Fault> {
    let Some(container) = place.walk.node else { return Err(Fault::new(0, "the file is empty")) };
    let editor = Editor::new(source);
    let item = container.item_spans()[index].clone();
    let old = match container.members().get(index) {
        Some(member) => member.value.span.clone(),
        None => item.clone(),
    };
    let layout = editor.layout(text::starts_line(source.text, item.start));
    let indent = text::line_indent(source.text, item.start);
    let new = value_text(value, layout, indent);
    Ok(vec![Splice::swap(source.text, old, new)])
}

struct Editor<'a> {
    source: &'a Source<'a>,
    text: &'a str,
    /// One step of indentation.
    unit: &'a str,
    /// True if the whole value stands on one line.
    is_compact: bool,
    /// True if spaces follow colons and commas on one line.
    is_spaced: bool,
}

impl<'a> Editor<'a> {
    fn new(source: &'a Source<'a>) -> Self {
        let text = source.text;
        let root = source.parsed.root.as_ref();
        let first = root.and_then(|root| root.item_spans().into_iter().next());
        let indented = first.clone().filter(|first| text::starts_line(text, first.start));
        let unit = indented.map_or("", |first| text::line_indent(text, first.start));
        let is_compact =
            first.is_some() && root.is_some_and(|root| !text[root.span.clone()].contains('\n'));
        let member = root.and_then(|root| root.members().first());
        let is_tight = member.is_some_and(|member| {
            text[member.key_span.end..member.value.span.start].trim_start() == ":"
        });
        let is_spaced = !(is_compact && is_tight);
        let unit = if unit.is_empty() { UNIT } else { unit };
        Self { source, text, unit, is_compact, is_spaced }
    }

    /// The editor of brackets in a text of another format.
    fn flow(source: &'a Source<'a>) -> Self {
        let text = source.text;
        Self { source, text, unit: UNIT, is_compact: true, is_spaced: true }
    }

    fn remove(&self, container: &Node, index: usize) -> Removal {
        let items = container.item_spans();
        let raw = self.text[items[index].clone()].to_owned();
        let ways =
            vec![self.remove_whole(container, &items, index), self.remove_item(&items, index)];
        Removal { ways, raw }
    }

    fn layout(&self, has_lines: bool) -> Layout<'a> {
        if has_lines {
            Layout::Lines { newline: self.source.newline, unit: self.unit }
        } else {
            Layout::Inline { is_spaced: self.is_spaced }
        }
    }

    fn item(&self, new: &New<'_>, layout: Layout<'_>, indent: &str) -> String {
        match (new.raw, new.key) {
            (Some(raw), _) => raw.to_owned(),
            (None, Some(key)) => member_text(key, new.value, layout, indent),
            (None, None) => value_text(new.value, layout, indent),
        }
    }

    /// The value of a text that has none.
    fn insert_root(&self, new: &New<'_>) -> Splice {
        let newline = self.source.newline;
        let lead = match self.text.is_empty() || self.text.ends_with('\n') {
            true => "",
            false => newline,
        };
        let item = self.item(new, self.layout(true), self.unit);
        let unit = self.unit;
        let whole = format!("{lead}{{{newline}{unit}{item}{newline}}}{newline}");
        Splice::insert(self.text.len(), whole)
    }

    fn insert_first(&self, container: &Node, new: &New<'_>) -> Splice {
        let (open, close) = (container.span.start + 1, container.span.end - 1);
        let comments = self.source.comments_in(open..close);
        let at = comments.last().map_or(open, |comment| comment.end);
        let outer = text::line_indent(self.text, container.span.start);
        let (indent, newline) = (format!("{outer}{}", self.unit), self.source.newline);
        if self.text[at..close].contains('\n') {
            let item = self.item(new, self.layout(true), &indent);
            Splice::insert(at, format!("{newline}{indent}{item}"))
        } else if self.is_compact && at == open {
            Splice::insert(close, self.item(new, self.layout(false), ""))
        } else {
            let item = self.item(new, self.layout(true), &indent);
            Splice::insert(close, format!("{newline}{indent}{item}{newline}{outer}"))
        }
    }

    fn insert_after(&self, container: &Node, last: &Range<usize>, new: &New<'_>) -> Vec<Splice> {
        let close = container.span.end - 1;
        let comma = self.comma_after(last.end);
        let tail = comma.map_or(last.end, |comma| comma + 1);
        let comments = self.source.comments_in(tail..close);
        let at = comments.last().map_or(tail, |comment| comment.end);
        let own_line = text::starts_line(self.text, last.start);
        let has_lines = own_line || self.text[last.end..close].contains('\n');
        let layout = self.layout(has_lines);
        let mut added = if has_lines {
            let outer = text::line_indent(self.text, last.start);
            let indent = if own_line { outer.to_owned() } else { format!("{outer}{}", self.unit) };
            let item = self.item(new, layout, &indent);
            format!("{}{indent}{item}", self.source.newline)
        } else {
            let gap = if self.is_spaced { " " } else { "" };
            format!("{gap}{}", self.item(new, layout, ""))
        };
        if comma.is_some() {
            added.push(',');
            return vec![Splice::insert(at, added)];
        }
        if at == tail {
            return vec![Splice::insert(at, format!(",{added}"))];
        }
        vec![Splice::insert(tail, ","), Splice::insert(at, added)]
    }

    /// Deletes an item, its comma, the spaces and the line end before it.
    fn remove_whole(&self, container: &Node, items: &[Range<usize>], index: usize) -> Vec<Splice> {
        let (item, text) = (&items[index], self.text);
        let (open, close) = (container.span.start + 1, container.span.end - 1);
        let own_comma = self.comma_after(item.end);
        let to = own_comma.filter(|comma| text::is_space(&text[item.end..*comma]));
        let to = to.map_or(item.end, |comma| comma + 1);
        let next = items.get(index + 1);
        let line_rest = text::line_end(text, to).min(close);
        let is_line_free =
            text::is_blank(&text[to..line_rest]) && (next.is_none() || line_rest < close);
        let mut range = if text::starts_line(text, item.start) && is_line_free {
            let from = text::previous_end(text, text::line_start(text, item.start)).max(open);
            let to = if line_rest < close { line_rest } else { to };
            from..if items.len() == 1 { self.end_of_only(container, from, to) } else { to }
        } else if let Some(next) = next {
            let is_free = text::is_space(&text[to..next.start]);
            item.start..if is_free { next.start } else { to }
        } else if let Some(comma) = own_comma.filter(|_| index > 0) {
            let before = self.comma_after(items[index - 1].end).map_or(item.start, |at| at + 1);
            let is_free = text::is_space(&text[before..item.start]);
            (if is_free { before } else { item.start })..(if comma < to { to } else { item.end })
        } else {
            item.start..to
        };
        let mut splices = Vec::new();
        if let Some(comma) = self.lost_comma(items, index) {
            if text::is_space(&text[comma + 1..range.start.max(comma + 1)]) {
                range.start = comma;
            } else {
                splices.push(Splice::delete(text, comma..comma + 1));
            }
        }
        let end = range.end;
        splices.push(Splice::delete(text, range));
        splices.extend(self.far_comma(own_comma, end));
        splices
    }

    /// Deletes an item and its comma, and leaves all spaces.
    fn remove_item(&self, items: &[Range<usize>], index: usize) -> Vec<Splice> {
        let item = items[index].clone();
        let mut splices = Vec::new();
        if let Some(comma) = self.lost_comma(items, index) {
            splices.push(Splice::delete(self.text, comma..comma + 1));
        }
        let end = item.end;
        splices.push(Splice::delete(self.text, item));
        splices.extend(self.far_comma(self.comma_after(end), end));
        splices
    }

    /// The comma of a removed item, if it lies after the deleted part.
    fn far_comma(&self, comma: Option<usize>, end: usize) -> Option<Splice> {
        let comma = comma.filter(|comma| *comma >= end)?;
        Some(Splice::delete(self.text, comma..comma + 1))
    }

    /// The comma before a removed last item that has none of its own.
    fn lost_comma(&self, items: &[Range<usize>], index: usize) -> Option<usize> {
        let is_last = index + 1 == items.len() && self.comma_after(items[index].end).is_none();
        if is_last && index > 0 { self.comma_after(items[index - 1].end) } else { None }
    }

    /// The end of what is deleted with the only item: up to the bracket if only the line of the
    /// bracket is left, as an insertion into brackets on one line made it.
    fn end_of_only(&self, container: &Node, from: usize, to: usize) -> usize {
        let (open, close) = (container.span.start + 1, container.span.end - 1);
        let outer = text::line_indent(self.text, container.span.start);
        let is_made = self.text[to..close] == format!("{}{outer}", self.source.newline);
        // Below a comment, the line of the bracket was there before, unless a space follows it.
        let comment = self.source.comments_in(open..from).last();
        let is_one_line = comment.is_none_or(|comment| comment.end < from);
        if is_made && is_one_line { close } else { to }
    }

    fn comma_after(&self, end: usize) -> Option<usize> {
        self.source.comma_after(end)
    }
}
