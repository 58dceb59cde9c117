//! Scripts that start a daemon and real peers, each with the facts that it has to find.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use crate::peers::Peers;
use crate::peers::install::{self, Agents};
use crate::process;
use crate::workspace;

/// Longest time for two starts of the daemon, several sign-ins, and tokens that expire.
const DONE: Duration = Duration::from_secs(120);

/// The variable that names the browser to the scripts.
const BROWSER: &str = "NARTHEX_E2E_CHROMIUM";

/// The programs that the scripts start.
pub(super) struct Programs<'p> {
    pub(super) peers: &'p Peers,
    agents: Agents,
    browser: &'static str,
}

impl<'p> Programs<'p> {
    /// Installs what is missing.
    pub(super) fn install(peers: &'p Peers) -> Result<Self> {
        // Gives a program a terminal.
        install::provide("script", &["--version"], &["bsdutils"])?;
        Ok(Self { peers, agents: Agents::install()?, browser: install::browser()? })
    }
}

/// A script in `e2e/clients`, which prints one JSON object of facts.
pub(super) struct Driver {
    pub(super) name: &'static str,
    script: &'static str,
    /// The facts that a good run finds.
    wanted: fn() -> Value,
}

pub(super) static DRIVERS: [Driver; 6] = [
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
    Driver {
        name: "a passkey, consent, refusal and revocation in Chromium, for real clients",
        script: "door_chromium.mjs",
        wanted: consented,
    },
    Driver {
        name: "Claude's agent CLI signs its human in at the door",
        script: "door_claude.mjs",
        wanted: acted_for,
    },
    Driver {
        name: "the pages of sign-ins to servers in Chromium, and a click without an account",
        script: "pages_chromium.mjs",
        wanted: connected,
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

/// The facts of `e2e/clients/door_chromium.mjs`.
fn consented() -> Value {
    let page = "Let a program in?";
    let failed = |status: u16| json!([status, "That did not work", true]);
    json!({
        "passkeys": true,
        "stranger": ["The passkey was not used. Try again.", "Sign in"],
        "assurance": "authenticated",
        "typescript": "Echo: let in",
        "mcp-remote": "Echo: let in",
        // A client with an agent gets no other server.
        "otherServers": [],
        // The first client leads to the sign-in, and the others to the page of consent at once.
        "askedFirst": "Sign in",
        "askedAgain": page,
        "consent": {
            "program": "narthex-e2e-modern",
            "host": "none: the name is only its own claim",
            "place": "127.0.0.1",
            "address": true,
            "endpoint": true,
            "scopes": "mcp offline_access",
            "choices": ["the servers of the agent reader (default)", "all servers of this daemon"],
            // A human who has a choice makes it.
            "chosen": null,
            "notes": ["The answer goes to a program on your own machine. Go on only if you started \
                       this sign-in just now, in a program that you trust."],
            "hint": "You answer as ada.",
        },
        "careless": {
            "invalid": 2,
            "stays": true,
            "fault": "Choose the servers that the program may use. It was not let in yet.",
            "value": "agent default reader",
            "chosen": "the servers of the agent reader (default)",
            "error": "access_denied",
        },
        "refused": {
            "program": "a <b>bold</b> client",
            "error": "access_denied",
            "hasCode": false,
            "state": "s1",
            "iss": true,
        },
        // A page again, since the client proved no host; and the same two clients as before.
        "again": ["Echo: let in", page, true, 2],
        "programs": [
            "mcp-cli-proxy at 127.0.0.1\nuses all servers of this daemon, since DAY",
            "narthex-e2e-modern at 127.0.0.1\nuses the servers of the agent reader (default), \
             since DAY",
        ],
        // The numbers of programs before and after, and the token before and after.
        "revoked": [2, 1, true, false],
        "errors": {
            "client-unknown": failed(400),
            "client-malformed": failed(400),
            "document-lost": failed(400),
            "redirect-foreign": failed(400),
            "consent-gone": failed(409),
            "link-used": failed(403),
        },
        "wide": [],
        "violations": [],
        "complaints": [],
    })
}

/// The facts of `e2e/clients/door_claude.mjs`.
fn acted_for() -> Value {
    json!({
        "asks": true,
        "startsWithoutTerminal": false,
        "askedFirst": "Sign in",
        "program": "Claude Code",
        "login": 0,
        "text": "Echo: let in",
        // It acts for a human, and is live.
        "clients": [[true, true]],
        "wide": [],
        "violations": [],
        "complaints": [],
    })
}

/// The facts of `e2e/clients/pages_chromium.mjs`.
fn connected() -> Value {
    let without = "Your account is not connected.";
    json!({
        "connection": {
            "states": [without, without, "Your account is connected.", without],
            // A refusal leads back to the page, and names no command.
            "declined": [true, false],
            "issuer": true,
            // The address that led back counts once, and then names no command.
            "again": [409, 0],
        },
        // The remedy that the page of a refusal names works.
        "live": [true, 0, "ready"],
        "click": { "text": "Echo: clicked", "wide": [], "violations": [], "complaints": [] },
        "wide": [],
        "violations": [],
        "complaints": [],
    })
}

impl Driver {
    pub(super) fn run(&self, programs: &Programs<'_>, logs: &Path) -> Result<()> {
        let Programs { peers, agents, browser } = programs;
        let folder = logs.join(self.script);
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(peers.node());
        command.arg(workspace::root().join("e2e/clients").join(self.script));
        command.arg(peers.node_dir()).arg(workspace::built("narthex"));
        command.arg(peers.python("mcp-v2", "python")).arg(agents.dir());
        command.env(BROWSER, browser);
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
