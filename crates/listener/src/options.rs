//! What a listener is run with.

use std::time::Duration;

use crate::Workers;

/// What a listener is run with.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// How many connections may be open; further ones are closed at once.
    pub max_connections: usize,
    /// How long the first request of a connection may take to arrive, its headers only.
    pub header_timeout: Duration,
    /// How long a connection may rest between two requests, and how long a client may take no
    /// byte of an answer; it is closed after one to two times this.
    pub idle_timeout: Duration,
    /// How long requests may go on after the shutdown.
    pub grace: Duration,
    /// Who serves the connections.
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
