//! Identifiers, names, domain types and error kinds that every other crate may use.
//!
//! No I/O and no async here: this crate is the vocabulary.

/// All variants of the enum of an `impl`, as an array: `every![Tools, Prompts]`. A variant that is
/// not in the list does not compile. A variant with a value is listed once per value.
#[macro_export]
macro_rules! every {
    ($($variant:ident $(($($value:tt)+))?),+ $(,)?) => {{
        let _is_complete = |one: Self| match one {
            $(Self::$variant $(($($value)+))?)|+ => (),
        };
        [$(Self::$variant $(($($value)+))?),+]
    }};
}

mod agent_env;
mod agent_type;
mod alias;
mod auth;
mod auth_error;
mod built_in_tools;
mod catalog;
mod client_variable;
pub mod command;
mod confinement;
mod env_binding;
mod error;
mod executors;
mod exposed;
mod filled_in;
mod fingerprint;
mod gates;
mod grants;
mod harmless;
pub mod header;
mod ids;
pub mod json;
mod known_key;
mod method_name;
mod model_text;
mod models;
mod named_secret;
mod names;
mod nearest;
pub mod package;
mod page;
mod principal;
pub mod problem_code;
mod profile;
mod provenance;
mod qualified;
mod run_scope;
mod run_token;
mod runs;
mod secret;
mod secrets;
mod server;
mod server_failure;
mod shares;
mod timestamp;
mod traffic;
mod turn;
pub mod uri;
mod userinfo;
pub mod variable;
mod warning;
mod workspace;
mod workspace_limits;
pub mod written;

pub use agent_env::AgentEnv;
pub use agent_type::{AgentType, OauthOnOrchestrators};
pub use alias::{Alias, AliasError};
pub use auth::{
    ApiKeyAuth, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, CredentialAddressFault,
    ExchangeFallback, ExchangeIdentity, ExchangeKind, GivenIdentity, HeaderSource, KEY_ALGORITHMS,
    OAuth, OAuthClient, OAuthExchange, OAuthPkce, OAuthRegistration, OAuthResource, OAuthScopes,
    OAuthTokens, PRIVATE_KEY_JWT, SecretMethod, ServerAuth, SharedGrant, check_credential_address,
};
pub use auth_error::{AuthErrorFault, AuthErrorPattern, AuthErrorTest};
pub use built_in_tools::BuiltInTools;
pub use catalog::CatalogKind;
pub use client_variable::{ClientVariable, VariablePlace};
pub use confinement::{
    Confinement, ConfinementProblem, EntryConfinement, FileAccess, NetworkAccess, ProcessLimits,
};
pub use env_binding::{EnvBindingId, EnvScope};
pub use error::{CallError, CallErrorKind, ErrorKind, Side, with_causes};
pub use executors::KnownExecutors;
pub use exposed::{EVERYTHING, Exposed, NameRule, UriRule};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use gates::{
    GATE_FIELDS, Gates, ListedNames, NO_GATES, ToolScopes, UnmatchedGate, unmatched_in,
};
pub use grants::{
    ArgumentsDigest, Grant, GrantDuration, GrantId, GrantOf, GrantRequestId, GrantSubject,
    SpawnGrant, ToolScopeGrant,
};
pub use harmless::{harmless, is_unseen};
pub use known_key::is_known_key;
pub use method_name::{
    NotificationName, NotificationNameError, folded_method, imitates, is_plain_method,
    is_protocol_method,
};
pub use model_text::{REFUSAL_TEXT_MAX, for_models, for_operators, value_for_models};
pub use models::{EnabledModel, EnabledModels, ModelFault};
pub use named_secret::{AuthSecret, NamedSecret, OpenedSecret, SecretId, SecretPlace};
pub use names::{
    AgentName, CapabilityName, ChannelName, EnvName, ExecutorName, McpClientId, NameError,
    PreviewId, PrincipalId, PrincipalName, ProfileName, ServerId, ServiceTokenId, ToolScope,
};
pub use nearest::{UnknownKey, did_you_mean, meant_hint, near, nearest};
pub use page::Page;
pub use principal::{ClientOrigin, PrincipalKind, Role, Roles};
pub use profile::{Profile, ProfileProblem, ToolOverride};
pub use provenance::Provenance;
pub use qualified::{QUALIFIED_NAME_MAX, QualifiedName, QualifiedNames};
pub use run_scope::RunScope;
pub use run_token::RunToken;
pub use runs::{Pid, RunEnd, RunId, SessionId};
pub use secret::Secret;
pub use secrets::{
    KeyId, SealedSecret, SecretName, SecretNameError, SecretReference, SecretReferenceError,
    SecretSummary, SecretVersion, VersionSummary,
};
pub use server::{
    ConfigFault, HttpTarget, OutputLimits, ServerDefinition, ServerState, StdioTarget, Target,
    TransportKind, is_secret_name, is_secret_variable,
};
pub use server_failure::{HttpAnswer, Reader, ServerFailure, WantedSignIn};
pub use shares::{ShareId, ThreadId};
pub use timestamp::Timestamp;
pub use traffic::{CallRate, LimitProblem, TrafficLimits};
pub use turn::TurnOf;
pub use userinfo::basic_credentials;
pub use warning::{RowWarning, WarningKind};
pub use workspace::{WorkspaceId, WorkspaceIdError};
pub use workspace_limits::{BudgetProblem, ChildLimits, OverBudget, RunBudget, WorkspaceLimits};
