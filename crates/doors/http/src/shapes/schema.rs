//! Generates the schemas of the document from types.

use std::{borrow::Cow, collections::BTreeSet};

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::{Contract, SchemaSettings},
    transform::{Transform, transform_subschemas},
};
use serde::Serialize;
use serde_json::{Map, Value};

/// The place of schemas in the document.
const PLACE: &str = "/components/schemas";

/// A type that has a schema in the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    name: fn() -> Cow<'static, str>,
    add: fn(&mut SchemaGenerator) -> Schema,
}

impl Shape {
    pub(crate) const fn of<T: JsonSchema>() -> Self {
        Self { name: T::schema_name, add: SchemaGenerator::subschema_for::<T> }
    }

    /// Name of the schema in the document.
    pub(crate) fn name(self) -> Cow<'static, str> {
        (self.name)()
    }
}

/// The value of a member that an answer may leave out, and that may also be null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Nullable<T>(pub(crate) Option<T>);

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Option::<T>::json_schema(generator);
        schema.insert(NULLABLE.to_owned(), Value::Bool(true));
        schema
    }
}

/// The mark of [`Nullable`], and of a member that is absent with its group and can be null in it.
/// The document does not have the mark.
const NULLABLE: &str = "x-nullable";

/// The names of a shape's members.
pub(crate) fn members<T: JsonSchema>() -> BTreeSet<String> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).cloned().collect()
}

/// The schemas of shapes, and of all types in them.
pub(crate) struct Schemas {
    answers: SchemaGenerator,
    bodies: SchemaGenerator,
}

impl Schemas {
    pub(crate) fn new() -> Self {
        let generator = |contract: Contract| {
            let is_answer = contract.is_serialize();
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = Cow::Borrowed(PLACE);
                settings.contract = contract;
            });
            settings.with_transform(Plain { is_answer }).into_generator()
        };
        Self { answers: generator(Contract::Serialize), bodies: generator(Contract::Deserialize) }
    }

    pub(crate) fn add_answer(&mut self, shape: Shape) {
        (shape.add)(&mut self.answers);
    }

    pub(crate) fn add_body(&mut self, shape: Shape) {
        (shape.add)(&mut self.bodies);
    }

    /// The schemas by name.
    ///
    /// # Panics
    /// When two types have one name, or a type in answers differs from itself in bodies.
    pub(crate) fn all(mut self) -> Map<String, Value> {
        let mut all = self.answers.take_definitions(true);
        for (name, schema) in self.bodies.take_definitions(true) {
            let other = all.insert(name.clone(), schema.clone());
            let is_same = other.is_none_or(|other| other == schema);
            assert!(is_same, "the schema `{name}` of bodies differs from that of answers");
        }
        for name in all.keys() {
            // The generator numbers the second type of a name.
            let is_first = !name.ends_with(|last: char| last.is_ascii_digit());
            assert!(is_first, "two types have the name of the schema `{name}`");
        }
        all
    }
}

/// Leaves out of generated schemas what depends on Rust, and closes objects.
#[derive(Debug, Clone)]
struct Plain {
    is_answer: bool,
}

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(members) = schema.as_object_mut() else { return };
        // Lines of a paragraph end where the source's do.
        if let Some(Value::String(text)) = members.get_mut("description") {
            let paragraphs: Vec<_> = text.split("\n\n").map(|one| one.replace('\n', " ")).collect();
            *text = paragraphs.join("\n\n");
        }
        if let Some(Value::Array(others)) = members.get_mut("anyOf") {
            *others = std::mem::take(others).into_iter().flat_map(unnested).collect();
        }
        // `uint64` and the like say how wide a number is in Rust.
        if members.get("type").is_some_and(is_numeric) {
            members.remove("format");
        }
        if members.get("default").is_some_and(Value::is_null) {
            members.remove("default");
        }
        // A condition on an object has properties, too, and no type.
        if !members.contains_key("properties") || members.get("type").is_none() {
            return;
        }
        // An object has the described members and no others, unless its type allows more.
        members.entry("additionalProperties").or_insert(Value::Bool(false));
        if self.is_answer {
            without_absent_nulls(members);
        }
        let properties = members.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties.into_iter().flat_map(Map::values_mut) {
            property.as_object_mut().and_then(|property| property.remove(NULLABLE));
        }
    }
}

/// Each value of an untagged enum fits exactly one of its variants.
pub(super) fn one_of(schema: &mut Schema) {
    if let Some(variants) = schema.remove("anyOf") {
        schema.insert("oneOf".to_owned(), variants);
    }
}

/// The alternatives of an alternative that is nothing but alternatives itself.
fn unnested(schema: Value) -> Vec<Value> {
    let is_plain = |(name, _): (&String, &Value)| ["anyOf", "description"].contains(&name.as_str());
    match schema {
        Value::Object(mut members)
            if members.contains_key("anyOf") && members.iter().all(is_plain) =>
        {
            match members.remove("anyOf") {
                Some(Value::Array(others)) => others,
                other => other.into_iter().collect(),
            }
        }
        schema => vec![schema],
    }
}

fn is_numeric(kind: &Value) -> bool {
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    is_number(kind) || kind.as_array().is_some_and(|all| all.iter().any(is_number))
}

/// An optional member of an answer is left out where it has no value, so it is never null.
fn without_absent_nulls(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let required = required.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        let is_nullable = property.get(NULLABLE).is_some();
        if !is_nullable && !required.iter().any(|one| one == name) {
            remove_null(property);
        }
    }
}

fn remove_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(kinds) = members.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &mut kinds[..] {
            let kind = kind.take();
            members.insert("type".to_owned(), kind);
        }
    }
    if let Some(words) = members.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    let Some(others) = members.get_mut("anyOf").and_then(Value::as_array_mut) else { return };
    others.retain(|other| other["type"] != "null");
    if let [Value::Object(other)] = &mut others[..] {
        let other = std::mem::take(other);
        members.remove("anyOf");
        for (name, value) in other {
            members.entry(name).or_insert(value);
        }
    }
}
