//! The Unix-socket door: MCP as newline-delimited JSON-RPC, identified by the socket's folder.
//!
//! A run's folder contains `mcp.sock` for all its servers, and one `<alias>.sock` for each server
//! (D2). A client that may enter the folder and has our user id acts for the run; there is no
//! token. The first message of a connection decides its protocol era.

mod calls;
mod connection;
mod door;
mod folder;
mod inbox;
mod options;
mod writer;

pub use door::SocketDoor;
pub use folder::SocketError;
pub use options::SocketOptions;
