//! The names under which a workspace keeps its objects, and by which they refer to each other.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Alias, RunId, SecretName, WorkspaceId};

/// The longest name of any kind.
const NAME_MAX: usize = 64;

/// Why a text is no name of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind}: {rule}")]
pub struct NameError {
    text: String,
    kind: &'static str,
    rule: &'static str,
}

/// A checked name, cheap to clone: its type, what it is called, its rule in words, and as a test.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $is_valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` against the rule.
            ///
            /// # Errors
            /// When the rule is broken; the message says what it is.
            pub fn new(text: &str) -> Result<Self, NameError> {
                let is_valid: fn(&str) -> bool = $is_valid;
                if is_valid(text) {
                    return Ok(Self(text.into()));
                }
                let text = text.chars().take(100).collect();
                Err(NameError { text, kind: $kind, rule: $rule })
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

name! {
    /// A server's id in the catalog of its workspace, which never changes. Follows the rule of
    /// [`Alias`], as the id is the alias where none is given.
    ServerId,
    "server id",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, start with a letter, and no `__`",
    |text| Alias::new(text).is_ok()
}

name! {
    /// An agent's name, unique in its workspace. A UUID will do.
    AgentName,
    "agent name",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, and start with a letter or digit",
    is_object_name
}

name! {
    /// The name of something that carries runs out, as the settings of a daemon have it.
    ExecutorName,
    "executor",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, and start with a letter or digit",
    is_object_name
}

name! {
    /// A capability's name, unique in its workspace.
    CapabilityName,
    "capability name",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, and start with a letter or digit",
    is_object_name
}

name! {
    /// The name of a profile of the live configuration. Follows the rule of [`Alias`], as it is a
    /// part of addresses and of names of sockets.
    ProfileName,
    "profile name",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, start with a letter, and no `__`",
    |text| Alias::new(text).is_ok()
}

name! {
    /// The name of a variable in an agent's environment. Follows the rule of [`SecretName`]
    /// (X-E59).
    EnvName,
    "variable",
    "use 1 to 64 of A-Z, 0-9 and `_`, and do not start with a digit; for example GITHUB_TOKEN",
    |text| SecretName::new(text).is_ok()
}

name! {
    /// The name of a channel or a webhook, unique among those of its workspace.
    ChannelName,
    "name",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, and start with a letter or digit",
    is_object_name
}

name! {
    /// The id of a preview environment, unique in its workspace.
    PreviewId,
    "id of a preview environment",
    "use 1 to 64 of a-z, 0-9, `_` and `-`, and start with a letter or digit",
    is_object_name
}

name! {
    /// The permission that a tool requires, such as `linear.write` (X-M18).
    ToolScope,
    "tool scope",
    "use at least two words of a-z, 0-9, `_` and `-` with `.` between, each starting with a \
     letter, and at most 128 characters",
    |text| {
        let is_word = |word: &str| {
            word.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
                && word.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        };
        text.len() <= 2 * NAME_MAX && text.contains('.') && text.split('.').all(is_word)
    }
}

name! {
    /// The id of a human or a service, which never changes.
    PrincipalId,
    "principal id",
    "it is `prn_` with 16 of 0-9 and a-f",
    |text| is_id(text, "prn_", 16)
}

impl PrincipalId {
    /// The name of [`Self::local_admin`] for people, which no account can have.
    pub const LOCAL_ADMIN_NAME: &str = "admin";

    /// The fixed id of the bearer of this machine's operator token: the user who drives the run of
    /// the daemon itself. It has no row, and no other principal ever gets it.
    #[must_use]
    pub fn local_admin() -> Self {
        Self::new("prn_0000000000000000").expect("it follows the rule")
    }
}

name! {
    /// The id of a service's token; no secret.
    ServiceTokenId,
    "token id",
    "it is `tok_` with 16 of 0-9 and a-f",
    |text| is_id(text, "tok_", 16)
}

name! {
    /// The id of a registered MCP client; no secret.
    McpClientId,
    "client id",
    "it is `cli_` with 16 of 0-9 and a-f",
    |text| is_id(text, "cli_", 16)
}

name! {
    /// The name of a human, such as `ada` or `ada@example.com`, or of a service or an MCP
    /// client with its workspace in front: `team/ci`. Unique among all.
    PrincipalName,
    "name",
    "use 1 to 128 of a-z, 0-9 and `._@+-`, and start with a letter or digit; a service has its \
     workspace and `/` in front",
    |text| {
        let is_name = |name: &str| {
            name.len() <= 2 * NAME_MAX
                && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                && name.bytes().all(|b| {
                    matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'@' | b'+' | b'-')
                })
        };
        match text.split_once('/') {
            Some((workspace, name)) => WorkspaceId::new(workspace).is_ok() && is_name(name),
            None => is_name(text),
        }
    }
}

/// The names of the local admin token and the daemon in records of changes.
const RESERVED: [&str; 3] = ["admin", "narthex", "local"];

impl PrincipalName {
    /// The name of a service or an MCP client of a workspace.
    ///
    /// # Errors
    /// When `name` is none that they can have.
    pub fn of_service(workspace: &WorkspaceId, name: &str) -> Result<Self, NameError> {
        Self::new(&format!("{workspace}/{name}"))
    }

    /// The reason why no human may have this name, and the remedy: rows show only the name of the
    /// actor who changed them.
    #[must_use]
    pub fn unfit_for_humans(&self) -> Option<(&'static str, &'static str)> {
        if self.workspace().is_some() {
            return Some(("this is the name of a service", "leave `/` out"));
        }
        let name = self.as_str();
        let is_id = PrincipalId::new(name).is_ok() || RunId::parse(name).is_some();
        (is_id || RESERVED.contains(&name))
            .then_some(("this word has another meaning here", "choose another"))
    }

    /// The workspace in front of the name: `None` in the names of humans.
    #[must_use]
    pub fn workspace(&self) -> Option<&str> {
        Some(self.as_str().split_once('/')?.0)
    }
}

fn is_id(text: &str, prefix: &str, digits: usize) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| {
        rest.len() == digits && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_object_name(text: &str) -> bool {
    text.len() <= NAME_MAX
        && text.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O40, X-E1: what the id of a server may be, also where it comes in as a path.
    #[test]
    fn o40_server_ids() {
        for good in ["docs", "context-store", "neo4j", "a_b"] {
            assert!(ServerId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "../evil", "a__b", "Docs", "1a", "a/b", "a.b", &"a".repeat(65)] {
            let error = ServerId::new(bad).unwrap_err();
            assert_eq!(error.kind, "server id", "{error}");
        }
    }

    #[test]
    fn agents_and_capabilities_may_be_uuids() {
        for good in ["reader", "0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f", "a_b"] {
            assert!(AgentName::new(good).is_ok() && CapabilityName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a/b", "..", &"a".repeat(65)] {
            let errors = (AgentName::new(bad).unwrap_err(), CapabilityName::new(bad).unwrap_err());
            assert_eq!((errors.0.kind, errors.1.kind), ("agent name", "capability name"), "{bad}");
        }
    }

    /// X-E74, X-M18: a tool scope is a dotted name.
    #[test]
    fn x_e74_tool_scopes() {
        for good in ["linear.write", "a.b.c", "jira-cloud.read_all2"] {
            assert!(ToolScope::new(good).is_ok(), "{good}");
        }
        for bad in ["", "linear", ".write", "linear.", "Linear.write", "a..b", "a b.c"] {
            let error = ToolScope::new(bad).unwrap_err().to_string();
            assert!(error.contains("is not a valid tool scope: use at least two words"), "{error}");
        }
    }

    #[test]
    fn names_of_services_begin_with_their_workspace() {
        for good in ["ada", "ada.l+x@example.com", "0", "team/ci", "a-1/a.b"] {
            assert!(PrincipalName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "Ada", "-a", "@a", "a b", "a/b/c", "/ci", "team/", "Team/ci", "a\u{e4}"] {
            let error = PrincipalName::new(bad).unwrap_err().to_string();
            assert!(error.contains("use 1 to 128 of a-z, 0-9 and `._@+-`"), "{error}");
        }
        let name = PrincipalName::of_service(&WorkspaceId::default(), "ci").unwrap();
        assert_eq!((name.as_str(), name.workspace()), ("default/ci", Some("default")));
        let error = PrincipalName::of_service(&WorkspaceId::default(), "a/b").unwrap_err();
        assert_eq!((error.text.as_str(), error.kind), ("default/a/b", "name"));
    }

    /// X-M63: no human is called like another kind of actor, under any way of naming.
    #[test]
    fn x_m63_a_human_cannot_have_the_name_of_another_kind_of_actor() {
        let unfit = |name: &str| PrincipalName::new(name).unwrap().unfit_for_humans();
        let ids = ["run_0a1b2c3d4e5f", "prn_0011223344556677"];
        for name in ids.into_iter().chain(["admin", "narthex", "local", "team/ci"]) {
            assert!(unfit(name).is_some(), "{name}");
        }
        for name in ["ada", "ada@corp.example", "administrator", "run_", "prn_x"] {
            assert_eq!(unfit(name), None, "{name}");
        }
    }

    #[test]
    fn names_are_checked_when_they_are_read() {
        assert!(serde_json::from_str::<AgentName>("\"a\"").is_ok());
        let error = serde_json::from_str::<AgentName>("\"A\"").unwrap_err().to_string();
        assert!(error.contains("a-z"), "{error}");
    }
}
