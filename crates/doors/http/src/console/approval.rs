//! The page of one request of an agent, on which a human decides it.

mod before;
mod facts;
mod forms;

use http::StatusCode;
use narthex_console::{
    Related, Told, html,
    pages::approval::ApprovalPage,
    parts::{Same, Words},
};
use narthex_control::{GrantRequestRow, GrantRequestStatus};
use narthex_model::{ErrorKind, command::narthex};
use serde::Deserialize;

use self::forms::{Fault, Kept, deciding, session};
use super::{
    answer::{self, Answered},
    asked,
    frame::{self, Head, frame},
    links::Links,
    live,
    page::Page,
    viewer::{Form, KEPT, Viewer},
};
use crate::{
    Access,
    body::RequestBody,
    deciding::approval_path,
    routes::{ADMIN, SEE_RUNS},
    shapes::{Decision, DecisionForm, GrantLife},
};

/// The page, the answer to its forms, and the sign-in that leads back to it.
pub(super) const PAGES: &[Page] = &[
    Page::get("approvals/{request}", Access::Member(SEE_RUNS), |viewer, _| Box::pin(show(viewer))),
    Page::post("approvals/{request}/decide", Access::Member(ADMIN), |viewer, body| {
        Box::pin(decide(viewer, body))
    }),
    Page::get("approvals/{request}/prove", Access::Member(ADMIN), |viewer, _| {
        Box::pin(async move { prove(viewer) })
    }),
];

/// The answer of a human. The two forms of the page have a reason each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalForm {
    csrf: String,
    consent: String,
    decision: Decision,
    scope: Option<String>,
    within: Option<String>,
    reason: Option<String>,
    denial: Option<String>,
}

impl Form for ApprovalForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

async fn show(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    page(viewer, Kept::default()).await
}

/// Approves or denies the request.
async fn decide(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form: ApprovalForm = viewer.form(body).await?;
    let ApprovalForm { csrf, consent, decision, scope, within, reason, denial } = form;
    let scope = scope.filter(|scope| !scope.is_empty());
    let within = within.filter(|word| !word.is_empty());
    let mut kept = Kept {
        fault: None,
        within: within.clone().unwrap_or_default(),
        reason: reason.clone().unwrap_or_default(),
        denial: denial.clone().unwrap_or_default(),
    };
    if decision == Decision::Approve && scope.is_none() {
        let text = "nothing was decided: choose the calls to allow";
        kept.fault = Some(Fault::Duration(text.to_owned()));
        return page(viewer, kept).await;
    }
    let life = GrantLife::ALL.into_iter().find(|life| within.as_deref() == Some(life.word()));
    if within.is_some() && life.is_none() {
        let words = GrantLife::ALL.map(GrantLife::word).join(", ");
        let text = format!("nothing was decided: `within` is none of {words}");
        kept.fault = Some(Fault::Duration(text));
        return page(viewer, kept).await;
    }
    let id = viewer.segment(0);
    let token = session(viewer)?;
    let reason = if decision == Decision::Approve { reason } else { denial };
    let form = DecisionForm { csrf, consent, decision, scope, within: life, reason };
    match deciding(viewer, token, &id).decide(form).await {
        Ok(Ok(())) => answer::redirect(&approval_path(&viewer.workspace, &id)),
        Ok(Err(used)) => {
            kept.fault = Some(Fault::Used(used.to_string()));
            page(viewer, kept).await
        }
        Err(problem) if problem.kind() == ErrorKind::Invalid => {
            kept.fault = Some(Fault::Duration(problem.detail().to_owned()));
            page(viewer, kept).await
        }
        Err(problem) => Err(problem),
    }
}

/// Shows the ways to sign in, though the human is signed in: a sign-in with a proof replaces the
/// present one, and leads back to the request.
fn prove(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let path = approval_path(&viewer.workspace, &viewer.segment(0));
    Ok(viewer.browser.ways_in_then(&format!("{KEPT}{path}")))
}

async fn page(viewer: &Viewer<'_>, kept: Kept) -> Answered {
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let row = control.grant_request(workspace, &viewer.segment(0)).await?;
    let id = row.id.to_text();
    let command = narthex("grants approve {}", &[&id]).in_workspace(workspace);
    let request = format!("POST /api/workspaces/{workspace}/grant-requests/{id}/approve");
    let head = Head {
        title: Words::new(title(row.status)),
        sentence: "What an agent asks for, and what it did before.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.live = Some(live::address(viewer, vec![frame::live(&frame)], &viewer.query(&[])?));
    frame.related = related(viewer, &row);
    let status = match &kept.fault {
        None => StatusCode::OK,
        Some(Fault::Duration(_)) => StatusCode::BAD_REQUEST,
        Some(Fault::Used(reason)) => {
            let sentence = format!("No decision was made: {reason}. This is the request now.");
            frame.told = Some(Told { sentence: Words::new(&sentence), is_failure: true });
            StatusCode::CONFLICT
        }
    };
    let is_open = row.status == GrantRequestStatus::Pending;
    let decides = is_open && viewer.may(Access::Member(ADMIN));
    let page = ApprovalPage {
        frame,
        request: facts::facts(viewer, &row).await?,
        outcome: asked::outcome(&row),
        grant: facts::grant(viewer, &row).await?,
        proof: if decides { forms::proof(viewer).await? } else { None },
        forms: if decides { Some(forms::forms(viewer, &row, &kept)?) } else { None },
        no_forms: (is_open && !decides).then_some("An admin of the workspace decides."),
        calls: before::calls(viewer, &row).await?,
        earlier: before::earlier(viewer, &row).await?,
        back: viewer.path("approvals"),
    };
    Ok(answer::page(status, html(&page)))
}

/// The run's events, and the agent with its grants.
fn related(viewer: &Viewer<'_>, row: &GrantRequestRow) -> Vec<Related> {
    let run = row.run.to_text();
    let links = Links::of(viewer).run("The run", &run);
    let links = links.audit("Audit of the run", &[("run", &run)]);
    match &row.agent {
        Some(agent) => {
            let name = agent.as_str();
            let all = format!("Grants of {name}");
            links.agent(name).grants(&all, &[("agent", name)]).found()
        }
        None => links.found(),
    }
}

fn title(status: GrantRequestStatus) -> &'static str {
    match status {
        GrantRequestStatus::Pending => "Approve this request?",
        GrantRequestStatus::Approved => "Approved",
        GrantRequestStatus::Denied => "Denied",
        GrantRequestStatus::Expired => "Too late",
    }
}
