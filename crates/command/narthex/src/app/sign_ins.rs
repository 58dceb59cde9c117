//! The sign-ins to servers: made before the registry, which asks them for credentials.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use narthex_client::door::local_url;
use narthex_control::{
    CLIENT_METADATA, CLIENT_NAME, Control, ControlOptions, ServerSignIns, SignInCounts,
    SignInVerbs, oauth::StoredTokens, public_base,
};
use narthex_gateway::{Gateway, metrics::Labelled};
use narthex_http_client::Proxies;
use narthex_model::WorkspaceId;
use narthex_oauth_client::{
    Clock, MemoryStore, NoHooks, RedirectBases, SharedClients, SignInOptions, SignIns, SystemClock,
    store::TokenStore,
};
use narthex_upstream::CredentialSource;
use tokio::{runtime::Handle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::in_process::WithoutPeople;

/// Time that open requests to authorization servers get at the end.
const END: Duration = Duration::from_secs(5);
/// Largest number of servers whose tokens are measured.
const MEASURED_MAX: usize = 1000;

/// The sign-ins of this process, with what is counted about them.
pub(super) struct Opened {
    pub(super) all: ServerSignIns,
    stored: Arc<StoredTokens>,
}

/// The parts of an app from which its sign-ins are made.
pub(super) struct Wanted<'a> {
    /// The control plane, if the servers come from files.
    pub(super) followed: Option<&'a ControlOptions>,
    /// The address of the door, with true if it encrypts.
    pub(super) door: Option<(SocketAddr, bool)>,
    pub(super) client_metadata_url: Option<&'a Url>,
    pub(super) shared_clients: &'a SharedClients,
    pub(super) proxies: &'a Arc<Proxies>,
    /// The id of this process.
    pub(super) owner: &'a str,
}

impl Wanted<'_> {
    /// The sign-ins of this process, and the credentials of its servers. Without a store, or
    /// without a door to which a browser comes back, there are only credentials for which no
    /// person is needed.
    pub(super) fn open(&self) -> (Option<Opened>, Arc<dyn CredentialSource>) {
        let opened = self.opened();
        let credentials: Arc<dyn CredentialSource> = match &opened {
            Some(opened) => Arc::new(opened.all.sign_ins.clone()),
            None => Arc::new(WithoutPeople(self.in_memory())),
        };
        (opened, credentials)
    }

    fn opened(&self) -> Option<Opened> {
        let (of, (address, is_tls)) = (self.followed?, self.door?);
        let (store, vault) = (of.store.as_ref()?, of.vault.as_ref()?);
        let loopback = Url::parse(&local_url(address, is_tls)).ok()?;
        let public = of.login.as_ref().and_then(|login| public_base(&login.origin));
        let own = public.as_ref().filter(|base| base.scheme() == "https");
        let own = own.and_then(|base| base.join(CLIENT_METADATA).ok());
        let client_metadata_url = self.client_metadata_url.cloned().or(own);
        let stored = Arc::new(StoredTokens::new(store.clone(), vault.clone()));
        let origin = of.login.as_ref().map(|login| login.origin.clone());
        let counts = Arc::new(SignInCounts::at(origin).with_logins(of.login.as_ref()));
        let bases = RedirectBases { loopback, public };
        let sign_ins = SignIns::new(SignInOptions {
            client_metadata_url,
            hooks: counts.clone(),
            ..self.usual(stored.clone(), bases)
        });
        Some(Opened { all: ServerSignIns { sign_ins, counts }, stored })
    }

    /// Sign-ins without people, whose tokens are in memory alone. No browser comes back to them.
    fn in_memory(&self) -> SignIns {
        let loopback = Url::parse("http://127.0.0.1").expect("a constant address");
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        SignIns::new(self.usual(store, RedirectBases { loopback, public: None }))
    }

    /// The options that all sign-ins of a process have.
    fn usual(&self, store: Arc<dyn TokenStore>, redirect_base: RedirectBases) -> SignInOptions {
        SignInOptions {
            store,
            clock: Arc::new(SystemClock),
            proxies: Arc::clone(self.proxies),
            extra_roots: Vec::new(),
            redirect_base,
            client_metadata_url: None,
            shared_clients: self.shared_clients.clone(),
            client_name: CLIENT_NAME.to_owned(),
            workspace: WorkspaceId::default().to_string(),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            owner: self.owner.to_owned(),
            hooks: Arc::new(NoHooks),
            runtime: Handle::current(),
        }
    }
}

/// Follows grants that other daemons on the store change, and shows the ends of tokens and the
/// results of requests for tokens in the metrics.
pub(super) fn begin(opened: Option<Opened>, control: Option<&Control>, gateway: &Gateway) {
    let (Some(opened), Some(control)) = (opened, control) else { return };
    let Opened { all: ServerSignIns { sign_ins, counts }, stored } = opened;
    let verbs = SignInVerbs::of(control);
    drop(control.spawn(verbs.clone().follow()));
    let following = stored.watch_changes(control.closing(), move |key| {
        verbs.was_stored(&key);
    });
    drop(control.spawn(following));
    gateway.metrics().measure_each(Labelled {
        name: "oauth_token_expiry_seconds",
        help: "Seconds until the access token of a server ends; negative after its end",
        label: "server",
        read: Box::new(move || expiries(&sign_ins, SystemClock.now())),
    });
    gateway.metrics().count_each(Labelled {
        name: "oauth_renewals",
        help: "Requests for tokens of servers, by result",
        label: "result",
        read: Box::new(move || {
            let all = counts.by_result().into_iter().filter(|(_, count)| *count > 0);
            all.map(|(result, count)| (result.to_owned(), count)).collect()
        }),
    });
}

/// Ends all sign-ins of a control plane, before its store closes.
pub(super) async fn close(control: &Control) {
    let Some(sign_ins) = control.sign_ins() else { return };
    if timeout(END, sign_ins.close()).await.is_err() {
        tracing::warn!("a request to an authorization server did not end in time");
    }
}

/// The seconds until the tokens of shared servers end.
fn expiries(sign_ins: &SignIns, now: u64) -> Vec<(String, i64)> {
    let shared = sign_ins.statuses().into_iter().filter(|(key, _)| key.user.is_none());
    let ends = shared.filter_map(|(key, status)| {
        let end = i64::try_from(status.facts.expires_at?).ok()?;
        Some((key.server, end.saturating_sub(i64::try_from(now).ok()?)))
    });
    ends.take(MEASURED_MAX).collect()
}
