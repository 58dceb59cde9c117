//! Fuzz targets of the texts that foreign servers send: no text makes the client trust another
//! server, take a token from a refusal, or show markup.
//!
//! As tests they run a bounded number of rounds; `cargo bolero test NAME` runs them for longer.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use narthex_oauth::{
    Reach,
    challenge::{Bearer, parse},
    client::{
        Asked, ClientProfile, Device, Discovery, Flow, Registering, RegistrationStep, Reply,
        Revocation, RevocationOutcome, Settings, Step, TokenGrant, Tokens, read_id_jag,
    },
    metadata::ServerMetadata,
    scopes::Scopes,
};
use narthex_testkit::rounds;
use serde_json::{Map, Value};
use url::Url;

const ROUNDS: usize = 2000;
const SERVER: &str = "https://mcp.example/mcp";
const ISSUER: &str = "https://as.example";

/// Names of members that the readers know.
const NAMES: [&str; 24] = [
    "issuer",
    "resource",
    "authorization_servers",
    "scopes_supported",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "code_challenge_methods_supported",
    "token_endpoint_auth_methods_supported",
    "access_token",
    "refresh_token",
    "expires_in",
    "token_type",
    "scope",
    "error",
    "ok",
    "authed_user",
    "client_id",
    "client_secret",
    "redirect_uris",
    "device_code",
    "user_code",
    "verification_uri",
    "interval",
];

/// Values that lead far into the readers; the last place is for a text of the fuzzer.
const VALUES: [&str; 16] = [
    "\"https://as.example\"",
    "\"https://mcp.example/mcp\"",
    "[\"https://as.example\"]",
    "\"https://as.example/x\"",
    "\"http://169.254.169.254/x\"",
    "\"https://evil.example\"",
    "[\"S256\",\"client_secret_post\"]",
    "\"invalid_grant\"",
    "\"a b,c\"",
    "\"<script>\"",
    "3600",
    "-1",
    "false",
    "null",
    "{\"access_token\":\"x\",\"error\":{\"code\":\"<b>\"}}",
    "",
];

/// A JSON object whose members are chosen from the tables.
fn document(members: &[(u8, u8)], text: &str) -> Vec<u8> {
    let mut document = Map::new();
    for (name, value) in members {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        let value = VALUES[usize::from(*value) % VALUES.len()];
        let value = serde_json::from_str(value).unwrap_or_else(|_error| Value::from(text));
        document.insert(name.to_owned(), value);
    }
    Value::Object(document).to_string().into_bytes()
}

fn is_harmless(text: &str) -> bool {
    !text.contains(['<', '>', '\n', '\r', '\u{1b}'])
}

#[test]
fn any_challenge_is_read_within_limits() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(Vec<u8>, String)>().for_each(|(pieces, text)| {
        const PIECES: [&str; 12] = [
            "Bearer",
            " ",
            ",",
            "=",
            "\"",
            "\\",
            "scope",
            "resource_metadata",
            "a",
            "/+==",
            "\t",
            ";",
        ];
        let mut header: String =
            pieces.iter().map(|piece| PIECES[usize::from(*piece) % PIECES.len()]).collect();
        header.push_str(text);
        let all = parse([header.as_str(), header.as_str()]);
        assert!(all.len() <= 66 && all.iter().all(|one| !one.scheme.is_empty()), "{header:?}");
        if let Some(bearer) = Bearer::find([header.as_str()]) {
            assert!(bearer.scope.is_none_or(|scopes| scopes.iter().all(is_harmless_scope)));
        }
    });
}

fn is_harmless_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
}

#[test]
fn no_document_leads_discovery_to_another_server() {
    let server = Url::parse(SERVER).unwrap();
    let reach = Reach::of(&server);
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(Vec<Vec<(u8, u8)>>, String)>().for_each(|(documents, text)| {
        let (mut discovery, mut step) =
            Discovery::begin(&server, None, Flow::Browser, Settings::default());
        let mut documents = documents.iter();
        let mut latest = server.clone();
        for _ in 0..30 {
            match step {
                Step::Get(url) => {
                    reach.check(&url).unwrap();
                    let body = documents.next().map(|members| document(members, text));
                    step = discovery.answer(&Reply::of(200, &body.unwrap_or_default()));
                    latest = url;
                }
                Step::Found(found) => {
                    let issuer = Url::parse(&found.issuer).unwrap();
                    assert_eq!(issuer.origin(), latest.origin(), "{found:?}");
                    assert!(found.metadata.supports_s256(), "{found:?}");
                    for (_, url) in found.metadata.endpoints() {
                        reach.check(url).unwrap();
                    }
                    return;
                }
                Step::Failed(error) => {
                    assert!(is_harmless(&error.to_string()), "{error}");
                    return;
                }
            }
        }
        panic!("it does not end");
    });
}

#[test]
fn no_answer_gives_tokens_with_an_error_or_shows_markup() {
    let scopes = Scopes::parse("asked");
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(Vec<(u8, u8)>, String, u16)>().for_each(|(members, text, status)| {
        let status = 200 + status % 400;
        for body in [document(members, text), text.clone().into_bytes()] {
            let reply = Reply::of(status, &body);
            let asked = Asked { grant: TokenGrant::Refresh, scopes: &scopes, now: 1 };
            match Tokens::read(&reply, asked) {
                Ok(tokens) => {
                    assert!(status < 300, "{status}");
                    let token = tokens.access_token.expose();
                    assert!(!token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()));
                }
                Err(refusal) => assert!(is_harmless(&refusal.to_string()), "{refusal}"),
            }
            let reach = Reach::of(&Url::parse(SERVER).unwrap());
            match Device::read(&reply, reach, 1) {
                Ok(device) => assert!(is_harmless(&device.user_code) && status < 300),
                Err(refusal) => assert!(is_harmless(&refusal.to_string()), "{refusal}"),
            }
            if let Err(refusal) = read_id_jag(&reply) {
                assert!(is_harmless(&refusal.to_string()), "{refusal}");
            }
            if let RevocationOutcome::Failed(refusal) = Revocation::read(&reply) {
                assert!(is_harmless(&refusal.to_string()), "{refusal}");
            }
        }
    });
}

#[test]
fn no_answer_makes_a_registration_endless_or_shows_markup() {
    let redirect = Url::parse("https://narthex.example/oauth/callback").unwrap();
    let profile = ClientProfile {
        name: "narthex".to_owned(),
        uri: None,
        redirect_uris: vec![redirect.clone()],
        is_for_devices: false,
    };
    let metadata = ServerMetadata { issuer: ISSUER.to_owned(), ..ServerMetadata::default() };
    let endpoint = Url::parse("https://as.example/register").unwrap();
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(Vec<(u8, u8)>, String, u16)>().for_each(|(members, text, status)| {
        let body = document(members, text);
        let begun = Registering::begin(&endpoint, &metadata, &profile, &Scopes::parse("a"));
        let (mut registering, _) = begun.unwrap();
        for _ in 0..5 {
            match registering.answer(&Reply::of(200 + status % 400, &body), 1) {
                RegistrationStep::Retry(request) => assert_eq!(request.url, endpoint),
                RegistrationStep::Registered(client) => {
                    assert_eq!(Url::parse(&client.redirect_uri).unwrap(), redirect);
                    assert_eq!(client.issuer, ISSUER);
                    return;
                }
                RegistrationStep::Failed(error) => {
                    assert!(is_harmless(&error.to_string()), "{error}");
                    return;
                }
            }
        }
        panic!("it does not end");
    });
}
