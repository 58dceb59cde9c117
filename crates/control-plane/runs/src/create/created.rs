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
    /// The token that opens the run; stored nowhere else.
    pub token: RunToken,
    /// The optional servers that did not start.
    pub faults: Vec<MountFault>,
    /// The optional servers whose configuration could not be made.
    pub skipped: Vec<RunFault>,
    /// Warnings, in words for humans and for models.
    pub warnings: Vec<RunWarning>,
    /// Gates of the run's servers that match nothing in the servers' lists (D14).
    pub unmatched: Vec<UnmatchedOf>,
    /// Optional keys of the run's servers that are left out, since they have no value.
    pub omitted: Vec<OmittedKey>,
    /// The shared servers that the run asks for and that do not exist.
    pub missing: Vec<Alias>,
    /// The servers with all values, if the request asked for them.
    pub direct: Option<DirectServers>,
    /// The run's Unix sockets, if the request asked for them (D2).
    pub sockets: Option<OpenSockets>,
    /// The values for the agent's own environment; empty if a run, a client or the daemon itself
    /// created this run.
    pub agent_env: AgentEnv,
    /// The numbers of the earlier runs of the session, the oldest first. Paths with these numbers
    /// also mean the servers of this run (R-D1).
    pub former_pids: Vec<Pid>,
}
