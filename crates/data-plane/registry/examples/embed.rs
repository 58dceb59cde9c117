//! Embeds the registry in another program: no doors, no store, no daemon.
//!
//! Takes an `mcp.json`, starts its servers, prints the outcome of each, and stops them all:
//!
//! ```sh
//! cargo run -p narthex-registry --example embed -- examples/mcp.json
//! ```

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use bytes::Bytes;
use narthex_model::Provenance;
use narthex_registry::{
    Layer, Registry, RegistryOptions, ServerResult,
    config::{self, Entry},
    layers::compose,
};
use narthex_supervisor::{BaseEnvironment, shim};
use narthex_upstream::ClientIdentity;
use narthex_wire::Revision;

/// Starts the servers of a file; returns the outcome of each, one line per server.
pub async fn run(file: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let identity = ClientIdentity {
        info: Bytes::from_static(br#"{"name":"embedder","version":"1.0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    };
    // The registry reads no environment but the one given here.
    let options = RegistryOptions::new(identity, BaseEnvironment::from_process());
    let registry = Registry::new(options)?;

    // The present state comes at once, and then every transition.
    let mut subscription = registry.subscribe();

    let root = std::env::current_dir()?;
    let entries: Vec<Entry> = config::load_file(file, &root, &|_name| None)?.entries;
    let file: PathBuf = file.to_owned();
    let layer =
        Layer { provenance: Provenance::Workspace, file: Some(file.as_path().into()), entries };
    let results = registry.apply_config(compose(&[layer])).await?;

    let mut lines = Vec::new();
    for result in &results {
        lines.push(match result {
            ServerResult::Ready { id, tool_count } => format!("{id}: ready, {tool_count} tools"),
            ServerResult::Authenticating { id, auth_url } => format!("{id}: sign in at {auth_url}"),
            ServerResult::Error { id, error } => format!("{id}: {error}"),
        });
    }
    let mut transitions = 0;
    while subscription.try_next().is_some() {
        transitions += 1;
    }
    lines.push(format!("{transitions} snapshots on the way"));

    // Applying the same set again would change nothing; `disable`, `enable`, `reconnect` and
    // `remove_server` take a server by its name.
    registry.close().await;
    Ok(lines)
}

#[cfg_attr(
    not(test),
    expect(clippy::print_stdout, reason = "showing it is what this program is for")
)]
fn main() -> ExitCode {
    // The shim check comes first: the same program is the supervisor of each server, so that no
    // process of a server outlives this process.
    if let Some(code) = shim::run_if_asked() {
        return code;
    }
    match start() {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).unwrap_or_else(|| "mcp.json".into());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(Path::new(&file)))
}
