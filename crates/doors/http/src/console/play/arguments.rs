//! The arguments of a call, which a person writes as a form or as JSON.
//!
//! A page has both beside each other, and the value that both had when it was made. So the side
//! that was changed since counts, without a script.

use std::collections::BTreeMap;

use narthex_console::parts::{
    Words,
    form::{Choice, Field, Input, line_breaks},
};
use serde_json::{Map, Value};

use super::{
    schema::{Chosen, Kind, Part, at, name_of, parts, put},
    text::{object, pretty, read, scalar, written},
};

/// Maximum number of characters of a label and of a description.
const LABEL_MAX: usize = 100;
const ABOUT_MAX: usize = 300;
/// Number of lines of an area with JSON, at least and at most.
const ROWS_MIN: usize = 8;
const ROWS_MAX: usize = 30;
const BOTH_CHANGED: &str = "The form and the JSON were both changed. Press “Fill in the JSON” if \
                            the form counts, or “Fill in the form” if the JSON counts.";

/// The button that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    ToJson,
    ToForm,
    Call,
}

/// The arguments as a form sent them.
#[derive(Debug)]
pub(super) struct Sent<'f> {
    /// The value that the form and the JSON had before.
    pub(super) base: &'f str,
    pub(super) json: &'f str,
    /// The texts of the fields, by name.
    pub(super) fields: &'f BTreeMap<String, String>,
}

/// The arguments as the page shows them.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// The JSON.
    pub(super) text: String,
    /// The value of the form.
    base: Value,
    /// The texts of fields that differ from that value.
    shown: Chosen,
    /// The faults of fields, by name.
    faults: BTreeMap<String, String>,
    json_fault: Option<String>,
}

impl Settled {
    /// The arguments of a page without any change.
    pub(super) fn of(value: Value) -> Self {
        Self { text: pretty(&value), base: value, ..Self::default() }
    }

    /// True if the arguments can be sent.
    pub(super) fn is_fine(&self) -> bool {
        self.faults.is_empty() && self.json_fault.is_none()
    }

    /// The value that the next form repeats, without line breaks.
    pub(super) fn base(&self) -> String {
        self.base.to_string()
    }

    /// The field with the JSON.
    pub(super) fn json(&self) -> Field {
        let rows = self.text.lines().count().clamp(ROWS_MIN, ROWS_MAX);
        let input = Input::area(&self.text, u8::try_from(rows).unwrap_or(u8::MAX));
        Field::new("json", "JSON", input).fault(self.json_fault.as_deref())
    }

    /// The fields of the form.
    pub(super) fn fields(&self, schema: &Value) -> Vec<Field> {
        let all = parts(schema, &self.base, &self.shown);
        let field = |part: &Part| {
            let name = name_of(&part.keys);
            let text = self.shown.get(&name).cloned();
            let text = text.unwrap_or_else(|| written(part, at(&self.base, &part.keys)));
            let fault = self.faults.get(&name).map(String::as_str);
            field(part, name, &text).fault(fault)
        };
        all.iter().map(field).collect()
    }
}

/// The arguments after a form was sent: those of the side that counts.
pub(super) fn settled(schema: Option<&Value>, sent: &Sent<'_>, act: Act) -> Settled {
    let base = object(sent.base).unwrap_or_else(|_fault| Value::Object(Map::new()));
    let fields: Chosen =
        sent.fields.iter().map(|(name, text)| (name.clone(), line_breaks(text))).collect();
    let all = schema.map(|schema| parts(schema, &base, &fields)).unwrap_or_default();
    let is_changed = |part: &&Part| {
        let text = fields.get(&name_of(&part.keys));
        text.is_some_and(|text| *text != written(part, at(&base, &part.keys)))
    };
    let changed: Vec<_> = all.iter().filter(is_changed).collect();
    let json_text = line_breaks(sent.json);
    let json = object(&json_text);
    let is_json_changed = json.as_ref().ok() != Some(&base);
    let failed = |fault: String, fields: Chosen| Settled {
        text: json_text.clone(),
        base: base.clone(),
        shown: fields,
        json_fault: Some(fault),
        ..Settled::default()
    };
    let onto = match (act, json) {
        (Act::Call, _) if !changed.is_empty() && is_json_changed => {
            return failed(BOTH_CHANGED.to_owned(), fields);
        }
        (Act::ToForm, Ok(value)) => {
            return Settled { text: json_text, base: value, ..Settled::default() };
        }
        (Act::Call, Ok(value)) if changed.is_empty() => {
            return Settled { text: json_text, base: value, ..Settled::default() };
        }
        (Act::ToForm, Err(fault)) => return failed(fault, fields),
        (Act::Call, Err(fault)) if changed.is_empty() => return failed(fault, fields),
        (Act::ToJson, Ok(value)) => value,
        (Act::ToJson | Act::Call, _) => base.clone(),
    };
    let filled = filled(onto, &changed, &fields);
    match filled {
        Ok(filled) => filled,
        Err(faults) => Settled { text: json_text, base, shown: fields, faults, json_fault: None },
    }
}

/// A value with the changed fields in it, or the fault of each field that cannot be read.
fn filled(
    mut value: Value,
    changed: &[&Part],
    fields: &Chosen,
) -> Result<Settled, BTreeMap<String, String>> {
    let (mut faults, mut shown) = (BTreeMap::new(), Chosen::new());
    for part in changed {
        let name = name_of(&part.keys);
        let text = fields.get(&name).map(String::as_str).unwrap_or_default();
        match read(part, text) {
            Ok(new) => put(&mut value, &part.keys, new),
            Err(fault) => {
                faults.insert(name, fault);
                continue;
            }
        }
        // The choice of a shape is no value, so it is kept beside it.
        if matches!(part.kind, Kind::Shapes(_)) {
            shown.insert(name, text.to_owned());
        }
    }
    match faults.is_empty() {
        true => Ok(Settled { text: pretty(&value), base: value, shown, ..Settled::default() }),
        false => Err(faults),
    }
}

/// The field of a part with its text.
fn field(part: &Part, name: String, text: &str) -> Field {
    let keys: Vec<_> = part.keys.iter().map(String::as_str).filter(|key| !key.is_empty()).collect();
    let required = if part.is_required { " (required)" } else { "" };
    let label = format!("{}{required}", Words::within(&keys.join("."), LABEL_MAX));
    let mut about = Words::within(&part.about, ABOUT_MAX).to_string();
    let mut add = |text: &str| {
        let space = match about.chars().last() {
            None => "",
            Some('.' | '!' | '?' | ':') => " ",
            Some(_) => ". ",
        };
        about = format!("{about}{space}{text}");
    };
    match &part.kind {
        Kind::Number(true) => add("A whole number."),
        Kind::Number(false) => add("A number."),
        Kind::Lines(_) => add("One item a line."),
        Kind::Json(why) => add(&format!("This part stays JSON: {why}.")),
        Kind::Shapes(_) => add("Press “Fill in the JSON” to see the fields of another shape."),
        Kind::Text | Kind::Bool | Kind::Options(_) => {}
    }
    if let Some(default) = &part.default {
        add(&format!("Without a value: {}.", Words::within(&default.to_string(), LABEL_MAX)));
    }
    let field = Field::new(name, &label, input(part, text));
    if about.is_empty() { field } else { field.help(&about) }
}

fn input(part: &Part, text: &str) -> Input {
    let choice = |all: Vec<(String, String)>| {
        let none = (String::new(), "left out".to_owned());
        let options = std::iter::once(none).chain(all).map(|(value, label)| Choice {
            is_chosen: value == text,
            label: Words::within(&label, LABEL_MAX),
            value,
        });
        Input::Choice { options: options.collect() }
    };
    let numbered = |words: Vec<String>| {
        choice(words.into_iter().enumerate().map(|(at, word)| (at.to_string(), word)).collect())
    };
    match &part.kind {
        Kind::Text if text.contains('\n') => Input::area(text, 4),
        Kind::Text | Kind::Number(_) => Input::line(text),
        Kind::Bool => {
            choice(["true", "false"].map(|word| (word.to_owned(), word.to_owned())).into())
        }
        Kind::Options(options) => numbered(options.iter().map(scalar).collect()),
        Kind::Shapes(shapes) => {
            numbered(shapes.all.iter().map(|(words, _)| words.clone()).collect())
        }
        Kind::Lines(_) | Kind::Json(_) => Input::area(text, 4),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({ "properties": {
            "path": { "type": "string" },
            "count": { "type": "integer" },
            "target": { "oneOf": [
                { "properties": { "kind": { "const": "a" }, "x": { "type": "string" } } },
                { "properties": { "kind": { "const": "b" }, "y": { "type": "string" } } },
            ] },
        } })
    }

    fn name(keys: &[&str]) -> String {
        name_of(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>())
    }

    fn after(json: &str, fields: &[(&[&str], &str)], act: Act) -> Settled {
        let fields = fields.iter().map(|(keys, text)| (name(keys), (*text).to_owned())).collect();
        let sent = Sent { base: r#"{"count":1,"more":true}"#, json, fields: &fields };
        settled(Some(&schema()), &sent, act)
    }

    const BASE: &str = r#"{ "count": 1, "more": true }"#;

    /// R8: the side that was changed counts, and members without a field stay.
    #[test]
    fn r8_the_side_that_was_changed_counts() {
        let form = after(BASE, &[(&["path"], "a"), (&["count"], "1")], Act::Call);
        assert!(form.is_fine());
        assert_eq!(object(&form.text).unwrap(), json!({ "count": 1, "more": true, "path": "a" }));
        let json = after(r#"{"path":"b"}"#, &[(&["count"], "1")], Act::Call);
        assert_eq!((json.is_fine(), json.text.as_str()), (true, r#"{"path":"b"}"#));
        let both = after(r#"{"path":"b"}"#, &[(&["count"], "2")], Act::Call);
        assert!(!both.is_fine() && both.text == r#"{"path":"b"}"#);
        let form = after(r#"{"path":"b"}"#, &[(&["count"], "2")], Act::ToJson);
        assert_eq!(object(&form.text).unwrap(), json!({ "count": 2, "path": "b" }));
        let json = after(r#"{"path":"b"}"#, &[(&["count"], "2")], Act::ToForm);
        assert!(json.fields(&schema()).iter().any(|one| one.input == Input::line("b")));
    }

    /// A text that cannot be read stays in its field, with the reason.
    #[test]
    fn a_fault_is_at_its_field_and_the_text_stays() {
        let bad = after(BASE, &[(&["count"], "many"), (&["path"], "a")], Act::ToJson);
        assert!(!bad.is_fine() && bad.text == BASE);
        let fields = bad.fields(&schema());
        let count = fields.iter().find(|one| one.name == name(&["count"])).unwrap();
        assert!(count.fault.is_some() && count.input == Input::line("many"));
        assert!(!after("[1]", &[], Act::Call).is_fine());
        assert!(!after("{", &[], Act::ToForm).is_fine());
    }

    /// Another shape replaces the value, and brings its own fields.
    #[test]
    fn another_shape_brings_its_own_fields() {
        let chosen = after(BASE, &[(&["target"], "1")], Act::ToJson);
        assert_eq!(object(&chosen.text).unwrap()["target"], json!({ "kind": "b" }));
        let names: Vec<_> = chosen.fields(&schema()).into_iter().map(|one| one.name).collect();
        assert!(names.contains(&name(&["target", "y"])));
        assert!(!names.contains(&name(&["target", "x"])));
    }
}
