//! Parts of documents that other crates make.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A part of a document of another crate, which has the schema of `T`.
pub(crate) struct As<T>(Value, PhantomData<fn() -> T>);

impl<T> As<T> {
    /// # Panics
    /// When the part is no JSON: no member of a document has a fault, and all names are text.
    pub(crate) fn of(part: &impl Serialize) -> Self {
        Self::json(serde_json::to_value(part).expect("a part of a document is JSON"))
    }

    /// A part that is JSON already.
    pub(crate) fn json(part: Value) -> Self {
        Self(part, PhantomData)
    }

    /// The part with other values in it.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.0);
        self
    }
}

impl<T> fmt::Debug for As<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Serialize for As<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for As<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::json)
    }
}

impl<T: JsonSchema> JsonSchema for As<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
