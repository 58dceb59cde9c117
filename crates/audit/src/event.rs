//! One event of the audit: who did what to what, and how it came out. Names, not values.

use std::{borrow::Cow, collections::BTreeMap, time::SystemTime};

use narthex_model::WorkspaceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that somebody did, or was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEvent<'a> {
    /// Whose it is. `None`: the installation's, which is no tenant's.
    #[serde(with = "workspace")]
    pub workspace: Option<WorkspaceId>,
    /// When it ended.
    pub time: SystemTime,
    /// What it is: one of [`kind`](crate::kind), or a name in their style.
    pub kind: Cow<'a, str>,
    /// Who did it.
    pub actor: Actor<'a>,
    /// What it was done to.
    pub resource: Option<Resource<'a>>,
    /// The run that it belongs to.
    pub run: Option<Cow<'a, str>>,
    /// The session.
    pub session: Option<Cow<'a, str>>,
    /// The server, by its alias.
    pub server: Option<Cow<'a, str>>,
    /// The tool, under the server's own name.
    pub tool: Option<Cow<'a, str>>,
    /// How it came out: `ok`, `denied`, `failed` …
    pub outcome: Cow<'a, str>,
    /// How long it took, in microseconds.
    pub duration_us: Option<u64>,
    /// The grant by which it was allowed.
    pub granted_via: Option<Cow<'a, str>>,
    /// The names of the fields that were changed.
    pub fields: Vec<Cow<'a, str>>,
    /// What else is told of it: names, counts and digests, never a value that somebody gave but for
    /// [`CONTENTS`](crate::CONTENTS) of a call whose workspace asks for them.
    pub details: BTreeMap<Cow<'a, str>, Value>,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor<'a> {
    /// The principal's id.
    pub id: Cow<'a, str>,
    /// What kind of principal it is.
    pub kind: ActorKind,
}

/// What kinds of principals there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person who has signed in.
    Human,
    /// A program with a token of its own.
    Service,
    /// An MCP client that is registered.
    Client,
    /// A run, by its token or its folder.
    Run,
    /// Whoever has the operator's token of this machine: advisory, it proves no person (D15).
    LocalAdmin,
    /// Nobody is known.
    Anonymous,
    /// narthex itself.
    System,
}

/// What something was done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource<'a> {
    /// Its id or name.
    pub id: Cow<'a, str>,
    /// Its kind, such as `secret`, `agent` or `tool`.
    pub kind: Cow<'a, str>,
}

impl ActorKind {
    /// Its spelling in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Service => "service",
            Self::Client => "client",
            Self::Run => "run",
            Self::LocalAdmin => "local_admin",
            Self::Anonymous => "anonymous",
            Self::System => "system",
        }
    }
}

impl<'a> Actor<'a> {
    /// Somebody of this kind.
    pub fn new(kind: ActorKind, id: impl Into<Cow<'a, str>>) -> Self {
        Self { id: id.into(), kind }
    }

    /// narthex itself.
    #[must_use]
    pub fn system() -> Self {
        Self::new(ActorKind::System, "narthex")
    }
}

impl<'a> AuditEvent<'a> {
    /// An event of now that came out well, of the installation until [`AuditEvent::in_workspace`].
    pub fn new(kind: impl Into<Cow<'a, str>>, actor: Actor<'a>) -> Self {
        Self {
            workspace: None,
            time: SystemTime::now(),
            kind: kind.into(),
            actor,
            resource: None,
            run: None,
            session: None,
            server: None,
            tool: None,
            outcome: Cow::Borrowed("ok"),
            duration_us: None,
            granted_via: None,
            fields: Vec::new(),
            details: BTreeMap::new(),
        }
    }

    /// The same, of a workspace.
    #[must_use]
    pub fn in_workspace(mut self, workspace: &WorkspaceId) -> Self {
        self.workspace = Some(workspace.clone());
        self
    }

    /// The same, done to something.
    #[must_use]
    pub fn on(mut self, kind: impl Into<Cow<'a, str>>, id: impl Into<Cow<'a, str>>) -> Self {
        self.resource = Some(Resource { id: id.into(), kind: kind.into() });
        self
    }

    /// The same, of a run.
    #[must_use]
    pub fn of_run(mut self, run: impl Into<Cow<'a, str>>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// The same, of a session.
    #[must_use]
    pub fn of_session(mut self, session: impl Into<Cow<'a, str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The same, with something more that is told of it. Never a value that somebody gave.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value>) -> Self {
        let mut value = value.into();
        // A line is hashed as it is written, and read with the keys of its objects in their order.
        value.sort_all_objects();
        self.details.insert(name.into(), value);
        self
    }

    /// The same, with the names of what was changed.
    #[must_use]
    pub fn changing<T: Into<Cow<'a, str>>>(mut self, fields: impl IntoIterator<Item = T>) -> Self {
        self.fields = fields.into_iter().map(Into::into).collect();
        self
    }
}

/// A workspace as its id.
mod workspace {
    use narthex_model::WorkspaceId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        workspace: &Option<WorkspaceId>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        workspace.as_ref().map(WorkspaceId::as_str).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<WorkspaceId>, D::Error> {
        let id = Option::<String>::deserialize(deserializer)?;
        id.map(|id| WorkspaceId::new(&id).map_err(D::Error::custom)).transpose()
    }
}
