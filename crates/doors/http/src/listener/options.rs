//! The options of a listener.

use std::time::Duration;

use crate::listener::Workers;

/// The options of a listener.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Most open connections; further ones are closed at once.
    pub max_connections: usize,
    /// Longest time until the first request of a connection has arrived, its headers only.
    pub header_timeout: Duration,
    /// Longest time that a connection may rest between two requests, or a client may take no byte
    /// of an answer; the connection is closed after one to two times this.
    pub idle_timeout: Duration,
    /// Longest time for which requests may continue after the shutdown.
    pub grace: Duration,
    /// The threads that serve the connections.
    pub workers: Workers,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            grace: Duration::from_secs(10),
            workers: Workers::default(),
        }
    }
}
