//! YAML: the tree of a text with one document.

mod scalar;
mod splice;
mod write;

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle, Tag, options};
use serde_json::Value;

use super::fault::Fault;
use super::source::Parsed;
use super::text;
use super::tree::{Kind, Member, Node};

pub(super) use splice::{insert, remove, replace};

/// Maximum number of comments that the parser stores before it knows what follows them.
const COMMENTS_MAX: usize = 1 << 20;

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Parsed, Fault> {
    let options = options! { emit_anchor_events: true, max_buffered_comment_events: COMMENTS_MAX };
    let mut builder = Builder { text, ..Builder::default() };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| {
            let at = error.marker().byte_offset().unwrap_or(text.len());
            Fault::new(at, error.kind().to_string())
        })?;
        builder.take(event, &span)?;
    }
    let Builder { root, comments, .. } = builder;
    // A text with `---` alone has an empty value, which counts as none.
    let root = root.filter(|root| !root.is_null() || root.is_marked || !root.span.is_empty());
    Ok(Parsed { root, comments, statements: Vec::new() })
}

/// A map or list whose end is not yet read.
struct Open {
    node: Node,
    /// The key without a value yet, of a map.
    key: Option<(String, Range<usize>)>,
    /// Places of the keys of a map.
    seen: HashMap<String, usize>,
}

#[derive(Default)]
struct Builder<'a> {
    text: &'a str,
    root: Option<Node>,
    comments: Vec<Range<usize>>,
    stack: Vec<Open>,
    has_document: bool,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Fault> {
        let range = bytes(span);
        match event {
            Event::DocumentStart(..) if self.has_document => Err(Fault::new(
                range.start,
                "a second document begins, and only files with one are supported",
            )),
            Event::DocumentStart(..) => {
                self.has_document = true;
                Ok(())
            }
            Event::Comment(..) => {
                self.comments.push(range);
                Ok(())
            }
            Event::Alias(anchor) => {
                let name = self.text[range.clone()].to_owned();
                self.add(Node::new(range, Kind::Alias(name, anchor)))
            }
            Event::Scalar(value, style, anchor, tag) => {
                let node = scalar_node(self.text, range, &value, style, tag.as_deref())?;
                self.add(Node { anchor, is_marked: node.is_marked || anchor != 0, ..node })
            }
            Event::SequenceStart(style, anchor, tag) => {
                let node = Node::new(range.start..range.start, Kind::List(Vec::new()));
                self.open(Node { is_marked: tag.is_some(), ..node }.styled(style, anchor))
            }
            Event::MappingStart(style, anchor, tag) => {
                let node = Node::new(range.start..range.start, Kind::Map(Vec::new()));
                self.open(Node { is_marked: tag.is_some(), ..node }.styled(style, anchor))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(range.end),
            _ => Ok(()),
        }
    }

    fn open(&mut self, node: Node) -> Result<(), Fault> {
        self.stack.push(Open { node, key: None, seen: HashMap::new() });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Fault> {
        let Some(Open { mut node, .. }) = self.stack.pop() else { return Ok(()) };
        // The parser ends a block at the next token, which may be many lines below.
        let last = node.item_spans().last().map_or(node.span.start, |span| span.end);
        node.span.end = if node.is_flow { end } else { last };
        self.add(node)
    }

    /// Adds a value: the root, an entry of a list, or in turn a key and its value.
    fn add(&mut self, node: Node) -> Result<(), Fault> {
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.kind {
            Kind::List(items) => items.push(node),
            Kind::Map(members) => match open.key.take() {
                Some((key, key_span)) => members.push(Member { key, key_span, value: node }),
                None => {
                    let key = key_text(self.text, &node)?;
                    if let Some(first) = open.seen.insert(key.clone(), node.span.start) {
                        let (line, _) = text::position(self.text, first);
                        let reason = format!("the key `{key}` exists already in line {line}");
                        return Err(Fault::new(node.span.start, reason));
                    }
                    open.key = Some((key, node.span));
                }
            },
            Kind::Scalar(_) | Kind::Alias(..) => {}
        }
        Ok(())
    }
}

impl Node {
    fn styled(self, style: StructureStyle, anchor: usize) -> Self {
        let is_marked = self.is_marked || anchor != 0;
        Self { is_flow: style == StructureStyle::Flow, anchor, is_marked, ..self }
    }
}

fn bytes(span: &Span) -> Range<usize> {
    let start = span.start.byte_offset().unwrap_or_default();
    start..span.end.byte_offset().unwrap_or(start).max(start)
}

fn scalar_node(
    text: &str,
    range: Range<usize>,
    value: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<Node, Fault> {
    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
    let span = if is_block {
        // The parser counts empty lines below the text; the start is that of the first line.
        let end = text[..range.end].trim_end().len();
        range.start.min(end)..end
    } else {
        range
    };
    let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix() == "str");
    let is_plain = style == ScalarStyle::Plain && !is_text;
    let value = if is_plain { scalar::resolve(value) } else { Value::from(value) };
    let node = Node::new(span, Kind::Scalar(value));
    Ok(Node { is_flow: !is_block, is_marked: tag.is_some(), ..node })
}

/// The text of a key. Numbers and words such as `true` count as they are written.
fn key_text(text: &str, node: &Node) -> Result<String, Fault> {
    match &node.kind {
        Kind::Scalar(Value::String(key)) => Ok(key.clone()),
        Kind::Scalar(_) => Ok(text[node.span.clone()].to_owned()),
        Kind::Map(_) | Kind::List(_) | Kind::Alias(..) => {
            let reason = format!("the key is {}, and only texts are supported", node.noun());
            Err(Fault::new(node.span.start, reason))
        }
    }
}
