//! Layers, placeholders and schemas in, the configuration of one run out, or every error at once.
//!
//! Pure: no I/O, no clock, no randomness; the same inputs give the same result. Functions of the
//! caller answer for the outside world ([`Surroundings`]).
//!
//! 1. **Read.** [`ServerEntry`], [`Capability`], [`Agent`], [`AttachRequest`] and [`RunRequest`]
//!    are read by their `parse`, strictly, with all faults at once. They serialize to one normal
//!    form, for storing and comparing.
//! 2. **Plan.** [`Plan::new`] merges the levels of each server of an agent: the schema's defaults,
//!    `default_config`, capabilities, the agent. [`Plan::check`] refuses an agent that could never
//!    run, when it is saved; [`Plan::preview`] shows each value with its origin. [`check_server`]
//!    and [`check_capability`] do the same for one server or capability.
//! 3. **Resolve.** [`Plan::resolve`] makes the [`ResolvedRun`] of [`RunInputs`]: parameters
//!    checked, placeholders filled in once. To freeze a run, store it, or its objects and
//!    inputs: they give the same result again.
//! 4. **Open.** [`ResolvedServer::definition`] replaces the names of secrets and variables by their
//!    values, and returns the [`narthex_model::ServerDefinition`] that the registry starts.
//!
//! A filled-in value of a parameter or a scope is never read again. So no such value can reach
//! another source, a secret or another part of a URL. A placeholder without a value never falls
//! back to the value of a lower level.

mod acknowledgement;
mod agent;
mod attachment;
mod capability;
mod carrier;
mod claim;
mod cost;
mod fault;
pub mod fields;
mod fill;
mod layer;
mod manifest;
mod origin;
mod params;
mod plan;
mod published;
mod reader;
mod resolve;
mod resolved;
mod run;
mod schema;
mod server;
mod surroundings;
mod template;
mod variables;

pub use acknowledgement::Acknowledgement;
pub use agent::{Agent, EndSession};
pub use attachment::{AttachRequest, Attachment, Attachments};
pub use capability::{Capability, CapabilityKind};
pub use carrier::Carrier;
pub use claim::ClaimRequest;
pub use cost::CostRequest;
pub use fault::{Fault, FaultCode, Faults, Rejection, Warning, shown_place};
pub use fill::RunInputs;
pub use manifest::{ManifestDocument, ManifestFault};
pub use origin::Origin;
pub use params::ParamsSchema;
pub use plan::{Catalog, Plan, SecretRequirement, check_capability, check_server, users_of};
pub use published::{Published, PublishedInput, Reach};
pub use reader::{Parsed, document};
pub use resolved::{
    BUILT_IN_URL, Omitted, OpenError, Opening, ResolvedKey, ResolvedRun, ResolvedServer, Skipped,
};
pub use run::{RunKind, RunRequest};
pub use schema::{ConfigSchema, KeyKind, KeySchema, ValueType};
pub use server::{
    AuthClient, AuthText, CommandShape, EntryAuth, EntryClientCredentials, EntryExchange,
    EntryProof, EntrySignIn, HttpShape, Isolation, MadeBy, NameRules, OnFlagged, ScopeKey,
    ScopeSchema, ServerEntry, ServerSettings, Shape, StdioShape,
};
pub use surroundings::{EnvValue, Surroundings};
pub use variables::{LookUp, ReadAllowed, Setting, SettingPlace, Variables, VariablesError};
