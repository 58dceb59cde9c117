//! `narthex shares` with a real daemon: shares of an agent are seen, saved, commented and deleted.

use serde_json::{Value, json};

use crate::{
    support::{Done, Place},
    world::{Client, call, modern},
};

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// X-E94, X-M2: from the folder of a run to the disk of another user, and back as a message.
#[tokio::test]
async fn x_e94_shares_of_an_agent_are_available_at_the_command_line() {
    let place = Place::with(&json!({}));
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let url = daemon.event("listening")["url"].as_str().unwrap().to_owned();
    daemon.event("ready");
    place.write("reader.json", r#"{"name": "reader", "builtin": "core"}"#);
    place.run(["agents", "apply", "-f", "reader.json"]).succeeded();
    fs_err::create_dir_all(place.path("work/data")).unwrap();
    place.write("work/report.md", "# Report");
    place.write("work/data/rows.csv", "a,b\n1,2\n");
    let asked = json!({ "agent_name": "reader", "project_dir": place.path("work") });
    place.write("task.json", &asked.to_string());
    let run = data(place.run(["runs", "create", "task.json", "--json"]));
    let text = |of: &Value, name: &str| of[name].as_str().unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut client = Client::new(address, "/mcp/narthex", &text(&run, "token"));
    let shared = call("share", json!({ "path": ".", "title": "All of\u{1b}[2J it" }));
    let answer = client.modern(&modern(1, "tools/call", shared)).await.json();
    let id = text(&answer["result"]["structuredContent"], "share_id");

    assert_eq!(place.run(["shares", "list", "--quiet"]).succeeded().stdout, format!("{id}\n"));
    let listed = place.run(["shares", "list"]).succeeded().stdout;
    assert!(listed.contains("file") && !listed.contains('\u{1b}'), "{listed}");
    let shown = place.run(["shares", "show", &id]).succeeded().stdout;
    assert!(shown.contains("data/rows.csv") && shown.contains("text/markdown"), "{shown}");
    let get = ["shares", "get", &id, "--file", "data/rows.csv", "--output", "rows.csv"];
    assert_eq!(place.run(get).succeeded().stdout, "rows.csv has 8 bytes\n");
    assert_eq!(fs_err::read_to_string(place.path("rows.csv")).unwrap(), "a,b\n1,2\n");
    place.run(get).failed(1, &["rows.csv", "exists"]);
    let get = ["shares", "get", &id, "--file", "report.md", "--output", "-"];
    assert_eq!(place.run(get).succeeded().stdout, "# Report");
    place.run(["shares", "get", &id, "--output", "x"]).failed(1, &["invalid", "`path`"]);
    assert!(!place.path("x").exists(), "nothing is left of what there is not");

    let said = ["shares", "comment", &id, "which rows?", "--anchor", "rows.csv", "--json"];
    let thread = text(&data(place.run(said)), "thread_id");
    place.run(["shares", "comment", &id, "all?", "--thread", &thread]).succeeded();
    place.run(["shares", "resolve", &id, &thread]).succeeded();
    let shown = place.run(["shares", "show", &id]).succeeded().stdout;
    assert!(shown.contains("on “rows.csv”, settled"), "{shown}");
    assert!(shown.contains("admin: which rows?"), "{shown}");
    let open = data(place.run(["shares", "resolve", &id, &thread, "--undo", "--json"]));
    assert_eq!(open["resolved_at"], Value::Null);
    let session = text(&run, "session_id");
    let heard = ["sessions", "events", &session, "--type", "user.message", "--json"];
    let heard = data(place.run(heard));
    assert_eq!(heard["items"][0]["payload"]["comment"], "which rows?", "{heard}");

    let deleted = place.run(["shares", "delete", &id]).succeeded().stdout;
    assert_eq!(deleted, format!("the share {id} is deleted\n"));
    let list = place.printed("shares list");
    place.run(["shares", "show", &id]).failed(1, &["not_found", &id, &list]);
    assert_eq!(place.run(["shares", "list"]).succeeded().stdout, "Nothing is shared yet.\n");
}
