//! The fixture as it runs: its origins, its thread, and the hands that tests have on it.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    runtime::Builder,
    sync::{oneshot, watch},
    task::JoinSet,
};

use super::{
    asked::Asked,
    books::{Books, Consent, Counts, Grant},
    gate::{Gate, Gates, Moment},
    issue,
    kinds::Endpoint,
    quirks::Quirks,
    router::{self, Place},
    settings::Settings,
    signer::Signer,
    site::Site,
};
use crate::{canary::Canary, fixture::lock};

/// Authorization servers and a protected MCP server on loopback, until this is dropped.
///
/// They run in a thread of their own, so that a paused clock of the test does not stop them.
#[derive(Debug)]
pub struct AuthorizationFixture {
    /// The address of the MCP server.
    pub url: String,
    /// The origin that redirects to another origin lead to.
    pub elsewhere: String,
    shared: Arc<Shared>,
    /// The signal that ends the thread, and the thread.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Shared {
    site: Mutex<Site>,
    asked: Mutex<Vec<Asked>>,
    changed: watch::Sender<()>,
    gates: Gates,
}

impl AuthorizationFixture {
    /// Starts with these settings.
    ///
    /// # Panics
    /// When no port is free, or the settings name no issuer.
    #[must_use]
    pub fn start(settings: Settings) -> Self {
        assert!(!settings.issuers.is_empty(), "the settings name no issuer");
        let number = settings.issuers.iter().map(|issuer| issuer.origin).max().unwrap_or(0) + 1;
        let mut listeners: Vec<_> = (0..=number).map(|_| listener()).collect();
        let mut origins: Vec<_> = listeners.iter().map(origin).collect();
        let elsewhere = origins.pop().expect("one for redirects");
        let signers = signers(0, settings.issuers.len());
        let site = Site {
            books: Books::default(),
            elsewhere: elsewhere.clone(),
            now_ms: settings.now_s.unwrap_or_else(real_s) * 1000,
            signers,
            origins,
            settings,
        };
        let url = site.mcp_url();
        let (asked, gates) = (Mutex::default(), Gates::default());
        let changed = watch::Sender::new(());
        let shared = Arc::new(Shared { site: Mutex::new(site), asked, changed, gates });
        let served = Arc::clone(&shared);
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut serving = JoinSet::new();
                for (number, listener) in listeners.drain(..).enumerate() {
                    serving.spawn(serve(listener, number, Arc::clone(&served)));
                }
                drop(ended.await);
            });
        });
        Self { url, elsewhere, shared, running: Some((end, thread)) }
    }

    /// The identifier of an issuer, without a slash at its end.
    #[must_use]
    pub fn issuer(&self, number: usize) -> String {
        self.site(|site| site.issuer(number))
    }

    /// Changes settings from the next request on.
    ///
    /// # Panics
    /// When an issuer is put at an origin that there is not.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.site(|site| {
            change(&mut site.settings);
            let issuers = &site.settings.issuers;
            let is_served = issuers.iter().all(|issuer| issuer.origin < site.origins.len());
            assert!(is_served, "origins are made at the start only");
            let number = issuers.len().saturating_sub(site.signers.len());
            site.signers.extend(signers(site.signers.len(), number));
        });
    }

    /// Changes quirks from the next request on.
    pub fn quirks(&self, change: impl FnOnce(&mut Quirks)) {
        self.change(|settings| change(&mut settings.quirks));
    }

    /// Moves the fixture's clock, which stands still otherwise.
    ///
    /// # Panics
    /// When the time is longer than the clock can tell.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).expect("less than 500 million years");
        self.site(|site| site.now_ms += by);
    }

    /// The time of the fixture's clock, in seconds since 1970.
    #[must_use]
    pub fn now_s(&self) -> u64 {
        self.site(|site| site.now_s())
    }

    /// All requests so far, in order of their arrival.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// The requests to one endpoint so far.
    #[must_use]
    pub fn asked_of(&self, endpoint: Endpoint) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.endpoint == endpoint).collect()
    }

    /// Forgets the requests so far.
    pub fn forget_asked(&self) {
        lock(&self.shared.asked).clear();
    }

    /// Waits for a request that `is_it`.
    ///
    /// # Panics
    /// Never.
    pub async fn wait(&self, is_it: impl Fn(&Asked) -> bool) -> Asked {
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(found) = self.asked().into_iter().find(&is_it) {
                return found;
            }
            changed.changed().await.expect("the fixture lives");
        }
    }

    /// Counts of events so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.site(|site| site.books.counts)
    }

    /// All secrets that the fixture made: codes, tokens, secrets of clients.
    #[must_use]
    pub fn canaries(&self) -> Vec<Canary> {
        self.site(|site| site.books.canaries())
    }

    /// Closes a gate: requests to an endpoint wait until the test opens it.
    pub fn hold(&self, endpoint: Endpoint, moment: Moment) -> Gate {
        self.shared.gates.close(endpoint, moment)
    }

    /// Plays the browser: visits an authorization address, and gives the address of the redirect
    /// back, which it does not visit.
    ///
    /// # Errors
    /// The text of the page, if it is no redirect.
    ///
    /// # Panics
    /// When the address is not one of the fixture.
    pub fn browse(&self, url: &str) -> Result<String, String> {
        let place = self.site(|site| {
            let mut origins = site.origins.iter().enumerate();
            origins.find_map(|(number, origin)| {
                let target = url.strip_prefix(origin.as_str())?;
                let target = target.starts_with('/').then(|| target.to_owned())?;
                Some(Place { origin: number, target, is_redirected: false })
            })
        });
        let place = place.unwrap_or_else(|| panic!("{url} is no address of this fixture"));
        let request = Incomplete { method: Method::GET, headers: HeaderMap::new() };
        let asked = self.shared.note(&place, request, String::new());
        let answer = router::answer(&mut self.shared.site(), &place, &asked);
        answer.location().map(str::to_owned).ok_or(answer.body)
    }

    /// Gives tokens for the MCP server without a browser, as the token endpoint would answer.
    ///
    /// # Panics
    /// When there is no such issuer.
    #[must_use]
    pub fn give(&self, issuer: usize, client: &str, scopes: &[&str]) -> Value {
        self.site(|site| {
            let grant = Grant {
                issuer,
                client: client.to_owned(),
                subject: site.settings.subject.clone(),
                scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
                audience: vec![site.mcp_url()],
                family: site.books.new_family(),
            };
            issue::issue(site, issue::Issue { grant, gives_refresh: true, nonce: None })
        })
    }

    /// Approves the device with this user code; false if there is none.
    #[must_use]
    pub fn approve_device(&self, user_code: &str) -> bool {
        self.decide(user_code, Consent::Given)
    }

    /// Refuses the device with this user code; false if there is none.
    #[must_use]
    pub fn deny_device(&self, user_code: &str) -> bool {
        self.decide(user_code, Consent::Denied)
    }

    fn decide(&self, user_code: &str, consent: Consent) -> bool {
        self.site(|site| {
            let mut devices = site.books.devices.values_mut();
            let found = devices.find(|device| device.user_code == user_code);
            found.map(|device| device.consent = consent).is_some()
        })
    }

    /// Forgets all clients that registered themselves. Their tokens stay.
    pub fn forget_clients(&self) {
        self.site(|site| site.books.registered.clear());
    }

    /// Ends all access tokens. Refresh tokens stay.
    pub fn end_access_tokens(&self) {
        self.site(|site| site.books.access.clear());
    }

    /// Ends all access tokens and refresh tokens.
    pub fn end_all_tokens(&self) {
        self.site(|site| {
            site.books.access.clear();
            site.books.refresh.clear();
        });
    }

    /// The rights of an access token that is alive.
    #[must_use]
    pub fn holder(&self, token: &str) -> Option<Grant> {
        self.site(|site| site.holder(token).cloned())
    }

    /// An ID token of an issuer about a person, for a client.
    #[must_use]
    pub fn id_token(&self, issuer: usize, client: &str, subject: &str) -> String {
        let of = issue::IdTokenOf { issuer, client, subject };
        self.site(|site| issue::id_token(site, &of, None))
    }

    fn site<T>(&self, read: impl FnOnce(&mut Site) -> T) -> T {
        read(&mut self.shared.site())
    }
}

impl Drop for AuthorizationFixture {
    /// Waits until the ports are closed.
    fn drop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            drop(thread.join());
        }
    }
}

fn listener() -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("a socket can be asked not to wait");
    listener
}

fn origin(listener: &std::net::TcpListener) -> String {
    format!("http://{}", listener.local_addr().expect("a bound socket has an address"))
}

/// Keys of further issuers.
fn signers(from: usize, number: usize) -> Vec<Signer> {
    (from..from + number).map(|number| Signer::new(&format!("issuer-{number}"))).collect()
}

/// The time of the machine.
fn real_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970")
}

fn real_s() -> u64 {
    real_time().as_secs()
}

async fn serve(listener: std::net::TcpListener, origin: usize, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a socket of this machine");
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        crate::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { shared.handle(origin, request).await }
            });
            // A client that leaves is no fault of the fixture.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

/// A request without its address and body.
struct Incomplete {
    method: Method,
    headers: HeaderMap,
}

impl Shared {
    /// The state, at the present time.
    fn site(&self) -> MutexGuard<'_, Site> {
        let mut site = lock(&self.site);
        if site.settings.clock_runs {
            let now = u64::try_from(real_time().as_millis());
            site.now_ms = now.expect("less than 500 million years");
        }
        site
    }

    async fn handle(
        &self,
        origin: usize,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap_or_default();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let own = Place { origin, target: target.to_owned(), is_redirected: false };
        let place = match lock(&self.site).origins.len() == origin {
            true => Place::redirected(target).unwrap_or(own),
            false => own,
        };
        let request = Incomplete { method: parts.method, headers: parts.headers };
        let asked = self.note(&place, request, body);
        self.gates.pass(asked.endpoint, Moment::Before).await;
        let answer = router::answer(&mut self.site(), &place, &asked);
        self.gates.pass(asked.endpoint, Moment::After).await;
        match answer.is_hangup {
            true => Err(std::io::Error::other("hung up")),
            false => Ok(answer.response()),
        }
    }

    /// Records a request.
    fn note(&self, place: &Place, request: Incomplete, body: String) -> Asked {
        let Incomplete { method, headers } = request;
        let (origin, endpoint) = {
            let site = lock(&self.site);
            let origin = match place.is_redirected {
                true => Some(&site.elsewhere),
                false => site.origins.get(place.origin),
            };
            let origin = origin.unwrap_or(&site.elsewhere).clone();
            (origin, router::route(&site, place).endpoint())
        };
        let target = place.target.clone();
        let asked = Asked { origin, endpoint, method, target, headers, body };
        lock(&self.asked).push(asked.clone());
        self.changed.send_replace(());
        asked
    }
}
