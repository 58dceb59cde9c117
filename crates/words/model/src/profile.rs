//! Profiles of the live configuration: named sets of servers and tools, with names and descriptions
//! of their own for tools.
//!
//! A profile only narrows: gates, rules and the audit know each tool by its server's own name.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{Alias, EVERYTHING, Exposed, NameRule, ProfileName, UriRule};

/// The longest name that a profile gives to a tool. Most models take no longer one.
const GIVEN_NAME_MAX: usize = 64;
/// The beginning of the names that servers' tools have by themselves at an aggregated endpoint. No
/// given name begins so: it could take the place of another tool's name.
const QUALIFIED: &str = "mcp__";
/// The longest description that a profile gives to a tool, in characters.
const DESCRIPTION_MAX: usize = 4096;

/// A named set of servers and tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    name: ProfileName,
    /// The servers of which all is visible.
    servers: BTreeSet<Alias>,
    /// The servers of which some tools are visible, and nothing else.
    parts: BTreeMap<Alias, SomeTools>,
    overrides: BTreeMap<Alias, BTreeMap<Arc<str>, ToolOverride>>,
    /// The tools that have a given name, by this name.
    given: HashMap<Arc<str>, (Alias, Arc<str>)>,
}

/// The visible tools of one server.
#[derive(Debug, Clone, PartialEq)]
struct SomeTools {
    patterns: Vec<String>,
    exposed: Exposed,
}

/// The words that a profile gives to a tool in place of the server's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOverride {
    /// The whole name that callers see and call.
    pub name: Option<Arc<str>>,
    /// The description that callers see.
    pub description: Option<Arc<str>>,
}

/// The reason why a part of a profile is refused, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileProblem {
    /// A tool has no server in front.
    #[error("`{0}` names no server; write SERVER.TOOL, such as `linear.search*`")]
    NoServer(String),
    /// The server is in `servers`, so all of its tools are visible.
    #[error("all tools of `{0}` are visible, since `servers` names it; remove one of the two")]
    IsWhole(Alias),
    /// The profile hides the tool.
    #[error("the profile hides `{0}.{1}`; add it to `tools`, or remove it here")]
    IsHidden(Alias, String),
    /// The given name breaks the rule.
    #[error(
        "`{0}` cannot be the name of a tool; use 1 to 64 of a-z, A-Z, 0-9, `_` and `-`, and do \
         not begin with `mcp__`"
    )]
    BadName(String),
    /// Another tool has the given name.
    #[error("`{1}.{2}` has the name `{0}` as well; choose another for one of the two")]
    NameTaken(String, Alias, String),
    /// The description is empty or too long.
    #[error("the description has {0} characters; write 1 to 4096")]
    BadDescription(usize),
    /// The override changes nothing.
    #[error("nothing is changed; give `name`, `description`, or both")]
    NoChange,
}

impl Profile {
    /// A profile in which nothing is visible.
    #[must_use]
    pub fn new(name: ProfileName) -> Self {
        Self {
            name,
            servers: BTreeSet::new(),
            parts: BTreeMap::new(),
            overrides: BTreeMap::new(),
            given: HashMap::new(),
        }
    }

    /// The server and the rest of a text such as `linear.search*`.
    ///
    /// # Errors
    /// When the text begins with no name of a server and a dot.
    pub fn split(text: &str) -> Result<(Alias, &str), ProfileProblem> {
        let parts = text.split_once('.').filter(|(_, tool)| !tool.is_empty());
        let found = parts.and_then(|(server, tool)| Some((Alias::of_server(server).ok()?, tool)));
        found.ok_or_else(|| ProfileProblem::NoServer(text.chars().take(100).collect()))
    }

    /// Makes all of a server visible.
    pub fn add_server(&mut self, alias: Alias) {
        self.servers.insert(alias);
    }

    /// Makes the tools of a server visible that match a pattern: `*` stands for any number of
    /// characters, and `?` for one.
    ///
    /// # Errors
    /// When all of the server is visible already.
    pub fn add_tools(&mut self, alias: Alias, pattern: &str) -> Result<(), ProfileProblem> {
        if self.servers.contains(&alias) {
            return Err(ProfileProblem::IsWhole(alias));
        }
        let part = self
            .parts
            .entry(alias)
            .or_insert_with(|| SomeTools { patterns: Vec::new(), exposed: Exposed::default() });
        part.patterns.push(pattern.to_owned());
        let none: [&str; 0] = [];
        part.exposed = Exposed {
            tools: NameRule::new(Some(&part.patterns[..]), &[]),
            resources: UriRule::new(Some(&none[..]), &[]),
            prompts: NameRule::new(Some(&none[..]), &[]),
        };
        Ok(())
    }

    /// Gives a visible tool another name, another description, or both. Servers and tools must have
    /// been added before.
    ///
    /// # Errors
    /// When the profile hides the tool, the name breaks the rule or is another tool's, the
    /// description is too long, or nothing is given.
    pub fn add_override(
        &mut self,
        alias: Alias,
        tool: &str,
        given: ToolOverride,
    ) -> Result<(), ProfileProblem> {
        if !self.exposed(&alias).is_some_and(|exposed| exposed.tools.lets(tool)) {
            return Err(ProfileProblem::IsHidden(alias, tool.to_owned()));
        }
        if given == ToolOverride::default() {
            return Err(ProfileProblem::NoChange);
        }
        let length = given.description.as_ref().map(|text| text.chars().count());
        if let Some(length) = length.filter(|length| !(1..=DESCRIPTION_MAX).contains(length)) {
            return Err(ProfileProblem::BadDescription(length));
        }
        let tool: Arc<str> = tool.into();
        if let Some(name) = &given.name {
            if !is_given_name(name) {
                return Err(ProfileProblem::BadName(name.chars().take(100).collect()));
            }
            if let Some((other, own)) = self.given.get(name) {
                let (other, own) = (other.clone(), own.to_string());
                return Err(ProfileProblem::NameTaken(name.to_string(), other, own));
            }
            self.given.insert(name.clone(), (alias.clone(), tool.clone()));
        }
        self.overrides.entry(alias).or_default().insert(tool, given);
        Ok(())
    }

    /// The profile's name.
    #[must_use]
    pub fn name(&self) -> &ProfileName {
        &self.name
    }

    /// True if nothing is visible.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.parts.is_empty()
    }

    /// True if something of a server is visible.
    #[must_use]
    pub fn has(&self, alias: &Alias) -> bool {
        self.servers.contains(alias) || self.parts.contains_key(alias)
    }

    /// True if all of a server is visible.
    #[must_use]
    pub fn is_whole(&self, alias: &Alias) -> bool {
        self.servers.contains(alias)
    }

    /// The visible items of a server; `None` if the profile does not have the server.
    #[must_use]
    pub fn exposed(&self, alias: &Alias) -> Option<&Exposed> {
        match self.servers.contains(alias) {
            true => Some(&EVERYTHING),
            false => self.parts.get(alias).map(|part| &part.exposed),
        }
    }

    /// The words given to a tool of a server, by the server's own name of the tool.
    #[must_use]
    pub fn override_of(&self, alias: &Alias, tool: &str) -> Option<&ToolOverride> {
        self.overrides.get(alias)?.get(tool)
    }

    /// The server and its own name of the tool that has this given name.
    #[must_use]
    pub fn original(&self, given: &str) -> Option<(&Alias, &Arc<str>)> {
        self.given.get(given).map(|(alias, tool)| (alias, tool))
    }

    /// The servers of which all is visible.
    pub fn servers(&self) -> impl Iterator<Item = &Alias> {
        self.servers.iter()
    }

    /// The servers of which some tools are visible, each with the patterns of these.
    pub fn tools(&self) -> impl Iterator<Item = (&Alias, &[String])> {
        self.parts.iter().map(|(alias, part)| (alias, &part.patterns[..]))
    }

    /// The overrides of one server's tools, each with the server's own name of the tool.
    pub fn overrides_of(&self, alias: &Alias) -> impl Iterator<Item = (&Arc<str>, &ToolOverride)> {
        self.overrides.get(alias).into_iter().flatten()
    }

    /// All overrides: server, the server's own name of the tool, and the given words.
    pub fn overrides(&self) -> impl Iterator<Item = (&Alias, &Arc<str>, &ToolOverride)> {
        self.overrides
            .iter()
            .flat_map(|(alias, all)| all.iter().map(move |(tool, given)| (alias, tool, given)))
    }
}

fn is_given_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=GIVEN_NAME_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with(QUALIFIED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(text: &str) -> Alias {
        Alias::new(text).unwrap()
    }

    fn named(name: &str) -> ToolOverride {
        ToolOverride { name: Some(name.into()), description: None }
    }

    fn work() -> Profile {
        let mut profile = Profile::new(ProfileName::new("work").unwrap());
        profile.add_server(alias("github"));
        for pattern in ["search*", "get_issue"] {
            profile.add_tools(alias("linear"), pattern).unwrap();
        }
        profile
    }

    /// P1: a profile has whole servers, and tools of others by pattern, and nothing else.
    #[test]
    fn p1_a_profile_shows_whole_servers_and_tools_by_pattern() {
        let work = work();
        let exposed = |server: &str| work.exposed(&alias(server));
        assert!(exposed("github").unwrap().is_everything() && work.is_whole(&alias("github")));
        assert_eq!(exposed("billing"), None);
        let linear = exposed("linear").unwrap();
        for (tool, is_shown) in
            [("search", true), ("search_all", true), ("get_issue", true), ("delete", false)]
        {
            assert_eq!(linear.tools.lets(tool), is_shown, "{tool}");
        }
        assert!(!linear.prompts.lets("triage") && !linear.resources.lets("linear://a"));
        assert!(!work.is_whole(&alias("linear")) && work.has(&alias("linear")));
    }

    /// P2: no given name can be that of another tool, so a name always means one tool.
    #[test]
    fn p2_given_names_are_unique_and_never_look_like_qualified_names() {
        let mut work = work();
        let mut give = |server: &str, tool: &str, name: &str| {
            work.add_override(alias(server), tool, named(name))
        };
        give("github", "create_issue", "new_issue").unwrap();
        let taken = give("linear", "search", "new_issue").unwrap_err();
        assert!(taken.to_string().contains("`github.create_issue`"), "{taken}");
        let long = "x".repeat(65);
        for bad in ["mcp__github__delete_repo", "mcp__x", "", "a b", "a.b", "ä", &long] {
            let refused = give("github", "list", bad).unwrap_err();
            assert_eq!(refused, ProfileProblem::BadName(bad.to_owned()), "{bad}");
        }
        let hidden = give("linear", "delete", "tidy").unwrap_err();
        assert_eq!(hidden, ProfileProblem::IsHidden(alias("linear"), "delete".to_owned()));
        let absent = give("billing", "pay", "pay").unwrap_err();
        assert!(matches!(absent, ProfileProblem::IsHidden(..)));
        let (server, tool) = work.original("new_issue").unwrap();
        assert_eq!((server.as_str(), &**tool), ("github", "create_issue"));
        assert_eq!(work.original("create_issue"), None);
    }

    #[test]
    fn an_override_must_change_something_and_its_description_has_a_limit() {
        let mut work = work();
        let mut give = |given| work.add_override(alias("github"), "list", given);
        assert_eq!(give(ToolOverride::default()).unwrap_err(), ProfileProblem::NoChange);
        let text = |text: &str| ToolOverride { name: None, description: Some(text.into()) };
        for bad in [0, 4097] {
            let refused = give(text(&"x".repeat(bad))).unwrap_err();
            assert_eq!(refused, ProfileProblem::BadDescription(bad));
        }
        give(text("Lists.")).unwrap();
        let given = work.override_of(&alias("github"), "list").unwrap();
        assert_eq!((&given.name, given.description.as_deref()), (&None, Some("Lists.")));
    }

    #[test]
    fn tools_are_named_by_their_server() {
        let (server, tool) = Profile::split("linear.search.all*").unwrap();
        assert_eq!((server.as_str(), tool), ("linear", "search.all*"));
        for bad in ["search", "linear.", ".search", "My Server.x", "narthex.ask", "*.search"] {
            assert!(matches!(Profile::split(bad), Err(ProfileProblem::NoServer(_))), "{bad}");
        }
        let whole = work().add_tools(alias("github"), "list*").unwrap_err();
        assert_eq!(whole, ProfileProblem::IsWhole(alias("github")));
    }
}
