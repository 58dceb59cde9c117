//! Attacks on the door as an authorization server: by strangers, by web pages, and with a link that
//! proves no human.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use narthex_control::DoorDesk;
use narthex_login::LocalConsent;
use narthex_store::DoorClientRow;
use serde_json::{Value, json};

use super::{Desk, ENDPOINT, cookie, location, parameter};

/// S31: a stranger registers as many programs as there can be, and uses none.
#[tokio::test]
async fn s31_door_a4_programs_that_nobody_used_make_room() {
    let desk = Desk::new().await;
    let old = SystemTime::now() - Duration::from_secs(2 * 3600);
    for number in 0..1000 {
        let row = DoorClientRow {
            id: format!("dcr-{number}"),
            kind: "registration".to_owned(),
            document: "{}".to_owned(),
            created_at: old,
            used_at: (number == 0).then_some(old),
        };
        desk.store.door().put_client(&row).await.unwrap();
    }
    desk.register_as("Desk").await;
    let kept = async |id: &str| desk.store.door().client(id).await.unwrap().is_some();
    assert!(kept("dcr-0").await);
    assert!(!kept("dcr-1").await);
}

/// A4: an unused registration is unknown after days, also before another one removes it.
#[tokio::test]
async fn door_a4_an_unused_registration_expires() {
    let desk = Desk::new().await;
    let (unused, used) = (desk.register_as("Unused").await, desk.register_as("Used").await);
    let code = desk.code(&desk.sign_in("ada").await, &used, ENDPOINT).await;
    let tokens = desk.redeem(&used, &code).await.succeeded();
    let rows = desk.store.door();
    let old = SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
    let template = rows.client(&unused).await.unwrap().unwrap();
    let expired = DoorClientRow {
        id: "dcr-expired".to_owned(),
        document: template.document.replace(&unused, "dcr-expired"),
        created_at: old,
        ..template
    };
    let kept = DoorClientRow { id: "dcr-kept".to_owned(), used_at: Some(old), ..expired.clone() };
    let kept = DoorClientRow { document: kept.document.replace("expired", "kept"), ..kept };
    for row in [&expired, &kept] {
        rows.put_client(row).await.unwrap();
    }
    for (client, error) in [
        ("dcr-expired", "invalid_client"),
        ("dcr-kept", "invalid_grant"),
        (&*unused, "invalid_grant"),
    ] {
        let refused = desk.redeem(client, "nxd_x").await;
        assert_eq!(refused.json()["error"], error, "{client}: {}", refused.text());
    }
    let shown = desk.authorize("", "dcr-expired", &[]).await;
    assert_eq!(shown.status, StatusCode::BAD_REQUEST, "{}", shown.text());
    desk.refresh(&used, &tokens["refresh_token"]).await.succeeded();
}

/// S31, A4: one stranger cannot take the registrations of an hour from others.
#[tokio::test]
async fn s31_door_a4_registrations_are_bounded_for_each_public_address() {
    let desk = Desk::new().await;
    let door = DoorDesk::of(&desk.api.control).unwrap();
    let body = json!({
        "redirect_uris": ["http://localhost/callback"], "token_endpoint_auth_method": "none",
    });
    let register = async |address: &str, body: &Value| {
        let sender = Some(address.parse().unwrap());
        door.register(body.to_string().as_bytes(), sender).await.unwrap().status
    };
    // A refused registration does not count.
    assert_eq!(register("93.184.216.34", &json!({})).await, 400);
    for _ in 0..20 {
        assert_eq!(register("93.184.216.34", &body).await, 201);
    }
    assert_eq!(register("93.184.216.34", &body).await, 429);
    assert_eq!(register("::ffff:93.184.216.34", &body).await, 429);
    for _ in 0..21 {
        // Behind a proxy all have one address.
        assert_eq!(register("10.0.0.1", &body).await, 201);
    }
    assert_eq!(register("93.184.216.35", &body).await, 201);
}

/// A program with a metadata document, which was read before.
pub(super) async fn proved(desk: &Desk) -> String {
    let rows = desk.store.door();
    let registered = desk.register_as("Desk").await;
    let row = rows.client(&registered).await.unwrap().unwrap();
    let mut client: Value = serde_json::from_str(&row.document).unwrap();
    let id = "https://app.example/client.json".to_owned();
    client["id"] = json!(id);
    let day = Duration::from_secs(24 * 3600);
    let later = (SystemTime::now() + day).duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let cached =
        json!({ "client": client, "look_again_at": later.as_secs(), "is_last_good": false });
    let kind = "document".to_owned();
    let row = DoorClientRow { id: id.clone(), kind, document: cached.to_string(), ..row };
    rows.put_client(&row).await.unwrap();
    id
}

/// S17: a link proves no human. It gets no code without a page, also for a program that the human
/// let in before.
#[tokio::test]
async fn s17_a_link_gets_no_code_without_a_page_where_proof_is_needed() {
    let desk = Desk::new().await;
    let cookie = desk.sign_in("ada").await;
    let client = proved(&desk).await;
    let web = [("redirect_uri", "https://app.example/callback"), ("resource", ENDPOINT)];
    let page = desk.page(&desk.authorize(&cookie, &client, &web).await, &cookie);
    location(&desk.answer(&page, "approve", "live").await);
    let again = location(&desk.authorize(&cookie, &client, &web).await);
    assert!(parameter(&again, "code").is_some(), "{again}");
    let desk = desk.needing_proof().await;
    let cookie = desk.sign_in("ada").await;
    let page = desk.page(&desk.authorize(&cookie, &client, &web).await, &cookie);
    let refused = desk.answer(&page, "approve", "live").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let silent = [web[0], web[1], ("prompt", "none")];
    let silent = location(&desk.authorize(&cookie, &client, &silent).await);
    assert_eq!(parameter(&silent, "error").as_deref(), Some("consent_required"));
    assert_eq!(parameter(&silent, "code"), None);
}

/// S17: a program that answers at a web page needs a human, also if the browser has a page of this
/// machine's programs.
#[tokio::test]
async fn s17_d4_a_click_lets_no_web_page_in() {
    let desk = Desk::with(LocalConsent::Click).await;
    let client = desk.register_as("Desk").await;
    let visitor = cookie(&desk.authorize("", &client, &[]).await, "narthex-visitor");
    let web = [("redirect_uri", "https://app.example/callback")];
    let shown = desk.authorize(&visitor, &client, &web).await;
    let onward = cookie(&shown, "narthex-onward");
    let path = format!("/consent/{}", onward.get(onward.len() - 43..).unwrap());
    let page = desk.request(Method::GET, &path).header("cookie", &visitor).send().await;
    assert_eq!(page.status, StatusCode::CONFLICT, "{}", page.text());
    let session = desk.sign_in("ada").await;
    let page = desk.request(Method::GET, &path).header("cookie", &session).send().await;
    let page = desk.page(&page, &session);
    let url = location(&desk.answer(&page, "approve", "live").await);
    assert!(parameter(&url, "code").is_some());
}
