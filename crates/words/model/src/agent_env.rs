//! Values for the environment of agents themselves.

use std::{collections::BTreeMap, fmt};

use crate::{EnvName, Secret};

/// Values for the environment of one agent. For the agent's starter alone: `Debug` shows only the
/// names.
#[derive(Clone, Default)]
pub struct AgentEnv(BTreeMap<EnvName, Secret>);

impl AgentEnv {
    /// The value of each variable.
    #[must_use]
    pub fn new(values: BTreeMap<EnvName, Secret>) -> Self {
        Self(values)
    }

    /// The variables with their values, for the agent's starter.
    pub fn expose(&self) -> impl Iterator<Item = (&EnvName, &str)> {
        self.0.iter().map(|(name, value)| (name, value.expose()))
    }

    /// The names of the variables.
    #[must_use]
    pub fn names(&self) -> Vec<EnvName> {
        self.0.keys().cloned().collect()
    }

    /// True if there is no variable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for AgentEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentEnv").field(&self.0.keys().collect::<Vec<_>>()).finish()
    }
}
