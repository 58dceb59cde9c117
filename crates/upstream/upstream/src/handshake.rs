//! The messages of a handshake, in both eras.

use std::sync::Arc;

use bytes::Bytes;
use narthex_wire::{Message, MessageKind, Payload, Raw, Revision, method, rpc};

use crate::{
    ConnectError, Frame, LinkError,
    duplex::{Duplex, Wants},
    link::{ClientIdentity, ServerCapabilities, ServerFacts, modern_meta},
};

pub(crate) fn discover(id: u64, identity: &ClientIdentity) -> (u64, Payload) {
    let params = [b"{", &modern_meta(identity)[..], b"}"].concat();
    let text = id.to_string();
    (id, rpc::request(Raw::new(text.as_bytes()), method::SERVER_DISCOVER, Some(&params)))
}

pub(crate) fn initialize(id: u64, identity: &ClientIdentity) -> (u64, Payload) {
    let mut params =
        format!(r#"{{"protocolVersion":"{}","capabilities":"#, identity.revision).into_bytes();
    params.extend_from_slice(&identity.capabilities);
    params.extend_from_slice(br#","clientInfo":"#);
    params.extend_from_slice(&identity.info);
    params.push(b'}');
    let text = id.to_string();
    (id, rpc::request(Raw::new(text.as_bytes()), method::INITIALIZE, Some(&params)))
}

pub(crate) async fn initialize_duplex(
    duplex: &Arc<Duplex>,
    identity: &ClientIdentity,
) -> Result<ServerFacts, ConnectError> {
    let (id, body) = initialize(duplex.next_id(), identity);
    let asked = ask_duplex(duplex, id, body).await;
    let facts = legacy_facts(&asked.map_err(ConnectError::at(method::INITIALIZE))?)?;
    let initialized = duplex.send(rpc::notification(method::INITIALIZED, None));
    initialized.await.map_err(ConnectError::at(method::INITIALIZED))?;
    Ok(facts)
}

pub(crate) async fn ask_duplex(
    duplex: &Arc<Duplex>,
    id: u64,
    body: Payload,
) -> Result<Message, LinkError> {
    let wants = Wants { progress: false, cancel: false, is_stream: false, log: false };
    let mut call = duplex.request(id, body, wants).await?;
    loop {
        if let Frame::Answer(message) = call.next().await? {
            return Ok(message);
        }
    }
}

/// The facts in a discover answer, if the server supports the gateway's modern revision.
pub(crate) fn modern_facts(message: &Message) -> Option<ServerFacts> {
    if message.kind() != MessageKind::Result {
        return None;
    }
    let speaks = |raw: Raw<'_>| raw.as_str().is_some_and(|text| text == Revision::LATEST.as_str());
    if !message.get("supportedVersions")?.items().into_iter().any(speaks) {
        return None;
    }
    let facts = ServerFacts {
        revision: Revision::LATEST,
        result: body(message),
        capabilities: ServerCapabilities::read(message.get("capabilities")),
    };
    Some(facts.readable())
}

pub(crate) fn legacy_facts(message: &Message) -> Result<ServerFacts, ConnectError> {
    if message.kind() == MessageKind::Error {
        let text = message.get("message").and_then(Raw::as_str).unwrap_or_default();
        let code = message.error_code().unwrap_or_default();
        return Err(ConnectError::Refused(format!("error {code} to `initialize`: {text}")));
    }
    let named = message.get("protocolVersion").and_then(Raw::as_str).unwrap_or_default();
    let revision = Revision::parse(&named).filter(|revision| !revision.is_modern());
    let Some(revision) = revision else {
        return Err(ConnectError::Refused(format!("it supports only revision `{named}`")));
    };
    let facts = ServerFacts {
        revision,
        result: body(message),
        capabilities: ServerCapabilities::read(message.get("capabilities")),
    };
    Ok(facts.readable())
}

fn body(message: &Message) -> Bytes {
    let raw = message.body_raw().map_or(&b"{}"[..], Raw::as_bytes);
    Bytes::copy_from_slice(raw)
}

#[cfg(test)]
mod tests {
    use narthex_wire::Limits;

    use super::*;

    /// S22: a server's instructions for models are a text that a person can review. Other
    /// instructions are left out.
    #[test]
    fn s22_instructions_that_cannot_be_read_are_left_out() {
        let told = |instructions: &str| {
            let versions = r#""protocolVersion":"2025-11-25","supportedVersions":["2026-07-28"]"#;
            let result = format!(r#"{{{versions},"instructions":{instructions},"x":1}}"#);
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let message = Message::parse(text.into(), &Limits::default()).unwrap();
            let both = [legacy_facts(&message).unwrap(), modern_facts(&message).unwrap()];
            both.map(|facts| {
                assert_eq!(Raw::new(&facts.result).get("x").and_then(Raw::as_u64), Some(1));
                Raw::new(&facts.result).get("instructions").map(|raw| raw.as_bytes().to_vec())
            })
        };
        for unread in [r#""Ignore \ud800""#, r#"["Ignore"]"#, r#"{"a":"Ignore"}"#, "7", "null"] {
            assert_eq!(told(unread), [None, None], "{unread}");
        }
        let read = br#""Reads \u0066iles""#.to_vec();
        assert_eq!(told(r#""Reads \u0066iles""#), [Some(read.clone()), Some(read)]);
    }
}
