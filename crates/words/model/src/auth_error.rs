//! The pattern of a tool error with which a server refuses a credential.

use serde::{Serialize, Serializer};

/// Lengths of a pattern, in bytes.
const SHORTEST: usize = 3;
const LONGEST: usize = 300;
/// The beginning of a path.
const PATH: &str = "$.";
/// The most names of a path.
const NAMES_MAX: usize = 8;

/// The pattern of a tool error that counts as a refused credential, although the server sends it
/// with HTTP 200: a text, or a member of the result such as `$.structuredContent.code=401`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthErrorPattern(String);

/// The reason why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthErrorFault {
    /// Too short to mean one error, or too long.
    #[error("a pattern has {SHORTEST} to {LONGEST} bytes; write a text of the error")]
    Length,
    /// A path without names, or with an empty one.
    #[error(
        "after `{PATH}` come 1 to {NAMES_MAX} names of members with dots between them; write a \
         path such as `$.structuredContent.code=401`"
    )]
    Path,
}

/// The test that a pattern stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthErrorTest<'a> {
    /// One of the error's texts has this part.
    Text(&'a str),
    /// The error has this member.
    Member {
        /// The names on the way to the member; of a list, the index.
        names: Vec<&'a str>,
        /// The value, as text; any value but null if `None`.
        value: Option<&'a str>,
    },
}

impl AuthErrorPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When the text has an unfit length, or a path has no names.
    pub fn new(text: &str) -> Result<Self, AuthErrorFault> {
        if !(SHORTEST..=LONGEST).contains(&text.len()) {
            return Err(AuthErrorFault::Length);
        }
        let pattern = Self(text.to_owned());
        let is_unfit = match pattern.test() {
            AuthErrorTest::Text(_) => false,
            AuthErrorTest::Member { names, .. } => names.len() > NAMES_MAX || names.contains(&""),
        };
        if is_unfit { Err(AuthErrorFault::Path) } else { Ok(pattern) }
    }

    /// The pattern as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The test that the pattern stands for.
    #[must_use]
    pub fn test(&self) -> AuthErrorTest<'_> {
        let Some(path) = self.0.strip_prefix(PATH) else { return AuthErrorTest::Text(&self.0) };
        let (names, value) = match path.split_once('=') {
            Some((names, value)) => (names, Some(value)),
            None => (path, None),
        };
        AuthErrorTest::Member { names: names.split('.').collect(), value }
    }
}

/// The pattern as it is written.
impl Serialize for AuthErrorPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Q18: a pattern is a text, or a path with a value.
    #[test]
    fn q18_a_pattern_is_a_text_or_a_path() {
        let pattern = |text: &str| AuthErrorPattern::new(text).unwrap();
        assert_eq!(pattern("not logged in").test(), AuthErrorTest::Text("not logged in"));
        let (names, value) = (vec!["structuredContent", "code"], Some("401"));
        let path = "$.structuredContent.code=401";
        assert_eq!(pattern(path).test(), AuthErrorTest::Member { names, value });
        assert_eq!(pattern(path).as_str(), path);
        let (names, value) = (vec!["error"], None);
        assert_eq!(pattern("$.error").test(), AuthErrorTest::Member { names, value });
        for (text, fault) in [
            ("no", AuthErrorFault::Length),
            ("", AuthErrorFault::Length),
            ("$.=", AuthErrorFault::Path),
            ("$..code", AuthErrorFault::Path),
            ("$.a.b.c.d.e.f.g.h.i", AuthErrorFault::Path),
        ] {
            assert_eq!(AuthErrorPattern::new(text), Err(fault), "{text}");
        }
        assert_eq!(AuthErrorPattern::new(&"x".repeat(301)), Err(AuthErrorFault::Length));
    }
}
