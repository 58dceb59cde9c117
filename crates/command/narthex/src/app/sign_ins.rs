//! The sign-ins to servers: made before the registry, which asks them for credentials.

use std::{sync::Arc, time::Duration};

use narthex_client::door::local_url;
use narthex_control::{
    CLIENT_METADATA, CLIENT_NAME, Control, ServerSignIns, SignInCounts, oauth::StoredTokens,
    public_base,
};
use narthex_gateway::{Gateway, metrics::Labelled};
use narthex_model::WorkspaceId;
use narthex_oauth_client::{Clock, RedirectBases, SignInOptions, SignIns, SystemClock};
use narthex_upstream::CredentialSource;
use tokio::{runtime::Handle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{AppOptions, Servers, in_process::DaemonOnly};

/// Time that open requests to authorization servers get at the end.
const END: Duration = Duration::from_secs(5);
/// Largest number of servers whose tokens are measured.
const MEASURED_MAX: usize = 1000;

/// The sign-ins of this process, with what is counted about them.
pub(super) struct Opened {
    pub(super) all: ServerSignIns,
    clock: Arc<dyn Clock>,
    tokens: Arc<StoredTokens>,
}

impl Opened {
    /// The sign-ins; `None` without a store, or without a door to which a browser comes back.
    pub(super) fn of(options: &AppOptions) -> Option<Self> {
        let Servers::Followed(of) = &options.servers else { return None };
        let (store, vault) = (of.store.as_ref()?, of.vault.as_ref()?);
        let doors = options.doors.as_ref()?;
        let address = doors.listener.local_addr().ok()?;
        let loopback = Url::parse(&local_url(address, doors.serve.tls.is_some())).ok()?;
        let public = of.login.as_ref().and_then(|login| public_base(&login.origin));
        let elsewhere = options.client_metadata_url.clone();
        let own =
            || public.as_ref().filter(|base| base.scheme() == "https")?.join(CLIENT_METADATA).ok();
        let client_metadata_url = elsewhere.or_else(own);
        let origin = of.login.as_ref().map(|login| login.origin.clone());
        let counts = Arc::new(SignInCounts::at(origin));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let tokens = Arc::new(StoredTokens::new(store.clone(), vault.clone()));
        let sign_ins = SignIns::new(SignInOptions {
            store: tokens.clone(),
            clock: clock.clone(),
            proxies: Arc::clone(&options.connections.proxies),
            extra_roots: Vec::new(),
            redirect_base: RedirectBases { loopback, public },
            client_metadata_url,
            client_name: CLIENT_NAME.to_owned(),
            workspace: WorkspaceId::default().to_string(),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            owner: options.gateway.node_id.clone(),
            hooks: counts.clone(),
            runtime: Handle::current(),
        });
        Some(Self { all: ServerSignIns { sign_ins, counts }, clock, tokens })
    }
}

/// Shows the ends of tokens and the results of requests for tokens in the metrics.
pub(super) fn measure(opened: Option<Opened>, gateway: &Gateway) {
    let Some(Opened { all: ServerSignIns { sign_ins, counts }, clock, .. }) = opened else {
        return;
    };
    gateway.metrics().measure_each(Labelled {
        name: "oauth_token_expiry_seconds",
        help: "Seconds until the access token of a server ends; negative after its end",
        label: "server",
        read: Box::new(move || expiries(&sign_ins, clock.now())),
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

/// Follows grants that another daemon stores or removes, or that end with their human.
pub(super) fn follow(opened: Option<&Opened>, control: &Control) {
    let Some(Opened { all, tokens, .. }) = opened else { return };
    let sign_ins = all.sign_ins.clone();
    let changed = move |key| sign_ins.changed_elsewhere(&key);
    drop(control.spawn(tokens.watch_changes(control.closing(), changed)));
}

/// The credentials of servers that sign-ins have. A process without sign-ins gives none, and says
/// which command works.
pub(super) fn source(opened: Option<&Opened>) -> Arc<dyn CredentialSource> {
    match opened {
        Some(opened) => Arc::new(opened.all.sign_ins.clone()),
        None => Arc::new(DaemonOnly),
    }
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
