//! The decision of a human on a run's grant request, by a page that was shown to this human (D15).
//! Each page that asks for a decision uses these functions.

use std::time::SystemTime;

use narthex_control::{
    ConsentError, Control, GrantRequestRow, GrantRequestStatus, SignedIn, decision_path,
};
use narthex_model::{ErrorKind, Timestamp, WorkspaceId};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

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
        let about = about(self.workspace, row);
        let shown = self.control.consents()?.show(user, self.token, &about);
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
        let (control, workspace, id) = (self.control, self.workspace, self.id);
        let row = control.grant_request(workspace, id).await?;
        let about = about(workspace, &row);
        if let Err(error) = control.consents()?.answer(&consent, self.token, &about) {
            return Ok(Err(error));
        }
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
}

/// The subject of a page, for its token: the request with a digest of all that its page shows. An
/// answer counts for what its human has read, and for nothing else.
fn about(workspace: &WorkspaceId, row: &GrantRequestRow) -> String {
    let asking = format!("{:?}", (&row.agent, &row.user, row.run, row.session));
    let shown =
        json!([row.of.word(), row.of.details(), row.arguments, row.duration, row.reason, asking,]);
    let hash = Sha256::digest(shown.to_string());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}#{hash}", decision_path(workspace, &row.id.to_text()))
}

#[cfg(test)]
mod tests {
    use narthex_model::{GrantOf, GrantRequestId, RunId};

    use super::*;

    fn asked(scope: &str) -> GrantRequestRow {
        let of = GrantOf::read("tool_scope", &json!({ "scope": scope })).unwrap();
        GrantRequestRow {
            id: GrantRequestId::new([1; GrantRequestId::BYTES]),
            asked_as: String::new(),
            workspace: WorkspaceId::default(),
            run: RunId::new([1; RunId::BYTES]),
            session: None,
            user: None,
            agent: None,
            of,
            arguments: r#"{"to":"ada"}"#.to_owned(),
            duration: "once",
            reason: "please".to_owned(),
            requested_at: SystemTime::UNIX_EPOCH,
            expires_at: SystemTime::UNIX_EPOCH,
            status: GrantRequestStatus::Pending,
            decided: None,
            decision_reason: String::new(),
            grant: None,
        }
    }

    /// D15: the answer of a page counts for the permission, the arguments and the words that it has
    /// shown.
    #[test]
    fn d15_an_answer_is_bound_to_what_was_shown() {
        let here = WorkspaceId::default();
        let shown = about(&here, &asked("demo.write"));
        assert_eq!(shown, about(&here, &asked("demo.write")));
        let arguments = r#"{"to":"bob"}"#.to_owned();
        let others = [
            asked("demo.push"),
            GrantRequestRow { arguments, ..asked("demo.write") },
            GrantRequestRow { reason: "now".to_owned(), ..asked("demo.write") },
            GrantRequestRow { duration: "run", ..asked("demo.write") },
        ];
        for other in others {
            assert_ne!(shown, about(&here, &other), "{other:?}");
        }
    }
}
