//! The fixture MCP server: one state, both protocol eras, three transports.
//!
//! Layers, outermost first: a transport ([`http`], [`sse`], [`stdio`]) frames messages; an era
//! (`legacy`, `modern`) decides what a message means; the catalogue (`tools`, `prompts`,
//! `resources`) holds what can be asked for and knows neither.

mod call;
mod catalogue;
mod clock;
pub mod http;
mod hub;
mod legacy;
mod message;
mod modern;
mod options;
mod outbox;
mod prompts;
mod quirks;
mod resources;
mod seal;
mod skills;
pub mod sse;
mod stats;
pub mod stdio;
mod tools;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::http::HeaderMap;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) use crate::spawn;

pub use self::options::{Bearer, Eras, Options, Quirk};
pub use self::stats::Counts;

/// Name and version that the fixture reports of itself.
pub(crate) const SERVER_NAME: &str = "narthex-fixture";
pub(crate) const SERVER_VERSION: &str = env!("CARGO_PKG_VERSION");
const INSTRUCTIONS: &str = "A fixture. Every tool does what its name says.";

/// The whole state of one fixture server.
pub struct Fixture {
    pub(crate) options: Options,
    pub(crate) catalogue: catalogue::Catalogue,
    pub(crate) hub: hub::Hub,
    pub(crate) sessions: legacy::Sessions,
    pub(crate) tasks: modern::Tasks,
    pub(crate) seal: seal::Seal,
    pub(crate) stats: stats::Stats,
    /// The headers of the last POST, if they are recorded.
    seen_headers: Mutex<HeaderMap>,
    arrived: Mutex<Vec<Arrived>>,
}

/// A message that a POST brought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrived {
    /// The message's method, as it is spelt; empty for an answer.
    pub method: String,
    /// True if the message has an id, and so wants an answer.
    pub is_request: bool,
}

impl Fixture {
    /// Builds a fixture with nothing connected to it.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            catalogue: catalogue::Catalogue::new(&options),
            hub: hub::Hub::new(),
            sessions: legacy::Sessions::default(),
            tasks: modern::Tasks::default(),
            seal: seal::Seal::new(),
            stats: stats::Stats::default(),
            seen_headers: Mutex::default(),
            arrived: Mutex::default(),
            options,
        })
    }

    /// The headers of the last POST; empty unless [`Options::records_headers`].
    pub fn seen_headers(&self) -> HeaderMap {
        lock(&self.seen_headers).clone()
    }

    /// Every message that a POST brought so far; empty unless [`Options::records_messages`].
    pub fn arrived(&self) -> Vec<Arrived> {
        lock(&self.arrived).clone()
    }

    fn note(&self, message: &message::Message) {
        if self.options.records_messages {
            let (method, is_request) = (message.method().to_owned(), message.is_request());
            lock(&self.arrived).push(Arrived { method, is_request });
        }
    }

    /// The counts of the fixture's requests so far.
    pub fn counts(&self) -> Counts {
        self.stats.counts()
    }
}

/// A fixture that listens on a loopback port until it is dropped.
pub struct Running {
    pub fixture: Arc<Fixture>,
    pub addr: SocketAddr,
    /// The MCP endpoint.
    pub url: String,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts a Streamable HTTP fixture on a free loopback port.
    pub async fn http(options: Options) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let fixture = Fixture::new(options);
        let url = format!("http://{addr}/mcp");
        let task = spawn(http::serve(Arc::clone(&fixture), listener));
        Ok(Self { fixture, addr, url, task })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Locks, going on with the value of a thread that panicked: a fixture should rather answer.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
