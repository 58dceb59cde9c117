//! Sessions of workspaces: shows, ends, suspends and resumes them.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use narthex_model::{EnvName, ErrorKind, SessionId, WorkspaceId, json::Node};
use narthex_runs::SuspendedSession;
use serde_json::{Map, Value};

use super::{Answered, Asked, ok, runs::shown_row};
use crate::{
    body::RequestBody,
    problem::Problem,
    respond,
    shapes::{Page, Session, SessionRow, SessionStatus},
};

impl Asked<'_> {
    /// Lists the sessions of a workspace, page by page.
    pub(super) async fn sessions(&self) -> Answered {
        let workspace = self.workspace()?;
        let query = self.query(&["after", "limit"])?;
        let page = self.known_runs()?;
        let page = page.sessions(&workspace, query.text("after"), query.limit()?).await?;
        let shown = |row: &narthex_runs::SessionRow| {
            let env = page.agent_env.get(&row.id).into_iter().flatten();
            shown(row, page.suspended.get(&row.id), env)
        };
        let items = page.items.iter().map(shown).collect();
        Ok(ok(&Page { items, next: page.next.map(SessionId::to_text) }))
    }

    /// Shows, ends, suspends or resumes one session with its runs, or stores its reported usage.
    pub(super) async fn session(&self, body: RequestBody) -> Answered {
        if self.parts.method == Method::POST {
            return match self.parts.uri.path().rsplit('/').next() {
                Some("suspend") => self.suspend().await,
                Some("resume") => self.resume(body).await,
                _ => self.report_cost(body).await,
            };
        }
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        if self.parts.method == Method::DELETE {
            self.known_runs()?.session_end(&workspace, &id, &self.by()).await?;
            return Ok(respond::empty(StatusCode::NO_CONTENT));
        }
        Ok(ok(&self.shown_session(&workspace, &id).await?))
    }

    async fn suspend(&self) -> Answered {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        self.known_runs()?.session_suspend(&workspace, &id, &self.by()).await?;
        Ok(ok(&self.shown_session(&workspace, &id).await?))
    }

    async fn resume(&self, body: RequestBody) -> Answered {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        let asked = members(&self.entry(body, &[]).await?)?;
        let resuming = self.known_runs()?.session_resume(&workspace, &id, (asked, self.creator()));
        self.made_run(Box::pin(resuming).await?)
    }

    async fn shown_session(&self, workspace: &WorkspaceId, id: &str) -> Result<Session, Problem> {
        let known = self.known_runs()?;
        let (session, runs) = known.session(workspace, id).await?;
        let suspended = known.suspended(workspace, session.id).await?;
        let env: BTreeSet<_> = runs.iter().flat_map(|run| &run.agent_env).collect();
        Ok(Session {
            row: shown(&session, suspended.as_ref(), env),
            pids: runs.iter().map(|run| run.pid.get()).collect(),
            runs: runs.iter().map(shown_row).collect(),
        })
    }
}

/// The remedy that names the body of a request to resume a session.
const RESUME: &str = "send one object, such as {\"prompt\": \"Go on.\"}, or {} for nothing";

/// The members of a JSON object. Members that occur twice are refused.
fn members(text: &str) -> Result<Map<String, Value>, Problem> {
    let invalid = |why: String| Problem::new(ErrorKind::Invalid, why);
    let node = Node::parse(text.as_bytes())
        .map_err(|error| invalid(format!("the request is not JSON: {error}; {RESUME}")))?;
    if let Some(place) = node.keys_given_twice().first() {
        return Err(invalid(format!("`{place}` is given twice; keep one")));
    }
    match node.to_value() {
        Value::Object(members) => Ok(members),
        _ => Err(invalid(format!("the request is not an object; {RESUME}"))),
    }
}

fn shown<'n>(
    session: &narthex_runs::SessionRow,
    suspended: Option<&SuspendedSession>,
    env: impl IntoIterator<Item = &'n EnvName>,
) -> SessionRow {
    let status = match (session.ended_at, suspended) {
        (Some(_), _) => SessionStatus::Ended,
        (None, Some(_)) => SessionStatus::Suspended,
        (None, None) => SessionStatus::Running,
    };
    let narthex_runs::SessionRow { id, agent, parent, created_at, created_by, ended_at, .. } =
        session;
    SessionRow {
        session_id: id.to_text().into(),
        agent_name: (!agent.is_empty()).then(|| agent.into()),
        agent_env_names: env.into_iter().map(ToString::to_string).collect(),
        parent_run_id: parent.map(|run| run.to_text().into()),
        status,
        suspended_at: suspended.map(|one| one.at.into()),
        suspended_by: suspended.map(|one| one.by.clone()),
        created_at: (*created_at).into(),
        created_by: created_by.clone(),
        ended_at: ended_at.map(Into::into),
    }
}
