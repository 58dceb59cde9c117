//! Tests of the page of consent: a careless press gives nothing that the human did not choose, and
//! a program that answers on loopback has a warning.

use http::StatusCode;

use super::{Desk, ENDPOINT, Page, attacks::proved, between, location, parameter};
use crate::world::Answer;

const WEB: &str = "https://app.example/callback";
const WARNING: &str = "Go on only if you started this sign-in just now";

impl Page {
    /// The values of the choices, in their order.
    fn choices(&self) -> Vec<&str> {
        let starts = self.text.split("<input type=\"radio\" name=\"servers\" value=\"").skip(1);
        starts.map(|start| start.split('"').next().unwrap()).collect()
    }

    /// The values of the choices that are preselected.
    fn chosen(&self) -> Vec<&str> {
        let is_chosen = |value: &&str| {
            let (start, end) = (format!("value=\"{value}\""), ">");
            between(&self.text, &start, end).contains(" checked")
        };
        self.choices().into_iter().filter(is_chosen).collect()
    }
}

impl Desk {
    async fn has_agent(&self) {
        let path = "/api/workspaces/default/agents/reader";
        self.api.send("PUT", path, r#"{"name": "reader"}"#).await.succeeded();
    }

    async fn asks(&self, cookie: &str, client: &str, more: &[(&str, &str)]) -> Page {
        let more = [more, &[("resource", ENDPOINT)]].concat();
        self.page(&self.authorize(cookie, client, &more).await, cookie)
    }

    /// Sends the form as a browser does in which no choice is selected.
    async fn presses(&self, page: &Page, decision: &str) -> Answer {
        let fields = [("csrf", &*page.csrf), ("decision", decision)];
        self.form(&page.path, &fields, &page.cookie).send().await
    }
}

/// S17: where there is a choice, the human makes it. Without one, nothing is let in.
#[tokio::test]
async fn s17_door_a6_a_press_without_a_choice_lets_nothing_in() {
    let desk = Desk::new().await;
    desk.has_agent().await;
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    let page = desk.asks(&cookie, &client, &[]).await;
    assert_eq!(page.choices(), ["agent default reader", "live"], "the widest is the last");
    assert_eq!(page.chosen(), [""; 0]);
    assert_eq!(page.text.matches(" required>").count(), 2, "{}", page.text);
    assert!(!page.text.contains("role=\"alert\""), "{}", page.text);
    let pressed = [
        desk.presses(&page, "approve").await,
        desk.answer(&page, "approve", "").await,
        desk.answer(&page, "approve", "everything").await,
    ];
    for again in pressed {
        assert_eq!(again.status, StatusCode::BAD_REQUEST, "{}", again.text());
        assert!(again.headers.get("location").is_none());
        let policy = again.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("form-action 'self' http://localhost:*;"), "{policy}");
        let text = again.text();
        assert!(text.contains("aria-describedby=\"unchosen\""), "{text}");
        assert!(text.contains("<p id=\"unchosen\" class=\"fault\" role=\"alert\">"), "{text}");
        assert_eq!((text.matches(" required").count(), text.matches(" checked").count()), (2, 0));
        assert!(text.contains(&format!("action=\"{}\"", page.path)), "the same page: {text}");
    }
    assert!(desk.clients().await.is_empty());
    // The page still counts once, for a choice or without one for a denial.
    assert!(parameter(&location(&desk.answer(&page, "approve", "live").await), "code").is_some());
    let page = desk.asks(&cookie, &client, &[]).await;
    assert_eq!(page.chosen(), [""; 0], "the client proved no host");
    let denied = location(&desk.presses(&page, "deny").await);
    assert_eq!(parameter(&denied, "error").as_deref(), Some("access_denied"));
    assert!(page.text.contains("value=\"deny\" formnovalidate"), "{}", page.text);
}

#[tokio::test]
async fn door_a6_a_choice_without_an_alternative_is_preselected() {
    let desk = Desk::new().await;
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    let page = desk.asks(&cookie, &client, &[]).await;
    assert_eq!((page.choices(), page.chosen()), (vec!["live"], vec!["live"]));
    let pressed = desk.presses(&page, "approve").await;
    assert_eq!(pressed.status, StatusCode::BAD_REQUEST, "{}", pressed.text());
}

/// A program that proved its host, and is asked about again, has what is preselected already.
#[tokio::test]
async fn door_a6_the_choice_that_a_proved_client_has_is_preselected() {
    let desk = Desk::new().await;
    desk.has_agent().await;
    let (cookie, client) = (desk.sign_in("ada").await, proved(&desk).await);
    let page = desk.asks(&cookie, &client, &[("redirect_uri", WEB)]).await;
    assert_eq!(page.chosen(), [""; 0]);
    location(&desk.answer(&page, "approve", "live").await);
    let more = [("redirect_uri", WEB), ("prompt", "consent")];
    assert_eq!(desk.asks(&cookie, &client, &more).await.chosen(), ["live"]);
    // Each program of the machine can answer on loopback under this id.
    assert_eq!(desk.asks(&cookie, &client, &[]).await.chosen(), [""; 0]);
}

/// A program on loopback proves no host to its human, also with a document of a host.
#[tokio::test]
async fn door_a6_a_program_on_loopback_has_a_warning() {
    let desk = Desk::new().await;
    let cookie = desk.sign_in("ada").await;
    let (named, own) = (desk.register_as("Desk").await, proved(&desk).await);
    for client in [&named, &own] {
        let page = desk.asks(&cookie, client, &[]).await;
        let note = between(&page.text, "<p class=\"note\">", "</p>");
        assert!(note.contains("a program on your own machine"), "{note}");
        assert!(note.contains(WARNING), "{note}");
    }
    let local = desk.asks(&cookie, &own, &[]).await;
    let host = "<dd>app.example, but another program on your machine could use its name</dd>";
    assert!(local.text.contains(host), "{}", local.text);
    let web = desk.asks(&cookie, &own, &[("redirect_uri", WEB)]).await;
    assert!(web.text.contains("<dt>proved host</dt><dd>app.example</dd>"), "{}", web.text);
    assert!(!web.text.contains("class=\"note\""), "{}", web.text);
    let claimed = desk.asks(&cookie, &named, &[("redirect_uri", WEB)]).await;
    let note = between(&claimed.text, "<p class=\"note\">", "</p>");
    assert!(note.contains("did not prove"), "{note}");
}
