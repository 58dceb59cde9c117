//! The grant of a server, as the store has it.

use narthex_model::OAuthTokens;
use narthex_oauth::{
    client::{Grant, TokenGrant, Tokens},
    jwt::unverified_expiry,
};

use crate::{
    SignInError,
    belonging::is_of,
    entry::{Entry, Mode},
    grant_row::GrantValue,
    holding::Holding,
    store::GrantRow,
};

/// Lifetime of a configured token whose end is not known, in seconds.
const LIFE_UNKNOWN: u64 = 3600;

/// Reads the grant of the store. The tokens of a configuration become the grant if there is none:
/// they never replace newer ones (E102).
///
/// # Errors
/// When the store fails.
pub(crate) async fn load(holding: &Holding) -> Result<(), SignInError> {
    let now = holding.now();
    let entry = holding.entry();
    let is_first = holding.with_state(|state| state.read_at.is_none());
    let store = &holding.parts.options.store;
    let mut row = store.grant(holding.key.clone()).await?;
    if row.is_none()
        && is_first
        && let Some(value) = configured(&entry, now)
    {
        let facts = value.facts(None);
        row = Some(store.put_grant(holding.key.clone(), value.to_stored(), facts).await?);
    }
    match row.filter(|row| is_of(row, &entry)) {
        Some(row) => {
            let is_known = holding
                .with_state(|state| state.held.as_ref().is_some_and(|held| held.is_of(&row)));
            match is_known {
                true => holding.see_facts(&row),
                false => holding.adopt(&row)?,
            }
        }
        None => holding.forget(),
    }
    holding.update(|state| state.read_at = Some(now));
    Ok(())
}

/// Takes over a row that another process has written.
///
/// # Errors
/// When the row cannot be read.
pub(crate) fn take_over(holding: &Holding, row: &GrantRow) -> Result<(), SignInError> {
    match is_of(row, &holding.entry()) {
        true => holding.adopt(row),
        false => {
            holding.forget();
            Ok(())
        }
    }
}

/// The tokens of the configuration as a grant.
fn configured(entry: &Entry, now: u64) -> Option<GrantValue> {
    let Mode::Person(person) = &entry.mode else { return None };
    let OAuthTokens { access_token, refresh_token, expires_at } = person.tokens.clone()?;
    let known = expires_at.or_else(|| unverified_expiry(access_token.expose()));
    let scopes = person.settings.scopes.clone().unwrap_or_default();
    let client = person.settings.client.as_ref();
    let grant = Grant {
        issuer: String::new(),
        client_id: client.map(|client| client.id.clone()).unwrap_or_default(),
        resource: None,
        requested: scopes.clone(),
        origin: TokenGrant::Code,
        tokens: Tokens {
            access_token,
            // Without a client nothing can be renewed.
            refresh_token: refresh_token.filter(|_| client.is_some()),
            id_token: None,
            token_type: "bearer".to_owned(),
            scopes,
            obtained_at: now,
            expires_at: known.unwrap_or_else(|| now.saturating_add(LIFE_UNKNOWN)),
            is_expiry_guessed: known.is_none(),
        },
        generation: 0,
        key: None,
    };
    Some(GrantValue { grant, server: entry.place(), metadata: None, client: None })
}
