//! The trial of a server: it is kept only if the daemon could connect to it and list its tools.
//!
//! The entry is stored disabled for the trial, so that no client sees it and the daemon starts it
//! once. A failure, and a signal that stops the command, take it out again, with its secrets.

use http::Method;
use narthex_model::{Alias, ErrorKind, Secret, SecretName, command::narthex};
use serde_json::{Value, json};

use super::left::WORKSPACE;
use crate::{
    Context, Failure,
    commands::{mcp::test, waiting::waiting},
    daemon_client::{ApiRequest, DaemonClient, server_path, workspace_path},
    output,
    stop::stop_signal,
};

/// A server to try.
pub(super) struct Trial<'t> {
    pub(super) client: &'t DaemonClient,
    pub(super) context: &'t Context,
    pub(super) alias: &'t Alias,
    pub(super) entry: Value,
    pub(super) secrets: Vec<(SecretName, Secret)>,
    /// True if a server that fails is kept as well.
    pub(super) keeps_anyway: bool,
}

/// The result of a trial of a server that is kept.
pub(super) struct Tried {
    /// The daemon's report of the stages.
    pub(super) probe: Value,
    /// Number of tools; `None` if the server has none or failed.
    pub(super) tools: Option<u64>,
    pub(super) secrets: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// The objects that a trial has stored.
#[derive(Default)]
struct Stored {
    secrets: Vec<SecretName>,
    has_entry: bool,
}

impl Trial<'_> {
    /// Stores the secrets and the entry, tests the server, and enables it.
    ///
    /// # Errors
    /// When a step fails; then nothing is kept. The message says so, or how to remove what is left.
    pub(super) async fn run(&self) -> Result<Tried, Failure> {
        let mut stored = Stored::default();
        let mut stopped = stop_signal()?;
        let tried = tokio::select! {
            tried = self.tried(&mut stored) => tried,
            () = &mut stopped => Err(Failure::new(ErrorKind::Conflict, "stopped during the trial")),
        };
        match tried {
            Ok(tried) => Ok(tried),
            Err(failure) => Err(self.taken_back(&stored, failure).await),
        }
    }

    async fn tried(&self, stored: &mut Stored) -> Result<Tried, Failure> {
        let mut warnings = Vec::new();
        for (name, value) in &self.secrets {
            // Before the request: its answer may be lost.
            stored.secrets.push(name.clone());
            let body = json!({ "value": value.expose() }).to_string();
            let request = ApiRequest::new(Method::PUT, secret_path(name)).entry(&body);
            let put = self.client.api(request).await?;
            warnings.extend(put["warning"].as_str().map(str::to_owned));
        }
        let mut entry = self.entry.clone();
        entry["disabled"] = json!(true);
        // Before the request: its answer may be lost. Only a refusal stores nothing for certain.
        stored.has_entry = true;
        if let Err(failure) = self.client.api(self.put(&entry).for_new_only()).await {
            stored.has_entry = failure.kind.as_str() != ErrorKind::Conflict.as_str();
            return Err(failure);
        }
        let probe = test::probe(self.alias.as_str(), self.client, self.context).await?;
        if probe["ok"] != true {
            let why = test::failed(&probe);
            let needs_sign_in = probe["needs_sign_in"] == true;
            if !self.keeps_anyway && !needs_sign_in {
                return Err(failed(self.alias, &why, probe));
            }
            // Only a server that is kept can be signed in to.
            let authorize = narthex("mcp authorize {}", &[self.alias]);
            warnings.push(match needs_sign_in {
                true => format!("it waits for your sign-in: `{authorize}`"),
                false => format!("it is kept, but its trial failed: {why}"),
            });
        }
        let storing = self.client.api(self.put(&self.entry));
        let saved = waiting(&format!("storing {}", self.alias), self.context, storing).await?;
        let told = saved["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
        warnings.extend(told.iter().filter_map(Value::as_str).map(str::to_owned));
        let tools = probe["stages"].as_array().into_iter().flatten();
        let mut tools = tools.filter(|stage| stage["name"] == "tools/list");
        let tools = tools.next().and_then(|stage| stage["count"].as_u64());
        let secrets = stored.secrets.iter().map(ToString::to_string).collect();
        Ok(Tried { probe, tools, secrets, warnings })
    }

    fn put(&self, entry: &Value) -> ApiRequest {
        let path = server_path(self.alias.as_str(), "");
        ApiRequest::new(Method::PUT, path).entry(&entry.to_string())
    }

    /// Removes what was stored, and says in the failure that nothing is kept.
    async fn taken_back(&self, stored: &Stored, failure: Failure) -> Failure {
        let mut left = Vec::new();
        // The server first, since it refers to the secrets.
        if stored.has_entry {
            let request = ApiRequest::new(Method::DELETE, server_path(self.alias.as_str(), ""));
            if !is_gone(self.client.api(request).await) {
                left.push(narthex("mcp remove {}", &[self.alias]));
            }
        }
        for name in &stored.secrets {
            let request = ApiRequest::new(Method::DELETE, secret_path(name));
            if !is_gone(self.client.api(request).await) {
                left.push(narthex("secrets clear {}", &[name]));
            }
        }
        let end = match left.is_empty() {
            true => "nothing is kept".to_owned(),
            false => {
                let commands: Vec<_> = left.iter().map(|line| format!("`{line}`")).collect();
                format!("something of it is left: remove it with {}", commands.join(" and "))
            }
        };
        Failure { message: format!("{}; {end}", failure.message), ..failure }
    }
}

/// True if an object was removed, or was never there.
fn is_gone(removed: Result<Value, Failure>) -> bool {
    match removed {
        Ok(_) => true,
        Err(failure) => failure.kind.as_str() == ErrorKind::NotFound.as_str(),
    }
}

fn secret_path(name: &SecretName) -> String {
    workspace_path(WORKSPACE, &format!("/secrets/{name}"))
}

fn failed(alias: &Alias, why: &str, probe: Value) -> Failure {
    let text = format!(
        "the trial of `{alias}` failed: {}; --keep-anyway keeps a server that fails",
        output::harmless(why)
    );
    let failure = Failure::new(ErrorKind::Unavailable, text);
    Failure { code: Some("trial_failed"), ..failure.with_details(Some(json!({ "trial": probe }))) }
}
