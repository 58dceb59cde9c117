//! Runs of workspaces: created, seen and ended.

use std::{fmt, path::Path};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Body;
use narthex_audit::ToolSet;
use narthex_control::{Control, FieldError};
use narthex_gateway::{RunToken, RunView};
use narthex_model::{Alias, EnvName, ErrorKind, Pid, Reader, RunEnd, RunId, SessionId, Timestamp};
use narthex_policy::RunPolicy;
use narthex_registry::ServerRow;
use narthex_runs::{
    Created, Creator, OpenSockets, RunFilter, RunRow, RunStatus, Runs, SeenRun, Waiting,
};
use serde_json::{Map, Value, json};

use super::{Answered, Asked, document, ok, once::ToldOnce};
use crate::listener::single;
use crate::{auth::Principal, problem::Problem, respond, rows};

/// The statuses of runs, and `all` for every status.
const STATUSES: [&str; 7] =
    ["all", "running", "pending", "ended", "expired", "cancelled", "failed"];

impl Asked<'_> {
    /// All runs of a workspace, page by page, or a new one.
    pub(super) async fn workspace_runs<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        match self.parts.method {
            Method::POST => self.create_run(body).await,
            _ => self.list_runs().await,
        }
    }

    /// One run: shown, claimed, or ended.
    pub(super) async fn workspace_run<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        if self.parts.method == Method::POST {
            return self.claim_run(body).await;
        }
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        if self.parts.method == Method::DELETE {
            self.known_runs()?.end(&workspace, &id, &self.by()).await?;
            return Ok(respond::empty(StatusCode::NO_CONTENT));
        }
        let run = self.known_runs()?.get(&workspace, &id).await?;
        Ok(ok(&self.shown_run(&run, true)?))
    }

    async fn list_runs(&self) -> Answered {
        let workspace = self.workspace()?;
        let query = self.query(&["after", "limit", "session", "status"])?;
        let is_pending = query.text("status") == "pending";
        let status = match query.word("status", &STATUSES)? {
            "running" | "pending" => Some(None),
            "ended" => Some(Some(RunEnd::Ended)),
            "expired" => Some(Some(RunEnd::Expired)),
            "cancelled" => Some(Some(RunEnd::Cancelled)),
            "failed" => Some(Some(RunEnd::Failed)),
            _ => None,
        };
        let waits = status.is_some_and(|ended| ended.is_none()).then_some(is_pending);
        let unfit = |name, remedy| {
            let fault = FieldError::invalid(name, "this value is not valid", remedy);
            let text = format!("the query of the URL is not valid: {fault}");
            Problem::of_fields(text, std::slice::from_ref(&fault))
        };
        let session = match query.text("session") {
            "" => None,
            text => Some(
                SessionId::parse(text)
                    .ok_or_else(|| unfit("session", "write an id such as ses_0a1b2c3d4e5f"))?,
            ),
        };
        let after = match query.text("after") {
            "" => 0,
            text => text
                .parse()
                .map_err(|_no_number| unfit("after", "write the `next` of an earlier page"))?,
        };
        let filter = RunFilter { session, status, waits };
        let page = self.known_runs()?.list(&workspace, filter, after, query.limit()?).await?;
        let items: Result<Vec<_>, _> =
            page.items.iter().map(|run| self.shown_run(run, false)).collect();
        Ok(ok(&json!({ "items": items?, "next": page.next.map(|pid| pid.to_string()) })))
    }

    async fn create_run<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (runs, workspace) = (self.known_runs()?, self.workspace()?);
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        self.made_run(runs.create(&workspace, &text, self.creator()).await?)
    }

    /// The answer to a caller that created a run.
    pub(super) fn made_run(&self, created: Created) -> Answered {
        let run = SeenRun { row: Some(created.row.clone()), view: Some(created.run.clone()) };
        let mut shown = self.shown_run(&run, false)?;
        self.add_secrets(&created, &mut shown)?;
        let mut response = document(StatusCode::CREATED, &shown);
        if created.direct.is_some() || !created.agent_env.is_empty() {
            response.extensions_mut().insert(ToldOnce);
        }
        let headers = response.headers_mut();
        let place = format!("/api/workspaces/{}/runs/{}", created.row.workspace, created.row.id);
        if let Ok(place) = HeaderValue::from_str(&place) {
            headers.insert(header::LOCATION, place);
        }
        Ok(response)
    }

    /// The creator of runs, as far as that makes a difference.
    pub(super) fn creator(&self) -> Creator {
        match &self.principal {
            Principal::Run(run) => Creator::Run(run.clone()),
            Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin
                if self.is_unproved() =>
            {
                let is_operator = self.principal.is_operator();
                Creator::Unproved { by: self.by(), is_operator }
            }
            principal if principal.is_operator() => Creator::Operator(self.by(), principal.human()),
            Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => {
                Creator::Member(self.by(), self.principal.human())
            }
        }
    }

    /// True if the caller may be no human, where humans have to prove that they are some (D15).
    pub(super) fn is_unproved(&self) -> bool {
        let is_asked = self.door.options.control.as_ref().is_some_and(Control::needs_proof);
        is_asked && !self.principal.is_proved()
    }

    pub(super) fn known_runs(&self) -> Result<&Runs, Problem> {
        self.door.options.runs.as_ref().ok_or_else(|| {
            Problem::new(ErrorKind::Conflict, "this process creates and ends no runs")
        })
    }

    /// Adds the secrets that the creator of a run is sent, and no later caller.
    fn add_secrets(&self, created: &Created, shown: &mut Value) -> Result<(), Problem> {
        let Created { row, run, token, faults, skipped, warnings, unmatched, .. } = created;
        let Created { omitted, missing, .. } = created;
        // A caller that creates a run by the token of another may be a model.
        let is_model = self.principal.is_model();
        // Only its executor gets the token of a run that an executor carries out.
        let is_carried = row.waiting.is_some();
        if !is_carried {
            self.add_entries(run, token, shown)?;
            token_once(shown);
        }
        if let Some(sockets) = created.sockets.as_ref().filter(|_| !is_carried) {
            shown["endpoints"]["sockets"] = json!(sockets.folder);
            shown["socat"] = socat(sockets);
        }
        if !created.agent_env.is_empty() && !is_carried {
            let value = |(name, value): (&EnvName, &str)| (name.to_string(), json!(value));
            let values: Map<_, _> = created.agent_env.expose().map(value).collect();
            shown["agent_env"] = values.into();
        }
        if let Some(direct) = &created.direct {
            shown["resolved_mcp_servers"] = json!(direct.expose());
        }
        let reader = self.principal.reader();
        let failed = faults.iter().map(|fault| {
            let error = fault.error.read_by(reader);
            json!({ "alias": fault.alias, "state": "error", "error": error })
        });
        let skipped = skipped.iter().map(|fault| {
            let error = json!({ "kind": fault.kind, "message": fault.read_by(reader) });
            json!({ "alias": fault.server, "state": "error", "error": error })
        });
        if let Some(servers) = shown["servers"].as_array_mut() {
            servers.extend(failed.chain(skipped));
        }
        shown["former_pids"] = created.former_pids.iter().map(|pid| pid.get()).collect();
        let gates = unmatched.iter().map(|one| one.told(is_model));
        let warnings = warnings.iter().filter_map(|one| one.read_by(is_model));
        shown["warnings"] = warnings.map(str::to_owned).chain(gates).collect();
        // Keys of servers and of the scope are their author's.
        shown["omitted"] = if is_model { json!([]) } else { json!(omitted) };
        shown["missing"] = json!(missing);
        Ok(())
    }

    /// The entries by which a run is reached, with its token.
    pub(super) fn add_entries(
        &self,
        run: &RunView,
        token: &RunToken,
        shown: &mut Value,
    ) -> Result<(), Problem> {
        let entries = self.known_runs()?.entries(&self.endpoint(), run, token);
        if let (Some(shown), Value::Object(entries)) = (shown.as_object_mut(), entries) {
            shown.extend(entries);
        }
        Ok(())
    }

    /// The aggregated endpoint, under the very name of the request's `Host`, which the guard has
    /// accepted.
    pub(super) fn endpoint(&self) -> String {
        let host = single(&self.parts.headers, &header::HOST).flatten().unwrap_or_default();
        format!("http://{host}/mcp")
    }

    pub(super) fn shown_run(&self, run: &SeenRun, is_whole: bool) -> Result<Value, Problem> {
        let mut shown = match (&run.row, &run.view) {
            (Some(row), _) => shown_row(row),
            (None, Some(view)) => json!({
                "run_id": view.id.to_text(),
                "pid": Pid::OWN.get(),
                "created_at": Timestamp::new(view.began).to_string(),
            }),
            (None, None) => json!({}),
        };
        shown["status"] = json!(run.status().as_str());
        // A run that was not used since the process started has nothing to show here.
        let Some(view) = &run.view else { return Ok(shown) };
        let gateway = &self.door.gateway;
        let snapshot = gateway.snapshot(view);
        let own = view.own_servers().filter_map(|alias| snapshot.get(alias.as_str()));
        shown["is_local"] = json!(self.known_runs()?.is_local(view));
        shown["mcp_sessions"] = json!(gateway.sessions_of(view.id));
        shown["tools"] = shared(view);
        let pid = run.row.as_ref().map_or(Pid::OWN, |row| row.pid);
        let reader = self.principal.reader();
        let own = own.map(|row| own_server(row, reader, pid));
        shown["servers"] = own.collect();
        shown["tool_set"] = json!(view.tools().map(|tools| tool_set(&tools, is_whole)));
        Ok(shown)
    }
}

/// For clients that start a program for each server: one that only carries bytes, with nothing in
/// its environment (X-M47).
fn socat(sockets: &OpenSockets) -> Value {
    let entry = |path: &Path| {
        let address = format!("UNIX-CONNECT:{}", socat_text(path));
        json!({ "command": "socat", "args": ["-", address], "env": {} })
    };
    let servers = sockets.servers.iter().map(|(alias, path)| (alias.to_string(), entry(path)));
    json!({
        "mcpServers": { "narthex": entry(&sockets.aggregated) },
        "mcpServersByAlias": servers.collect::<Map<_, _>>(),
    })
}

/// A path as socat reads it: its special characters are marked as plain text.
fn socat_text(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '/' | '.' | '-' | '_') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Leaves the token of a run in `token` alone: entries for clients name the variable that clients
/// fill in, so that neither logs nor files have the token many times.
fn token_once(shown: &mut Value) {
    for group in ["mcpServers", "mcpServersByAlias"] {
        let entries = shown[group].as_object_mut().into_iter().flatten();
        for (_, entry) in entries {
            entry["headers"]["Authorization"] = json!("Bearer ${NARTHEX_TOKEN}");
        }
    }
}

/// The shared servers that a run has.
fn shared(run: &RunView) -> Value {
    match &run.policy {
        RunPolicy::AllAttached => json!(["*"]),
        RunPolicy::Attached(named) => {
            let is_own = |alias: &&Alias| run.own_servers().any(|own| own == *alias);
            json!(named.iter().filter(|alias| !is_own(alias)).collect::<Vec<_>>())
        }
    }
}

/// The stored row of a run, without its frozen configuration (O81).
pub(super) fn shown_row(row: &RunRow) -> Value {
    let RunRow { id, session, pid, agent, parent, created_at, created_by, expires_at, .. } = row;
    json!({
        "run_id": id.to_text(),
        "session_id": session.to_text(),
        "pid": pid.get(),
        "agent_name": (!agent.is_empty()).then_some(agent),
        // Names that are declared to hold credentials from outside the gateway (X-E60).
        "agent_env_names": row.agent_env,
        "parent_run_id": parent.map(RunId::to_text),
        "user": row.driver,
        "acts_for": row.acts_for(),
        "status": RunStatus::of(row).as_str(),
        "claim": row.waiting.as_ref().map(shown_claim),
        "created_at": Timestamp::new(*created_at).to_string(),
        "created_by": created_by,
        "expires_at": Timestamp::new(*expires_at).to_string(),
        "ended_at": row.ended.map(|(at, _)| Timestamp::new(at).to_string()),
    })
}

/// The claim of a run by its executor.
fn shown_claim(waiting: &Waiting) -> Value {
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let claim = waiting.claim.as_ref();
    json!({
        "model": text(&waiting.model),
        "runtime_type": text(&waiting.runtime),
        "executor": waiting.executor,
        "attempts": waiting.attempts,
        "claimed_by": claim.map(|(by, _)| by),
        "claimed_until": claim.map(|(_, until)| Timestamp::new(*until).to_string()),
    })
}

fn own_server(row: &ServerRow, reader: Reader, pid: Pid) -> Value {
    let mut shown = json!(rows::one(row, reader, Some(pid), false));
    // Here it is known by its alias, as in calls.
    if let Some(members) = shown.as_object_mut()
        && let Some(name) = members.remove("name")
    {
        members.insert("alias".to_owned(), name);
    }
    shown
}

/// The tool set that a run was recorded to see (E20).
fn tool_set(set: &ToolSet, is_whole: bool) -> Value {
    let mut shown = json!({ "count": set.tools.len(), "digest": set.digest.to_string() });
    if is_whole {
        let tool = |tool: &narthex_audit::SeenTool| {
            json!({
                "name": &*tool.name,
                "server": tool.server,
                "digest": tool.digest.to_string(),
            })
        };
        shown["tools"] = set.tools.iter().map(tool).collect();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M47: special characters of socat are plain text in a path.
    #[test]
    fn x_m47_special_characters_of_socat_are_escaped_in_a_path() {
        for (path, text) in [
            ("/run/user/1000/narthex-0a/x_1.sock", "/run/user/1000/narthex-0a/x_1.sock"),
            ("/a,b/c:d!!e.sock", r"/a\,b/c\:d\!\!e.sock"),
            ("/a b/é.sock", "/a b/é.sock"),
        ] {
            assert_eq!(socat_text(Path::new(path)), text);
        }
    }
}
