//! Tests of shares through the whole door: agents share by tools, and people read over the API.

use std::time::SystemTime;

use fs_err as fs;
use http::StatusCode;
use narthex_control::CatalogError;
use narthex_model::{RunId, SessionId, ShareId, ThreadId, WorkspaceId};
use narthex_runs::{ShareRow, SharedFileRow};
use narthex_store::{CommentBounds, ShareBounds, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    world::{Api, SHARES_QUOTA, SOON},
};

const SHARES: &str = "/api/workspaces/default/shares";
const RUNS: &str = "/api/workspaces/default/runs";

impl Api {
    /// The id of a share without files that a run of this workspace has, independent of the run's
    /// folder.
    pub(super) async fn shared_by(&self, workspace: &str, run: &Value) -> String {
        let text = |name: &str| run[name].as_str().unwrap();
        let row = ShareRow {
            workspace: WorkspaceId::new(workspace).unwrap(),
            id: ShareId::new([7; ShareId::BYTES]),
            session: SessionId::parse(text("session_id")).unwrap(),
            run: RunId::parse(text("run_id")).unwrap(),
            title: "a-share".to_owned(),
            kind: "file".to_owned(),
            entry_point: Some("a".to_owned()),
            total_size: 0,
            revision: 1,
            created_at: SystemTime::UNIX_EPOCH,
            updated_at: SystemTime::UNIX_EPOCH,
        };
        let file = SharedFileRow {
            path: "a".to_owned(),
            size: 0,
            content_type: "text/plain".to_owned(),
            hash: "0".repeat(64),
        };
        let store = self.control.store().ok_or(CatalogError::NoStore).unwrap();
        let room = ShareBounds { of_session: 9, of_workspace: 9, files_of_workspace: 9 };
        assert!(store.shares().create(&row, &[file], room).await.unwrap());
        row.id.to_text()
    }
}

/// A daemon with an agent, and a folder for its runs.
struct Place {
    api: Api,
    folder: TempDir,
    _dir: TempDir,
}

impl Place {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let api = Api::with_secrets(store, &dir.path().join("master.key")).await;
        let agent = with_tools(json!({ "name": "writer" }));
        api.send("POST", "/api/workspaces/default/agents", agent).await.succeeded();
        Self { api, folder: tempfile::tempdir().unwrap(), _dir: dir }
    }

    /// A new run that works in the folder.
    async fn run(&self) -> Run<'_> {
        let asked = json!({ "agent_name": "writer", "project_dir": self.folder.path() });
        let made = self.api.send("POST", RUNS, asked.to_string()).await.succeeded();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Run { api: &self.api, token: text("token"), session: text("session_id") }
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn get(&self, rest: &str) -> Value {
        self.api.get(&format!("{SHARES}{rest}")).await
    }

    async fn comment(&self, share: &str, said: Value) -> Value {
        let path = format!("{SHARES}/{share}/comments");
        self.api.send("POST", &path, said.to_string()).await.succeeded()
    }
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap().to_owned()
}

/// The payloads of the session's events of this kind.
async fn told(run: &Run<'_>, kind: &str) -> Vec<Value> {
    let events = run.events().await.into_iter();
    events.filter(|event| event["type"] == kind).map(|event| event["payload"].clone()).collect()
}

/// X-E94, X-E95, X-E96: a run shares a folder in its current state, and its workspace can read it.
/// Omitted files are reported, and so is the share.
#[tokio::test]
async fn x_e94_a_run_shares_its_folder() {
    let place = Place::new().await;
    let run = place.run().await;
    place.write("site/index.html", "<h1>Hi</h1>");
    place.write("site/a/b.css", "h1 {}");
    place.write("site/.env", "SECRET=1");
    place.write("site/node_modules/x.js", "x");
    let shared = run.called("share", json!({ "path": "site", "title": "Hi" })).await;
    let id = text(&shared, "share_id");
    assert_eq!(
        (&shared["share_type"], &shared["entry_point"]),
        (&json!("site"), &json!("index.html"))
    );
    assert_eq!((&shared["file_count"], &shared["total_size"]), (&json!(2), &json!(16)));
    let skipped: Vec<_> =
        shared["skipped"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(skipped, [".env", "node_modules"]);
    // A shared file does not change with the original.
    place.write("site/index.html", "<h1>Later</h1>");
    let read = run.called("read_share", json!({ "share_id": id })).await;
    assert_eq!((&read["content_b64"], &read["size"]), (&json!("PGgxPkhpPC9oMT4="), &json!(11)));
    assert_eq!(read["mime_type"], "text/html; charset=utf-8");
    let other = place.run().await;
    let read = other.called("read_share", json!({ "share_id": id, "path": "a/b.css" })).await;
    assert_eq!(read["path"], "a/b.css");
    let told = told(&run, "agent.share").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["share_id"], &told[0]["title"]), (&json!(id), &json!("Hi")));
    let listed = place.get("").await;
    assert_eq!(listed["items"][0]["share_id"], json!(id));
    assert_eq!(place.get(&format!("/{id}")).await["files"][0]["path"], "a/b.css");
}

/// X-E94, X-E97, X-E95: files that cannot be shared or read are refused with an error code.
#[tokio::test]
async fn x_e97_a_refused_share_has_an_error_code() {
    let place = Place::new().await;
    let run = place.run().await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("key"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), place.folder.path().join("out")).unwrap();
    place.write("two/a.txt", "a");
    place.write("two/b.rs", "b");
    let absolute = outside.path().join("key");
    for (path, code) in [
        ("../key", "path_outside_folder"),
        (absolute.to_str().unwrap(), "path_outside_folder"),
        ("out/key", "path_outside_folder"),
        ("none", "file_not_found"),
    ] {
        let error = run.refused("share", json!({ "path": path })).await;
        assert_eq!(error["details"]["code"], code, "{path}: {error}");
    }
    let two = text(&run.called("share", json!({ "path": "two" })).await, "share_id");
    let error = run.refused("read_share", json!({ "share_id": two })).await;
    assert_eq!(error["details"]["code"], "path_required", "{error}");
    assert_eq!(error["details"]["files"].as_array().unwrap().len(), 2, "{error}");
    let gone = json!({ "share_id": two, "path": "../a.txt" });
    assert_eq!(run.refused("read_share", gone).await["details"]["code"], "file_not_found");
    let none = json!({ "share_id": "shr_000000000000" });
    assert_eq!(run.refused("read_share", none).await["details"]["code"], "share_not_found");
    let without = Run::of(&place.api, "writer").await;
    let error = without.refused("share", json!({ "path": "two" })).await;
    assert_eq!(error["details"]["code"], "no_workspace_folder", "{error}");
    let full = vec![b'x'; usize::try_from(SHARES_QUOTA).unwrap()];
    place.write("full", full);
    let error = run.refused("share", json!({ "path": "full" })).await;
    assert_eq!(error["details"]["code"], "share_quota_exceeded", "{error}");
    assert_eq!(place.get("").await["items"].as_array().unwrap().len(), 1);
}

/// X-E97: a share under the same id gets other files and keeps its comments. Another session cannot
/// replace it, and files that no share uses free their space.
#[tokio::test]
async fn x_e97_a_share_is_replaced_in_place() {
    let place = Place::new().await;
    let (run, other) = (place.run().await, place.run().await);
    place.write("a.md", "one");
    let id = text(&run.called("share", json!({ "path": "a.md" })).await, "share_id");
    place.comment(&id, json!({ "text": "more of it" })).await;
    place.write("a.csv", "1,2");
    let again = json!({ "path": "a.csv", "share_id": id });
    let error = other.refused("share", again.clone()).await;
    assert_eq!(error["details"]["code"], "share_id_owned_by_other_session", "{error}");
    let shared = run.called("share", again).await;
    assert_eq!((&shared["share_id"], &shared["revision"]), (&json!(id), &json!(2)));
    let shown = place.get(&format!("/{id}")).await;
    assert_eq!((&shown["share_type"], &shown["title"]), (&json!("csv"), &json!("a.md")));
    assert_eq!(shown["files"].as_array().unwrap().len(), 1);
    let threads = place.get(&format!("/{id}/comments")).await;
    assert_eq!(threads["items"][0]["comments"][0]["text"], "more of it");
}

/// X-E97, X-E99: comments on a share, by people and by other agents, reach its agent as messages.
/// An agent's own comment does not wake it. An author in a thread receives the other authors'
/// comments.
#[tokio::test]
async fn an_agents_own_comment_does_not_wake_the_agent() {
    let place = Place::new().await;
    let (run, other) = (place.run().await, place.run().await);
    place.write("a.md", "one");
    let id = text(&run.called("share", json!({ "path": "a.md" })).await, "share_id");
    let own = json!({ "share_id": id, "text": "a draft" });
    run.called("share_comment", own).await;
    assert_eq!(told(&run, "user.message").await, [Value::Null; 0]);
    assert_eq!(told(&run, "agent.comment").await.len(), 1);
    let about = json!({ "text": "which one?", "anchor": "line 1" });
    let thread = text(&place.comment(&id, about).await, "thread_id");
    let heard = told(&run, "user.message").await;
    assert_eq!(
        (&heard[0]["comment"], &heard[0]["anchor"]),
        (&json!("which one?"), &json!("line 1"))
    );
    assert_eq!((&heard[0]["thread_id"], &heard[0]["share_id"]), (&json!(thread), &json!(id)));
    assert!(text(&heard[0], "text").contains("which one?"), "{heard:?}");
    let answer = json!({ "thread_id": thread, "text": "the first" });
    other.called("share_comment", answer).await;
    assert_eq!(told(&run, "user.message").await.len(), 2);
    assert_eq!(told(&other, "user.message").await, [Value::Null; 0]);
    run.called("share_comment", json!({ "thread_id": thread, "text": "good" })).await;
    let heard = told(&other, "user.message").await;
    assert_eq!((heard.len(), &heard[0]["comment"]), (1, &json!("good")));
    assert_eq!(told(&run, "user.message").await.len(), 2);
    let settled = run.called("share_comment_resolve", json!({ "thread_id": thread })).await;
    assert_eq!(settled["resolved"], true);
    let path = format!("{SHARES}/{id}/comments/{thread}");
    let open = place.api.send("PATCH", &path, r#"{"resolved": false}"#).await.succeeded();
    assert_eq!(
        (&open["resolved_at"], open["comments"].as_array().unwrap().len()),
        (&Value::Null, 3)
    );
    let none = json!({ "thread_id": "thr_000000000000", "text": "x" });
    assert_eq!(run.refused("share_comment", none).await["details"]["code"], "thread_not_visible");
    for wrong in [
        json!({ "text": "x" }),
        json!({ "text": "x", "thread_id": thread, "share_id": id }),
        json!({ "text": "x", "share_id": id, "scope": "passage" }),
        json!({ "text": "x", "share_id": id, "anchor": "line 1" }),
    ] {
        let error = run.refused("share_comment", wrong).await;
        assert_eq!(error["kind"], "invalid_arguments", "{error}");
        assert!(error.to_string().contains("`share_id` alone, for all of a share"), "{error}");
    }
}

/// S6, X-E95, S11: a browser never shows a shared page as one of ours. A deleted share is removed
/// with its copy.
#[tokio::test]
async fn shared_files_are_served_as_downloads() {
    let place = Place::new().await;
    let run = place.run().await;
    let page = "<script>1</script>".repeat(20_000);
    place.write("Größe \"1\".html", &page);
    let id = text(&run.called("share", json!({ "path": "Größe \"1\".html" })).await, "share_id");
    let content = format!("{SHARES}/{id}/content");
    let answer = place.api.ask("GET", &content).send().await;
    assert_eq!((answer.status, answer.text()), (StatusCode::OK, &*page));
    let headers = &answer.headers;
    assert_eq!(headers["content-length"], page.len().to_string().as_str());
    let name = "attachment; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%221%22.html";
    assert_eq!(headers["content-disposition"], name);
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["content-security-policy"], "sandbox; default-src 'none'");
    let absent = place.api.ask("GET", &format!("{content}?path=..%2Fa")).send().await;
    absent.problem(StatusCode::NOT_FOUND, "not_found");
    let path = format!("{SHARES}/{id}");
    assert_eq!(place.api.ask("DELETE", &path).send().await.status, StatusCode::NO_CONTENT);
    for (method, path) in [("GET", &path), ("GET", &content), ("DELETE", &path)] {
        let answer = place.api.ask(method, path).send().await;
        answer.problem(StatusCode::NOT_FOUND, "not_found");
        assert_eq!(answer.json()["code"], "share_not_found");
    }
    // This file fills the workspace's quota, so it fits only after the first copy is removed.
    let all = vec![b'x'; usize::try_from(SHARES_QUOTA).unwrap()];
    place.write("all", all);
    let shared = async {
        while run.call("share", json!({ "path": "all" })).await["isError"] == true {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, shared).await.expect("the copy of a deleted share stays");
}

/// Comments of people are checked, and all faults are reported.
#[tokio::test]
async fn comments_are_checked() {
    let place = Place::new().await;
    let run = place.run().await;
    place.write("a", "x");
    let id = text(&run.called("share", json!({ "path": "a" })).await, "share_id");
    let path = format!("{SHARES}/{id}/comments");
    for (said, fields) in [
        (json!({ "text": " ", "anchor": "" }), vec!["text", "anchor"]),
        (json!({ "words": "x" }), vec!["body"]),
    ] {
        let answer = place.api.send("POST", &path, said.to_string()).await;
        answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        let answer = answer.json();
        let errors = answer["errors"].as_array().unwrap();
        let found: Vec<_> = errors.iter().map(|one| one["field"].as_str().unwrap()).collect();
        assert_eq!(found, fields);
    }
    let other = text(&run.called("share", json!({ "path": "a" })).await, "share_id");
    let thread = text(&place.comment(&other, json!({ "text": "x" })).await, "thread_id");
    let said = json!({ "text": "x", "thread_id": thread }).to_string();
    // A thread belongs to one share.
    place.api.send("POST", &path, said).await.problem(StatusCode::NOT_FOUND, "not_found");
}

/// X-E95: a thread has a limited number of comments, over the API and for agents. A comment beyond
/// the limit reaches no reader.
#[tokio::test]
async fn a_thread_has_a_limited_number_of_comments() {
    let place = Place::new().await;
    let (run, other) = (place.run().await, place.run().await);
    place.write("a", "x");
    let id = text(&run.called("share", json!({ "path": "a" })).await, "share_id");
    let thread = text(&place.comment(&id, json!({ "text": "first" })).await, "thread_id");
    let store = place.api.control.store().ok_or(CatalogError::NoStore).unwrap();
    let (home, id_of) = (WorkspaceId::default(), ThreadId::parse(&thread).unwrap());
    let row = store.shares().thread(&home, id_of).await.unwrap().unwrap();
    let room = CommentBounds { threads: 1, of_thread: 1000, of_share: 1000 };
    for _ in 1..499 {
        let said = store.shares().comment(&home, &row, ("ada", "x"), room).await;
        assert!(said.unwrap());
    }
    other.called("share_comment", json!({ "thread_id": thread, "text": "last" })).await;
    let heard = told(&run, "user.message").await.len();
    let error = other.refused("share_comment", json!({ "thread_id": thread, "text": "x" })).await;
    assert_eq!(error["details"]["code"], "too_many_comments", "{error}");
    let said = json!({ "text": "x", "thread_id": thread }).to_string();
    let answer = place.api.send("POST", &format!("{SHARES}/{id}/comments"), said).await;
    assert!(!answer.status.is_success(), "{}", answer.text());
    assert_eq!(answer.json()["code"], "too_many_comments");
    assert_eq!(told(&run, "user.message").await.len(), heard);
    // Another thread has a separate limit.
    place.comment(&id, json!({ "text": "anew" })).await;
}
