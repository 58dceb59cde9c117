//! The names that clients of an aggregated endpoint see (decision D1; E18, E77–E79).

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

use sha2::{Digest, Sha256};

use crate::Alias;

/// The longest qualified name, and the default limit.
pub const QUALIFIED_NAME_MAX: usize = 128;

const HASH_CHARS: usize = 8;

/// `mcp__<alias>__<name>`, or a name that a profile gives; always matching
/// `^[a-zA-Z0-9_-]{1,128}$`. Never taken apart again: calls are routed by [`QualifiedNames`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QualifiedName(Arc<str>);

impl QualifiedName {
    /// The name as a client sees it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn plain(alias: &Alias, original: &str) -> (String, bool) {
        let mut text = String::with_capacity(alias.as_str().len() + original.len() + 7);
        text.push_str("mcp__");
        text.push_str(alias.as_str());
        text.push_str("__");
        let mut changed = original.is_empty();
        for c in original.chars() {
            let kept = c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            changed |= !kept;
            text.push(if kept { c } else { '_' });
        }
        (text, changed)
    }

    fn hashed(alias: &Alias, original: &str, limit: usize) -> String {
        let (mut text, _) = Self::plain(alias, original);
        let digest = Sha256::new()
            .chain_update(alias.as_str())
            .chain_update([0])
            .chain_update(original)
            .finalize();
        text.truncate(limit - HASH_CHARS - 1);
        text.push('_');
        for byte in &digest[..HASH_CHARS / 2] {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QualifiedName({})", self.0)
    }
}

/// The table between qualified names and originals of one aggregated view.
///
/// A name that had to be sanitised or cut gets a hash suffix, and so do all names of an alias that
/// ends in `_`: `a` with `_x` and `a_` with `x` would else be one name. The outcome for one
/// original does not depend on the order in which servers became ready.
#[derive(Debug, Default, Clone)]
pub struct QualifiedNames {
    routes: HashMap<Arc<str>, (Alias, Arc<str>)>,
    names: BTreeMap<(Alias, Arc<str>), QualifiedName>,
}

impl QualifiedNames {
    /// Builds the table over all `(alias, original name)` pairs; `limit` is clamped to 64..=128.
    #[must_use]
    pub fn build<'a>(
        originals: impl IntoIterator<Item = (&'a Alias, &'a str)>,
        limit: usize,
    ) -> Self {
        let limit = limit.clamp(64, QUALIFIED_NAME_MAX);
        let mut table = Self::default();
        let mut plain_names = Vec::new();
        for (alias, original) in originals {
            let (text, changed) = QualifiedName::plain(alias, original);
            if changed || text.len() > limit || alias.as_str().ends_with('_') {
                table.insert(QualifiedName::hashed(alias, original, limit), alias, original);
            } else {
                plain_names.push((text, alias, original));
            }
        }
        // Last, so that a name made to look like a hashed one takes no other name's place.
        for (text, alias, original) in plain_names {
            table.insert(text, alias, original);
        }
        table
    }

    fn insert(&mut self, text: String, alias: &Alias, original: &str) {
        let text: Arc<str> = text.into();
        // An exact collision can only be the same pair twice, or a name that was given the hash
        // suffix of another one: the first one stays, the second is not reachable.
        if let Entry::Vacant(route) = self.routes.entry(text.clone()) {
            let original: Arc<str> = original.into();
            route.insert((alias.clone(), original.clone()));
            self.names.insert((alias.clone(), original), QualifiedName(text));
        }
    }

    /// Gives a tool or prompt another name: from now on only that name leads to it. Returns the
    /// name that it had; `None` and no change if it is not in the table, or another one has the
    /// name.
    pub fn give(
        &mut self,
        alias: &Alias,
        original: &str,
        name: &Arc<str>,
    ) -> Option<QualifiedName> {
        if self.routes.contains_key(name) {
            return None;
        }
        let held = self.names.get_mut(&(alias.clone(), Arc::from(original)))?;
        let before = std::mem::replace(held, QualifiedName(name.clone()));
        let route = self.routes.remove(before.as_str())?;
        self.routes.insert(name.clone(), route);
        Some(before)
    }

    /// A name for a tool of our own beside those of a server, which keep theirs: the plain one if
    /// it is free, else one with the hash suffix (E80). `None` if that is taken as well.
    #[must_use]
    pub fn beside(&self, alias: &Alias, name: &str, limit: usize) -> Option<QualifiedName> {
        let limit = limit.clamp(64, QUALIFIED_NAME_MAX);
        let (plain, changed) = QualifiedName::plain(alias, name);
        let is_plain = !changed && plain.len() <= limit && !alias.as_str().ends_with('_');
        let plain = Some(plain).filter(|_| is_plain);
        let hashed = std::iter::once_with(|| QualifiedName::hashed(alias, name, limit));
        let mut names = plain.into_iter().chain(hashed);
        let free = names.find(|name| !self.routes.contains_key(name.as_str()))?;
        Some(QualifiedName(free.into()))
    }

    /// The route of a call of `qualified`: the server's alias and the tool's own name.
    #[must_use]
    pub fn route(&self, qualified: &str) -> Option<(&Alias, &Arc<str>)> {
        self.routes.get(qualified).map(|(alias, original)| (alias, original))
    }

    /// All originals with their names, by server.
    pub fn iter(&self) -> impl Iterator<Item = (&Alias, &Arc<str>, &QualifiedName)> {
        self.names.iter().map(|((alias, original), name)| (alias, original, name))
    }

    /// The qualified name of a server's tool or prompt; `None` if it is not in the table.
    #[must_use]
    pub fn name(&self, alias: &Alias, original: &str) -> Option<&QualifiedName> {
        self.names.get(&(alias.clone(), Arc::from(original)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(text: &str) -> Alias {
        Alias::new(text).unwrap()
    }

    /// D1, E18, R-E25: plain names keep their spelling.
    #[test]
    fn d1_plain_names_are_prefixed_and_unchanged() {
        let everything = alias("everything");
        let table = QualifiedNames::build([(&everything, "echo")], QUALIFIED_NAME_MAX);
        assert_eq!(table.name(&everything, "echo").unwrap().as_str(), "mcp__everything__echo");
        let (to, original) = table.route("mcp__everything__echo").unwrap();
        assert_eq!((to, original.as_ref()), (&everything, "echo"));
    }

    /// E79, E77, E78, R-E25, R-E26, D1, A-2: names which would collide when sanitised or cut stay
    /// apart, and route by table.
    #[test]
    fn e79_sanitised_and_cut_names_stay_unique() {
        let a = alias("a");
        let long_one = format!("{}1", "x".repeat(200));
        let long_two = format!("{}2", "x".repeat(200));
        let originals = ["foo.bar", "foo_bar", "foo bar", &long_one, &long_two, ""];
        for limit in [64, 128] {
            let table = QualifiedNames::build(originals.iter().map(|name| (&a, *name)), limit);
            let mut seen = std::collections::HashSet::new();
            for original in originals {
                let name = table.name(&a, original).unwrap().as_str();
                assert!(name.len() <= limit && seen.insert(name.to_owned()), "{name}");
                assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
                assert_eq!(table.route(name).unwrap().1.as_ref(), original);
            }
        }
    }

    /// E79, S24: `a` + `b__c` and an alias that cannot contain `__` never meet.
    #[test]
    fn s24_look_alike_prefixes_route_to_their_own_server() {
        let (a, a_b) = (alias("a"), alias("a_b"));
        let table = QualifiedNames::build([(&a, "b__c"), (&a_b, "c")], QUALIFIED_NAME_MAX);
        assert_eq!(table.route("mcp__a__b__c").unwrap().0, &a);
        assert_eq!(table.route("mcp__a_b__c").unwrap().0, &a_b);
    }

    /// S24: an alias that ends in the separator's letter stays distinct, in any order of arrival.
    #[test]
    fn s24_names_of_an_alias_that_ends_in_an_underscore_are_unique() {
        let (a, longer) = (alias("a"), alias("a_"));
        let hashed = QualifiedName::hashed(&longer, "x", 128);
        let guess = hashed.strip_prefix("mcp__a__").unwrap();
        let pairs = [(&a, "_x"), (&a, "__x"), (&a, guess), (&longer, "x"), (&longer, "_x")];
        let one = QualifiedNames::build(pairs, 128);
        let two = QualifiedNames::build(pairs.into_iter().rev(), 128);
        assert_eq!(one.names, two.names);
        assert_eq!(one.route("mcp__a___x").unwrap(), (&a, &Arc::from("_x")));
        assert_eq!(one.route(&hashed).unwrap(), (&longer, &Arc::from("x")));
        assert!(one.name(&a, guess).is_none() && one.name(&longer, "_x").is_some());
    }

    /// E77, A-2: a character that clients do not take is replaced, and the server's own name is
    /// kept.
    #[test]
    fn e77_other_characters_are_replaced_and_the_original_is_routed_to() {
        let a = alias("a");
        let table = QualifiedNames::build([(&a, "files/read.all ü")], QUALIFIED_NAME_MAX);
        let name = table.name(&a, "files/read.all ü").unwrap().as_str();
        assert!(name.starts_with("mcp__a__files_read_all___"), "{name}");
        assert_eq!(table.route(name).unwrap().1.as_ref(), "files/read.all ü");
    }

    /// E78, R-E25, A-2: a name that is too long is cut, and its prefix is not.
    #[test]
    fn e78_long_names_keep_their_prefix() {
        let longest = alias(&"a".repeat(64));
        for limit in [QUALIFIED_NAME_MAX, 80] {
            let long = "x".repeat(300);
            let table = QualifiedNames::build([(&longest, long.as_str())], limit);
            let name = table.name(&longest, &long).unwrap().as_str();
            assert_eq!(name.len(), limit);
            assert!(name.starts_with(&format!("mcp__{longest}__")), "{name}");
        }
    }

    /// P2: a given name takes the place of the qualified one, and of no other name.
    #[test]
    fn p2_a_given_name_leads_to_one_tool_alone() {
        let a = alias("a");
        let mut table = QualifiedNames::build([(&a, "x"), (&a, "y")], QUALIFIED_NAME_MAX);
        let before = table.give(&a, "x", &"new".into()).unwrap();
        assert_eq!(before.as_str(), "mcp__a__x");
        assert_eq!(table.route("new").unwrap(), (&a, &Arc::from("x")));
        assert_eq!(table.route("mcp__a__x"), None);
        assert_eq!(table.name(&a, "x").unwrap().as_str(), "new");
        for taken in ["new", "mcp__a__y"] {
            assert!(table.give(&a, "y", &taken.into()).is_none(), "{taken}");
        }
        assert!(table.give(&a, "z", &"other".into()).is_none());
        assert_eq!(table.route("mcp__a__y").unwrap(), (&a, &Arc::from("y")));
    }

    /// E80: a tool of our own never takes the name of a server's.
    #[test]
    fn e80_a_tool_of_narthex_never_takes_the_name_of_a_server_tool() {
        let a = alias("a");
        let own = |table: &QualifiedNames| table.beside(&a, "list_resources", 128);
        let free = QualifiedNames::build([(&a, "other")], 128);
        assert_eq!(own(&free).unwrap().as_str(), "mcp__a__list_resources");
        let taken = QualifiedNames::build([(&a, "list_resources")], 128);
        let hashed = own(&taken).unwrap();
        assert!(hashed.as_str().starts_with("mcp__a__list_resources_"), "{hashed}");
        assert_eq!(taken.route("mcp__a__list_resources").unwrap().1.as_ref(), "list_resources");
        let guess = hashed.as_str().strip_prefix("mcp__a__").unwrap();
        let both = QualifiedNames::build([(&a, "list_resources"), (&a, guess)], 128);
        assert_eq!(own(&both), None);
        assert!(both.route(hashed.as_str()).is_some());
    }

    /// S24: the outcome does not depend on the order of servers.
    #[test]
    fn s24_order_of_servers_does_not_change_names() {
        let (a, b) = (alias("a"), alias("b"));
        let one = QualifiedNames::build([(&a, "x.y"), (&b, "x.y"), (&a, "x_y")], 128);
        let two = QualifiedNames::build([(&a, "x_y"), (&b, "x.y"), (&a, "x.y")], 128);
        assert_eq!(one.names, two.names);
    }
}
