//! The control plane: operators' verbs for servers, the catalog, runs and secrets, the same for
//! every interface.
//!
//! [`Control`] combines the live registry, the files that configure it, and the store. The store
//! has all data that must outlive a restart, such as the catalog of workspaces. Crate `runs`
//! creates and ends runs of the gateway with this. REST and the command line call the same verbs.
//! Calls of tools do not pass here.

mod access;
mod audit;
mod catalog;
mod control;
mod cuts;
mod door;
mod error;
mod filled;
mod follow;
mod grants;
mod idempotency;
mod installation;
mod keys;
mod live;
mod login;
mod messages;
pub mod oauth;
mod probe;
mod rules;
mod secrets;
mod seeding;
mod servers;
mod shipping;
mod sign_ins;
mod traffic;

pub use access::{
    AccessError, Account, ClientRequest, Connection, CreatedClient, CreatedToken, EnvNames,
    KnownClient, KnownToken, McpClientToken, NewClient, Sees, ServiceToken,
};
pub use audit::{AuditExport, AuditItem, AuditPage, AuditQuery, By};
pub use catalog::{
    AgentParts, CatalogAttached, CatalogAttachment, CatalogAttachments, CatalogChange,
    CatalogConnection, CatalogError, CatalogImport, CatalogImportChange, CatalogImported,
    CatalogLeft, CatalogObject, CatalogServers, CatalogTrial, CatalogUser, CatalogValid,
    CatalogWritten, Connecting, FieldCode, FieldError, FieldWarning, Precondition, TrialInputs,
    UserConnection, connection_path, never_starts,
};
pub use control::{Control, ControlOptions};
pub use door::{
    DoorAccess, DoorAnswer, DoorAsker, DoorAsserted, DoorBrowser, DoorChoice, DoorDesk, DoorFault,
    DoorForeign, DoorForm, DoorHuman, DoorRegistration, DoorServer, DoorStop, DoorToken,
    NewConnection,
};
pub use error::ControlError;
pub use follow::{FileStatus, Reloaded};
pub use grants::{
    GrantError, GrantOptions, GrantRequested, Granter, GrantsFound, ProvedWay, RequestOf,
    RequestsFound, RequiredScopes, StoreLedger, decision_path,
};
pub use idempotency::{KeptResponse, Keyed, KeyedClaim, KeyedError, KeyedRequest, digest_of};
pub use installation::{Installation, MasterKeyFacts, MasterKeys, WorkspaceUse};
pub use keys::{secret_key, server_key};
pub use live::{KeyedLock, POLL, STALE, Speaker};
pub use login::{Ceremony, CreatedLink, LoginError, NewSession, OwnSession, SignedIn};
pub use messages::{Message, MessageError};
pub use narthex_audit::{Actor, ActorKind};
pub use narthex_catalog::{
    LookUp, ManifestDocument, ManifestFault, ReadAllowed, Setting, SettingPlace, Variables,
    VariablesError,
};
pub use narthex_cedar::{Named, RuleFault, RuleFaults, RuleName, RuleSet, SCHEMA as POLICY_SCHEMA};
pub use narthex_login::{
    ConsentError, DoorOptions, IssuerAgent, IssuerOptions, LocalConsent, LoginOptions,
    ProviderOptions,
};
pub use narthex_model::{AgentEnv, Page};
pub use narthex_oauth_client::{
    Begun as SignInBegun, ClientOrigin, DeviceBegun, DeviceState, Finished as SignInFinished,
    GrantStatus, store::GrantFacts,
};
pub use narthex_store::{
    AuditPlace, AuditSettings, EnvBindingRow, GrantPlace, GrantRequestRow, GrantRequestStatus,
    GrantRow, GrantSearch, PasskeyRow, RequestPlace, RequestSearch, RequestState, Workspace,
};
pub use probe::{Probe, Probing, Stage, StageName, StageOutcome};
pub use rules::{RulesChecked, RulesError, WrittenRules};
pub use secrets::{SecretRows, SecretUses};
pub use servers::Saved;
pub use sign_ins::{
    CLIENT_METADATA, CLIENT_NAME, ServerSignInError, ServerSignIns, SignInCounts, SignInEnd,
    SignInVerbs, SignedInBrowser, public_base,
};
pub use traffic::{CallsToday, Usage, UsageRow};
