//! Runs of workspaces: creates, shows and ends them.

mod socat;

use http::{HeaderValue, Method, StatusCode, header};
use narthex_audit::ToolSet;
use narthex_control::FieldError;
use narthex_gateway::RunView;
use narthex_model::{Alias, CallError, EnvName, ErrorKind, Pid, Reader, SessionId};
use narthex_policy::RunPolicy;
use narthex_registry::ServerRow;
use narthex_runs::{Created, Creator, RunFilter, RunStatus, Runs, SeenRun, Waiting, events_url};

use super::{Answered, Asked, document, ok, once::ToldOnce, query::refused};
use crate::listener::single;
use crate::{
    auth::Principal,
    body::RequestBody,
    door::Door,
    problem::Problem,
    respond, rows,
    shapes::{
        CallFault, ClientEntry, OmittedKey, Page, Run, RunClaim, RunEndpoints, RunEntries, RunHead,
        RunLive, RunMade, RunMadeEndpoints, RunRow, RunServer, RunServerFailed, RunServerRow,
        RunStored, SeenTool,
    },
};

/// The creator of a run, with the facts that limit the run's rights.
pub(crate) fn creator_of(door: &Door, principal: &Principal) -> Creator {
    match principal {
        Principal::Run(run) => Creator::Run(run.clone()),
        Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin
            if principal.is_unproved(door.options.control.as_ref()) =>
        {
            let is_operator = principal.is_operator();
            Creator::Unproved { by: principal.actor(), is_operator }
        }
        principal if principal.is_operator() => {
            Creator::Operator(principal.actor(), principal.human())
        }
        Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => {
            Creator::Member(principal.actor(), principal.human())
        }
    }
}

impl Asked<'_> {
    /// Lists the runs of a workspace page by page, or creates one.
    pub(super) async fn workspace_runs(&self, body: RequestBody) -> Answered {
        match self.parts.method {
            Method::POST => self.create_run(body).await,
            _ => self.list_runs().await,
        }
    }

    /// Shows, claims or ends one run.
    pub(super) async fn workspace_run(&self, body: RequestBody) -> Answered {
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
        let words = RunStatus::ALL.map(RunStatus::as_str);
        let word = query.word("status", &[&["all"], &words[..]].concat())?;
        let (status, waits) = match RunStatus::ALL.into_iter().find(|one| one.as_str() == word) {
            None => (None, None),
            Some(RunStatus::Running) => (Some(None), Some(false)),
            Some(RunStatus::Pending) => (Some(None), Some(true)),
            Some(RunStatus::Over(end)) => (Some(Some(end)), None),
        };
        let unfit =
            |name, remedy| refused(&[FieldError::invalid(name, "this value is not valid", remedy)]);
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
        Ok(ok(&Page { items: items?, next: page.next.map(|pid| pid.to_string()) }))
    }

    async fn create_run(&self, body: RequestBody) -> Answered {
        let (runs, workspace) = (self.known_runs()?, self.workspace()?);
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        self.made_run(runs.create(&workspace, &text, self.creator()).await?)
    }

    /// The answer to the creator of a run.
    pub(super) fn made_run(&self, created: Created) -> Answered {
        let mut response = document(StatusCode::CREATED, &self.shown_made(&created)?);
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

    /// The creator of a run, with the facts that limit the run's rights.
    pub(super) fn creator(&self) -> Creator {
        creator_of(self.door, &self.principal)
    }

    pub(super) fn known_runs(&self) -> Result<&Runs, Problem> {
        self.door.options.runs.as_ref().ok_or_else(|| {
            Problem::new(ErrorKind::Conflict, "this process creates and ends no runs")
        })
    }

    /// A run as its creator sees it, with secrets that no later caller receives.
    fn shown_made(&self, created: &Created) -> Result<RunMade, Problem> {
        // A caller that creates a run with the token of another run may be a model.
        let is_model = self.principal.is_model();
        let Created { row, run, warnings, unmatched, omitted, missing, .. } = created;
        let mut live = self.live(run, row.pid, false)?;
        live.servers.extend(self.failed_servers(created));
        // If an executor carries out the run, only the executor receives the run's token.
        let is_carried = row.waiting.is_some();
        let sockets = created.sockets.as_ref().filter(|_| !is_carried);
        let entries = match is_carried {
            true => None,
            false => Some(self.entries(run, created.token.expose(), TOKEN, |known| {
                let sockets = sockets.map(|sockets| sockets.folder.display().to_string());
                RunMadeEndpoints { known, sockets }
            })?),
        };
        let has_env = !created.agent_env.is_empty() && !is_carried;
        let value = |(name, value): (&EnvName, &str)| (name.to_string(), value.to_owned());
        let gates = unmatched.iter().map(|one| one.told(is_model));
        let warnings = warnings.iter().filter_map(|one| one.read_by(is_model)).map(str::to_owned);
        let made = RunMade {
            head: head(row),
            stored: stored(row),
            live,
            entries,
            warnings: warnings.chain(gates).collect(),
            omitted: omitted.iter().map(omitted_key).collect(),
            missing: missing.iter().map(ToString::to_string).collect(),
            resolved_mcp_servers: created.direct.as_ref().map(|direct| direct.expose().clone()),
            agent_env: has_env.then(|| created.agent_env.expose().map(value).collect()),
            socat: sockets.map(socat::entries),
            former_pids: created.former_pids.iter().map(|pid| pid.get()).collect(),
        };
        Ok(if is_model { made.for_models() } else { made })
    }

    /// The servers that failed to start, without which the run was created.
    fn failed_servers(&self, created: &Created) -> impl Iterator<Item = RunServer> {
        let reader = self.principal.reader();
        let failed = created.faults.iter().map(move |fault| {
            let error = fault.error.read_by(reader);
            let CallError { kind, message, details } = error;
            failed_server(&fault.alias, CallFault { kind: kind.as_str().into(), message, details })
        });
        let skipped = created.skipped.iter().map(move |fault| {
            let message = fault.read_by(reader).to_owned();
            let kind = fault.kind.to_owned();
            failed_server(&fault.server, CallFault { kind, message, details: None })
        });
        failed.chain(skipped)
    }

    /// The URLs and client entries of a run. They contain the run's token, and `in_entries` in
    /// place of the token in the entries for clients.
    pub(super) fn entries<E>(
        &self,
        run: &RunView,
        token: &str,
        in_entries: &str,
        endpoints: impl FnOnce(RunEndpoints) -> E,
    ) -> Result<RunEntries<E>, Problem> {
        let aggregated = self.endpoint();
        let servers = self.known_runs()?.endpoints(&aggregated, run);
        let entry = |url: &String| ClientEntry::new(url, in_entries);
        Ok(RunEntries {
            token: token.to_owned(),
            mcp_servers: [("narthex".to_owned(), entry(&aggregated))].into(),
            mcp_servers_by_alias: servers
                .iter()
                .map(|(alias, url)| (alias.clone(), entry(url)))
                .collect(),
            endpoints: endpoints(RunEndpoints {
                events: events_url(&aggregated, run),
                aggregated,
                servers,
            }),
        })
    }

    /// The URL of the aggregated endpoint, with the name in the request's `Host`, which the guard
    /// has accepted.
    pub(super) fn endpoint(&self) -> String {
        let host = single(&self.parts.headers, &header::HOST).flatten().unwrap_or_default();
        let scheme = if self.door.options.is_tls { "https" } else { "http" };
        format!("{scheme}://{host}/mcp")
    }

    pub(super) fn shown_run(&self, run: &SeenRun, is_whole: bool) -> Result<Run, Problem> {
        let head = match (&run.row, &run.view) {
            (Some(row), _) => head(row),
            (None, Some(view)) => RunHead {
                run_id: view.id.to_text().into(),
                status: run.status().into(),
                created_at: view.began.into(),
                pid: Pid::OWN.get(),
            },
            (None, None) => return Err(super::nothing_here()),
        };
        let pid = run.row.as_ref().map_or(Pid::OWN, |row| row.pid);
        // A run that this process has not used since its start has no live members.
        let live = run.view.as_ref().map(|view| self.live(view, pid, is_whole)).transpose()?;
        Ok(Run { head, stored: run.row.as_ref().map(stored), live })
    }

    pub(super) fn live(&self, run: &RunView, pid: Pid, is_whole: bool) -> Result<RunLive, Problem> {
        let gateway = &self.door.gateway;
        let snapshot = gateway.snapshot(run);
        let own = run.own_servers().filter_map(|alias| snapshot.get(alias.as_str()));
        let reader = self.principal.reader();
        Ok(RunLive {
            is_local: self.known_runs()?.is_local(run),
            mcp_sessions: gateway.sessions_of(run.id).try_into().unwrap_or(u64::MAX),
            tools: shared(run),
            servers: own.map(|row| own_server(row, reader, pid)).collect(),
            tool_set: run.tools().map(|tools| tool_set(&tools, is_whole)),
        })
    }
}

/// The text in place of the token in client entries: a variable that clients fill in. So logs and
/// files do not repeat the token.
const TOKEN: &str = "${NARTHEX_TOKEN}";

fn omitted_key(omitted: &narthex_runs::OmittedKey) -> OmittedKey {
    let narthex_runs::OmittedKey { server, key, missing } = omitted;
    OmittedKey { server_name: server.into(), key: key.clone(), missing: missing.clone() }
}

/// The aliases of the shared servers that a run has.
fn shared(run: &RunView) -> Vec<String> {
    match &run.policy {
        RunPolicy::AllAttached => vec!["*".to_owned()],
        // No row shows the runs of profiles.
        RunPolicy::Profile(_) => Vec::new(),
        RunPolicy::Attached(named) => {
            let is_own = |alias: &&Alias| run.own_servers().any(|own| own == *alias);
            named.iter().filter(|alias| !is_own(alias)).map(ToString::to_string).collect()
        }
    }
}

/// The stored row of a run, without its frozen configuration (O81).
pub(super) fn shown_row(row: &narthex_runs::RunRow) -> RunRow {
    RunRow { head: head(row), stored: stored(row) }
}

pub(super) fn head(row: &narthex_runs::RunRow) -> RunHead {
    RunHead {
        run_id: row.id.to_text().into(),
        status: RunStatus::of(row).into(),
        created_at: row.created_at.into(),
        pid: row.pid.get(),
    }
}

pub(super) fn stored(row: &narthex_runs::RunRow) -> RunStored {
    RunStored {
        session_id: row.session.to_text().into(),
        agent_name: (!row.agent.is_empty()).then(|| (&row.agent).into()),
        // Variables that are declared to hold credentials which the gateway does not control
        // (X-E60).
        agent_env_names: row.agent_env.iter().map(ToString::to_string).collect(),
        parent_run_id: row.parent.map(|run| run.to_text().into()),
        user: row.driver.as_ref().map(Into::into),
        acts_for: row.acts_for().map(Into::into),
        claim: row.waiting.as_ref().map(shown_claim),
        created_by: row.created_by.clone(),
        expires_at: row.expires_at.into(),
        ended_at: row.ended.map(|(at, _)| at.into()),
    }
}

/// The claim of a run by its executor.
fn shown_claim(waiting: &Waiting) -> RunClaim {
    let Waiting { model, runtime, executor, attempts, claim } = waiting;
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    RunClaim {
        model: text(model),
        runtime_type: text(runtime),
        executor: executor.as_ref().map(Into::into),
        attempts: (*attempts).into(),
        claimed_by: claim.as_ref().map(|(by, _)| by.clone()),
        claimed_until: claim.as_ref().map(|(_, until)| (*until).into()),
    }
}

fn failed_server(alias: impl ToString, error: CallFault) -> RunServer {
    RunServer::Failed(RunServerFailed::new(alias, error))
}

fn own_server(row: &ServerRow, reader: Reader, pid: Pid) -> RunServer {
    // Within a run, a server is named by its alias, as in calls.
    let (alias, server) = (row.name.clone(), rows::details(row, reader, Some(pid)));
    RunServer::Row(Box::new(RunServerRow { alias, server }))
}

/// The tool set that was recorded for a run (E20).
fn tool_set(set: &ToolSet, is_whole: bool) -> crate::shapes::ToolSet {
    let tool = |tool: &narthex_audit::SeenTool| SeenTool {
        name: tool.name.to_string(),
        server: tool.server.to_string(),
        digest: tool.digest.to_string(),
    };
    crate::shapes::ToolSet {
        count: set.tools.len().try_into().unwrap_or(u64::MAX),
        digest: set.digest.to_string(),
        tools: is_whole.then(|| set.tools.iter().map(tool).collect()),
    }
}
