//! A run's configuration from a server, a capability, an agent and a request: the author's preview,
//! a runner's payload, and the text of a refusal.
//!
//! ```sh
//! cargo run -p narthex-catalog --example preview
//! ```

use std::process::ExitCode;

use narthex_catalog::{
    Agent, Capability, Catalog, EnvValue, Opening, Plan, RunInputs, RunRequest, ServerEntry,
    Surroundings,
};
use narthex_model::{Secret, SecretName, WorkspaceId};

const SERVER: &[u8] = br#"{
    "id": "docs", "name": "Papers", "url": "https://docs.test/${scope.tenant}/mcp",
    "config_schema": {
        "context_id": { "type": "string", "required": true },
        "api_key": { "type": "string", "kind": "secret", "header": "Authorization" } },
    "default_config": { "context_id": "default", "api_key": "${DOCS_KEY}" } }"#;
const CAPABILITY: &[u8] = br#"{ "name": "papers", "mcpServers": {
    "library": { "ref": "docs", "config": { "context_id": "${scope.context_id}" } } } }"#;
const AGENT: &[u8] = br#"{ "name": "reader", "capabilities": ["papers"],
    "params_schema": { "topic": { "type": "string", "required": true } } }"#;
const REQUEST: &[u8] = br#"{ "agent_name": "reader", "prompt": "Summarise",
    "params": { "topic": "auth" }, "scope": { "tenant": "acme", "context_id": "ctx-9" } }"#;

/// Returns the author's preview, a runner's payload, and the errors of a request without its scope.
pub fn run() -> Result<[serde_json::Value; 3], Box<dyn std::error::Error>> {
    let mut catalog = Catalog::default();
    let server = ServerEntry::parse(SERVER, None)?.value;
    let capability = Capability::parse(CAPABILITY, None)?.value;
    catalog.servers.insert(server.id.clone(), server);
    catalog.capabilities.insert(capability.name.clone(), capability);
    let agent = Agent::parse(AGENT, None)?.value;

    // The world, as far as configuration concerns it: no variable may be used, one secret is set.
    let workspace = WorkspaceId::default();
    let is_secret_set = |name: &SecretName| name.as_str() == "DOCS_KEY";
    let env = |_: &str| EnvValue::NotAllowed;
    let plan = Plan::new(
        &catalog,
        &agent,
        Surroundings {
            workspace: &workspace,
            env: &env,
            allowing: &|_| String::new(),
            is_secret_set: &is_secret_set,
        },
    );
    plan.check()?;

    let request = RunRequest::parse(REQUEST)?.value;
    let params = request.params_for(&agent);
    let inputs = RunInputs {
        run_id: "run_0a1b2c3d4e5f",
        session_id: "ses_0a1b2c3d4e5f",
        project_dir: None,
        params: &params,
        scope: &request.scope,
    };
    let run = plan.resolve(inputs)?;

    // Secrets come in only here, where a server starts or a runner asks for its payload.
    let opening =
        Opening { secret: &|_| Some(Secret::new("a key")), env: &|_| None, runner: &|_| None };
    let payload = run.payload(opening)?;

    let nothing = narthex_model::RunScope::default();
    let Err(faults) = plan.resolve(RunInputs { scope: &nothing, ..inputs }) else {
        return Err("a run without its scope was not refused".into());
    };
    Ok([plan.preview(), payload, serde_json::json!(faults.rejection())])
}

#[cfg_attr(
    not(test),
    expect(clippy::print_stdout, reason = "showing it is what this program is for")
)]
fn main() -> ExitCode {
    match run() {
        Ok(parts) => {
            parts.iter().for_each(|part| println!("{part:#}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}
