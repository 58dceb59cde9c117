//! The address under which notifications name a run's grant request (D15). It leads to the
//! console's page of the request, and takes the answer of a human whom the API admits.

use http::StatusCode;
use narthex_control::{ConsentError, connection_path, decision_path};
use narthex_model::{GrantRequestId, ServerId, WorkspaceId};

use super::{
    Answered, Kept, Visitor,
    authorize::onward_to_consent,
    connection,
    cookie::ONWARD,
    nothing,
    page::{escaped, html},
    redirect,
};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    deciding::{Deciding, approval_path},
    problem::Problem,
    respond::Response,
    routes::ADMIN,
    shapes::DecisionForm,
};

impl Visitor<'_> {
    /// Leads to the console's page of a run's grant request. A browser that is not signed in gets
    /// there after the sign-in.
    pub(super) async fn decision(&self) -> Answered {
        let (workspace, id) = self.place()?;
        let Some((_, signed_in)) = self.session()? else {
            let mut response =
                self.ways_in("You decide the request of an agent after you sign in.");
            let onward = format!("{workspace}/{}", id.to_text());
            self.jar().set(&mut response, Kept::Onward, &onward, ONWARD);
            return Ok(response);
        };
        let principal = Principal::Human(signed_in);
        authorize(Access::Member(ADMIN), &principal, || Ok(workspace.clone()))?;
        let row = self.control.grant_request(&workspace, &id.to_text()).await?;
        redirect(&approval_path(&row.workspace, &row.id.to_text()))
    }

    /// Approves or denies the request.
    pub(super) async fn decide(&self, body: RequestBody) -> Answered {
        let (workspace, id) = self.place()?;
        let (form, id) = (self.form::<DecisionForm>(body).await?, id.to_text());
        let (token, signed_in) = self.checked_session(Some(&form.csrf))?;
        let principal = Principal::Human(signed_in.clone());
        authorize(Access::Member(ADMIN), &principal, || Ok(workspace.clone()))?;
        let (control, signed_in) = (self.control, &signed_in);
        let deciding = Deciding { control, token, signed_in, workspace: &workspace, id: &id };
        let here = decision_path(&workspace, &id);
        match deciding.decide(form).await? {
            Ok(()) => redirect(&here),
            Err(error) => Ok(used(&error, &here)),
        }
    }

    /// The page that a browser gets after the sign-in: the page that it asked for before.
    pub(super) fn onward(&self) -> String {
        let kept = self.jar().find(&self.parts.headers, Kept::Onward);
        if let Some(consent) = kept.and_then(onward_to_consent) {
            return consent;
        }
        if let Some(page) = kept.and_then(self.door.beside.onward) {
            return page;
        }
        let place = kept.and_then(|kept| {
            let (workspace, id) = kept.split_once('/')?;
            let workspace = WorkspaceId::new(workspace).ok()?;
            if let Some(server) = id.strip_prefix(connection::KEPT) {
                let server = ServerId::new(server).ok()?;
                return Some(connection_path(&workspace, server.as_str()));
            }
            Some(decision_path(&workspace, &GrantRequestId::parse(id)?.to_text()))
        });
        place.unwrap_or_else(|| "/".to_owned())
    }

    pub(super) fn place(&self) -> Result<(WorkspaceId, GrantRequestId), Problem> {
        let workspace = WorkspaceId::new(&self.segment()).map_err(|_unfit| nothing())?;
        let id = GrantRequestId::parse(&self.nth_segment(1)).ok_or_else(nothing)?;
        Ok((workspace, id))
    }
}

/// The answer to a decision from a page that was already used, or was open for too long. It decides
/// nothing, and links to a fresh page.
fn used(error: &ConsentError, path: &str) -> Response {
    let title = "Please check again";
    let main = format!(
        "<h1>{title}</h1>\n<p role=\"alert\">No decision was made: {}.</p>\n<a class=\"button\" \
         href=\"{}\">Show the request again</a>\n",
        escaped(&error.to_string()),
        escaped(path)
    );
    html(StatusCode::CONFLICT, title, "", &main)
}
