//! The decision of a human on a run's grant request, by a page that was shown to this human (D15).
//! Each page that asks for a decision uses these functions.

use std::time::SystemTime;

use narthex_control::{
    ConsentError, Control, GrantRequestRow, GrantRequestStatus, SignedIn, decision_path,
};
use narthex_model::{ErrorKind, Timestamp, WorkspaceId};
use serde_json::{Value, json};

use crate::{
    auth::Principal,
    problem::Problem,
    shapes::{Decision, DecisionForm},
};

/// A human in a login session, and a request of a run.
#[derive(Clone, Copy)]
pub(crate) struct Deciding<'a> {
    pub(crate) control: &'a Control,
    /// The token of the login session.
    pub(crate) token: &'a str,
    pub(crate) signed_in: &'a SignedIn,
    pub(crate) workspace: &'a WorkspaceId,
    /// The id of the request.
    pub(crate) id: &'a str,
}

/// The path of the console's page of a request.
pub(crate) fn approval_path(workspace: &WorkspaceId, id: &str) -> String {
    format!("/w/{workspace}/approvals/{id}")
}

/// True if the human of a sign-in is proved to be one (D15).
pub(crate) fn is_proved(signed_in: &SignedIn) -> bool {
    signed_in.method.is_authenticated()
}

impl Deciding<'_> {
    /// The token for one answer by a page that is shown now; empty if no decision is due.
    pub(crate) fn consent(&self, row: &GrantRequestRow) -> Result<String, Problem> {
        if row.status != GrantRequestStatus::Pending {
            return Ok(String::new());
        }
        let user = &self.signed_in.account.id;
        let shown = self.control.consents()?.show(user, self.token, &self.about());
        let token =
            shown.map_err(|error| Problem::new(ErrorKind::Unavailable, error.to_string()))?;
        Ok(token.expose().to_owned())
    }

    /// Decides as a form says. Returns the reason if its page can be answered no more: then nothing
    /// was decided.
    pub(crate) async fn decide(
        &self,
        form: DecisionForm,
    ) -> Result<Result<(), ConsentError>, Problem> {
        let DecisionForm { csrf: _, consent, decision, scope, within, reason } = form;
        let by = Principal::Human(self.signed_in.clone()).granter()?;
        if let Err(error) = self.control.consents()?.answer(&consent, self.token, &self.about()) {
            return Ok(Err(error));
        }
        let (control, workspace, id) = (self.control, self.workspace, self.id);
        let mut body = json!({ "reason": reason.unwrap_or_default() });
        match decision {
            Decision::Approve => {
                if let Some(scope) = scope {
                    body["scope"] = Value::from(scope);
                }
                if let Some(within) = within {
                    let end = SystemTime::now() + within.length();
                    body["expires_at"] = Value::from(Timestamp::new(end).to_string());
                }
                let body = body.to_string();
                control.grant_request_approve(workspace, id, body.as_bytes(), by).await?;
            }
            Decision::Deny => {
                let body = body.to_string();
                control.grant_request_deny(workspace, id, body.as_bytes(), by).await?;
            }
        }
        Ok(Ok(()))
    }

    /// The subject of the page, for its token.
    fn about(&self) -> String {
        decision_path(self.workspace, self.id)
    }
}
