//! A request of a page by a signed-in human who may know the workspace.

use std::sync::Arc;

use http::{HeaderValue, StatusCode, header};
use narthex_console::{
    Account, Frame, NavLink, Told, Workspaces, html,
    pages::fault::FaultPage,
    parts::{Same, Words},
};
use narthex_control::{By, Control, SignedIn};
use narthex_model::{ErrorKind, WorkspaceId};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::{
    Answered,
    answer::{self, bare_fault, is_part},
    nothing,
    page::{self, Page, Spot},
    waits::Waits,
};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    door::Door,
    problem::Problem,
    respond::Response,
    servers::Query,
    signin::BrowserRequest,
};

/// A form of a page, which repeats the value that only our pages can read.
pub(super) trait Form: DeserializeOwned {
    /// That value.
    fn csrf(&self) -> &str;
}

impl Form for crate::shapes::CsrfForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The words at the head of a page.
pub(super) struct Head {
    pub(super) title: Words,
    pub(super) sentence: &'static str,
    /// The page as a command and as a request.
    pub(super) same: Option<Same>,
}

/// A request of a page.
pub(super) struct Viewer<'a> {
    pub(super) door: &'a Arc<Door>,
    pub(super) browser: BrowserRequest<'a>,
    pub(super) workspace: WorkspaceId,
    pub(super) principal: Principal,
    pub(super) signed_in: SignedIn,
    /// The value that forms of this login session repeat.
    pub(super) csrf: String,
    spot: Spot<'a>,
    token: &'a str,
}

impl<'a> Viewer<'a> {
    pub(super) fn new(
        door: &'a Arc<Door>,
        browser: BrowserRequest<'a>,
        (workspace, spot): (WorkspaceId, Spot<'a>),
        (token, signed_in): (&'a str, SignedIn),
    ) -> Self {
        let (principal, csrf) =
            (Principal::Human(signed_in.clone()), browser.control.form_token(token));
        Self { door, browser, workspace, principal, signed_in, csrf, spot, token }
    }

    /// Answers the request, also if it is refused or fails.
    pub(super) async fn answer(&self, body: RequestBody) -> Response {
        let answered = match self.page() {
            Ok(page) => (page.handler)(self, body).await,
            Err(problem) => Err(problem),
        };
        match answered {
            Ok(response) => response,
            Err(problem) => self.fault(&problem).await,
        }
    }

    /// The page, if the human may open it.
    fn page(&self) -> Result<&'static Page, Problem> {
        if self.spot.is_nowhere() {
            return Err(nothing());
        }
        let page = self.spot.page(&self.browser.parts.method).ok_or_else(|| {
            let text = "this method is not allowed here";
            let problem = Problem::new(ErrorKind::Invalid, text);
            problem.with_status(StatusCode::METHOD_NOT_ALLOWED)
        })?;
        self.check(page.access).inspect_err(|_refused| {
            self.door.denied(&self.principal, self.browser.parts.uri.path());
        })?;
        Ok(page)
    }

    async fn fault(&self, problem: &Problem) -> Response {
        let head = Head {
            title: Words::new("That did not work"),
            sentence: "The request was refused, or has failed. Nothing was changed by it.",
            same: None,
        };
        let frame = match is_part(self.browser.parts) {
            true => None,
            false => self.frame(head).await.ok(),
        };
        let mut response = match frame {
            Some(frame) => {
                let page = FaultPage { frame, fault: answer::fault(problem) };
                answer::page(answer::status(problem), html(&page))
            }
            None => bare_fault(problem, self.browser.parts),
        };
        if problem.status() == StatusCode::METHOD_NOT_ALLOWED
            && let Ok(allowed) = HeaderValue::from_str(&self.spot.allowed())
        {
            response.headers_mut().insert(header::ALLOW, allowed);
        }
        response
    }

    /// The frame of the page.
    pub(super) async fn frame(&self, head: Head) -> Result<Frame, Problem> {
        let waits = Waits::read(self).await?;
        self.frame_with(head, &waits)
    }

    /// The frame of a page that has read what waits.
    pub(super) fn frame_with(&self, head: Head, waits: &Waits) -> Result<Frame, Problem> {
        let Head { title, sentence, same } = head;
        let known = self.control().workspaces()?;
        let known = known.into_iter().filter(|one| self.principal.may_see(&one.id));
        let workspaces = Workspaces {
            current: self.workspace.to_string(),
            all: known.map(|one| (one.id.to_string(), Words::new(&one.name))).collect(),
        };
        Ok(Frame {
            title,
            sentence: Words::new(sentence),
            workspaces,
            nav: self.nav(),
            waiting: waits.shown(self),
            me: Account {
                name: Words::new(self.signed_in.account.name.as_str()),
                way: way(self.signed_in.method.as_str()),
            },
            csrf: self.csrf.clone(),
            searched: Words::default(),
            live: None,
            told: None,
            same,
        })
    }

    fn nav(&self) -> Vec<NavLink> {
        let here = self.spot.page(&http::Method::GET).map(|page| page.path);
        let shown = page::all().filter(|page| self.check(page.access).is_ok());
        let link = |page: &'static Page| {
            let nav = page.nav?;
            let is_current = here == Some(page.path);
            Some(NavLink {
                href: self.path(page.path),
                label: nav.label,
                icon: nav.icon,
                is_current,
            })
        };
        shown.filter_map(link).collect()
    }

    /// Checks whether the human has this access, as the API would.
    pub(super) fn check(&self, access: Access) -> Result<(), Problem> {
        authorize(access, &self.principal, || Ok(self.workspace.clone()))
    }

    /// True if the human has this access.
    pub(super) fn may(&self, access: Access) -> bool {
        self.check(access).is_ok()
    }

    /// True if the servers of the configuration belong to this workspace, and the human may see
    /// them.
    pub(super) fn sees_servers(&self) -> bool {
        self.may(Access::Shared) && self.workspace == *self.control().home()
    }

    pub(super) fn control(&self) -> &'a Control {
        self.browser.control
    }

    /// The actor of the human's changes.
    pub(super) fn by(&self) -> By {
        self.principal.actor()
    }

    /// The path of a page of this workspace.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/w/{}/{rest}", self.workspace)
    }

    /// A segment of the path that matches braces of the page, decoded.
    pub(super) fn segment(&self, index: usize) -> String {
        let segment = self.spot.segments.get(index).copied().unwrap_or_default();
        percent_decode_str(segment).decode_utf8_lossy().into_owned()
    }

    /// The parameters of the address. Unknown ones are refused.
    pub(super) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::of(&self.browser.parts.uri, known)
    }

    /// Reads the form of a page, and checks that it is ours.
    pub(super) async fn form<F: Form>(&self, body: RequestBody) -> Result<F, Problem> {
        let form: F = self.browser.form(body).await?;
        self.browser.checked_session(Some(form.csrf()))?;
        Ok(form)
    }

    /// The token of the login session.
    pub(super) fn token(&self) -> &'a str {
        self.token
    }

    /// True if the script asks for a part of a page.
    pub(super) fn wants_part(&self) -> bool {
        is_part(self.browser.parts)
    }

    /// The answer to an action: the sentence as a part of the open page, or without the script the
    /// page at `back`.
    pub(super) fn done(&self, told: Told, back: &str) -> Answered {
        match self.wants_part() {
            true => Ok(answer::page(StatusCode::OK, html(&narthex_console::ToldPart { told }))),
            false => answer::redirect(back),
        }
    }
}

/// The sign-in in words.
fn way(method: &str) -> &'static str {
    match method {
        "passkey" => "with a passkey",
        "oidc" => "at a provider",
        "link" => "with a link",
        _ => "with an invitation",
    }
}
