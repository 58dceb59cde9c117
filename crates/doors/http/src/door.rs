//! The path of every request: check of `Host` and `Origin`, token, route, method.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use futures_core::future::BoxFuture;
use http::{HeaderValue, Method, Request, StatusCode, header, request::Parts};
use http_body_util::Either;
use hyper::body::Incoming;
use narthex_audit::{AuditEvent, Refused, kind};
use narthex_control::Control;
use narthex_gateway::{Endpoint, Gateway, Places, RunView};
use narthex_model::{
    Alias, ErrorKind, WorkspaceId, command::narthex, json::shortened, meant_hint, nearest,
    problem_code,
};
use tokio::{net::TcpListener, sync::Semaphore, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::devices::RunMounts;
use crate::listener::{self, Guard, Respond, ServeOptions};
use crate::{
    Access, HttpOptions, ResponseBody, Route,
    auth::{Caller, NO_CLIENT, Principal, Proofs, authenticate, authorize, is_of_ended_run},
    body::RequestBody,
    calling, cors,
    hub::Hub,
    legacy,
    page_streams::PageStreams,
    post::{self, Post},
    problem::Problem,
    respond::{self, Response, closing, text, unstored},
    routes::{self, Place, Target},
    sender,
    servers::Asked,
    signin::Visitor,
    status,
    vfs::{self, VfsRequest},
};

/// The answer of a health route if all is well.
const FINE: &str = "ok\n";
/// The answers of `/readyz` while the daemon stops, and while its store cannot be reached.
const STOPPING: &str = "the daemon is stopping\n";
const UNREACHABLE: &str = "the store cannot be reached\n";
/// The answer to a request without a valid token.
const NO_TOKEN: &str = "a valid bearer token is needed; send one in the header `Authorization`, or \
                        ask an operator for one";
/// The time for which a check of the store stays valid.
const REACHED_FOR: Duration = Duration::from_secs(1);

/// Maximum number of open event streams. Each stream reads the store at intervals.
const EVENT_STREAMS_MAX: usize = 500;

/// The beginning of the paths of files that browsers keep.
pub(crate) const KEPT_FILES: &str = "/assets/";

/// Pages that the door serves beside its routes, which it does not import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    /// True for the path of such a page.
    pub(crate) is_page: fn(&str) -> bool,
    /// True if the pages answer the request.
    pub(crate) takes: fn(&Parts) -> bool,
    /// The answer to such a request.
    pub(crate) answer: AnswerBeside,
    /// The page to open after a sign-in, which a cookie names; `None` if it is no page.
    pub(crate) onward: fn(&str) -> Option<String>,
}

/// The code that answers a request for a page.
type AnswerBeside = for<'a> fn(&'a Arc<Door>, &'a Parts, RequestBody) -> BoxFuture<'a, Response>;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) gateway: Gateway,
    pub(crate) options: HttpOptions,
    pub(crate) hub: Arc<Hub>,
    /// The mount namespaces, which serve the files of runs.
    pub(crate) mounts: RunMounts,
    /// The buffer in which bodies of the API reserve bytes.
    pub(crate) api_bodies: Places,
    /// The limit of open event streams.
    pub(crate) event_streams: Arc<Semaphore>,
    /// The open streams of pages, by login session.
    pub(crate) page_streams: PageStreams,
    /// The pages that are served beside the routes.
    pub(crate) beside: Beside,
    /// Time when this door was made, at the start of the process.
    pub(crate) started_at: SystemTime,
    reach: Reach,
    guard: Guard,
    requests: AtomicU64,
}

/// Answers requests for all routes, behind one check of `Host` and `Origin` and one check of
/// tokens.
#[derive(Debug, Clone)]
pub struct Router(Arc<Door>);

/// Creates the HTTP door of a gateway, with pages beside its routes.
pub(crate) fn router(gateway: Gateway, options: HttpOptions, beside: Beside) -> Router {
    let HttpOptions { listen, is_tls, allowed_hosts, allowed_origins, .. } = &options;
    let door = Door {
        guard: Guard::new(*listen, *is_tls, allowed_hosts, allowed_origins),
        api_bodies: Places::new(options.api_body_bytes),
        event_streams: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
        page_streams: PageStreams::default(),
        beside,
        hub: Arc::new(Hub::new(options.replay, gateway.node_id().into())),
        mounts: vfs::mounts(&gateway, &options),
        started_at: SystemTime::now(),
        reach: Reach::default(),
        requests: AtomicU64::new(0),
        gateway,
        options,
    };
    Router(Arc::new(door))
}

impl Router {
    /// Serves a listener until `shutdown`; see [`listener::serve`].
    ///
    /// Boxed, so that this crate compiles the door and its callers do not compile it again.
    pub fn serve(
        self,
        listener: TcpListener,
        options: ServeOptions,
        shutdown: CancellationToken,
        tasks: TaskTracker,
    ) -> BoxFuture<'static, ()> {
        Box::pin(listener::serve(listener, self, options, shutdown, tasks))
    }

    /// Answers one request, of a connection or of a caller in this process.
    pub async fn answer(&self, request: Request<RequestBody>) -> http::Response<ResponseBody> {
        if request.headers().contains_key(header::ORIGIN) {
            // Boxed, so that calls of clients other than browsers have small futures.
            return Box::pin(self.answer_page(request)).await;
        }
        self.answer_any(request).await
    }

    /// Answers a request of a page in a browser, whose origin may be one that may use the door.
    async fn answer_page(&self, mut request: Request<RequestBody>) -> http::Response<ResponseBody> {
        if self.0.is_open_to_pages(&request) {
            if let Some(response) = cors::preflight_of_any(&request) {
                return response;
            }
            request.headers_mut().remove(header::ORIGIN);
            let mut response = self.answer_any(request).await;
            cors::open_to_any(response.headers_mut());
            return response;
        }
        let is_own = routes::find(request.uri().path())
            .is_some_and(|place| matches!(place.first().access, Access::Own(_)))
            && !self.0.is_for_programs(request.uri().path())
            || (self.0.beside.is_page)(request.uri().path());
        let origin = cors::origin(&self.0.guard, &request).filter(|_| !is_own);
        let Some(origin) = origin else { return self.answer_any(request).await };
        if let Some(response) = cors::preflight(&origin, &request) {
            return response;
        }
        let mut response = self.answer_any(request).await;
        cors::open(origin, response.headers_mut());
        response
    }

    async fn answer_any(&self, request: Request<RequestBody>) -> http::Response<ResponseBody> {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return self.0.answer(request).await;
        }
        // Boxed, so that calls have small futures.
        Box::pin(self.0.answer_and_say(request)).await
    }
}

impl Respond for Router {
    type Body = ResponseBody;

    fn respond(
        &self,
        mut request: Request<Incoming>,
        address: IpAddr,
    ) -> impl Future<Output = http::Response<ResponseBody>> + Send {
        sender::note(&mut request, address);
        self.answer(request.map(Either::Left))
    }

    fn handshake_failed(&self, reason: &'static str) {
        self.0.gateway.metrics().refused(reason);
    }
}

impl Door {
    async fn answer_and_say(self: &Arc<Self>, request: Request<RequestBody>) -> Response {
        let started = Instant::now();
        let id = self.requests.fetch_add(1, Ordering::Relaxed);
        let method = request.method().clone();
        let template =
            routes::find(request.uri().path()).map_or("", |place| place.first().template);
        let response = self.answer(request).await;
        tracing::debug!(
            request.id = id,
            method = %method,
            path = template,
            status = response.status().as_u16(),
            duration_ms = started.elapsed().as_secs_f64() * 1000.0,
            "answered a request"
        );
        response
    }

    /// Refuses a principal other than a run at a route for runs.
    fn no_run(&self, principal: &Principal, path: &str) -> Response {
        self.denied(principal, path);
        Problem::new(ErrorKind::Denied, NO_CLIENT).answer()
    }

    async fn answer(self: &Arc<Self>, request: Request<RequestBody>) -> Response {
        // Successful MCP answers set their own cache rules, are POSTs or streams, and are frequent.
        // So do the files of pages.
        let path = request.uri().path();
        let is_mcp = path.starts_with("/mcp");
        let is_kept = is_mcp || path.starts_with(KEPT_FILES);
        if !is_mcp && routes::is_public_document(path) {
            let known = request.headers().get(header::IF_NONE_MATCH).cloned();
            // Boxed: this rare path must not enlarge the future of every call.
            let response = Box::pin(self.admitted(request)).await;
            return respond::public(response, known.as_ref());
        }
        let response = self.admitted(request).await;
        match is_kept && response.status().is_success() {
            true => response,
            false => unstored(response),
        }
    }

    /// Answers a request. Rare ways are boxed, so that calls have small futures.
    async fn admitted(self: &Arc<Self>, request: Request<RequestBody>) -> Response {
        let (parts, body) = request.into_parts();
        if !self.guard.admits(&parts.uri, &parts.headers) {
            return self.turned_away();
        }
        if (self.beside.takes)(&parts) && self.has_sign_in() {
            return (self.beside.answer)(self, &parts, body).await;
        }
        let found = routes::find(parts.uri.path());
        let open = found.map(|place| place.first()).filter(|route| route.access == Access::Open);
        if let Some(route) = open {
            return self.answer_anyone(route.target, &parts).await;
        }
        if let Some(place) = found.filter(|place| matches!(place.first().access, Access::Own(_))) {
            return Box::pin(self.own(&place, &parts, body)).await;
        }
        if let Some(refused) = found.and_then(|place| self.refuse_query(&place, &parts)) {
            return refused;
        }
        let endpoint = || found.as_ref()?.endpoint(parts.uri.path());
        let caller = match authenticate(self.proofs(), endpoint, &parts).await {
            Ok(Some(caller)) => caller,
            Ok(None) => {
                self.refused("token");
                return self.unauthorized(&parts);
            }
            Err(problem) => return problem.answer(),
        };
        let Some(place) = found else { return not_found() };
        let caller = match self.delegated(caller, &place, &parts).await {
            Ok(caller) => caller,
            Err(refused) => return *refused,
        };
        // MCP endpoints check the method later, after they have checked that the endpoint exists.
        let route = place.route(&parts.method).unwrap_or_else(|| place.first());
        let run = match (route.access, caller) {
            (Access::Client, Caller::Principal(Principal::Run(run))) => run,
            // A request with a wrong method is no call, so it must not create a run.
            (Access::Client, Caller::Client(_)) if place.route(&parts.method).is_none() => {
                return wrong_method(&place.allowed());
            }
            (Access::Client, Caller::Client(client)) => match self.run_of(&client, &parts).await {
                Ok(run) => run,
                Err(refused) => return refused,
            },
            (_, Caller::Client(client)) => return self.no_client(&client, parts.uri.path()),
            (_, Caller::Delegated(_) | Caller::Foreign(..)) => return self.unauthorized(&parts),
            (Access::Client, Caller::Principal(principal)) => {
                return self.no_run(&principal, parts.uri.path());
            }
            (_, Caller::Principal(_)) if place.route(&parts.method).is_none() => {
                return wrong_method(&place.allowed());
            }
            (_, Caller::Principal(principal)) => {
                let asked = Asked::new(self, route.target, place.segments, &parts, principal);
                return Box::pin(asked.answer(route.access, body)).await;
            }
        };
        if route.target == Target::Vfs {
            return Box::pin(self.files(run, &place, &parts, body)).await;
        }
        let (run, endpoint) = match self.entered(&place, route, run, &parts) {
            Ok(entered) => entered,
            Err(refused) => return *refused,
        };
        let visit = Visit { run, endpoint, parts };
        match route.target {
            Target::ToolCall => Box::pin(self.tool_call(visit, body)).await,
            _ => self.mcp(visit, body).await,
        }
    }

    /// True if humans can sign in at this daemon. Otherwise pages for them do not exist.
    fn has_sign_in(&self) -> bool {
        self.options.control.as_ref().is_some_and(|control| control.sign_in_origin().is_some())
    }

    /// Refuses a request of a page or a name that the door does not serve.
    fn turned_away(&self) -> Response {
        self.refused("host_or_origin");
        let text = "this Host or Origin is not allowed; use the daemon's own address, or add \
                    the name to `http.allowed_hosts` or `http.allowed_origins` in the settings";
        closing(Problem::new(ErrorKind::Denied, text).answer())
    }

    /// Answers a request that needs no token.
    async fn answer_anyone(&self, target: Target, parts: &Parts) -> Response {
        match target {
            // Boxed: this rare path must not enlarge the future of every call.
            Target::Ready => Box::pin(self.readiness(parts)).await,
            _ => health(&parts.method, Ok(())),
        }
    }

    /// Counts a refused request whose caller proved no identity (S32).
    pub(crate) fn refused(&self, reason: &'static str) {
        self.gateway.metrics().refused(reason);
        self.gateway.audit().refused(Refused { door: "http", reason });
    }

    /// Records in the audit that a principal requested an object that it may not use, or that is
    /// absent for it (S32).
    pub(crate) fn denied(&self, principal: &Principal, path: &str) {
        let mut event = AuditEvent::new(kind::ACCESS_DENIED, principal.actor());
        let mut path = Cow::Borrowed(path);
        if let Principal::Run(run) = principal {
            event = event.in_workspace(&run.workspace).of_run(run.id.to_text());
            path = self.gateway.without_secrets(run, &path).into_owned().into();
        }
        self.note_denied(event, &path);
    }

    pub(crate) fn note_denied(&self, mut event: AuditEvent<'static>, path: &str) {
        event.outcome = "denied".into();
        let template = routes::find(path).map_or("", |place| place.first().template);
        // The request is refused even if the audit has no room for the record.
        let event = event.on("route", template).with("path", shortened(path));
        if let Err(full) = self.gateway.audit().note(event) {
            tracing::warn!("a refusal could not be recorded in the audit: {full}");
        }
    }

    /// Serves a route with a proof of its own.
    async fn own(&self, place: &Place<'_>, parts: &Parts, body: RequestBody) -> Response {
        match (place.first().target, place.route(&parts.method)) {
            (Target::Program(target), Some(_)) => self.program(target, parts, body).await,
            (Target::Program(_), None) => wrong_method(&place.allowed()),
            _ => self.sign_in(place, parts, body).await,
        }
    }

    /// Serves a browser's sign-in. The routes do not exist if humans cannot sign in at this daemon.
    async fn sign_in(&self, place: &Place<'_>, parts: &Parts, body: RequestBody) -> Response {
        let control = self.options.control.as_ref();
        let control = control.filter(|control| control.sign_in_origin().is_some());
        let Some(control) = control else { return not_found() };
        let Some(route) = place.route(&parts.method) else { return wrong_method(&place.allowed()) };
        let Target::SignIn(target) = route.target else { return not_found() };
        let segments = place.segments;
        Visitor { door: self, control, target, segments, parts }.answer(body).await
    }

    /// The answer to a token that is not valid.
    pub(crate) fn unauthorized(&self, parts: &Parts) -> Response {
        let (code, text) = match is_of_ended_run(self.proofs(), parts) {
            true => (problem_code::RUN_ENDED, "the run of this token has ended; create another"),
            false => (problem_code::TOKEN_INVALID, NO_TOKEN),
        };
        let problem = Problem::new(ErrorKind::Unauthenticated, text);
        // The code of a posted call is that of JSON-RPC, or absent.
        let place = routes::find(parts.uri.path());
        let is_call = place.is_some_and(|place| place.first().target == Target::ToolCall);
        let problem = if is_call { problem } else { problem.with_code(code) };
        let mut response = closing(problem.answer());
        let bearer = self.challenge(parts).unwrap_or(HeaderValue::from_static("Bearer"));
        response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        response
    }

    pub(crate) fn proofs(&self) -> Proofs<'_> {
        Proofs {
            gateway: &self.gateway,
            control: self.options.control.as_ref(),
            admin: self.options.admin_token.as_ref(),
        }
    }

    async fn mcp(&self, visit: Visit, body: RequestBody) -> Response {
        match visit.parts.method {
            Method::POST => post::receive(Post { door: self, visit: &visit }, body).await,
            Method::GET => legacy::get(self, &visit),
            Method::DELETE => Box::pin(legacy::delete(self, &visit)).await,
            _ => wrong_method("GET, POST, DELETE"),
        }
    }

    async fn tool_call(&self, visit: Visit, body: RequestBody) -> Response {
        let path = visit.parts.uri.path();
        let name = routes::find(path).map_or("", |place| place.segments[1]);
        match visit.parts.method {
            Method::POST => calling::call(Post { door: self, visit: &visit }, name, body).await,
            _ => wrong_method("POST"),
        }
    }

    /// Serves the files of a run.
    async fn files(
        &self,
        run: Arc<RunView>,
        place: &Place<'_>,
        parts: &Parts,
        body: RequestBody,
    ) -> Response {
        if run.policy.profile().is_some() {
            // Files have the servers' own names, which a profile may hide or change.
            self.denied(&Principal::Run(run), parts.uri.path());
            return not_found();
        }
        match place.route(&parts.method) {
            Some(_) => {
                let path = place.segments[0];
                VfsRequest { door: self, run, path, parts }.answer(body).await
            }
            None => wrong_method(&place.allowed()),
        }
    }

    /// The run and the endpoint of a path. If the run may not enter it, returns the answer, which
    /// is the same as for a server or a profile that does not exist (D5).
    fn entered(
        &self,
        place: &Place<'_>,
        route: &Route,
        run: Arc<RunView>,
        parts: &Parts,
    ) -> Result<(Arc<RunView>, Endpoint), Box<Response>> {
        let segment = place.segments[0];
        let elsewhere = place.workspace.filter(|named| *named != run.workspace.as_str());
        if let Some(named) = elsewhere {
            self.denied(&Principal::Run(run), parts.uri.path());
            return Err(Box::new(no_workspace(named)));
        }
        let answer = match route.target {
            Target::InProfile => match self.gateway.in_profile(&run, segment) {
                Some(seen) => return Ok((seen, Endpoint::Aggregated)),
                None => self.no_profile(segment, &run),
            },
            _ => match self.endpoint(route, segment, &run) {
                Some(endpoint) => return Ok((run, endpoint)),
                None => self.no_endpoint(segment, &run),
            },
        };
        self.denied(&Principal::Run(run), parts.uri.path());
        Err(Box::new(answer))
    }

    /// The endpoint of a path. If the run lacks the server, the answer is the same as for a server
    /// that does not exist (D5).
    fn endpoint(&self, route: &Route, segment: &str, run: &RunView) -> Option<Endpoint> {
        if route.target == Target::Aggregated {
            return Some(Endpoint::Aggregated);
        }
        self.gateway.endpoint(run, segment)
    }

    /// The answer to a request for a server that the run lacks. It may suggest a similar name, but
    /// only of a server that the run has (D5).
    fn no_endpoint(&self, segment: &str, run: &RunView) -> Response {
        if run.policy.profile().is_some() {
            let text = "this client has one address, /mcp, with all servers of its profile";
            return Problem::new(ErrorKind::NotFound, text).answer();
        }
        let known = self.gateway.aliases(run);
        let meant = nearest(segment, known.iter().map(Alias::as_str));
        let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        let text = format!("this run has no server of this name{meant}");
        Problem::new(ErrorKind::NotFound, text).answer()
    }

    /// The answer to a request for a profile that does not exist, or that the run may not choose.
    /// It names profiles only to clients that may choose any (D5).
    fn no_profile(&self, name: &str, run: &RunView) -> Response {
        let text = match self.gateway.may_choose_profile(run) {
            true => {
                let known = self.gateway.registry().profiles();
                let meant = meant_hint(name, known.iter().map(|one| one.name.as_str()));
                let list = narthex("profiles list", &[]);
                format!("there is no usable profile of this name{meant}; `{list}` shows all")
            }
            false => "this run has no profile of this name".to_owned(),
        };
        Problem::new(ErrorKind::NotFound, text).answer()
    }

    /// Answers whether the daemon can serve requests: it is not stopping, and its store answers.
    /// Servers that are still connecting do not count, since a call waits for its server.
    ///
    /// With `verbose`, principals that may see servers get one line for each server. Other callers
    /// get the same answer as without it.
    async fn readiness(&self, parts: &Parts) -> Response {
        let is_ready = match self.options.closing.is_cancelled() {
            true => Err(STOPPING),
            false if !self.reach.answers(self.options.control.as_ref()).await => Err(UNREACHABLE),
            false => Ok(()),
        };
        let health = health(&parts.method, is_ready);
        if parts.uri.query() != Some("verbose") {
            return health;
        }
        let principal = match authenticate(self.proofs(), || None, parts).await {
            Ok(Some(Caller::Principal(principal))) => principal,
            Ok(Some(Caller::Client(_) | Caller::Delegated(_) | Caller::Foreign(..)) | None)
            | Err(_) => return health,
        };
        let nowhere = || Err(Problem::new(ErrorKind::NotFound, "nothing is here"));
        if authorize(Access::Shared, &principal, nowhere).is_err() {
            return health;
        }
        let lines = status::readiness(&self.gateway.registry().snapshot(), &principal);
        respond::lines(health.status(), lines + is_ready.err().unwrap_or(FINE))
    }
}

/// The answer of a health route: that all is well, or what is wrong.
fn health(method: &Method, is_fine: Result<(), &'static str>) -> Response {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return wrong_method("GET, HEAD");
    }
    match is_fine {
        Ok(()) => text(StatusCode::OK, FINE),
        Err(wrong) => text(StatusCode::SERVICE_UNAVAILABLE, wrong),
    }
}

/// The last result of asking the store whether it answers. The store is asked at most once a
/// second, regardless of the number of requests.
#[derive(Debug, Default)]
struct Reach(tokio::sync::Mutex<Option<(Instant, bool)>>);

impl Reach {
    /// Asks the store, unless it was asked within the last second. True if there is no store.
    async fn answers(&self, control: Option<&Control>) -> bool {
        let Some(store) = control.and_then(Control::store) else { return true };
        let mut known = self.0.lock().await;
        if let Some((at, answers)) = *known
            && at.elapsed() < REACHED_FOR
        {
            return answers;
        }
        let found = store.workspaces().find(&WorkspaceId::default()).await;
        if let Err(error) = &found {
            tracing::warn!("the daemon is not ready, as its store cannot be reached: {error}");
        }
        *known = Some((Instant::now(), found.is_ok()));
        found.is_ok()
    }
}

/// An authenticated request to an MCP endpoint, without its body.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) run: Arc<RunView>,
    pub(crate) endpoint: Endpoint,
    pub(crate) parts: Parts,
}

/// The answer to a run's request for a workspace that is not its own. It is the same as for one
/// that does not exist (D5), and names no command (D28).
fn no_workspace(named: &str) -> Response {
    match WorkspaceId::new(named) {
        Ok(id) => {
            Problem::new(ErrorKind::NotFound, format!("there is no workspace `{id}`")).answer()
        }
        Err(_unfit) => not_found(),
    }
}

pub(crate) fn not_found() -> Response {
    Problem::new(ErrorKind::NotFound, "nothing is here").answer()
}

/// Refuses a method. `allowed` lists the methods that exist, in the form of the header `Allow`.
pub(crate) fn wrong_method(allowed: &str) -> Response {
    let problem = Problem::new(ErrorKind::Invalid, "this method is not allowed here");
    let mut response = problem.with_status(StatusCode::METHOD_NOT_ALLOWED).answer();
    // The text comes from the table of routes, so it is always a valid header value.
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}
