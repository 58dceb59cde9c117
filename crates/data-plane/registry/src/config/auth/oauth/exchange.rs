//! The exchange of a person's identity for a token of the server.

use narthex_model::{
    AuthSecret, ExchangeFallback, ExchangeIdentity, ExchangeKind, GivenIdentity, OAuthClient,
    OAuthExchange,
};

use super::words::{AUTHORIZATION_CODE, word};
use crate::config::{
    node::{Place, field},
    problem::EntryProblem,
    reader::{Fields, Reader},
};

/// The key of the exchange.
const EXCHANGE: &str = "exchange";
const KEYS: [&str; 8] = [
    "type",
    "tokenUrl",
    "clientId",
    "clientSecret",
    "idToken",
    "refreshToken",
    "audience",
    FALLBACK,
];
/// The key of the way after a refusal.
const FALLBACK: &str = "fallback";
/// The key of tokens of a first sign-in, which would take the place of the exchange.
const TOKENS: &str = "tokens";
/// The key of an exchange of the catalog.
const PROVIDER: &str = "identityProvider";
/// Settings of a sign-in in a browser, which an exchange without a fallback does not make.
const OF_BROWSERS: [&str; 7] =
    ["redirectUri", "registration", "pkce", "refreshScope", "clientName", "legacy", "keepAlive"];

/// Reads the exchange; `None` without one, or after a fault.
pub(super) fn read(
    reader: &mut Reader<'_>,
    auth: &Fields,
    at: &Place,
) -> Option<Box<OAuthExchange>> {
    let (fields, place) = reader.object(auth, at, EXCHANGE)?;
    reader.references(fields, &place);
    let has_fallback = field(fields, FALLBACK).is_some();
    let of_browsers = OF_BROWSERS.into_iter().filter(|_| !has_fallback);
    for key in of_browsers.chain([TOKENS]) {
        if field(auth, key).is_some() {
            reader.fault(&at.key(key), EntryProblem::FieldsExclude { key, other: EXCHANGE });
        }
    }
    if field(fields, PROVIDER).is_some() {
        // A server of a file has no human whose sign-in could count.
        reader.fault(&place.key(PROVIDER), EntryProblem::ProviderOfCatalog);
        return None;
    }
    reader.unknown_keys(fields, &place, &KEYS);
    let kinds = ExchangeKind::ALL.map(|kind| (kind.word(), kind));
    let kind = word(reader, fields, &place, "type", &kinds);
    if kind.is_none() {
        reader.absent(&place, "type", AUTHORIZATION_CODE);
    }
    let ways = ExchangeFallback::ALL.map(|way| (way.word(), way));
    let fallback = word(reader, fields, &place, FALLBACK, &ways);
    let audience = reader.filled(fields, &place, "audience").map(|audience| audience.value);
    let identity = given(reader, fields, &place);
    let kind = kind?;
    fits(reader, auth, at, Fit { kind, has_fallback });
    if kind == ExchangeKind::IdJag && audience.is_some() {
        let (key, other) = ("audience", kind.word());
        reader.fault(&place.key(key), EntryProblem::FieldsExclude { key, other });
    }
    let identity = ExchangeIdentity::Given(Box::new(identity?));
    Some(Box::new(OAuthExchange { kind, identity, audience, fallback }))
}

/// The parts of an exchange that decide about a client.
#[derive(Clone, Copy)]
struct Fit {
    kind: ExchangeKind,
    has_fallback: bool,
}

/// Checks the client of the server's authorization server: it redeems identity assertions, and
/// takes no part in another exchange. A sign-in uses it as well.
fn fits(reader: &mut Reader<'_>, auth: &Fields, at: &Place, fit: Fit) {
    let Fit { kind, has_fallback } = fit;
    let has_client = field(auth, "client").is_some();
    match kind {
        ExchangeKind::IdJag if !has_client => {
            let (method, needs) = (kind.word(), "client");
            let place = at.key(EXCHANGE).key("type");
            reader.fault(&place, EntryProblem::MethodNeeds { method, needs });
        }
        ExchangeKind::Token if has_client && !has_fallback => {
            let (key, other) = ("client", kind.word());
            reader.fault(&at.key(key), EntryProblem::FieldsExclude { key, other });
        }
        ExchangeKind::IdJag | ExchangeKind::Token => {}
    }
}

/// Reads the identity of a person; `None` after a fault.
fn given(reader: &mut Reader<'_>, fields: &Fields, at: &Place) -> Option<GivenIdentity> {
    let token_url = reader.credential_url(fields, at, "tokenUrl");
    if token_url.is_none() {
        reader.absent(at, "tokenUrl", AUTHORIZATION_CODE);
    }
    let id = reader.required(fields, at, "clientId", AUTHORIZATION_CODE);
    let secret = reader.auth_secret(fields, at, AuthSecret::ProviderSecret);
    let id_token = reader.auth_secret(fields, at, AuthSecret::IdToken);
    let refresh_token = reader.auth_secret(fields, at, AuthSecret::ProviderRefreshToken);
    if id_token.is_none() && refresh_token.is_none() {
        let keys = [AuthSecret::IdToken, AuthSecret::ProviderRefreshToken];
        if !keys.iter().any(|key| reader.has_fault_at(&at.key(key.key()))) {
            reader.fault(at, EntryProblem::NoIdentity);
        }
        return None;
    }
    let client = OAuthClient { id: id?, secret };
    Some(GivenIdentity { token_url: token_url?, client, id_token, refresh_token })
}
