//! Which of a server's tools, resources and prompts callers may see (decision D5; E151).
//!
//! What a rule hides is absent: from lists, and for calls.

use std::borrow::Cow;

use wildmatch::WildMatch;

/// The rules of one server, by what they are for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exposed {
    /// For tools, by the server's own names.
    pub tools: NameRule,
    /// For resources, by URI, and for templates, by their text.
    pub resources: NameRule,
    /// For prompts, by the server's own names.
    pub prompts: NameRule,
}

/// What names may be seen: those that match each `allow` that is given, and nothing of `deny`. In
/// patterns `*` is any number of characters and `?` is one; nothing else means anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NameRule {
    allow: Vec<Vec<WildMatch>>,
    deny: Vec<WildMatch>,
}

/// The rules of a server that hides nothing.
pub static EVERYTHING: Exposed = Exposed {
    tools: NameRule { allow: Vec::new(), deny: Vec::new() },
    resources: NameRule { allow: Vec::new(), deny: Vec::new() },
    prompts: NameRule { allow: Vec::new(), deny: Vec::new() },
};

impl Exposed {
    /// Whether nothing is hidden.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        [&self.tools, &self.resources, &self.prompts].into_iter().all(NameRule::is_open)
    }
}

impl NameRule {
    /// A rule. An empty `allow` lets nothing through, an absent one everything.
    #[must_use]
    pub fn new<T: AsRef<str>>(allow: Option<&[T]>, deny: &[T]) -> Self {
        let patterns =
            |texts: &[T]| texts.iter().map(|text| WildMatch::new(text.as_ref())).collect();
        Self { allow: allow.map(patterns).into_iter().collect(), deny: patterns(deny) }
    }

    /// A rule that lets through what both do.
    #[must_use]
    pub fn narrowed(mut self, further: Self) -> Self {
        self.allow.extend(further.allow);
        self.deny.extend(further.deny);
        self
    }

    /// Whether it lets everything through.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether a name may be seen.
    #[must_use]
    pub fn lets(&self, name: &str) -> bool {
        let is_in = |patterns: &[WildMatch]| patterns.iter().any(|pattern| pattern.matches(name));
        self.allow.iter().all(|patterns| is_in(patterns)) && !is_in(&self.deny)
    }

    /// Whether a URI or a template may be seen. It has to pass as written and percent-decoded, and
    /// without steps such as `..`, which lead elsewhere than the text says.
    #[must_use]
    pub fn lets_uri(&self, uri: &str) -> bool {
        if self.is_open() {
            return true;
        }
        let decoded = percent_decoded(uri);
        self.lets(uri) && self.lets(&decoded) && !has_steps(&decoded)
    }
}

pub(crate) fn has_steps(uri: &str) -> bool {
    uri.split(['/', '\\', '?', '#']).any(|part| matches!(part, "." | ".."))
}

/// The text that a reader of URIs may take this one for.
pub(crate) fn percent_decoded(uri: &str) -> Cow<'_, str> {
    if !uri.contains('%') {
        return Cow::Borrowed(uri);
    }
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|code| first == b'%' && code.is_ascii());
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E151, D5: allow narrows, deny takes away, and deny wins.
    #[test]
    fn e151_names_pass_by_allow_and_deny() {
        let rule = |allow: Option<&[&str]>, deny: &[&str]| NameRule::new(allow, deny);
        for (rule, name, passes) in [
            (rule(None, &[]), "anything", true),
            (rule(Some(&[]), &[]), "anything", false),
            (rule(Some(&["get_*"]), &[]), "get_user", true),
            (rule(Some(&["get_*"]), &[]), "forget_user", false),
            (rule(Some(&["get_*", "list"]), &[]), "list", true),
            (rule(None, &["*_delete"]), "user_delete", false),
            (rule(None, &["*_delete"]), "user_delete_all", true),
            (rule(Some(&["user_*"]), &["*_delete"]), "user_delete", false),
            (rule(Some(&["v?"]), &[]), "v1", true),
            (rule(Some(&["v?"]), &[]), "v12", false),
            (rule(Some(&["Get"]), &[]), "get", false),
            (rule(Some(&["[a-z]"]), &[]), "a", false),
        ] {
            assert_eq!(rule.lets(name), passes, "{rule:?} {name}");
        }
    }

    /// A further rule only takes away.
    #[test]
    fn e151_narrowed_rules_let_through_what_both_do() {
        let rule = |allow: Option<&[&str]>, deny: &[&str]| NameRule::new(allow, deny);
        let both = rule(Some(&["get_*"]), &["get_key"]).narrowed(rule(Some(&["*_user"]), &[]));
        let both = both.narrowed(NameRule::default()).narrowed(rule(None, &["get_old_user"]));
        for (name, passes) in [
            ("get_user", true),
            ("get_page", false),
            ("set_user", false),
            ("get_key", false),
            ("get_old_user", false),
        ] {
            assert_eq!(both.lets(name), passes, "{name}");
        }
        let nothing = rule(Some(&[]), &[]).narrowed(rule(Some(&["*"]), &[]));
        assert!(!nothing.lets("get_user") && !nothing.is_open());
    }

    /// D5: a URI passes only if it means what it says.
    #[test]
    fn d5_no_spelling_of_a_uri_gets_around_a_rule() {
        let allow = NameRule::new(Some(&["file:///docs/*"]), &[]);
        let deny = NameRule::new(None, &["file:///secret/*"]);
        assert!(allow.lets_uri("file:///docs/a%20b.md") && deny.lets_uri("file:///docs/a.md"));
        assert!(allow.lets_uri("file:///docs/{path}") && allow.lets_uri("file:///docs/50%"));
        for uri in [
            "file:///docs/../secret/a",
            "file:///docs/%2e%2e/secret/a",
            "file:///docs/..%2fsecret/a",
            "file:///docs/..\\secret/a",
            "file:///secret/a",
        ] {
            assert!(!allow.lets_uri(uri), "{uri}");
        }
        for uri in ["file:///%73ecret/a", "file:///docs/../secret/a", "file:///secret/a"] {
            assert!(!deny.lets_uri(uri), "{uri}");
        }
        assert!(NameRule::default().lets_uri("file:///docs/../secret/a"));
    }
}
