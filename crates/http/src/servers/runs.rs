//! Runs: begun, seen and ended.

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body::Body;
use narthex_control::{Begun, Runs};
use narthex_gateway::{RunView, ToolSet};
use narthex_model::{Alias, ErrorKind, Timestamp};
use narthex_policy::RunPolicy;
use narthex_registry::ServerRow;
use serde_json::{Value, json};

use super::{Answered, Asked, document, ok};
use crate::{guard::single, problem::Problem, respond, rows};

impl Asked<'_> {
    pub(super) fn runs(&self) -> Answered {
        let all = self.known_runs()?.all();
        let shown = |run: &std::sync::Arc<RunView>| self.shown_run(run, false);
        let runs: Result<Vec<_>, _> = all.iter().map(shown).collect();
        Ok(ok(&json!({ "runs": runs? })))
    }

    pub(super) fn run(&self) -> Answered {
        let run = self.known_runs()?.get(self.segments[0])?;
        Ok(ok(&self.shown_run(&run, true)?))
    }

    pub(super) async fn begin_run<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let runs = self.known_runs()?;
        let text = self.entry(body, &[]).await?;
        let begun = runs.begin(&text).await?;
        let mut shown = self.shown_run(&begun.run, false)?;
        self.add_secrets(&begun, &mut shown);
        let mut response = document(StatusCode::CREATED, &shown);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Ok(place) = HeaderValue::from_str(&format!("/api/runs/{}", begun.run.id)) {
            headers.insert(header::LOCATION, place);
        }
        Ok(response)
    }

    pub(super) async fn end_run(&self) -> Answered {
        self.known_runs()?.end(self.segments[0]).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    fn known_runs(&self) -> Result<&Runs, Problem> {
        self.door.options.runs.as_ref().ok_or_else(|| {
            Problem::new(ErrorKind::Conflict, "this process begins and ends no runs")
        })
    }

    /// What the one who begins a run is told, and nobody later.
    fn add_secrets(&self, begun: &Begun, shown: &mut Value) {
        let Begun { run, token, faults, warnings, missing } = begun;
        // The very name under which we were reached, which the guard has let in.
        let host = single(&self.parts.headers, &header::HOST).flatten().unwrap_or_default();
        let base = format!("http://{host}/mcp");
        let snapshot = self.door.gateway.snapshot(run);
        let aliases = snapshot.servers.iter().filter_map(|row| row.alias.as_ref());
        let seen = aliases.filter(|alias| run.policy.is_attached(alias));
        let endpoint = |alias: &Alias| (alias.to_string(), json!(format!("{base}/{alias}")));
        let endpoints: serde_json::Map<_, _> = seen.map(endpoint).collect();
        shown["token"] = json!(token.expose());
        shown["endpoints"] = json!({ "aggregated": base, "servers": endpoints });
        shown["mcpServers"] = json!({ "narthex": {
            "type": "http",
            "url": base,
            "headers": { "Authorization": format!("Bearer {}", token.expose()) },
        } });
        let failed = faults
            .iter()
            .map(|fault| json!({ "alias": fault.alias, "state": "error", "error": fault.error }));
        if let Some(servers) = shown["servers"].as_array_mut() {
            servers.extend(failed);
        }
        shown["warnings"] = json!(warnings);
        shown["missing"] = json!(missing);
    }

    fn shown_run(&self, run: &RunView, is_whole: bool) -> Result<Value, Problem> {
        let gateway = &self.door.gateway;
        let snapshot = gateway.snapshot(run);
        let own = run.own_servers().filter_map(|alias| snapshot.get(alias.as_str()));
        let shared = match &run.policy {
            RunPolicy::AllAttached => json!(["*"]),
            RunPolicy::Attached(named) => {
                let is_own = |alias: &&Alias| run.own_servers().any(|own| own == *alias);
                json!(named.iter().filter(|alias| !is_own(alias)).collect::<Vec<_>>())
            }
        };
        Ok(json!({
            "id": run.id.to_text(),
            "is_local": self.known_runs()?.is_local(run),
            "began": Timestamp::new(run.began).to_string(),
            "sessions": gateway.sessions_of(run.id),
            "tools": shared,
            "servers": own.map(|row| own_server(row)).collect::<Vec<_>>(),
            "tool_set": run.tools().map(|tools| tool_set(&tools, is_whole)),
        }))
    }
}

fn own_server(row: &ServerRow) -> Value {
    let mut shown = rows::one(row, false);
    // Here it is known by its alias, as in calls.
    if let Some(members) = shown.as_object_mut()
        && let Some(name) = members.remove("name")
    {
        members.insert("alias".to_owned(), name);
    }
    shown
}

/// What a run was recorded to see (E20).
fn tool_set(set: &ToolSet, is_whole: bool) -> Value {
    let mut shown = json!({ "count": set.tools.len(), "digest": set.digest.to_string() });
    if is_whole {
        let tool = |tool: &narthex_gateway::SeenTool| {
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
