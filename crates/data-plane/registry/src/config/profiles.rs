//! Reads `mcp.profiles` of a settings file: named sets of servers and tools.
//!
//! A profile with a fault is refused as a whole: with a part of its servers, or without a new name,
//! it would show clients something else than its author wrote.

use std::{fmt, sync::Arc};

use narthex_model::{Alias, Profile, ProfileName, ToolOverride, UnknownKey};

use super::node::{Node, Place, field};

/// The keys of a profile.
const KEYS: [&str; 3] = ["servers", "tools", "overrides"];
/// The keys of an override.
const OVERRIDE_KEYS: [&str; 2] = ["name", "description"];
/// The largest number of profiles of a file.
const PROFILES_MAX: usize = 100;

/// A profile as a file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileEntry {
    /// The name as written, which may be invalid.
    pub name: String,
    /// The profile; `None` if it has a fault.
    pub profile: Option<Arc<Profile>>,
    /// Each named server, with the place of its name in the file.
    pub servers: Vec<(String, Alias)>,
    /// All faults.
    pub faults: Vec<ProfileFault>,
}

/// The reason why a profile is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFault {
    /// The place in the file, such as `mcp.profiles.work.tools[1]`.
    pub path: String,
    /// The fault and its remedy.
    pub message: String,
}

impl fmt::Display for ProfileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path, self.message)
    }
}

/// Reads the profiles of a settings file, in its order.
pub(super) fn read(fields: &[(String, Node)], at: &Place) -> Vec<ProfileEntry> {
    let entry = |(index, (name, node)): (usize, &(String, Node))| {
        let mut reader = ProfileReader::default();
        let place = at.key(name);
        if index >= PROFILES_MAX {
            reader.fault(&place, format!("there are more than {PROFILES_MAX} profiles; remove it"));
        }
        let profile = reader.profile(name, node, &place);
        let profile = profile.filter(|_| reader.faults.is_empty()).map(Arc::new);
        let ProfileReader { servers, faults } = reader;
        ProfileEntry { name: name.clone(), profile, servers, faults }
    };
    fields.iter().enumerate().map(entry).collect()
}

/// Reads one profile, with all of its faults.
#[derive(Debug, Default)]
struct ProfileReader {
    servers: Vec<(String, Alias)>,
    faults: Vec<ProfileFault>,
}

impl ProfileReader {
    fn fault(&mut self, at: &Place, message: impl ToString) {
        self.faults.push(ProfileFault { path: at.to_string(), message: message.to_string() });
    }

    fn wrong_type(&mut self, at: &Place, node: &Node, wanted: &str) {
        self.fault(at, format!("expected {wanted}, found {}; write {wanted}", node.found()));
    }

    fn unknown_keys(&mut self, fields: &[(String, Node)], known: &[&str], at: &Place) {
        for (key, _) in fields.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            self.fault(&at.key(key), UnknownKey::new(key, known));
        }
    }

    fn profile(&mut self, name: &str, node: &Node, at: &Place) -> Option<Profile> {
        let name = ProfileName::new(name).map_err(|error| self.fault(at, error)).ok();
        let Node::Object(fields) = node else {
            self.wrong_type(at, node, "an object with `servers`, `tools`, or both");
            return None;
        };
        self.unknown_keys(fields, &KEYS, at);
        // A profile with an invalid name is read as well, so that all faults are reported at once.
        let mut profile = Profile::new(name.or_else(|| ProfileName::new("x").ok())?);
        for (place, text) in self.texts(fields, "servers", at) {
            match Alias::of_server(&text) {
                Ok(alias) => {
                    self.servers.push((place.to_string(), alias.clone()));
                    profile.add_server(alias);
                }
                Err(error) => self.fault(&place, error),
            }
        }
        for (place, text) in self.texts(fields, "tools", at) {
            let added = Profile::split(&text).and_then(|(alias, pattern)| {
                self.servers.push((place.to_string(), alias.clone()));
                profile.add_tools(alias, pattern)
            });
            added.unwrap_or_else(|problem| self.fault(&place, problem));
        }
        if profile.is_empty() && self.faults.is_empty() {
            self.fault(at, "it shows no tool; name a server in `servers`, or a tool in `tools`");
        }
        self.overrides(fields, &mut profile, at);
        Some(profile)
    }

    /// The texts of a list, each with its place. None if the key is absent.
    fn texts(&mut self, fields: &[(String, Node)], key: &str, at: &Place) -> Vec<(Place, String)> {
        let place = at.key(key);
        let mut texts = Vec::new();
        match field(fields, key) {
            None => {}
            Some(Node::List(nodes)) => {
                for (index, node) in nodes.iter().enumerate() {
                    match node {
                        Node::Text(text) => texts.push((place.index(index), text.clone())),
                        other => self.wrong_type(&place.index(index), other, "a string"),
                    }
                }
            }
            Some(other) => self.wrong_type(&place, other, "an array of strings"),
        }
        texts
    }

    fn overrides(&mut self, fields: &[(String, Node)], profile: &mut Profile, at: &Place) {
        let at = at.key("overrides");
        let overrides = match field(fields, "overrides") {
            None => return,
            Some(Node::Object(overrides)) => overrides,
            Some(other) => return self.wrong_type(&at, other, "an object by SERVER.TOOL"),
        };
        for (tool, node) in overrides {
            let place = at.key(tool);
            let Node::Object(fields) = node else {
                self.wrong_type(&place, node, "an object with `name`, `description`, or both");
                continue;
            };
            self.unknown_keys(fields, &OVERRIDE_KEYS, &place);
            let [name, description] = OVERRIDE_KEYS.map(|key| self.text(fields, key, &place));
            let given = ToolOverride { name, description };
            let added = Profile::split(tool)
                .and_then(|(alias, tool)| profile.add_override(alias, tool, given));
            if let Err(problem) = added {
                self.fault(&place, problem);
            }
        }
    }

    fn text(&mut self, fields: &[(String, Node)], key: &str, at: &Place) -> Option<Arc<str>> {
        match field(fields, key)? {
            Node::Text(text) => Some(text.as_str().into()),
            other => {
                self.wrong_type(&at.key(key), other, "a string");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<ProfileEntry> {
        let Node::Object(fields) = Node::parse(text.as_bytes()).unwrap() else { panic!("{text}") };
        read(&fields, &Place::root("mcp").key("profiles"))
    }

    fn faults(profile: &str) -> Vec<String> {
        let entry = entries(&format!(r#"{{"work":{profile}}}"#)).remove(0);
        assert!(entry.profile.is_none(), "{profile}");
        entry.faults.iter().map(ToString::to_string).collect()
    }

    /// P5: profiles are read with the place of each named server.
    #[test]
    fn p5_a_profile_is_read_with_its_servers_tools_and_overrides() {
        let text = r#"{"work": {"servers": ["github"], "tools": ["linear.search*"],
            "overrides": {"github.create_issue":
                {"name": "new_issue", "description": "Files."}}}}"#;
        let [entry] = &entries(text)[..] else { panic!() };
        assert!(entry.faults.is_empty(), "{:?}", entry.faults);
        let places: Vec<_> = entry.servers.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["mcp.profiles.work.servers[0]", "mcp.profiles.work.tools[0]"]);
        let profile = entry.profile.as_ref().unwrap();
        assert_eq!(profile.name().as_str(), "work");
        let given = profile.override_of(&Alias::new("github").unwrap(), "create_issue").unwrap();
        assert_eq!(given.description.as_deref(), Some("Files."));
        assert!(profile.original("new_issue").is_some());
    }

    /// P5: a refused profile has all faults, each with its field and remedy.
    #[test]
    fn p5_faults_of_a_profile_name_their_field_and_remedy() {
        let work = "`mcp.profiles.work";
        for (profile, field, remedy) in [
            ("[]", "`", "write an object with `servers`"),
            ("{}", "`", "name a server in `servers`"),
            (r#"{"servers": "github"}"#, ".servers`", "write an array of strings"),
            (r#"{"servers": [1]}"#, ".servers[0]`", "write a string"),
            (r#"{"servers": ["My Server"]}"#, ".servers[0]`", "for example `my-server`"),
            (r#"{"servers": ["p"]}"#, ".servers[0]`", "for example `p-server`"),
            (r#"{"server": ["a"], "servers": ["b"]}"#, ".server`", "did you mean `servers`?"),
            (r#"{"tools": ["search"]}"#, ".tools[0]`", "write SERVER.TOOL"),
            (r#"{"servers": ["a"], "tools": ["a.x"]}"#, ".tools[0]`", "remove one of the two"),
            (r#"{"servers": ["a"], "overrides": []}"#, ".overrides`", "an object by SERVER.TOOL"),
            (
                r#"{"servers": ["a"], "overrides": {"a.x": 1}}"#,
                r#".overrides["a.x"]`"#,
                "with `name`",
            ),
            (
                r#"{"servers": ["a"], "overrides": {"a.x": {}}}"#,
                r#".overrides["a.x"]`"#,
                "give `name`",
            ),
            (
                r#"{"servers": ["a"], "overrides": {"a.x": {"nam": "y", "description": "z"}}}"#,
                r#".overrides["a.x"].nam`"#,
                "did you mean `name`?",
            ),
            (
                r#"{"servers": ["a"], "overrides": {"b.x": {"name": "y"}}}"#,
                r#".overrides["b.x"]`"#,
                "add it to `tools`",
            ),
            (
                r#"{"servers": ["a"], "overrides": {"a.x": {"name": "mcp__a__y"}}}"#,
                r#".overrides["a.x"]`"#,
                "do not begin with `mcp__`",
            ),
            (
                r#"{"servers": ["a"], "overrides": {"a.x": {"name": "z"}, "a.y": {"name": "z"}}}"#,
                r#".overrides["a.y"]`"#,
                "choose another for one of the two",
            ),
        ] {
            let told = faults(profile);
            let is_it = |fault: &String| {
                fault.starts_with(&format!("{work}{field}: ")) && fault.contains(remedy)
            };
            assert!(told.iter().any(is_it), "{profile}: {told:?}");
        }
        let many = faults(r#"{"servers": ["A"], "tools": ["x"], "more": 1}"#);
        assert_eq!(many.len(), 3, "{many:?}");
    }

    #[test]
    fn names_of_profiles_follow_a_rule_and_their_number_is_limited() {
        let [entry] = &entries(r#"{"My Work": {"servers": ["a"]}}"#)[..] else { panic!() };
        assert!(entry.profile.is_none());
        assert!(entry.faults[0].message.contains("not a valid profile name"), "{entry:?}");
        let all: Vec<_> = (0..=100).map(|n| format!(r#""p{n}":{{"servers":["a"]}}"#)).collect();
        let all = entries(&format!("{{{}}}", all.join(",")));
        let refused: Vec<_> = all.iter().filter(|entry| entry.profile.is_none()).collect();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].name, "p100");
    }
}
