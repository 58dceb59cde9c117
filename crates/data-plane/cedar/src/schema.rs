//! The schema against which rules are checked: the names that they may use.

use std::sync::LazyLock;

use cedar_policy::{Schema, SchemaFragment, Validator};
use serde_json::{Map, Value, json};

/// The schema for people.
pub(crate) const TEXT: &str = include_str!("schema.cedarschema");

/// The validator of rules that use no arguments.
pub(crate) static PLAIN: LazyLock<Validator> = LazyLock::new(|| {
    let schema = Schema::from_json_value(BASE.clone());
    Validator::new(schema.expect("the schema is the same in every build, and tests read it"))
});

/// The schema in the form that can be added to.
static BASE: LazyLock<Value> = LazyLock::new(|| {
    let (fragment, _warnings) =
        SchemaFragment::from_cedarschema_str(TEXT).expect("the schema is the same in every build");
    fragment.to_json_value().expect("what was read can be written")
});

/// For a rule that asks for these arguments, as attributes of a record; `None` if there is no such
/// schema.
pub(crate) fn asking(arguments: Map<String, Value>) -> Option<Validator> {
    let mut schema = BASE.clone();
    let attributes = "//actions/call/appliesTo/context/attributes";
    let context = schema.pointer_mut(attributes)?.as_object_mut()?;
    let record = json!({ "type": "Record", "attributes": arguments });
    context.insert("arguments".to_owned(), record);
    Schema::from_json_value(schema).ok().map(Validator::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_can_be_added_to() {
        let path = json!({ "type": "String", "required": false });
        assert!(asking(Map::from_iter([("path".to_owned(), path)])).is_some());
        assert_eq!(PLAIN.schema().actions().count(), 1);
    }
}
