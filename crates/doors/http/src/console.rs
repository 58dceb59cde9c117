//! The console: pages on which people look, decide and mend (decision 153).
//!
//! [`PAGES`] is the table of all pages. Each has a file here with its handlers, and a view and a
//! template in the crate `console`. A page calls the same functions of the control plane as the
//! API, and asks [`authorize`](crate::auth::authorize) with the access of the API's route: it has
//! no right of its own. Pages are no part of the API, and so not in its table of routes.

mod answer;
mod home;
mod live;
mod page;
mod rows;
mod search;
mod servers;
mod viewer;
mod waits;

use std::sync::Arc;

use http::{Method, header, request::Parts};
use narthex_console::{assets, html, pages::kitchen_sink};
use narthex_control::SignedIn;
use narthex_model::{ErrorKind, WorkspaceId};
use percent_encoding::percent_decode_str;

pub(crate) use self::live::PageStreams;
use self::{
    answer::{asset, bare_fault, page as html_page, redirect},
    live::Topic,
    page::{Page, Spot},
    viewer::Viewer,
};
use crate::{
    auth::{Principal, authorize},
    body::RequestBody,
    door::Door,
    listener::single,
    problem::Problem,
    respond::Response,
    routes::EVERY,
    signin::BrowserRequest,
};

/// The beginning of the paths of files that pages load.
pub(crate) const FILES: &str = "/assets/";
/// The beginning of the paths of pages.
const WORKSPACES: &str = "/w/";
/// The beginning of the cookie's value for a page to open after the sign-in.
const KEPT: &str = "page:";

/// All pages, by file. The order is that of the navigation.
const PAGES: &[&[Page]] = &[home::PAGES, servers::PAGES, search::PAGES, live::PAGES];
/// The live parts of all pages.
const TOPICS: &[&Topic] = &[&waits::TOPIC, &home::TOPIC, &servers::TOPIC];

type Answered = Result<Response, Problem>;

/// A request for the console.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'p> {
    /// The first page of the human, for browsers alone.
    Root,
    /// A file that pages load.
    File(&'static assets::Asset),
    /// The page with samples of all components, in debug builds.
    Samples,
    /// A workspace without a page.
    Workspace(&'p str),
    /// A page of a workspace.
    Page(&'p str, Spot<'p>),
    /// A place in a workspace without a page.
    Nothing(&'p str),
}

impl<'p> Wanted<'p> {
    /// The part of the console that a request asks for; `None` for all other requests.
    pub(crate) fn of(parts: &'p Parts) -> Option<Self> {
        let path = parts.uri.path();
        if path == "/" {
            return is_for_a_person(parts).then_some(Self::Root);
        }
        if path.starts_with(FILES) {
            let samples =
                (cfg!(debug_assertions) && path == kitchen_sink::PATH).then_some(Self::Samples);
            return assets::find(path).map(Self::File).or(samples);
        }
        Some(match path.strip_prefix(WORKSPACES)?.split_once('/') {
            None => Self::Workspace(path.strip_prefix(WORKSPACES)?),
            Some((workspace, rest)) => match page::find(rest) {
                Some(spot) => Self::Page(workspace, spot),
                None => Self::Nothing(workspace),
            },
        })
    }

    /// Answers the request.
    pub(crate) async fn answer(
        self,
        door: &Arc<Door>,
        parts: &Parts,
        body: RequestBody,
    ) -> Response {
        let Some(control) = door.options.control.as_ref() else { return crate::door::not_found() };
        let browser = BrowserRequest { door, control, parts };
        let answered = match self {
            Self::File(file) => Ok(asset(file, parts)),
            Self::Samples => Ok(html_page(http::StatusCode::OK, html(&kitchen_sink::page()))),
            Self::Root | Self::Workspace(_) | Self::Page(..) | Self::Nothing(_) => {
                self.signed_in(door, browser, body).await
            }
        };
        answered.unwrap_or_else(|problem| bare_fault(&problem, parts))
    }

    /// Answers a request that needs a signed-in human.
    async fn signed_in(
        self,
        door: &Arc<Door>,
        browser: BrowserRequest<'_>,
        body: RequestBody,
    ) -> Answered {
        if let Some(elsewhere) = browser.at_the_public_origin()? {
            return Ok(elsewhere);
        }
        let path = browser.parts.uri.path();
        let Some((token, signed_in)) = browser.session()? else {
            return Ok(browser.ways_in_then(&format!("{KEPT}{path}")));
        };
        let (workspace, spot) = match self {
            Self::Root => return redirect(&first_page(browser, &signed_in)?),
            Self::Workspace(workspace) => return redirect(&format!("{WORKSPACES}{workspace}/")),
            Self::Page(workspace, spot) => (workspace, spot),
            Self::Nothing(workspace) => (workspace, Spot::nowhere()),
            Self::File(_) | Self::Samples => return Err(nothing()),
        };
        let workspace = open(browser, workspace, &signed_in)?;
        let viewer = Viewer::new(door, browser, (workspace, spot), (token, signed_in));
        Ok(viewer.answer(body).await)
    }
}

/// Every page with its methods: the path below a workspace, the method, and the callers.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str, crate::Access)> {
    page::all().map(|page| (page.path, page.method, page.access))
}

/// True for the path of a page or of a file of one.
pub(crate) fn is_page(path: &str) -> bool {
    path.starts_with(WORKSPACES) || path.starts_with(FILES)
}

/// The page that the cookie of a sign-in names; `None` if it is none of ours, such as in a cookie
/// that another site has planted.
pub(crate) fn onward(kept: &str) -> Option<String> {
    let path = kept.strip_prefix(KEPT)?;
    if path == "/" {
        return Some(path.to_owned());
    }
    let (workspace, rest) = path.strip_prefix(WORKSPACES)?.split_once('/')?;
    WorkspaceId::new(workspace).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte);
    let is_safe = rest.bytes().all(is_plain) && !rest.split('/').any(|part| part == "..");
    (is_safe && page::find(rest)?.is_read()).then(|| path.to_owned())
}

/// True if a person's browser asks for a page. Programs that take anything get the answer of the
/// API.
fn is_for_a_person(parts: &Parts) -> bool {
    let accepted = single(&parts.headers, &header::ACCEPT).flatten();
    matches!(parts.method, Method::GET | Method::HEAD)
        && accepted.is_some_and(|accepted| accepted.contains("text/html"))
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
    let access = crate::Access::Member(EVERY);
    if let Err(problem) = authorize(access, &principal, || Ok(workspace.clone())) {
        browser.door.denied(&principal, browser.parts.uri.path());
        return Err(problem);
    }
    browser.control.workspace(&workspace)?;
    Ok(workspace)
}

fn nothing() -> Problem {
    Problem::new(ErrorKind::NotFound, "nothing is here")
}

#[cfg(test)]
mod tests;
