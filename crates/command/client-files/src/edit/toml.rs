//! TOML: the statements of a text and the tree that they define.

mod splice;
pub(super) mod statement;
mod write;

use std::ops::Range;

use serde_json::{Number, Value};
use toml_parser::Source as Toml;
use toml_parser::decoder::Encoding;
use toml_parser::parser::{Event, EventKind, parse_document};

use super::fault::Fault;
use super::source::Parsed;
use super::tree::{Kind, Member, Node};

use statement::{Statement, StatementKind};

pub(super) use splice::{insert, remove, replace};

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Parsed, Fault> {
    // This parser knows all rules, and the events below have the places.
    text.parse::<toml::Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::new(at, error.message().trim().replace('\n', ", "))
    })?;
    let tokens: Vec<_> = Toml::new(text).lex().collect();
    let mut events: Vec<Event> = Vec::new();
    parse_document(&tokens, &mut events, &mut ());
    let comments = events.iter().filter(|event| event.kind() == EventKind::Comment);
    let comments = comments.map(|event| event.span().start()..event.span().end()).collect();
    events.retain(|event| {
        !matches!(event.kind(), EventKind::Whitespace | EventKind::Newline | EventKind::Comment)
    });
    let statements = Reader { text, events: &events, at: 0 }.statements()?;
    let root = tree(&statements);
    Ok(Parsed { root: Some(root), comments, statements })
}

/// Reads statements from events that are known to be correct.
struct Reader<'a> {
    text: &'a str,
    events: &'a [Event],
    at: usize,
}

impl Reader<'_> {
    fn statements(mut self) -> Result<Vec<Statement>, Fault> {
        let (mut statements, mut table, mut section) = (Vec::new(), Vec::new(), 0);
        while let Some(event) = self.events.get(self.at) {
            let start = event.span().start();
            let kind = match event.kind() {
                EventKind::StdTableOpen => Some(StatementKind::Table),
                EventKind::ArrayTableOpen => Some(StatementKind::Entry),
                _ => None,
            };
            if let Some(kind) = kind {
                self.at += 1;
                let keys = self.keys()?;
                table = keys.into_iter().map(|(key, _)| key).collect();
                section += 1;
                let span = start..self.next()?.span().end();
                statements.push(Statement { path: table.clone(), kind, section, span });
                continue;
            }
            let keys = self.keys()?;
            self.next()?;
            let value = self.value()?;
            let span = start..value.span.end;
            let keys = keys.into_iter().map(|(key, _)| key);
            let path = table.iter().cloned().chain(keys).collect();
            statements.push(Statement { path, kind: StatementKind::Value(value), section, span });
        }
        Ok(statements)
    }

    fn next(&mut self) -> Result<&Event, Fault> {
        let event = self.events.get(self.at);
        self.at += 1;
        event.ok_or_else(|| Fault::new(self.text.len(), "the text ends too early"))
    }

    /// Keys with dots between them, with their places.
    fn keys(&mut self) -> Result<Vec<(String, Range<usize>)>, Fault> {
        let mut keys = Vec::new();
        loop {
            let event = *self.next()?;
            let range = event.span().start()..event.span().end();
            let raw = &self.text[range.clone()];
            let is_quoted = event.encoding().is_some_and(|encoding| {
                matches!(encoding, Encoding::BasicString | Encoding::LiteralString)
            });
            let key = if is_quoted {
                match scalar(raw) {
                    Value::String(key) => key,
                    _ => raw.to_owned(),
                }
            } else {
                raw.to_owned()
            };
            keys.push((key, range));
            match self.events.get(self.at) {
                Some(event) if event.kind() == EventKind::KeySep => self.at += 1,
                Some(_) | None => return Ok(keys),
            }
        }
    }

    fn value(&mut self) -> Result<Node, Fault> {
        let event = *self.next()?;
        let start = event.span().start();
        match event.kind() {
            EventKind::ArrayOpen => {
                let mut items = Vec::new();
                while !self.closes(EventKind::ArrayClose)? {
                    items.push(self.value()?);
                }
                let end = self.next()?.span().end();
                Ok(Node::new(start..end, Kind::List(items)))
            }
            EventKind::InlineTableOpen => {
                let mut table = Node::new(start..start, Kind::Map(Vec::new()));
                while !self.closes(EventKind::InlineTableClose)? {
                    let keys = self.keys()?;
                    self.next()?;
                    let value = self.value()?;
                    define(&mut table, keys, value);
                }
                table.span.end = self.next()?.span().end();
                Ok(table)
            }
            _ => {
                let span = start..event.span().end();
                let value = scalar(&self.text[span.clone()]);
                Ok(Node::new(span, Kind::Scalar(value)))
            }
        }
    }

    /// True if the next event closes the brackets. Commas are skipped.
    fn closes(&mut self, kind: EventKind) -> Result<bool, Fault> {
        loop {
            match self.events.get(self.at).map(Event::kind) {
                Some(EventKind::ValueSep) => self.at += 1,
                Some(other) => return Ok(other == kind),
                None => return Err(Fault::new(self.text.len(), "a bracket is not closed")),
            }
        }
    }
}

fn scalar(raw: &str) -> Value {
    match raw.parse::<toml::Value>() {
        Ok(toml::Value::String(text)) => Value::from(text),
        Ok(toml::Value::Integer(number)) => Value::from(number),
        Ok(toml::Value::Boolean(boolean)) => Value::from(boolean),
        Ok(toml::Value::Float(number)) => {
            Number::from_f64(number).map_or_else(|| Value::from(raw), Value::Number)
        }
        // Dates have no JSON, and stay texts.
        Ok(toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_)) | Err(_) => {
            Value::from(raw)
        }
    }
}

/// The tree that statements define together.
fn tree(statements: &[Statement]) -> Node {
    let mut root = block_map(0..0);
    let mut table: &[String] = &[];
    for statement in statements {
        let place = |key: &String| (key.clone(), statement.span.clone());
        match &statement.kind {
            StatementKind::Table => {
                table = &statement.path;
                descend(&mut root, table.iter().map(place));
            }
            StatementKind::Entry => {
                table = &statement.path;
                let keys = table.iter().map(place).collect();
                add_entry(&mut root, keys, block_map(statement.span.clone()));
            }
            StatementKind::Value(value) => {
                let keys = statement.path[table.len()..].iter().map(place).collect();
                if let Some(table) = descend(&mut root, table.iter().map(place)) {
                    define(table, keys, value.clone());
                }
            }
        }
    }
    root
}

/// A table that headers or keys with dots make.
fn block_map(span: Range<usize>) -> Node {
    Node { is_flow: false, ..Node::new(span, Kind::Map(Vec::new())) }
}

/// Follows keys, creates missing tables, and takes the last entry of lists.
fn descend(
    root: &mut Node,
    keys: impl Iterator<Item = (String, Range<usize>)>,
) -> Option<&mut Node> {
    let mut node = root;
    for (key, span) in keys {
        let Kind::Map(members) = &mut node.kind else { return None };
        let index = members.iter().position(|member| member.key == key).unwrap_or(members.len());
        if index == members.len() {
            members.push(Member { key, key_span: span.clone(), value: block_map(span) });
        }
        node = &mut members[index].value;
        if matches!(node.kind, Kind::List(_)) {
            let Kind::List(items) = &mut node.kind else { return None };
            node = items.last_mut()?;
        }
    }
    Some(node)
}

/// Adds an entry to the list under keys.
fn add_entry(root: &mut Node, mut keys: Vec<(String, Range<usize>)>, entry: Node) {
    let Some((key, span)) = keys.pop() else { return };
    let Some(Kind::Map(members)) = descend(root, keys.into_iter()).map(|node| &mut node.kind)
    else {
        return;
    };
    let list = members.iter_mut().find(|member| member.key == key);
    match list.map(|member| &mut member.value.kind) {
        Some(Kind::List(items)) => items.push(entry),
        Some(_) => {}
        None => {
            let kind = Kind::List(vec![entry]);
            let value = Node { is_flow: false, ..Node::new(span.clone(), kind) };
            members.push(Member { key, key_span: span, value });
        }
    }
}

/// Puts a value under keys of a table.
fn define(table: &mut Node, mut keys: Vec<(String, Range<usize>)>, value: Node) {
    let Some((key, key_span)) = keys.pop() else { return };
    let table = descend(table, keys.into_iter());
    if let Some(Kind::Map(members)) = table.map(|table| &mut table.kind) {
        members.push(Member { key, key_span, value });
    }
}
