//! The one table of the objects inside of `params` that decisions read.
//!
//! What is decided on must be what the server reads (S12). So each of these objects has no key
//! twice, no key that a lenient reader takes for one that is decided on, and members of the types
//! that the protocol names. The envelope, `params` and `_meta` are held to the same by
//! [`narthex_wire::Message::parse`].

use narthex_model::imitates;
use narthex_wire::{
    Message, Raw,
    json::{JsonError, Scanner, decode_string},
};

use crate::Handling;

/// The longest key that a fault names, in characters.
const SHOWN_MAX: usize = 100;

/// One row: a member of `params`, and what decisions read in it.
struct Row {
    handling: Handling,
    member: &'static str,
    fields: &'static [(&'static str, Type)],
}

/// The type of what is decided on. `null` stands for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Flag,
    Text,
    Texts,
}

const ROWS: &[Row] = &[
    Row {
        handling: Handling::Listen,
        member: "notifications",
        fields: &[
            ("resourceSubscriptions", Type::Texts),
            ("taskIds", Type::Texts),
            ("toolsListChanged", Type::Flag),
            ("promptsListChanged", Type::Flag),
            ("resourcesListChanged", Type::Flag),
        ],
    },
    Row {
        handling: Handling::Complete,
        member: "ref",
        fields: &[("type", Type::Text), ("name", Type::Text), ("uri", Type::Text)],
    },
];

/// Why parameters cannot be decided on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecidable {
    /// A member is not of its type.
    #[error("`params.{field}` must be {wanted}")]
    Type {
        /// Its path below `params`.
        field: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A key is there twice, or has NUL in it.
    #[error("`params.{0}` has a key twice, or one with NUL in it; write each key once")]
    Twice(&'static str),
    /// A key can be read as another.
    #[error("`params{within}` has the key `{key}`, which can be read as `{name}`; write `{name}`")]
    Imitation {
        /// The path of the object: empty for `params` itself, else with a dot before it.
        within: String,
        /// The key.
        key: String,
        /// What it can be read as.
        name: &'static str,
    },
}

impl Type {
    fn wanted(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Text => "a string",
            Self::Texts => "a list of strings",
        }
    }

    fn is_of(self, value: Raw<'_>) -> bool {
        match self {
            Self::Flag => value.as_bool().is_some(),
            Self::Text => value.as_str().is_some(),
            Self::Texts => {
                let mut are_texts = true;
                let text = value.as_bytes();
                let array = Scanner::new(text, 0, 0)
                    .array(|span| are_texts &= decode_string(span.of(text)).is_some());
                array.is_ok() && are_texts
            }
        }
    }
}

/// Refuses parameters whose meaning for a decision may differ from that for a server.
///
/// # Errors
/// Names the member of `params` at fault.
pub fn check_decided(handling: Handling, request: &Message) -> Result<(), Undecidable> {
    let Some(row) = ROWS.iter().find(|row| row.handling == handling) else { return Ok(()) };
    if let Some(body) = request.body() {
        let mut keys =
            body.members.iter().filter_map(|one| decode_string(one.key.of(request.bytes())));
        if let Some(key) = keys.find(|key| imitates(key, row.member)) {
            return Err(imitation(String::new(), &key, row.member));
        }
    }
    let within = row.member;
    let object = Undecidable::Type { field: within.to_owned(), wanted: "an object" };
    let members = match request.get(within).filter(|value| value.is_object()) {
        None => return Err(object),
        Some(value) => value.members().map_err(|error| match error {
            JsonError::DuplicateKey { .. } | JsonError::DeceptiveKey { .. } => {
                Undecidable::Twice(within)
            }
            _ => object,
        })?,
    };
    members.iter().try_for_each(|(key, value)| row.check(key, *value))
}

impl Row {
    /// Checks one member of the object.
    fn check(&self, key: &str, value: Raw<'_>) -> Result<(), Undecidable> {
        for (name, kind) in self.fields {
            if imitates(key, name) {
                return Err(imitation(format!(".{}", self.member), key, name));
            }
            if key == *name && value.as_bytes() != b"null" && !kind.is_of(value) {
                let field = format!("{}.{name}", self.member);
                return Err(Undecidable::Type { field, wanted: kind.wanted() });
            }
        }
        Ok(())
    }
}

fn imitation(within: String, key: &str, name: &'static str) -> Undecidable {
    let shown = key.chars().take(SHOWN_MAX);
    let key = shown.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    Undecidable::Imitation { within, key, name }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_wire::Limits;

    use super::*;

    fn checked(handling: Handling, params: &str) -> Result<(), Undecidable> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
        let message = Message::parse(Bytes::from(text), &Limits::default()).unwrap();
        check_decided(handling, &message)
    }

    /// S12: what two readers may read differently is refused in each object of the table.
    #[test]
    fn s12_objects_that_are_decided_on_have_one_meaning() {
        for row in ROWS {
            let of = |members: &str| {
                checked(row.handling, &format!(r#"{{"{}":{{{members}}}}}"#, row.member))
            };
            assert_eq!(of(r#""acme":{"a":1},"other":[]"#), Ok(()));
            for (name, kind) in row.fields {
                let (good, bad) = match kind {
                    Type::Flag => ("true", "1"),
                    Type::Text => (r#""x""#, r#"["x"]"#),
                    Type::Texts => (r#"["x","y"]"#, r#"["x",{}]"#),
                };
                assert_eq!(of(&format!(r#""{name}":{good}"#)), Ok(()));
                assert_eq!(of(&format!(r#""{name}":null"#)), Ok(()));
                for bad in [bad, "{}", "7"] {
                    let refused = of(&format!(r#""{name}":{bad}"#)).unwrap_err();
                    assert!(matches!(refused, Undecidable::Type { .. }), "{name}: {refused}");
                }
                let twice = of(&format!(r#""{name}":null,"{name}":{good}"#)).unwrap_err();
                assert_eq!(twice, Undecidable::Twice(row.member));
                let escaped = format!("\\u{:04x}{}", u32::from(name.as_bytes()[0]), &name[1..]);
                let twice = of(&format!(r#""{name}":null,"{escaped}":{good}"#)).unwrap_err();
                assert_eq!(twice, Undecidable::Twice(row.member));
                let spellings = [
                    name.to_uppercase(),
                    format!(" {name}"),
                    format!("{name}\\t"),
                    format!("{name}\u{a0}"),
                ];
                for spelt in spellings {
                    let refused = of(&format!(r#""{spelt}":{good}"#)).unwrap_err();
                    assert!(matches!(refused, Undecidable::Imitation { .. }), "{spelt}: {refused}");
                }
            }
            for params in [
                "{}".to_owned(),
                format!(r#"{{"{}":[]}}"#, row.member),
                format!(r#"{{"{}":{{}}," {}":{{}}}}"#, row.member, row.member),
            ] {
                // `params` itself is checked by whoever parses it where it names the member.
                let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
                let parsed = Message::parse(Bytes::from(text), &Limits::default());
                let is_refused = parsed.is_err() || checked(row.handling, &params).is_err();
                assert!(is_refused, "{params}");
            }
        }
        assert_eq!(checked(Handling::Tool, r#"{"notifications":7}"#), Ok(()));
    }
}
