//! The sign-ins to servers: made before the registry, which asks them for credentials.

use std::{sync::Arc, time::Duration};

use narthex_client::door::local_url;
use narthex_control::{
    CLIENT_METADATA, CLIENT_NAME, Control, ServerSignIns, SignInCounts, SignInVerbs,
    oauth::StoredTokens, public_base,
};
use narthex_gateway::{Gateway, metrics::Labelled};
use narthex_model::WorkspaceId;
use narthex_oauth_client::{
    Clock, MemoryStore, NoHooks, RedirectBases, SignInOptions, SignIns, SystemClock,
    store::TokenStore,
};
use narthex_upstream::CredentialSource;
use tokio::{runtime::Handle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{AppOptions, Servers, in_process::WithoutPeople};

/// Time that open requests to authorization servers get at the end.
const END: Duration = Duration::from_secs(5);
/// Largest number of servers whose tokens are measured.
const MEASURED_MAX: usize = 1000;

/// The sign-ins of this process, with what is counted about them.
pub(super) struct Opened {
    pub(super) all: ServerSignIns,
    stored: Arc<StoredTokens>,
}

/// The sign-ins of this process, and the credentials of its servers. Without a store, or without a
/// door to which a browser comes back, there are only credentials for which no person is needed.
pub(super) fn open(options: &AppOptions) -> (Option<Opened>, Arc<dyn CredentialSource>) {
    let opened = Opened::of(options);
    let credentials: Arc<dyn CredentialSource> = match &opened {
        Some(opened) => Arc::new(opened.all.sign_ins.clone()),
        None => Arc::new(WithoutPeople(in_memory(options))),
    };
    (opened, credentials)
}

impl Opened {
    fn of(options: &AppOptions) -> Option<Self> {
        let Servers::Followed(of) = &options.servers else { return None };
        let (store, vault) = (of.store.as_ref()?, of.vault.as_ref()?);
        let doors = options.doors.as_ref()?;
        let address = doors.listener.local_addr().ok()?;
        let loopback = Url::parse(&local_url(address, doors.serve.tls.is_some())).ok()?;
        let public = of.login.as_ref().and_then(|login| public_base(&login.origin));
        let own = public.as_ref().filter(|base| base.scheme() == "https");
        let own = own.and_then(|base| base.join(CLIENT_METADATA).ok());
        let client_metadata_url = options.client_metadata_url.clone().or(own);
        let stored = Arc::new(StoredTokens::new(store.clone(), vault.clone()));
        let origin = of.login.as_ref().map(|login| login.origin.clone());
        let counts = Arc::new(SignInCounts::at(origin));
        let bases = RedirectBases { loopback, public };
        let sign_ins = SignIns::new(SignInOptions {
            client_metadata_url,
            hooks: counts.clone(),
            ..usual(options, stored.clone(), bases)
        });
        Some(Self { all: ServerSignIns { sign_ins, counts }, stored })
    }
}

/// Sign-ins without people, whose tokens are in memory alone. No browser comes back to them.
fn in_memory(options: &AppOptions) -> SignIns {
    let loopback = Url::parse("http://127.0.0.1").expect("a constant address");
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    SignIns::new(usual(options, store, RedirectBases { loopback, public: None }))
}

/// The options that all sign-ins of a process have.
fn usual(
    options: &AppOptions,
    store: Arc<dyn TokenStore>,
    redirect_base: RedirectBases,
) -> SignInOptions {
    SignInOptions {
        store,
        clock: Arc::new(SystemClock),
        proxies: Arc::clone(&options.connections.proxies),
        extra_roots: Vec::new(),
        redirect_base,
        client_metadata_url: None,
        client_name: CLIENT_NAME.to_owned(),
        workspace: WorkspaceId::default().to_string(),
        tasks: TaskTracker::new(),
        shutdown: CancellationToken::new(),
        owner: options.gateway.node_id.clone(),
        hooks: Arc::new(NoHooks),
        runtime: Handle::current(),
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
