//! A manifest as people write it, from its text to the files of a run of it.

use std::os::unix::fs::PermissionsExt;

use fs_err as fs;
use serde_json::{Value, json};

use super::{Mount, has_fuse, of_run, shell};
use crate::support::{Daemon, Place, fixture, fixture_entry};

/// Two programs of a package manager; one has a secret, a time and a limit.
const MANIFEST: &str = r#"# agents/my-agent/agent.yaml
name: my-agent
description: "Agent with GitHub and filesystem MCP tools"
skills:
  - code-analysis
mcp:
  servers:
    github:
      command: "npx"
      args: ["-y", "@anthropic/mcp-github"]
      env:
        GITHUB_TOKEN: "${GITHUB_TOKEN}"
      timeout: 30s
      max_output_tokens: 4096

    filesystem:
      command: "npx"
      args: ["-y", "@anthropic/mcp-filesystem", "/home/user/projects"]
"#;

/// A daemon with a server of its own, for which `npx` is the fixture, and reports its arguments.
fn up(place: &Place) -> Daemon {
    let script = format!(
        "#!/bin/sh\necho \"started as $2 with '$GITHUB_TOKEN'\" >&2\nexec '{}' --stdio\n",
        fixture().display()
    );
    fs::create_dir(place.path("bin")).unwrap();
    place.write("bin/npx", &script);
    fs::set_permissions(place.path("bin/npx"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = format!("{}:{}", place.path("bin").display(), path.display());
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.env("PATH", path);
    });
    daemon.event("ready");
    daemon
}

/// R-M4, R-M5, R-M6, R-M9, R-M30, R-C1, R-C2, R-G1: a manifest is applied, a run of it is number 1,
/// its servers are files under that number, and are reported under it.
#[test]
fn r_m4_a_manifest_becomes_files_of_a_run() {
    let place = Place::with(&json!({ "github": fixture_entry() }));
    let daemon = up(&place);
    place.write("agent.yaml", MANIFEST);
    let apply = ["agents", "apply", "-f", "agent.yaml"];
    place.run(apply).failed(
        1,
        &[
            "agent.yaml: `skills[0]` (line 5): ",
            "agent.yaml: `mcp.servers.github.env.GITHUB_TOKEN` (line 12): ",
            "narthex secrets set GITHUB_TOKEN",
        ],
    );
    place.pipe(&["secrets", "set", "GITHUB_TOKEN"], "canary-004").succeeded();
    let skill = r#"{"name": "code-analysis", "mcpServers": {}}"#;
    place.pipe(&["capabilities", "apply", "-f", "-"], skill).succeeded();
    place.run(apply).succeeded();
    let server = place.run(["servers", "get", "my-agent-github"]).succeeded().json();
    assert_eq!((&server["timeoutMs"], &server["maxOutputTokens"]), (&json!(30_000), &json!(4096)));

    let made = place.run(["runs", "create", "--agent", "my-agent", "--json"]).succeeded().json();
    let made = &made["data"];
    assert_eq!(made["pid"], 1, "{made}");
    let token = made["token"].as_str().unwrap();
    let listed = of_run(&place, token, &["vfs", "ls"]).succeeded().stdout;
    assert!(listed.starts_with("1-filesystem/\n1-github/\n"), "{listed}");
    let call = ["vfs", "call", "1-github/tools/echo", "message=by path"];
    let done = of_run(&place, token, &call).succeeded().json();
    assert_eq!(done["content"][0]["text"], "by path");

    // The daemon's own run has a server of the same name, and another path for it.
    let own = place.run(["vfs", "ls"]).succeeded().stdout;
    assert!(own.starts_with("0-github/\n"), "{own}");
    place.run(["vfs", "ls", "1-github"]).failed(1, &["[NOT_FOUND]"]);
    of_run(&place, token, &["vfs", "ls", "0-github"]).failed(1, &["[NOT_FOUND]"]);
    let mounts = place.run(["mcp", "list", "--json"]).succeeded().json()["data"]["mounts"].take();
    let path = |mount: &Value| mount["path"].as_str().unwrap().to_owned();
    let mut paths: Vec<_> = mounts.as_array().unwrap().iter().map(path).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/mnt/mcp/0-github", "/mnt/mcp/1-filesystem", "/mnt/mcp/1-github"]);
    let quiet = place.run(["mcp", "list", "--quiet"]).succeeded().stdout;
    assert_eq!(quiet, "github\n1-filesystem\n1-github\n");

    // Each has its own log, in which no secret is (D22).
    for name in ["1-github", "1-filesystem"] {
        place.until_logged(&["mcp", "logs", name], 1);
    }
    let logs = |name: &str| place.run(["mcp", "logs", name]).succeeded().stdout;
    let github = logs("1-github");
    assert!(github.contains("started as @anthropic/mcp-github with '"), "{github}");
    assert!(!github.contains("canary-004") && !github.contains("with ''"), "{github}");
    let files = logs("1-filesystem");
    assert!(files.contains("started as @anthropic/mcp-filesystem with ''"), "{files}");
    assert!(!logs("0-github").contains("anthropic"), "that is another one");
    assert_eq!(logs("github"), logs("0-github"), "the daemon's own comes first");
    place.run(["mcp", "logs", "2-github"]).failed(1, &["not_found"]);

    if has_fuse() {
        let mut mount = Mount::new(&place, Some(token));
        let script = r#"echo '{"message":"by file"}' > mcp/1-github/tools/echo
            jq -r '.content[0].text' mcp/1-github/tools/echo"#;
        assert_eq!(shell(&place, script).succeeded().stdout, "by file\n");
        place.run(["runs", "end", made["run_id"].as_str().unwrap()]).succeeded();
        mount.ends(Some(0));
        place.run(["mcp", "logs", "1-github"]).failed(1, &["not_found"]);
    }
    drop(daemon);
}
