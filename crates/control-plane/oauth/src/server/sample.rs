//! Ordinary values for tests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{AgentName, PrincipalId};

use super::{
    client::{Client, ClientId, ClientOrigin, ClientProof},
    door::Door,
    grant::Grant,
    redirect::RedirectRules,
    text::ClientName,
    time::StoredTime,
    token::{Token, TokenKind},
};
use crate::{pkce::CodeChallenge, scopes::Scopes};

/// A verifier and its challenge, from RFC 7636, appendix B.
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(super) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(super) const REDIRECT: &str = "https://app.example/cb";
pub(super) const CLIENT: &str = "dcr-app";

pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

pub(super) fn door() -> Door {
    Door::new("https://narthex.example").unwrap()
}

pub(super) fn user(digit: u8) -> PrincipalId {
    PrincipalId::new(&format!("prn_{}", digit.to_string().repeat(16))).unwrap()
}

pub(super) fn challenge() -> CodeChallenge {
    CodeChallenge::parse(CHALLENGE).unwrap()
}

pub(super) fn grant() -> Grant {
    Grant {
        client_id: ClientId::parse(CLIENT).unwrap(),
        user: user(1),
        workspace: "default".to_owned(),
        agent: Some(AgentName::new("desk").unwrap()),
        resource: door().aggregated(),
        scopes: Scopes::read("mcp mcp.write offline_access").unwrap(),
    }
}

/// A public client with one web address and one on loopback.
pub(super) fn public_client() -> Client {
    let rules = RedirectRules::default();
    let uris = [REDIRECT, "http://localhost/callback"];
    Client {
        id: ClientId::parse(CLIENT).unwrap(),
        name: ClientName::of("App"),
        link: None,
        redirect_uris: uris.iter().map(|uri| rules.admit(uri).unwrap()).collect(),
        proof: ClientProof::Public,
        scopes: None,
        application_type: None,
        origin: ClientOrigin::Registration,
        created_at: StoredTime::of(now()),
        used_at: None,
    }
}

/// The same client with a secret.
pub(super) fn confidential_client() -> (Client, Token) {
    let secret = Token::generate(TokenKind::ClientSecret).unwrap();
    let proof = ClientProof::Secret(secret.hash());
    (Client { proof, ..public_client() }, secret)
}
