//! Reads the part of an entry that limits what callers may see of a server (D5, E151).

use narthex_model::{Exposed, NameRule, UriRule};

use super::{
    foreign::{HIDDEN, SHOWN},
    node::{Node, Place, field},
    placeholder::Dialect,
    problem::EntryProblem,
    reader::{Fields, Reader},
};

/// The keys of a rule.
const KEYS: [&str; 2] = ["allow", "deny"];

/// A rule as it is written.
#[derive(Default)]
struct Rule {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

impl Rule {
    fn names(&self) -> NameRule {
        NameRule::new(self.allow.as_deref(), &self.deny)
    }

    fn uris(&self) -> UriRule {
        UriRule::new(self.allow.as_deref(), &self.deny)
    }
}

impl Reader<'_> {
    /// Reads `tools`, `resources` and `prompts`. A rule that cannot be read is a fault in every
    /// document: to ignore it would show items that its author meant to hide.
    pub(super) fn exposed(&mut self, fields: &Fields, at: &Place) -> Exposed {
        Exposed {
            tools: self.tools(fields, at).names(),
            resources: self.rule(fields, at, "resources").uris(),
            prompts: self.rule(fields, at, "prompts").names(),
        }
    }

    /// Reads `tools`, and in a file of other programs the lists that these write, too: their author
    /// means to hide the same tools from each client of the server.
    fn tools(&mut self, fields: &Fields, at: &Place) -> Rule {
        let mut rule = self.rule(fields, at, "tools");
        if self.dialect == Dialect::Strict {
            return rule;
        }
        for key in HIDDEN {
            rule.deny.extend(self.foreign_list(fields, at, key, "tools.deny").unwrap_or_default());
        }
        for key in SHOWN {
            let Some(shown) = self.foreign_list(fields, at, key, "tools.allow") else { continue };
            if rule.allow.replace(shown).is_some() {
                self.fault(&at.key(key), EntryProblem::AllowTwice);
            }
        }
        rule
    }

    fn foreign_list(
        &mut self,
        fields: &Fields,
        at: &Place,
        key: &str,
        ours: &str,
    ) -> Option<Vec<String>> {
        // Some programs write a list that they do not use as null.
        if field(fields, key) == Some(&Node::Null) {
            return None;
        }
        let patterns = self.patterns(fields, at, key)?;
        self.warn(&at.key(key), format!("read as `{ours}`"));
        Some(patterns)
    }

    fn rule(&mut self, fields: &Fields, at: &Place, key: &str) -> Rule {
        let place = at.key(key);
        match field(fields, key) {
            None => Rule::default(),
            Some(Node::Object(fields)) => {
                // A misspelt key would hide no item.
                for (key, node) in fields.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
                    self.wrong_type(&place.key(key), node, "nothing but `allow` and `deny`");
                }
                let allow = self.patterns(fields, &place, "allow");
                let deny = self.patterns(fields, &place, "deny").unwrap_or_default();
                Rule { allow, deny }
            }
            // The short form, which other programs write too.
            Some(Node::List(_)) => Rule { allow: self.patterns(fields, at, key), deny: Vec::new() },
            Some(node) => {
                self.wrong_type(&place, node, "an object with `allow` or `deny`");
                Rule::default()
            }
        }
    }

    fn patterns(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<Vec<String>> {
        let place = at.key(key);
        let Node::List(nodes) = field(fields, key)? else {
            self.wrong_type(&place, field(fields, key)?, "an array of patterns");
            return None;
        };
        let mut patterns = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            match node {
                Node::Text(text) => patterns.push(text.clone()),
                _ => self.wrong_type(&place.index(index), node, "a pattern such as `get_*`"),
            }
        }
        Some(patterns)
    }
}
