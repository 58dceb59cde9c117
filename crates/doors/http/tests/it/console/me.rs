//! Tests of the page of the account: connections, passkeys and sign-ins of the human alone.

use http::{Method, StatusCode};
use narthex_testkit::authenticator::Authenticator;

use super::{Html, all, values};
use crate::{
    api::world::Api,
    browser::{ORIGIN, Site, options},
};

const ME: &str = "/w/default/me";

/// S6: a human sees all of their sign-ins, and ends one elsewhere by its row. No token and no hash
/// of one is in the page.
#[tokio::test]
async fn s6_a_human_ends_a_sign_in_elsewhere() {
    let site = Site::new().await;
    let (here, there) = (site.browser("ada").await, site.browser("ada").await);
    let answer = here.look(ME).await;
    for browser in [&here, &there] {
        let cookie = browser.cookie.as_deref().unwrap();
        let (_, token) = cookie.split_once('=').unwrap();
        assert!(!answer.text().contains(token), "{}", answer.text());
    }
    let page = Html::parse_document(answer.text());
    assert_eq!(all(&page, "#logins .title").len(), 2);
    assert_eq!(all(&page, "#logins .badge"), ["this browser"]);
    let actions = values(&page, "#logins form", "action");
    let end = actions.iter().find(|path| path.ends_with("/end")).unwrap();
    assert_eq!(actions.iter().filter(|path| *path == "/signout").count(), 1);

    let ended = here.press(end).await;
    assert_eq!(ended.headers["location"], format!("{ME}?done=end&name=").as_str());
    assert!(there.look(ME).await.text().contains("<h1>Sign in</h1>"));
    let page = here.see(&format!("{ME}?done=end&name=")).await;
    assert_eq!(all(&page, "#told"), ["The sign-in has ended."]);
    assert_eq!(all(&page, "#logins .title").len(), 1);
    assert_eq!(here.press(end).await.status, StatusCode::NOT_FOUND);
}

/// S18: a human ends no sign-in, passkey or program of another one.
#[tokio::test]
async fn s18_rows_of_others_look_absent() {
    let mut site = Site::new().await;
    site.api = Api::with_proofs(site.store.clone(), options(), None, None).await;
    let body = r#"{"name":"bob","is_operator":true}"#;
    site.api.send("POST", "/api/principals", body).await.succeeded();
    let (mut ada, bob) = (site.browser("ada").await, site.browser("bob").await);
    let second = site.browser("ada").await;
    ada.add(&mut Authenticator::new(ORIGIN)).await.succeeded();
    let page = ada.see(ME).await;
    let all = values(&page, "#logins form, #passkeys form", "action");
    let own: Vec<_> = all.iter().filter(|path| path.starts_with(ME)).collect();
    assert_eq!(own.len(), 1, "{all:?}");
    // D15: with a passkey, a sign-in by a link removes none.
    let why = values(&page, "#passkeys button[aria-disabled]", "title");
    assert!(why[0].starts_with("a link proves no human"), "{why:?}");
    for path in own {
        assert_eq!(bob.press(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let program = bob.press(&format!("{ME}/programs/cli_0123456789abcdef/revoke")).await;
    assert_eq!(program.status, StatusCode::NOT_FOUND);
    assert_eq!(second.look(ME).await.status, StatusCode::OK);
}

/// S11: the name of a passkey is text, and the form for another one leads back to this page.
#[tokio::test]
async fn s11_passkeys_are_listed_by_their_names() {
    let site = Site::new().await;
    let mut browser = site.browser("ada").await;
    let page = browser.see(ME).await;
    assert!(all(&page, "#passkeys").remove(0).contains("You have no passkey yet."));
    assert_eq!(values(&page, "#add", "data-then"), [format!("{ME}?done=passkey")]);
    assert_eq!(values(&page, "main script", "src"), ["/signin/script.js"]);
    browser.add(&mut Authenticator::new(ORIGIN)).await.succeeded();
    let page = browser.see(&format!("{ME}?done=passkey")).await;
    assert_eq!(all(&page, "#told"), ["The passkey was added."]);
    assert_eq!(all(&page, "#passkeys .title"), ["<phone>"]);
}

/// X-E49: the servers to which the human can connect are there, and the connection ends by the
/// function of the API.
#[tokio::test]
async fn x_e49_connections_are_listed_and_ended() {
    let site = Site::new().await;
    let place = "/api/workspaces/default/mcp-servers/notes?offline=true";
    let entry = r#"{"kind":"remote_oauth","url":"https://notes.example.com/mcp","name":"Notes"}"#;
    site.api.send("PUT", place, entry).await.succeeded();
    let browser = site.browser("ada").await;
    let page = browser.see(ME).await;
    assert_eq!(all(&page, "#connections .title"), ["Notes"]);
    assert_eq!(all(&page, "#connections .badge"), ["not connected"]);
    let actions = values(&page, "#connections form", "action");
    assert_eq!(actions, [format!("{ME}/connections/notes/connect")]);
    let same = all(&page, ".same code");
    assert!(same[1].starts_with("GET /api/workspaces/default/users/me/mcp-tokens"), "{same:?}");
    let gone = browser.press(&format!("{ME}/connections/gone/disconnect")).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let foreign = browser.request(Method::GET, &format!("{ME}?unknown=1")).send().await;
    assert!(foreign.status.is_client_error());
}
