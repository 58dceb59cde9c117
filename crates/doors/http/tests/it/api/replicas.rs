//! Tests of two daemons on one store: a right that is revoked at one also ends at the other, even
//! if the other could not reach the store in the meantime.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use http::StatusCode;
use narthex_model::{ErrorKind, Secret};
use narthex_runs::Compared;
use narthex_store::Store;
use narthex_testkit::postgres;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{UnixListener, UnixStream},
    sync::watch,
    time::timeout,
};
use tokio_util::task::TaskTracker;

use super::{
    kin::{HERE, end, text},
    world::{Api, SOON},
};

/// The file name of a PostgreSQL server's socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// A proxy between a daemon and its database. While it is cut, it closes every connection and opens
/// none.
struct Between {
    is_cut: watch::Sender<bool>,
    dir: TempDir,
}

impl Between {
    fn before(server: PathBuf) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let is_cut = watch::Sender::new(false);
        let (cut, tasks) = (is_cut.clone(), TaskTracker::new());
        tasks.clone().spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let mut seen = cut.subscribe();
                let server = server.join(SOCKET);
                tasks.spawn(async move {
                    tokio::select! {
                        biased;
                        _ = seen.wait_for(|is_cut| *is_cut) => {}
                        _ = pass(near, server) => {}
                    }
                });
            }
        });
        Self { is_cut, dir }
    }
}

async fn pass(mut near: UnixStream, server: PathBuf) -> std::io::Result<(u64, u64)> {
    let mut far = UnixStream::connect(server).await?;
    copy_bidirectional(&mut near, &mut far).await
}

/// The stores of two daemons, which use one database, and the proxy before the first one.
struct Both {
    first: Store,
    second: Store,
    between: Option<Between>,
    place: TempDir,
}

impl Both {
    async fn in_a_file() -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("store.db")).await.unwrap();
        Self { first: store.clone(), second: store, between: None, place }
    }

    /// Stores on a PostgreSQL server; `None` if PostgreSQL is not installed.
    async fn on_a_server() -> Option<Self> {
        let database = postgres::database(&[])?;
        let (head, name) = database.url.rsplit_once('/').unwrap();
        let (head, folder) = head.rsplit_once('@').unwrap();
        let between = Between::before(folder.replace("%2F", "/").into());
        let folder = between.dir.path().display().to_string().replace('/', "%2F");
        let url = Secret::new(format!("{head}@{folder}/{name}"));
        let second = Store::connect(&Secret::new(database.url.as_str())).await.unwrap();
        let first = Store::connect(&url).await.unwrap();
        Some(Self { first, second, between: Some(between), place: tempfile::tempdir().unwrap() })
    }

    fn keys(&self) -> PathBuf {
        self.place.path().join("master.key")
    }
}

async fn daemon(store: &Store, keys: &Path) -> Api {
    Api::with_all(&json!({}), store.clone(), keys).await
}

/// Creates the servers `docs`, which needs a secret, and `web`, and an agent with both.
async fn has_reader(api: &Api, workspace: &str) {
    let here = format!("/api/workspaces/{workspace}");
    let put = async |path: &str, body: Value| {
        api.send("PUT", &format!("{here}/{path}"), body.to_string()).await.succeeded();
    };
    put("secrets/KEY", json!({ "value": "hunter2-of-docs" })).await;
    let schema = json!({ "api_key": { "type": "string", "kind": "secret", "required": true } });
    let docs = json!({ "url": api.fixture_url(), "transport": "http", "config_schema": schema });
    put("mcp-servers/docs", docs).await;
    put("mcp-servers/web", web(api, false)).await;
    let docs = json!({ "ref": "docs", "config": { "api_key": { "$secret": "KEY" } } });
    let agent = json!({ "mcpServers": { "docs": docs, "web": { "ref": "web" } } });
    put("agents/reader", agent).await;
}

fn web(api: &Api, is_off: bool) -> Value {
    json!({ "url": api.fixture_url(), "transport": "http", "disabled": is_off })
}

/// A new run of the agent: its id and its token.
async fn run(api: &Api, workspace: &str) -> (String, String) {
    let asked = json!({ "agent_name": "reader" }).to_string();
    let path = format!("/api/workspaces/{workspace}/runs");
    let made = api.send("POST", &path, asked).await.succeeded();
    (text(&made, "run_id"), text(&made, "token"))
}

/// The outcome of a call: an HTTP status other than 200, the kind of its failure, or `ok`.
async fn called(api: &Api, token: &str, server: &str) -> String {
    let params = json!({ "name": "echo", "arguments": { "message": "x" } });
    let request = api.world.modern(&format!("/mcp/{server}"), "tools/call", params);
    let answer = request.header("authorization", &format!("Bearer {token}")).send().await;
    if answer.status != StatusCode::OK {
        return answer.status.as_u16().to_string();
    }
    let error = &answer.json()["result"]["structuredContent"]["error"]["kind"];
    error.as_str().unwrap_or("ok").to_owned()
}

/// Makes a daemon compare its servers and all of its runs with the store, as soon as it can.
async fn looks(api: &Api) -> Option<Compared> {
    let looking = async {
        loop {
            if api.control.look_at_cuts().await.is_ok()
                && let Ok(compared) = api.runs.look_at_ends(None).await
            {
                return compared;
            }
        }
    };
    timeout(SOON, looking).await.expect("the store is there again")
}

/// D10: between two comparisons of all runs, a daemon finds the runs that another daemon has ended,
/// and those that were deleted with their workspace.
#[tokio::test(flavor = "multi_thread")]
async fn d10_a_daemon_finds_recent_ends_without_reading_all_runs() {
    let all = [Some(Both::in_a_file().await), Both::on_a_server().await];
    for both in all.into_iter().flatten() {
        let (api, other) =
            (daemon(&both.first, &both.keys()).await, daemon(&both.second, &both.keys()).await);
        let team = json!({ "id": "team" }).to_string();
        other.send("POST", "/api/workspaces", team).await.succeeded();
        for workspace in ["default", "team"] {
            has_reader(&other, workspace).await;
        }
        let (_, kept) = run(&other, "default").await;
        let (ended_id, ended) = run(&other, "default").await;
        let (_, gone) = run(&other, "team").await;
        let outcomes = async || {
            let of = async |token: &String| called(&api, token, "web").await;
            [of(&kept).await, of(&ended).await, of(&gone).await]
        };
        assert_eq!(outcomes().await, ["ok", "ok", "ok"]);
        let first = looks(&api).await;
        end(&other, &format!("{HERE}/runs/{ended_id}")).await;
        let second = api.runs.look_at_ends(first).await.unwrap();
        assert_eq!(second, first, "all runs were compared");
        assert_eq!(outcomes().await, ["ok", "401", "ok"]);
        end(&other, "/api/workspaces/team?force=true").await;
        let third = api.runs.look_at_ends(second).await.unwrap();
        assert_ne!(third, second, "a workspace is gone");
        assert_eq!(outcomes().await, ["ok", "401", "401"]);
    }
}

/// A daemon that cannot reach its store is not ready, until it can again. Another daemon on the
/// same store is not affected. The store is asked at most once a second.
#[tokio::test]
async fn a_daemon_without_its_store_is_not_ready() {
    let Some(both) = Both::on_a_server().await else { return };
    let between = both.between.as_ref().unwrap();
    let (api, other) =
        (daemon(&both.first, &both.keys()).await, daemon(&both.second, &both.keys()).await);
    let ready = async |api: &Api| {
        let request = api.world.request(http::Method::GET, "/readyz").header("authorization", "");
        let answer = request.send().await;
        (answer.status, answer.text().to_owned())
    };
    let later = async || {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
    };
    let fine = (StatusCode::OK, "ok\n".to_owned());
    let lost = (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be reached\n".to_owned());
    assert_eq!(ready(&api).await, fine);
    between.is_cut.send_replace(true);
    later().await;
    assert_eq!((ready(&api).await, ready(&other).await), (lost.clone(), fine.clone()));
    between.is_cut.send_replace(false);
    later().await;
    assert_eq!(ready(&api).await, fine);
}

/// D10, S18: what one daemon revokes also ends at the other, however long that was disconnected: a
/// cleared secret, a disabled server, an ended run and a deleted workspace.
#[tokio::test(flavor = "multi_thread")]
async fn d10_revoked_secrets_servers_runs_and_workspaces_end_at_every_daemon() {
    let all = [Some(Both::in_a_file().await), Both::on_a_server().await];
    for both in all.into_iter().flatten() {
        let other = daemon(&both.second, &both.keys()).await;
        let api = daemon(&both.first, &both.keys()).await;
        other
            .send("POST", "/api/workspaces", json!({ "id": "team" }).to_string())
            .await
            .succeeded();
        for workspace in ["default", "team"] {
            has_reader(&other, workspace).await;
        }
        let (_, kept) = run(&other, "default").await;
        let (ended_id, ended) = run(&other, "default").await;
        let (_, gone) = run(&other, "team").await;
        for token in [&kept, &ended, &gone] {
            for server in ["docs", "web"] {
                assert_eq!(called(&api, token, server).await, "ok", "{server}");
            }
        }
        looks(&api).await;
        if let Some(between) = &both.between {
            between.is_cut.send_replace(true);
            let failed = api.control.look_at_cuts().await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
            let failed = api.runs.look_at_ends(None).await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
        }
        end(&other, &format!("{HERE}/secrets/KEY")).await;
        let off = web(&other, true).to_string();
        other.send("PUT", &format!("{HERE}/mcp-servers/web"), off).await.succeeded();
        end(&other, &format!("{HERE}/runs/{ended_id}")).await;
        end(&other, "/api/workspaces/team?force=true").await;
        if let Some(between) = &both.between {
            between.is_cut.send_replace(false);
        }
        looks(&api).await;
        assert_eq!(called(&api, &kept, "docs").await, "secret_cleared");
        assert_eq!(called(&api, &kept, "web").await, "server_disabled");
        for token in [&ended, &gone] {
            assert_eq!(called(&api, token, "docs").await, "401");
        }
        // A secret or server that is set again works for new runs: no earlier cut affects these.
        let key = json!({ "value": "hunter3-of-docs" }).to_string();
        other.send("PUT", &format!("{HERE}/secrets/KEY"), key).await.succeeded();
        let on = web(&other, false).to_string();
        other.send("PUT", &format!("{HERE}/mcp-servers/web"), on).await.succeeded();
        let (_, new) = run(&other, "default").await;
        for server in ["docs", "web"] {
            assert_eq!(called(&api, &new, server).await, "ok", "{server}");
        }
        for daemon in [&api, &other] {
            looks(daemon).await;
            for server in ["docs", "web"] {
                assert_eq!(called(daemon, &new, server).await, "ok", "{server}");
            }
        }
        assert_eq!(called(&api, &kept, "docs").await, "secret_cleared");
        assert_eq!(called(&api, &kept, "web").await, "server_disabled");
    }
}
