//! JSON, and JSON with comments and trailing commas: the tree of a text.

mod splice;
mod write;

use std::collections::HashMap;

use jsonc_parser::ast::{self, Comment};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::fault::Fault;
use super::source::Parsed;
use super::text;
use super::tree::{Kind, Member, Node};

pub(super) use splice::{insert, insert_flow, remove, remove_flow, replace};
pub(super) use write::inline;

/// Reads a text. With `is_jsonc`, comments and trailing commas are allowed.
pub(super) fn parse(text: &str, is_jsonc: bool) -> Result<Parsed, Fault> {
    let collect =
        CollectOptions { comments: CommentCollectionStrategy::Separate, ..Default::default() };
    let options = ParseOptions {
        allow_comments: is_jsonc,
        allow_trailing_commas: is_jsonc,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let result = parse_to_ast(text, &collect, &options)
        .map_err(|error| Fault::new(error.range().start, error.kind().to_string()))?;
    let comments = result.comments.unwrap_or_default();
    let mut comments: Vec<_> =
        comments.values().flat_map(|group| group.iter()).map(Comment::range).collect();
    comments.sort_by_key(|range| range.start);
    comments.dedup();
    let root = result.value.map(|value| node(text, &value)).transpose()?;
    let comments = comments.into_iter().map(|range| range.start..range.end).collect();
    Ok(Parsed { root, comments, statements: Vec::new() })
}

fn node(text: &str, value: &ast::Value<'_>) -> Result<Node, Fault> {
    let range = value.range();
    let kind = match value {
        ast::Value::StringLit(string) => Kind::Scalar(Value::String(string.value.to_string())),
        ast::Value::BooleanLit(boolean) => Kind::Scalar(Value::Bool(boolean.value)),
        ast::Value::NullKeyword(_) => Kind::Scalar(Value::Null),
        ast::Value::NumberLit(number) => {
            let value = serde_json::from_str(number.value).map_err(|error| {
                Fault::new(range.start, format!("`{}` is not a number: {error}", number.value))
            })?;
            Kind::Scalar(value)
        }
        ast::Value::Array(array) => {
            let items = array.elements.iter().map(|item| node(text, item));
            Kind::List(items.collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => Kind::Map(members(text, object)?),
    };
    Ok(Node::new(range.start..range.end, kind))
}

fn members(text: &str, object: &ast::Object<'_>) -> Result<Vec<Member>, Fault> {
    let mut seen = HashMap::new();
    let mut members = Vec::with_capacity(object.properties.len());
    for property in &object.properties {
        let (range, key) = (property.name.range(), property.name.as_str().to_owned());
        if let Some(first) = seen.insert(key.clone(), range.start) {
            let (line, _) = text::position(text, first);
            let reason = format!("the key `{key}` exists already in line {line}");
            return Err(Fault::new(range.start, reason));
        }
        let value = node(text, &property.value)?;
        members.push(Member { key, key_span: range.start..range.end, value });
    }
    Ok(members)
}
