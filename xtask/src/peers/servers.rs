//! The real servers: started or configured here, with a little of their own to work on.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err::{self as fs, os::unix::fs::symlink};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::clients::{ANY, Endpoint};
use super::install::{Peers, provide};
use crate::process::{self, Service};

const READY: Duration = Duration::from_secs(30);
/// Between the choice of a port and its use, another program may take it.
const TRIES: usize = 3;

pub(super) const ALIASES: [&str; 7] =
    ["everything", "everything-http", "everything-sse", "filesystem", "git", "memory", "time"];

/// The servers behind the gateway, for as long as this lives.
pub(super) struct Servers {
    /// The daemon's configuration file.
    pub(super) config: PathBuf,
    /// The daemon's data folder. Short, since sockets lie in it.
    pub(super) data: PathBuf,
    place: Place,
    _remote: [Service; 2],
    _dir: TempDir,
}

/// The folders that the servers work on.
struct Place {
    files: PathBuf,
    repository: PathBuf,
    memory: PathBuf,
}

/// One call of one server.
pub(super) struct Call {
    pub(super) alias: &'static str,
    pub(super) tool: &'static str,
    arguments: fn(&Place) -> Value,
    expected: &'static str,
}

pub(super) const CALLS: [Call; 8] = [
    call("everything", "get-sum", |_| json!({ "a": 20, "b": 22 }), "42"),
    call("everything-http", "echo", |_| json!({ "message": "by HTTP" }), "Echo: by HTTP"),
    call("everything-sse", "echo", |_| json!({ "message": "by SSE" }), "Echo: by SSE"),
    call("filesystem", "read_text_file", read_text_file, "a porch of a building"),
    call("git", "git_log", |place| json!({ "repo_path": place.repository }), "the first commit"),
    call("memory", "create_entities", create_entities, "porch"),
    call("memory", "read_graph", |_| json!({}), "at the west end"),
    call("time", "convert_time", convert_time, "T17:30:00+05:30"),
];

const fn call(
    alias: &'static str,
    tool: &'static str,
    arguments: fn(&Place) -> Value,
    expected: &'static str,
) -> Call {
    Call { alias, tool, arguments, expected }
}

fn read_text_file(place: &Place) -> Value {
    json!({ "path": place.files.join("narthex.txt") })
}

fn create_entities(_: &Place) -> Value {
    let porch =
        json!({ "name": "porch", "entityType": "place", "observations": ["at the west end"] });
    json!({ "entities": [porch] })
}

fn convert_time(_: &Place) -> Value {
    json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kolkata" })
}

impl Servers {
    /// Starts the remote servers and writes the daemon's configuration.
    pub(super) fn start(peers: &Peers, logs: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-").tempdir()?;
        // The filesystem server resolves links before it compares.
        let root = fs::canonicalize(dir.path())?;
        let place = Place::furnish(&root)?;
        let (http, http_port) = everything(peers, "streamableHttp", logs)?;
        let (sse, sse_port) = everything(peers, "sse", logs)?;
        let config = root.join("mcp.json");
        let servers = json!({ "mcpServers": place.entries(peers, http_port, sse_port) });
        fs::write(&config, serde_json::to_vec_pretty(&servers)?)?;
        Ok(Self { config, data: root.join("data"), place, _remote: [http, sse], _dir: dir })
    }

    /// A server for the catalog, a tool of which is gated, and the folder that it works on.
    pub(super) fn gated(&self, peers: &Peers) -> Result<(Value, &Path)> {
        Ok((self.place.gated(peers)?, &self.place.files))
    }

    /// One call through the aggregated endpoint.
    pub(super) fn answers(&self, peers: &Peers, endpoint: &Endpoint, call: &Call) -> Result<()> {
        let tool = format!("mcp__{}__{}", call.alias, call.tool);
        let answer = ANY.drive(peers, endpoint, &tool, &(call.arguments)(&self.place))?;
        answer.has_text(call.expected)
    }
}

impl Place {
    fn furnish(root: &Path) -> Result<Self> {
        let place = Self {
            files: root.join("files"),
            repository: root.join("repository"),
            memory: root.join("memory.jsonl"),
        };
        fs::create_dir(&place.files)?;
        fs::write(place.files.join("narthex.txt"), "a porch of a building\n")?;
        provide("git", &["--version"], &["git"])?;
        git(root, &["init", "--quiet", "--initial-branch", "main", "repository"])?;
        fs::write(place.repository.join("README"), "hello\n")?;
        git(&place.repository, &["add", "README"])?;
        git(&place.repository, &["commit", "--quiet", "--message", "the first commit"])?;
        Ok(place)
    }

    /// The filesystem server for the catalog: its tools that write need a grant.
    fn gated(&self, peers: &Peers) -> Result<Value> {
        let program = peers.module("@modelcontextprotocol/server-filesystem/dist/index.js");
        // A command of the catalog has at most 64 characters (X-E4).
        let node = self.files.with_file_name("node");
        if !node.exists() {
            symlink(peers.node(), &node)?;
        }
        Ok(json!({
            "id": "notes",
            "command": node,
            "args": [program, self.files],
            "tool_scopes": { "write_file": "files.write" },
        }))
    }

    /// The entries of `mcp.json`: each program by its full path, so that nothing is downloaded.
    fn entries(&self, peers: &Peers, http_port: u16, sse_port: u16) -> Value {
        let node = peers.node();
        let program =
            |name: &str| peers.module(&format!("@modelcontextprotocol/{name}/dist/index.js"));
        let python = |name: &str| peers.python("servers", name);
        let git = python("mcp-server-git");
        json!({
            "everything": { "command": node, "args": [program("server-everything"), "stdio"] },
            "everything-http": {
                "type": "http",
                "url": format!("http://127.0.0.1:{http_port}/mcp"),
            },
            "everything-sse": { "type": "sse", "url": format!("http://127.0.0.1:{sse_port}/sse") },
            "filesystem": { "command": node, "args": [program("server-filesystem"), self.files] },
            "git": { "command": git, "args": ["--repository", self.repository] },
            "memory": {
                "command": node,
                "args": [program("server-memory")],
                "env": { "MEMORY_FILE_PATH": self.memory },
            },
            "time": { "command": python("mcp-server-time"), "args": ["--local-timezone", "UTC"] },
        })
    }
}

/// Runs git as a neutral author, with any settings of the user.
fn git(dir: &Path, args: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    command.current_dir(dir).args([
        "-c",
        "user.name=narthex",
        "-c",
        "user.email=narthex@localhost",
    ]);
    command.args(["-c", "commit.gpgsign=false"]).args(args);
    let done = process::capture(&mut command, READY)?;
    ensure!(done.status.success(), "git {args:?} failed: {}", done.stderr);
    Ok(())
}

/// Starts server-everything on a free port.
fn everything(peers: &Peers, transport: &str, logs: &Path) -> Result<(Service, u16)> {
    let script = peers.module("@modelcontextprotocol/server-everything/dist/index.js");
    let mut last = None;
    for _ in 0..TRIES {
        let port = free_port()?;
        let mut command = Command::new(peers.node());
        command.arg(&script).arg(transport).env("PORT", port.to_string());
        let log = logs.join(format!("everything-{transport}.log"));
        let service = Service::start("server-everything", &mut command, &log)?;
        let port_text = port.to_string();
        let is_ready = |line: &str| line.contains(&port_text).then_some(());
        match service.wait_for("line with its port", READY, is_ready) {
            Ok(()) => return Ok((service, port)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("no try was made")?)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
