//! The Unix-socket door: MCP as newline-delimited JSON-RPC, identified by the socket's folder.
