//! Suspended sessions: allowed and refused actions.

use std::time::{Duration, SystemTime};

use narthex_model::{RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{EventsOf, NewEvent, NewRest, NewRun, SessionRow, Store, SuspendedSession};

use crate::{
    resting::message_of,
    support::{Place, id},
};

const HOUR: Duration = Duration::from_secs(3600);

fn run(number: u8) -> RunId {
    RunId::new([0, 0, 0, 0, 0, number])
}

fn session() -> SessionId {
    SessionId::new([9; 6])
}

fn row(workspace: &WorkspaceId) -> SessionRow {
    SessionRow {
        workspace: workspace.clone(),
        id: session(),
        agent: "reader".to_owned(),
        parent: None,
        depth: 0,
        sealed: "sealed parameters".to_owned(),
        created_at: SystemTime::UNIX_EPOCH,
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    }
}

fn new(workspace: &WorkspaceId, number: u8, suspended_at: Option<SystemTime>) -> NewRun<'_> {
    NewRun {
        id: run(number),
        workspace,
        session: session(),
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: "hash",
        sealed: "sealed scope",
        created_by: "admin",
        expires_at: SystemTime::now() + HOUR,
        has_sockets: false,
        driver: None,
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at,
        agent_type: None,
    }
}

fn suspension(number: u8, seconds: u64) -> SuspendedSession {
    SuspendedSession {
        session: session(),
        run: Some(run(number)),
        sealed: "sealed references".to_owned(),
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        by: "ada".to_owned(),
    }
}

/// Creates a session with one active run.
async fn begun(store: &Store, here: &WorkspaceId) {
    store.runs().create(new(here, 1, None), Some(&row(here))).await.unwrap().unwrap();
}

/// R-M23: a suspended session's runs end with it, their inputs stay, and it resumes once, with the
/// run that names the suspension that it ends.
#[tokio::test]
async fn r_m23_a_suspended_session_resumes_once() {
    let (place, here) = (Place::new(), id("default"));
    let store = place.open().await;
    begun(&store, &here).await;
    assert!(store.suspended().suspend(&here, &suspension(1, 100)).await.unwrap());
    assert!(!store.suspended().suspend(&here, &suspension(1, 200)).await.unwrap(), "it was before");
    assert_eq!(store.suspended().find(&here, session()).await.unwrap(), Some(suspension(1, 100)));
    let page = store.suspended().between(&here, session(), session()).await.unwrap();
    assert_eq!(page.into_keys().collect::<Vec<_>>(), [session()]);
    let ended = store.runs().find(run(1)).await.unwrap().unwrap();
    assert_eq!((ended.ended.unwrap().1, &*ended.sealed), (RunEnd::Ended, ""));
    // Neither a run that knows nothing of it, nor one of another suspension.
    let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    for wrong in [None, at(101)] {
        assert!(store.runs().create(new(&here, 2, wrong), None).await.unwrap().is_none());
    }
    let again = store.runs().create(new(&here, 3, at(100)), None).await.unwrap().unwrap();
    assert_eq!(again.pid.get(), 2, "a new number");
    assert!(store.runs().create(new(&here, 4, at(100)), None).await.unwrap().is_none(), "once");
    assert_eq!(store.suspended().find(&here, session()).await.unwrap(), None);
    store.close().await;
}

/// R-M23: the stored inputs are those of the newest run that is active at that very moment. A
/// caller that does not know of this run suspends nothing.
#[tokio::test]
async fn r_m23_a_session_is_suspended_only_with_its_newest_active_run() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        begun(&store, &here).await;
        let none = SuspendedSession { run: None, ..suspension(1, 100) };
        assert!(!store.suspended().suspend(&here, &none).await.unwrap(), "one goes on");
        store.runs().create(new(&here, 2, None), None).await.unwrap().unwrap();
        assert!(!store.suspended().suspend(&here, &suspension(1, 100)).await.unwrap(), "older");
        assert!(store.runs().end(&here, run(2), RunEnd::Expired).await.unwrap());
        assert!(!store.suspended().suspend(&here, &suspension(2, 100)).await.unwrap(), "over");
        let first = store.runs().find(run(1)).await.unwrap().unwrap();
        assert_eq!(first.ended, None, "nothing has happened");
        assert!(store.suspended().suspend(&here, &suspension(1, 100)).await.unwrap());
        let ended = async |number| store.runs().find(run(number)).await.unwrap().unwrap().ended;
        assert_eq!(ended(1).await.unwrap().0, suspension(1, 100).at);
        assert_ne!(ended(2).await.unwrap().0, suspension(1, 100).at, "it had ended before");
        store.close().await;
    }
}

/// A suspended session does not resume by itself, and its note to resume is removed.
#[tokio::test]
async fn r_m23_a_suspended_session_is_never_due() {
    let (place, here) = (Place::new(), id("default"));
    let store = place.open().await;
    begun(&store, &here).await;
    assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
    let (workspace, sealed) = (here.clone(), "sealed prompt".to_owned());
    let rest = NewRest { workspace, session: session(), run: run(1), sealed };
    let of = EventsOf { workspace: here.clone(), session: session() };
    let owing = |message| NewEvent { owed: Some(&rest), ..message_of(&of, message) };
    assert!(store.events().append(&[owing("before")]).await.unwrap().is_some());
    assert_eq!(store.resting().due(SystemTime::now(), 9).await.unwrap().len(), 1);
    let gone = SuspendedSession { run: None, ..suspension(1, 100) };
    assert!(store.suspended().suspend(&here, &gone).await.unwrap());
    assert!(store.resting().due(SystemTime::now(), 9).await.unwrap().is_empty());
    assert!(store.events().append(&[owing("while")]).await.unwrap().is_some());
    assert!(store.resting().due(SystemTime::now(), 9).await.unwrap().is_empty());
    store.close().await;
}

/// The stored inputs of a session are removed with its end, and an ended session is not suspended.
#[tokio::test]
async fn r_m23_the_end_of_a_suspended_session_removes_its_stored_inputs() {
    let (place, here) = (Place::new(), id("default"));
    let store = place.open().await;
    begun(&store, &here).await;
    assert!(store.suspended().suspend(&here, &suspension(1, 100)).await.unwrap());
    assert!(store.sessions().end(&here, session(), RunEnd::Ended).await.unwrap());
    assert_eq!(store.suspended().find(&here, session()).await.unwrap(), None);
    assert!(!store.suspended().suspend(&here, &suspension(1, 200)).await.unwrap());
    store.close().await;
}
