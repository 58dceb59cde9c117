//! Variables that MCP clients fill into their own files: `${workspaceFolder}`, `${input:key}`.
//!
//! The catalog has no value for them: it has no folder, no home and no person to ask. Such a
//! variable is one fault with the remedy that suits its place.

use std::fmt;

use crate::{SecretName, command::narthex};

/// Prefix of a token in the header that has it (RFC 6750 §2.1).
const BEARER: &str = "Bearer ";

/// The longest name that is shown.
const SHOWN_MAX: usize = 60;
/// Folders of a client, of its user or of a plug-in.
const FOLDERS: [&str; 11] = [
    "workspaceRoot",
    "workspaceFolder",
    "workspacePath",
    "fileWorkspaceFolder",
    "cwd",
    "extensionPath",
    "__dirname",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PLUGIN_DATA",
    "userHome",
];
/// Facts that a client knows of its window and of itself.
const STATES: [&str; 14] = [
    "workspaceFolderBasename",
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileExtname",
    "fileDirname",
    "fileDirnameBasename",
    "relativeFile",
    "relativeFileDirname",
    "lineNumber",
    "columnNumber",
    "selectedText",
    "execPath",
    "defaultBuildTask",
];
/// Prefixes of the names of values that a client asks its user for.
const ASKED: [&str; 2] = ["input:", "user_config."];
/// Prefixes of the names of values that a client looks up.
const LOOKED_UP: [&str; 4] = ["command:", "config:", "file:", "extensionInstallFolder:"];

/// A variable that an MCP client fills in, and the catalog cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientVariable<'t> {
    inside: &'t str,
    kind: Kind,
}

/// The place of the text with the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariablePlace {
    /// The whole value of a key that takes a secret.
    Value,
    /// A token after `Bearer ` in a header that becomes authentication.
    Bearer,
    /// A part of a value whose key takes a secret.
    PartOfValue,
    /// An argument of a program that has an environment, too.
    Argument,
    /// A text that takes no secret.
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    Separator,
    Asked,
    State,
}

impl<'t> ClientVariable<'t> {
    /// Reads the text between `${` and `}`; `None` if it is no variable of a client.
    #[must_use]
    pub fn read(inside: &'t str) -> Option<Self> {
        let stem = inside.split_once(':').map_or(inside, |(stem, _)| stem);
        let begins = |words: &[&str]| words.iter().any(|word| inside.starts_with(word));
        let kind = match inside {
            "/" | "pathSeparator" => Kind::Separator,
            _ if begins(&ASKED) => Kind::Asked,
            _ if begins(&LOOKED_UP) || STATES.contains(&stem) => Kind::State,
            _ if FOLDERS.contains(&stem) => Kind::Folder,
            _ => return None,
        };
        Some(Self { inside, kind })
    }

    /// The first variable of a client in a text, where `$${` is a literal `${`.
    #[must_use]
    pub fn find(text: &'t str) -> Option<Self> {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let inside = after.split_once('}').filter(|_| !before.ends_with('$'));
            let found = inside.and_then(|(inside, _)| Self::read(inside));
            if found.is_some() {
                return found;
            }
            rest = after;
        }
        None
    }

    /// The step that mends it at a place.
    #[must_use]
    pub fn remedy(&self, place: VariablePlace) -> String {
        match self.kind {
            Kind::Folder => "write the path of the folder on the daemon's machine".to_owned(),
            Kind::Separator => "write `/`".to_owned(),
            Kind::State => "write the value itself".to_owned(),
            Kind::Asked => self.remedy_of_answer(place),
        }
    }

    /// Where an answer may be a secret, it is one.
    fn remedy_of_answer(&self, place: VariablePlace) -> String {
        let name = self.secret();
        let step = match place {
            VariablePlace::Value => format!("write `${{{name}}}`"),
            VariablePlace::Bearer => format!("write `Bearer ${{{name}}}`"),
            VariablePlace::PartOfValue => {
                format!("write `${{{name}}}` as the whole value, which may be any text")
            }
            VariablePlace::Argument => format!("pass the value in `env`, as `${{{name}}}`"),
            VariablePlace::Text => return "write the value itself".to_owned(),
        };
        format!("{step}, and store that secret with `{}`", narthex("secrets set {}", &[&name]))
    }

    /// The name of the secret that takes the place of an answer.
    fn secret(&self) -> String {
        let name = ASKED.iter().find_map(|asked| self.inside.strip_prefix(asked));
        let capital = |c: char| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_uppercase(),
            false => '_',
        };
        let capitals: String = name.unwrap_or_default().chars().map(capital).collect();
        SecretName::new(&capitals).map_or_else(|_| "NAME".to_owned(), String::from)
    }
}

impl VariablePlace {
    /// The place of a variable in the value of a key that takes a secret; `header` is the key's
    /// name, if it is one of a header.
    #[must_use]
    pub fn in_value(text: &str, header: Option<&str>) -> Self {
        let is_whole = |text: &str| {
            let inside = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
            inside.is_some_and(|inside| !inside.contains('}'))
        };
        let token = text.strip_prefix(BEARER).filter(|token| is_whole(token));
        match header {
            _ if is_whole(text) => Self::Value,
            Some(name) if token.is_some() && name.eq_ignore_ascii_case("authorization") => {
                Self::Bearer
            }
            Some(_) | None => Self::PartOfValue,
        }
    }
}

/// The fault, without the remedy.
impl fmt::Display for ClientVariable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text that is shaped like a name is shown; anything else could be part of a secret.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-/".contains(c);
        let is_shown = self.inside.len() <= SHOWN_MAX && self.inside.chars().all(is_plain);
        let shown = if is_shown { self.inside } else { "…" };
        match self.kind {
            Kind::Asked => {
                write!(
                    f,
                    "`${{{shown}}}` is a value that a client asks its user for, and narthex does \
                     not ask"
                )
            }
            Kind::Folder | Kind::Separator | Kind::State => {
                write!(f, "`${{{shown}}}` is a variable of clients and has no value here")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D7: each variable of a client has one cause and one remedy, by its place.
    #[test]
    fn d7_each_client_variable_has_one_remedy() {
        for (text, header, told, remedy) in [
            (
                "${workspaceFolder}/x",
                None,
                "`${workspaceFolder}` is a variable of clients",
                "the path",
            ),
            ("a ${userHome}", None, "`${userHome}` is a variable", "the path of the folder on"),
            ("${workspaceFolder:api}", None, "`${workspaceFolder:api}`", "the path of the folder"),
            ("a${/}b", None, "`${/}` is a variable of clients", "write `/`"),
            (
                "${input:api-key}",
                None,
                "is a value that a client asks its user for",
                "write `${API_KEY}`,",
            ),
            ("${input:9}", None, "`${input:9}`", "write `${NAME}`,"),
            ("${input:a b}", None, "`${…}` is a value", "`narthex secrets set A_B`"),
            (
                "Bearer ${input:key}",
                Some("authorization"),
                "a client asks",
                "write `Bearer ${KEY}`,",
            ),
            (
                "Bearer ${input:key}",
                Some("x-key"),
                "a client asks",
                "write `${KEY}` as the whole value",
            ),
            ("${command:a.b}", None, "`${command:a.b}`", "write the value itself"),
        ] {
            let found = ClientVariable::find(text).unwrap();
            let said = found.remedy(VariablePlace::in_value(text, header));
            assert!(found.to_string().contains(told), "{text}: {found}");
            assert!(said.contains(remedy), "{text}: {said}");
        }
        let asked = ClientVariable::find("${input:key}").unwrap();
        assert!(asked.remedy(VariablePlace::Argument).contains("in `env`, as `${KEY}`"));
        assert_eq!(asked.remedy(VariablePlace::Text), "write the value itself");
    }

    #[test]
    fn d7_other_texts_contain_no_client_variable() {
        for text in [
            "${HOME}",
            "${env:HOME}",
            "$${workspaceFolder}",
            "${workspaceFolder",
            "x",
            "${scope.x}",
            "${files}",
            "${a}$${input:x}",
        ] {
            assert_eq!(ClientVariable::find(text), None, "{text}");
        }
    }
}
