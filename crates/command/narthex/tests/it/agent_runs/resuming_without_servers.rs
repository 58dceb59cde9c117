//! Sessions that are resumed without a server whose program does not start any more.

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::suspending::text;
use crate::{
    runs::Operator,
    support::fixture,
    world::{Reply, World, call, modern},
};

impl Operator<'_> {
    /// The catalog with an agent of these servers, each under its name.
    async fn has_agent_of(&self, servers: &[(&str, Value)]) {
        let mut attached = json!({});
        for (name, server) in servers {
            self.put(&format!("mcp-servers/{name}"), server).await;
            attached[name] = json!({ "ref": name });
        }
        self.put("agents/pair", &json!({ "mcpServers": attached })).await;
    }

    /// The answer to a run of this token at a path of its namespace.
    async fn at(&self, token: &str, path: &str) -> Reply {
        self.0.client_as(&format!("/vfs/mnt/mcp{path}"), token).whole("GET", &[], "").await
    }

    /// The servers that a run of this token sees as files, but for the built-in one.
    async fn folders(&self, token: &str) -> Vec<String> {
        let listed = self.at(token, "").await.json();
        let entries = listed["entries"].as_array().unwrap_or_else(|| panic!("{listed}")).iter();
        let mut names: Vec<_> = entries.map(|entry| text(entry, "name").to_owned()).collect();
        names.retain(|name| !name.ends_with("-narthex"));
        names
    }

    /// The states of the servers in a run's answer, by their names.
    fn states(run: &Value) -> Vec<(&str, &str)> {
        let servers = run["servers"].as_array().unwrap().iter();
        servers.map(|server| (text(server, "alias"), text(server, "state"))).collect()
    }

    async fn has_tools_of(&self, token: &str, server: &str) {
        let said = call(&format!("mcp__{server}__echo"), json!({ "message": "x" }));
        let reply = self.0.client_as("/mcp", token).modern(&modern(1, "tools/call", said)).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{server}: {reply:?}");
    }
}

/// A program that is the fixture after this script.
fn after(script: &str) -> Value {
    let script = format!("{script}; exec '{}' --stdio", fixture().display());
    json!({ "type": "stdio", "command": "sh", "args": ["-c", script] })
}

/// R-E33, R-D5: a program that ends at once when a session is resumed is left out of all that the
/// run has: one event reports it and one the other server, and the files are those of the latter.
/// It is back with the next run, and a new session is refused as long as it fails.
#[tokio::test(flavor = "multi_thread")]
async fn r_e33_a_session_resumes_without_a_program_that_does_not_start() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let broken = world.path("broken");
    let bad = after(&format!("test -e '{}' && exit 3", broken.display()));
    operator.has_agent_of(&[("good", after("true")), ("bad", bad)]).await;
    let asked = json!({ "agent_name": "pair" });
    let first = operator.begin(&asked).await;
    assert_eq!(operator.folders(text(&first, "token")).await, ["1-bad", "1-good"]);
    operator.suspend(&first).await;
    operator.told_in_time(&first, "mcp.unmount", 2).await;
    fs::write(&broken, "").unwrap();

    // The answer is 201.
    let second = operator.resume(&first, &json!({})).await;
    let token = text(&second, "token");
    assert_eq!(Operator::states(&second), [("good", "ready"), ("bad", "error")]);
    let mounted = operator.told(&first, "mcp.mount").await;
    let good = json!({ "server": "good", "path": "/mnt/mcp/2-good", "auto": true, "pid": 2,
                       "source": "resume", "former_pid": 1, "former_path": "/mnt/mcp/1-good" });
    assert_eq!(mounted[2..], [good], "{mounted:?}");
    let failed = operator.told(&first, "mcp.error").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    for (member, expected) in [
        ("server", "bad"),
        ("path", "/mnt/mcp/2-bad"),
        ("former_path", "/mnt/mcp/1-bad"),
        ("kind", "transport_error"),
    ] {
        assert_eq!(text(&failed[0], member), expected, "{failed:?}");
    }
    assert!(!text(&failed[0], "reason").is_empty(), "{failed:?}");

    // The run has no mount, no file and no endpoint of the server any more, and its old path is
    // gone.
    assert_eq!(operator.folders(token).await, ["2-good"]);
    for gone in ["/2-bad", "/1-bad", "/2-bad/tools", "/2-bad/ctl/status"] {
        let reply = operator.at(token, gone).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{gone}: {reply:?}");
    }
    assert_eq!(operator.at(token, "/1-good/ctl/status").await.status, StatusCode::OK);
    let said = modern(1, "tools/list", json!({}));
    let reply = world.client_as("/mcp/bad", token).modern(&said).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    operator.has_tools_of(token, "good").await;

    let problem =
        operator.refused(&asked.to_string(), StatusCode::SERVICE_UNAVAILABLE, "unavailable").await;
    assert_eq!(problem["errors"][0]["server"], "bad", "{problem}");
    operator.suspend(&first).await;
    fs::remove_file(&broken).unwrap();
    let third = operator.resume(&first, &json!({})).await;
    assert_eq!(operator.folders(text(&third, "token")).await.len(), 2);
    operator.has_tools_of(text(&third, "token"), "bad").await;
}

/// R-E34: if a program's folder is gone when its session is resumed, the program is left out and
/// started in no other folder. An event names the folder: the project's, or the one of the
/// program's entry.
#[tokio::test(flavor = "multi_thread")]
async fn r_e34_a_session_resumes_without_a_program_whose_folder_is_gone() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let (project, named) = (world.path("project"), world.path("named"));
    for folder in [&project, &named] {
        fs::create_dir(folder).unwrap();
    }
    let places = world.path("places");
    let noting = |cwd: &str| {
        let mut server = after(&format!("pwd -P >> '{}'", places.display()));
        server["cwd"] = json!(cwd);
        server
    };
    let servers = [
        ("of-project", noting("${runtime.project_dir}")),
        ("of-entry", noting(named.to_str().unwrap())),
        ("plain", after("true")),
    ];
    operator.has_agent_of(&servers).await;
    let first = operator.begin(&json!({ "agent_name": "pair", "project_dir": project })).await;
    let started = || fs::read_to_string(&places).unwrap().lines().count();
    assert_eq!(started(), 2);
    operator.suspend(&first).await;
    for folder in [&project, &named] {
        fs::remove_dir(folder).unwrap();
    }

    let second = operator.resume(&first, &json!({})).await;
    let token = text(&second, "token");
    operator.has_tools_of(token, "plain").await;
    assert_eq!(operator.folders(token).await, ["2-plain"]);
    let mut failed = operator.told(&first, "mcp.error").await;
    failed.sort_by_key(|event| text(event, "server").to_owned());
    assert_eq!(failed.len(), 2, "{failed:?}");
    for (event, (server, folder)) in
        failed.iter().zip([("of-entry", &named), ("of-project", &project)])
    {
        assert_eq!(text(event, "server"), server, "{failed:?}");
        let reason = text(event, "reason");
        let expected = format!("working directory `{}` does not exist", folder.display());
        assert!(reason.contains(&expected), "{expected}: {event}");
        assert!(!event.to_string().contains("cwd_"), "no other folder is taken: {event}");
    }
    let mounted = operator.told(&first, "mcp.mount").await;
    let paths: Vec<_> = mounted[3..].iter().map(|event| text(event, "path")).collect();
    assert_eq!(paths, ["/mnt/mcp/2-plain"], "{mounted:?}");
    assert_eq!(started(), 2, "a program runs somewhere else");

    // Once the folder is there again, the program starts in it.
    operator.suspend(&first).await;
    fs::create_dir(&project).unwrap();
    let third = operator.resume(&first, &json!({})).await;
    operator.has_tools_of(text(&third, "token"), "of-project").await;
    let last = fs::read_to_string(&places).unwrap().lines().last().unwrap().to_owned();
    assert_eq!(last, fs::canonicalize(&project).unwrap().display().to_string());
}
