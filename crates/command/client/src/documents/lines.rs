//! The lines of a text where the parts of a document are.

use std::fmt;

use narthex_client_files::edit;
use narthex_model::json::shortened;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

/// The lines of a document's parts, counted from 1 on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Lines {
    /// A value without parts.
    #[default]
    Leaf,
    Map(Vec<(String, u64, Self)>),
    List(Vec<(u64, Self)>),
}

impl Lines {
    /// The line of a place such as `mcp.servers.git.args[0]`; for a missing place, the line of the
    /// part that it is missing from. `None` for the document itself.
    pub(crate) fn of(&self, place: &str) -> Option<u64> {
        let rest = place.strip_prefix('.').unwrap_or(place);
        match self {
            Self::Leaf => None,
            Self::Map(members) => {
                let fits = |(key, line, below): &'_ (String, u64, Self)| {
                    let rest = rest.strip_prefix(shortened(key).as_str())?;
                    let is_end = rest.is_empty() || rest.starts_with(['.', '[']);
                    is_end.then(|| (rest.len(), below.of(rest).unwrap_or(*line)))
                };
                // A key may have dots itself: the longest one is meant.
                members.iter().filter_map(fits).min_by_key(|(rest, _)| *rest).map(|found| found.1)
            }
            Self::List(items) => {
                let (index, rest) = rest.strip_prefix('[')?.split_once(']')?;
                let (line, below) = items.get(index.parse::<usize>().ok()?)?;
                Some(below.of(rest).unwrap_or(*line))
            }
        }
    }
}

impl From<edit::Lines> for Lines {
    fn from(lines: edit::Lines) -> Self {
        match lines {
            edit::Lines::Leaf => Self::Leaf,
            edit::Lines::Map(members) => {
                let members = members.into_iter();
                Self::Map(members.map(|(key, line, below)| (key, line, below.into())).collect())
            }
            edit::Lines::List(items) => {
                Self::List(items.into_iter().map(|(line, below)| (line, below.into())).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Parts)
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
        while let Some((key, below)) = map.next_entry::<Spanned<String>, Lines>()? {
            members.push((key.value, key.referenced.line(), below));
        }
        Ok(Lines::Map(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lines, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Spanned<Lines>>()? {
            items.push((item.referenced.line(), item.value));
        }
        Ok(Lines::List(items))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Lines, D::Error> {
        Lines::deserialize(deserializer)
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
