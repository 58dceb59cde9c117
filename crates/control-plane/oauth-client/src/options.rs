//! Settings of the sign-ins of one process, and the ports of its owner.

use std::{fmt, sync::Arc, time::SystemTime};

use narthex_http_client::{CertificateDer, Proxies};
use narthex_oauth::client::ClientIdentity;
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    shared_clients::SharedClients,
    store::{ClientKey, GrantFacts, GrantKey, TokenStore},
};

/// Settings of the sign-ins of one process.
#[derive(Debug, Clone)]
pub struct SignInOptions {
    /// The store, which several processes may share.
    pub store: Arc<dyn TokenStore>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The proxies for requests to authorization servers.
    pub proxies: Arc<Proxies>,
    /// Certificates to trust besides the machine's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// The bases of redirect URIs.
    pub redirect_base: RedirectBases,
    /// The address of narthex's client id metadata document, if it has a public one.
    pub client_metadata_url: Option<Url>,
    /// Clients that an operator has registered, for servers whose entries name none (Q6).
    pub shared_clients: SharedClients,
    /// The name that people see when they consent.
    pub client_name: String,
    /// The workspace of servers that belong to no human.
    pub workspace: String,
    /// All tasks of the sign-ins.
    pub tasks: TaskTracker,
    /// The signal that ends waiting tasks.
    pub shutdown: CancellationToken,
    /// The id of this process, for leases. No two processes have the same.
    pub owner: String,
    /// The owner's hooks.
    pub hooks: Arc<dyn SignInHooks>,
    /// The runtime of all tasks.
    pub runtime: Handle,
}

/// The bases of redirect URIs. They must be stable, as clients are registered with them (E29).
#[derive(Debug, Clone)]
pub struct RedirectBases {
    /// The base on loopback, such as `http://127.0.0.1:4711`.
    pub loopback: Url,
    /// The public base, which is preferred.
    pub public: Option<Url>,
}

impl RedirectBases {
    /// The bases, the preferred one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Url> {
        self.public.iter().chain([&self.loopback])
    }
}

/// Calls to the owner of the sign-ins. They must not block.
pub trait SignInHooks: Send + Sync + fmt::Debug {
    /// A person may sign in to this server at this address (E28).
    fn open_authorize_url(&self, server: &str, url: &Url) {
        let _unused = (server, url);
    }

    /// The tokens of a grant were given, renewed or dropped (E27). `None`: there are none now.
    fn on_tokens_changed(&self, key: &GrantKey, facts: Option<&GrantFacts>) {
        let _unused = (key, facts);
    }

    /// A request for tokens of a grant has failed (C25). The facts have the time and the reason;
    /// the tokens, if they are dropped, are reported by [`Self::on_tokens_changed`] as well.
    fn on_tokens_failed(&self, key: &GrantKey, facts: &GrantFacts) {
        let _unused = (key, facts);
    }

    /// The page at which the human of a grant begins a sign-in, in a browser of their own. `None`
    /// if there is none.
    fn page_of(&self, key: &GrantKey) -> Option<Url> {
        let _unused = key;
        None
    }

    /// Narthex's client at a login provider, as the settings of the daemon have it. `None` if no
    /// provider has this name.
    fn login_client(&self, provider: &str) -> Option<ClientIdentity> {
        let _unused = provider;
        None
    }

    /// True if the operator lists a server as one that may have tokens for identities of a login
    /// provider. `None` if the operator has no such list.
    fn exchanges_for(&self, provider: &str, server: &Url) -> Option<bool> {
        let _unused = (provider, server);
        None
    }

    /// The page at which a human signs in to narthex with a login provider. `None` if there is
    /// none.
    fn login_page(&self, provider: &str) -> Option<Url> {
        let _unused = provider;
        None
    }

    /// Narthex was registered as a client (E27).
    fn on_client_registered(&self, key: &ClientKey) {
        let _unused = key;
    }
}

/// Hooks that do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl SignInHooks for NoHooks {}

/// A clock.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time, in seconds since 1970.
    fn now(&self) -> u64;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }
}
