//! Scripts that start a daemon and real peers, each with the facts that it has to find.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use crate::peers::Peers;
use crate::process;
use crate::workspace;

/// Longest time for two starts of the daemon, several sign-ins, and tokens that expire.
const DONE: Duration = Duration::from_secs(120);

/// A script in `e2e/clients`, which prints one JSON object of facts.
pub(super) struct Driver {
    pub(super) name: &'static str,
    script: &'static str,
    /// The facts that a good run finds.
    wanted: fn() -> Value,
}

pub(super) static DRIVERS: [Driver; 3] = [
    Driver {
        name: "sign-in at npm's oidc-provider, for a server on the TypeScript SDK",
        script: "oauth_oidc_provider.mjs",
        wanted: signed_in,
    },
    Driver {
        name: "sign-in at npm's better-auth, whose tokens are JWTs",
        script: "oauth_better_auth.mjs",
        wanted: signed_in,
    },
    Driver {
        name: "real clients, and the suite's authorization scenarios, at the door",
        script: "door.mjs",
        wanted: let_in,
    },
];

/// The facts of `e2e/clients/oauth_story.mjs`.
fn signed_in() -> Value {
    json!({
        // The row waits with a link before any sign-in.
        "before": ["authenticating", true, 0],
        "authorized": 0,
        "subject": "ada",
        "scopes": ["mcp:tools"],
        "renewedOnce": true,
        "sameSubject": true,
        "sameClient": true,
        "afterRestart": ["ada", true],
        // One registration and one consent, over both daemons.
        "once": [1, 1],
        "revokedByReuse": 0,
        "signedOut": 0,
        "revoked": true,
        "refusedAfter": true,
    })
}

/// The facts of `e2e/clients/door.mjs`.
fn let_in() -> Value {
    let documents = json!({ "statuses": [401, 401, 401], "resource": true, "issuer": true });
    let echo = "Echo: let in";
    json!({
        "documents": documents,
        "byAddress": documents,
        // The exit code, and the numbers of passed and failed checks.
        "suite": [0, 3, 0],
        "typescript, legacy": echo,
        "typescript, modern": echo,
        "python": echo,
        "mcp-remote": echo,
        "inspector": echo,
        "renewal": {
            "statuses": [200, 200, 200],
            "rotates": true,
            "grace": true,
            "isUsable": true,
            "afterRevocation": 401,
        },
    })
}

impl Driver {
    pub(super) fn run(&self, peers: &Peers, logs: &Path) -> Result<()> {
        let folder = logs.join(self.script);
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(peers.node());
        command.arg(workspace::root().join("e2e/clients").join(self.script));
        command.arg(peers.node_dir()).arg(workspace::built("narthex"));
        command.arg(peers.python("mcp-v2", "python"));
        let done = process::capture(&mut command, DONE)?;
        fs::write(folder.join("driver.log"), format!("{}{}", done.stdout, done.stderr))?;
        ensure!(done.status.success(), "{}{}", done.stdout, done.stderr);
        let line = done.stdout.lines().next_back().context("the driver printed nothing")?;
        let found = serde_json::from_str(line).with_context(|| format!("printed `{line}`"))?;
        compare(&(self.wanted)(), &found)
    }
}

/// Checks that every wanted fact was found as it is wanted.
fn compare(wanted: &Value, found: &Value) -> Result<()> {
    let wanted = wanted.as_object().context("wanted facts have names")?;
    for (name, value) in wanted {
        ensure!(found[name] == *value, "{name}: {} instead of {value}\n{found}", found[name]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DRIVERS, compare};
    use crate::workspace;

    /// E213, E214.
    #[test]
    fn a_fact_that_is_missing_or_differs_is_a_failure() {
        let wanted = json!({ "subject": "ada", "revoked": 0 });
        compare(&wanted, &json!({ "subject": "ada", "revoked": 0, "more": 1 })).unwrap();
        assert!(compare(&wanted, &json!({ "subject": "ada", "revoked": 1 })).is_err());
        assert!(compare(&wanted, &json!({ "subject": "ada" })).is_err());
    }

    #[test]
    fn each_driver_wants_facts_and_has_its_script() {
        for driver in &DRIVERS {
            let wanted = (driver.wanted)();
            assert!(wanted.as_object().is_some_and(|facts| !facts.is_empty()), "{}", driver.name);
            let script = workspace::root().join("e2e/clients").join(driver.script);
            assert!(script.is_file(), "{}", script.display());
        }
    }
}
