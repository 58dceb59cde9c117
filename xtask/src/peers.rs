//! Real MCP clients and servers, with the gateway between them.
//!
//! Each client lists and calls through the aggregated and the transparent endpoint, over HTTP and
//! stdio; each server answers a call; and the daemon ends without leaving a child behind.

mod clients;
mod command;
mod daemon;
pub(crate) mod install;
mod pages;
mod servers;
mod setup;
mod sign_in;
mod story;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use fs_err as fs;
use serde_json::json;

use self::clients::{CLIENTS, Client, Endpoint};
pub(crate) use self::daemon::Daemon;
pub(crate) use self::install::{BrowserTools, Peers};
use self::servers::{ALIASES, CALLS, Servers};
use crate::tally::Tally;
use crate::workspace;

/// An `npx` download is not part of it: all servers are installed.
const READY: Duration = Duration::from_secs(60);
const STOPPED: Duration = Duration::from_secs(20);

/// Runs the whole matrix.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let logs = workspace::target().join("e2e/peers");
    fs::create_dir_all(&logs)?;
    let servers = Servers::start(peers, &logs)?;
    let daemon = Daemon::start(&servers.config, &servers.data, &logs.join("narthex.log"))?;
    let mut tally = Tally::default();
    tally.check("all servers are ready", || daemon.wait_until_ready(&ALIASES, READY));
    let socat = daemon::socat(&servers.data, "everything")?;
    for client in &CLIENTS {
        for (name, endpoint) in endpoints(&daemon, client, &servers.data, &socat) {
            tally.check(&format!("client {} by {name}", client.name()), || {
                lists_and_calls(peers, client, name, &endpoint)
            });
        }
    }
    let aggregated = daemon.http(AGGREGATED);
    for call in &CALLS {
        tally.check(&format!("server {} answers {}", call.alias, call.tool), || {
            servers.answers(peers, &aggregated, call)
        });
    }
    let (config, data) = (&servers.config, &servers.data);
    tally.check("narthex call, in process", || command::calls("--config", config));
    tally.check("narthex call, through the daemon", || command::calls("--data", data));
    for page in &pages::PAGES {
        tally.check(&format!("programs of {}", page.path), || {
            page.runs(peers, &daemon, data, &logs.join("pages"))
        });
    }
    for era in ["legacy", "modern"] {
        tally.check(&format!("an agent asks a human ({era})"), || {
            story::is_told(peers, &daemon, &servers, &logs, era)
        });
    }
    tally.check("humans sign in at npm's oidc-provider", || sign_in::at_providers(peers));
    setup::check(&mut tally, peers, &logs)?;
    tally.check("SIGTERM stops the daemon and every child", || daemon.stop(STOPPED));
    Ok(tally)
}

const AGGREGATED: &str = "/mcp";
const TRANSPARENT: &str = "/mcp/everything";
const AGGREGATED_STDIO: &str = "connect";
const TRANSPARENT_STDIO: &str = "connect --server everything";
const AGGREGATED_SOCAT: &str = "socat mcp.sock";
const TRANSPARENT_SOCAT: &str = "socat everything.sock";

fn endpoints(
    daemon: &Daemon,
    client: &Client,
    data: &Path,
    [all, one]: &[Endpoint; 2],
) -> Vec<(&'static str, Endpoint)> {
    let mut endpoints =
        vec![(AGGREGATED, daemon.http(AGGREGATED)), (TRANSPARENT, daemon.http(TRANSPARENT))];
    if client.is_tried_over_stdio {
        endpoints.push((AGGREGATED_STDIO, daemon::stdio(data, None)));
        endpoints.push((TRANSPARENT_STDIO, daemon::stdio(data, Some("everything"))));
        endpoints.push((AGGREGATED_SOCAT, all.clone()));
        endpoints.push((TRANSPARENT_SOCAT, one.clone()));
    }
    endpoints
}

/// One client at one endpoint: its era, its list, and the result of one call.
fn lists_and_calls(peers: &Peers, client: &Client, name: &str, endpoint: &Endpoint) -> Result<()> {
    let is_aggregated = [AGGREGATED, AGGREGATED_STDIO, AGGREGATED_SOCAT].contains(&name);
    let tool = if is_aggregated { "mcp__everything__echo" } else { "echo" };
    let message = format!("hello from {} by {name}", client.name());
    let answer = client.drive(peers, endpoint, tool, &json!({ "message": message }))?;
    let era = answer.era;
    ensure!(era == client.speaks, "it spoke {era:?}, not {:?}", client.speaks);
    ensure!(
        answer.tools.iter().any(|listed| listed == tool),
        "{tool} is not in {:?}",
        answer.tools
    );
    if is_aggregated {
        for alias in ALIASES {
            let prefix = format!("mcp__{alias}__");
            let is_listed = answer.tools.iter().any(|listed| listed.starts_with(&prefix));
            ensure!(is_listed, "no tool of {alias} is in {:?}", answer.tools);
        }
    }
    answer.has_text(&format!("Echo: {message}"))
}
