//! Sets of scopes (RFC 6749, 3.3), as requests ask for them and answers list them.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The scope that asks for a refresh token (OpenID Connect Core, 11). It is no right at a
/// resource.
pub const OFFLINE_ACCESS: &str = "offline_access";

/// The longest scope that is taken from a server.
const LENGTH_MAX: usize = 512;
/// The largest number of scopes that is taken from a server.
const COUNT_MAX: usize = 500;
/// The longest list of scopes of a client, in bytes.
const TEXT_MAX: usize = 4096;

/// A set of scopes. Their order means nothing.
///
/// Each scope has visible characters only and no quote or backslash: a set can be shown and sent.
/// Texts of servers are read leniently ([`Scopes::parse`]), texts of clients strictly
/// ([`Scopes::read`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Scopes(BTreeSet<String>);

/// The reason why a text is no list of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScopesFault {
    /// The list has more than 4096 bytes.
    #[error("the list of scopes is longer than {TEXT_MAX} bytes")]
    TooLong,
    /// A scope contains a character that no scope may have.
    #[error("a scope has a character other than printable ASCII, or a quote or backslash")]
    BadCharacter,
}

impl Scopes {
    /// Reads scopes that are separated by blanks, as the standard has them. The empty text is the
    /// empty set.
    ///
    /// # Errors
    /// When the text is too long, or has characters that scopes may not have.
    pub fn read(text: &str) -> Result<Self, ScopesFault> {
        if text.len() > TEXT_MAX {
            return Err(ScopesFault::TooLong);
        }
        let names: BTreeSet<_> = text.split(' ').filter(|name| !name.is_empty()).collect();
        match names.iter().all(|name| has_form(name)) {
            true => Ok(Self(names.into_iter().map(str::to_owned).collect())),
            false => Err(ScopesFault::BadCharacter),
        }
    }

    /// Reads a list that is separated by blanks, or by commas as some servers do. Texts that are no
    /// scopes are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let is_scope = |name: &&str| name.len() <= LENGTH_MAX && has_form(name);
        let names = text.split([' ', '\t', '\r', '\n', ',']).filter(is_scope);
        Self(names.take(COUNT_MAX).map(str::to_owned).collect())
    }

    /// Reads a member of a JSON document: a list of texts, or one text. `None` if it is neither.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::parse(text)),
            Value::Array(all) => Some(all.iter().filter_map(Value::as_str).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    /// The scopes of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// The scopes that both sets have.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// The set with one more scope.
    #[must_use]
    pub fn with(mut self, scope: &str) -> Self {
        self.0.extend(has_form(scope).then(|| scope.to_owned()));
        self
    }

    /// The set without a scope.
    #[must_use]
    pub fn without(mut self, scope: &str) -> Self {
        self.0.remove(scope);
        self
    }

    /// True if a scope is in the set.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// True if all scopes of another set are in this one.
    #[must_use]
    pub fn contains_all(&self, other: &Self) -> bool {
        self.0.is_superset(&other.0)
    }

    /// True if the set is empty: requests then have no `scope`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The value of the parameter `scope`: separated by blanks.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            write!(f, "{blank}{scope}")?;
        }
        Ok(())
    }
}

impl<T: AsRef<str>> FromIterator<T> for Scopes {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let mut all = BTreeSet::new();
        for name in names.into_iter().take(COUNT_MAX) {
            all.extend(Self::parse(name.as_ref()).0);
        }
        Self(all)
    }
}

impl From<Vec<String>> for Scopes {
    fn from(names: Vec<String>) -> Self {
        Self(names.into_iter().filter(|name| has_form(name)).collect())
    }
}

impl From<Scopes> for Vec<String> {
    fn from(scopes: Scopes) -> Self {
        scopes.0.into_iter().collect()
    }
}

/// True for a scope-token (RFC 6749, 3.3).
fn has_form(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
    !name.is_empty() && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn oauth_q6_lists_are_split_on_commas_and_blanks() {
        for text in ["a b:c", "a,b:c", "b:c, a", " a  b:c a ", "a\nb:c"] {
            assert_eq!(Scopes::parse(text).to_string(), "a b:c", "{text:?}");
        }
        assert_eq!(Scopes::from_json(&json!(["a,b:c", 1, "a"])).unwrap().to_string(), "a b:c");
        assert_eq!(Scopes::from_json(&json!("a b:c")).unwrap().to_string(), "a b:c");
        assert_eq!(Scopes::from_json(&json!({})), None);
    }

    #[test]
    fn texts_that_are_no_scopes_are_left_out() {
        let read = Scopes::parse("ok \"quoted\" back\\slash größe \u{7f} https://x.example/.all");
        assert_eq!(read.to_string(), "https://x.example/.all ok");
        assert!(Scopes::parse(" , ").is_empty());
        assert!(Scopes::parse(&"x".repeat(LENGTH_MAX + 1)).is_empty());
    }

    #[test]
    fn texts_of_clients_are_read_strictly() {
        let set = Scopes::read("b a  b").unwrap();
        assert_eq!(set.to_string(), "a b");
        assert_eq!(set, Scopes::read("a b").unwrap());
        assert!(set.contains_all(&Scopes::read("a").unwrap()) && !set.contains("c"));
        assert_eq!(set.clone().with("c").common(&set), set);
        assert_eq!(set.clone().without("b").to_string(), "a");
        assert!(Scopes::read("").unwrap().is_empty());
        for bad in ["a\"", "a\\b", "a\nb", "ä", "a\u{7f}"] {
            assert_eq!(Scopes::read(bad), Err(ScopesFault::BadCharacter), "{bad:?}");
        }
        assert_eq!(Scopes::read(&"a".repeat(TEXT_MAX + 1)), Err(ScopesFault::TooLong));
        assert_eq!(Scopes::read("a,b").unwrap().iter().collect::<Vec<_>>(), ["a,b"]);
    }

    proptest! {
        #[test]
        fn a_strict_set_is_read_back(text in "[!#-\\[\\]-~ ]{0,60}") {
            let set = Scopes::read(&text).unwrap();
            prop_assert_eq!(&Scopes::read(&set.to_string()).unwrap(), &set);
            let stored = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(serde_json::from_str::<Scopes>(&stored).unwrap(), set);
        }

        #[test]
        fn a_printed_set_is_read_back(text in "\\PC{0,80}") {
            let read = Scopes::parse(&text);
            prop_assert_eq!(&Scopes::parse(&read.to_string()), &read);
            let stored = serde_json::to_string(&read).unwrap();
            prop_assert_eq!(serde_json::from_str::<Scopes>(&stored).unwrap(), read);
        }

        #[test]
        fn a_union_has_both_sets_and_no_more(one in "[a-d ]{0,9}", other in "[a-d ]{0,9}") {
            let (one, other) = (Scopes::parse(&one), Scopes::parse(&other));
            let both = one.union(&other);
            prop_assert_eq!(&both, &other.union(&one));
            prop_assert_eq!(&both, &both.union(&one));
            prop_assert!(both.contains_all(&one) && both.contains_all(&other));
            prop_assert!(both.iter().all(|name| one.contains(name) || other.contains(name)));
        }
    }
}
