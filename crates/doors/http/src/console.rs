//! The console: pages on which people look, decide and mend (decision 153).
//!
//! [`PAGES`] is the table of all pages. Each has a file here with its handlers, and a view and a
//! template in the crate `console`. A page calls the same functions of the control plane as the
//! API, and asks [`authorize`] with the access of the API's route: it has no right of its own.
//! Pages are no part of the API, and so not in its table of routes.
//!
//! Files import in one direction: pages the frame and the live parts, these the viewer, and this
//! file all pages.

mod agents;
mod answer;
mod approval;
mod approvals;
mod asked;
mod audit;
mod catalog;
mod clients;
mod connect;
mod frame;
mod grants;
mod home;
mod links;
mod live;
mod me;
mod nav;
mod operator;
mod page;
mod play;
mod policy;
mod registry;
mod rows;
mod runs;
mod search;
mod secrets;
mod sent;
mod server;
mod servers;
mod settings;
mod stream;
mod tools;
mod topics;
mod viewer;
mod waits;

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use narthex_console::{
    assets, html,
    pages::{fault::FaultPage, kitchen_sink},
    parts::Words,
};
use narthex_control::SignedIn;
use narthex_model::{ErrorKind, WorkspaceId};
use percent_encoding::percent_decode_str;

use self::{
    answer::{Answered, asset, bare_fault, guarded, is_part, nothing, redirect},
    frame::{Head, frame},
    page::{Page, Spot, Table},
    viewer::{KEPT, Place, Viewer, of_operators},
};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    door::{Beside, Door, KEPT_FILES},
    listener::single,
    problem::Problem,
    respond::Response,
    routes::EVERY,
    signin::BrowserRequest,
};

/// The beginning of the paths of pages.
const WORKSPACES: &str = "/w/";

/// All pages, by file. The order of the navigation is that of [`nav::GROUPS`].
const PAGES: Table = Table(&[
    home::PAGES,
    approvals::PAGES,
    approval::PAGES,
    servers::PAGES,
    server::PAGES,
    tools::PAGES,
    play::PAGES,
    catalog::PAGES,
    registry::PAGES,
    secrets::PAGES,
    agents::PAGES,
    runs::PAGES,
    grants::PAGES,
    connect::PAGES,
    clients::PAGES,
    policy::PAGES,
    audit::PAGES,
    settings::PAGES,
    me::PAGES,
    search::PAGES,
    stream::PAGES,
]);

/// The pages of operators, which belong to no workspace.
const OPERATOR_PAGES: Table = Table(&[operator::PAGES, audit::OF_INSTALLATION]);

/// The pages for the door, which does not import them.
pub(crate) const BESIDE: Beside = Beside {
    is_page,
    takes: |parts| Wanted::of(parts).is_some(),
    answer: |door, parts, body| Box::pin(answer_to(door, parts, body)),
    onward,
};

/// A request for the console.
#[derive(Debug, Clone, Copy)]
enum Wanted<'p> {
    /// The first page of the human, for browsers alone.
    Root,
    /// A file that pages load.
    File(&'static assets::Asset),
    /// The page with samples of all components, in debug builds.
    Samples,
    /// A workspace without a page.
    Workspace(&'p str),
    /// A place in a workspace.
    Place(&'p str, &'p str),
    /// A place among the pages of operators.
    Operator(&'p str),
}

impl<'p> Wanted<'p> {
    /// The part of the console that a request asks for; `None` for all other requests.
    fn of(parts: &'p Parts) -> Option<Self> {
        let path = parts.uri.path();
        if path == "/" {
            return is_for_a_person(parts).then_some(Self::Root);
        }
        if path.starts_with(KEPT_FILES) {
            let is_samples = cfg!(debug_assertions) && path == kitchen_sink::PATH;
            return assets::find(path).map(Self::File).or(is_samples.then_some(Self::Samples));
        }
        if let Some(rest) = of_operators(path) {
            return Some(Self::Operator(rest));
        }
        let rest = path.strip_prefix(WORKSPACES)?;
        Some(match rest.split_once('/') {
            None => Self::Workspace(rest),
            Some((workspace, rest)) => Self::Place(workspace, rest),
        })
    }
}

/// Every page with its methods: the path below a workspace, the method, and the callers.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str, Access)> {
    PAGES.all().map(|page| (page.path, page.method, page.access))
}

/// Every page of operators with its methods: the path below `/operator`, the method, and the
/// callers.
pub fn operator_pages() -> impl Iterator<Item = (&'static str, &'static str, Access)> {
    OPERATOR_PAGES.all().map(|page| (page.path, page.method, page.access))
}

/// True for the path of a page or of a file of one.
fn is_page(path: &str) -> bool {
    path.starts_with(WORKSPACES) || path.starts_with(KEPT_FILES) || of_operators(path).is_some()
}

/// The page that the cookie of a sign-in names; `None` if it is none of ours, such as in a cookie
/// that another site has planted.
fn onward(kept: &str) -> Option<String> {
    let path = kept.strip_prefix(KEPT)?;
    if path == "/" {
        return Some(path.to_owned());
    }
    let (table, rest) = match of_operators(path) {
        Some(rest) => (OPERATOR_PAGES, rest),
        None => {
            let (workspace, rest) = path.strip_prefix(WORKSPACES)?.split_once('/')?;
            WorkspaceId::new(workspace).ok()?;
            (PAGES, rest)
        }
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte);
    let is_safe = rest.bytes().all(is_plain) && !rest.split('/').any(|part| part == "..");
    (is_safe && table.find(rest).is_read()).then(|| path.to_owned())
}

/// True if a person's browser asks for a page. Programs that take anything get the answer of the
/// API.
fn is_for_a_person(parts: &Parts) -> bool {
    let accepted = single(&parts.headers, &header::ACCEPT).flatten();
    matches!(parts.method, Method::GET | Method::HEAD)
        && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Answers a request for the console.
async fn answer_to(door: &Arc<Door>, parts: &Parts, body: RequestBody) -> Response {
    let answered = match (Wanted::of(parts), &door.options.control) {
        (Some(Wanted::File(file)), _) => Ok(asset(file, parts)),
        (Some(Wanted::Samples), _) => Ok(answer::page(StatusCode::OK, html(&kitchen_sink::page()))),
        (Some(wanted), Some(control)) => {
            let browser = BrowserRequest { door, control, parts };
            to_human(door, browser, wanted, body).await
        }
        (None, _) | (_, None) => Err(nothing()),
    };
    guarded(answered.unwrap_or_else(|problem| bare_fault(&problem, parts)))
}

/// Answers a request that needs a signed-in human.
async fn to_human(
    door: &Arc<Door>,
    browser: BrowserRequest<'_>,
    wanted: Wanted<'_>,
    body: RequestBody,
) -> Answered {
    if let Some(elsewhere) = browser.at_the_public_origin()? {
        return Ok(elsewhere);
    }
    browser.is_opened_or_ours()?;
    let path = browser.parts.uri.path();
    let Some((token, signed_in)) = browser.session()? else {
        return Ok(browser.ways_in_then(&format!("{KEPT}{path}")));
    };
    let (workspace, spot) = match wanted {
        Wanted::Root => return redirect(&first_page(browser, &signed_in)?),
        Wanted::Workspace(workspace) => {
            WorkspaceId::new(workspace).map_err(|_unfit| nothing())?;
            return redirect(&format!("{WORKSPACES}{workspace}/"));
        }
        Wanted::Place(workspace, rest) => (open(browser, workspace, &signed_in)?, PAGES.find(rest)),
        Wanted::Operator(rest) => {
            (open_to_operators(browser, &signed_in)?, OPERATOR_PAGES.find(rest))
        }
        Wanted::File(_) | Wanted::Samples => return Err(nothing()),
    };
    let principal = Principal::Human(signed_in.clone());
    let nav = match of_operators(path) {
        Some(_) => nav::of_operators(OPERATOR_PAGES, &spot),
        None => nav::links(PAGES, &spot, &workspace, &principal),
    };
    let place = Place { workspace, segments: spot.segments, nav };
    let csrf = browser.control.form_token(token);
    let viewer = Viewer::new(door, browser, place, signed_in, csrf);
    let answered = match page_of(&viewer, &spot) {
        Ok(page) => (page.handler)(&viewer, body).await,
        Err(problem) => Err(problem),
    };
    match answered {
        Ok(response) => Ok(response),
        Err(problem) => Ok(fault(&viewer, &spot, &problem).await),
    }
}

/// The path of the first page of a human: that of the daemon's own workspace, or of the first one
/// that the human may know. A human without any sees the page of the account.
fn first_page(browser: BrowserRequest<'_>, signed_in: &SignedIn) -> Result<String, Problem> {
    let principal = Principal::Human(signed_in.clone());
    let home = browser.control.home();
    if principal.may_see(home) {
        return Ok(format!("{WORKSPACES}{home}/"));
    }
    let all = browser.control.workspaces()?;
    let first = all.into_iter().find(|one| principal.may_see(&one.id));
    Ok(first.map_or_else(|| "/signin".to_owned(), |one| format!("{WORKSPACES}{}/", one.id)))
}

/// The workspace of the path, if it exists and the human may know it. Otherwise it is absent.
fn open(
    browser: BrowserRequest<'_>,
    segment: &str,
    signed_in: &SignedIn,
) -> Result<WorkspaceId, Problem> {
    let text = percent_decode_str(segment).decode_utf8_lossy();
    let workspace = WorkspaceId::new(&text).map_err(|_unfit| nothing())?;
    let principal = Principal::Human(signed_in.clone());
    if let Err(problem) = authorize(Access::Member(EVERY), &principal, || Ok(workspace.clone())) {
        browser.door.denied(&principal, browser.parts.uri.path());
        return Err(problem);
    }
    browser.control.workspace(&workspace)?;
    Ok(workspace)
}

/// The workspace of the daemon, on whose behalf operators see their pages. For every other human
/// these are absent, whatever their path and method.
fn open_to_operators(
    browser: BrowserRequest<'_>,
    signed_in: &SignedIn,
) -> Result<WorkspaceId, Problem> {
    let principal = Principal::Human(signed_in.clone());
    if !principal.is_operator() {
        browser.door.denied(&principal, browser.parts.uri.path());
        return Err(nothing());
    }
    Ok(browser.control.home().clone())
}

/// The page of a place, if the human may open it.
fn page_of(viewer: &Viewer<'_>, spot: &Spot<'_>) -> Result<&'static Page, Problem> {
    spot.path.ok_or_else(nothing)?;
    let page = spot.page(&viewer.browser.parts.method).ok_or_else(|| {
        let problem = Problem::new(ErrorKind::Invalid, "this method is not allowed here");
        problem.with_status(StatusCode::METHOD_NOT_ALLOWED)
    })?;
    viewer.check(page.access).inspect_err(|_refused| {
        viewer.door.denied(&viewer.principal, viewer.browser.parts.uri.path());
    })?;
    Ok(page)
}

/// The answer to a request that was refused, or has failed.
async fn fault(viewer: &Viewer<'_>, spot: &Spot<'_>, problem: &Problem) -> Response {
    let parts = viewer.browser.parts;
    let head = Head {
        title: Words::new("That did not work"),
        sentence: "The request was refused, or has failed.",
        same: None,
    };
    let frame = match is_part(parts) {
        true => None,
        false => frame(viewer, head).await.ok(),
    };
    let mut response = match frame {
        Some(frame) => {
            let page = FaultPage { frame, fault: answer::fault(problem) };
            answer::page(answer::status(problem), html(&page))
        }
        None => bare_fault(problem, parts),
    };
    if problem.status() == StatusCode::METHOD_NOT_ALLOWED
        && let Ok(allowed) = HeaderValue::from_str(&spot.allowed())
    {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

#[cfg(test)]
mod tests;
