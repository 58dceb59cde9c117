//! Answers of the gateway itself, without a call to a server.

use bytes::Bytes;
use narthex_wire::{Message, Raw, rpc};

use crate::Answering;

/// The answer with this result, as JSON.
pub(crate) fn result(request: &Message, body: &Bytes) -> Answering {
    let id = request.id().unwrap_or(Raw::new(b"null"));
    Answering::ready(rpc::result_response(id, body), 200)
}
