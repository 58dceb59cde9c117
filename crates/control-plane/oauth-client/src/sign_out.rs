//! Sign-outs: revocation at the authorization server, and the end of the rows (C29).

use std::sync::Arc;

use narthex_oauth::client::{ClientIdentity, Revocation, RevocationOutcome, TokenEndpoint};
use url::Url;

use crate::{
    SignInError,
    entry::{Entry, Mode},
    grant_row::{Client, ClientKind, GrantValue},
    guard::Guard,
    holding::Parts,
    store::GrantKey,
};

/// The result of a sign-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedOut {
    /// True if there was a grant.
    pub had_grant: bool,
    /// The end of the tokens at the authorization server.
    pub revoked: Revoked,
}

/// The end of tokens at the authorization server. The rows are gone in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// The tokens have no more effect.
    Yes,
    /// The authorization server revokes no such tokens: they end by themselves.
    Unsupported,
    /// The authorization server did not revoke them, for this reason.
    Failed(String),
    /// There were no tokens.
    Nothing,
}

/// Revokes the tokens of a grant, and drops its row and its open attempts. Of `entries`, only the
/// settings of the server that the tokens were given for are used.
///
/// # Errors
/// When the store fails.
pub(crate) async fn sign_out(
    parts: &Parts,
    key: &GrantKey,
    entries: &[Arc<Entry>],
) -> Result<SignedOut, SignInError> {
    // A page that is still open signs no human in again, whatever process has opened it.
    parts.options.store.drop_attempts(key.clone()).await?;
    let row = parts.options.store.grant(key.clone()).await?;
    let Some(row) = row else {
        return Ok(SignedOut { had_grant: false, revoked: Revoked::Nothing });
    };
    let revoked = match GrantValue::from_stored(&row.value) {
        Some(value) => {
            let entry = entries.iter().rfind(|entry| entry.has_place(&value.server));
            revoke(parts, &value, entry.map(|entry| &**entry)).await
        }
        None => Revoked::Failed("the stored tokens cannot be read".to_owned()),
    };
    parts.options.store.drop_grant(key.clone(), None).await?;
    Ok(SignedOut { had_grant: true, revoked })
}

async fn revoke(parts: &Parts, value: &GrantValue, entry: Option<&Entry>) -> Revoked {
    let GrantValue { grant, server, metadata, client } = value;
    let Some(metadata) = metadata.as_ref().filter(|known| known.revocation_endpoint.is_some())
    else {
        return Revoked::Unsupported;
    };
    let Ok(server) = Url::parse(server) else { return Revoked::Unsupported };
    let chosen = entry.map(Entry::chosen).unwrap_or_default();
    let guard = Guard::of(&server, &chosen).await;
    let identity = identity(client.as_ref(), entry, &grant.client_id);
    let endpoint = TokenEndpoint { metadata, client: &identity, resource: None, now: parts.now() };
    let mut result = Revoked::Unsupported;
    for revocation in Revocation::of(&grant.tokens) {
        let request = match endpoint.revoke(&revocation) {
            Ok(request) => request,
            Err(fault) => return Revoked::Failed(fault.to_string()),
        };
        let fetched = parts.fetcher.post_form(&guard, &request).await;
        match Revocation::read(&fetched.reply()) {
            RevocationOutcome::Revoked => result = Revoked::Yes,
            RevocationOutcome::Unsupported => {}
            RevocationOutcome::Failed(refusal) => return Revoked::Failed(refusal.to_string()),
        }
    }
    result
}

/// The client of a grant, with the proof of the settings if it is theirs.
fn identity(client: Option<&Client>, entry: Option<&Entry>, id: &str) -> ClientIdentity {
    let own = entry.and_then(|entry| match &entry.mode {
        Mode::Person(person) => person.settings.client.clone(),
        Mode::Machine(machine) => Some(machine.client_at(None)),
        Mode::Exchange(exchanged) => match &exchanged.fallback {
            Some(person) => person.settings.client.clone(),
            None => exchanged.exchange.settings.client.clone(),
        },
        Mode::Faulty(_) => None,
    });
    let own = own.filter(|own| own.id == id);
    match client {
        Some(client) if client.kind != ClientKind::Preregistered => client.identity.clone(),
        Some(client) => own.unwrap_or_else(|| client.identity.clone()),
        None => own.unwrap_or_else(|| ClientIdentity::new(id, None, None)),
    }
}
