//! The door as a protected resource and an authorization server, for programs: challenges,
//! metadata, registrations and tokens. Pages for humans are in `signin`.
//!
//! The addresses in documents come from the settings; the header `Host` only chooses among the
//! names of the door.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Request, StatusCode, header, request::Parts};
use narthex_control::{
    Control, ControlError, DoorAnswer, DoorAsker, DoorDesk, DoorForeign, DoorForm, DoorServer,
    DoorToken,
};
use narthex_gateway::Holder;
use narthex_model::{ErrorKind, problem_code};
use narthex_oauth::server::{
    Answer, ChallengeAnswer, DoorPath, REGISTRATION_MAX, Refusal, WellKnown, bearer_token,
};
use narthex_wire::Payload;

use crate::listener::single;
use crate::{
    Access,
    auth::{Caller, Principal, authenticate},
    body::{self, RequestBody, Room},
    cors,
    door::{Door, not_found, wrong_method},
    problem::Problem,
    respond::{self, Response, closing},
    routes::{self, Place, ProgramTarget, Target},
    sender,
    servers::changes::of_body,
};

/// The refusals of an access token.
const FOREIGN: Refusal = Refusal::BadToken("the access token is for another resource");
const UNKNOWN: Refusal = Refusal::BadToken("the token is unknown, has expired or was revoked");

/// The answers to a token of an issuer whose client cannot be let in.
const NOT_LET_IN: &str = "this client may not act here for the person of its token; ask an \
                          operator, who finds the cause in the daemon's log";
const NOT_NOW: &str = "this client cannot be let in now; the cause is in the daemon's log, for an \
                       operator";

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
        if !desk.server().gives_tokens() {
            return not_found();
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
            ProgramTarget::Token => match Box::pin(desk.token(form)).await {
                Ok(DoorToken::Answered(answer)) => Ok(answer),
                Ok(DoorToken::Asserted(asserted)) => {
                    let Some(runs) = &self.options.runs else { return not_found() };
                    match Box::pin(runs.door_asserted(*asserted)).await {
                        Ok(answer) => Ok(answer),
                        Err(error) => return Problem::from(error).answer(),
                    }
                }
                Err(error) => Err(error),
            },
            ProgramTarget::Revoke => desk.revoke(form).await,
            ProgramTarget::Introspect => match self.asker(parts).await {
                Ok(asker) => desk.introspect(form, asker).await,
                Err(problem) => return problem.answer(),
            },
            ProgramTarget::Register | ProgramTarget::Metadata => {
                let registered = desk.register(&bytes, sender::of(parts)).await;
                registered.map(|answer| DoorAnswer { answer, ended: None })
            }
        };
        self.answer_program(done).await
    }

    /// The service whose token is in the header of a question about a token; `None` for any other
    /// caller. A cookie proves no service.
    async fn asker(&self, parts: &Parts) -> Result<Option<DoorAsker>, Problem> {
        if !parts.headers.contains_key(header::AUTHORIZATION) {
            return Ok(None);
        }
        // Boxed: a token of a run may be read from the store.
        Ok(match Box::pin(authenticate(self.proofs(), || None, parts)).await? {
            Some(Caller::Principal(Principal::Known(token))) => Some(DoorAsker::Service(token)),
            Some(Caller::Principal(Principal::LocalAdmin)) => Some(DoorAsker::Operator),
            Some(
                Caller::Principal(Principal::Run(_) | Principal::Human(_))
                | Caller::Client(_)
                | Caller::Delegated(_)
                | Caller::Foreign(..),
            )
            | None => None,
        })
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
        let path = place.endpoint(parts.uri.path())?;
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
    pub(crate) async fn delegated(
        &self,
        caller: Caller,
        place: &Place<'_>,
        parts: &Parts,
    ) -> Result<Caller, Box<Response>> {
        let access = match caller {
            Caller::Delegated(access) => access,
            // Boxed: letting a client in must not enlarge the future of every call.
            Caller::Foreign(path, found) => {
                return Box::pin(self.foreign(&path, found, place, parts)).await;
            }
            caller @ (Caller::Principal(_) | Caller::Client(_)) => return Ok(caller),
        };
        let Some(desk) = self.desk() else { return Err(Box::new(self.unauthorized(parts))) };
        let server = desk.server();
        if place.first().access != Access::Client {
            // Refused as every client is.
            return Ok(Caller::Client(access.client));
        }
        let path = place.endpoint(parts.uri.path());
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

    /// The client behind an access token of an issuer of the company. A request with a wrong method
    /// is no call, so it lets no client in.
    async fn foreign(
        &self,
        path: &DoorPath,
        found: Result<Arc<DoorForeign>, Refusal>,
        place: &Place<'_>,
        parts: &Parts,
    ) -> Result<Caller, Box<Response>> {
        let Some(desk) = self.desk() else { return Err(Box::new(self.unauthorized(parts))) };
        let foreign = found.map_err(|refusal| {
            self.refused("token");
            Box::new(challenged(desk.server(), refusal, parts, path))
        })?;
        if place.route(&parts.method).is_none() {
            return Err(Box::new(wrong_method(&place.allowed())));
        }
        let Some(runs) = &self.options.runs else {
            let text = "this process creates no runs";
            return Err(Box::new(Problem::new(ErrorKind::Conflict, text).answer()));
        };
        let error = match runs.door_foreign(&foreign).await {
            Ok(client) => return Ok(Caller::Client(client)),
            Err(error) => error,
        };
        // The cause may reveal facts that outside clients should not know.
        tracing::warn!(
            client.id = foreign.name(),
            "a client with a token of an issuer is not let in: {error}"
        );
        let (kind, text) = match error.kind() {
            ErrorKind::Denied => (ErrorKind::Denied, NOT_LET_IN),
            _ => (ErrorKind::Unavailable, NOT_NOW),
        };
        Err(Box::new(Problem::new(kind, text).answer()))
    }

    /// The challenge for a request without a valid token (R1); `None` where the door gives no
    /// tokens, and beside MCP endpoints.
    pub(crate) fn challenge(&self, parts: &Parts) -> Option<HeaderValue> {
        let server = self.desk()?.server();
        let path = routes::find(parts.uri.path())?.endpoint(parts.uri.path())?;
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
        Some(WellKnown::AuthorizationServer) if server.gives_tokens() => server.server_metadata(),
        Some(WellKnown::Resource(path)) if is_endpoint(&path) => {
            server.resource_metadata(host(parts), &path)
        }
        Some(WellKnown::AuthorizationServer | WellKnown::Resource(_)) | None => {
            return not_found();
        }
    };
    let payload = Payload::from(document.to_string().into_bytes());
    let mut response = respond::json(StatusCode::OK, payload);
    cors::open_to_any(response.headers_mut());
    response
}

/// True if the door has an endpoint of this form. Nothing is said about its servers.
fn is_endpoint(path: &DoorPath) -> bool {
    let found = routes::find(path.as_str());
    found.is_some_and(|place| place.first().target.is_mcp())
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
