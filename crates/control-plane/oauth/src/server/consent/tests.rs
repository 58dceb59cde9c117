//! Approvals, denials, and the memory of them.

use std::collections::BTreeMap;

use url::Url;

use super::*;
use crate::server::{
    client::Client,
    sample::{CLIENT, REDIRECT, challenge, door, now, public_client, user},
};

fn pending_at(uri: &str) -> PendingConsent {
    let Client { id, name, link, .. } = public_client();
    PendingConsent {
        client_id: id,
        client_name: name,
        client_link: link,
        verified_host: None,
        redirect_uri: public_client().redirect_uri(uri).unwrap(),
        scopes: Scopes::read("mcp").unwrap(),
        resource: door().aggregated(),
        expires_at: StoredTime::of(now()).plus(PENDING_LIFE),
        state: Some("a=1&b".to_owned()),
        challenge: challenge(),
    }
}

fn pending() -> PendingConsent {
    pending_at(REDIRECT)
}

fn approval() -> Approval {
    let agent = Some(AgentName::new("desk").unwrap());
    Approval { user: user(1), workspace: "default".to_owned(), agent }
}

fn params(redirect: &Redirect) -> BTreeMap<String, String> {
    assert!(redirect.expose().starts_with(&format!("{REDIRECT}?")));
    Url::parse(redirect.expose()).unwrap().query_pairs().into_owned().collect()
}

#[test]
fn door_a6_an_approval_sends_code_state_and_issuer() {
    let Approved { code, consent, redirect } =
        pending().approve(approval(), &door(), now()).unwrap();
    let found = params(&redirect);
    assert_eq!(found.len(), 3);
    assert!(code.hash.opens_for(&found["code"]));
    assert_eq!(found["state"], "a=1&b");
    assert_eq!(found["iss"], door().issuer());
    assert_eq!(code.grant.user, user(1));
    assert_eq!((code.redirect_uri.as_str(), &code.challenge), (REDIRECT, &challenge()));
    assert_eq!((consent.client_id.as_str(), &*consent.place), (CLIENT, "app.example"));
    assert!(!format!("{redirect:?} {code:?}").contains(&found["code"]));
    let stateless = PendingConsent { state: None, ..pending() };
    let approved = stateless.approve(approval(), &door(), now()).unwrap();
    assert_eq!(params(&approved.redirect).get("state"), None);
}

#[test]
fn door_a6_a_denial_sends_an_error() {
    let found = params(&pending().deny(&door()));
    assert_eq!(found["error"], "access_denied");
    assert_eq!((&*found["state"], &*found["iss"]), ("a=1&b", door().issuer()));
    assert_eq!(found.get("code"), None);
}

#[test]
fn door_a6_a_request_waits_for_ten_minutes() {
    let late = now() + PENDING_LIFE;
    assert!(!pending().is_over(late - Duration::from_secs(1)) && pending().is_over(late));
    let error = pending().approve(approval(), &door(), late).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidRequest);
}

#[test]
fn door_a6_the_page_warns_of_unproved_places() {
    assert_eq!(pending().warnings(), [ConsentWarning::UnverifiedHost]);
    let proved = PendingConsent { verified_host: Some("app.example".to_owned()), ..pending() };
    assert_eq!(proved.warnings(), []);
    let local = pending_at("http://localhost:51234/callback");
    assert_eq!(local.warnings(), [ConsentWarning::Loopback]);
    // The document of a host does not tell which program of the machine answers.
    for host in ["app.example", "localhost"] {
        let named = PendingConsent { verified_host: Some(host.to_owned()), ..local.clone() };
        assert_eq!(named.warnings(), [ConsentWarning::Loopback], "{host}");
    }
}

#[test]
fn door_a6_a_consent_is_remembered_for_what_it_was_about() {
    let consent = pending().approve(approval(), &door(), now()).unwrap().consent;
    let ada = user(1);
    assert!(consent.covers(&ada, &pending()));
    assert_eq!(consent.approval(), approval());
    assert!(!consent.covers(&user(2), &pending()), "another human");
    let more = Scopes::read("mcp mcp.write").unwrap();
    assert!(!consent.covers(&ada, &PendingConsent { scopes: more, ..pending() }));
    let other = ClientId::parse("dcr-other").unwrap();
    assert!(!consent.covers(&ada, &PendingConsent { client_id: other, ..pending() }));
    let elsewhere = pending_at("http://localhost/callback");
    assert!(!consent.covers(&ada, &elsewhere), "another host");
    let resource = door().named("https://narthex.example/mcp/git").unwrap();
    assert!(!consent.covers(&ada, &PendingConsent { resource, ..pending() }));
    let fewer = PendingConsent { scopes: Scopes::default(), ..pending() };
    assert!(consent.covers(&ada, &fewer));
}

/// S17: another program can take the id of a client that registered itself.
#[test]
fn s17_door_a6_only_a_client_with_a_proved_host_gets_no_page() {
    let ada = user(1);
    let consent = pending().approve(approval(), &door(), now()).unwrap().consent;
    assert!(!consent.replaces_page(&ada, &pending()));
    for (host, is_enough) in [("app.example", true), ("other.example", false)] {
        let next = PendingConsent { verified_host: Some(host.to_owned()), ..pending() };
        assert_eq!(consent.replaces_page(&ada, &next), is_enough, "{host}");
    }
}

#[test]
fn door_a6_a_program_on_the_machine_always_gets_a_page() {
    let local = || pending_at("http://localhost:51234/callback");
    let consent = local().approve(approval(), &door(), now()).unwrap().consent;
    let next = pending_at("http://localhost:60000/callback");
    assert!(consent.covers(&user(1), &next), "on any port");
    assert!(!consent.replaces_page(&user(1), &next));
}
