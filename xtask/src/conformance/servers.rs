//! The servers behind the gateway, and their possible results there.

use std::process::Command;

use super::suites::Suite;
use crate::peers::Peers;
use crate::workspace;

/// One server.
pub(super) struct Server {
    /// Its alias at the gateway.
    pub(super) name: &'static str,
    start: Start,
    /// The eras that it speaks.
    eras: &'static str,
    /// Least number of checks of each suite that pass at the gateway, in the order of the suites.
    pub(super) floors: [u64; 3],
}

enum Start {
    /// The fixture of this repository.
    Fixture,
    /// A program in `e2e/servers`, on the Python SDK.
    Python,
    /// A server on the TypeScript SDK.
    Node,
}

pub(super) const SERVERS: [Server; 5] = [
    Server { name: "fixture", start: Start::Fixture, eras: "both", floors: [40, 84, 197] },
    Server { name: "legacy-only", start: Start::Fixture, eras: "legacy", floors: [40, 84, 167] },
    // Two checks of 84 are about a server that cuts its stream, which only legacy servers can do.
    Server { name: "modern-only", start: Start::Fixture, eras: "modern", floors: [40, 82, 197] },
    Server { name: "python-sdk", start: Start::Python, eras: "both", floors: [40, 84, 164] },
    Server { name: "typescript-sdk", start: Start::Node, eras: "both", floors: [40, 84, 164] },
];

impl Server {
    /// True if a suite can test the server without the gateway.
    pub(super) fn speaks(&self, suite: &Suite) -> bool {
        self.eras == "both" || self.eras == suite.era
    }

    /// The program; it prints one JSON line with its `url`.
    pub(super) fn command(&self, peers: &Peers) -> Command {
        let script = |name| workspace::root().join("e2e/servers").join(name);
        match self.start {
            Start::Fixture => {
                let mut command = Command::new(workspace::built("narthex-fixture"));
                command.args(["--http", "127.0.0.1:0", "--eras", self.eras]);
                command
            }
            Start::Python => {
                let mut command = Command::new(peers.python("mcp-v2", "python"));
                command.arg(script("everything.py"));
                command
            }
            Start::Node => {
                let mut command = Command::new(peers.node());
                command.arg(script("everything.mjs")).arg(peers.node_dir());
                command
            }
        }
    }
}
