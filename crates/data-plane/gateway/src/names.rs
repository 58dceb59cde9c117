//! The names in a request: its id, its method, and the server of its endpoint.

use std::borrow::Cow;

use bytes::Bytes;
use narthex_model::Alias;
use narthex_wire::{Message, Raw};

use crate::{Caller, Endpoint, refusal::Refusal, view::known_name};

/// The caller's id, as JSON, shared with the message.
pub(crate) fn id_of(message: &Message) -> Bytes {
    let id = message.id().map(|id| message.bytes().slice_ref(id.as_bytes()));
    id.unwrap_or_else(|| Bytes::from_static(b"null"))
}

/// The method's name, without an allocation where it is a known one.
pub(crate) fn name_of(message: &Message) -> Cow<'static, str> {
    match known_name(message.method()) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(message.method().to_owned()),
    }
}

/// The alias of a transparent endpoint.
pub(crate) fn own_alias(caller: &Caller) -> Option<&Alias> {
    match &caller.endpoint {
        Endpoint::Transparent(alias) => Some(alias),
        Endpoint::Aggregated => None,
    }
}

/// A member of `params` that must be a string.
pub(crate) fn text<'a>(request: &'a Message, member: &str) -> Result<Cow<'a, str>, Refusal> {
    let found = request.get(member).and_then(Raw::as_str);
    found.ok_or_else(|| Refusal::invalid(format!("`params.{member}` must be a string")))
}
