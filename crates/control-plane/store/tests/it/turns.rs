//! Turns of sessions: taken with a message, in all active runs, and known by their numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{PrincipalId, RunEnd, RunId, SessionId, TurnOf};
use narthex_store::{EventsOf, NewEvent, NewRun, SessionRow, Store};

use crate::support::{Place, id};

fn user(digit: char) -> PrincipalId {
    PrincipalId::new(&format!("prn_{}", String::from(digit).repeat(16))).unwrap()
}

fn of(session: u8) -> EventsOf {
    EventsOf { workspace: id("default"), session: SessionId::new([session; 6]) }
}

fn run(number: u8) -> RunId {
    RunId::new([number; 6])
}

/// A run of a session that the user 1 drives; of a new session, if it is the first.
async fn begin(store: &Store, number: u8, session: u8, is_first: bool) {
    let EventsOf { workspace, session } = of(session);
    let row = SessionRow {
        workspace: workspace.clone(),
        id: session,
        agent: "reader".to_owned(),
        parent: None,
        depth: 0,
        sealed: String::new(),
        created_at: UNIX_EPOCH,
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    };
    let (driver, token) = (user('1'), run(number).to_text());
    let new = NewRun {
        id: run(number),
        workspace: &workspace,
        session,
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: &token,
        sealed: "",
        created_by: "admin",
        expires_at: SystemTime::now() + Duration::from_secs(1000),
        has_sockets: false,
        driver: Some(&driver),
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    };
    assert!(store.runs().create(new, is_first.then_some(&row)).await.unwrap().is_some());
}

/// Sends a message; returns the number of the turn, if it is new.
async fn say(store: &Store, session: u8, id: &str, turn: Option<&TurnOf>) -> Option<u64> {
    let new = NewEvent {
        of: &of(session),
        run: None,
        kind: "user.message",
        message_id: Some(id),
        payload: "{}",
        happened_at: UNIX_EPOCH,
        turn,
        unread: None,
        owed: None,
        is_own: false,
    };
    store.events().append(&[new]).await.unwrap().map(|appended| appended.turn)
}

async fn acts_for(store: &Store, number: u8) -> Option<PrincipalId> {
    store.runs().find(run(number)).await.unwrap().unwrap().acts_for().cloned()
}

/// X-E81: a new message takes the turn of its session, and of no other session; a known message
/// takes none. The turn outlives the store.
#[tokio::test]
async fn x_e81_a_message_takes_the_turn_of_its_session() {
    for place in Place::both() {
        let store = place.open().await;
        begin(&store, 1, 1, true).await;
        begin(&store, 2, 2, true).await;
        assert_eq!(acts_for(&store, 1).await, Some(user('1')), "who drives it");
        assert_eq!(say(&store, 1, "aside", None).await, Some(0));
        assert_eq!(acts_for(&store, 1).await, Some(user('1')));

        let (second, no_user) = (TurnOf::User(user('2')), TurnOf::NoUser);
        assert_eq!(say(&store, 1, "m1", Some(&second)).await, Some(1));
        assert_eq!(acts_for(&store, 1).await, Some(user('2')));
        assert_eq!(acts_for(&store, 2).await, Some(user('1')));
        assert_eq!(say(&store, 1, "m2", Some(&no_user)).await, Some(2));
        assert_eq!(acts_for(&store, 1).await, None);
        assert_eq!(say(&store, 1, "m1", Some(&second)).await, None, "the same again");
        assert_eq!(acts_for(&store, 1).await, None);

        store.close().await;
        let store = place.open().await;
        assert_eq!((acts_for(&store, 1).await, store.runs().last_turn().await.unwrap()), (None, 2));
        assert_eq!(say(&store, 1, "m3", Some(&second)).await, Some(3));
        let changed = store.runs().turns_since(2).await.unwrap();
        let changed: Vec<_> = changed.into_iter().map(|one| (one.run, one.user)).collect();
        assert_eq!(changed, [(run(1), Some(user('2')))]);
        assert_eq!(store.runs().turns_since(3).await.unwrap(), []);
    }
}

/// X-E81: all active runs of a session have the same turn; an ended one keeps its own, and the user
/// who resumes the session has the turn in the run that begins.
#[tokio::test]
async fn x_e81_active_runs_have_the_turn_of_their_session() {
    for place in Place::both() {
        let store = place.open().await;
        let here = id("default");
        begin(&store, 1, 1, true).await;
        begin(&store, 2, 1, false).await;
        assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
        let second = TurnOf::User(user('2'));
        say(&store, 1, "m1", Some(&second)).await.unwrap();
        assert_eq!(acts_for(&store, 1).await, Some(user('1')), "it had ended");
        assert_eq!(acts_for(&store, 2).await, Some(user('2')));
        assert!(store.runs().end(&here, run(2), RunEnd::Ended).await.unwrap());
        say(&store, 1, "m2", Some(&TurnOf::NoUser)).await.unwrap();
        assert_eq!(acts_for(&store, 2).await, Some(user('2')), "it had ended");
        assert_eq!(store.runs().turns_of(&here, of(1).session).await.unwrap(), []);

        begin(&store, 3, 1, false).await;
        let turns = store.runs().turns_of(&here, of(1).session).await.unwrap();
        let [turn] = &turns[..] else { panic!("{turns:?}") };
        assert_eq!((turn.run, &turn.user), (run(3), &Some(user('1'))));
        assert_eq!(turn.number, 2, "what was said before it began is older");
    }
}
