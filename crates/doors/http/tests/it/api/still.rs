//! Tests of children that are silent, that no executor carries out, or whose parent has ended:
//! across restarts, and with several daemons on a store.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use narthex_gateway::RunView;
use narthex_model::{AgentType, RunEnd, SessionId, WorkspaceId};
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    kin::{HERE, claimed, daemon, end, held, in_minutes, lead, run_id, start, text, wakes},
    lives::has_stored_child,
    world::Api,
};
use crate::world::Stream;

/// A second daemon on the store.
async fn other(store: &Store, place: &TempDir) -> Api {
    Api::with_all(&json!({}), store.clone(), &place.path().join("master.key")).await
}

/// The status of a child, as its parent reads it.
async fn status(above: &Run<'_>, child: &str) -> String {
    let asked = json!({ "child_session_id": child });
    text(&above.called("read_child_output", asked).await["child"], "status")
}

/// The same run, at another daemon.
fn at<'a>(api: &'a Api, run: &Run<'_>) -> Run<'a> {
    Run { api, token: run.token.clone(), session: run.session.clone() }
}

/// Makes a run wait for a message, runs `done` meanwhile, and then sends the message.
async fn while_it_waits(run: &Run<'_>, above: &Run<'_>, done: impl AsyncFnOnce()) {
    run.called("list_spawnable_agents", json!({})).await;
    let view = run.api.world.gateway.runs().identify(&run.token).unwrap();
    tokio::join!(run.called("read_messages", json!({ "wait_seconds": 60 })), async {
        while RunView::open_calls(&view) == 0 {
            tokio::task::yield_now().await;
        }
        done().await;
        let said = json!({ "child_session_id": run.session, "text": "go on" });
        at(run.api, above).called("inject_message", said).await;
    });
}

/// X-E89, X-E90, D26: two daemons share a store. A child that was claimed at one and makes calls at
/// the other is not silent at either. Its silence is computed from both.
#[tokio::test]
async fn x_e90_a_child_that_is_active_at_another_daemon_is_not_silent() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let other = other(&store, &place).await;
    let lead = lead(&api).await;
    let boss = held(&api, &start(&lead, "boss").await).await;
    let child = held(&api, &start(&boss, "reader").await).await;
    let later = async || other.runs.look_at_children(in_minutes(30)).await.unwrap();
    Box::pin(while_it_waits(&at(&other, &child), &boss, later)).await;
    for minutes in [33, 61] {
        api.runs.look_at_children(in_minutes(minutes)).await.unwrap();
        assert_eq!(status(&boss, &child.session).await, "running", "after {minutes} minutes");
    }
    let told = wakes(&boss, "watchdog").await;
    assert_eq!(told.last().unwrap()["silent_minutes"], 20, "{told:?}");
    // The child has now been silent at both for long enough.
    api.runs.look_at_children(in_minutes(63)).await.unwrap();
    assert_eq!(status(&boss, &child.session).await, "expired");
}

/// X-E90: a child's call before a restart still counts afterwards, even if the child has since only
/// reopened its stream.
#[tokio::test]
async fn x_e90_a_childs_call_before_a_restart_counts_after_the_restart() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let child = held(&api, &start(&lead, "reader").await).await;
    let later = async || api.runs.look_at_children(in_minutes(30)).await.unwrap();
    Box::pin(while_it_waits(&child, &lead, later)).await;
    let (token, session) = (child.token.clone(), child.session.clone());
    let lead = (lead.token.clone(), lead.session.clone());
    drop(api);
    let api = other(&store, &place).await;
    let lead = Run { api: &api, token: lead.0, session: lead.1 };
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let request = api.world.modern("/mcp", "subscriptions/listen", filter);
    let request = request.header("authorization", &format!("Bearer {token}"));
    let mut stream = Stream::of(request.open().await);
    stream.next().await.expect("it is acknowledged");
    for minutes in [33, 61] {
        api.runs.look_at_children(in_minutes(minutes)).await.unwrap();
        assert_eq!(status(&lead, &session).await, "running", "after {minutes} minutes");
    }
    api.runs.look_at_children(in_minutes(63)).await.unwrap();
    assert_eq!(status(&lead, &session).await, "expired");
    while stream.next().await.is_some() {}
}

/// X-E90: without a daemon no child can call. So silence is counted from the start of the next
/// daemon.
#[tokio::test]
async fn x_e90_time_without_a_daemon_does_not_count_as_silence() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let parent = api.world.gateway.runs().identify(&lead.token).unwrap().id;
    let id = has_stored_child(&store, parent, |session, run| {
        session.created_at = SystemTime::now() - Duration::from_secs(5 * 60 * 60);
        (run.agent_type, run.expires_at) = (Some(AgentType::Worker), in_minutes(600));
    })
    .await;
    for minutes in [0, 31] {
        api.runs.look_at_children(in_minutes(minutes)).await.unwrap();
        assert_eq!(status(&lead, &id.to_text()).await, "running", "after {minutes} minutes");
    }
    api.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert_eq!(status(&lead, &id.to_text()).await, "expired");
}

/// X-E91: a child's announced quiet time counts at every daemon on the store, whichever daemon
/// received it, and after a restart.
#[tokio::test]
async fn x_e91_an_announced_quiet_time_counts_at_every_daemon() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let child = held(&api, &start(&lead, "reader").await).await;
    let elsewhere = other(&store, &place).await;
    at(&elsewhere, &child).called("expect_quiet_for", json!({ "seconds": 7200 })).await;
    drop(elsewhere);
    let later = other(&store, &place).await;
    for daemon in [&api, &later] {
        daemon.runs.look_at_children(in_minutes(150)).await.unwrap();
        assert_eq!(status(&lead, &child.session).await, "running");
    }
    child.called("expect_quiet_for", json!({ "seconds": 0 })).await;
    later.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert_eq!(status(&lead, &child.session).await, "expired");
}

/// X-E85, X-E89: the parent of a child is notified once when the child's last run has ended but its
/// session has not. Such a session ends when that run would have expired.
#[tokio::test]
async fn x_e89_a_child_without_a_run_is_reported_to_its_parent_once_and_expires() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let boss = held(&api, &begun).await;
    let reader = start(&boss, "reader").await;
    let child = held(&api, &reader).await;
    let run = text(&reader["session"], "run_id");
    end(&api, &format!("{HERE}/runs/{run}")).await;
    for _ in 0..2 {
        api.runs.look_at_children(in_minutes(1)).await.unwrap();
        let told = wakes(&boss, "state_change").await;
        assert_eq!(told.len(), 1, "{told:?}");
        let [of, status, last, how] =
            ["child_session_id", "status", "run_id", "run_status"].map(|name| &told[0][name]);
        assert_eq!((of, status), (&json!(child.session), &json!("running")));
        assert_eq!((last, how), (&json!(run), &json!("ended")));
    }
    assert_eq!(status(&boss, &child.session).await, "running");
    // A parent that rests while it has active children is not ended.
    end(&api, &format!("{HERE}/runs/{}", text(&begun["session"], "run_id"))).await;
    api.runs.look_at_children(in_minutes(1)).await.unwrap();
    assert_eq!(status(&lead, &boss.session).await, "running");
    // A day later the session has ended.
    api.runs.look_at_children(in_minutes(24 * 60 + 1)).await.unwrap();
    let kept = store.sessions().find(&WorkspaceId::default(), id(&child)).await.unwrap().unwrap();
    assert_eq!(kept.how, Some(RunEnd::Expired));
}

fn id(run: &Run<'_>) -> SessionId {
    SessionId::parse(&run.session).unwrap()
}

/// X-D10, X-E92: the status of a child is that of its session. A resting child is active and a
/// suspended child is suspended, although no run of theirs is active. A resting child can be
/// cancelled.
#[tokio::test]
async fn x_e92_the_status_of_a_child_is_the_status_of_its_session() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let boss = held(&api, &begun).await;
    start(&boss, "reader").await;
    end(&api, &format!("{HERE}/runs/{}", text(&begun["session"], "run_id"))).await;
    assert_eq!(status(&lead, &boss.session).await, "running");
    let again = start(&lead, "boss").await;
    assert_eq!((&again["is_new"], &again["session"]["status"]), (&json!(false), &json!("running")));
    let ended = json!({ "child_session_id": boss.session });
    let ended = lead.called("cancel_session", ended).await;
    assert_eq!(ended["cancelled"], true, "{ended}");
    assert_eq!(ended["session"]["status"], "cancelled", "{ended}");
    assert_eq!(status(&lead, &boss.session).await, "cancelled");

    let aside = start(&lead, "reader").await;
    assert_eq!(aside["session"]["status"], "pending");
    let aside = held(&api, &aside).await;
    let path = format!("{HERE}/sessions/{}/suspend", aside.session);
    api.send("POST", &path, "{}").await.succeeded();
    assert_eq!(status(&lead, &aside.session).await, "suspended");
    api.runs.look_at_children(in_minutes(30 * 24 * 60)).await.unwrap();
    assert_eq!(status(&lead, &aside.session).await, "suspended");
    end(&api, &format!("{HERE}/sessions/{}", aside.session)).await;
    assert_eq!(status(&lead, &aside.session).await, "ended");
}

/// X-E92: when a child is cancelled, all its descendants end, also if the daemon stopped in
/// between.
#[tokio::test]
async fn x_e92_all_descendants_of_a_cancelled_child_end() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    for stops_between in [false, true] {
        let lead = lead(&api).await;
        let boss = held(&api, &start(&lead, "boss").await).await;
        let below = held(&api, &start(&boss, "boss").await).await;
        let reader = held(&api, &start(&below, "reader").await).await;
        let beside = held(&api, &start(&lead, "reader").await).await;
        if stops_between {
            let here = WorkspaceId::default();
            assert!(store.sessions().end(&here, id(&boss), RunEnd::Cancelled).await.unwrap());
            api.runs.look_at_children(in_minutes(1)).await.unwrap();
        } else {
            let asked = json!({ "child_session_id": boss.session, "reason": "enough" });
            assert_eq!(lead.called("cancel_session", asked).await["cancelled"], true);
        }
        for run in [&below, &reader] {
            let page = api.get(&format!("{HERE}/sessions/{}/events", run.session)).await;
            let events = page["items"].as_array().unwrap();
            let told = |event: &&Value| event["type"] == "session.cancelled_by_parent";
            assert_eq!(events.iter().filter(told).count(), 1, "{page}");
            assert_eq!(events.last().unwrap()["payload"]["how"], "cancelled", "{page}");
            assert!(api.world.gateway.runs().identify(&run.token).is_none());
        }
        assert_eq!(status(&lead, &beside.session).await, "running");
    }
}

/// D10, X-E88: a session keeps the type of agent with which its run was frozen. An edit or deletion
/// of the agent changes neither who is notified of children nor who ends for silence.
#[tokio::test]
async fn d10_an_edit_of_an_agent_does_not_change_its_sessions() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let boss = held(&api, &start(&lead, "boss").await).await;
    let child = held(&api, &start(&boss, "reader").await).await;
    let agent = format!("{HERE}/agents/boss");
    let told = async |summary: &str| {
        let told = child.called("message_caller", json!({ "summary": summary })).await;
        assert_eq!(told["delivered"], true, "{told}");
        let read = boss.called("read_messages", json!({})).await.to_string();
        assert!(read.contains(summary), "{read}");
    };
    api.send("PUT", &agent, with_tools(json!({ "spawnable_agents": ["reader"] })))
        .await
        .succeeded();
    told("as a worker now").await;
    api.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert_eq!(status(&lead, &boss.session).await, "running", "orchestrators are not ended so");
    assert_eq!(wakes(&boss, "state_change").await.len(), 1, "it hears of the end of its own");
    // A child that starts from now on is a worker.
    let other = start(&lead, "boss").await;
    assert_eq!(other["is_new"], true, "{other}");

    let child = held(&api, &start(&boss, "reader").await).await;
    assert_eq!(api.ask("DELETE", &agent).send().await.status, StatusCode::NO_CONTENT);
    let told = child.called("message_caller", json!({ "summary": "as nobody" })).await;
    assert_eq!(told["delivered"], true, "{told}");
}

/// X-E88, X-E89: an orchestrator reads its wakes like messages, also while it waits. A child's
/// message comes once, and an end that the orchestrator has read counts as known.
#[tokio::test]
async fn x_e88_wakes_are_read_as_messages() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let (boss, claim) = claimed(&api, &text(&begun["session"], "run_id")).await;
    let child = held(&api, &start(&boss, "reader").await).await;
    start(&boss, "reader").await;
    child.called("message_caller", json!({ "summary": "nearly" })).await;
    let read = boss.called("read_messages", json!({})).await;
    let messages = read["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{read}");
    assert_eq!((&messages[0]["text"], &messages[0]["wake"]), (&json!("nearly"), &Value::Null));
    let view = api.world.gateway.runs().identify(&boss.token).unwrap();
    // The wake for the message is left out, but hides no later event.
    let waits = json!({ "wait_seconds": 60, "acknowledge": read["next_seq"], "limit": 1 });
    let (read, ()) = tokio::join!(boss.called("read_messages", waits), async {
        while RunView::open_calls(&view) == 0 {
            tokio::task::yield_now().await;
        }
        end(&api, &format!("{HERE}/sessions/{}", child.session)).await;
    });
    let messages = read["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &read["left_count"]), (1, &json!(0)), "{read}");
    let wake = json!({ "kind": "state_change", "child_session_id": child.session,
                       "child_agent_id": "reader", "status": "ended" });
    assert_eq!(messages[0]["wake"], wake);
    assert!(text(&messages[0], "text").contains(&child.session), "{read}");
    let done = json!({ "acknowledge": read["next_seq"] });
    assert_eq!(boss.called("read_messages", done).await["messages"], json!([]));
    // The orchestrator has read that end, so its session is not resumed for it.
    let row = store.runs().find(run_id(&claim["run"])).await.unwrap().unwrap();
    api.runs.executed(&row, narthex_runs::Outcome::Completed).await.unwrap();
    assert!(store.resting().due(in_minutes(600), 9).await.unwrap().is_empty());
}
