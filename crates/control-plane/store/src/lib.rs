//! Data that outlives a daemon: one database, behind typed functions. Hides SQL.
//!
//! * [`Store`] opens a SQLite file or connects to a PostgreSQL server, migrates the database to the
//!   version of this program, and gives access to the objects. Each object has its queries in a
//!   file of `objects/`.
//! * Objects know neither the database nor its library: they name a `Statement` and its values, and
//!   `database` runs it. Their SQL works on both SQLite and PostgreSQL.
//! * An error names the statement that failed; it never shows SQL or a value.
//!
//! No call of a tool waits for this crate.

mod backup;
mod database;
mod objects;
mod schema;
mod store;

use database::statement;

pub use backup::{Backup, BackupError};
pub use database::postgres::UrlFault;
pub use database::statement::StatementError;
pub use database::statements_of;
pub use objects::audit::{Audit, AuditChain, AuditFilter, AuditPlace, AuditRow, AuditSettings};
pub use objects::catalog::{CatalogRow, CatalogRows, CatalogStep};
pub use objects::children::{LeftChild, QuietChild, StillChild};
pub use objects::costs::{Cost, CostRows, CostSum, REPORTS_MAX};
pub use objects::cuts::{Cut, CutChanges, CutRows};
pub use objects::definitions::{
    DefinitionHead, DefinitionRow, DefinitionState, Definitions, DefinitionsOf, KnownDefinition,
    NewDefinition,
};
pub use objects::door::{DoorClientRow, DoorConnectionRow, DoorRequestRow, DoorRows};
pub use objects::door_tokens::{
    DoorCodeRow, DoorFamilyRow, DoorTokenRow, DoorTokens, UsedCode, UsedProof,
};
pub use objects::env_bindings::{EnvBindingRow, EnvBindings};
pub use objects::events::{
    AppendedEvent, EventFeed, EventFilter, EventPage, EventRow, EventRows, EventStream, EventsOf,
    NewEvent,
};
pub use objects::grant_requests::{
    GrantDecision, GrantRequestRow, GrantRequestStatus, GrantRequests, OPEN_MAX, RequestPlace,
    RequestSearch, RequestState,
};
pub use objects::grants::{GrantChanges, GrantPlace, GrantRow, GrantRows, GrantSearch};
pub use objects::heartbeats::BeatingSession;
pub use objects::inboxes::{DueMessage, GivenAt, InboxCount, Inboxes, NewUnread};
pub use objects::kept_answers::{KeptAnswer, KeptAnswers, NewRequest};
pub use objects::logins::{FoundLink, LoginSessionRow, Logins, NewSignInLink};
pub use objects::mcp_clients::{McpClientRow, McpClients};
pub use objects::oauth_attempts::{OAUTH_ATTEMPTS_MAX, OAuthAttemptRow, OAuthAttempts};
pub use objects::oauth_clients::{OAuthClientKey, OAuthClients};
pub use objects::oauth_grants::{
    OAuthChanges, OAuthFacts, OAuthGrantKey, OAuthGrantRow, OAuthGrants,
};
pub use objects::outbound::{
    ChannelRow, Channels, DeliveryRow, NewWebhook, Told, WebhookRow, Webhooks,
};
pub use objects::principals::{Membership, NewPrincipal, PrincipalRow, Principals};
pub use objects::proofs::{PasskeyRow, Proofs};
pub use objects::resting::{DoneSession, NewRest, RestingRows, RestingSession};
pub use objects::rules::{RulesHead, RulesRow, WorkspaceRulesRows};
pub use objects::runs::{
    Awaited, Claim, LiveRun, LivingRuns, NewRun, RunFilter, RunRow, RunRows, RunSearch, RunTurn,
    Spawned, Turn, Waiting,
};
pub use objects::secrets::{SecretHead, Secrets};
pub use objects::seeded_defaults::SeededDefaults;
pub use objects::server_flags::ServerFlags;
pub use objects::service_tokens::{ServiceTokenRow, ServiceTokens};
pub use objects::sessions::{SessionRow, SessionRows};
pub use objects::shares::{
    CommentBounds, CommentCounts, CommentRow, ShareBounds, ShareCounts, ShareRow, SharedFileRow,
    Shares, ThreadRow,
};
pub use objects::suspended::{SuspendedRows, SuspendedSession};
pub use objects::traffic::{CallCount, TrafficRows};
pub use objects::trusted_files::{TrustedFile, TrustedFiles};
pub use objects::workspaces::{
    Workspace, WorkspaceChange, WorkspaceCounts, WorkspaceSettings, Workspaces,
};
pub use schema::{ConnectError, OpenError};
pub use store::Store;
