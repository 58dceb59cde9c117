//! Messages of MCP as clients of each era send them.

use serde_json::{Value, json};

/// The generation of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25: a handshake opens a session.
    Legacy,
    /// 2026-07-28: each request stands alone, and carries its revision.
    Modern,
}

/// A request with this id, or a notification without one. In the modern era its parameters, which
/// must be an object, get the members of `_meta` that every request carries.
#[must_use]
pub fn message(era: Era, id: Option<u64>, method: &str, mut params: Value) -> Value {
    if era == Era::Modern {
        stamp(&mut params);
    }
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

/// Adds the members of `_meta` that every modern request carries; capabilities that are there stay.
///
/// # Panics
/// When the parameters are no object.
pub fn stamp(params: &mut Value) {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    let capabilities = &mut meta["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
}
