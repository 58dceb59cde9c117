//! Servers from the manifests of an agent, after the agent was deleted.

use crate::cli::DeleteArgs;
use http::Method;
use narthex_model::{
    CatalogKind,
    command::{CommandLine, narthex},
};
use serde_json::{Value, json};

use super::catalog::{object_path, objects_path, text};
use crate::{
    Failure,
    daemon_client::{ApiRequest, DaemonClient},
    output::{self, harmless},
};

/// A server that a manifest has made.
pub(super) struct ManifestServer {
    id: String,
    is_deleted: bool,
    /// The reason why the server still exists, and the remedy.
    message: Option<String>,
}

/// Deletes the servers of an agent that is deleted already, or says why they stay: nothing fails
/// any more.
pub(super) async fn after_delete(client: &DaemonClient, args: &DeleteArgs) -> Vec<ManifestServer> {
    let listed = client.api_all(&objects_path(CatalogKind::Server, &args.place)).await;
    let listed = listed.unwrap_or_else(|failure| {
        let text = format!(
            "the servers that its manifests have made cannot be listed: {}",
            failure.message
        );
        output::notice(&harmless(&format!("warning: {text}")));
        Vec::new()
    });
    let is_its = |server: &&Value| server["definition"]["made_by"]["agent"] == args.id.as_str();
    let mut all = Vec::new();
    for server in listed.iter().filter(is_its) {
        let id = text(server, "id").to_owned();
        let done = match args.with_servers {
            true => Some(delete(client, args, &id).await),
            false => None,
        };
        let is_deleted = matches!(done, Some(Ok(())));
        let why = match done {
            Some(Ok(())) => None,
            Some(Err(failure)) => Some(failure.message),
            None => Some(format!("`{}` removes it", command(&id))),
        };
        all.push(ManifestServer { id, is_deleted, message: why });
    }
    all
}

/// Deletes a server without force, since another agent may use it.
async fn delete(client: &DaemonClient, args: &DeleteArgs, id: &str) -> Result<(), Failure> {
    let path = object_path(CatalogKind::Server, &args.place, id);
    let deleted = client.api(ApiRequest::new(Method::DELETE, path)).await;
    let command = narthex("servers delete {} --force", &[&id]).to_string();
    deleted.map(drop).map_err(|failure| failure.with_flag("force=true", &command))
}

fn command(id: &str) -> CommandLine {
    narthex("servers delete {}", &[&id])
}

impl ManifestServer {
    /// For programs.
    pub(super) fn json(&self) -> Value {
        json!({ "id": self.id, "deleted": self.is_deleted, "message": self.message })
    }

    /// For people.
    pub(super) fn tell(&self, agent: &str) -> Result<(), Failure> {
        let Self { id, is_deleted: _, message } = self;
        match message {
            None => output::line(&harmless(&format!("deleted the server {id}"))),
            Some(message) => {
                let text =
                    format!("the server {id} is not deleted: a manifest of {agent} has made it");
                output::notice(&harmless(&format!("warning: {text}: {message}")));
                Ok(())
            }
        }
    }
}
