//! A daemon with a server behind sign-ins, an agent that uses the server, and humans in browsers.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::SystemTime,
};

use narthex_testkit::authorization::{AuthorizationFixture, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::{Url, form_urlencoded::Serializer};

use crate::{
    support::{Daemon, Place, SOON},
    world::{Client, Reply, call, modern},
};

pub(super) const HOME: &str = "/api/workspaces/default";
pub(super) const SERVER: &str = "/api/workspaces/default/mcp-servers/tracker";
const JSON: &str = "content-type: application/json\r\n";
const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";
/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://127.0.0.1:1/callback";

/// The daemon and the server.
pub(super) struct Site {
    pub(super) fixture: AuthorizationFixture,
    pub(super) place: Place,
    pub(super) address: SocketAddr,
    admin: String,
    daemon: Daemon,
}

/// A client that a human has let in at the door.
pub(super) struct LetIn {
    pub(super) secret: String,
    pub(super) code: String,
    pub(super) access: String,
    pub(super) refresh: String,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(super) fn succeeded(self) -> Self {
        assert!((200..300).contains(&self.status), "{self:?}");
        self
    }
}

/// A human in a browser, who has signed in to narthex.
pub(super) struct Human {
    pub(super) name: &'static str,
    origin: String,
    cookie: String,
    csrf: String,
}

impl Human {
    fn head(&self) -> String {
        let Self { origin, cookie, csrf, .. } = self;
        let host = origin.strip_prefix("http://").unwrap();
        format!(
            "host: {host}\r\norigin: {origin}\r\nsec-fetch-site: same-origin\r\n\
             cookie: {cookie}\r\nx-narthex-csrf: {csrf}\r\n"
        )
    }
}

impl Site {
    /// A site with the server in the catalog.
    pub(super) fn start() -> Self {
        let site = Self::empty();
        site.has_server("default");
        site
    }

    pub(super) fn empty() -> Self {
        Self::started(Settings::default(), |_| String::new(), |_command| {})
    }

    /// As [`Self::start`], with everything logged into the file `log` of the folder.
    pub(super) fn logged() -> (Self, TempDir) {
        // Elsewhere: the folder of `mcp.json` is watched, and each change is logged.
        let logs = tempfile::tempdir().unwrap();
        let (log, _path) = fs_err::File::create(logs.path().join("log")).unwrap().into_parts();
        let site = Self::started(
            Settings::default(),
            |_| String::new(),
            |command| {
                command.env("NARTHEX_LOG", "trace").stderr(log);
            },
        );
        site.has_server("default");
        (site, logs)
    }

    /// A daemon whose settings file has this text.
    pub(super) fn with(
        settings: Settings,
        text: impl FnOnce(&AuthorizationFixture) -> String,
    ) -> Self {
        Self::started(settings, text, |_command| {})
    }

    fn started(
        settings: Settings,
        text: impl FnOnce(&AuthorizationFixture) -> String,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let fixture = AuthorizationFixture::start(settings);
        let place = Place::with(&json!({}));
        place.write("narthex.toml", &text(&fixture));
        let files = ["--config", "mcp.json", "--settings", "narthex.toml"];
        let words = [&["up", "--listen", "127.0.0.1:0"][..], &files].concat();
        let daemon = place.start_with(&words, change);
        let listening = daemon.event("listening");
        daemon.event("ready");
        let url: http::Uri = listening["url"].as_str().unwrap().parse().unwrap();
        let port = url.port_u16().unwrap();
        let admin = fs_err::read_to_string(place.path("data/admin.token")).unwrap();
        let (address, admin) = (([127, 0, 0, 1], port).into(), admin.trim().to_owned());
        Self { fixture, place, address, admin, daemon }
    }

    /// Ends the daemon. Returns its folder, and the server.
    pub(super) fn stop(self) -> (Place, AuthorizationFixture) {
        let Self { fixture, place, mut daemon, .. } = self;
        daemon.signal("TERM");
        assert!(daemon.wait().success());
        (place, fixture)
    }

    /// The server, and an agent that uses it, in a workspace.
    pub(super) fn has_server(&self, workspace: &str) {
        let base = format!("/api/workspaces/{workspace}");
        self.operator("PUT", &format!("{base}/mcp-servers/tracker"), &self.entry()).succeeded();
        let agent = json!({ "name": "clerk", "mcpServers": { "work": { "ref": "tracker" } } });
        self.operator("PUT", &format!("{base}/agents/clerk"), &agent).succeeded();
    }

    pub(super) fn entry(&self) -> Value {
        json!({ "id": "tracker", "kind": "remote_oauth", "url": self.fixture.url })
    }

    /// Asks as the holder of the operator's token.
    pub(super) fn operator(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.bearer(&self.admin, method, path, body)
    }

    pub(super) fn bearer(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let head = format!("host: {}\r\nauthorization: Bearer {token}\r\n{JSON}", self.address);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.exchange(method, path, &head, &body)
    }

    /// Asks in the browser of a human.
    pub(super) fn human(&self, who: &Human, method: &str, path: &str, body: &str) -> Answer {
        let kind = if path.starts_with("/api/") { JSON } else { FORM };
        self.exchange(method, path, &format!("{}{kind}", who.head()), body)
    }

    /// A member of the workspace who has signed in by a link.
    pub(super) fn signs_in(&self, name: &'static str) -> Human {
        self.operator("POST", "/api/principals", &json!({ "name": name })).succeeded();
        let roles = json!({ "roles": ["runner"] });
        self.operator("PUT", &format!("{HOME}/members/{name}"), &roles).succeeded();
        let path = format!("/api/principals/{name}/sign-in-links");
        let url = self.operator("POST", &path, &Value::Null).succeeded().json();
        let url = url["url"].as_str().unwrap();
        let at = url.find("/signin").unwrap();
        let (origin, link) = url.split_at(at);
        let origin = origin.to_owned();
        let mut human = Human { name, origin, cookie: String::new(), csrf: String::new() };
        let used = self.human(&human, "POST", link, "");
        let cookie = used.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case("set-cookie").then(|| value.split(';').next())?
        });
        human.cookie = cookie.unwrap_or_else(|| panic!("{used:?}")).to_owned();
        let page = self.human(&human, "GET", "/signin", "").body;
        let csrf = page.split_once("data-csrf=\"").unwrap().1.split('"').next().unwrap();
        csrf.clone_into(&mut human.csrf);
        human
    }

    /// A human who has signed in with the login provider `corp`, for which the fixture stands.
    /// `before`: the browser of an earlier sign-in.
    pub(super) fn signs_in_at_corp(&self, name: &'static str, before: Option<&Human>) -> Human {
        self.fixture.change(|settings| name.clone_into(&mut settings.subject));
        let origin = format!("http://localhost:{}", self.address.port());
        let cookie = before.map(|human| human.cookie.clone()).unwrap_or_default();
        let mut human = Human { name, origin, cookie, csrf: String::new() };
        let begun = self.human(&human, "GET", "/signin/oidc/corp", "");
        let attempt = cookies(&begun);
        human.cookie = [&human.cookie[..], &attempt].join("; ").trim_start_matches("; ").to_owned();
        let back = self.fixture.browse(&location(&begun)).unwrap();
        let done = self.human(&human, "GET", &back[back.find("/signin").unwrap()..], "");
        human.cookie = cookies(&done);
        assert!(!human.cookie.is_empty(), "{done:?}");
        let page = self.human(&human, "GET", "/signin", "").body;
        let csrf = page.split_once("data-csrf=\"").unwrap_or_else(|| panic!("{page}")).1;
        csrf.split('"').next().unwrap().clone_into(&mut human.csrf);
        human
    }

    /// The human signs out of narthex.
    #[track_caller]
    pub(super) fn signs_out(&self, who: &Human) {
        let form = format!("csrf={}", who.csrf);
        assert_eq!(self.human(who, "POST", "/signout", &form).status, 303);
    }

    /// The answer of the authorization server to the sign-in of a human, as an address of narthex.
    #[track_caller]
    pub(super) fn agrees(&self, who: &Human) -> String {
        let path = format!("{HOME}/users/me/mcp-tokens/tracker/connect");
        let begun = self.human(who, "POST", &path, "").succeeded().json();
        self.fixture.change(|settings| who.name.clone_into(&mut settings.subject));
        self.fixture.browse(begun["url"].as_str().unwrap()).unwrap()
    }

    /// Brings an answer of the authorization server to narthex, in the browser of a human.
    pub(super) fn brings(&self, who: &Human, back: &str) -> Answer {
        let path = &back[back.find("/oauth/").unwrap()..];
        self.human(who, "GET", path, "")
    }

    #[track_caller]
    pub(super) fn connects(&self, who: &Human) {
        let back = self.agrees(who);
        let page = self.brings(who, &back);
        assert_eq!(page.status, 200, "{page:?}");
    }

    /// Registers a client, which a human lets in for the servers of the agent.
    #[track_caller]
    pub(super) fn lets_in(&self, who: &Human) -> LetIn {
        let form = |path: &str, fields: &[(&str, &str)]| {
            let body = Serializer::new(String::new()).extend_pairs(fields).finish();
            self.human(who, "POST", path, &body)
        };
        let body = json!({ "client_name": "Desk", "redirect_uris": ["http://127.0.0.1/callback"],
                           "token_endpoint_auth_method": "client_secret_post" });
        let head = format!("host: localhost:{}\r\n{JSON}", self.address.port());
        let known = self.exchange("POST", "/register", &head, &body.to_string()).succeeded().json();
        let text = |from: &Value, name: &str| from[name].as_str().unwrap().to_owned();
        let (client, secret) = (text(&known, "client_id"), text(&known, "client_secret"));
        let query = Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", &client)
            .append_pair("redirect_uri", REDIRECT)
            .append_pair("code_challenge", CHALLENGE)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &format!("{}/mcp", who.origin))
            .finish();
        let page = self.human(who, "GET", &format!("/authorize?{query}"), "").succeeded().body;
        let between = |start: &str| page.split_once(start).unwrap().1.split('"').next().unwrap();
        let (path, csrf) = (between("action=\"/consent/"), between("name=\"csrf\" value=\""));
        let choice = [("csrf", csrf), ("decision", "approve"), ("servers", "agent default clerk")];
        let let_in = form(&format!("/consent/{path}"), &choice);
        let mut lines = let_in.head.lines().filter_map(|line| line.split_once(": "));
        let to = lines.find(|(name, _)| name.eq_ignore_ascii_case("location"));
        let (_, to) = to.unwrap_or_else(|| panic!("{let_in:?}"));
        let back = Url::parse(to).unwrap();
        let code = back.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", &*client),
            ("client_secret", &*secret),
            ("code", &*code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        let tokens = form("/token", &fields).succeeded().json();
        let (access, refresh) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
        LetIn { secret, code, access, refresh }
    }

    /// Brings an answer to narthex in a browser without a login session, at the origin where
    /// humans sign in.
    pub(super) fn visit(&self, back: &str) -> Answer {
        let head = format!("host: localhost:{}\r\n", self.address.port());
        self.exchange("GET", &back[back.find("/oauth/").unwrap()..], &head, "")
    }

    /// The connection of the caller to the server.
    #[track_caller]
    pub(super) fn connection(&self, who: &Human) -> Value {
        let all = self.human(who, "GET", &format!("{HOME}/users/me/mcp-tokens"), "");
        let all = all.succeeded().json();
        let one = all["items"].as_array().unwrap().iter().find(|one| one["server"] == "tracker");
        one.unwrap_or_else(|| panic!("{all}")).clone()
    }

    /// The token of a new run of the agent, which this human drives.
    #[track_caller]
    pub(super) fn run_of(&self, user: Option<&str>) -> String {
        let mut request = json!({ "type": "start_session", "agent_name": "clerk", "prompt": "go" });
        if let Some(user) = user {
            request["user"] = json!(user);
        }
        let begun = self.operator("POST", &format!("{HOME}/runs"), &request).succeeded().json();
        begun["token"].as_str().unwrap().to_owned()
    }

    pub(super) async fn whoami(&self, token: &str) -> Reply {
        let mut client = Client::new(self.address, "/mcp", token);
        client.modern(&modern(1, "tools/call", call("mcp__work__whoami", json!({})))).await
    }

    /// Waits until a run's calls reach the server as this subject.
    pub(super) async fn until_is(&self, token: &str, subject: &str) {
        self.until(token, |reply| reply.json()["result"]["content"][0]["text"] == subject).await;
    }

    /// Waits until a run has no token for the server.
    pub(super) async fn until_refused(&self, token: &str) {
        self.until(token, |reply| reply.json().to_string().contains("auth_unavailable")).await;
    }

    pub(super) async fn until(&self, token: &str, is_it: impl Fn(&Reply) -> bool) {
        let began = SystemTime::now();
        loop {
            let reply = self.whoami(token).await;
            if is_it(&reply) {
                return;
            }
            assert!(began.elapsed().unwrap() < SOON, "{reply:?}");
            tokio::task::yield_now().await;
        }
    }

    fn exchange(&self, method: &str, path: &str, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: \
             {length}\r\n{head}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }
}

/// The address that an answer leads to.
fn location(answer: &Answer) -> String {
    let found = answer.head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    found.unwrap_or_else(|| panic!("{answer:?}"))
}

/// The cookies that an answer sets, without those that it clears.
fn cookies(answer: &Answer) -> String {
    let set = answer.head.lines().filter_map(|line| {
        let (key, value) = line.split_once(": ")?;
        let pair = value.split(';').next()?.trim();
        let is_set = key.eq_ignore_ascii_case("set-cookie") && !pair.ends_with('=');
        is_set.then_some(pair)
    });
    set.collect::<Vec<_>>().join("; ")
}
