//! What a human allows a user or an agent to do (D14).

use std::{fmt, time::SystemTime};

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

/// Whom a grant is for: exactly one user or one agent (X-E71).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GrantSubject {
    /// A human, in each run that they drive.
    User(PrincipalId),
    /// An agent, whoever drives it.
    Agent(AgentName),
}

/// What a grant allows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrantOf {
    /// To use what requires this tool scope.
    ToolScope(ToolScopeGrant),
    /// To start runs of an agent.
    Spawn(SpawnGrant),
}

/// A tool scope, as far as a grant allows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolScopeGrant {
    /// The tool scope.
    pub scope: ToolScope,
    /// At this server only.
    pub server: Option<Alias>,
    /// For this tool, prompt or resource only, under the server's own name.
    pub tool: Option<String>,
    /// With exactly these arguments only.
    pub arguments: Option<ArgumentsDigest>,
}

/// Which runs may be started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpawnGrant {
    /// The agent of the runs.
    pub child_agent: AgentName,
    /// The runtimes in which they may run; `None` for all.
    pub allowed_runtime_types: Option<Vec<String>>,
    /// The models that they may use; `None` for all.
    pub allowed_models: Option<Vec<String>>,
}

/// How often, or how long, a grant allows something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantDuration {
    /// For one call.
    Once,
    /// Until this run ends.
    Run(RunId),
    /// Until this session ends.
    Session(SessionId),
    /// Until it is revoked.
    Persistent,
}

/// What a human has allowed. It never changes; whether it still counts is kept beside it (X-E78).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// For whom.
    pub subject: GrantSubject,
    /// What.
    pub of: GrantOf,
    /// How often, or how long.
    pub duration: GrantDuration,
    /// When it stops counting in any case.
    pub expires_at: Option<SystemTime>,
}

impl GrantOf {
    /// The words for types of grants.
    pub const WORDS: [&'static str; 2] = ["tool_scope", "spawn"];

    /// Its word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::ToolScope(_) => "tool_scope",
            Self::Spawn(_) => "spawn",
        }
    }
}

impl GrantDuration {
    /// The words for durations.
    pub const WORDS: [&'static str; 4] = ["once", "run", "session", "persistent"];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run(_) => "run",
            Self::Session(_) => "session",
            Self::Persistent => "persistent",
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

    /// Its bytes.
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
