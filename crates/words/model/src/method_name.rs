//! Names of methods: which are the protocol's, and which ones of their own servers may be sent.

use std::fmt;

/// The longest name of a notification in an entry, in bytes.
const NAME_MAX: usize = 128;

/// The first words of the protocol's methods, in all revisions and extensions.
const NAMESPACES: [&str; 15] = [
    "completion",
    "elicitation",
    "initialize",
    "logging",
    "notifications",
    "ping",
    "prompts",
    "resources",
    "roots",
    "sampling",
    "server",
    "skills",
    "subscriptions",
    "tasks",
    "tools",
];

/// True if a name is written in visible ASCII characters alone, and has at least one.
#[must_use]
pub fn is_plain_method(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A name as a lenient server may read it: without blanks and control characters, and in small
/// letters by the rules of Unicode.
#[must_use]
pub fn folded_method(name: &str) -> String {
    folded(name).collect()
}

/// True if a lenient reader may take a key for a name that it is not: they differ only by blanks,
/// control characters and the case of letters.
#[must_use]
pub fn imitates(key: &str, name: &str) -> bool {
    key != name && folded(key).eq(folded(name))
}

fn folded(name: &str) -> impl Iterator<Item = char> {
    let kept = name.chars().filter(|one| !one.is_whitespace() && !one.is_control());
    // Some letters have a small form only by way of their capital: `ſ` is `S`, and so `s`.
    kept.flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// True if a name begins with a word of the protocol, in any case and with blanks around it.
#[must_use]
pub fn is_protocol_method(name: &str) -> bool {
    let folded = folded_method(name);
    let first = folded.split('/').next().unwrap_or_default();
    NAMESPACES.contains(&first)
}

/// The name of a notification that a server knows and the protocol does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationName(Box<str>);

/// Why a text is no [`NotificationName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotificationNameError {
    /// The name is empty, too long, or has other characters than visible ASCII.
    #[error(
        "`{0}` is not a name of a notification; write 1 to {NAME_MAX} visible ASCII characters, \
         such as `acme/changed`"
    )]
    Form(String),
    /// The name begins like a method of the protocol.
    #[error(
        "`{0}` belongs to the protocol and cannot be allowed; notifications that begin with \
         `notifications/` are sent without being listed, so list names of the server's own, such \
         as `acme/changed`"
    )]
    Protocol(String),
}

impl NotificationName {
    /// Takes the name exactly as clients send it.
    ///
    /// # Errors
    /// When it is no plain name of at most 128 bytes, or one of the protocol's.
    pub fn new(text: &str) -> Result<Self, NotificationNameError> {
        let shown = || text.chars().take(NAME_MAX).collect();
        if !is_plain_method(text) || text.len() > NAME_MAX {
            return Err(NotificationNameError::Form(shown()));
        }
        if is_protocol_method(text) {
            return Err(NotificationNameError::Protocol(shown()));
        }
        Ok(Self(text.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NotificationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for NotificationName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12: spellings that a lenient server reads as one of the protocol's names are found.
    #[test]
    fn s12_a_lenient_spelling_is_folded_to_the_plain_method_name() {
        for spelling in [
            "tools/call",
            "Tools/Call",
            " tools/call",
            "tools/call\t",
            "toolſ/call",
            "tools/\u{a0}call",
        ] {
            assert_eq!(folded_method(spelling), "tools/call", "{spelling:?}");
            assert!(is_protocol_method(spelling), "{spelling:?}");
        }
        // The Kelvin sign.
        assert_eq!(folded_method("tas\u{212a}s/get"), "tasks/get");
        assert!(!is_protocol_method("acme/tools/call") && !is_protocol_method("toolset/list"));
        assert!(is_plain_method("acme/x$-_.") && !is_plain_method("") && !is_plain_method("a b"));
        assert!(!is_plain_method("toolſ/call"));
    }

    /// S12: an entry cannot let a request of the protocol through as a notification.
    #[test]
    fn s12_only_names_outside_of_the_protocol_can_be_listed() {
        assert_eq!(NotificationName::new("acme/changed").unwrap().as_str(), "acme/changed");
        let longest = "a".repeat(NAME_MAX);
        assert!(NotificationName::new(&longest).is_ok());
        for bad in ["", "acme changed", "acmé", &format!("{longest}a")] {
            let error = NotificationName::new(bad).unwrap_err();
            assert!(matches!(error, NotificationNameError::Form(_)), "{bad}: {error}");
        }
        for bad in ["tools/call", "Tools/x", "ping", "initialize", "notifications/acme"] {
            let error = NotificationName::new(bad).unwrap_err();
            assert!(matches!(error, NotificationNameError::Protocol(_)), "{bad}: {error}");
        }
    }
}
