//! Answers of token endpoints, good ones and odd ones.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::{Asked, TokenGrant, Tokens};
use crate::{
    client::{Failure, Refusal, Reply},
    scopes::Scopes,
};

const NOW: u64 = 2_000_000_000;

fn read_as(grant: TokenGrant, status: u16, body: &str) -> Result<Tokens, Refusal> {
    let scopes = Scopes::parse("asked");
    Tokens::read(&Reply::of(status, body.as_bytes()), Asked { grant, scopes: &scopes, now: NOW })
}

fn read(status: u16, body: &str) -> Result<Tokens, Refusal> {
    read_as(TokenGrant::Code, status, body)
}

fn good(body: &str) -> Tokens {
    read(200, body).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn failure(status: u16, body: &str) -> Failure {
    read(status, body).unwrap_err().failure
}

#[test]
fn the_answer_of_the_standard_is_read() {
    let tokens = good(
        "{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"expires_in\":60,\
         \"refresh_token\":\"r\",\"id_token\":\"i\",\"scope\":\"y x\"}",
    );
    assert_eq!(tokens.access_token.expose(), "a");
    assert_eq!(tokens.refresh_token.as_ref().unwrap().expose(), "r");
    assert_eq!(tokens.id_token.as_ref().unwrap().expose(), "i");
    assert_eq!(tokens.scopes.to_string(), "x y");
    assert_eq!(
        (tokens.obtained_at, tokens.expires_at, tokens.is_expiry_guessed),
        (NOW, NOW + 60, false)
    );
}

#[test]
fn oauth_q15_lifetimes_are_numbers_or_digits() {
    for (life, seconds) in [
        ("60", 60),
        ("\"60\"", 60),
        ("\" 60 \"", 60),
        ("60.9", 60),
        ("0", 0),
        ("\"0\"", 0),
        ("-1", 0),
    ] {
        let tokens = good(&format!("{{\"access_token\":\"a\",\"expires_in\":{life}}}"));
        assert_eq!((tokens.expires_at - NOW, tokens.is_expiry_guessed), (seconds, false), "{life}");
    }
    for junk in ["null", "\"soon\"", "\"\"", "true", "[]", "{}", "\"1h\""] {
        let tokens = good(&format!("{{\"access_token\":\"a\",\"expires_in\":{junk}}}"));
        assert_eq!((tokens.expires_at - NOW, tokens.is_expiry_guessed), (3600, true), "{junk}");
    }
    assert_eq!(
        good("{\"access_token\":\"a\",\"expires_in\":18446744073709551615}").expires_at,
        u64::MAX
    );
}

#[test]
fn oauth_q15_and_c24_the_expiry_of_a_jwt_replaces_a_missing_one() {
    let claims = URL_SAFE_NO_PAD.encode(json!({"exp": NOW + 77}).to_string());
    let jwt = format!("e30.{claims}.c2ln");
    let tokens = good(&json!({"access_token": jwt}).to_string());
    assert_eq!((tokens.expires_at, tokens.is_expiry_guessed), (NOW + 77, false));
    let stated = good(&json!({"access_token": jwt, "expires_in": 5}).to_string());
    assert_eq!(stated.expires_at, NOW + 5);
}

#[test]
fn oauth_e97_client_credentials_without_an_expiry_last_300_seconds() {
    let tokens = read_as(TokenGrant::ClientCredentials, 200, "{\"access_token\":\"a\"}").unwrap();
    assert_eq!((tokens.expires_at - NOW, tokens.is_expiry_guessed), (300, true));
}

/// E96.
#[test]
fn oauth_q16_answers_may_be_forms_and_lack_a_type() {
    let form = good("access_token=gho_a%2Bb&expires_in=28800&scope=repo%2Cgist&token_type=bearer");
    assert_eq!(form.access_token.expose(), "gho_a+b");
    assert_eq!((form.expires_at - NOW, form.scopes.to_string().as_str()), (28800, "gist repo"));
    for token_type in
        ["", ",\"token_type\":\"bearer\"", ",\"token_type\":\"BEARER\"", ",\"token_type\":null"]
    {
        let tokens = good(&format!("{{\"access_token\":\"a\"{token_type}}}"));
        assert_eq!(tokens.token_type, "bearer", "{token_type}");
    }
    assert_eq!(
        failure(200, "error=bad_verification_code&error_description=x"),
        Failure::GrantEnded
    );
}

#[test]
fn oauth_q6_a_person_s_token_may_be_nested() {
    let slack = good(
        "{\"ok\":true,\"app_id\":\"A\",\"authed_user\":{\"id\":\"U\",\"access_token\":\"xoxp-1\",\
         \"scope\":\"chat:write,search:read\",\"token_type\":\"user\",\"refresh_token\":\"xoxe-1\",\
         \"expires_in\":43200},\"team\":{\"id\":\"T\"}}",
    );
    assert_eq!(slack.access_token.expose(), "xoxp-1");
    assert_eq!(slack.scopes.to_string(), "chat:write search:read");
    assert_eq!((slack.refresh_token.unwrap().expose(), slack.expires_at - NOW), ("xoxe-1", 43200));
    let bot =
        good("{\"ok\":true,\"access_token\":\"xoxb\",\"authed_user\":{\"access_token\":\"xoxp\"}}");
    assert_eq!(bot.access_token.expose(), "xoxb");
}

#[test]
fn oauth_q6_an_error_in_a_200_is_an_error() {
    assert_eq!(
        failure(200, "{\"ok\":false,\"error\":\"invalid_refresh_token\"}"),
        Failure::GrantEnded
    );
    assert_eq!(
        failure(200, "{\"ok\":false,\"error\":\"bad_client_secret\"}"),
        Failure::ClientUnknown
    );
    assert_eq!(failure(200, "{\"ok\":false,\"error\":\"ratelimited\"}"), Failure::Unavailable);
    assert_eq!(failure(200, "{\"ok\":false,\"access_token\":\"a\"}"), Failure::Refused);
    assert_eq!(
        failure(200, "{\"error\":\"bad_refresh_token\",\"access_token\":\"\"}"),
        Failure::GrantEnded
    );
    assert_eq!(failure(200, "{\"error\":{\"code\":\"invalid_grant\"}}"), Failure::GrantEnded);
}

#[test]
fn oauth_c25_each_answer_has_its_class() {
    for (status, body, class) in [
        (400, "{\"error\":\"invalid_grant\"}", Failure::GrantEnded),
        (401, "{\"error\":\"invalid_client\"}", Failure::ClientUnknown),
        (400, "{\"error\":\"unauthorized_client\"}", Failure::ClientUnknown),
        (400, "{\"error\":\"invalid_scope\"}", Failure::ScopeRefused),
        (400, "{\"error\":\"invalid_target\"}", Failure::Refused),
        (400, "{}", Failure::Refused),
        (200, "{}", Failure::Refused),
        (200, "{\"access_token\":7}", Failure::Refused),
        (500, "{\"error\":\"invalid_grant\"}", Failure::Unavailable),
        (503, "", Failure::Unavailable),
        (429, "{}", Failure::Unavailable),
        (200, "<!doctype html>", Failure::Unavailable),
        (403, "<html>blocked</html>", Failure::Unavailable),
        (302, "", Failure::Unavailable),
    ] {
        assert_eq!(failure(status, body), class, "{status} {body}");
    }
    let asked = Asked { grant: TokenGrant::Refresh, scopes: &Scopes::default(), now: NOW };
    let missing = Tokens::read(&Reply::Missing, asked).unwrap_err();
    assert_eq!((missing.failure, missing.status), (Failure::Unavailable, None));
    let retry_after = Some(Duration::from_secs(9));
    let reply = Reply::Answer { status: 503, body: b"", retry_after };
    assert_eq!(Tokens::read(&reply, asked).unwrap_err().retry_after, retry_after);
}

#[test]
fn oauth_c33_tokens_that_are_bound_to_a_key_are_refused() {
    let error = read(200, "{\"access_token\":\"a\",\"token_type\":\"DPoP\"}").unwrap_err();
    assert!(error.to_string().contains("bound to a key"), "{error}");
}

#[test]
fn tokens_that_break_a_header_are_refused() {
    for token in ["a b", "a\\r\\nX: y", "\\u0000", "größe", "", &"x".repeat(70_000)] {
        let error = read(200, &format!("{{\"access_token\":\"{token}\"}}")).unwrap_err();
        assert_eq!(error.code, "no usable access token", "{token:.20}");
    }
    let odd = good("{\"access_token\":\"a\",\"refresh_token\":\"b\\nc\",\"token_type\":\"<b>\"}");
    assert_eq!((odd.refresh_token, odd.token_type.as_str()), (None, "bearer"));
}

#[test]
fn missing_scopes_are_the_requested_ones() {
    for scope in ["", ",\"scope\":\"\"", ",\"scope\":null", ",\"scope\":7"] {
        assert_eq!(good(&format!("{{\"access_token\":\"a\"{scope}}}")).scopes.to_string(), "asked");
    }
    assert_eq!(good("{\"access_token\":\"a\",\"scope\":[\"x\"]}").scopes.to_string(), "x");
}

#[test]
fn tokens_and_refusals_print_no_secret() {
    let tokens =
        good("{\"access_token\":\"s3cret\",\"refresh_token\":\"s3cret\",\"id_token\":\"s3cret\"}");
    assert!(!format!("{tokens:?}").contains("s3cret"));
    let refusal =
        read(400, "{\"error\":\"s3cret <b>\",\"error_description\":\"s3cret\"}").unwrap_err();
    assert!(!format!("{refusal:?} {refusal}").contains("s3cret"));
}

proptest! {
    /// Each status has at most one meaning, whatever the body is.
    #[test]
    fn faults_of_the_server_never_end_a_grant(body in "\\PC{0,60}", status in 500_u16..600) {
        prop_assert_eq!(failure(status, &body), Failure::Unavailable);
    }

    #[test]
    fn tokens_come_only_with_success(status in 300_u16..600, code in "[a-z_]{0,12}") {
        let body = json!({"access_token": "a", "error": code}).to_string();
        prop_assert!(read(status, &body).is_err());
    }

    #[test]
    fn a_lifetime_is_the_same_as_number_and_as_text(life in any::<u32>()) {
        let number = good(&json!({"access_token": "a", "expires_in": life}).to_string());
        let text = good(&json!({"access_token": "a", "expires_in": life.to_string()}).to_string());
        prop_assert_eq!(number.expires_at, NOW + u64::from(life));
        prop_assert_eq!(number, text);
    }
}
