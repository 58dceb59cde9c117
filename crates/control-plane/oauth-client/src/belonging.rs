//! The server and the client that a grant was given for.

use narthex_oauth::client::TokenGrant;

use crate::{
    entry::{Entry, Mode, Person, place},
    grant_row::{ClientKind, GrantValue, Held},
    store::GrantRow,
};

/// True if a stored grant is one of this entry: tokens of another server or client are not used.
pub(crate) fn is_of(row: &GrantRow, entry: &Entry) -> bool {
    match Held::of(row, &entry.alias) {
        Ok(held) => belongs(&held, entry),
        Err(_unreadable) => {
            tracing::warn!(server.name = %entry.alias, "the stored sign-in cannot be read");
            false
        }
    }
}

/// True if a grant was given for the server and the client of this entry.
pub(crate) fn belongs(held: &Held, entry: &Entry) -> bool {
    let GrantValue { grant, server, .. } = &held.value;
    let is_of_mode = match &entry.mode {
        Mode::Person(person) => is_signed_in(person, &held.value),
        Mode::Machine(machine) => {
            let settings = &machine.settings;
            let (scopes, resource) = (settings.scopes.as_ref(), settings.resource.as_ref());
            grant.origin == TokenGrant::ClientCredentials
                && grant.client_id == machine.client_at(None).id
                && scopes.is_none_or(|scopes| grant.requested.contains_all(scopes))
                && resource.is_none_or(|_| settings.resource("") == grant.resource)
        }
        // The way in which a token was got decides about its place.
        Mode::Exchange(exchanged) if !grant.origin.is_repeatable() => {
            let is_it = |person: &Person| is_signed_in(person, &held.value);
            return exchanged.fallback.as_ref().is_some_and(is_it) && *server == place(&entry.url);
        }
        // The place has the identity.
        Mode::Exchange(exchanged) => {
            let exchange = &exchanged.exchange;
            let settings = &exchange.settings;
            let (scopes, resource) = (settings.scopes.as_ref(), settings.resource.as_ref());
            grant.origin == TokenGrant::Assertion
                && settings.client.as_ref().is_none_or(|client| grant.client_id == client.id)
                && scopes.is_none_or(|scopes| grant.requested.contains_all(scopes))
                && resource.is_none_or(|_| settings.resource("") == grant.resource)
        }
        Mode::Faulty(_) => false,
    };
    is_of_mode && *server == entry.place()
}

/// True if a person has signed in for these settings.
fn is_signed_in(person: &Person, value: &GrantValue) -> bool {
    !value.grant.origin.is_repeatable() && is_of_client(person, value)
}

/// True if the settings name the client of the grant, or none where narthex has its own.
fn is_of_client(person: &Person, value: &GrantValue) -> bool {
    let kind = value.client.as_ref().map(|client| client.kind);
    match &person.settings.client {
        Some(client) => client.id == value.grant.client_id,
        None => kind != Some(ClientKind::Preregistered),
    }
}
