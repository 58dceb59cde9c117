//! A site at which humans sign in, and their browsers.

use http::{Method, StatusCode};
use narthex_control::LoginOptions;
use narthex_login::PublicOrigin;
use narthex_store::Store;
use narthex_testkit::authenticator::Authenticator;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api::world::Api,
    world::{Answer, Builder, whole},
};

pub(crate) const ORIGIN: &str = "http://localhost:7717";
pub(crate) const HOST: &str = "localhost:7717";

/// A door at which humans can sign in, with an account for one human.
pub(crate) struct Site {
    pub(crate) api: Api,
    pub(crate) store: Store,
    pub(crate) ada: String,
    _dir: TempDir,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let keys = dir.path().join("master.key");
        let api = Api::with_login(store.clone(), options(), Some(&keys)).await;
        let body = json!({"name": "ada", "is_operator": true}).to_string();
        let made = api.send("POST", "/api/principals", body).await.succeeded();
        let ada = made["id"].as_str().unwrap().to_owned();
        Self { api, store, ada, _dir: dir }
    }

    /// Creates a link, and returns its path.
    pub(crate) async fn link(&self, name: &str) -> String {
        let made = self.api.post(&format!("/api/principals/{name}/sign-in-links")).await;
        let url = made.succeeded()["url"].as_str().unwrap().to_owned();
        url.strip_prefix(ORIGIN).unwrap().to_owned()
    }

    pub(crate) async fn browser(&self, name: &str) -> Browser<'_> {
        let mut browser = Browser::new(self);
        let link = self.link(name).await;
        assert_eq!(browser.form(&link, "").await.status, StatusCode::SEE_OTHER);
        browser
    }
}

pub(crate) fn options() -> LoginOptions {
    LoginOptions::new(PublicOrigin::parse(ORIGIN).unwrap())
}

/// A browser with its cookies, on pages of the site.
pub(crate) struct Browser<'s> {
    pub(crate) site: &'s Site,
    pub(crate) cookie: Option<String>,
    /// The cookie with the page that the browser asked for before the sign-in.
    pub(crate) onward: Option<String>,
    pub(crate) csrf: String,
}

impl<'s> Browser<'s> {
    pub(crate) fn new(site: &'s Site) -> Self {
        Self { site, cookie: None, onward: None, csrf: String::new() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Builder<'s> {
        let request = self.site.api.world.request(method, path).header("authorization", "");
        let request = request.header("host", HOST).header("sec-fetch-site", "same-origin");
        let cookies: Vec<_> = self.cookie.iter().chain(&self.onward).cloned().collect();
        request.header("cookie", &cookies.join("; "))
    }

    /// Stores the cookies of an answer.
    pub(crate) fn keep(&mut self, answer: Answer) -> Answer {
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            assert!(line.contains("; HttpOnly; SameSite=Lax; "), "{line}");
            let pair = line.split(';').next().unwrap();
            let kept = match pair.starts_with("narthex-onward=") {
                true => &mut self.onward,
                false => &mut self.cookie,
            };
            *kept = (!pair.ends_with('=')).then(|| pair.to_owned());
        }
        answer
    }

    /// Loads the sign-in page, and reads the form token from it.
    pub(crate) async fn page(&mut self) -> String {
        let answer = self.request(Method::GET, "/signin").send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let text = answer.text().to_owned();
        if let Some((_, rest)) = text.split_once("data-csrf=\"") {
            self.csrf = rest.split('"').next().unwrap().to_owned();
        }
        text
    }

    pub(crate) fn post(&self, path: &str, kind: &str, body: String) -> Builder<'s> {
        let request = self.request(Method::POST, path).header("origin", ORIGIN);
        request.header("content-type", kind).body(whole(body))
    }

    pub(crate) async fn form(&mut self, path: &str, body: &str) -> Answer {
        let kind = "application/x-www-form-urlencoded";
        let answer = self.post(path, kind, body.to_owned()).send().await;
        self.keep(answer)
    }

    pub(crate) async fn script(&mut self, path: &str, body: &Value) -> Answer {
        let request = self.post(path, "application/json", body.to_string());
        let answer = request.header("x-narthex-csrf", &self.csrf).send().await;
        self.keep(answer)
    }

    /// Adds a passkey, as the page's script does.
    pub(crate) async fn add(&mut self, authenticator: &mut Authenticator) -> Answer {
        self.page().await;
        let begun = self.script("/signin/passkeys/new", &json!({})).await.succeeded();
        let credential = authenticator.create(&begun["options"]);
        let ceremony = &begun["ceremony"];
        let body = json!({"ceremony": ceremony, "credential": credential, "label": "<phone>"});
        self.script("/signin/passkeys", &body).await
    }

    pub(crate) async fn passkey(&mut self, authenticator: &mut Authenticator) -> Answer {
        let begun = self.script("/signin/passkey/begin", &json!({})).await.succeeded();
        let credential = authenticator.get(&begun["options"]);
        let body = json!({"ceremony": begun["ceremony"], "credential": credential});
        self.script("/signin/passkey/finish", &body).await
    }

    pub(crate) async fn me(&self) -> Answer {
        self.request(Method::GET, "/api/me").send().await
    }
}
