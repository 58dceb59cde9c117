//! Humans who sign in at a real OpenID provider, with a daemon of their own.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use super::install::Peers;
use crate::process;
use crate::workspace;

/// Longest time for the start of two providers and the daemon, and for a few sign-ins.
const DONE: Duration = Duration::from_secs(120);

/// Signs in, and checks that a stranger cannot.
pub(super) fn at_providers(peers: &Peers) -> Result<()> {
    let dir = workspace::target().join("e2e/sign-in");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    let config = dir.join("mcp.json");
    fs::write(&config, json!({ "servers": {} }).to_string())?;
    let mut command = Command::new(peers.node());
    command.arg(workspace::root().join("e2e/clients/oidc_sign_in.mjs")).arg(peers.node_dir());
    command.arg(workspace::built("narthex")).arg(&dir).arg(&config);
    let done = process::capture(&mut command, DONE)?;
    ensure!(done.status.success(), "{}{}", done.stdout, done.stderr);
    let line = done.stdout.lines().next_back().context("the driver printed nothing")?;
    let found: Value = serde_json::from_str(line)?;
    let me = &found["me"];
    let wanted = [
        ("signedIn", &found["signedIn"], json!(303)),
        ("name", &me["name"], json!("ada@corp.example")),
        ("kind", &me["kind"], json!("human")),
        ("method", &me["method"], json!("oidc")),
        ("assurance", &me["assurance"], json!("authenticated")),
        ("is_operator", &me["is_operator"], json!(false)),
        ("same account at the second time", &found["same"], json!(true)),
        ("another browser", &found["thief"], json!(403)),
        ("the same answer again", &found["again"], json!(403)),
        ("a person who is not admitted", &found["stranger"], json!([403, true])),
        ("an answer of another provider", &found["mixedUp"], json!(403)),
    ];
    for (what, value, expected) in wanted {
        ensure!(*value == expected, "{what}: {value} instead of {expected}\n{line}");
    }
    Ok(())
}
