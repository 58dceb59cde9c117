//! Limits of the Unix-socket door.

use std::time::Duration;

/// The limits of the door.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Maximum number of open connections. Further ones wait to be accepted.
    pub connections: usize,
    /// Maximum number of running requests of one connection. Further ones wait.
    pub requests: usize,
    /// The time after which a client is disconnected that reads none of the messages waiting for
    /// it.
    pub write_timeout: Duration,
    /// The time for which open calls may continue after the door was asked to stop.
    pub drain_timeout: Duration,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            connections: 1024,
            requests: 128,
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
        }
    }
}
