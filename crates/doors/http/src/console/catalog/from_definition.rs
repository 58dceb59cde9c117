//! The fields for a definition.

use narthex_model::is_unseen;
use serde_json::{Map, Value};

use super::{
    draft::{Draft, KeyRow, Shape, TYPES, ValueRow},
    value::{encoded, is_literal, written},
};

impl Draft {
    /// The fields for a definition, as it is stored or written.
    pub(super) fn of_definition(definition: &Value) -> Self {
        let mut rest = definition.as_object().cloned().unwrap_or_default();
        let shape = Shape::of(definition).unwrap_or_default();
        let is_sse = transport(&mut rest, shape);
        let (keys, is_closed) = keys(&mut rest);
        let mut draft = Self {
            id: line(&mut rest, "id"),
            name: line(&mut rest, "name"),
            description: line(&mut rest, "description"),
            shape,
            url: line(&mut rest, "url"),
            is_sse,
            command: line(&mut rest, "command"),
            args: args(&mut rest),
            cwd: line(&mut rest, "cwd"),
            image: line(&mut rest, "image"),
            script: line(&mut rest, "script"),
            keys,
            is_closed,
            values: Vec::new(),
            rest: String::new(),
        };
        draft.values = values(&mut rest, &draft);
        draft.rest = written(&rest);
        draft
    }
}

/// Takes the transport out, where the form says it.
fn transport(rest: &mut Map<String, Value>, shape: Shape) -> bool {
    let word = rest.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_said = match shape {
        Shape::Url => matches!(&*word, "http" | "sse"),
        Shape::Command | Shape::Image | Shape::Script => word == "stdio",
    };
    if is_said {
        rest.remove("type");
    }
    is_said && word == "sse"
}

/// Takes a text of one line out.
fn line(rest: &mut Map<String, Value>, key: &str) -> String {
    let found = rest.get(key).and_then(Value::as_str);
    let found = found.filter(|text| is_line(text) && text.trim() == *text).map(str::to_owned);
    if found.is_some() {
        rest.remove(key);
    }
    found.unwrap_or_default()
}

/// Takes arguments out, if each is one line.
fn args(rest: &mut Map<String, Value>) -> String {
    let Some(Value::Array(args)) = rest.get("args") else { return String::new() };
    let texts: Option<Vec<&str>> =
        args.iter().map(|arg| arg.as_str().filter(|text| is_line(text))).collect();
    let Some(texts) = texts.filter(|texts| texts.last().is_none_or(|last| !last.is_empty())) else {
        return String::new();
    };
    let text = texts.join("\n");
    rest.remove("args");
    text
}

/// Takes the schema out, if each key of it fits into a row.
fn keys(rest: &mut Map<String, Value>) -> (Vec<KeyRow>, bool) {
    let Some(Value::Object(schema)) = rest.get("config_schema") else {
        return (Vec::new(), false);
    };
    let rows: Option<Vec<KeyRow>> = schema.iter().map(|(name, key)| row(name, key)).collect();
    match rows {
        Some(rows) => {
            rest.remove("config_schema");
            (rows, true)
        }
        None => (Vec::new(), false),
    }
}

fn row(name: &str, key: &Value) -> Option<KeyRow> {
    let mut more = key.as_object()?.clone();
    let value_type = more.get("type").and_then(Value::as_str);
    let value_type = value_type.filter(|word| TYPES.contains(word)).map(str::to_owned);
    if value_type.is_some() {
        more.remove("type");
    }
    let is_secret = more.get("kind").is_some_and(|kind| kind == "secret");
    if is_secret {
        more.remove("kind");
    }
    let is_required = more.get("required").is_some_and(|flag| *flag == Value::Bool(true));
    // These are the values without the member.
    for (member, usual) in
        [("required", is_required), ("sensitive", is_secret), ("internal", false)]
    {
        if more.get(member).is_some_and(|flag| *flag == Value::Bool(usual)) {
            more.remove(member);
        }
    }
    let row = KeyRow {
        name: name.to_owned(),
        value_type: value_type.unwrap_or_default(),
        is_secret,
        is_required,
        description: line(&mut more, "description"),
        more: written(&more),
    };
    is_line(name).then_some(row)
}

/// Takes the default values out, if each name fits into a row.
fn values(rest: &mut Map<String, Value>, draft: &Draft) -> Vec<ValueRow> {
    let Some(Value::Object(config)) = rest.get("default_config") else { return Vec::new() };
    let rows: Option<Vec<ValueRow>> = config
        .iter()
        .map(|(key, value)| {
            if draft.is_hidden(key) && is_literal(value) {
                let row = ValueRow { key: key.clone(), value: String::new(), is_kept: true };
                return is_line(key).then_some(row);
            }
            let text = encoded(value, draft.type_of(key).as_deref());
            let row = ValueRow { key: key.clone(), value: text, is_kept: false };
            (is_line(key) && is_area(&row.value)).then_some(row)
        })
        .collect();
    if rows.is_some() {
        rest.remove("default_config");
    }
    rows.unwrap_or_default()
}

/// True for a text that an input of one line shows as it is.
fn is_line(text: &str) -> bool {
    !text.contains(is_unseen)
}

/// True for a text that an input of several lines shows as it is.
fn is_area(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !is_unseen(c))
}
