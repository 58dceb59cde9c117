//! The alias under which a server is attached (decision D1).

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The longest alias.
const ALIAS_MAX: usize = 64;
/// The alias of the built-in server, which every run has.
const BUILT_IN: &str = "narthex";
/// The words that addresses such as `/mcp/p/work` have in the place of an alias.
const PARTS_OF_ADDRESSES: [&str; 2] = ["p", "w"];

/// A name matching `^[a-z][a-z0-9_-]{0,63}$` without `__`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Alias(Arc<str>);

/// Why a text is no alias.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    /// The text breaks the rule.
    #[error(
        "`{text}` is not a valid server name: use 1 to 64 of a-z, 0-9, `_` and `-`, start with a \
         letter, and no `__`; for example `{suggestion}`"
    )]
    Invalid {
        /// The given text, shortened.
        text: String,
        /// A valid name.
        suggestion: Alias,
    },
    /// Another server has it.
    #[error(
        "`{BUILT_IN}` is the name of the built-in server, which every run has; choose another, \
         for example `{BUILT_IN}-2`"
    )]
    Reserved,
    /// The text is a part of addresses.
    #[error(
        "`{0}` is a part of addresses such as `/mcp/p/work`; choose another name, for example \
         `{0}-server`"
    )]
    PartOfAddresses(&'static str),
}

impl Alias {
    /// Checks `text` against the alias rule.
    ///
    /// # Errors
    /// When the rule is broken; the message carries a name that would do.
    pub fn new(text: &str) -> Result<Self, AliasError> {
        if is_valid(text) {
            return Ok(Self(text.into()));
        }
        Err(AliasError::Invalid {
            text: text.chars().take(100).collect(),
            suggestion: Self::suggest(text),
        })
    }

    /// As [`Alias::new`], for a server that is attached or configured: the built-in server's alias
    /// is taken, and so are the words of addresses.
    ///
    /// # Errors
    /// When the rule is broken, or the alias is reserved.
    pub fn of_server(text: &str) -> Result<Self, AliasError> {
        match Self::new(text)? {
            alias if alias.is_built_in() => Err(AliasError::Reserved),
            alias => match PARTS_OF_ADDRESSES.into_iter().find(|part| *part == alias.as_str()) {
                Some(part) => Err(AliasError::PartOfAddresses(part)),
                None => Ok(alias),
            },
        }
    }

    /// The alias of the built-in server.
    #[must_use]
    pub fn built_in() -> Self {
        Self(BUILT_IN.into())
    }

    /// True if the alias is the built-in server's.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.as_str() == BUILT_IN
    }

    /// The alias closest to `text`: what a name from another program's file becomes.
    #[must_use]
    pub fn suggest(text: &str) -> Self {
        Self(suggest(text).into())
    }

    /// The alias as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= ALIAS_MAX
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        && !text.contains("__")
}

fn suggest(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' { c } else { '-' };
        let repeated = matches!(c, '_' | '-') && name.ends_with(['_', '-']);
        let leading = name.is_empty() && !c.is_ascii_lowercase();
        if !repeated && !leading && name.len() < ALIAS_MAX {
            name.push(c);
        }
    }
    let name = name.trim_end_matches(['_', '-']);
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

impl TryFrom<String> for Alias {
    type Error = AliasError;

    fn try_from(text: String) -> Result<Self, AliasError> {
        Self::new(&text)
    }
}

impl From<Alias> for String {
    fn from(alias: Alias) -> Self {
        alias.0.as_ref().to_owned()
    }
}

impl std::str::FromStr for Alias {
    type Err = AliasError;

    fn from_str(text: &str) -> Result<Self, AliasError> {
        Self::new(text)
    }
}

impl Borrow<str> for Alias {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alias({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D1: what an alias may look like.
    #[test]
    fn d1_alias_rule() {
        for good in ["a", "git", "my-server_2", &"a".repeat(64)] {
            assert!(Alias::new(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "a__b", "a b", "a.b", "-a", &"a".repeat(65), "ä"] {
            let error = Alias::new(bad).unwrap_err();
            assert!(matches!(&error, AliasError::Invalid { text, .. } if text == bad), "{error}");
        }
    }

    #[test]
    fn suggestions_are_valid_themselves() {
        for bad in ["", "My Server", "1a", "a__b", "__", "ä.ö", "A.B-C", &"x.".repeat(90)] {
            let AliasError::Invalid { suggestion, .. } = Alias::new(bad).unwrap_err() else {
                panic!("{bad}");
            };
            assert!(is_valid(suggestion.as_str()), "{bad} -> {suggestion}");
            assert_eq!(Alias::suggest(bad), suggestion);
        }
    }

    /// X-M1: no other server takes the name of the built-in one, and the error proposes another
    /// name.
    #[test]
    fn x_m1_the_name_of_the_built_in_server_is_reserved() {
        let error = Alias::of_server("narthex").unwrap_err();
        assert_eq!(error, AliasError::Reserved);
        assert!(error.to_string().contains("choose another, for example `narthex-2`"), "{error}");
        for free in ["narthex-2", "git", "p-server", "pp"] {
            assert_eq!(Alias::of_server(free).unwrap().as_str(), free);
        }
        assert!(Alias::built_in().is_built_in());
        assert_eq!(Alias::new("narthex").unwrap(), Alias::built_in());
    }

    /// P3: no server takes the place of a part of an address.
    #[test]
    fn p3_parts_of_addresses_are_no_names_of_servers() {
        for part in ["p", "w"] {
            let error = Alias::of_server(part).unwrap_err();
            assert_eq!(error, AliasError::PartOfAddresses(part));
            assert!(error.to_string().contains(&format!("for example `{part}-server`")), "{error}");
            assert!(Alias::new(part).is_ok(), "rows of earlier configurations can be named");
        }
    }
}
