//! Child sessions, in both kinds of store.

use std::time::{Duration, SystemTime};

use narthex_model::{AgentType, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{Awaited, Claim, NewRun, QuietChild, SessionRow, Store};

use crate::support::{Place, id};

fn run(number: u8) -> RunId {
    RunId::new([0, 0, 0, 0, 0, number])
}

fn session(number: u8) -> SessionId {
    SessionId::new([9, 0, 0, 0, 0, number])
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Creates a session with a run of its number, under the run of another number.
async fn begun(store: &Store, here: &WorkspaceId, number: u8, by: Option<u8>) {
    let parent = by.map(run);
    let row = SessionRow {
        workspace: here.clone(),
        id: session(number),
        agent: "reader".to_owned(),
        parent,
        depth: 0,
        sealed: "sealed parameters".to_owned(),
        created_at: at(10),
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    };
    let new = NewRun {
        id: run(number),
        workspace: here,
        session: row.id,
        agent: "reader",
        agent_type: Some(AgentType::Orchestrator),
        parent,
        agent_env: &[],
        token: "hash",
        sealed: "sealed scope",
        created_by: "admin",
        expires_at: SystemTime::now() + Duration::from_secs(3600),
        has_sockets: false,
        driver: None,
        awaited: Some(Awaited { model: "", runtime: "", executor: None }),
        spawned: None,
        is_owed: false,
        suspended_at: None,
    };
    store.runs().create(new, Some(&row)).await.unwrap().unwrap();
}

/// X-E90, X-E91, D10: the time of a child's last act only ever grows, be it a call or a claim. The
/// newest announced silence counts, and the agent's type is that of the newest run.
#[tokio::test]
async fn x_e90_the_newest_act_silence_and_agent_type_of_a_child_count() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        begun(&store, &here, 1, None).await;
        begun(&store, &here, 2, Some(1)).await;
        let sessions = store.sessions();
        let child = async || -> QuietChild {
            let mut page = sessions.children(&here, "", (at(0), 9)).await.unwrap();
            assert_eq!(page.len(), 1, "only those that others have begun");
            page.remove(0)
        };
        let first = child().await;
        assert_eq!((first.own_at, first.quiet_until, first.since()), (at(10), None, at(10)));
        assert_eq!(first.agent_type, Some(AgentType::Orchestrator));
        sessions.acted(&here, []).await.unwrap();
        for (seen, known) in [(20, 20), (15, 20), (30, 30)] {
            let acts = [(session(2), at(seen)), (session(1), at(40))];
            sessions.acted(&here, acts).await.unwrap();
            assert_eq!(child().await.since(), at(known));
        }
        sessions.expects_quiet(&here, session(2), Some(at(50))).await.unwrap();
        sessions.expects_quiet(&here, session(2), Some(at(45))).await.unwrap();
        let quiet = child().await;
        assert_eq!((quiet.own_at, quiet.since()), (at(30), at(45)), "the newest, not the longest");
        sessions.expects_quiet(&here, session(2), None).await.unwrap();
        assert_eq!(child().await.since(), at(30));
        let until = SystemTime::now() + Duration::from_secs(60);
        let claim = Claim { id: "clm", by: "ada", executor: None, until, token: "other", turn: 0 };
        let turn = store.runs().find(run(2)).await.unwrap().unwrap().turn.number;
        let before = SystemTime::now() - Duration::from_secs(1);
        assert!(store.runs().claim(&here, run(2), Claim { turn, ..claim }).await.unwrap());
        assert!(child().await.own_at > before, "a claim is an act");
        store.close().await;
    }
}

/// X-E89, X-E92: a child without an active run is found, unless it is due to resume. An active
/// session below a cancelled one is found, below one with any other outcome it is not.
#[tokio::test]
async fn x_e92_inactive_and_abandoned_children_are_found() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        for (number, by) in [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1)), (5, Some(4))] {
            begun(&store, &here, number, by).await;
        }
        let sessions = store.sessions();
        assert!(sessions.still(&here, "", 9).await.unwrap().is_empty());
        assert!(store.runs().end(&here, run(2), RunEnd::Failed).await.unwrap());
        let still = sessions.still(&here, "", 9).await.unwrap();
        assert_eq!(still.len(), 1, "{still:?}");
        let of = (still[0].session, still[0].above, still[0].run, still[0].how);
        assert_eq!(of, (session(2), session(1), run(2), RunEnd::Failed));
        assert_eq!((still[0].children, still[0].agent_type), (1, Some(AgentType::Orchestrator)));
        assert!(sessions.still(&here, &session(2).to_text(), 9).await.unwrap().is_empty());
        let how = async |number| sessions.find(&here, session(number)).await.unwrap().unwrap().how;
        assert_eq!(how(2).await, None);
        assert!(sessions.end(&here, session(2), RunEnd::Cancelled).await.unwrap());
        assert!(sessions.end(&here, session(4), RunEnd::Ended).await.unwrap());
        assert_eq!((how(2).await, how(4).await), (Some(RunEnd::Cancelled), Some(RunEnd::Ended)));
        let left = sessions.left(&here, 9).await.unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!((left[0].session, left[0].above, left[0].run), (session(3), session(2), run(2)));
        assert!(sessions.end(&here, session(3), RunEnd::Cancelled).await.unwrap());
        assert!(sessions.left(&here, 9).await.unwrap().is_empty());
        assert!(sessions.still(&here, "", 9).await.unwrap().is_empty());
        store.close().await;
    }
}
