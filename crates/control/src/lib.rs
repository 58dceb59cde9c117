//! The control plane: what operators do with servers, the catalog, runs and secrets, whatever
//! door they come through.
//!
//! [`Control`] puts together the live registry, the files that configure it, and the store, in
//! which lives what must outlive a restart; among that is the catalog of workspaces. [`Runs`]
//! begins and ends runs of the gateway. REST and the command line call the same verbs. Nothing here
//! is on the way of a call.

mod access;
mod audit;
mod catalog;
mod control;
mod error;
mod follow;
mod idempotency;
mod login;
mod page;
mod probe;
mod runs;
mod secrets;
mod seeding;
mod servers;
mod traffic;
mod turns;

pub use access::{
    AccessError, Account, CreatedToken, EnvNames, KnownToken, POLL, STALE, ServiceToken,
};
pub use audit::{AuditExport, AuditItem, AuditPage, AuditQuery, By};
pub use catalog::{
    CatalogAttached, CatalogAttachment, CatalogAttachments, CatalogChange, CatalogConnection,
    CatalogError, CatalogImport, CatalogImportChange, CatalogImported, CatalogObject, CatalogValid,
    CatalogWritten, FieldCode, FieldError, FieldWarning, Precondition,
};
pub use control::{Control, ControlOptions};
pub use error::ControlError;
pub use follow::{FileStatus, Reloaded};
pub use idempotency::{KeptResponse, Keyed, KeyedClaim, KeyedError, KeyedRequest, digest_of};
pub use login::{Ceremony, CreatedLink, LoginError, NewSession, SignedIn};
pub use narthex_audit::{Actor, ActorKind};
pub use narthex_login::{LoginOptions, ProviderOptions};
pub use narthex_model::AgentEnv;
pub use narthex_resolve::{LookUp, Variables, VariablesError};
pub use narthex_store::{
    AuditPlace, AuditSettings, EnvBindingRow, PasskeyRow, RunFilter, RunRow, SessionRow, Workspace,
};
pub use page::Page;
pub use probe::{Probe, Probing, Stage, StageName, StageOutcome};
pub use runs::{
    Created, Creator, DirectServers, OpenSockets, RunError, RunFault, RunPage, RunSockets,
    RunStatus, Runs, RunsOptions, SeenRun, SessionPage, SocketsError,
};
pub use secrets::SecretRows;
pub use servers::Saved;
pub use traffic::{Usage, UsageRow};
