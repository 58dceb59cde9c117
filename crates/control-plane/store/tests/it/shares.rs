//! Shares and comments, as stored.

use std::time::{Duration, SystemTime};

use narthex_model::{ErrorKind, RunId, SessionId, ShareId, ThreadId};
use narthex_store::{
    CommentBounds, CommentCounts, NewRun, SessionRow, ShareBounds, ShareCounts, ShareRow,
    SharedFileRow, Store, ThreadRow, Workspace,
};

use crate::support::{Place, id};

const ROOM: ShareBounds = ShareBounds { of_session: 9, of_workspace: 9, files_of_workspace: 9 };
const TALK: CommentBounds = CommentBounds { threads: 9, of_thread: 9, of_share: 9 };

pub(crate) fn session() -> SessionId {
    SessionId::new([1; SessionId::BYTES])
}

fn share(number: u8) -> ShareRow {
    ShareRow {
        workspace: id("team"),
        id: ShareId::new([number; ShareId::BYTES]),
        session: session(),
        run: RunId::new([2; RunId::BYTES]),
        title: "Größe".to_owned(),
        kind: "csv".to_owned(),
        entry_point: Some("a.csv".to_owned()),
        total_size: 3,
        revision: 0,
        created_at: SystemTime::UNIX_EPOCH,
        updated_at: SystemTime::UNIX_EPOCH,
    }
}

fn file(path: &str, hash: &str) -> SharedFileRow {
    let (path, hash) = (path.to_owned(), hash.to_owned());
    SharedFileRow { path, size: 3, content_type: "text/csv; charset=utf-8".to_owned(), hash }
}

fn thread(anchor: &str) -> ThreadRow {
    ThreadRow {
        id: ThreadId::new([9; ThreadId::BYTES]),
        share: share(1).id,
        anchor: anchor.to_owned(),
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
        resolved: None,
    }
}

/// A store with the workspace `team` and a session in it, and another workspace.
pub(crate) async fn store(place: &Place) -> Store {
    let store = place.open().await;
    for name in ["team", "other"] {
        store.workspaces().create(&Workspace::new(id(name), name)).await.unwrap();
    }
    let team = id("team");
    let row = SessionRow {
        workspace: team.clone(),
        id: session(),
        agent: "reader".to_owned(),
        parent: None,
        depth: 0,
        sealed: String::new(),
        created_at: SystemTime::UNIX_EPOCH,
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    };
    let run = NewRun {
        id: share(1).run,
        workspace: &team,
        session: session(),
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: "hash",
        sealed: "",
        created_by: "admin",
        expires_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1000),
        has_sockets: false,
        driver: None,
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    };
    assert!(store.runs().create(run, Some(&row)).await.unwrap().is_some());
    store
}

/// X-E97: shares are of their workspace alone; another one looks as if there were none.
#[tokio::test]
async fn x_e97_a_share_is_stored_unchanged_in_its_workspace() {
    for place in Place::both() {
        let store = store(&place).await;
        let (team, one) = (id("team"), share(1));
        store
            .shares()
            .create(&one, &[file("b", "00ff"), file("a.csv", "00aa")], ROOM)
            .await
            .unwrap();
        let twice = store.shares().create(&one, &[], ROOM).await.unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::Conflict);
        let homeless = ShareRow { session: SessionId::new([8; SessionId::BYTES]), ..share(2) };
        let refused = store.shares().create(&homeless, &[], ROOM).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
        store.close().await;
        let store = place.open().await;
        let found = store.shares().find(&team, one.id).await.unwrap().unwrap();
        let (created_at, updated_at) = (found.created_at, found.updated_at);
        assert_eq!(found, ShareRow { revision: 1, created_at, updated_at, ..one.clone() });
        assert_eq!(created_at, updated_at);
        let files = store.shares().files(&team, one.id).await.unwrap();
        assert_eq!(files, [file("a.csv", "00aa"), file("b", "00ff")]);
        assert_eq!(store.shares().find(&id("other"), one.id).await.unwrap(), None);
        assert_eq!(store.shares().files(&id("other"), one.id).await.unwrap(), []);
        assert_eq!(store.shares().page(&id("other"), None, 9).await.unwrap(), []);
        assert!(!store.shares().remove(&id("other"), one.id).await.unwrap());
        store.close().await;
    }
}

/// A share that is replaced under its id has other files and the same comments.
#[tokio::test]
async fn a_share_is_replaced_in_place_and_keeps_its_comments() {
    for place in Place::both() {
        let store = store(&place).await;
        let (team, one) = (id("team"), share(1));
        assert!(!store.shares().replace(&one, &[file("a", "00aa")], ROOM).await.unwrap());
        assert_eq!(store.shares().hashes(&team).await.unwrap(), [""; 0]);
        store.shares().create(&one, &[file("a", "00aa"), file("b", "00aa")], ROOM).await.unwrap();
        store.shares().begin_thread(&team, &thread(""), ("ada", "well"), TALK).await.unwrap();
        let again = ShareRow { entry_point: None, kind: "file".to_owned(), ..share(1) };
        assert!(store.shares().replace(&again, &[file("c", "00cc")], ROOM).await.unwrap());
        let found = store.shares().find(&team, one.id).await.unwrap().unwrap();
        assert_eq!((found.revision, found.entry_point, &*found.kind), (2, None, "file"));
        assert_eq!(store.shares().files(&team, one.id).await.unwrap(), [file("c", "00cc")]);
        assert_eq!(store.shares().hashes(&team).await.unwrap(), ["00cc"]);
        assert_eq!(store.shares().threads(&team, one.id).await.unwrap(), [thread("")]);
        let foreign = ShareRow { session: SessionId::new([8; SessionId::BYTES]), ..share(1) };
        assert!(!store.shares().replace(&foreign, &[], ROOM).await.unwrap());
        store.close().await;
    }
}

#[tokio::test]
async fn comments_are_numbered_and_threads_settled() {
    for place in Place::both() {
        let store = store(&place).await;
        let (team, about) = (id("team"), thread("line 3"));
        let nothing =
            store.shares().begin_thread(&team, &about, ("ada", "x"), TALK).await.unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::NotFound);
        store.shares().create(&share(1), &[], ROOM).await.unwrap();
        store.shares().begin_thread(&team, &about, ("ada", "why?"), TALK).await.unwrap();
        store.shares().comment(&team, &about, ("run_0a1b2c3d4e5f", "so"), TALK).await.unwrap();
        let comments = store.shares().comments(&team, about.id).await.unwrap();
        let said: Vec<_> =
            comments.iter().map(|one| (one.number, &*one.author, &*one.text)).collect();
        assert_eq!(said, [(1, "ada", "why?"), (2, "run_0a1b2c3d4e5f", "so")]);
        let elsewhere = store.shares().comment(&id("other"), &about, ("eve", "x"), TALK).await;
        assert_eq!(elsewhere.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!store.shares().resolve(&id("other"), about.id, Some("eve")).await.unwrap());
        assert!(store.shares().resolve(&team, about.id, Some("ada")).await.unwrap());
        let found = store.shares().thread(&team, about.id).await.unwrap().unwrap();
        assert_eq!(found.resolved.map(|(_, by)| by).as_deref(), Some("ada"));
        assert!(store.shares().resolve(&team, about.id, None).await.unwrap());
        assert_eq!(store.shares().thread(&team, about.id).await.unwrap(), Some(about.clone()));
        assert!(store.shares().remove(&team, share(1).id).await.unwrap());
        assert_eq!(store.shares().thread(&team, about.id).await.unwrap(), None);
        assert_eq!(store.shares().comments(&team, about.id).await.unwrap(), []);
        store.close().await;
    }
}

#[tokio::test]
async fn shares_come_by_pages() {
    for place in Place::both() {
        let store = store(&place).await;
        for number in [3, 1, 2] {
            store.shares().create(&share(number), &[], ROOM).await.unwrap();
        }
        let ids = |rows: Vec<ShareRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
        let team = id("team");
        let first = ids(store.shares().page(&team, None, 2).await.unwrap());
        assert_eq!(first, [share(1).id, share(2).id]);
        let rest = ids(store.shares().page(&team, Some(first[1]), 2).await.unwrap());
        assert_eq!(rest, [share(3).id]);
        let of_session = ids(store.shares().of_session(&team, session(), 2).await.unwrap());
        assert_eq!(of_session, [share(1).id, share(2).id]);
        let other = SessionId::new([9; SessionId::BYTES]);
        assert_eq!(store.shares().of_session(&team, other, 2).await.unwrap(), []);
        assert_eq!(store.shares().of_session(&id("default"), session(), 2).await.unwrap(), []);
        store.close().await;
    }
}

/// X-E95: the number of shares of a session and of a workspace is limited, and so is their number
/// of files, also of files with the same content.
#[tokio::test]
async fn the_number_of_shares_and_files_is_limited() {
    for place in Place::both() {
        let store = store(&place).await;
        let of_session = ShareBounds { of_session: 2, ..ROOM };
        let shares = store.shares();
        assert!(shares.create(&share(1), &[file("a", "00aa")], of_session).await.unwrap());
        assert!(shares.create(&share(2), &[], of_session).await.unwrap());
        for bounds in [of_session, ShareBounds { of_workspace: 2, ..ROOM }] {
            assert!(!shares.create(&share(3), &[file("b", "00bb")], bounds).await.unwrap());
        }
        assert_eq!(shares.find(&id("team"), share(3).id).await.unwrap(), None);
        assert_eq!(shares.hashes(&id("team")).await.unwrap(), ["00aa"]);
        let counts = shares.counts(&id("team"), share(1).session).await.unwrap();
        assert_eq!(counts, ShareCounts { of_session: 2, of_workspace: 2 });
        assert!(shares.remove(&id("team"), share(1).id).await.unwrap());
        assert!(shares.create(&share(3), &[], of_session).await.unwrap());
        let files = [file("a", "00aa"), file("b", "00aa"), file("c", "00aa")];
        let of_files = ShareBounds { files_of_workspace: 3, ..ROOM };
        assert!(shares.replace(&share(2), &files[..2], of_files).await.unwrap());
        assert!(!shares.replace(&share(3), &files[..2], of_files).await.unwrap());
        assert!(!shares.create(&share(4), &files[..2], of_files).await.unwrap());
        assert!(shares.create(&share(4), &files[..1], of_files).await.unwrap());
        // Files that replace others count instead of them.
        assert!(shares.replace(&share(2), &files[1..], of_files).await.unwrap());
        store.close().await;
    }
}

/// X-E95: the limits on threads of a share, and on comments of a share and a thread, hold in any
/// order.
#[tokio::test]
async fn the_number_of_threads_and_comments_is_limited() {
    for place in Place::both() {
        let store = store(&place).await;
        let (team, shares) = (id("team"), store.shares());
        assert!(shares.create(&share(1), &[], ROOM).await.unwrap());
        let numbered =
            |number: u8| ThreadRow { id: ThreadId::new([number; ThreadId::BYTES]), ..thread("") };
        let bounds = CommentBounds { threads: 2, of_thread: 3, of_share: 4 };
        let begin = async |number| {
            shares.begin_thread(&team, &numbered(number), ("ada", "x"), bounds).await.unwrap()
        };
        let say = async |number| {
            shares.comment(&team, &numbered(number), ("ada", "x"), bounds).await.unwrap()
        };
        assert!(begin(1).await && begin(2).await && !begin(3).await);
        assert_eq!(shares.thread(&team, numbered(3).id).await.unwrap(), None);
        assert!(say(1).await && say(1).await && !say(1).await, "of the thread");
        assert!(!say(2).await, "of the share");
        let counts = shares.comment_counts(&team, share(1).id).await.unwrap();
        assert_eq!(counts, CommentCounts { threads: 2, comments: 4 });
        let many = CommentBounds { of_share: 5, ..bounds };
        let second = numbered(2);
        let once = || shares.comment(&team, &second, ("ada", "x"), many);
        let told = tokio::join!(once(), once(), once(), once());
        let told = [told.0, told.1, told.2, told.3].map(Result::unwrap);
        assert_eq!(told.iter().filter(|is_said| **is_said).count(), 1, "{told:?}");
        store.close().await;
    }
}
