//! The grants of humans to users and agents (D14).

use std::{collections::BTreeMap, fmt, time::SystemTime};

use serde_json::{Map, Value, json};

use crate::{
    AgentName, Alias, PrincipalId, RunId, SessionId, ToolScope,
    ids::{id, unhex},
};

id! {
    /// The id of a grant, such as `gra_0a1b2c3d4e5f6071`; no secret.
    GrantId, "gra_", 8
}
id! {
    /// The id of a request for a grant, such as `grq_0a1b2c3d4e5f6071`; no secret.
    GrantRequestId, "grq_", 8
}

/// The subject of a grant: exactly one user or one agent (X-E71).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GrantSubject {
    /// A human, in each run that they drive.
    User(PrincipalId),
    /// An agent, under any driving user.
    Agent(AgentName),
}

/// The permission of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrantOf {
    /// The use of items that require this tool scope.
    ToolScope(ToolScopeGrant),
    /// To start runs of an agent.
    Spawn(SpawnGrant),
}

/// A tool scope, as far as a grant allows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolScopeGrant {
    /// The tool scope.
    pub scope: ToolScope,
    /// At this server only: by its id in the catalog, or by its alias if it is of none.
    pub server: Option<Alias>,
    /// For this tool, prompt or resource only, under the server's own name.
    pub tool: Option<String>,
    /// Only exactly these arguments, if given.
    pub arguments: Option<ArgumentsDigest>,
}

/// The runs that may be started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpawnGrant {
    /// The agent of the runs.
    pub child_agent: AgentName,
    /// The runtimes in which they may run; `None` for all.
    pub allowed_runtime_types: Option<Vec<String>>,
    /// The models that they may use; `None` for all.
    pub allowed_models: Option<Vec<String>>,
}

/// The number of uses, or the time, of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantDuration {
    /// For one call.
    Once,
    /// For one call in this session: what a run of it has asked for (S26).
    OnceIn(SessionId),
    /// Until this run ends.
    Run(RunId),
    /// Until this session ends.
    Session(SessionId),
    /// Until it is revoked.
    Persistent,
}

/// A permission from a human. It never changes; its validity is stored beside it (X-E78).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The grant's id.
    pub id: GrantId,
    /// The subject of the permission.
    pub subject: GrantSubject,
    /// The permission.
    pub of: GrantOf,
    /// The number of uses, or the time.
    pub duration: GrantDuration,
    /// The time at which it stops counting in any case.
    pub expires_at: Option<SystemTime>,
}

impl GrantSubject {
    /// The user or the agent.
    #[must_use]
    pub fn parts(&self) -> (Option<&PrincipalId>, Option<&AgentName>) {
        match self {
            Self::User(user) => (Some(user), None),
            Self::Agent(agent) => (None, Some(agent)),
        }
    }
}

impl GrantOf {
    /// The words for types of grants.
    pub const WORDS: [&'static str; 2] = ["tool_scope", "spawn"];

    /// The permission's word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::ToolScope(_) => "tool_scope",
            Self::Spawn(_) => "spawn",
        }
    }

    /// The permission as in documents, without absent members.
    #[must_use]
    pub fn details(&self) -> Value {
        let details = match self {
            Self::ToolScope(ToolScopeGrant { scope, server, tool, arguments }) => [
                ("scope", json!(scope)),
                ("server", json!(server)),
                ("tool", json!(tool)),
                ("arguments_digest", json!(arguments.map(|digest| digest.to_string()))),
            ]
            .to_vec(),
            Self::Spawn(SpawnGrant { child_agent, allowed_runtime_types, allowed_models }) => [
                ("child_agent_id", json!(child_agent)),
                ("allowed_runtime_types", json!(allowed_runtime_types)),
                ("allowed_models", json!(allowed_models)),
            ]
            .to_vec(),
        };
        let said = details.into_iter().filter(|(_, value)| !value.is_null());
        let sorted: BTreeMap<_, _> = said.map(|(name, value)| (name.to_owned(), value)).collect();
        // The store compares them as texts.
        sorted.into_iter().collect::<Map<_, _>>().into()
    }

    /// Reads what [`GrantOf::word`] and [`GrantOf::details`] have written; `None` for anything
    /// else.
    #[must_use]
    pub fn read(word: &str, details: &Value) -> Option<Self> {
        let text = |name| match details.get(name) {
            None => Some(None),
            Some(value) => value.as_str().map(Some),
        };
        let list = |name| match details.get(name) {
            None => Some(None),
            Some(value) => serde_json::from_value(value.clone()).ok().map(Some),
        };
        let [tool_scope, spawn] = Self::WORDS;
        if word == tool_scope {
            let arguments = match text("arguments_digest")? {
                None => None,
                Some(digest) => Some(ArgumentsDigest::parse(digest)?),
            };
            let server = text("server")?.map(Alias::new).transpose().ok()?;
            return Some(Self::ToolScope(ToolScopeGrant {
                scope: ToolScope::new(text("scope")??).ok()?,
                server,
                tool: text("tool")?.map(str::to_owned),
                arguments,
            }));
        }
        (word == spawn).then_some(())?;
        Some(Self::Spawn(SpawnGrant {
            child_agent: AgentName::new(text("child_agent_id")??).ok()?,
            allowed_runtime_types: list("allowed_runtime_types")?,
            allowed_models: list("allowed_models")?,
        }))
    }
}

impl GrantDuration {
    /// The words for durations.
    pub const WORDS: [&'static str; 4] = ["once", "run", "session", "persistent"];

    /// The duration's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Once | Self::OnceIn(_) => "once",
            Self::Run(_) => "run",
            Self::Session(_) => "session",
            Self::Persistent => "persistent",
        }
    }

    /// True if one call uses the grant up.
    #[must_use]
    pub fn is_single(self) -> bool {
        matches!(self, Self::Once | Self::OnceIn(_))
    }

    /// The run and the session that it is bound to.
    #[must_use]
    pub fn places(self) -> (Option<RunId>, Option<SessionId>) {
        match self {
            Self::Once | Self::Persistent => (None, None),
            Self::Run(run) => (Some(run), None),
            Self::Session(session) | Self::OnceIn(session) => (None, Some(session)),
        }
    }

    /// Reads the results of [`GrantDuration::word`] and [`GrantDuration::places`].
    #[must_use]
    pub fn read(word: &str, run: Option<RunId>, session: Option<SessionId>) -> Option<Self> {
        match (word, run, session) {
            ("once", None, None) => Some(Self::Once),
            ("once", None, Some(session)) => Some(Self::OnceIn(session)),
            ("run", Some(run), None) => Some(Self::Run(run)),
            ("session", None, Some(session)) => Some(Self::Session(session)),
            ("persistent", None, None) => Some(Self::Persistent),
            _ => None,
        }
    }
}

/// The SHA-256 of arguments in the canonical form of RFC 8785.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgumentsDigest([u8; 32]);

impl ArgumentsDigest {
    /// The digest of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// Reads one as it is written: `sha256:` and 64 of 0-9 and a-f.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text.strip_prefix("sha256:")?).map(Self)
    }
}

impl fmt::Display for ArgumentsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ArgumentsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArgumentsDigest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E74: what is written of a grant is what is read, and nothing else is one.
    #[test]
    fn x_e74_details_of_grants_survive_a_round_trip() {
        let digest = ArgumentsDigest::new([7; 32]).to_string();
        for (word, details) in [
            ("tool_scope", json!({ "scope": "linear.write" })),
            (
                "tool_scope",
                json!({ "scope": "a.b", "server": "git", "tool": "T", "arguments_digest": digest }),
            ),
            ("spawn", json!({ "child_agent_id": "reader" })),
            (
                "spawn",
                json!({ "child_agent_id": "r", "allowed_models": ["m"],
                        "allowed_runtime_types": [] }),
            ),
        ] {
            let of = GrantOf::read(word, &details).unwrap();
            assert_eq!((of.word(), of.details()), (word, details));
            let written = of.details();
            let names: Vec<_> = written.as_object().unwrap().keys().collect();
            assert!(names.is_sorted(), "equal details have one text: {written}");
        }
        for (word, details) in [
            ("tool_scope", json!({})),
            ("tool_scope", json!({ "scope": "Linear" })),
            ("tool_scope", json!({ "scope": "a.b", "tool": 1 })),
            ("tool_scope", json!({ "scope": "a.b", "arguments_digest": "sha256:00" })),
            ("spawn", json!({ "scope": "a.b" })),
            ("spawn", json!({ "child_agent_id": "r", "allowed_models": [1] })),
            ("other", json!({ "scope": "a.b" })),
        ] {
            assert_eq!(GrantOf::read(word, &details), None, "{word} {details}");
        }
    }

    /// X-E73: each duration has its place, and no other.
    #[test]
    fn x_e73_durations_of_grants_survive_a_round_trip() {
        let (run, session) = (RunId::new([1; 6]), SessionId::new([2; 6]));
        for duration in [
            GrantDuration::Once,
            GrantDuration::OnceIn(session),
            GrantDuration::Run(run),
            GrantDuration::Session(session),
            GrantDuration::Persistent,
        ] {
            let (of_run, of_session) = duration.places();
            assert_eq!(GrantDuration::read(duration.word(), of_run, of_session), Some(duration));
            let wrong = (of_run.is_none().then_some(run), of_session);
            assert_eq!(GrantDuration::read(duration.word(), wrong.0, wrong.1), None);
        }
    }
}
