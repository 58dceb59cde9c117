//! One connection to one MCP server: transports, handshake, lists, and forwarding of permitted requests.

pub mod client;
