//! The example of embedding works unchanged.

#[path = "../../examples/embed.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod embed;

use serde_json::json;

use crate::world::{in_time, shell_script};

/// E1, E65: the example starts the servers of a file, prints their outcomes, and leaves no process.
#[tokio::test]
async fn e1_the_example_of_embedding_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    // Text in the script that looks like a placeholder belongs to the shell.
    let script = shell_script().replace("${", "$${");
    let servers = json!({ "servers": {
        "bad": { "transport": "stdio", "command": "no-such-program-here" },
        "good": { "transport": "stdio", "command": "sh", "args": ["-c", script] },
    } });
    fs_err::write(&file, servers.to_string()).unwrap();
    let lines = in_time(embed::run(&file)).await.unwrap();
    assert!(lines[0].starts_with("bad: ") && lines[0].contains("not found"), "{lines:?}");
    assert_eq!(lines[1], "good: ready, 0 tools");
    assert!(lines[2].ends_with("snapshots on the way"), "{lines:?}");
}
