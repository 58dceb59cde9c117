//! Reads the JSON of an object strictly: faults are collected, and reading continues (D9).

use std::fmt;

use narthex_model::{
    BuiltInTools, LimitProblem, SecretName, TrafficLimits, UnknownKey,
    json::{Node, Place, TextProblem, field, shortened},
};
use serde_json::Value;

use crate::{
    fault::{Fault, FaultCode, Faults, Warning},
    template::{self, BadText, ConfigValue, Template, Text, Tree},
};

/// A parsed object with its warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    /// The object.
    pub value: T,
    /// Warnings about changes and unwise values, in the order of the text.
    pub warnings: Vec<Warning>,
}

/// A JSON object and its place.
#[derive(Clone)]
pub(crate) struct Object<'n> {
    pub(crate) fields: &'n [(String, Node)],
    pub(crate) at: Place,
}

/// Collects findings while one text is read.
#[derive(Default)]
pub(crate) struct Reader {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
}

/// Largest number of reported faults in one text.
const FAULTS_MAX: usize = 1000;

/// Floats from here on are no longer apart by 1: two ids that differ could become one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads a text whose root must be an object, with `read` for its members.
pub(crate) fn parse<T>(
    text: &[u8],
    read: impl FnOnce(&mut Reader, &Object<'_>) -> Option<T>,
) -> Result<Parsed<T>, Faults> {
    let mut reader = Reader::default();
    let root = Node::parse(text).map_err(|problem| reader.text_problem(&problem)).ok();
    let value = root.and_then(|node| {
        for place in node.keys_given_twice() {
            reader.fault(&place, FaultCode::DuplicateKey, "the key is given twice", "keep one");
        }
        reader.numbers(&node, &Place::default());
        let object = reader.as_object(&node, &Place::default())?;
        read(&mut reader, &object)
    });
    match (value, Faults::new(reader.faults)) {
        (Some(value), None) => Ok(Parsed { value, warnings: reader.warnings }),
        (_, Some(faults)) => Err(faults),
        (None, None) => unreachable!("what cannot be read leaves a fault"),
    }
}

/// Reads the valid parts of a text: parts with a fault are left out. `None` if none are left.
pub(crate) fn partly<T>(
    text: &[u8],
    read: impl FnOnce(&mut Reader, &Object<'_>) -> Option<T>,
) -> Option<T> {
    let mut reader = Reader::default();
    let node = Node::parse(text).ok()?;
    let object = reader.as_object(&node, &Place::default())?;
    read(&mut reader, &object)
}

/// Reads JSON that all readers read alike, such as a patch (RFC 7396).
///
/// # Errors
/// When the text is no JSON, or has a member twice.
pub fn document(text: &[u8]) -> Result<Value, Faults> {
    let mut reader = Reader::default();
    let root = Node::parse(text).map_err(|problem| reader.text_problem(&problem)).ok();
    for place in root.iter().flat_map(Node::keys_given_twice) {
        reader.fault(&place, FaultCode::DuplicateKey, "the key is given twice", "keep one");
    }
    match (root, Faults::new(reader.faults)) {
        (Some(node), None) => Ok(node.to_value()),
        (_, Some(faults)) => Err(faults),
        (None, None) => unreachable!("what cannot be read leaves a fault"),
    }
}

impl Reader {
    pub(crate) fn fault(
        &mut self,
        at: &Place,
        code: FaultCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault::new(at, code, message, remedy));
        }
    }

    pub(crate) fn invalid(
        &mut self,
        at: &Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.fault(at, FaultCode::ValueInvalid, message, remedy);
    }

    pub(crate) fn warn(&mut self, at: &Place, message: impl Into<String>) {
        self.warnings.push(Warning { path: at.to_string(), message: message.into() });
    }

    fn text_problem(&mut self, problem: &TextProblem) {
        let remedy = match problem {
            TextProblem::TooLong => "send only what belongs to this object",
            TextProblem::Syntax { remedy, .. } => remedy,
        };
        self.fault(&Place::default(), FaultCode::TextInvalid, problem.to_string(), remedy);
    }

    /// Refuses numbers that lost digits when they were read.
    fn numbers(&mut self, node: &Node, at: &Place) {
        match node {
            Node::Number(number) if number.is_f64() => {
                if number.as_f64().is_none_or(|value| value.abs() >= EXACT_MAX) {
                    let message = "the number has too many digits to be stored exactly";
                    self.invalid(at, message, "write it as a string");
                }
            }
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => {}
            Node::List(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    self.numbers(node, &at.index(index));
                }
            }
            Node::Object(fields) => {
                for (key, node) in fields {
                    self.numbers(node, &at.key(key));
                }
            }
        }
    }

    pub(crate) fn wrong_type(&mut self, at: &Place, node: &Node, wanted: &str) {
        let message = format!("expected {wanted}, found {}", node.found());
        self.fault(at, FaultCode::TypeWrong, message, format!("write {wanted}"));
    }

    pub(crate) fn missing(&mut self, object: &Object<'_>, key: &str, wanted: &str) {
        let message = format!("`{key}` is missing");
        self.fault(&object.at.key(key), FaultCode::FieldMissing, message, format!("add {wanted}"));
    }

    pub(crate) fn excluding(&mut self, object: &Object<'_>, one: &str, other: &str) {
        if object.get(one).is_some() && object.get(other).is_some() {
            let message = format!("`{one}` and `{other}` mean the same");
            self.fault(&object.at.key(other), FaultCode::FieldsExclude, message, "keep one");
        }
    }

    /// Refuses unknown keys (O35).
    pub(crate) fn only(&mut self, object: &Object<'_>, known: &[&str]) {
        let unknown = object.fields.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        for (key, _) in unknown.take(FAULTS_MAX) {
            let unknown = UnknownKey::new(key, known);
            let (message, remedy) = (unknown.message(), unknown.remedy());
            self.fault(&object.at.key(key), FaultCode::UnknownField, message, remedy);
        }
    }

    pub(crate) fn as_object<'n>(&mut self, node: &'n Node, at: &Place) -> Option<Object<'n>> {
        match node {
            Node::Object(fields) => Some(Object { fields, at: at.clone() }),
            _ => {
                self.wrong_type(at, node, "an object");
                None
            }
        }
    }

    pub(crate) fn object<'n>(&mut self, object: &Object<'n>, key: &str) -> Option<Object<'n>> {
        let node = object.get(key)?;
        self.as_object(node, &object.at.key(key))
    }

    pub(crate) fn as_text<'n>(&mut self, node: &'n Node, at: &Place) -> Option<&'n str> {
        match node {
            Node::Text(text) if text.contains('\0') => {
                self.invalid(at, "the text holds a NUL character", "remove it");
                None
            }
            Node::Text(text) => Some(text),
            _ => {
                self.wrong_type(at, node, "a string");
                None
            }
        }
    }

    pub(crate) fn text<'n>(&mut self, object: &Object<'n>, key: &str) -> Option<&'n str> {
        let node = object.get(key)?;
        self.as_text(node, &object.at.key(key))
    }

    pub(crate) fn owned(&mut self, object: &Object<'_>, key: &str) -> Option<String> {
        self.text(object, key).map(str::to_owned)
    }

    pub(crate) fn flag(&mut self, object: &Object<'_>, key: &str) -> Option<bool> {
        match object.get(key)? {
            Node::Bool(value) => Some(*value),
            node => {
                self.wrong_type(&object.at.key(key), node, "true or false");
                None
            }
        }
    }

    /// A whole number above zero.
    pub(crate) fn amount(&mut self, object: &Object<'_>, key: &str) -> Option<u64> {
        let node = object.get(key)?;
        let amount = match node {
            Node::Number(number) => number.as_u64().filter(|number| *number > 0),
            _ => None,
        };
        if amount.is_none() {
            self.wrong_type(&object.at.key(key), node, "a whole number above 0");
        }
        amount
    }

    /// Limits for traffic (O100).
    pub(crate) fn traffic(&mut self, object: &Object<'_>, key: &str) -> TrafficLimits {
        let Some(node) = object.get(key) else { return TrafficLimits::default() };
        TrafficLimits::read(node, &object.at.key(key), &mut |place, problem| {
            let code = match &problem {
                LimitProblem::NotAnObject(_) | LimitProblem::NotAnAmount { .. } => {
                    FaultCode::TypeWrong
                }
                LimitProblem::Unknown(_) => FaultCode::UnknownField,
                LimitProblem::TwoRates => FaultCode::FieldsExclude,
                LimitProblem::BurstAlone => FaultCode::FieldMissing,
                LimitProblem::Twice => FaultCode::DuplicateKey,
            };
            self.fault(place, code, problem.to_string(), problem.remedy());
        })
    }

    /// The elements of an array, each with its place.
    pub(crate) fn list<'n>(
        &mut self,
        object: &Object<'n>,
        key: &str,
    ) -> Option<Vec<(Place, &'n Node)>> {
        let at = object.at.key(key);
        match object.get(key)? {
            Node::List(nodes) => {
                Some(nodes.iter().enumerate().map(|(i, node)| (at.index(i), node)).collect())
            }
            node => {
                self.wrong_type(&at, node, "an array");
                None
            }
        }
    }

    pub(crate) fn texts(&mut self, object: &Object<'_>, key: &str) -> Vec<String> {
        let nodes = self.list(object, key).unwrap_or_default();
        nodes.iter().filter_map(|(at, node)| self.as_text(node, at).map(str::to_owned)).collect()
    }

    /// The named tools of the built-in server, if the object names any.
    pub(crate) fn built_in_tools(&mut self, object: &Object<'_>) -> Option<BuiltInTools> {
        let at = object.at.key("builtin");
        match BuiltInTools::read(object.get("builtin")?) {
            Ok(tools) => Some(tools),
            Err(faults) => {
                for (index, message, remedy) in faults {
                    let at = index.map_or_else(|| at.clone(), |index| at.index(index));
                    self.invalid(&at, message, remedy);
                }
                None
            }
        }
    }

    /// A text that `read` takes for a name.
    pub(crate) fn name<T, E: fmt::Display>(
        &mut self,
        at: &Place,
        text: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        match read(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.invalid(at, error.to_string(), "choose another name");
                None
            }
        }
    }

    fn bad_text(&mut self, at: &Place, bad: BadText) {
        let code = match bad.is_secret {
            true => FaultCode::SecretMisplaced,
            false => FaultCode::PlaceholderInvalid,
        };
        self.fault(at, code, bad.message, bad.remedy);
    }

    /// A string with placeholders that may be no secret.
    pub(crate) fn template(&mut self, node: &Node, at: &Place) -> Option<Template> {
        match template::parse(self.as_text(node, at)?, false) {
            Ok(Text::Template(template)) => Some(template),
            Ok(Text::Secret(name)) => {
                let message = format!("a secret such as `{name}` is not possible here");
                let remedy = "give secrets in `config` or `auth`";
                self.fault(at, FaultCode::SecretMisplaced, message, remedy);
                None
            }
            Err(bad) => {
                self.bad_text(at, bad);
                None
            }
        }
    }

    /// The value of a config key: null, a secret, or JSON with placeholders.
    pub(crate) fn config_value(&mut self, node: &Node, at: &Place) -> Option<ConfigValue> {
        match node {
            Node::Null => Some(ConfigValue::Removed),
            Node::Text(text) => {
                self.as_text(node, at)?;
                match template::parse(text, true) {
                    Ok(Text::Secret(name)) => Some(ConfigValue::Secret(name)),
                    Ok(Text::Template(text)) => Some(ConfigValue::Tree(Tree::text(text))),
                    Err(bad) => {
                        self.bad_text(at, bad);
                        None
                    }
                }
            }
            Node::Object(fields) if field(fields, "$secret").is_some() => {
                self.secret_object(&Object { fields, at: at.clone() })
            }
            Node::Bool(_) | Node::Number(_) | Node::List(_) | Node::Object(_) => {
                let mut bad = Vec::new();
                let tree = template::tree(node, at, &mut |at, text| bad.push((at.clone(), text)));
                for (at, text) in bad {
                    self.bad_text(&at, text);
                }
                tree.map(ConfigValue::Tree)
            }
        }
    }

    /// `{"$secret": "NAME"}` (O93). Other systems write `jira-key`; narthex writes `JIRA_KEY`.
    fn secret_object(&mut self, object: &Object<'_>) -> Option<ConfigValue> {
        self.only(object, &["$secret"]);
        let text = self.text(object, "$secret")?;
        let at = object.at.key("$secret");
        if let Ok(name) = SecretName::new(text) {
            return Some(ConfigValue::Secret(name));
        }
        let capitals = text.to_ascii_uppercase().replace(['-', '.'], "_");
        if let Ok(name) = SecretName::new(&capitals) {
            let shown = shortened(text);
            self.warn(
                &at,
                format!("`{shown}` is read as `{name}`: names of secrets have this form"),
            );
            return Some(ConfigValue::Secret(name));
        }
        self.name(&at, text, SecretName::new).map(ConfigValue::Secret)
    }
}

impl<'n> Object<'n> {
    /// The value of a key, where null means absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        field(self.fields, key)
    }

    /// All fields with their places.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'n String, &'n Node, Place)> {
        self.fields.iter().map(|(key, node)| (key, node, self.at.key(key)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Agent;

    #[test]
    fn a_patch_that_readers_could_differ_on_is_refused() {
        let twice = document(br#"{"a": {"b": 1, "b": 2}}"#).unwrap_err();
        let places: Vec<_> = twice.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(places, ["a.b"]);
        assert_eq!(document(b"{").unwrap_err().iter().count(), 1);
        assert_eq!(document(br#"{"a": null}"#).unwrap(), json!({ "a": null }));
    }

    /// D9: the valid parts of a faulty object reveal its other faults.
    #[test]
    fn d9_the_valid_parts_of_a_faulty_object_are_read() {
        let text = br#"{"name": "a", "executor": "x", "activ": true, "description": 3,
            "mcpServers": {"b": {"ref": "b"}, "c": 3}}"#;
        let faults = Agent::parse(text, None).unwrap_err();
        let places: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(places, ["activ", "mcpServers.c", "description"]);
        let agent = Agent::partly(text).unwrap();
        assert_eq!(agent.executor.as_ref().map(|name| name.as_str()), Some("x"));
        let aliases: Vec<_> = agent.servers.keys().map(|alias| alias.as_str()).collect();
        assert_eq!((aliases, agent.description), (vec!["b"], None));
        assert!(Agent::partly(b"{").is_none() && Agent::partly(b"[]").is_none());
    }
}
