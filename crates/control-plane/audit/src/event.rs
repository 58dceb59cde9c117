//! One event of the audit: actor, action, object and outcome. Names, not values.

use std::{borrow::Cow, collections::BTreeMap, time::SystemTime};

use narthex_model::WorkspaceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action, or a refused one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEvent<'a> {
    /// The workspace that owns the event; `None` for the installation.
    #[serde(with = "workspace")]
    pub workspace: Option<WorkspaceId>,
    /// End of the action.
    pub time: SystemTime,
    /// Kind of the event: one of [`kind`](crate::kind), or a name in their style.
    pub kind: Cow<'a, str>,
    /// The actor.
    pub actor: Actor<'a>,
    /// The resource that the actor acted on.
    pub resource: Option<Resource<'a>>,
    /// The run of the action.
    pub run: Option<Cow<'a, str>>,
    /// The session.
    pub session: Option<Cow<'a, str>>,
    /// The server, by its alias.
    pub server: Option<Cow<'a, str>>,
    /// The tool, by the server's own name.
    pub tool: Option<Cow<'a, str>>,
    /// The outcome, such as `ok`, `denied` or `failed`.
    pub outcome: Cow<'a, str>,
    /// The duration in microseconds.
    pub duration_us: Option<u64>,
    /// The grant that allowed the action.
    pub granted_via: Option<Cow<'a, str>>,
    /// The names of the changed fields.
    pub fields: Vec<Cow<'a, str>>,
    /// Further details: names, counts and digests. A caller's values appear only in
    /// [`CONTENTS`](crate::CONTENTS) of a call, in a workspace with that setting.
    pub details: BTreeMap<Cow<'a, str>, Value>,
}

/// The principal that acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor<'a> {
    /// The principal's id.
    pub id: Cow<'a, str>,
    /// The kind of principal.
    pub kind: ActorKind,
}

/// Kinds of principals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person who has signed in.
    Human,
    /// A program with a token of its own.
    Service,
    /// A registered MCP client.
    Client,
    /// A run, identified by its token or its folder.
    Run,
    /// A caller with this machine's operator token: advisory, as it proves no person (D15).
    LocalAdmin,
    /// An unknown caller.
    Anonymous,
    /// Narthex itself.
    System,
}

/// The object of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource<'a> {
    /// Id or name of the object.
    pub id: Cow<'a, str>,
    /// Kind of the object, such as `secret`, `agent` or `tool`.
    pub kind: Cow<'a, str>,
}

impl ActorKind {
    /// The name in events.
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
    /// An actor of this kind.
    pub fn new(kind: ActorKind, id: impl Into<Cow<'a, str>>) -> Self {
        Self { id: id.into(), kind }
    }

    /// Narthex itself as the actor.
    #[must_use]
    pub fn system() -> Self {
        Self::new(ActorKind::System, "narthex")
    }
}

impl<'a> AuditEvent<'a> {
    /// A successful event of now. It belongs to the installation until
    /// [`AuditEvent::in_workspace`].
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

    /// Sets the workspace.
    #[must_use]
    pub fn in_workspace(mut self, workspace: &WorkspaceId) -> Self {
        self.workspace = Some(workspace.clone());
        self
    }

    /// Sets the object of the action.
    #[must_use]
    pub fn on(mut self, kind: impl Into<Cow<'a, str>>, id: impl Into<Cow<'a, str>>) -> Self {
        self.resource = Some(Resource { id: id.into(), kind: kind.into() });
        self
    }

    /// Sets the run.
    #[must_use]
    pub fn of_run(mut self, run: impl Into<Cow<'a, str>>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets the session.
    #[must_use]
    pub fn of_session(mut self, session: impl Into<Cow<'a, str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Adds a detail. The value must never come from a caller.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value>) -> Self {
        let mut value = value.into();
        // A line is hashed as it is written, and read with the keys of its objects in their order.
        value.sort_all_objects();
        self.details.insert(name.into(), value);
        self
    }

    /// Sets the names of the changed fields.
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
