//! The options of a listener.

use std::time::Duration;

use narthex_tls::ServerTls;

use crate::listener::{Leaving, Workers};

/// The options of a listener.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Maximum number of open connections; further connections are closed at once.
    pub max_connections: usize,
    /// The longest time until the first request of a connection has arrived with all its headers.
    pub header_timeout: Duration,
    /// The longest time that a connection may be idle between two requests, or that a client may
    /// take no byte of an answer. The connection closes after one to two times this duration.
    pub idle_timeout: Duration,
    /// The longest time for which open requests may continue after the shutdown.
    pub grace: Duration,
    /// The threads that serve the connections.
    pub workers: Workers,
    /// Encrypts all connections; `None` serves plain HTTP.
    pub tls: Option<ServerTls>,
    /// The longest time for the handshake of an encrypted connection.
    pub handshake_timeout: Duration,
    /// Maximum number of handshakes at one time; further connections are closed at once. Clients
    /// that never finish theirs take no place of `max_connections`.
    pub handshakes_max: usize,
    /// The leave of clients before the shutdown, for a process that takes the socket over.
    pub leaving: Leaving,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            grace: Duration::from_secs(10),
            workers: Workers::default(),
            tls: None,
            handshake_timeout: Duration::from_secs(10),
            handshakes_max: 512,
            leaving: Leaving::default(),
        }
    }
}
