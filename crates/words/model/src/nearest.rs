//! Proposes the known name that a misspelt one was meant to be, and reports unknown keys.

use crate::json::shortened;

/// Longer words are no misspellings, and measuring them takes time.
const WORD_MAX: usize = 80;

/// A beginning of a name has at least so many letters.
const BEGINNING_MIN: usize = 4;

/// A part of a name has at least so many bytes.
const PART_MIN: usize = 3;

/// Maximum number of names that are proposed at once.
const NEAR_MAX: usize = 5;

/// Words of other programs, each with ours for the same thing.
const SYNONYMS: [(&str, &str); 20] = [
    ("type", "transport"),
    ("transportType", "transport"),
    ("transport_type", "transport"),
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("endpoint", "url"),
    ("uri", "url"),
    ("arguments", "args"),
    ("environment", "env"),
    ("workingDirectory", "cwd"),
    ("request_timeout", "timeoutMs"),
    ("mcp_servers", "mcpServers"),
    ("includeTools", "tools"),
    ("excludeTools", "tools"),
    ("allowedTools", "tools"),
    ("disabledTools", "tools"),
    ("enabled_tools", "tools"),
    ("disabled_tools", "tools"),
    ("apiKey", "key"),
    ("prefix", "valuePrefix"),
];

/// A key that its reader does not accept. Every reader reports one in these words.
///
/// ```
/// # use narthex_model::UnknownKey;
/// let unknown = UnknownKey::new("comand", &["command", "url"]);
/// assert_eq!(unknown.to_string(), "`comand` is not known here; did you mean `command`?");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    key: String,
    meant: Option<String>,
    known: Vec<String>,
}

impl UnknownKey {
    /// The fault of `key` where a reader accepts `known` alone.
    #[must_use]
    pub fn new(key: &str, known: &[&str]) -> Self {
        let synonym = SYNONYMS.iter().find(|(other, _)| *other == key).map(|(_, ours)| *ours);
        let meant = known
            .iter()
            .copied()
            .find(|name| Some(*name) == synonym)
            .or_else(|| nearest(key, known.iter().copied()))
            .or_else(|| beginning_so(key, known));
        Self {
            key: shortened(key),
            meant: meant.map(str::to_owned),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// The accepted key that was probably meant. `None` if none is near.
    #[must_use]
    pub fn meant(&self) -> Option<&str> {
        self.meant.as_deref()
    }

    /// The fault, without the remedy.
    #[must_use]
    pub fn message(&self) -> String {
        format!("`{}` is not known here", self.key)
    }

    /// The key that was probably meant, or else all that are accepted.
    #[must_use]
    pub fn remedy(&self) -> String {
        match (&self.meant, self.known.as_slice()) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, []) => "remove it".to_owned(),
            (None, known) => format!("remove it; the keys here are `{}`", known.join("`, `")),
        }
    }
}

impl std::fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.message(), self.remedy())
    }
}

/// The shortest of `known` that begins with `word`.
fn beginning_so<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.chars().count() < BEGINNING_MIN {
        return None;
    }
    let word = word.to_lowercase();
    let begins = |name: &&&str| name.to_lowercase().starts_with(&word);
    known.iter().filter(begins).min_by_key(|name| name.len()).copied()
}

/// The nearest of `known` names, or `None` if none is near: one letter in four may differ, and one
/// more. Two letters that changed places count as one that differs.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > WORD_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let known = known.into_iter().filter(|name| name.len() <= 2 * WORD_MAX);
    let close = |name: &str| strsim::damerau_levenshtein(&word, &name.to_lowercase());
    let (name, distance) = known.map(|name| (name, close(name))).min_by_key(|(_, d)| *d)?;
    (distance <= 1 + name.len() / 4 && distance < name.len()).then_some(name)
}

/// At most five of `known` names that `word` may mean, best first: names that contain it or
/// are contained in it, for a part of a name is what people remember, then near ones as in
/// [`nearest`].
#[must_use]
pub fn near<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let wanted = word.to_lowercase();
    let rated = known.into_iter().filter_map(|name| {
        let lower = name.to_lowercase();
        let is_part = |one: &str, whole: &str| one.len() >= PART_MIN && whole.contains(one);
        if is_part(&wanted, &lower) || is_part(&lower, &wanted) {
            return Some((0, name));
        }
        nearest(word, [name])?;
        Some((strsim::damerau_levenshtein(&wanted, &lower), name))
    });
    let mut rated: Vec<_> = rated.collect();
    rated.sort_by_key(|(distance, _)| *distance);
    rated.into_iter().map(|(_, name)| name).take(NEAR_MAX).collect()
}

/// The question "did you mean `NAME`?" with the nearest of `known` names. `None` if none is near.
#[must_use]
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|name| format!("did you mean `{name}`?"))
}

/// The question of [`did_you_mean`] after a semicolon, for the end of a sentence. Empty if no name
/// is near.
#[must_use]
pub fn meant_hint<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    did_you_mean(word, known).map(|question| format!("; {question}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_nearest_known_name() {
        let known = ["delete_user", "list_users", "echo"];
        for (word, meant) in [
            ("delete_usr", Some("delete_user")),
            ("Echo", Some("echo")),
            ("ehco", Some("echo")),
            ("remove_everything", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(WORD_MAX + 1), known), None);
        assert_eq!(did_you_mean("ehco", known).as_deref(), Some("did you mean `echo`?"));
        assert_eq!(meant_hint("ehco", known), "; did you mean `echo`?");
        assert_eq!((did_you_mean("remove", known), &*meant_hint("remove", known)), (None, ""));
    }

    #[test]
    fn parts_of_names_come_before_misspelt_ones() {
        let known = ["echo", "get-sum", "get-env", "print", "sun"];
        assert_eq!(near("ecco", known), ["echo"]);
        assert_eq!(near("sum", known), ["get-sum", "sun"]);
        assert_eq!(near("zzz", known), [""; 0]);
        assert_eq!(near("a", ["a1"; 9]).len(), NEAR_MAX);
    }

    #[test]
    fn unknown_keys_name_the_key_that_was_meant() {
        let known =
            ["transport", "url", "command", "args", "env", "timeoutMs", "servers", "headerName"];
        for (word, meant) in [
            ("severs", Some("servers")),
            ("Servers", Some("servers")),
            ("comand", Some("command")),
            ("timeoutms", Some("timeoutMs")),
            ("environment", Some("env")),
            ("type", Some("transport")),
            ("header", Some("headerName")),
            ("hea", None),
            ("autoApprove", None),
            ("", None),
        ] {
            assert_eq!(UnknownKey::new(word, &known).meant(), meant, "{word}");
        }
        let unknown = UnknownKey::new("theme", &["url", "env"]);
        assert_eq!(
            unknown.to_string(),
            "`theme` is not known here; remove it; the keys here are `url`, `env`"
        );
        assert_eq!(UnknownKey::new("a", &[]).remedy(), "remove it");
    }
}
