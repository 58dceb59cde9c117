//! The words of the vault: names and versions of secrets, references to them, sealed values.

use std::{
    borrow::Borrow, collections::BTreeSet, fmt, num::NonZeroU64, sync::Arc, time::SystemTime,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Alias, WorkspaceId};

/// The longest name.
const NAME_MAX: usize = 64;
/// Length of a name with room for a number behind it.
const NUMBERED_MAX: usize = 58;
/// Number of digits of the id of a key.
const KEY_ID_DIGITS: usize = 16;
/// The only member of a reference that is written as an object.
const MEMBER: &str = "$secret";

/// The name of a secret, unique in its workspace: `^[A-Z_][A-Z0-9_]{0,63}$` (X-M20). Cheap to
/// clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(Arc<str>);

/// A text that is no name of a secret. It is not repeated: it may be the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a name of a secret: use 1 to 64 of A-Z, 0-9 and `_`, and do not start with a \
     digit; for example LINEAR_API_KEY"
)]
pub struct SecretNameError;

impl SecretName {
    /// The names in `[{"name": "KEY", "is_set": true}]`, as exports of a workspace have it, and the
    /// places of what is none, such as `secrets[1]`. A value has no place there.
    #[must_use]
    pub fn listed(list: Option<&Value>) -> (BTreeSet<Self>, Vec<String>) {
        let items = match list {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(items)) => items,
            Some(_) => return (BTreeSet::new(), vec!["secrets[0]".to_owned()]),
        };
        let name = |item: &Value| {
            let fields = item.as_object()?;
            let is_known = fields.keys().all(|key| matches!(key.as_str(), "name" | "is_set"));
            let is_flag = fields.get("is_set").is_none_or(Value::is_boolean);
            Self::new(fields.get("name")?.as_str()?).ok().filter(|_| is_known && is_flag)
        };
        let (mut found, mut wrong) = (BTreeSet::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match name(item) {
                Some(name) => {
                    found.insert(name);
                }
                None => wrong.push(format!("secrets[{index}]")),
            }
        }
        (found, wrong)
    }

    /// Checks `text` against the rule for names.
    ///
    /// # Errors
    /// When the rule is broken.
    pub fn new(text: &str) -> Result<Self, SecretNameError> {
        let bytes = text.as_bytes();
        let is_valid = bytes.len() <= NAME_MAX
            && bytes.first().is_some_and(|first| !first.is_ascii_digit())
            && bytes.iter().all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
        if is_valid { Ok(Self(text.into())) } else { Err(SecretNameError) }
    }

    /// A name for the secret of a server: that of the server, and that of the variable or header.
    /// Where it is taken, a number comes behind it.
    #[must_use]
    pub fn for_server(server: &Alias, key: &str, is_taken: impl Fn(&str) -> bool) -> Self {
        let word = |text: &str| {
            let upper = text.to_ascii_uppercase();
            upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
        };
        let (server, key) = (word(server.as_str()), word(key));
        let has_server =
            key.strip_prefix(&server).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        let mut begin = if has_server { key } else { format!("{server}_{key}") };
        begin.truncate(NUMBERED_MAX);
        let mut name = begin.clone();
        for number in 2_u64.. {
            if !is_taken(&name) {
                break;
            }
            name = format!("{begin}_{number}");
        }
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SecretName {
    type Error = SecretNameError;

    fn try_from(text: String) -> Result<Self, SecretNameError> {
        Self::new(&text)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.as_str().to_owned()
    }
}

impl Borrow<str> for SecretName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretName({})", self.0)
    }
}

/// Counts the values that a name has had, from 1 on. No number is given twice, not even after the
/// secret was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretVersion(NonZeroU64);

impl SecretVersion {
    /// The first value of a name.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// The version of this number; `None` for 0.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// The version's number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// The next version.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for SecretVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a master key: 16 hexadecimal digits that are made of the key and do not reveal it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// The id that is written so; `None` for any other text.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == KEY_ID_DIGITS && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({})", self.0)
    }
}

/// A reference to a secret of its own workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecretReference {
    /// The name of the secret.
    pub name: SecretName,
    /// The version of the value; `None` is the newest.
    pub version: Option<SecretVersion>,
}

/// The error for a text that is no reference to a secret. The text is not repeated: it may be the
/// secret itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "write a secret as `${{NAME}}` or {{\"$secret\": \"NAME\"}}, with nothing around it; NAME is 1 \
     to 64 of A-Z, 0-9 and `_`, and does not start with a digit"
)]
pub struct SecretReferenceError;

impl SecretReference {
    /// The newest value of a name.
    #[must_use]
    pub fn newest(name: SecretName) -> Self {
        Self { name, version: None }
    }

    /// One value of a name, whatever follows it.
    #[must_use]
    pub fn pinned(name: SecretName, version: SecretVersion) -> Self {
        Self { name, version: Some(version) }
    }

    /// Reads `${NAME}`, which must be the whole text (X-M33, X-M34).
    ///
    /// # Errors
    /// For any other text.
    pub fn parse(text: &str) -> Result<Self, SecretReferenceError> {
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        Self::of_name(name)
    }

    /// Reads either way of writing a reference: `"${NAME}"` or `{"$secret": "NAME"}` (D7).
    ///
    /// # Errors
    /// For anything else.
    pub fn from_json(value: &Value) -> Result<Self, SecretReferenceError> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Object(members) if members.len() == 1 => {
                Self::of_name(members.get(MEMBER).and_then(Value::as_str))
            }
            Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_) => Err(SecretReferenceError),
        }
    }

    fn of_name(name: Option<&str>) -> Result<Self, SecretReferenceError> {
        let name = name.and_then(|name| SecretName::new(name).ok());
        name.map(Self::newest).ok_or(SecretReferenceError)
    }
}

/// One value of a secret as it is stored: sealed under a key, for one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The place: it opens nowhere else.
    pub workspace: WorkspaceId,
    pub name: SecretName,
    pub version: SecretVersion,
    /// Under which key.
    pub key: KeyId,
    /// Nonce, ciphertext and tag, in base64.
    pub sealed: String,
}

/// The facts about a secret that may be shown: all but its values (X-M22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSummary {
    pub name: SecretName,
    pub created_at: SystemTime,
    /// When it was set or cleared last.
    pub updated_at: SystemTime,
    /// The actor of the last change.
    pub updated_by: String,
    /// The stored values, the oldest first; none once it is cleared.
    pub versions: Vec<VersionSummary>,
}

/// The facts about one value that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionSummary {
    pub version: SecretVersion,
    pub created_at: SystemTime,
    /// The key that it is sealed with, where it is kept sealed.
    pub key: Option<KeyId>,
}

impl SecretSummary {
    /// True if the secret has a value.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.versions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_say_whose_secrets_they_are() {
        let name = |server: &str, key: &str| {
            let server = Alias::new(server).unwrap();
            let name = SecretName::for_server(&server, key, |name| name == "NOTES_KEY");
            assert!(SecretName::new(name.as_str()).is_ok(), "{name:?}");
            name.as_str().to_owned()
        };
        assert_eq!(name("git-hub", "Authorization"), "GIT_HUB_AUTHORIZATION");
        assert_eq!(name("github", "GITHUB_TOKEN"), "GITHUB_TOKEN");
        assert_eq!(name("git", "GITHUB_TOKEN"), "GIT_GITHUB_TOKEN");
        assert_eq!(name("notes", "KEY"), "NOTES_KEY_2");
        assert_eq!(name("weather", "API-Key"), "WEATHER_API_KEY");
        assert_eq!(name("brave-search", "BRAVE_SEARCH_KEY"), "BRAVE_SEARCH_KEY");
        assert_eq!(name("a", &"é".repeat(80)).len(), NUMBERED_MAX);
        assert_eq!(name(&"a".repeat(64), &"B".repeat(64)).len(), NUMBERED_MAX);
    }

    /// X-M20, X-D8: one rule for names, also inside references.
    #[test]
    fn x_m20_names_of_secrets() {
        for good in ["A", "_", "LINEAR_API_KEY", "_9", &"A".repeat(64)] {
            assert_eq!(SecretName::new(good).unwrap().as_str(), good);
            let reference = SecretReference::parse(&format!("${{{good}}}")).unwrap();
            assert_eq!((reference.name.as_str(), reference.version), (good, None));
        }
        for bad in ["", "a", "9A", "A-B", "A B", "Ä", "A\0", "A\n", &"A".repeat(65)] {
            assert_eq!(SecretName::new(bad), Err(SecretNameError), "{bad}");
            let reference = SecretReference::parse(&format!("${{{bad}}}"));
            assert_eq!(reference, Err(SecretReferenceError), "{bad}");
        }
    }

    /// X-M33, X-M34, D7: the whole value is the reference.
    #[test]
    fn x_m33_a_secret_reference_is_the_whole_value() {
        for bad in ["", "A", "$A", "${A", "x${A}", "${A}x", " ${A}", "${A}${B}", "${scope.a}"] {
            assert_eq!(SecretReference::parse(bad), Err(SecretReferenceError), "{bad}");
        }
        let name = |value| SecretReference::from_json(&value).map(|found| found.name.to_string());
        assert_eq!(name(json!({"$secret": "A"})).as_deref(), Ok("A"));
        assert_eq!(name(json!("${A}")).as_deref(), Ok("A"));
        let bad = [
            json!({"$secret": "${A}"}),
            json!({"$secret": "A", "x": 1}),
            json!({"secret": "A"}),
            json!({"$secret": 1}),
            json!({}),
            json!(["${A}"]),
            json!(null),
        ];
        for bad in bad {
            assert_eq!(name(bad.clone()), Err(SecretReferenceError), "{bad}");
        }
    }

    /// S27: what is typed in the wrong place is often the secret.
    #[test]
    fn s27_refused_names_are_not_repeated() {
        let name = SecretName::new("sk-hunter2").unwrap_err();
        let reference = SecretReference::parse("sk-hunter2").unwrap_err();
        assert!(!format!("{name} {name:?} {reference} {reference:?}").contains("hunter2"));
    }

    #[test]
    fn versions_count_from_one() {
        assert_eq!(SecretVersion::new(0), None);
        assert_eq!(SecretVersion::new(1), Some(SecretVersion::FIRST));
        assert_eq!(SecretVersion::FIRST.next().get(), 2);
    }

    #[test]
    fn ids_of_keys() {
        assert_eq!(KeyId::new("0123456789abcdef").unwrap().as_str(), "0123456789abcdef");
        for bad in
            ["", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "x123456789abcdef"]
        {
            assert_eq!(KeyId::new(bad), None, "{bad}");
        }
    }
}
