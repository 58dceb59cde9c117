//! The Unix sockets of a run that asks for them (D2, X-M45).

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::request;
use crate::{
    runs::{Operator, RUNS},
    world::{SOON, Socket, World, call, initialize, legacy, modern},
};

fn with_sockets() -> Value {
    let mut request = request();
    request["sockets"] = json!(true);
    request
}

/// The socket that an entry has its client connect to.
fn path(entry: &Value) -> PathBuf {
    let args = entry["args"].as_array().unwrap();
    assert_eq!((&entry["command"], &args[0]), (&json!("socat"), &json!("-")), "{entry}");
    assert_eq!((args.len(), &entry["env"]), (2, &json!({})), "{entry}");
    args[1].as_str().unwrap().strip_prefix("UNIX-CONNECT:").unwrap().into()
}

async fn connect(path: &Path) -> Socket {
    let connecting = async {
        loop {
            if let Ok(stream) = UnixStream::connect(path).await {
                return stream;
            }
            tokio::task::yield_now().await;
        }
    };
    let stream = tokio::time::timeout(SOON, connecting).await.expect("a socket");
    let (reader, writer) = stream.into_split();
    Socket::of(reader, writer)
}

async fn is_gone(folder: &Path) {
    let going = async {
        while folder.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, going).await.expect("the folder stays");
}

async fn echoes(socket: &mut Socket, tool: &str) {
    let said = call(tool, json!({ "message": "x" }));
    let answer = socket.ask(&modern(7, "tools/call", said)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".sock"));
    names.sort();
    names
}

/// X-M45, X-M46, X-M47, X-M5: a run that asks for them has a folder of sockets for itself, with one
/// for each server and one for all, and entries that need nothing but a carrier of bytes. They are
/// gone with the run; no other run has any.
#[tokio::test(flavor = "multi_thread")]
async fn x_m45_a_run_has_sockets_on_request() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let without = operator.begin(&request()).await;
    assert!(without.get("socat").is_none(), "{without}");
    assert!(without["endpoints"].get("sockets").is_none(), "{without}");
    let begun = operator.begin(&with_sockets()).await;
    let folder = PathBuf::from(begun["endpoints"]["sockets"].as_str().unwrap());
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(names(&folder), ["library.sock", "mcp.sock", "narthex.sock"]);
    let socat = &begun["socat"];
    let servers = socat["mcpServersByAlias"].as_object().unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["library", "narthex"]);
    assert_eq!(path(&servers["library"]), folder.join("library.sock"));

    echoes(&mut connect(&path(&socat["mcpServers"]["narthex"])).await, "mcp__library__echo").await;
    let mut library = connect(&path(&servers["library"])).await;
    let said = library.ask(&initialize(json!({}))).await;
    assert!(said["result"]["serverInfo"].is_object(), "{said}");
    let said = legacy(2, "tools/call", call("echo", json!({ "message": "x" })));
    assert_eq!(library.ask(&said).await["result"]["content"][0]["text"], "x");
    let mut built_in = connect(&path(&servers["narthex"])).await;
    let listed = built_in.ask(&modern(1, "tools/list", json!({}))).await;
    assert!(listed["result"]["tools"].to_string().contains("end_session"), "{listed}");

    // Each run has its own, and no folder is the one of another.
    let beside = operator.begin(&with_sockets()).await;
    let other = PathBuf::from(beside["endpoints"]["sockets"].as_str().unwrap());
    assert_ne!(folder, other);
    let end = format!("{RUNS}/{}", begun["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &end, "").await.status, StatusCode::NO_CONTENT);
    is_gone(&folder).await;
    echoes(&mut connect(&other.join("library.sock")).await, "echo").await;
    world.stop().await;
    assert!(!other.exists());
}

/// X-M45, D9: a path that the system does not take refuses the run, and nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn x_m45_a_path_that_is_too_long_refuses_the_run() {
    let dir = tempfile::Builder::new().prefix(&"x".repeat(60)).tempdir().unwrap();
    fs::write(dir.path().join("mcp.json"), r#"{"servers":{}}"#).unwrap();
    let world = World::operated_in(dir).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let alias = "a".repeat(64);
    let mut agent = super::reader();
    agent["mcpServers"] = json!({ &alias: agent["mcpServers"]["library"] });
    operator.put("agents/reader", &agent).await;
    let text = with_sockets().to_string();
    let problem = operator.refused(&text, StatusCode::BAD_REQUEST, "invalid").await;
    let said = problem.to_string();
    assert!(said.contains(&format!("{alias}.sock")) && said.contains("shorter"), "{problem}");
    operator.has_none().await;
    let left = fs::read_dir(world.path("run")).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_dir());
    assert_eq!(left.count(), 0);
    operator.begin(&request()).await;
}

/// A socket whose daemon was killed.
fn dead_socket(folder: &Path, name: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.join(name)).unwrap());
}

/// D10, X-M45: after a restart the sockets are there again under the same paths, without any client
/// showing a token; the rest of a crash is in no run's way, and goes.
#[tokio::test(flavor = "multi_thread")]
async fn d10_sockets_of_a_run_are_open_again_after_a_restart() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let begun = operator.begin(&with_sockets()).await;
    let folder = PathBuf::from(begun["endpoints"]["sockets"].as_str().unwrap());
    let dir = world.stop().await;
    assert!(!folder.exists());
    let of_nobody = folder.with_file_name("0a1b2c3d4e5f");
    dead_socket(&folder, "library.sock");
    dead_socket(&folder, "before.sock");
    dead_socket(&of_nobody, "library.sock");
    let world = World::operated_in(dir).await;
    let operator = Operator(&world);
    assert!(!of_nobody.exists());
    echoes(&mut connect(&folder.join("library.sock")).await, "echo").await;
    assert_eq!(names(&folder), ["library.sock", "mcp.sock", "narthex.sock"]);
    operator.works(begun["token"].as_str().unwrap()).await;
    let end = format!("{RUNS}/{}", begun["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &end, "").await.status, StatusCode::NO_CONTENT);
    is_gone(&folder).await;
}
