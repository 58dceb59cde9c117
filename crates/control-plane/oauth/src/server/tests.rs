//! A client's whole life at the door, by the public functions alone.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::{
    sample::{CHALLENGE, VERIFIER, door, now, user},
    *,
};
use crate::{
    jwt::{Algorithms, Jwt, Keys},
    pkce::CodeChallenge,
    scopes::Scopes,
};

const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

/// The rows that a caller would store.
#[derive(Default)]
struct Rows {
    client: Option<Client>,
    code: Option<CodeRecord>,
    family: Option<Family>,
    access: Vec<AccessRecord>,
}

impl Rows {
    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }

    /// Registers the client, as Claude Code does.
    fn register(&mut self) {
        let sent = json!({
            "client_name": "Claude Code",
            "redirect_uris": ["http://localhost/callback"],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        });
        let rules = RegistrationRules {
            redirects: &RedirectRules::default(),
            scopes: &supported(),
            limits: RegistrationLimits::default(),
        };
        let counts = RegistrationCounts::default();
        let registered = register(sent.to_string().as_bytes(), &rules, counts, now()).unwrap();
        let id = &body(&registered.answer)["client_id"];
        assert_eq!(id, registered.client.id.as_str());
        self.client = Some(registered.client);
    }

    /// Goes through the page; returns the code.
    fn consent(&mut self) -> String {
        let query = form(&[
            ("response_type", "code"),
            ("client_id", self.client().id.as_str()),
            ("redirect_uri", "http://localhost:51234/callback"),
            ("state", "s1"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("resource", "https://narthex.example/mcp"),
        ]);
        let request = AuthorizeRequest::read(&query).unwrap();
        assert_eq!(request.client_id(), &self.client().id);
        let (door, scopes) = (door(), supported());
        let (door, scopes, redirects) = (&door, &scopes, &RedirectRules::default());
        let resource = ResourceRule::Demanded;
        let rules = AuthorizeRules { door, redirects, scopes, resource };
        let Checked { pending, .. } = request.check(self.client(), &rules, now()).unwrap();
        assert_eq!(pending.warnings(), [ConsentWarning::Loopback]);
        let approval = Approval { user: user(1), workspace: "default".to_owned(), agent: None };
        let approved = pending.approve(approval, door, now()).unwrap();
        self.code = Some(approved.code);
        let url = Url::parse(approved.redirect.expose()).unwrap();
        assert_eq!(url.port(), Some(51234));
        let (_, code) = url.query_pairs().find(|(name, _)| name == "code").unwrap();
        code.into_owned()
    }

    /// Asks for tokens, and stores them; returns the answer.
    fn tokens(&mut self, params: &[(&str, &str)], at: SystemTime) -> Value {
        let mut params = params.to_vec();
        let id = self.client().id.clone();
        params.push(("client_id", id.as_str()));
        let request = TokenRequest::read(None, FORM, form(&params).as_bytes(), &door()).unwrap();
        let client = request.credentials.prove(self.client.as_ref()).unwrap();
        let outcome = match &request.grant {
            GrantRequest::Code(code) => {
                let hash = TokenHash::of(code.code.expose());
                let record = self.code.as_ref().filter(|record| record.hash == hash);
                redeem_code(code, client, record, at)
            }
            GrantRequest::Refresh(token) => {
                let id = FamilyId::of_refresh_token(token.token.expose());
                let family = self.family.as_ref().filter(|family| Some(&family.id) == id.as_ref());
                refresh(token, client, family, at)
            }
            GrantRequest::Assertion(_) | GrantRequest::Service(_) => {
                unreachable!("no test here sends one")
            }
        };
        let answer = body(&outcome.answer());
        self.store(outcome, at);
        answer
    }

    fn store(&mut self, outcome: Outcome, at: SystemTime) {
        match outcome {
            Outcome::Issue(issue) => {
                let Issue { access, family, code, .. } = *issue;
                self.access.push(access);
                self.family = family.or(self.family.take());
                self.code = code.or(self.code.take());
            }
            Outcome::GraceAccessOnly { access, .. } => self.access.push(*access),
            Outcome::ReuseRevokesFamily { family, .. } => self.revoke(&family, at),
            Outcome::SpendCode { code, .. } => self.code = Some(*code),
            Outcome::Refuse(_) => {}
        }
    }

    fn revoke(&mut self, id: &FamilyId, at: SystemTime) {
        let family = self.family.take().filter(|family| family.id == *id);
        self.family = family.map(|family| family.revoked(at));
        self.access.retain(|access| access.family.as_ref() != Some(id));
    }

    /// True if a request with this header is let in at `/mcp`.
    fn opens(&self, token: &Value, at: SystemTime) -> bool {
        let header = format!("Bearer {}", token.as_str().unwrap());
        let token = bearer_token(Some(&header), None).unwrap().unwrap();
        let hash = TokenHash::of(token.expose());
        let record = self.access.iter().find(|record| record.hash == hash);
        let resource = door().aggregated();
        record.is_some_and(|record| record.check(&resource, &supported(), at).is_ok())
    }
}

fn supported() -> Scopes {
    Scopes::read("mcp").unwrap()
}

fn form(params: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish()
}

fn body(answer: &Answer) -> Value {
    serde_json::from_str(answer.body.as_ref().unwrap().expose()).unwrap()
}

/// A client after its first login, with the code and the first answer.
fn logged_in() -> (Rows, String, Value) {
    let mut rows = Rows::default();
    rows.register();
    let code = rows.consent();
    let answer = rows.tokens(&with_code(&code), now());
    (rows, code, answer)
}

fn with_code(code: &str) -> [(&str, &str); 4] {
    [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", "http://localhost:51234/callback"),
    ]
}

fn refreshed(rows: &mut Rows, answer: &Value, at: SystemTime) -> Value {
    let token = answer["refresh_token"].as_str().unwrap();
    rows.tokens(&[("grant_type", "refresh_token"), ("refresh_token", token)], at)
}

#[test]
fn door_a4_a6_a8_a_client_registers_logs_in_and_refreshes() {
    let (mut rows, _, first) = logged_in();
    assert!(rows.opens(&first["access_token"], now()));
    let later = now() + Duration::from_hours(2);
    assert!(!rows.opens(&first["access_token"], later));
    let second = refreshed(&mut rows, &first, later);
    assert!(rows.opens(&second["access_token"], later));
    let third = refreshed(&mut rows, &second, later);
    assert!(rows.opens(&third["access_token"], later));
}

#[test]
fn door_a9_r8_reuse_closes_all_that_a_family_opened() {
    let (mut rows, _, first) = logged_in();
    let second = refreshed(&mut rows, &first, now());
    let again = refreshed(&mut rows, &first, now() + Duration::from_secs(5));
    assert!(rows.opens(&again["access_token"], now()));
    let stolen = refreshed(&mut rows, &first, now() + Duration::from_mins(1));
    assert_eq!(stolen["error"], "invalid_grant");
    for answer in [&first, &second, &again] {
        assert!(!rows.opens(&answer["access_token"], now()));
    }
    assert_eq!(refreshed(&mut rows, &second, now())["error"], "invalid_grant");
}

#[test]
fn door_a7_r8_a_code_that_is_used_twice_closes_what_it_opened() {
    let (mut rows, code, first) = logged_in();
    assert_eq!(rows.tokens(&with_code(&code), now())["error"], "invalid_grant");
    assert!(!rows.opens(&first["access_token"], now()));
    assert_eq!(refreshed(&mut rows, &first, now())["error"], "invalid_grant");
}

#[test]
fn door_a13_r8_a_client_signs_out() {
    let (mut rows, _, first) = logged_in();
    let token = first["refresh_token"].as_str().unwrap();
    let sent = form(&[("token", token), ("client_id", rows.client().id.as_str())]);
    let request = RevocationRequest::read(None, FORM, sent.as_bytes()).unwrap();
    let client = request.credentials.prove(rows.client.as_ref()).unwrap();
    let found = FoundToken::Family(rows.family.as_ref().unwrap());
    let Revocation::Family(id) = request.decide(client, found) else { panic!("a family") };
    rows.revoke(&id, now());
    assert!(!rows.opens(&first["access_token"], now()));
    assert_eq!(refreshed(&mut rows, &first, now())["error"], "invalid_grant");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,100}|[a-z=&%.:/?#@*-]{0,100}") {
        read_all(text.as_bytes());
    }
}

/// Reads hostile input by each function that takes some. None of them may panic.
fn read_all(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (rules, scopes) = (RedirectRules::default(), supported());
    let limits = RegistrationLimits::default();
    let registration = RegistrationRules { redirects: &rules, scopes: &scopes, limits };
    drop(register(bytes, &registration, RegistrationCounts::default(), now()));
    let document = FetchedDocument {
        status: 200,
        content_type: Some("application/json"),
        cache_control: Some(&text),
        age: Some(&text),
        body: bytes,
    };
    let id = ClientId::parse("https://app.example/client.json").unwrap();
    drop(document.read(&id, &rules, now()));
    drop(TokenRequest::read(Some(&text), FORM, bytes, &door()));
    drop(RevocationRequest::read(Some(&text), Some(&text), bytes));
    drop(AuthorizeRequest::read(&text));
    drop(bearer_token(Some(&text), Some(&text)));
    drop((Jwt::parse(&text), Keys::read(bytes), DoorPath::parse(&text), Door::new(&text)));
    drop((WellKnown::at(&text), door().named(&text), client_link(&text), TokenKind::of(&text)));
    drop((RedirectRules::new([&*text]), Algorithms::named([&*text])));
    assert!(!CodeChallenge::parse(&text).is_some_and(|challenge| challenge.opens_for(&text)));
}
