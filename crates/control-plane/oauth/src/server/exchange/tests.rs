//! Codes and refresh tokens: one use, one family, and no more rights than a human gave.

use std::time::Duration;

use narthex_model::Secret;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::server::{
    client::ClientId,
    code::{CODE_LIFE, NewCode},
    door::DoorPath,
    family::{GRACE, REFRESH_LIFE},
    sample::{REDIRECT, VERIFIER, challenge, confidential_client, door, grant, now, public_client},
    token::FamilyId,
};

fn new_code() -> NewCode {
    let uri = public_client().redirect_uri(REDIRECT).unwrap();
    NewCode::generate(grant(), uri, challenge(), now()).unwrap()
}

fn with_code(code: &str) -> CodeRequest {
    CodeRequest {
        code: Secret::new(code),
        verifier: Secret::new(VERIFIER),
        redirect_uri: Some(REDIRECT.to_owned()),
        resource: None,
    }
}

fn with_refresh(token: &str) -> RefreshRequest {
    RefreshRequest { token: Secret::new(token), scopes: None, resource: None }
}

fn body(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.answer().body.unwrap().expose()).unwrap()
}

fn issued(outcome: Outcome) -> Issue {
    match outcome {
        Outcome::Issue(issue) => *issue,
        other => panic!("no tokens: {other:?}"),
    }
}

fn refused(outcome: &Outcome) -> ErrorCode {
    match outcome {
        Outcome::Refuse(error) => error.code,
        other => panic!("it is not refused: {other:?}"),
    }
}

fn refresh_token(outcome: &Outcome) -> String {
    body(outcome)["refresh_token"].as_str().unwrap().to_owned()
}

/// A family with its first refresh token.
struct Begun {
    client: Client,
    family: Family,
    token: String,
}

impl Begun {
    fn new(client: Client) -> Self {
        let NewCode { code, record } = new_code();
        let outcome = redeem_code(&with_code(code.expose()), &client, Some(&record), now());
        let token = refresh_token(&outcome);
        let family = issued(outcome).family.unwrap();
        Self { client, family, token }
    }

    fn refresh(&self, request: &RefreshRequest, after: Duration) -> Outcome {
        refresh(request, &self.client, Some(&self.family), now() + after)
    }
}

#[test]
fn door_a7_a_code_gives_tokens_for_what_it_is_bound_to() {
    let NewCode { code, record } = new_code();
    let request = with_code(code.expose());
    let outcome = redeem_code(&request, &public_client(), Some(&record), now());
    let answer = outcome.answer();
    assert_eq!(answer.status, 200);
    let found = body(&outcome);
    assert_eq!((&found["token_type"], &found["expires_in"]), (&"Bearer".into(), &3600.into()));
    assert_eq!(found["scope"], "mcp mcp.write offline_access");
    let issue = issued(outcome);
    let family = issue.family.unwrap();
    let refresh = found["refresh_token"].as_str().unwrap();
    assert_eq!(FamilyId::of_refresh_token(refresh), Some(family.id.clone()));
    assert!(issue.access.hash.opens_for(found["access_token"].as_str().unwrap()));
    assert_eq!(issue.access.grant, grant());
    assert_eq!(issue.access.family.as_ref(), Some(&family.id));
    assert_eq!(issue.code.unwrap().state, CodeState::Used(family.id));
}

#[test]
fn door_a7_a_second_use_revokes_what_the_first_gave() {
    let NewCode { code, record } = new_code();
    let request = with_code(code.expose());
    let issue = issued(redeem_code(&request, &public_client(), Some(&record), now()));
    let (used, family) = (issue.code.unwrap(), issue.family.unwrap());
    for later in [Duration::ZERO, Duration::from_hours(1)] {
        let again = redeem_code(&request, &public_client(), Some(&used), now() + later);
        match &again {
            Outcome::ReuseRevokesFamily { family: id, error } => {
                assert_eq!((id, error.code), (&family.id, ErrorCode::InvalidGrant));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(again.answer().status, 400);
    }
    assert!(!used.is_forgettable(now() + Duration::from_hours(1)));
    assert!(used.is_forgettable(now() + Duration::from_hours(25)));
}

#[test]
fn door_a7_a_code_lives_for_a_minute() {
    let NewCode { code, record } = new_code();
    let request = with_code(code.expose());
    let at = |time| redeem_code(&request, &public_client(), Some(&record), time);
    issued(at(now() + CODE_LIFE - Duration::from_secs(1)));
    assert_eq!(refused(&at(now() + CODE_LIFE)), ErrorCode::InvalidGrant);
}

#[test]
fn door_a7_other_codes_and_clients_get_nothing() {
    let NewCode { code, record } = new_code();
    let request = with_code(code.expose());
    let unknown = redeem_code(&request, &public_client(), None, now());
    assert_eq!(refused(&unknown), ErrorCode::InvalidGrant);
    let forged = with_code("nxd_forged");
    let forged = redeem_code(&forged, &public_client(), Some(&record), now());
    assert_eq!(refused(&forged), ErrorCode::InvalidGrant);
    let other = Client { id: ClientId::parse("dcr-other").unwrap(), ..public_client() };
    let other = redeem_code(&request, &other, Some(&record), now());
    assert_eq!(refused(&other), ErrorCode::InvalidGrant);
}

#[test]
fn door_a7_a_wrong_proof_spends_the_code() {
    let NewCode { code, record } = new_code();
    let good = || with_code(code.expose());
    let resource = Some(door().resource(&DoorPath::parse("/mcp/git").unwrap()));
    let verifier = Secret::new("x".repeat(43));
    let table = [
        (CodeRequest { verifier, ..good() }, ErrorCode::InvalidGrant),
        (
            CodeRequest { redirect_uri: Some(format!("{REDIRECT}/")), ..good() },
            ErrorCode::InvalidGrant,
        ),
        (CodeRequest { resource, ..good() }, ErrorCode::InvalidTarget),
    ];
    for (request, code) in table {
        let outcome = redeem_code(&request, &public_client(), Some(&record), now());
        let Outcome::SpendCode { code: spent, error } = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.code, code);
        let again = redeem_code(&good(), &public_client(), Some(&spent), now());
        assert_eq!(refused(&again), ErrorCode::InvalidGrant);
    }
    let bare = CodeRequest { redirect_uri: None, ..good() };
    issued(redeem_code(&bare, &public_client(), Some(&record), now()));
}

#[test]
fn door_a9_public_clients_get_a_new_refresh_token_each_time() {
    let begun = Begun::new(public_client());
    let outcome = begun.refresh(&with_refresh(&begun.token), Duration::from_hours(1));
    let next = refresh_token(&outcome);
    assert_ne!(next, begun.token);
    let family = issued(outcome).family.unwrap();
    assert_eq!((family.generation, &family.id), (1, &begun.family.id));
    assert_eq!(family.created_at, begun.family.created_at);
    let last = now() + Duration::from_hours(1) + REFRESH_LIFE;
    assert_eq!(family.expires_at, StoredTime::of(last), "it slides");
    assert_eq!(REFRESH_LIFE.as_secs(), 30 * 24 * 60 * 60);
    let stored = serde_json::to_string(&family).unwrap();
    assert!(!stored.contains(&next) && !stored.contains(&begun.token));
    assert_eq!(serde_json::from_str::<Family>(&stored).unwrap(), family);
    let soon = |ago| refresh(&with_refresh(&next), &begun.client, Some(&family), last - ago);
    issued(soon(Duration::from_secs(1)));
    assert_eq!(refused(&soon(Duration::ZERO)), ErrorCode::InvalidGrant);
}

#[test]
fn door_a9_a_just_used_token_gives_access_for_thirty_seconds() {
    let mut begun = Begun::new(public_client());
    let first = with_refresh(&begun.token);
    let outcome = begun.refresh(&first, Duration::ZERO);
    let second = with_refresh(&refresh_token(&outcome));
    begun.family = issued(outcome).family.unwrap();
    for after in [Duration::ZERO, GRACE] {
        let outcome = begun.refresh(&first, after);
        let found = body(&outcome);
        assert_eq!(found.get("refresh_token"), None);
        let Outcome::GraceAccessOnly { access, .. } = outcome else { panic!("{outcome:?}") };
        assert!(access.hash.opens_for(found["access_token"].as_str().unwrap()));
        assert_eq!(access.family.as_ref(), Some(&begun.family.id));
    }
    let late = begun.refresh(&first, GRACE + Duration::from_secs(1));
    let Outcome::ReuseRevokesFamily { family, error } = late else { panic!("{late:?}") };
    assert_eq!((&family, error.code), (&begun.family.id, ErrorCode::InvalidGrant));
    let generation = begun.family.generation;
    begun.family = begun.family.revoked(now());
    assert_eq!(begun.family.generation, generation + 1, "a faster request loses");
    assert!(!begun.family.is_alive(now()));
    assert_eq!(refused(&begun.refresh(&second, GRACE)), ErrorCode::InvalidGrant);
}

#[test]
fn door_a9_a_client_with_a_secret_keeps_its_refresh_token() {
    let mut begun = Begun::new(confidential_client().0);
    let request = with_refresh(&begun.token);
    for hours in 1..4 {
        let outcome = begun.refresh(&request, Duration::from_hours(hours));
        assert_eq!(body(&outcome).get("refresh_token"), None);
        begun.family = issued(outcome).family.unwrap();
        assert_eq!(begun.family.generation, hours);
    }
}

#[test]
fn door_a8_a_dead_refresh_token_is_an_invalid_grant() {
    let begun = Begun::new(public_client());
    let request = with_refresh(&begun.token);
    let unknown = refresh(&request, &begun.client, None, now());
    assert_eq!(refused(&unknown), ErrorCode::InvalidGrant);
    let other = Client { id: ClientId::parse("dcr-other").unwrap(), ..public_client() };
    let foreign = refresh(&request, &other, Some(&begun.family), now());
    assert_eq!(refused(&foreign), ErrorCode::InvalidGrant);
    assert_eq!(foreign.answer().status, 400);
}

#[test]
fn door_a10_a_refresh_may_narrow_only() {
    let begun = Begun::new(public_client());
    let ask = |scopes: &str| {
        let scopes = Some(Scopes::read(scopes).unwrap());
        begun.refresh(&RefreshRequest { scopes, ..with_refresh(&begun.token) }, Duration::ZERO)
    };
    let issue = issued(ask("mcp offline_access"));
    assert_eq!(issue.access.grant.scopes.to_string(), "mcp offline_access");
    assert_eq!(issue.family.unwrap().grant, grant(), "the next refresh may have all again");
    for more in ["admin", "mcp admin"] {
        assert_eq!(refused(&ask(more)), ErrorCode::InvalidScope, "{more}");
    }
    let named = |path| {
        let resource = Some(door().resource(&DoorPath::parse(path).unwrap()));
        begun.refresh(&RefreshRequest { resource, ..with_refresh(&begun.token) }, Duration::ZERO)
    };
    assert_eq!(issued(named("/mcp")).access.grant.resource, door().aggregated());
    assert_eq!(refused(&named("/mcp/git")), ErrorCode::InvalidTarget);
}

/// A step in the life of a family: a token is presented, or time goes by.
#[derive(Debug, Clone)]
enum Step {
    /// Presents the token that was issued at this place, counted from the last one.
    Present(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Step::Present),
        1 => prop::sample::select(vec![1, 29, 30, 31, 3600]).prop_map(Step::Wait),
    ]
}

proptest! {
    /// The law of rotation: the newest token alone gives a new one; the one before it gives access
    /// for 30 seconds after its use; any other use ends the family, and after that nothing is
    /// given.
    #[test]
    fn door_a9_one_refresh_token_counts(steps in prop::collection::vec(step(), 1..40)) {
        let mut begun = Begun::new(public_client());
        let mut tokens = vec![begun.token.clone()];
        let (mut clock, mut rotated_at) = (Duration::ZERO, None);
        for step in steps {
            let back = match step {
                Step::Wait(seconds) => {
                    clock += Duration::from_secs(seconds);
                    continue;
                }
                Step::Present(back) => back.min(tokens.len() - 1),
            };
            let token = &tokens[tokens.len() - 1 - back];
            let outcome = begun.refresh(&with_refresh(token), clock);
            let is_in_grace = rotated_at.is_some_and(|at| clock - at <= GRACE);
            if !begun.family.is_alive(now() + clock) {
                prop_assert!(matches!(outcome, Outcome::Refuse(_)));
                continue;
            }
            match back {
                0 => {
                    tokens.push(refresh_token(&outcome));
                    let next = issued(outcome).family.unwrap();
                    prop_assert_eq!(next.generation, begun.family.generation + 1);
                    begun.family = next;
                    rotated_at = Some(clock);
                }
                1 if is_in_grace => {
                    let is_grace = matches!(outcome, Outcome::GraceAccessOnly { .. });
                    prop_assert!(is_grace, "{:?}", outcome);
                    prop_assert!(body(&outcome).get("refresh_token").is_none());
                }
                _ => {
                    let is_reuse = matches!(outcome, Outcome::ReuseRevokesFamily { .. });
                    prop_assert!(is_reuse, "{:?}", outcome);
                    begun.family = begun.family.revoked(now() + clock);
                }
            }
        }
    }

    /// No request widens what a human gave.
    #[test]
    fn door_a10_scopes_never_grow(asked in "[a-d]( [a-d]){0,4}", given in "[a-d]( [a-d]){0,4}") {
        let mut begun = Begun::new(public_client());
        begun.family.grant.scopes = Scopes::read(&given).unwrap();
        let scopes = Some(Scopes::read(&asked).unwrap());
        let request = RefreshRequest { scopes, ..with_refresh(&begun.token) };
        if let Outcome::Issue(issue) = begun.refresh(&request, Duration::ZERO) {
            prop_assert!(begun.family.grant.scopes.contains_all(&issue.access.grant.scopes));
            prop_assert_eq!(issue.family.unwrap().grant, begun.family.grant);
        }
    }
}
