//! The embeddable set of upstream connections: configuration, states, inventories, change events.
//!
//! A [`Registry`] connects every server of a configuration at once and publishes a [`Snapshot`] of
//! all of them. It has no doors, no store and no rules on callers.
//!
//! [`layers`] composes several sources of entries and edits one of them, and [`watch`] follows
//! their files; neither knows connections.

pub mod config;
pub mod layers;
pub mod watch;

mod baseline_diff;
mod connection;
mod digest;
mod event;
mod first_lists;
mod first_variants;
mod handshakes;
mod held_back;
mod log_follower;
mod mount;
mod outcome;
mod pins;
mod pool;
mod profiles;
mod registry;
mod rows;
mod server_key;
mod snapshot;
mod subscription;

pub use baseline_diff::Baseline;
pub use event::ServerEvent;
pub use first_lists::{FirstList, FirstLists, KeptFurther, KeptLists, KeptServer, KeptVariant};
pub use first_variants::FirstVariants;
pub use handshakes::LegacySupport;
pub use held_back::{HeldBack, HeldNames, PinnedServer};
pub use layers::{Declared, Layer};
pub use log_follower::LogFollower;
pub use mount::{
    MountError, MountFault, MountIdentity, MountOptions, MountSet, Mountable, Sharing, Unmounted,
};
pub use narthex_supervisor::{LogPart, TreeUse, trees};
pub use narthex_upstream::{
    ClearedSecret, CredentialSource, CutReason, FinishFault, Holder, SignInRedirect,
};
pub use outcome::{FinishError, ServerResult, VerbError};
pub use pins::{DefinitionPins, Held, LookError, Looking, PinnedList, PinnedSaid, Said};
pub use pool::{Mount, WatchedMount};
pub use profiles::{DeclaredProfile, Profiles};
pub use registry::{Applied, Enabling, Notice, OpenError, Registry, RegistryOptions};
pub use server_key::ServerKey;
pub use snapshot::{ConnectionId, Found, ServerRow, Snapshot};
pub use subscription::{Subscription, Update};
