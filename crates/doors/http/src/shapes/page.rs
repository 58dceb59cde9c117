//! Pages of lists.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// The most objects of a page.
pub(crate) const PAGE_MAX: u32 = 100;

/// An object that lists have pages of.
pub(crate) trait Listed: JsonSchema {
    /// Name of the page's schema.
    const PAGE: &'static str;
    /// Description of the page.
    const ABOUT: &'static str;
    /// The most objects of a page.
    const MOST: u32 = PAGE_MAX;
}

/// One page of a list.
#[derive(Debug, Serialize)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The `after` of the next page.
    pub(crate) next: Option<String>,
}

impl<T: Listed> JsonSchema for Page<T> {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed(T::PAGE)
    }

    fn schema_id() -> Cow<'static, str> {
        Cow::Owned(format!("page of {}", T::schema_id()))
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": T::ABOUT,
            "properties": {
                "items": {
                    "type": "array",
                    "items": generator.subschema_for::<T>(),
                    "maxItems": T::MOST,
                },
                "next": {
                    "type": ["string", "null"],
                    "description": "The `after` of the next page. Null on the last page.",
                },
            },
            "required": ["items", "next"],
        })
    }
}
