//! Ids, names and words that many shapes have.

use std::{borrow::Cow, fmt, time::SystemTime};

use narthex_definitions::reviews;
use narthex_model::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// Types of text, which differ by their schema.
macro_rules! texts {
    ($($(#[$attribute:meta])+ $name:ident;)*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        $(#[$attribute])+
        pub(crate) struct $name(String);

        impl<T: fmt::Display> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.to_string())
            }
        }
    )*};
}

/// Types of a word out of a list, which is the list of the code. A type with `inline` at its end
/// has its schema at each use, and none of its own.
macro_rules! words {
    ($($(#[doc = $about:literal])+ $name:ident($of:ty, $word:ident) = $all:expr
        $(, $inline:ident)?;)*) => {$(
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Serialize)]
        pub(crate) struct $name(&'static str);

        impl From<$of> for $name {
            fn from(one: $of) -> Self {
                Self(one.$word())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }

            fn inline_schema() -> bool {
                stringify!($($inline)?) == "inline"
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let about = [$($about.trim()),+].join(" ");
                let mut schema = json_schema!({ "type": "string", "enum": $all });
                if !Self::inline_schema() {
                    schema.insert("description".to_owned(), about.into());
                }
                schema
            }
        }
    )*};
}

/// The words of an enum without a list of its own. A missing variant does not compile.
macro_rules! each {
    ($of:ty, $word:ident: $($variant:ident),+) => {{
        type Of = $of;
        let _is_complete = |one: Of| match one { $(Of::$variant)|+ => () };
        [$(Of::$variant),+].map(|one| one.$word())
    }};
}

impl GrantScope {
    /// The scope of a stored request, by one of [`narthex_model::GrantDuration::WORDS`].
    pub(crate) fn stored(word: &'static str) -> Self {
        Self(word)
    }
}

/// A time in UTC with milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("format" = "date-time", "examples" = ["2026-11-22T13:00:00.000Z"]))]
#[schemars(extend(
    "pattern" = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
))]
pub(crate) struct Time(String);

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        Self(Timestamp::new(time).to_string())
    }
}

texts! {
    /// Id of a workspace.
    #[schemars(extend("examples" = ["default"]))]
    #[schemars(extend("maxLength" = 64))]
    #[schemars(extend("pattern" = "^[a-z0-9][a-z0-9_-]{0,63}$"))]
    WorkspaceId;

    /// Name of a server inside an agent or a run. Contains no `__`.
    #[schemars(extend("examples" = ["library"]))]
    #[schemars(extend("maxLength" = 64))]
    #[schemars(extend("pattern" = "^[a-z](?:_?[a-z0-9-])*_?$"))]
    Alias;

    /// Name of an agent or a capability.
    #[schemars(extend("examples" = ["reader"]))]
    #[schemars(extend("maxLength" = 64))]
    #[schemars(extend("pattern" = "^[a-z0-9][a-z0-9_-]*$"))]
    ObjectName;

    /// Name of a secret.
    #[schemars(extend("examples" = ["DOCS_KEY"]))]
    #[schemars(extend("maxLength" = 64))]
    #[schemars(extend("pattern" = "^[A-Z_][A-Z0-9_]{0,63}$"))]
    SecretName;

    /// Id of a human or a service.
    #[schemars(extend("examples" = ["prn_0011223344556677"]))]
    #[schemars(extend("pattern" = "^prn_[0-9a-f]{16}$"))]
    PrincipalId;

    /// Name of a human, such as `ada`, or of a service with its workspace in front: `team/ci`.
    #[schemars(extend("examples" = ["ada"]))]
    #[schemars(extend("maxLength" = 193))]
    #[schemars(extend("minLength" = 1))]
    PrincipalName;

    /// Id of a service's token. The id is no secret.
    #[schemars(extend("examples" = ["tok_0011223344556677"]))]
    #[schemars(extend("pattern" = "^tok_[0-9a-f]{16}$"))]
    TokenId;

    /// Id of a sign-in at another device.
    #[schemars(extend("examples" = ["0a1b2c3d4e5f6071"]))]
    #[schemars(extend("maxLength" = 64))]
    DeviceSignInId;

    /// Id of a run.
    #[schemars(extend("examples" = ["run_0a1b2c3d4e5f"]))]
    #[schemars(extend("pattern" = "^run_[0-9a-f]{12}$"))]
    RunId;

    /// Id of a session.
    #[schemars(extend("examples" = ["ses_0a1b2c3d4e5f"]))]
    #[schemars(extend("pattern" = "^ses_[0-9a-f]{12}$"))]
    SessionId;

    /// Id of a grant.
    #[schemars(extend("examples" = ["gra_0a1b2c3d4e5f6071"]))]
    #[schemars(extend("pattern" = "^gra_[0-9a-f]{16}$"))]
    GrantId;

    /// Id of a run's request for a grant.
    #[schemars(extend("examples" = ["grq_0a1b2c3d4e5f6071"]))]
    #[schemars(extend("pattern" = "^grq_[0-9a-f]{16}$"))]
    GrantRequestId;

    /// Id of a share.
    #[schemars(extend("examples" = ["shr_0a1b2c3d4e5f"]))]
    #[schemars(extend("pattern" = "^shr_[0-9a-f]{12}$"))]
    ShareId;

    /// Id of a thread of comments.
    #[schemars(extend("examples" = ["thr_0a1b2c3d4e5f"]))]
    #[schemars(extend("pattern" = "^thr_[0-9a-f]{12}$"))]
    ThreadId;

    /// Name of a channel or a webhook.
    #[schemars(extend("examples" = ["team"]))]
    #[schemars(extend("pattern" = "^[a-z0-9][a-z0-9_-]{0,63}$"))]
    ChannelName;

    /// Id or name of a human or a service.
    #[schemars(extend("examples" = ["ada"]))]
    #[schemars(extend("minLength" = 1))]
    PrincipalRef;

    /// Id of a passkey.
    #[schemars(extend("minLength" = 1))]
    PasskeyId;

    /// Id of a registered MCP client.
    #[schemars(extend("pattern" = "^cli_[0-9a-f]{16}$"))]
    McpClientId;

    /// Name of a provider.
    #[schemars(extend("minLength" = 1))]
    ProviderName;

    /// The secret of a link that signs in.
    #[schemars(extend("minLength" = 1))]
    SignInToken;

    /// The secret of a page on which a human answers a program.
    #[schemars(extend("minLength" = 1))]
    ConsentToken;

    /// The path of an MCP endpoint, such as `mcp/git`, with its slashes.
    #[schemars(extend("minLength" = 1))]
    ResourcePath;

    /// A path such as `mnt/mcp/0-files/tools/read_file`, with its slashes. Each of its parts is
    /// percent-encoded once.
    #[schemars(extend("minLength" = 1))]
    VfsPath;

    /// Name of a tool, percent-encoded.
    #[schemars(extend("minLength" = 1))]
    ToolName;

    /// Digest of a definition's content. Another text has another digest.
    #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
    DefinitionDigest;

    /// Name of a server, as the configuration has it.
    #[schemars(extend("examples" = ["docs"]))]
    #[schemars(extend("minLength" = 1))]
    ServerName;

    /// A version in a path of the registry API: that of an answer, or `latest`.
    #[schemars(extend("minLength" = 1, "maxLength" = 255, "examples" = ["latest"]))]
    RegistryVersion;

    /// Name of a profile.
    #[schemars(extend("examples" = ["work"]))]
    #[schemars(extend("maxLength" = 64))]
    #[schemars(extend("pattern" = "^[a-z](?:_?[a-z0-9-])*_?$"))]
    ProfileName;

    /// Name of a profile, as the settings file has it.
    #[schemars(extend("examples" = ["work"]))]
    #[schemars(extend("minLength" = 1))]
    ProfileRef;

    /// A SHA-256 digest in hexadecimal digits.
    #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
    Digest;

    /// Id of a binding: `agent:AGENT:NAME`, `preview_environment:ID:NAME` or `workspace:NAME`.
    #[schemars(extend("examples" = ["agent:reader:DOCS_TOKEN"]))]
    #[schemars(extend(
        "pattern" = "^(workspace|(agent|preview_environment):[^:]+):[A-Za-z_][A-Za-z0-9_]*$"
    ))]
    EnvBindingId;
}

words! {
    /// A role in one workspace.
    Role(narthex_model::Role, as_str) = narthex_model::Role::ALL.map(narthex_model::Role::as_str);

    /// Kind of an agent. A `worker` acts for the human who drives its run, an `orchestrator` leads
    /// the runs of others, and a `scheduled` agent runs without a present human. Absent for
    /// `worker`.
    AgentType(narthex_model::AgentType, as_str) =
        narthex_model::AgentType::ALL.map(narthex_model::AgentType::as_str);

    /// Kind of the principal of an event of the audit.
    ActorKind(narthex_audit::ActorKind, as_str) = each!(
        narthex_audit::ActorKind, as_str:
        Human, Service, Client, Run, LocalAdmin, Anonymous, System
    ), inline;

    /// Status of a run.
    RunStatus(narthex_runs::RunStatus, as_str) =
        narthex_runs::RunStatus::ALL.map(narthex_runs::RunStatus::as_str);

    /// Kind of a permission.
    GrantType(&narthex_model::GrantOf, word) = narthex_model::GrantOf::WORDS;

    /// Duration of a grant: one call, a run, a session, or until it is revoked or expires.
    GrantScope(narthex_model::GrantDuration, word) = narthex_model::GrantDuration::WORDS;

    /// Kind of a failure, the same at every door.
    ErrorKind(narthex_model::ErrorKind, as_str) =
        narthex_model::ErrorKind::ALL.map(narthex_model::ErrorKind::as_str);

    /// Rule for servers with a sign-in per person, for agents that are not workers. `off`: not
    /// allowed. `on_attended`: allowed; a run that no human drives reports that the server needs
    /// one. `on`: allowed as for workers.
    OauthOnOrchestrators(narthex_model::OauthOnOrchestrators, as_str) =
        narthex_model::OauthOnOrchestrators::ALL.map(narthex_model::OauthOnOrchestrators::as_str);

    /// Kind of the scope of a binding.
    EnvScope(&narthex_model::EnvScope, word) = narthex_model::EnvScope::WORDS;

    /// State of a server.
    ServerState(narthex_model::ServerState, as_str) =
        each!(narthex_model::ServerState, as_str:
            Connecting, Authenticating, Ready, Error, Disabled);

    /// Transport of a server.
    Transport(narthex_model::TransportKind, as_str) =
        each!(narthex_model::TransportKind, as_str: Stdio, Http, Sse), inline;

    /// Source of a server's entry.
    Provenance(narthex_model::Provenance, as_str) =
        each!(narthex_model::Provenance, as_str: Settings, Workspace, Programmatic), inline;

    /// Kind of the failure of a call or a server.
    CallErrorKind(narthex_model::CallErrorKind, as_str) =
        narthex_model::CallErrorKind::ALL.map(narthex_model::CallErrorKind::as_str), inline;

    /// Kind of a fault that takes away a part of a server.
    WarningKind(narthex_model::WarningKind, as_str) =
        each!(narthex_model::WarningKind, as_str:
            ListFailed, ListCut, ListedTwice, DefinitionRepaired, DefinitionLeftOut, ListChanges,
            GateUnmatched), inline;

    /// Origin that a client may give to its writes.
    ClientOrigin(narthex_model::ClientOrigin, as_str) =
        narthex_model::ClientOrigin::ALL.map(narthex_model::ClientOrigin::as_str), inline;

    /// Reason why a client starts no further run.
    ClientClosed(narthex_runs::ClientClosed, as_str) =
        each!(narthex_runs::ClientClosed, as_str:
            Revoked, Expired, Disabled, AgentDeleted, AgentInactive, ProfileGone, HumanLost),
        inline;

    /// State of a definition.
    DefinitionState(reviews::DefinitionState, as_str) =
        reviews::DefinitionState::ALL.map(reviews::DefinitionState::as_str), inline;

    /// Name of a stage of a test.
    StageName(narthex_control::StageName, as_str) =
        narthex_control::StageName::ALL.map(narthex_control::StageName::as_str);
}

/// Generation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

impl From<narthex_wire::Era> for Era {
    fn from(era: narthex_wire::Era) -> Self {
        match era {
            narthex_wire::Era::Modern => Self::Modern,
            narthex_wire::Era::Legacy => Self::Legacy,
        }
    }
}
