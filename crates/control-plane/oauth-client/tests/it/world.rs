//! A protected server with its authorization servers, and processes that call it.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{HeaderValue, Request, header};
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_model::{Alias, AuthorizationCodeAuth, HttpTarget, OAuth, OAuthClient, ServerAuth};
use narthex_oauth_client::{
    BrowserAnswer, Clock, Finished, MemoryStore, RedirectBases, SharedClients, SignInError,
    SignInHooks, SignInOptions, SignInTarget, SignIns,
    store::{ClientKey, GrantFacts, GrantKey, TokenStore},
};
use narthex_testkit::authorization::{AuthorizationFixture, Quirks, Settings, form};
use narthex_upstream::{
    AtHand, CredentialFault, CredentialQuery, CredentialSource, Credentials, RefusedRequest,
};
use narthex_wire::Payload;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

/// The name of the server's row.
pub(crate) const ALIAS: &str = "linear";
/// The base of redirect URIs, where nothing listens.
pub(crate) const LOOPBACK: &str = "http://127.0.0.1:4711";
/// The redirect URI of the server.
pub(crate) const REDIRECT: &str = "http://127.0.0.1:4711/oauth/callback/linear";

/// The clock of the fixture. The fixture, which knows all secrets, is not shown.
struct FixtureClock(Arc<AuthorizationFixture>);

impl fmt::Debug for FixtureClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FixtureClock")
    }
}

impl Clock for FixtureClock {
    fn now(&self) -> u64 {
        self.0.now_s()
    }
}

/// The calls of hooks so far.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) opened: Mutex<Vec<String>>,
    pub(crate) tokens: Mutex<Vec<Option<GrantFacts>>>,
    pub(crate) clients: Mutex<Vec<ClientKey>>,
    pub(crate) failed: Mutex<Vec<GrantFacts>>,
}

impl SignInHooks for Recorder {
    fn open_authorize_url(&self, server: &str, url: &Url) {
        self.opened.lock().unwrap().push(format!("{server} {url}"));
    }

    fn on_tokens_changed(&self, _: &GrantKey, facts: Option<&GrantFacts>) {
        self.tokens.lock().unwrap().push(facts.cloned());
    }

    fn on_tokens_failed(&self, _: &GrantKey, facts: &GrantFacts) {
        self.failed.lock().unwrap().push(facts.clone());
    }

    fn on_client_registered(&self, key: &ClientKey) {
        self.clients.lock().unwrap().push(key.clone());
    }
}

/// A protected server, and the store that all processes share.
pub(crate) struct World {
    pub(crate) fixture: Arc<AuthorizationFixture>,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) recorder: Arc<Recorder>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn quirky(quirks: Quirks) -> Self {
        Self::with(Settings::with(quirks))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let fixture = Arc::new(AuthorizationFixture::start(settings));
        let clock = Arc::new(FixtureClock(Arc::clone(&fixture)));
        let store = Arc::new(MemoryStore::new(clock));
        Self { fixture, store, recorder: Arc::default() }
    }

    /// A process with sign-ins.
    pub(crate) fn process(&self, owner: &str) -> SignIns {
        SignIns::new(self.options(owner))
    }

    pub(crate) fn options(&self, owner: &str) -> SignInOptions {
        SignInOptions {
            store: Arc::clone(&self.store),
            clock: Arc::new(FixtureClock(Arc::clone(&self.fixture))),
            proxies: Arc::default(),
            extra_roots: Vec::new(),
            redirect_base: RedirectBases { loopback: Url::parse(LOOPBACK).unwrap(), public: None },
            client_metadata_url: None,
            shared_clients: SharedClients::default(),
            client_name: "narthex".to_owned(),
            workspace: "w".to_owned(),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            owner: owner.to_owned(),
            hooks: Arc::<Recorder>::clone(&self.recorder),
            runtime: Handle::current(),
        }
    }

    /// A process with one server whose entry has this authentication.
    pub(crate) fn server(&self, auth: ServerAuth) -> Server {
        self.server_of(&self.process("one"), auth)
    }

    pub(crate) fn server_of(&self, sign_ins: &SignIns, auth: ServerAuth) -> Server {
        Server {
            fixture: Arc::clone(&self.fixture),
            credential: credential(sign_ins, &self.fixture.url, &auth),
            sign_ins: sign_ins.clone(),
            auth,
        }
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.fixture.advance(Duration::from_secs(seconds));
    }
}

/// One server of one process.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) fixture: Arc<AuthorizationFixture>,
    pub(crate) sign_ins: SignIns,
    pub(crate) credential: Arc<dyn Credentials>,
    pub(crate) auth: ServerAuth,
}

pub(crate) fn credential(sign_ins: &SignIns, url: &str, auth: &ServerAuth) -> Arc<dyn Credentials> {
    let target = HttpTarget {
        url: url.to_owned(),
        is_sse: false,
        headers: std::collections::BTreeMap::new(),
        auth: auth.clone(),
    };
    let alias = Alias::new(ALIAS).unwrap();
    let query = CredentialQuery { alias: &alias, target: &target, holder: None };
    CredentialSource::credentials(sign_ins, query).unwrap()
}

pub(crate) fn key() -> GrantKey {
    GrantKey { workspace: "w".to_owned(), server: ALIAS.to_owned(), user: None }
}

/// The entry of a sign-in by a person, with these settings.
pub(crate) fn person(auth: AuthorizationCodeAuth) -> ServerAuth {
    ServerAuth::OAuth(Box::new(OAuth::AuthorizationCode(auth)))
}

/// The entry of a sign-in with a client of the settings.
pub(crate) fn preregistered(id: &str, secret: Option<&str>) -> ServerAuth {
    let secret = secret.map(narthex_model::Secret::new);
    person(AuthorizationCodeAuth {
        client: Some(OAuthClient { id: id.to_owned(), secret }),
        ..AuthorizationCodeAuth::default()
    })
}

impl Server {
    pub(crate) fn target(&self) -> SignInTarget {
        SignInTarget {
            key: key(),
            alias: ALIAS.to_owned(),
            url: Url::parse(&self.fixture.url).unwrap(),
            auth: self.auth.clone(),
            session: None,
        }
    }

    /// Calls a tool as a link does, and returns its result.
    pub(crate) async fn call(&self, tool: &str) -> Result<Value, CredentialFault> {
        let mut header = match self.credential.at_hand() {
            AtHand::Ready(header) => header,
            AtHand::Ask => self.credential.obtain().await?,
        };
        let mut is_repeated = false;
        for _ in 0..5 {
            let answer = post(&self.fixture.url, header.as_ref(), tool).await;
            if !matches!(answer.status, 401 | 403) {
                return Ok(answer.body);
            }
            let refusal = RefusedRequest {
                status: answer.status,
                challenges: answer.challenges,
                sent: header,
                operation: format!("tools/call {tool}"),
                is_repeated,
            };
            header = self.credential.refused(refusal).await?;
            is_repeated = true;
        }
        panic!("{tool} is refused again and again")
    }

    /// Calls a tool that a token is allowed.
    pub(crate) async fn works(&self) {
        let body = self.call("whoami").await.unwrap();
        assert_eq!(body["result"]["structuredContent"]["subject"], "ada", "{body}");
    }

    /// The address at which a person signs in, as a call reports it.
    pub(crate) async fn address(&self, tool: &str) -> String {
        match self.call(tool).await {
            Err(CredentialFault::NeedsConsent { address: Some(address), .. }) => address,
            other => panic!("no sign-in is asked for: {other:?}"),
        }
    }

    /// Plays the browser at an address, and brings the answer back.
    pub(crate) async fn browse(&self, address: &str) -> Result<Finished, SignInError> {
        let back = self.fixture.browse(address).unwrap();
        self.bring(&back).await
    }

    /// Brings the browser to the address of an answer.
    pub(crate) async fn bring(&self, back: &str) -> Result<Finished, SignInError> {
        let (path, query) = back.split_once('?').unwrap();
        let (_, place) = path.split_once("/oauth/callback").unwrap_or_default();
        let server = place.strip_prefix('/');
        let finished = self.sign_ins.finish(BrowserAnswer { query, server, session: None }).await;
        finished.map_err(|ended| ended.error)
    }

    /// Signs in after a refused call.
    pub(crate) async fn sign_in(&self) -> Finished {
        let address = self.address("whoami").await;
        self.browse(&address).await.unwrap()
    }
}

/// The answer of the server.
struct Answer {
    status: u16,
    challenges: Vec<String>,
    body: Value,
}

async fn post(url: &str, token: Option<&HeaderValue>, tool: &str) -> Answer {
    let url = Url::parse(url).unwrap();
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": {}},
    });
    let mut request = Request::new(Payload::from(message.to_string().into_bytes()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = url.path().parse().unwrap();
    if let Some(token) = token {
        request.headers_mut().insert(header::AUTHORIZATION, token.clone());
    }
    let client = HttpClient::new(&url, ClientSettings::default()).unwrap();
    let response = client.send(request).await.unwrap();
    let challenges = response.headers.get_all(header::WWW_AUTHENTICATE).iter();
    let challenges = challenges.map(|value| value.to_str().unwrap().to_owned()).collect();
    let status = response.status.as_u16();
    let body = response.body.collect(1 << 20).await.unwrap();
    Answer { status, challenges, body: serde_json::from_slice(&body).unwrap_or_default() }
}

/// The answer at the address of the server.
pub(crate) fn answer(query: &str) -> BrowserAnswer<'_> {
    BrowserAnswer { query, server: Some(ALIAS), session: None }
}

/// The answer at the address of the server, in the browser of a login session.
pub(crate) fn of_session<'a>(query: &'a str, session: &'a str) -> BrowserAnswer<'a> {
    BrowserAnswer { session: Some(session), ..answer(query) }
}

/// A parameter of an address.
pub(crate) fn parameter(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.split_once('?')?;
    form(query).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}
