//! The cost of credentials: instructions of a small call with an API key, and with tokens of OAuth,
//! at one daemon and one server.

use std::path::Path;

use anyhow::{Result, ensure};
use fs_err as fs;
use serde::Deserialize;
use serde_json::{Value, json};

use super::count::Counter;
use super::{Calls, QUICK_WINDOW, READY, SOON, STOPPED, program, read_within, wait_until_quiet};
use crate::peers::Daemon;
use crate::process::Service;

/// Aliases of the one server, each with a credential of its own: an API key, a token that narthex
/// gets as a client, and a token of a person.
const ALIASES: [&str; 3] = ["key", "machine", "person"];
/// Number of measurements of each. The least one counts, as other work of the daemon only adds.
const ROUNDS: usize = 2;

/// Instructions of a small call, by the credential that the server gets.
pub(in crate::bench) struct ByCredential {
    pub(in crate::bench) key: f64,
    pub(in crate::bench) machine: f64,
    pub(in crate::bench) person: f64,
}

/// The line that the protected server prints.
#[derive(Deserialize)]
struct Protected {
    url: String,
    token_url: String,
    client_id: String,
    client_secret: String,
    access_token: String,
    expires_at: u64,
}

impl Protected {
    fn start(profile: &str, log: &Path) -> Result<(Self, Service)> {
        let mut command = program("narthex-protected", profile);
        let service = Service::start("narthex-protected", &mut command, log)?;
        let protected =
            service.wait_for("line with its url", SOON, |line| serde_json::from_str(line).ok())?;
        Ok((protected, service))
    }

    /// The server once for each credential.
    fn servers(&self) -> Value {
        let Self { url, token_url, client_id, client_secret, access_token, expires_at } = self;
        let entry = |auth: Value| {
            // The daemon is slow under the program that counts.
            let slow = "600s";
            json!({ "transport": "http", "url": url, "auth": auth, "mountTimeout": slow })
        };
        json!({
            "key": entry(json!({
                "mode": "apiKey",
                "key": access_token,
                "valuePrefix": "Bearer ",
            })),
            "machine": entry(json!({
                "mode": "clientCredentials",
                "clientId": client_id,
                "clientSecret": client_secret,
                "tokenUrl": token_url,
                "resource": url,
            })),
            "person": entry(json!({
                "mode": "authorizationCode",
                "tokens": { "accessToken": access_token, "expiresAt": expires_at },
            })),
        })
    }
}

/// Counts a small call with each credential, in turns, so that all are counted in one process.
pub(in crate::bench) fn by_credential(profile: &str, logs: &Path) -> Result<ByCredential> {
    let counter = Counter::find_or_install()?;
    let (protected, _service) = Protected::start(profile, &logs.join("protected.log"))?;
    let dir = tempfile::Builder::new().prefix("narthex-bench-").tempdir()?;
    let (config, data) = (dir.path().join("mcp.json"), dir.path().join("data"));
    fs::write(&config, json!({ "servers": protected.servers() }).to_string())?;
    let narthex = counter.under(&program("narthex", profile), logs);
    let daemon = Daemon::start_as(narthex, &config, &data, &logs.join("narthex-credentials.log"))?;
    daemon.wait_until_ready(&ALIASES, READY)?;
    for alias in ALIASES {
        // One-time costs are not counted.
        calls(&daemon, profile, alias)?;
    }
    let mut least = [f64::MAX; ALIASES.len()];
    for _ in 0..ROUNDS {
        for (alias, least) in ALIASES.iter().zip(&mut least) {
            wait_until_quiet(daemon.pid())?;
            let counted = counter.count(daemon.pid(), || {
                let sent = calls(&daemon, profile, alias)?;
                wait_until_quiet(daemon.pid())?;
                Ok(sent)
            })?;
            *least = least.min(counted);
        }
    }
    daemon.stop(STOPPED)?;
    let [key, machine, person] = least;
    Ok(ByCredential { key, machine, person })
}

/// Calls the server under an alias for a time. Gives the number of calls, each of which succeeded.
fn calls(daemon: &Daemon, profile: &str, alias: &str) -> Result<u64> {
    let mut command = program("narthex-load", profile);
    command.args(["run", "--url", &daemon.endpoint_url("/mcp"), "--era", "modern"]);
    command.arg("--bearer-file").arg(daemon.token_file());
    command.args(["--work", "echo", "--prefix", &format!("mcp__{alias}__")]);
    command.args(["--warm-up-ms", "0"]);
    command.args(["--window-ms", &QUICK_WINDOW.as_millis().to_string()]);
    let Calls { sent, right, failed } = read_within(&mut command, SOON)?;
    ensure!(right == sent, "{failed} of {sent} calls of {alias} failed");
    Ok(sent)
}
