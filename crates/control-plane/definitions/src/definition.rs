//! A definition in the form for screening and comparing.

use narthex_model::json::Node;
use sha2::{Digest, Sha256};

/// Maximum size of a definition for screening, in bytes. Ordinary definitions have about one
/// thousand.
pub const DEFINITION_MAX: usize = 256 << 10;

/// One definition of a tool, prompt, template or resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub(crate) key: String,
    pub(crate) node: Node,
}

/// The reason why a definition could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The text has more than [`DEFINITION_MAX`] bytes.
    TooLarge,
    /// The text is no JSON object.
    NoObject,
}

impl Definition {
    /// Reads a definition. `key` is its name; the URI of a resource, or the URI template of a
    /// template.
    ///
    /// # Errors
    /// When the text is too large or no JSON object.
    pub fn read(key: &str, raw: &[u8]) -> Result<Self, Unreadable> {
        if raw.len() > DEFINITION_MAX {
            return Err(Unreadable::TooLarge);
        }
        match Node::parse(raw) {
            Ok(node @ Node::Object(_)) => Ok(Self { key: key.to_owned(), node }),
            Ok(_) | Err(_) => Err(Unreadable::NoObject),
        }
    }

    /// Key by which the definition is listed.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// SHA-256 of the content. Blanks between values and the order of keys do not change it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        digest(&self.node)
    }

    pub(crate) fn members(&self) -> &[(String, Node)] {
        match &self.node {
            Node::Object(members) => members,
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) | Node::List(_) => &[],
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Node> {
        self.members().iter().find(|(key, _)| key == name).map(|(_, node)| node)
    }
}

pub(crate) fn digest(node: &Node) -> [u8; 32] {
    let mut hash = Sha256::new();
    add(&mut hash, node);
    hash.finalize().into()
}

/// Hashes each value with its kind and length, so that no two values have one hash input.
fn add(hash: &mut Sha256, node: &Node) {
    match node {
        Node::Null => hash.update(b"n"),
        Node::Bool(value) => hash.update(if *value { b"t" } else { b"f" }),
        Node::Number(number) => add_text(hash, b'd', &number.to_string()),
        Node::Text(text) => add_text(hash, b's', text),
        Node::List(nodes) => {
            hash.update(b"[");
            nodes.iter().for_each(|node| add(hash, node));
            hash.update(b"]");
        }
        Node::Object(members) => {
            let mut members = members.iter().collect::<Vec<_>>();
            // Stable: for a key that occurs twice, the order is a part of the content.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            hash.update(b"{");
            for (key, node) in members {
                add_text(hash, b'k', key);
                add(hash, node);
            }
            hash.update(b"}");
        }
    }
}

fn add_text(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(raw: &str) -> [u8; 32] {
        Definition::read("x", raw.as_bytes()).unwrap().digest()
    }

    #[test]
    fn s23_a_digest_depends_on_the_json_value_and_not_its_spelling() {
        let digest = digest_of(r#"{"name":"x","inputSchema":{"type":"object","required":["a"]}}"#);
        let same = r#" {"inputSchema": {"required":["\u0061"], "type":"object"}, "name":"x"} "#;
        assert_eq!(digest_of(same), digest);
        let others = [
            r#"{"name":"x","inputSchema":{"type":"object","required":["b"]}}"#,
            r#"{"name":"x","inputSchema":{"type":"object","required":"a"}}"#,
            r#"{"name":"x","inputSchema":{"type":"object","required":["a"]},"a":null}"#,
            r#"{"name":"x","name":"x","inputSchema":{"type":"object","required":["a"]}}"#,
        ];
        for other in others {
            assert_ne!(digest_of(other), digest, "{other}");
        }
        assert_ne!(digest_of(r#"{"a":1,"a":2}"#), digest_of(r#"{"a":2,"a":1}"#));
        assert_ne!(digest_of(r#"{"a":["b","c"]}"#), digest_of(r#"{"a":["bc"]}"#));
    }

    #[test]
    fn s22_an_unreadable_definition_is_refused_with_a_reason() {
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(DEFINITION_MAX));
        assert_eq!(Definition::read("x", large.as_bytes()), Err(Unreadable::TooLarge));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for bad in ["", "[]", "1", "{", "{\"a\":\"\u{0}\"}", &deep] {
            assert_eq!(Definition::read("x", bad.as_bytes()), Err(Unreadable::NoObject), "{bad}");
        }
        assert_eq!(Definition::read("x", b"{\"a\":\"\xff\"}"), Err(Unreadable::NoObject));
    }
}
