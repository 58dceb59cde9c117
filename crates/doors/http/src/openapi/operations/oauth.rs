//! The door as a protected resource and an authorization server. Where the door gives no tokens,
//! all of these requests are 404.

use super::super::operation::{Content, Operation, get, of, post};
use crate::shapes;

const HTML: Content = Content::Text(&["text/html"]);
const DOCUMENT: Content = Content::Json(of::<shapes::OAuthDocument>());
const FAILURE: Content = Content::Json(of::<shapes::OAuthFailure>());
const FORM: &[&str] = &["application/x-www-form-urlencoded"];
/// Caches ask for a document anew by its tag.
const TAG: &[&str] = &["ETag"];
const COOKIE: &[&str] = &["SetCookie"];
/// To the client, or to the public origin.
const ELSEWHERE: &[&str] = &["Location"];
const READ: &[u16] = &[408, 413, 500, 503, 504];
const PAGE: &[u16] = &[400, 401, 409, 422, 429, 500, 503, 504];
const ANSWERED: &[u16] = &[400, 401, 408, 409, 413, 415, 422, 429, 500, 503, 504];

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        "/.well-known/oauth-protected-resource",
        "oauth_resource_show",
        "The metadata of the endpoint for all servers",
    )
    .answers(200, DOCUMENT, TAG)
    .answers(304, Content::None, TAG),
    get(
        "/.well-known/oauth-protected-resource/{path}",
        "oauth_resource_show_path",
        "The metadata of an MCP endpoint",
    )
    .answers(200, DOCUMENT, TAG)
    .answers(304, Content::None, TAG),
    get(
        "/.well-known/oauth-authorization-server",
        "oauth_server_show",
        "The metadata of the authorization server",
    )
    .answers(200, DOCUMENT, TAG)
    .answers(304, Content::None, TAG),
    get(
        "/.well-known/oauth-authorization-server/{path}",
        "oauth_server_show_path",
        "The metadata of the authorization server, for an MCP endpoint",
    )
    .answers(200, DOCUMENT, TAG)
    .answers(304, Content::None, TAG),
    get(
        "/.well-known/openid-configuration",
        "oauth_openid_show",
        "The metadata of the authorization server, for older clients",
    )
    .answers(200, DOCUMENT, TAG)
    .answers(304, Content::None, TAG),
    get(
        "/.well-known/openid-configuration/{path}",
        "oauth_openid_show_path",
        "The metadata of the authorization server, for older clients of an MCP endpoint",
    )
    .answers(200, DOCUMENT, TAG)
    .answers(304, Content::None, TAG),
    post("/register", "oauth_register", "Registers a program that asks for tokens (RFC 7591)")
        .takes(of::<shapes::OAuthDocument>())
        .answers(201, DOCUMENT, &[])
        .answers(400, FAILURE, &[])
        .answers(429, FAILURE, &[])
        .refuses(READ),
    post("/token", "oauth_token", "Gives tokens for a code or a refresh token")
        .takes_as(of::<shapes::OAuthForm>(), FORM)
        .answers(200, DOCUMENT, &[])
        .answers(400, FAILURE, &[])
        .answers(401, FAILURE, &["WwwAuthenticate"])
        .answers(429, FAILURE, &[])
        .refuses(READ),
    post("/revoke", "oauth_revoke", "Revokes a token of a program (RFC 7009)")
        .takes_as(of::<shapes::OAuthForm>(), FORM)
        .answers(200, Content::None, &[])
        .answers(400, FAILURE, &[])
        .answers(401, FAILURE, &["WwwAuthenticate"])
        .refuses(READ),
    post("/introspect", "oauth_introspect", "Tells a service about an access token (RFC 7662)")
        .takes_as(of::<shapes::OAuthForm>(), FORM)
        .answers(200, DOCUMENT, &[])
        .answers(400, FAILURE, &[])
        .answers(401, FAILURE, &["WwwAuthenticate"])
        .answers(429, FAILURE, &[])
        .refuses(READ),
    get("/authorize", "oauth_authorize", "Asks a human for consent to a program, or to sign in")
        .answers(200, HTML, COOKIE)
        .answers(303, Content::None, ELSEWHERE)
        .refuses(PAGE),
    get("/consent/{token}", "oauth_consent_show", "Shows a program that waits for consent")
        .answers(200, HTML, COOKIE)
        .answers(303, Content::None, ELSEWHERE)
        .refuses(PAGE),
    post("/consent/{token}", "oauth_consent_answer", "Lets a program in, or denies it")
        .takes_as(of::<shapes::ConsentForm>(), FORM)
        .answers(303, Content::None, ELSEWHERE)
        .refuses(ANSWERED),
];
