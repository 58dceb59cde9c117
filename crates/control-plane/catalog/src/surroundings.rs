//! Inputs of resolution from outside, given by the caller: the environment, and the existing
//! secrets.

use std::fmt;

use narthex_model::{Secret, SecretName, WorkspaceId};

/// The answer of the daemon's environment for a name (O15, O68).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// The name is not on the operator's allowlist, set or not.
    NotAllowed,
    /// The name may be used, and is not set.
    Unset,
    /// The name may be used and has this value, which may be secret.
    Set(Secret),
}

/// The inputs of configuration from outside. Its functions are called while a plan is built and
/// resolved.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The workspace, for commands in remedies.
    pub workspace: &'a WorkspaceId,
    /// Looks up one variable of the daemon's environment, never the runner's.
    pub env: &'a dyn Fn(&str) -> EnvValue,
    /// Returns the steps by which an operator allows these variables.
    pub allowing: &'a dyn Fn(&[&str]) -> String,
    /// Returns true if a secret of the workspace exists and has a value.
    pub is_secret_set: &'a dyn Fn(&SecretName) -> bool,
}

impl Surroundings<'_> {
    /// The remedy where these variables may not be used.
    pub(crate) fn allowing(&self, names: &[&str]) -> String {
        let value = if names.len() > 1 { "the values as secrets" } else { "the value as a secret" };
        format!("{}, or store {value}", (self.allowing)(names))
    }
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}
