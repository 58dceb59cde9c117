//! Reviews of definitions of servers of the catalog, and of live servers whose entries pin them.
//! Callers get those that were there before, or that a human has accepted (D10, S22 to S24).
//!
//! The first text of a name is pinned; callers get the pinned or accepted texts, and nothing else.
//! This covers tools, prompts, templates, resources, and the server's instructions to models. Rows
//! of the store decide all of it, so that restarts and other daemons change nothing.
//!
//! A layer above the rest of the crate, which imports nothing of it.

mod applied;
mod decisions;
mod error;
mod live;
mod live_names;
mod other_names;
mod read_lists;
mod screening;
mod server;
mod shared;

pub use narthex_store::{DefinitionHead, DefinitionState};

pub use self::{
    decisions::{DefinitionPage, DefinitionVerdict, SeenDefinition},
    error::ReviewError,
    live::DefinitionSource,
    screening::{ReviewWarning, Screened},
    shared::Reviews,
};
