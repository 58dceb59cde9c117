//! The options of the door.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use narthex_client_files::connect::OwnMachine;
use narthex_control::Control;
use narthex_outbound::Outbound;
use narthex_runs::Runs;
use tokio_util::sync::CancellationToken;

use crate::{PublicServers, TokenHash};

/// The options of a router.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address of the listener. This address and all loopback names are allowed hosts.
    pub listen: SocketAddr,
    /// True if the listener encrypts its connections. Addresses in answers then begin with
    /// `https://`.
    pub is_tls: bool,
    /// Further values of `Host`, such as `gateway.example` or `gateway.example:8443`. A name
    /// without a port is allowed alone and with the listener's port.
    pub allowed_hosts: Vec<String>,
    /// Further values of `Origin`, exactly as browsers send them: `https://dash.example`.
    pub allowed_origins: Vec<String>,
    /// The hash of the token that opens `/metrics` and `/api/*`, but no MCP endpoint.
    pub admin_token: Option<TokenHash>,
    /// The operations of operators. If absent, the API can show servers but not change them.
    pub control: Option<Control>,
    /// Creates and ends runs. If absent, the API has no runs.
    pub runs: Option<Runs>,
    /// Posts to channels and webhooks. If absent, the API has neither.
    pub outbound: Option<Outbound>,
    /// Finds servers in the registry of others. If absent, the console finds none.
    pub public_servers: Option<Arc<dyn PublicServers>>,
    /// The machine whose files of clients a page may write. Absent unless the daemon listens on
    /// loopback alone, has no public address, and runs as the owner of these files.
    pub own_machine: Option<OwnMachine>,
    /// The time without any step of a call after which its answer becomes an event stream.
    pub quiet: Duration,
    /// The interval at which a stream without events sends a sign of life.
    pub keep_alive: Duration,
    /// Maximum number of bytes of API bodies that are in memory at one time; one principal may have
    /// half of them. A body reserves its bytes in steps of 64 KiB, from before its first byte.
    pub api_body_bytes: usize,
    /// The time within which a whole body must arrive.
    pub body_timeout: Duration,
    /// The limits of the stored events of legacy streams.
    pub replay: ReplayLimits,
    /// Ends the streams that belong to no call. The owner cancels it together with the listener's
    /// shutdown.
    pub closing: CancellationToken,
}

impl HttpOptions {
    /// The defaults for a listener at this address.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            is_tls: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            admin_token: None,
            control: None,
            runs: None,
            outbound: None,
            public_servers: None,
            own_machine: None,
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
    /// Maximum number of events of one stream.
    pub events: usize,
    /// Maximum bytes of one stream. The newest event is always stored, whatever its length.
    pub bytes: usize,
    /// Maximum number of a session's streams whose calls have ended.
    pub finished_streams: usize,
    /// Maximum bytes of all those streams together. The newest stream is always stored, whatever
    /// its length.
    pub finished_bytes: usize,
    /// Maximum bytes of the streams of all runs together. One run may have half of them, and the
    /// runs of one workspace three quarters.
    pub total_bytes: usize,
    /// The time for which a stream is stored after its call has ended.
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
