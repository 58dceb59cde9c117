//! The options of the door.

use std::{net::SocketAddr, time::Duration};

use narthex_control::Control;
use narthex_outbound::Outbound;
use narthex_runs::Runs;
use tokio_util::sync::CancellationToken;

use crate::TokenHash;

/// The options that a router is made with.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Where the listener is bound. This address and all loopback names are allowed hosts.
    pub listen: SocketAddr,
    /// Further values of `Host`, such as `gateway.example` or `gateway.example:8443`. A name
    /// without a port stands for itself and for itself with the listener's port.
    pub allowed_hosts: Vec<String>,
    /// Further values of `Origin`, exactly as browsers send them: `https://dash.example`.
    pub allowed_origins: Vec<String>,
    /// Opens `/metrics` and `/api/*`, but no MCP endpoint.
    pub admin_token: Option<TokenHash>,
    /// The operations of operators. Without them the API shows servers and changes none.
    pub control: Option<Control>,
    /// Begins and ends runs. Without it there is no API for runs.
    pub runs: Option<Runs>,
    /// Posts to channels and webhooks. Without it there is no API for them.
    pub outbound: Option<Outbound>,
    /// After how long without any step of a call its answer becomes an event stream.
    pub quiet: Duration,
    /// The interval at which a quiet event stream shows life.
    pub keep_alive: Duration,
    /// Bytes of bodies of the API that are held at one time, of which one principal may have half.
    /// A body takes them in steps of 64 KiB, from before its first byte.
    pub api_body_bytes: usize,
    /// The time in which a body has to arrive.
    pub body_timeout: Duration,
    /// The limits of the events that are stored of legacy streams.
    pub replay: ReplayLimits,
    /// Ends the streams that belong to no call. Cancel it together with the listener's shutdown.
    pub closing: CancellationToken,
}

impl HttpOptions {
    /// The defaults for a listener at this address.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            admin_token: None,
            control: None,
            runs: None,
            outbound: None,
            quiet: Duration::from_secs(5),
            keep_alive: Duration::from_secs(15),
            api_body_bytes: 64 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            replay: ReplayLimits::default(),
            closing: CancellationToken::new(),
        }
    }
}

/// The limits of the stored events of legacy streams, from which a disconnected client can resume.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLimits {
    /// Events of one stream.
    pub events: usize,
    /// Bytes of one stream; the newest event is kept however long it is.
    pub bytes: usize,
    /// Streams of one session whose calls have ended.
    pub finished_streams: usize,
    /// Bytes of all those streams together; the newest is kept however long it is.
    pub finished_bytes: usize,
    /// Bytes of the streams of all runs together, of which one run may have half and the runs of
    /// one workspace three quarters.
    pub total_bytes: usize,
    /// For how long a stream is kept after its call has ended.
    pub keep: Duration,
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self {
            events: 256,
            bytes: 1024 * 1024,
            finished_streams: 16,
            finished_bytes: 4 * 1024 * 1024,
            total_bytes: 256 * 1024 * 1024,
            keep: Duration::from_secs(120),
        }
    }
}
