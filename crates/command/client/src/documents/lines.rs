//! Reads the lines of a text where the parts of a document are.

use std::fmt;

use narthex_client_files::edit::Lines;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

/// The lines of a document of YAML, while it is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadLines(pub(crate) Lines);

impl<'de> Deserialize<'de> for ReadLines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Parts).map(Self)
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Lines;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lines, A::Error> {
        let mut members = Vec::new();
        while let Some((key, below)) = map.next_entry::<Spanned<String>, ReadLines>()? {
            members.push((key.value, key.referenced.line(), below.0));
        }
        Ok(Lines::Map(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lines, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Spanned<ReadLines>>()? {
            items.push((item.referenced.line(), item.value.0));
        }
        Ok(Lines::List(items))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Lines, D::Error> {
        ReadLines::deserialize(deserializer).map(|read| read.0)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Lines, D::Error> {
        IgnoredAny::deserialize(inner).map(|_| Lines::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }

    fn visit_none<E>(self) -> Result<Lines, E> {
        Ok(Lines::Leaf)
    }
}
