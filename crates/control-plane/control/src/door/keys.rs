//! Programs that prove themselves with a private key (RFC 7523).

use std::time::SystemTime;

use narthex_oauth::{
    TokenHash,
    jwt::{Jwt, Keys},
    server::{Client, ClientKeys, Credentials, JtiUse, OAuthError, ProofFault},
};

use super::{DoorDesk, key_source::KeySource, tokens::time_of};
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
        let check = |keys: &Keys| {
            let checked = credentials.check_assertion(client, keys, server.door(), now);
            checked.map_err(|ProofFault(fault)| fault)
        };
        let checked = match keys {
            ClientKeys::Set(_) => check(&keys.set().unwrap_or_default()),
            ClientKeys::At(address) => {
                let kid = credentials.assertion().and_then(Jwt::kid);
                server.check_with_keys(KeySource::Program(address), kid, now, check).await
            }
        };
        let checked = match checked {
            Ok(checked) => checked,
            Err(fault) => return Ok(Err(ProofFault(fault).into())),
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
