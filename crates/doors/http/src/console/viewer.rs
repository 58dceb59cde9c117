//! A request of a page by a signed-in human who may know the workspace.

use std::sync::Arc;

use http::StatusCode;
use narthex_console::{NavLink, Told, ToldPart, html};
use narthex_control::{By, Control, SignedIn};
use narthex_model::WorkspaceId;
use narthex_run_events::Operation;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::answer::{self, Answered, is_part};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    door::Door,
    problem::Problem,
    servers::Query,
    shapes::CsrfForm,
    signin::BrowserRequest,
};

/// The beginning of the cookie's value for a page to open after the sign-in.
pub(super) const KEPT: &str = "page:";

/// The beginning of the paths of operators' pages, which belong to no workspace.
const OPERATOR: &str = "/operator";

/// The rest of the path of a page for operators; `None` for every other path.
pub(super) fn of_operators(path: &str) -> Option<&str> {
    match path.strip_prefix(OPERATOR)? {
        "" => Some(""),
        rest => rest.strip_prefix('/'),
    }
}

/// The path of a page for operators.
pub(super) fn operator_path(rest: &str) -> String {
    format!("{OPERATOR}/{rest}")
}

/// A form of a page, which repeats the value that only our pages can read.
pub(super) trait Form: DeserializeOwned {
    /// That value.
    fn csrf(&self) -> &str;
}

impl Form for CsrfForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The place of a request.
pub(super) struct Place<'a> {
    pub(super) workspace: WorkspaceId,
    /// The segments of the path that match braces of the page, still encoded.
    pub(super) segments: [&'a str; 2],
    /// The pages in the navigation that the human may open.
    pub(super) nav: Vec<NavLink>,
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
    pub(super) nav: Vec<NavLink>,
    /// The last operations of the run that the page's stream follows.
    pub(super) recent: Vec<Operation>,
    segments: [&'a str; 2],
}

impl<'a> Viewer<'a> {
    pub(super) fn new(
        door: &'a Arc<Door>,
        browser: BrowserRequest<'a>,
        place: Place<'a>,
        signed_in: SignedIn,
        csrf: String,
    ) -> Self {
        let Place { workspace, segments, nav } = place;
        let principal = Principal::Human(signed_in.clone());
        Self {
            door,
            browser,
            workspace,
            principal,
            signed_in,
            csrf,
            nav,
            recent: Vec::new(),
            segments,
        }
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

    /// True on the pages of operators. The workspace is then that of the daemon.
    pub(super) fn is_of_operators(&self) -> bool {
        of_operators(self.browser.parts.uri.path()).is_some()
    }

    /// The workspace whose audit the page shows; `None` for the installation.
    pub(super) fn audited(&self) -> Option<WorkspaceId> {
        (!self.is_of_operators()).then(|| self.workspace.clone())
    }

    /// The path of a page beside this one: of this workspace, or of operators.
    pub(super) fn path(&self, rest: &str) -> String {
        match self.is_of_operators() {
            true => operator_path(rest),
            false => self.in_workspace(rest),
        }
    }

    /// The path of a page that the navigation names; `None` if the human may not open it.
    pub(super) fn in_nav(&self, page: &str) -> Option<String> {
        let path = self.path(page);
        self.nav.iter().any(|link| link.href == path).then_some(path)
    }

    /// The path of a page of this workspace.
    pub(super) fn in_workspace(&self, rest: &str) -> String {
        format!("/w/{}/{rest}", self.workspace)
    }

    /// The path of an action of a named object of this workspace.
    pub(super) fn action(&self, place: &str, name: &str, verb: &str) -> String {
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
        self.path(&format!("{place}/{name}/{verb}"))
    }

    /// A segment of the path that matches braces of the page, decoded.
    pub(super) fn segment(&self, index: usize) -> String {
        let segment = self.segments.get(index).copied().unwrap_or_default();
        percent_decode_str(segment).decode_utf8_lossy().into_owned()
    }

    /// The parameters of the address. Unknown ones are refused.
    pub(super) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::of_form(&self.browser.parts.uri, known)
    }

    /// Reads the form of a page, and checks that it is ours.
    pub(super) async fn form<F: Form>(&self, body: RequestBody) -> Result<F, Problem> {
        let form: F = self.browser.form(body).await?;
        self.browser.checked_session(Some(form.csrf()))?;
        Ok(form)
    }

    /// Reads a form of at most this many bytes, and checks that it is ours.
    pub(super) async fn form_within<F: Form>(
        &self,
        body: RequestBody,
        most: usize,
    ) -> Result<F, Problem> {
        let form: F = self.browser.form_within(body, most).await?;
        self.browser.checked_session(Some(form.csrf()))?;
        Ok(form)
    }

    /// True if the script asks for a part of a page.
    pub(super) fn wants_part(&self) -> bool {
        is_part(self.browser.parts)
    }

    /// The answer to an action: the sentence as a part of the open page, or without the script the
    /// page at `back`.
    pub(super) fn done(&self, told: Told, back: &str) -> Answered {
        match self.wants_part() {
            true => Ok(answer::page(StatusCode::OK, html(&ToldPart { told }))),
            false => answer::redirect(back),
        }
    }
}
