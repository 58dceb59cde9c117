//! Decides whether grants need a human's proof (D15, D28).

use std::sync::atomic::{AtomicBool, Ordering};

use narthex_store::{StatementError, Store};

/// The setting, and the ways in which humans can prove here that they are human.
#[derive(Debug)]
pub(crate) struct ProofRule {
    setting: Option<bool>,
    /// True if there is an OpenID provider, which does not change while the daemon runs.
    has_provider: bool,
    has_passkeys: AtomicBool,
}

impl ProofRule {
    /// Creates the rule from the setting `grants.require_proof`. Without the setting, proof is
    /// needed once a provider or a passkey exists.
    #[must_use]
    pub(crate) fn new(setting: Option<bool>, has_provider: bool) -> Self {
        Self { setting, has_provider, has_passkeys: AtomicBool::new(false) }
    }

    /// True if an advisory grant does not count now.
    #[must_use]
    pub(crate) fn is_required(&self) -> bool {
        let found = || self.has_provider || self.has_passkeys.load(Ordering::Acquire);
        self.setting.unwrap_or_else(found)
    }

    /// True if proof is never needed, even if passkeys exist.
    #[must_use]
    pub(crate) fn is_off(&self) -> bool {
        self.setting == Some(false)
    }

    /// Checks whether passkeys exist, if the rule depends on them. Returns true if the rule's
    /// result has changed.
    ///
    /// # Errors
    /// When the statement fails.
    pub(crate) async fn look(&self, store: &Store) -> Result<bool, StatementError> {
        if self.setting.is_some() || self.has_provider {
            return Ok(false);
        }
        let has = store.proofs().has_passkeys().await?;
        Ok(self.has_passkeys.swap(has, Ordering::AcqRel) != has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D28: if a provider exists, grants need proof, unless the setting says otherwise.
    #[test]
    fn d28_a_provider_has_grants_need_proof() {
        for (setting, has_provider, required) in [
            (None, false, false),
            (None, true, true),
            (Some(false), true, false),
            (Some(true), false, true),
        ] {
            let rule = ProofRule::new(setting, has_provider);
            assert_eq!(rule.is_required(), required, "{setting:?} {has_provider}");
            assert_eq!(rule.is_off(), setting == Some(false));
        }
    }
}
