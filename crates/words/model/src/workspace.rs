//! The id of a workspace, the tenant that owns everything else.

use std::{fmt, sync::Arc};

/// The longest id.
const ID_MAX: usize = 64;

/// A name matching `^[a-z0-9][a-z0-9_-]{0,63}$`, fit for URLs. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId(Arc<str>);

/// Why a text is no id of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a valid workspace id: use 1 to 64 of a-z, 0-9, `_` and `-`, and start with a \
     letter or digit"
)]
pub struct WorkspaceIdError {
    text: String,
}

impl WorkspaceId {
    /// Checks `text` against the rule for ids.
    ///
    /// # Errors
    /// When the rule is broken.
    pub fn new(text: &str) -> Result<Self, WorkspaceIdError> {
        let bytes = text.as_bytes();
        let is_valid = bytes.len() <= ID_MAX
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        if is_valid {
            Ok(Self(text.into()))
        } else {
            Err(WorkspaceIdError { text: text.chars().take(100).collect() })
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for WorkspaceId {
    /// The workspace that exists from the start.
    fn default() -> Self {
        Self("default".into())
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkspaceId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_into_urls() {
        let uuid = "0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f";
        for good in ["a", "team-1", "1", uuid, &"a".repeat(64), WorkspaceId::default().as_str()] {
            assert_eq!(WorkspaceId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "A", "-a", "_a", "a/b", "a b", "ä", "a\0", &"a".repeat(65)] {
            assert_eq!(WorkspaceId::new(bad), Err(WorkspaceIdError { text: bad.to_owned() }));
        }
    }
}
