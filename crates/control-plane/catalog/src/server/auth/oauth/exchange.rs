//! The exchange of the identity of the human who drives the run for a token of the server.

use narthex_model::{ExchangeFallback, ExchangeKind};
use serde::Serialize;

use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::word,
};

/// Settings of a sign-in in a browser, which an exchange without a fallback does not make.
const OF_BROWSERS: [&str; 7] =
    ["redirectUri", "registration", "pkce", "refreshScope", "clientName", "legacy", "keepAlive"];

/// An exchange of the identity of the human who drives the run (C31, C32).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryExchange {
    /// The result of the exchange at the provider.
    #[serde(rename = "type")]
    pub kind: ExchangeKind,
    /// The login provider at which the human has an identity.
    pub identity_provider: String,
    /// The audience of a token of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The way to a token after the exchange was refused for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ExchangeFallback>,
}

/// Reads the exchange; `None` without one, or after a fault.
pub(super) fn read(reader: &mut Reader, auth: &Object<'_>) -> Option<EntryExchange> {
    let exchange = reader.object(auth, "exchange")?;
    reader.only(&exchange, &["type", "identityProvider", "audience", "fallback"]);
    let has_fallback = exchange.get("fallback").is_some();
    for key in OF_BROWSERS.into_iter().filter(|_| !has_fallback) {
        if auth.get(key).is_some() {
            let message = "this belongs to a sign-in in a browser, which an exchange does not make";
            let remedy = "remove it, or add `\"fallback\": \"signIn\"` to `exchange`";
            reader.fault(&auth.at.key(key), FaultCode::FieldsExclude, message, remedy);
        }
    }
    if exchange.get("type").is_none() {
        reader.missing(&exchange, "type", "`\"type\": \"idJag\"` or `\"token\"`");
    }
    if exchange.get("identityProvider").is_none() {
        reader.missing(&exchange, "identityProvider", "the name of a login provider");
    }
    let kinds = ExchangeKind::ALL.map(|kind| (kind.word(), kind));
    let kind = word(reader, &exchange, "type", &kinds);
    let identity_provider = reader.owned(&exchange, "identityProvider");
    let audience = reader.owned(&exchange, "audience");
    let ways = ExchangeFallback::ALL.map(|way| (way.word(), way));
    let fallback = word(reader, &exchange, "fallback", &ways);
    let kind = kind?;
    fits(reader, auth, &exchange, kind);
    Some(EntryExchange { kind, identity_provider: identity_provider?, audience, fallback })
}

/// Checks the client and the audience, which fit one kind each.
fn fits(reader: &mut Reader, auth: &Object<'_>, exchange: &Object<'_>, kind: ExchangeKind) {
    let has_client = auth.get("client").is_some();
    let unfit = match kind {
        ExchangeKind::IdJag if !has_client => Some((
            exchange.at.key("type"),
            "the authorization server of the server redeems assertions of a `client` alone, which \
             is missing",
            "register a client there, and add `client`",
        )),
        ExchangeKind::IdJag if exchange.get("audience").is_some() => Some((
            exchange.at.key("audience"),
            "the audience of an assertion is the authorization server of the server",
            "remove it",
        )),
        ExchangeKind::Token if has_client && exchange.get("fallback").is_none() => Some((
            auth.at.key("client"),
            "the login provider gives the token, so that no other client takes part",
            "remove it, use `idJag`, or add `\"fallback\": \"signIn\"` to `exchange`",
        )),
        ExchangeKind::IdJag | ExchangeKind::Token => None,
    };
    if let Some((at, message, remedy)) = unfit {
        reader.fault(&at, FaultCode::FieldsExclude, message, remedy);
    }
}
