//! Bindings: the agents that get a secret into their own environment, and its name there.

use std::fmt;

use crate::{AgentName, EnvName, PreviewId};

/// The target of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EnvScope {
    /// One agent.
    Agent(AgentName),
    /// One preview environment.
    PreviewEnvironment(PreviewId),
    /// All agents and preview environments of the workspace.
    Workspace,
}

/// The id of a binding in its workspace: `agent:reader:GITHUB_TOKEN`,
/// `preview_environment:staging:GITHUB_TOKEN` or `workspace:GITHUB_TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvBindingId {
    /// The target of the binding.
    pub scope: EnvScope,
    /// The variable.
    pub name: EnvName,
}

impl EnvScope {
    /// The words for scopes.
    pub const WORDS: [&'static str; 3] = ["agent", "preview_environment", "workspace"];

    /// The scope of this word, with the id of what it is about, which a workspace has not.
    #[must_use]
    pub fn parse(word: &str, id: &str) -> Option<Self> {
        match word {
            "agent" => AgentName::new(id).ok().map(Self::Agent),
            "preview_environment" => PreviewId::new(id).ok().map(Self::PreviewEnvironment),
            "workspace" => id.is_empty().then_some(Self::Workspace),
            _ => None,
        }
    }

    /// The scope's word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::PreviewEnvironment(_) => "preview_environment",
            Self::Workspace => "workspace",
        }
    }

    /// The id of what it is about; empty for the workspace.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Agent(name) => name.as_str(),
            Self::PreviewEnvironment(id) => id.as_str(),
            Self::Workspace => "",
        }
    }
}

impl EnvBindingId {
    /// Reads one as it is written; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scope, name) = text.rsplit_once(':')?;
        let scope = match scope.split_once(':') {
            Some((_, "")) => return None,
            Some((word, id)) => EnvScope::parse(word, id)?,
            None => EnvScope::parse(scope, "")?,
        };
        Some(Self { scope, name: EnvName::new(name).ok()? })
    }
}

impl fmt::Display for EnvBindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, name } = self;
        match scope {
            EnvScope::Workspace => write!(f, "workspace:{name}"),
            EnvScope::Agent(_) | EnvScope::PreviewEnvironment(_) => {
                write!(f, "{}:{}:{name}", scope.word(), scope.id())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E59, X-E63: ids are read as they are written, and nothing else is one.
    #[test]
    fn x_e63_ids_of_bindings() {
        for text in ["agent:reader:TOKEN", "preview_environment:pr-7:_A1", "workspace:TOKEN"] {
            assert_eq!(EnvBindingId::parse(text).unwrap().to_string(), text);
        }
        let bad = [
            "",
            "TOKEN",
            ":TOKEN",
            "agent:TOKEN",
            "agent::TOKEN",
            "agent:A:TOKEN",
            "agent:a:token",
            "agent:a:1A",
            "workspace:a:TOKEN",
            "workspace::TOKEN",
            "run:a:TOKEN",
            "agent:a:b:TOKEN",
            "workspace:",
            "workspace",
        ];
        for text in bad {
            assert_eq!(EnvBindingId::parse(text), None, "{text}");
        }
        for word in EnvScope::WORDS {
            let id = if word == "workspace" { "" } else { "x" };
            let scope = EnvScope::parse(word, id).unwrap();
            assert_eq!((scope.word(), scope.id()), (word, id));
        }
    }
}
