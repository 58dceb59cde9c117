//! The end of sign-ins to servers, in a browser, and narthex's description of itself for
//! authorization servers.
//!
//! These routes require no token, since a redirect of another site has none. The proof of a
//! redirect is its `state`, which belongs to one open attempt and is used once. An attempt that a
//! signed-in human began can be finished only in the browser of that login session.

mod page;

use http::{StatusCode, header, request::Parts};
use narthex_control::{Control, ControlError, SignInVerbs, SignedIn, public_base};
use narthex_model::{SharedGrant, with_causes};
use percent_encoding::percent_decode_str;

use crate::{
    auth::Principal,
    door::{Door, not_found, wrong_method},
    listener::single,
    problem::Problem,
    respond::{self, Response},
    routes::{Place, Target},
    signin::session_cookie,
};

/// The reason in the counts of refused requests.
const REFUSED: &str = "server_sign_in";

/// The target of a route of sign-ins to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OAuthTarget {
    /// The redirect of an authorization server.
    Callback,
    /// The client id metadata document.
    ClientMetadata,
}

/// Answers a request for one of these routes. They do not exist at a daemon without sign-ins.
pub(crate) async fn answer(door: &Door, place: &Place<'_>, parts: &Parts) -> Response {
    let control = door.options.control.as_ref();
    let Some(control) = control.filter(|control| control.sign_ins().is_some()) else {
        return not_found();
    };
    match place.route(&parts.method).map(|route| route.target) {
        Some(Target::OAuth(OAuthTarget::Callback)) => {
            callback(door, control, place.segments[0], parts).await
        }
        Some(Target::OAuth(OAuthTarget::ClientMetadata)) => client_metadata(control),
        Some(_) => not_found(),
        None => wrong_method(&place.allowed()),
    }
}

async fn callback(door: &Door, control: &Control, segment: &str, parts: &Parts) -> Response {
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let server = percent_decode_str(segment).decode_utf8().ok().map(String::from);
    let server = server.filter(|server| !server.is_empty());
    let personal = server.as_deref().and_then(SharedGrant::catalog_id).map(str::to_owned);
    if personal.is_some()
        && let Some(there) = elsewhere(control, parts)
    {
        return page::onward(&there);
    }
    let signed_in = signed_in(control, parts);
    let session = signed_in.as_ref().map(|signed_in| signed_in.session.clone());
    match SignInVerbs::of(control).finish(query, server.clone(), session).await {
        Ok(finished) if finished.key.user.is_some() => page::connected(&finished.alias),
        Ok(finished) => page::done(&finished.alias),
        Err(ControlError::SignIn(error)) => {
            if let Some(url) = error.goes_on_at() {
                return page::onward(url.as_str());
            }
            if error.is_unproved() {
                door.refused(REFUSED);
                if let (Some(id), Some(signed_in)) = (&personal, &signed_in) {
                    SignInVerbs::of(control).connection_refused(id, signed_in.account.actor());
                }
            }
            tracing::info!("a sign-in to a server was not finished: {}", with_causes(&error));
            page::failed(server.as_deref(), error.kind(), &error.to_string())
        }
        Err(error) => {
            let problem = Problem::from(error);
            page::failed(server.as_deref(), problem.kind(), problem.detail())
        }
    }
}

/// The login session of the browser.
fn signed_in(control: &Control, parts: &Parts) -> Option<SignedIn> {
    let is_https = control.sign_in_origin()?.is_https();
    let token = session_cookie(&parts.headers, is_https)?;
    control.signed_in(token).ok()?
}

/// The same address at the origin where humans sign in, for a redirect to another host of the
/// daemon: only there the browser sends the cookie of the login session.
fn elsewhere(control: &Control, parts: &Parts) -> Option<String> {
    let origin = control.sign_in_origin()?;
    let host = single(&parts.headers, &header::HOST).flatten()?;
    let path = parts.uri.path_and_query()?;
    (!host.eq_ignore_ascii_case(origin.authority())).then(|| origin.at(path.as_str()))
}

fn client_metadata(control: &Control) -> Response {
    match SignInVerbs::of(control).client_document() {
        Some(document) => respond::json(StatusCode::OK, document.to_string().into_bytes().into()),
        None => not_found(),
    }
}

/// The login session to which an attempt is bound that this request begins. `None` for callers
/// without a session, and where the redirect comes to another host than that of the session's
/// cookie: there, `state` alone proves the redirect.
pub(crate) fn binding(control: &Control, principal: &Principal, parts: &Parts) -> Option<String> {
    let Principal::Human(signed_in) = principal else { return None };
    let origin = control.sign_in_origin()?;
    public_base(origin)?;
    let host = single(&parts.headers, &header::HOST).flatten()?;
    host.eq_ignore_ascii_case(origin.authority()).then(|| signed_in.session.clone())
}
