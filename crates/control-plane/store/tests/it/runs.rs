//! Sessions and runs: their numbers, their ends, and the data that is removed with them.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use narthex_model::{ErrorKind, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{NewRun, RunFilter, RunSearch, SessionRow, Store, Workspace};
use tokio::task::JoinSet;

use crate::support::{Place, id};

fn run(number: u8) -> RunId {
    RunId::new([0, 0, 0, 0, 0, number])
}

fn session(number: u8) -> SessionId {
    SessionId::new([0, 0, 0, 0, 0, number])
}

fn row(workspace: &WorkspaceId, number: u8) -> SessionRow {
    SessionRow {
        workspace: workspace.clone(),
        id: session(number),
        agent: "reader".to_owned(),
        parent: None,
        depth: 0,
        sealed: "sealed parameters".to_owned(),
        created_at: SystemTime::UNIX_EPOCH + Duration::from_millis(7),
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    }
}

fn new(workspace: &WorkspaceId, number: u8, of: u8) -> NewRun<'_> {
    NewRun {
        id: run(number),
        workspace,
        session: session(of),
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: "hash",
        sealed: "sealed scope",
        created_by: "admin",
        expires_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1000),
        has_sockets: number % 2 == 1,
        driver: None,
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    }
}

async fn create(store: &Store, of: &WorkspaceId, number: u8) {
    let created = store.runs().create(new(of, number, number), Some(&row(of, number))).await;
    assert!(created.unwrap().is_some());
}

/// D10: the frozen data of a run grows while it lives, and does not come back afterwards.
#[tokio::test]
async fn d10_the_frozen_data_of_a_run_can_be_replaced_while_the_run_is_active() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        create(&store, &here, 1).await;
        let sealed = async || store.runs().find(run(1)).await.unwrap().unwrap().sealed;
        assert!(!store.runs().freeze(&id("other"), run(1), "foreign").await.unwrap());
        assert!(!store.runs().freeze(&here, run(2), "absent").await.unwrap());
        assert_eq!(sealed().await, "sealed scope");
        assert!(store.runs().freeze(&here, run(1), "sealed anew").await.unwrap());
        assert_eq!(sealed().await, "sealed anew");
        assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
        assert!(!store.runs().freeze(&here, run(1), "too late").await.unwrap());
        assert_eq!(sealed().await, "");
    }
}

/// X-M65, O82: a run and its session are stored together and outlive the store. Their frozen data
/// is removed when they end; they end once.
#[tokio::test]
async fn o82_the_frozen_data_of_a_run_is_removed_at_its_end() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        create(&store, &here, 1).await;
        store.close().await;
        let store = place.open().await;
        let found = store.runs().find(run(1)).await.unwrap().unwrap();
        assert_eq!((found.pid.get(), found.session, found.ended), (1, session(1), None));
        assert_eq!((found.agent.as_str(), found.sealed.as_str()), ("reader", "sealed scope"));
        assert_eq!(found.expires_at, SystemTime::UNIX_EPOCH + Duration::from_secs(1000));
        assert_eq!(store.sessions().find(&here, session(1)).await.unwrap(), Some(row(&here, 1)));
        let live = store.runs().live(None, 9).await.unwrap();
        assert_eq!((live.len(), live[0].has_sockets, found.has_sockets), (1, true, true));

        assert!(store.runs().end(&here, run(1), RunEnd::Expired).await.unwrap());
        assert!(!store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
        let found = store.runs().find(run(1)).await.unwrap().unwrap();
        assert_eq!((found.ended.unwrap().1, found.sealed.as_str()), (RunEnd::Expired, ""));
        assert!(store.runs().live(None, 9).await.unwrap().is_empty());

        assert!(store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
        assert!(!store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
        let found = store.sessions().find(&here, session(1)).await.unwrap().unwrap();
        assert!(found.ended_at.is_some() && found.sealed.is_empty());
        let first = store.runs().find(run(1)).await.unwrap().unwrap();
        assert_eq!(first.ended.unwrap().1, RunEnd::Expired, "it had ended before");
        let again = store.runs().create(new(&here, 2, 1), None).await.unwrap().is_some();
        assert!(!again, "no run begins in a session that has ended");
        assert_eq!(store.runs().find(run(2)).await.unwrap(), None);
    }
}

/// D10: a session ends with its runs at one moment, and no other does.
#[tokio::test]
async fn a_session_ends_with_its_runs() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        create(&store, &here, 1).await;
        assert!(store.runs().create(new(&here, 2, 1), None).await.unwrap().is_some());
        create(&store, &here, 3).await;
        assert!(store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
        let at = store.sessions().find(&here, session(1)).await.unwrap().unwrap().ended_at;
        for number in [1, 2] {
            let ended = store.runs().find(run(number)).await.unwrap().unwrap();
            assert_eq!(ended.ended, at.map(|at| (at, RunEnd::Ended)), "{number}");
            assert_eq!(ended.sealed, "", "{number}");
        }
        assert_eq!(store.runs().find(run(3)).await.unwrap().unwrap().ended, None);
    }
}

/// R-M8: numbers of runs count up in each workspace, also where many come at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn pids_count_up_in_each_workspace() {
    for place in Place::both() {
        let (store, here, there) = (place.open().await, id("default"), id("team"));
        let team = Workspace::new(there.clone(), "");
        store.workspaces().create(&team).await.unwrap();
        let mut creating = JoinSet::new();
        for number in 1..=20 {
            let (store, here) = (store.clone(), here.clone());
            creating.spawn(async move { create(&store, &here, number).await });
        }
        creating.join_all().await;
        let all = store.runs().page(&here, RunFilter::default(), 0, 100).await.unwrap();
        let pids: Vec<_> = all.iter().map(|run| run.pid.get()).collect();
        assert_eq!(pids, (1..=20).collect::<Vec<_>>());
        let ids: BTreeSet<_> = all.iter().map(|run| run.id).collect();
        assert_eq!(ids.len(), 20);
        create(&store, &there, 100).await;
        assert_eq!(store.runs().find(run(100)).await.unwrap().unwrap().pid.get(), 1);
        let page = store.runs().page(&here, RunFilter::default(), 18, 1).await.unwrap();
        assert_eq!((page.len(), page[0].pid.get()), (1, 19));
        let of = RunFilter::of_session(all[3].session);
        let page = store.runs().page(&here, of, 0, 9).await.unwrap();
        assert_eq!(page, [all[3].clone()]);
        assert!(store.runs().end(&here, all[3].id, RunEnd::Ended).await.unwrap());
        let living = RunFilter { status: Some(None), ..RunFilter::default() };
        let live = store.runs().page(&here, living, 2, 9).await.unwrap();
        assert_eq!(live[0].pid.get(), if all[3].pid.get() == 3 { 5 } else { 3 });
        assert_eq!(store.sessions().page(&here, "", 7).await.unwrap().len(), 7);
    }
}

/// O78, S18: a run or session of another workspace, or an ended one, is no parent and no session.
#[tokio::test]
async fn s18_ids_of_other_workspaces_do_not_fit() {
    for place in Place::both() {
        let (store, here, there) = (place.open().await, id("default"), id("team"));
        let team = Workspace::new(there.clone(), "");
        store.workspaces().create(&team).await.unwrap();
        create(&store, &here, 1).await;
        assert_eq!(store.sessions().find(&there, session(1)).await.unwrap(), None);
        assert!(!store.runs().end(&there, run(1), RunEnd::Ended).await.unwrap());
        assert!(!store.sessions().end(&there, session(1), RunEnd::Ended).await.unwrap());
        assert!(store.runs().create(new(&there, 2, 1), None).await.unwrap().is_none());
        let of_parent = NewRun { parent: Some(run(1)), ..new(&there, 2, 2) };
        assert!(store.runs().create(of_parent, Some(&row(&there, 2))).await.unwrap().is_none());
        assert_eq!(
            store.sessions().find(&there, session(2)).await.unwrap(),
            None,
            "nothing is left"
        );
        let taken = store.runs().create(new(&there, 1, 3), Some(&row(&there, 3))).await;
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::Conflict);
        let child = NewRun { parent: Some(run(1)), ..new(&here, 4, 4) };
        assert!(store.runs().create(child, Some(&row(&here, 4))).await.unwrap().is_some());
        let found = store.runs().find(run(4)).await.unwrap().unwrap();
        assert_eq!((found.parent, found.pid.get()), (Some(run(1)), 2));
        store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap();
        let late = NewRun { parent: Some(run(1)), ..new(&here, 5, 4) };
        assert!(store.runs().create(late, None).await.unwrap().is_none());
    }
}

/// Lists for people begin with the newest run, and are selected by agent, driver and parent.
#[tokio::test]
async fn the_newest_runs_come_first_and_are_selected() {
    for place in Place::both() {
        let (store, here, there) = (place.open().await, id("default"), id("team"));
        store.workspaces().create(&Workspace::new(there.clone(), "")).await.unwrap();
        for number in 1..=4 {
            create(&store, &here, number).await;
        }
        create(&store, &there, 100).await;
        let child = NewRun { parent: Some(run(2)), agent: "tester", ..new(&here, 5, 5) };
        let session = SessionRow { parent: Some(run(2)), depth: 1, ..row(&here, 5) };
        store.runs().create(child, Some(&session)).await.unwrap().unwrap();
        assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
        let found = async |search: &RunSearch, before, limit| {
            let rows = store.runs().newest(&here, search, before, limit).await.unwrap();
            rows.iter().map(|row| row.pid.get()).collect::<Vec<_>>()
        };
        let all = RunSearch::default();
        assert_eq!(found(&all, u64::MAX, 9).await, [5, 4, 3, 2, 1]);
        assert_eq!(found(&all, 4, 2).await, [3, 2]);
        let filter = RunFilter { status: Some(None), ..RunFilter::default() };
        let living = RunSearch { filter, ..RunSearch::default() };
        assert_eq!(found(&living, 3, 9).await, [2]);
        let tester = RunSearch { agent: "tester".to_owned(), ..RunSearch::default() };
        assert_eq!(found(&tester, u64::MAX, 9).await, [5]);
        let children = RunSearch { parent: Some(run(2)), ..RunSearch::default() };
        assert_eq!(found(&children, u64::MAX, 9).await, [5]);
        let of = RunSearch { filter: RunFilter::of_session(session.id), ..RunSearch::default() };
        assert_eq!(found(&of, u64::MAX, 9).await, [5]);
        let below = store.runs().below(&here, run(2), 8, 9).await.unwrap();
        assert_eq!(below.iter().map(|row| row.id).collect::<Vec<_>>(), [run(5)]);
        assert!(store.runs().below(&there, run(2), 8, 9).await.unwrap().is_empty());
        let counted = store.runs().count_living(&here).await.unwrap();
        assert_eq!((counted.running, counted.pending), (4, 0));
    }
}
