//! `narthex env-bindings`: secrets in the environment of agents themselves, through the daemon.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::cli::{EnvBindingsCommand, EnvScopeArgs, SetEnvBindingArgs};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(command: EnvBindingsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        EnvBindingsCommand::List { place } => {
            let path = workspace_path(&place.workspace, "/env-bindings");
            let asked = client.api_all(&path);
            let items = waiting("asking the daemon", &context, asked).await?;
            let header = ["id", "scope", "of", "name", "secret", "updated", "by"];
            table::list(&items, &header, row, "No secret is bound to an environment.", &context)
        }
        EnvBindingsCommand::Set(args) => set(&client, &args, &context).await,
        EnvBindingsCommand::Remove { name, scope, place } => {
            let id = id(&scope, &name);
            let path = workspace_path(&place.workspace, &below(&id));
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting("removing the binding", &context, asked).await?;
            let sentence = format!("removed {id}; agents that have received the value keep it");
            output::told(&json!({ "id": id }), &sentence, context.format)
        }
    }
}

async fn set(
    client: &DaemonClient,
    args: &SetEnvBindingArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let SetEnvBindingArgs { name, secret, scope, place } = args;
    let id = id(scope, name);
    let secret = secret.as_ref().unwrap_or(name);
    let path = workspace_path(&place.workspace, &below(&id));
    let body = json!({ "secret": secret }).to_string();
    let asked = client.api(ApiRequest::new(Method::PUT, path).entry(&body));
    let set = waiting("binding the secret", context, asked).await?;
    let sentence = format!(
        "{id} is the secret {} for new runs; the agent and all programs that it starts can read it",
        harmless(secret)
    );
    output::told(&set, &sentence, context.format)
}

fn id(scope: &EnvScopeArgs, name: &str) -> String {
    let EnvScopeArgs { agent, preview_environment, all: _ } = scope;
    match (agent, preview_environment) {
        (Some(agent), _) => format!("agent:{agent}:{name}"),
        (None, Some(id)) => format!("preview_environment:{id}:{name}"),
        (None, None) => format!("workspace:{name}"),
    }
}

fn below(id: &str) -> String {
    format!("/env-bindings/{}", segment(id))
}

fn row(binding: &Value) -> Vec<String> {
    let members = ["id", "scope", "scope_id", "name", "secret", "updated_at", "updated_by"];
    members.map(|member| table::text(binding, member)).to_vec()
}
