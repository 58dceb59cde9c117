//! The filter of a server's tools, resources and prompts that callers may see (decision D5; E151).
//!
//! A hidden item is absent: from lists, and for calls.

use wildmatch::WildMatch;

use crate::uri::{closing, has_steps, is_plain, opening, shortened, written};

/// The rules of one server, by what they are for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exposed {
    /// For tools, by the server's own names.
    pub tools: NameRule,
    /// For resources, by URI, and for templates, by their text.
    pub resources: UriRule,
    /// For prompts, by the server's own names.
    pub prompts: NameRule,
}

/// The names that may be seen: those that match each given `allow`, and none of `deny`. In patterns
/// `*` is any number of characters and `?` is one; all other characters stand for themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NameRule {
    allow: Vec<Vec<WildMatch>>,
    deny: Vec<WildMatch>,
}

/// The resources and templates that may be seen, under any spelling of a request: patterns as in
/// [`NameRule`], of URIs. A template's text in `deny` also covers the resources of the template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UriRule(NameRule);

/// The rules of a server that hides nothing.
pub static EVERYTHING: Exposed = Exposed {
    tools: NameRule { allow: Vec::new(), deny: Vec::new() },
    resources: UriRule(NameRule { allow: Vec::new(), deny: Vec::new() }),
    prompts: NameRule { allow: Vec::new(), deny: Vec::new() },
};

impl Exposed {
    /// True if nothing is hidden.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.tools.is_open() && self.resources.is_open() && self.prompts.is_open()
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

    /// True if the rule lets all names through.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// True if a name may be seen.
    #[must_use]
    pub fn lets(&self, name: &str) -> bool {
        let is_in = |patterns: &[WildMatch]| patterns.iter().any(|pattern| pattern.matches(name));
        self.allow.iter().all(|patterns| is_in(patterns)) && !self.denies(name)
    }

    /// The patterns as written: those of `allow`, if there is one, and those of `deny`. `None` if
    /// the rule is made of several, each with an `allow`.
    #[must_use]
    pub fn written(&self) -> Option<(Option<Vec<String>>, Vec<String>)> {
        let texts = |all: &[WildMatch]| all.iter().map(WildMatch::pattern).collect();
        let allow = match self.allow.as_slice() {
            [] => None,
            [only] => Some(texts(only)),
            _ => return None,
        };
        Some((allow, texts(&self.deny)))
    }

    /// True if a name is denied, even if it is allowed too.
    fn denies(&self, name: &str) -> bool {
        self.deny.iter().any(|pattern| pattern.matches(name))
    }
}

impl UriRule {
    /// A rule. An empty `allow` lets nothing through, an absent one everything.
    #[must_use]
    pub fn new<T: AsRef<str>>(allow: Option<&[T]>, deny: &[T]) -> Self {
        let allow: Option<Vec<_>> =
            allow.map(|all| all.iter().flat_map(|one| opening(one.as_ref())).collect());
        let deny: Vec<_> = deny.iter().flat_map(|one| closing(one.as_ref())).collect();
        Self(NameRule::new(allow.as_deref(), &deny))
    }

    /// True if the rule lets all URIs through.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// True if a URI or a template may be seen. Each way to write all of it has to pass, without
    /// steps such as `..`, which lead elsewhere than the text shows. None of its
    /// [spellings](crate::uri::spellings) may be denied. A text that can be no URI is never seen.
    #[must_use]
    pub fn lets(&self, uri: &str) -> bool {
        let passes = |one: &str| self.0.lets(one) && !has_steps(one);
        let is_denied = || shortened(uri).iter().any(|one| self.0.denies(one));
        is_plain(uri)
            && (self.is_open() || written(uri).iter().all(|one| passes(one)) && !is_denied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule is written back as it was read, unless two lists were read together.
    #[test]
    fn a_rule_is_written_back_as_it_was_read() {
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let rule = NameRule::new(Some(&["get_*"]), &["*_all"]);
        assert_eq!(rule.written(), Some((Some(texts(&["get_*"])), texts(&["*_all"]))));
        assert_eq!(NameRule::default().written(), Some((None, Vec::new())));
        assert_eq!(rule.clone().narrowed(rule).written(), None);
    }

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

    /// D5: a further rule only takes away.
    #[test]
    fn e151_narrowed_rules_allow_only_names_that_both_rules_allow() {
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

    /// D5: a URI passes only if it means exactly its text.
    #[test]
    fn d5_no_spelling_of_a_uri_gets_around_a_rule() {
        let allow = UriRule::new(Some(&["file:///docs/*"]), &[]);
        let deny = UriRule::new(None, &["file:///secret/*"]);
        assert!(allow.lets("file:///docs/a%20b.md") && deny.lets("file:///docs/a.md"));
        assert!(allow.lets("file:///docs/{path}") && allow.lets("file:///docs/50%"));
        for uri in [
            "file:///docs/../secret/a",
            "file:///docs/%2e%2e/secret/a",
            "file:///docs/..%2fsecret/a",
            "file:///docs/..\\secret/a",
            "file:///secret/a",
        ] {
            assert!(!allow.lets(uri), "{uri}");
        }
        for uri in ["file:///%73ecret/a", "file:///docs/../secret/a", "file:///secret/a"] {
            assert!(!deny.lets(uri), "{uri}");
        }
        assert!(UriRule::default().lets("file:///docs/../secret/a"));
    }
}
