//! The result of a run's creation, for its creator.

use std::sync::Arc;

use narthex_gateway::{RunToken, RunView};
use narthex_model::{AgentEnv, Alias, Pid};
use narthex_registry::MountFault;
use narthex_store::RunRow;

use crate::{
    DirectServers, OpenSockets, RunFault,
    create::{
        servers::OmittedKey,
        warnings::{RunWarning, UnmatchedOf},
    },
};

/// A run that was created.
#[derive(Debug)]
pub struct Created {
    /// The run as it is stored.
    pub row: RunRow,
    /// The run as the data plane sees it.
    pub run: Arc<RunView>,
    /// The token that opens it; stored nowhere else.
    pub token: RunToken,
    /// The optional servers that did not start.
    pub faults: Vec<MountFault>,
    /// The optional servers whose configuration could not be made.
    pub skipped: Vec<RunFault>,
    /// Warnings, in words for humans and for models.
    pub warnings: Vec<RunWarning>,
    /// Gates of its servers that match nothing in the servers' lists (D14).
    pub unmatched: Vec<UnmatchedOf>,
    /// Optional keys of its servers that it does without.
    pub omitted: Vec<OmittedKey>,
    /// The shared servers that the run asks for and that do not exist.
    pub missing: Vec<Alias>,
    /// The servers with all values, if the request asked for them.
    pub direct: Option<DirectServers>,
    /// Its Unix sockets, if the request asked for them (D2).
    pub sockets: Option<OpenSockets>,
    /// The values for the agent's own environment; empty for a run that was created by another.
    pub agent_env: AgentEnv,
    /// The numbers of the earlier runs of its session, the oldest first: paths with them mean its
    /// servers as well (R-D1).
    pub former_pids: Vec<Pid>,
}
