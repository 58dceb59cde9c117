//! Runs that narthex refuses because of their parts: the caller gets the faults, and they are
//! recorded (X-E113).

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::{Fault, RunKind};
use narthex_events::EventKind;
use narthex_model::SessionId;
use serde_json::{Value, json};

use crate::{RunError, RunFault, Runs, create::request::Requested};

/// Number of recorded faults of one run.
const FAULTS_MAX: usize = 20;

impl Runs {
    /// Records a refused run: in the audit, and as an event of the session that the run was to
    /// resume or that wanted to start it. If that fails, the failure is logged: the run is refused
    /// in any case.
    pub(crate) async fn note_refused(&self, requested: &Requested, error: &RunError) {
        let Some(faults) = faults(error) else { return };
        let agent = match &requested.request.agent_name {
            Some(name) => name.as_str(),
            None => &requested.session.agent,
        };
        let event = AuditEvent::new(kind::RUN_REFUSED, requested.by.clone());
        let mut event = event.in_workspace(&requested.workspace).on("agent", agent.to_owned());
        let session = concerned(requested);
        if let Some(session) = session {
            event = event.of_session(session.to_text());
        }
        match self.control().note(event.with("faults", faults.clone())).await {
            Ok(noted) => noted.ended("denied").await,
            Err(error) => {
                tracing::warn!(agent.name = agent, "a refused run could not be stored: {error}");
            }
        }
        if let Some(session) = session {
            let parent = requested.parent.as_ref().map(|parent| parent.row.id.to_text());
            let payload = json!({
                "agent_name": agent,
                "parent_run_id": parent,
                "kind": error.kind().as_str(),
                "faults": faults,
            });
            let told = (EventKind::SessionRunRefused, payload);
            self.tell(&requested.workspace, session, None, told).await;
        }
    }
}

/// The existing session that a refused request concerns.
fn concerned(requested: &Requested) -> Option<SessionId> {
    match requested.request.kind {
        RunKind::ResumeSession => Some(requested.session.id),
        RunKind::StartSession => requested.parent.as_ref().map(|parent| parent.row.session),
    }
}

/// The faults of the run's parts, without any value; `None` for other errors.
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

/// Names and places of a fault, without its message: a message may contain a user's text.
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
