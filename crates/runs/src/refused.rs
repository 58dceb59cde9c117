//! Runs that are refused for what they are made of: told to whoever asks, and kept (X-E113).

use narthex_audit::{AuditEvent, kind};
use narthex_events::EventKind;
use narthex_model::{RunId, SessionId};
use narthex_resolve::{Fault, RunKind};
use serde_json::{Value, json};

use crate::{RunError, RunFault, Runs, create::Draft};

/// How many faults of one run are kept.
const FAULTS_MAX: usize = 20;

impl Runs {
    /// Keeps that a run was refused: in the audit, and as an event of the session that it was to go
    /// on in or that wanted to start it. What cannot be kept is logged: the run is refused in any
    /// case.
    pub(crate) async fn note_refused(&self, draft: &Draft, error: &RunError) {
        let Some(faults) = faults(error) else { return };
        let agent = match &draft.request.agent_name {
            Some(name) => name.as_str(),
            None => &draft.session.agent,
        };
        let event = AuditEvent::new(kind::RUN_REFUSED, draft.by.clone());
        let mut event = event.in_workspace(&draft.workspace).on("agent", agent.to_owned());
        let session = concerned(draft);
        if let Some(session) = session {
            event = event.of_session(session.to_text());
        }
        match self.control().note(event.with("faults", faults.clone())).await {
            Ok(noted) => noted.ended("denied").await,
            Err(error) => tracing::warn!(agent.name = agent, "a refused run is not kept: {error}"),
        }
        if let Some(session) = session {
            let payload = json!({
                "agent_name": agent,
                "parent_run_id": draft.parent.as_ref().map(|parent| RunId::to_text(parent.row.id)),
                "kind": error.kind().as_str(),
                "faults": faults,
            });
            let told = (EventKind::SessionRunRefused, payload);
            self.tell(&draft.workspace, session, None, told).await;
        }
    }
}

/// The session that is there and that it concerns.
fn concerned(draft: &Draft) -> Option<SessionId> {
    match draft.request.kind {
        RunKind::ResumeSession => Some(draft.session.id),
        RunKind::StartSession => draft.parent.as_ref().map(|parent| parent.row.session),
    }
}

/// What is wrong with what the run is made of, without any value; `None` where it is something
/// else.
fn faults(error: &RunError) -> Option<Vec<Value>> {
    let faults: Vec<_> = match error {
        RunError::Refused(faults) => faults.iter().take(FAULTS_MAX).map(of_fault).collect(),
        RunError::Entries(faults) => faults.iter().take(FAULTS_MAX).map(of_entry).collect(),
        RunError::Mount { workspace, faults } => {
            RunFault::of_all(workspace, faults).iter().take(FAULTS_MAX).map(of_entry).collect()
        }
        RunError::NoExecutor(_) => vec![json!({ "code": error.code() })],
        RunError::OverBudget(_) => vec![json!({ "code": "over_budget" })],
        _ => return None,
    };
    Some(faults)
}

/// Names and places, and no words: a message may have what somebody wrote.
fn of_fault(fault: &Fault) -> Value {
    let Fault { path, code, alias, field, reference, secret, .. } = fault;
    json!({
        "path": path,
        "code": code,
        "server": alias,
        "field": field,
        "ref": reference,
        "secret": secret,
    })
}

fn of_entry(fault: &RunFault) -> Value {
    json!({ "server": fault.server, "code": fault.kind })
}
