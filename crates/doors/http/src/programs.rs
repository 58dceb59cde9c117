//! The door as a protected resource and an authorization server, for programs: challenges,
//! metadata, registrations and tokens. Pages for humans are in `signin`.
//!
//! The addresses in documents come from the settings; the header `Host` only chooses among the
//! names of the door.

use http::{HeaderName, HeaderValue, Request, StatusCode, header, request::Parts};
use narthex_control::{Control, ControlError, DoorAnswer, DoorDesk, DoorForm, DoorServer};
use narthex_gateway::Holder;
use narthex_model::{ErrorKind, problem_code};
use narthex_oauth::server::{
    Answer, ChallengeAnswer, DoorPath, REGISTRATION_MAX, Refusal, WellKnown, bearer_token,
};
use narthex_wire::Payload;

use crate::listener::single;
use crate::{
    Access,
    auth::Caller,
    body::{self, RequestBody, Room},
    cors,
    door::{Door, not_found},
    problem::Problem,
    respond::{self, Response, closing},
    routes::{self, Place, ProgramTarget, Target},
    servers::changes::of_body,
};

/// The refusals of an access token.
const FOREIGN: Refusal = Refusal::BadToken("the access token is for another resource");
const UNKNOWN: Refusal = Refusal::BadToken("the token is unknown, has expired or was revoked");

impl Door {
    /// The authorization server; `None` if the door gives no tokens.
    fn desk(&self) -> Option<DoorDesk<'_>> {
        DoorDesk::of(self.options.control.as_ref()?)
    }

    /// Answers a program. The routes do not exist if the door gives no tokens.
    pub(crate) async fn program(
        &self,
        target: ProgramTarget,
        parts: &Parts,
        body: RequestBody,
    ) -> Response {
        let Some(desk) = self.desk() else { return not_found() };
        if target == ProgramTarget::Metadata {
            return metadata(desk.server(), parts);
        }
        let room = Room::Api(&self.api_bodies, Holder::Visitors);
        let within = self.options.body_timeout;
        let bytes = match body::read_in(body, REGISTRATION_MAX, within, Some(room)).await {
            Ok(bytes) => bytes,
            Err(fault) => return of_body(fault, "the request", REGISTRATION_MAX).answer(),
        };
        let text = |name| single(&parts.headers, name).flatten();
        let form = DoorForm {
            authorization: text(&header::AUTHORIZATION),
            content_type: text(&header::CONTENT_TYPE),
            body: &bytes,
        };
        let done = match target {
            ProgramTarget::Token => desk.token(form).await,
            ProgramTarget::Revoke => desk.revoke(form).await,
            ProgramTarget::Register | ProgramTarget::Metadata => {
                let registered = desk.register(&bytes).await;
                registered.map(|answer| DoorAnswer { answer, ended: None })
            }
        };
        self.answer_program(done).await
    }

    /// Answers a program, and ends the run of a client whose tokens are revoked.
    async fn answer_program(&self, done: Result<DoorAnswer, ControlError>) -> Response {
        let DoorAnswer { answer, ended } = match done {
            Ok(done) => done,
            Err(error) => return Problem::from(error).answer(),
        };
        if let (Some(client), Some(runs)) = (ended, &self.options.runs)
            && let Err(error) = runs.door_ended(&client).await
        {
            let id = &client.row.id;
            tracing::warn!(client.id = %id, "the run of revoked tokens cannot be ended: {error}");
        }
        if answer.status == StatusCode::UNAUTHORIZED.as_u16() {
            self.refused("oauth_client");
        }
        answered(&answer)
    }

    /// The answer to a request with a token in its query, where logs and browsers keep it. `None`
    /// for other requests, and if the door gives no tokens.
    pub(crate) fn refuse_query(&self, place: &Place<'_>, parts: &Parts) -> Option<Response> {
        let query = parts.uri.query()?;
        let path = endpoint(place, parts)?;
        let server = self.desk()?.server();
        let refusal = bearer_token(None, Some(query)).err()?;
        self.refused("token");
        Some(challenged(server, refusal, parts, &path))
    }

    /// The caller behind an access token, if the token opens this path: a client. Other callers
    /// stay as they are.
    ///
    /// # Errors
    /// The answer to a token that is for another resource.
    pub(crate) fn delegated(
        &self,
        caller: Caller,
        place: &Place<'_>,
        parts: &Parts,
    ) -> Result<Caller, Box<Response>> {
        let Caller::Delegated(access) = caller else { return Ok(caller) };
        let Some(desk) = self.desk() else { return Err(Box::new(self.unauthorized(parts))) };
        let server = desk.server();
        if place.first().access != Access::Client {
            // Refused as every client is.
            return Ok(Caller::Client(access.client));
        }
        let path = endpoint(place, parts);
        let checked = match &path {
            Some(path) => access.check(&server.door().resource(path), server.scopes()),
            None => Err(FOREIGN),
        };
        match checked {
            Ok(()) => Ok(Caller::Client(access.client)),
            Err(refusal) => {
                self.refused("token");
                let path = path.unwrap_or_else(DoorPath::aggregated);
                Err(Box::new(challenged(server, refusal, parts, &path)))
            }
        }
    }

    /// The challenge for a request without a valid token (R1); `None` where the door gives no
    /// tokens, and beside MCP endpoints.
    pub(crate) fn challenge(&self, parts: &Parts) -> Option<HeaderValue> {
        let server = self.desk()?.server();
        let path = endpoint(&routes::find(parts.uri.path())?, parts)?;
        let refusal = match parts.headers.contains_key(header::AUTHORIZATION) {
            true => UNKNOWN,
            false => Refusal::NoToken,
        };
        let ChallengeAnswer { header, .. } = server.challenge(refusal, host(parts), &path);
        HeaderValue::from_str(&header).ok()
    }

    /// True for a route of programs, if the door gives tokens. Browsers send no cookies there.
    pub(crate) fn is_for_programs(&self, path: &str) -> bool {
        routes::find(path).is_some_and(|place| matches!(place.first().target, Target::Program(_)))
            && self.desk().is_some()
    }

    /// True for a request of a program in any web page: at a public address, for documents and
    /// tokens. Pages that are open on a machine do not reach its own door in this way.
    pub(crate) fn is_open_to_pages(&self, request: &Request<RequestBody>) -> bool {
        let origin = self.options.control.as_ref().and_then(Control::sign_in_origin);
        let host = single(request.headers(), &header::HOST).flatten();
        self.is_for_programs(request.uri().path())
            && origin.is_some_and(|origin| {
                let is_there =
                    host.is_some_and(|host| host.eq_ignore_ascii_case(origin.authority()));
                origin.is_https() && is_there
            })
    }
}

fn metadata(server: &DoorServer, parts: &Parts) -> Response {
    let document = match WellKnown::at(parts.uri.path()) {
        Some(WellKnown::AuthorizationServer) => server.server_metadata(),
        Some(WellKnown::Resource(path)) if is_endpoint(&path) => {
            server.resource_metadata(host(parts), &path)
        }
        Some(WellKnown::Resource(_)) | None => return not_found(),
    };
    let payload = Payload::from(document.to_string().into_bytes());
    let mut response = respond::json(StatusCode::OK, payload);
    cors::open_to_any(response.headers_mut());
    response
}

/// True if the door has an endpoint of this form. Nothing is said about its servers.
fn is_endpoint(path: &DoorPath) -> bool {
    let found = routes::find(path.as_str());
    found.is_some_and(|place| is_of_mcp(place.first().target))
}

fn is_of_mcp(target: Target) -> bool {
    matches!(target, Target::Aggregated | Target::Transparent | Target::InProfile)
}

/// The MCP endpoint of a request; `None` for other routes. A posted call belongs to the endpoint of
/// its server.
fn endpoint(place: &Place<'_>, parts: &Parts) -> Option<DoorPath> {
    match place.first().target {
        Target::ToolCall => DoorPath::parse(&format!("/mcp/{}", place.segments[0])),
        target if is_of_mcp(target) => DoorPath::parse(parts.uri.path()),
        _ => None,
    }
}

fn host(parts: &Parts) -> &str {
    single(&parts.headers, &header::HOST).flatten().unwrap_or_default()
}

/// The answer to a refused access token.
fn challenged(server: &DoorServer, refusal: Refusal, parts: &Parts, path: &DoorPath) -> Response {
    let ChallengeAnswer { status, header: value } = server.challenge(refusal, host(parts), path);
    let kind = match status {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::Denied,
        _ => ErrorKind::Invalid,
    };
    let problem = Problem::new(kind, refusal.to_string());
    let problem = match kind {
        ErrorKind::Unauthenticated => problem.with_code(problem_code::TOKEN_INVALID),
        _ => problem,
    };
    let mut response = closing(problem.answer());
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

/// An answer of the authorization server.
fn answered(answer: &Answer) -> Response {
    let body = answer.body.as_ref().map(|body| body.expose().as_bytes().to_vec());
    let mut response = Response::new(body.map(Payload::from).unwrap_or_default().into());
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for one in &answer.headers {
        let name = HeaderName::from_static(one.name);
        response.headers_mut().insert(name, HeaderValue::from_static(one.value));
    }
    response
}
