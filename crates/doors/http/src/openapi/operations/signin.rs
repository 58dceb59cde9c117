//! The requests of browsers at a sign-in. Without any way to sign in, all of them are 404.

use super::super::operation::{Content, Operation, get, of, post};
use crate::shapes;

const HTML: Content = Content::Text(&["text/html"]);
const FORM: &[&str] = &["application/x-www-form-urlencoded"];
const COOKIE: &[&str] = &["SetCookie"];
/// To the public origin, if the request came to another one.
const ELSEWHERE: &[&str] = &["Location"];
const ON: &[&str] = &["Location", "SetCookie"];
const BODY: &[u16] = &[400, 401, 408, 409, 413, 415, 429, 500, 503];
/// A decision may be one that the request does not allow.
const DECIDED: &[u16] = &[400, 401, 408, 409, 413, 415, 422, 429, 500, 503];
/// There may be no human of the name.
const LINK: &[u16] = &[400, 401, 404, 408, 409, 413, 415, 422, 429, 500, 503];
const PAGE: &[u16] = &[400, 401, 409, 429, 500, 503, 504];

/// A human who has signed in may still not be allowed to see the share.
const SEEN: &[u16] = &[400, 401, 409, 429, 500, 503];

pub(super) const OPERATIONS: &[Operation] = &[
    get("/signin", "sign_in_page", "Shows the sign-in page, or the signed-in human")
        .answers(200, HTML, &[])
        .answers(303, Content::None, ELSEWHERE)
        .refuses(PAGE),
    get("/signin/script.js", "sign_in_script", "The script of the pages").answers(
        200,
        Content::Text(&["text/javascript"]),
        &[],
    ),
    get("/signin/style.css", "sign_in_style", "The style of the pages").answers(
        200,
        Content::Text(&["text/css"]),
        &[],
    ),
    get("/signin/link/{token}", "sign_in_link_show", "Shows the human that a link signs in")
        .answers(200, HTML, &[])
        .answers(303, Content::None, ELSEWHERE)
        .refuses(PAGE),
    post("/signin/link/{token}", "sign_in_link_use", "Signs in by a link, once")
        .takes_as(of::<shapes::EmptyForm>(), FORM)
        .answers(303, Content::None, ON)
        .refuses(BODY),
    post("/signin/passkey/begin", "sign_in_passkey_begin", "Returns a challenge for a passkey")
        .gives(of::<shapes::Ceremony>())
        .refuses(&[400, 409, 415, 429, 500, 503]),
    post("/signin/passkey/finish", "sign_in_passkey_finish", "Signs in by a passkey")
        .takes(of::<shapes::CeremonyAnswer>())
        .answers(200, Content::Json(of::<shapes::SignedIn>()), COOKIE)
        .refuses(BODY),
    post("/signin/passkeys/new", "sign_in_passkey_new", "Returns a challenge for a new passkey")
        .asks(&["Csrf"])
        .gives(of::<shapes::Ceremony>())
        .refuses(&[400, 401, 409, 429, 500, 503]),
    post("/signin/passkeys", "sign_in_passkey_add", "Adds a passkey of the caller")
        .asks(&["Csrf"])
        .takes(of::<shapes::CeremonyAnswer>())
        .answers(201, Content::Json(of::<shapes::PasskeyAdded>()), &[])
        .refuses(BODY),
    post(
        "/signin/passkeys/{id}/remove",
        "sign_in_passkey_remove",
        "Removes a passkey of the caller",
    )
    .takes_as(of::<shapes::CsrfForm>(), FORM)
    .answers(303, Content::None, ELSEWHERE)
    .refuses(BODY),
    post(
        "/signin/links",
        "sign_in_link_make",
        "Creates a sign-in link for another human, and shows it",
    )
    .takes_as(of::<shapes::LinkForm>(), FORM)
    .answers(200, HTML, &[])
    .refuses(LINK),
    get("/signin/oidc/{provider}", "sign_in_oidc_begin", "Redirects to a provider")
        .answers(303, Content::None, ON)
        .refuses(PAGE),
    get(
        "/signin/oidc/{provider}/callback",
        "sign_in_oidc_finish",
        "Signs in with a provider's answer",
    )
    .asks(&["oidc_code", "oidc_state", "oidc_iss", "oidc_error"])
    .answers(303, Content::None, ON)
    .refuses(PAGE),
    get(
        "/workspaces/{workspace}/grant-requests/{id}",
        "grant_request_page",
        "Shows a grant request, or the sign-in page",
    )
    .answers(200, HTML, COOKIE)
    .answers(303, Content::None, ELSEWHERE)
    .refuses(SEEN),
    post(
        "/workspaces/{workspace}/grant-requests/{id}",
        "grant_request_decide",
        "Approves or denies a grant request",
    )
    .takes_as(of::<shapes::DecisionForm>(), FORM)
    .answers(303, Content::None, ELSEWHERE)
    .refuses(DECIDED),
    get(
        "/workspaces/{workspace}/connections/{server}",
        "connection_page",
        "Shows the connection of the signed-in human, or the sign-in page",
    )
    .answers(200, HTML, COOKIE)
    .answers(303, Content::None, ELSEWHERE)
    .refuses(SEEN),
    post(
        "/workspaces/{workspace}/connections/{server}",
        "connection_change",
        "Begins or ends the connection of the signed-in human",
    )
    .takes_as(of::<shapes::ConnectionForm>(), FORM)
    .answers(200, HTML, &[])
    .answers(303, Content::None, ELSEWHERE)
    .refuses(DECIDED),
    post(
        "/signin/clients/{id}/remove",
        "sign_in_client_remove",
        "Revokes a client that the caller has let in",
    )
    .takes_as(of::<shapes::CsrfForm>(), FORM)
    .answers(303, Content::None, ELSEWHERE)
    .refuses(LINK),
    post("/signout", "sign_out", "Ends the session of the browser")
        .takes_as(of::<shapes::CsrfForm>(), FORM)
        .answers(303, Content::None, ON)
        .refuses(BODY),
];
