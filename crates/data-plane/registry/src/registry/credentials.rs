//! Credentials that change while a server is connected.

use std::sync::Arc;

use narthex_model::{Alias, ServerDefinition, Target};
use narthex_upstream::{
    CredentialQuery, Credentials, FinishFault, Holder, SignInRedirect, changes,
};

use super::{Registry, Shared};
use crate::{FinishError, ServerResult, rows::IsRetry};

impl Registry {
    /// Finishes the sign-in of a person to a shared server, and connects the server anew. The
    /// source of the credentials does the first; its own hooks tell of addresses and tokens.
    ///
    /// # Errors
    /// When there is no such source, the redirect belongs to no open sign-in, the authorization
    /// server gives no tokens, or the server was removed.
    pub async fn finish_auth(&self, redirect: SignInRedirect) -> Result<ServerResult, FinishError> {
        let source = self.shared.options.credentials.as_ref().ok_or(FinishFault::NoSignIns)?;
        let name = source.finish_auth(redirect).await?;
        if let Ok(alias) = Alias::new(&name) {
            self.tell(&alias, None);
        }
        Ok(self.reconnect(&name).await?)
    }

    /// Connects the server of this name anew, as its shared grant was given or dropped. Its lists
    /// stay until then; open calls finish on the old link. Mounts that use the same grant follow,
    /// too. Does not wait. A renewal of a token needs no call of this.
    pub fn credential_changed(&self, alias: &Alias) {
        self.tell(alias, None);
        let mut rows = self.shared.rows();
        let Some(index) = rows.position(alias.as_str()).filter(|_| !rows.is_closed) else {
            return;
        };
        // A server that has failed for good gets a new connection; others have heard the news.
        let slot = &rows.slots[index];
        let has_failed = slot.mount.as_ref().is_some_and(|mount| {
            let connection = mount.connection();
            connection.signs_in() && !connection.is_usable()
        });
        if has_failed {
            let declared = slot.declared.clone();
            rows.put(&self.shared, declared, IsRetry::IfFailed);
            self.shared.publish_rows(&mut rows);
        }
    }

    /// As [`Registry::credential_changed`], for the grant of one human: only mounts use it.
    pub fn credential_changed_of(&self, alias: &Alias, holder: &Holder) {
        self.tell(alias, Some(holder));
    }

    /// As [`Registry::credential_changed`], for a server of a catalog with all its aliases.
    /// `server` is its [`MountIdentity::server`](crate::MountIdentity::server).
    pub fn credential_changed_at(&self, server: &str, holder: Option<&Holder>) {
        for mount in self.shared.pool.of_catalog_grant(server, holder) {
            mount.connection().credential_changed();
        }
    }

    fn tell(&self, alias: &Alias, holder: Option<&Holder>) {
        for mount in self.shared.pool.of_grant(alias, holder) {
            mount.connection().credential_changed();
        }
    }
}

impl Shared {
    /// The credential of a server that can change; `None` if it cannot, or there is no source.
    pub(crate) fn credentials_of(
        &self,
        definition: &ServerDefinition,
        holder: Option<&Holder>,
    ) -> Option<Arc<dyn Credentials>> {
        let source = self.options.credentials.as_ref()?;
        let Target::Http(target) = &definition.target else { return None };
        if !changes(&target.auth) {
            return None;
        }
        source.credentials(CredentialQuery { alias: &definition.alias, target, holder })
    }
}
