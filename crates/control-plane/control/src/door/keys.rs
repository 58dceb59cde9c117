//! Programs that prove themselves with a private key (RFC 7523).

use std::time::SystemTime;

use narthex_oauth::{
    TokenHash,
    jwt::{Jwt, JwtFault, Keys},
    server::{Client, ClientId, ClientKeys, Credentials, JtiUse, KeyCache, OAuthError, ProofFault},
};

use super::{DoorDesk, server::DoorServer, tokens::time_of};
use crate::ControlError;

impl DoorDesk<'_> {
    /// Checks the assertion of a program with keys, and uses it up.
    pub(super) async fn proved_by_key(
        &self,
        credentials: &Credentials,
        client: &Client,
        keys: &ClientKeys,
    ) -> Result<Result<Client, OAuthError>, ControlError> {
        let (server, now) = (self.server, SystemTime::now());
        let check = |keys: &Keys| credentials.check_assertion(client, keys, server.door(), now);
        let checked = match keys {
            ClientKeys::Set(_) => check(&keys.set().unwrap_or_default()),
            ClientKeys::At(address) => match check(&server.keys_at(address, now).await) {
                Err(ProofFault(JwtFault::UnknownKey)) => {
                    let kid = credentials.assertion().and_then(Jwt::kid);
                    check(&server.keys_again(address, kid, now).await)
                }
                checked => checked,
            },
        };
        let checked = match checked {
            Ok(checked) => checked,
            Err(fault) => return Ok(Err(fault.into())),
        };
        // No id of a client has a space.
        let hash = TokenHash::of(&format!("{} {}", client.id.as_str(), checked.jti));
        let forget_at = time_of(checked.forget_jti_at);
        let used = self.store.door_tokens().use_proof(hash.as_str(), forget_at).await;
        let is_first = used.map_err(ControlError::Store)?;
        let jti_use = if is_first { JtiUse::First } else { JtiUse::Again };
        Ok(checked.prove(jti_use).cloned())
    }
}

impl DoorServer {
    /// The keys of an address, which are fetched if they are missing or old.
    async fn keys_at(&self, address: &str, now: SystemTime) -> Keys {
        let keys = self.keys.at(address);
        let mut keys = keys.lock().await;
        if keys.begins_fetch(now) {
            self.fetch_keys(address, &mut keys, now).await;
        }
        keys.keys().clone()
    }

    /// The keys of an address after a look for the key of this id.
    async fn keys_again(&self, address: &str, kid: Option<&str>, now: SystemTime) -> Keys {
        let keys = self.keys.at(address);
        let mut keys = keys.lock().await;
        if keys.begins_retry(kid, now) {
            self.fetch_keys(address, &mut keys, now).await;
        }
        keys.keys().clone()
    }

    /// Fetches keys as a metadata document: from the same hosts, and with the same limits.
    async fn fetch_keys(&self, address: &str, keys: &mut KeyCache, now: SystemTime) {
        let Ok(id) = ClientId::parse(address) else { return };
        let Ok(url) = self.options.documents.admit(&id) else { return };
        match self.get(&url).await {
            Ok(got) if got.status == 200 => match Keys::read(&got.body) {
                Ok(found) => keys.fetched(found, now),
                Err(_fault) => tracing::info!(url.full = address, "there are no keys of a client"),
            },
            Ok(got) => tracing::info!(
                url.full = address,
                http.response.status_code = got.status,
                "no keys of a client"
            ),
            Err(error) => tracing::info!(url.full = address, "no keys of a client: {error}"),
        }
    }
}
