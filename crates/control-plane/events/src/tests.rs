//! Events on stores of both kinds: storage, wake-ups, and ends.

mod delivery;

use std::time::{Duration, SystemTime};

use narthex_model::{RunEnd, RunId, Secret, SessionId, WorkspaceId};
use narthex_store::{NewRun, SessionRow, Store};
use narthex_testkit::postgres;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// A store that can be opened again, as another daemon does.
struct Place {
    dir: TempDir,
    url: Option<Secret>,
}

impl Place {
    /// A store in a file, and a store on a server if one is installed.
    fn both() -> Vec<Self> {
        let url = postgres::database(&[]).map(|database| Secret::new(database.url));
        let place = |url| Self { dir: tempfile::tempdir().unwrap(), url };
        let mut all = vec![place(None)];
        all.extend(url.map(|url| place(Some(url))));
        all
    }

    async fn open(&self) -> Store {
        match &self.url {
            Some(url) => Store::connect(url).await.unwrap(),
            None => Store::open(&self.dir.path().join("store.db")).await.unwrap(),
        }
    }
}

fn at(number: u8) -> EventPlace {
    let session = SessionId::new([number; 6]);
    EventPlace { workspace: WorkspaceId::default(), session, run: Some(RunId::new([number; 6])) }
}

/// Stores a session with one run.
async fn begin(store: &Store, place: &EventPlace) {
    let EventPlace { workspace, session, .. } = place;
    let row = SessionRow {
        workspace: workspace.clone(),
        id: *session,
        agent: String::new(),
        parent: None,
        depth: 0,
        sealed: String::new(),
        created_at: SystemTime::now(),
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    };
    let run = NewRun {
        id: RunId::new(session.bytes()),
        workspace,
        session: *session,
        agent: "",
        parent: None,
        agent_env: &[],
        token: &session.to_text(),
        sealed: "",
        created_by: "admin",
        expires_at: SystemTime::now() + NEVER,
        has_sockets: false,
        driver: None,
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    };
    assert!(store.runs().create(run, Some(&row)).await.unwrap().is_some());
}

async fn status(events: &Events, place: &EventPlace, number: u64) -> EventRow {
    events.append(place, EventKind::AgentStatus, &json!({ "n": number }), None).await.unwrap()
}

async fn page(events: &Events, place: &EventPlace, after: u64) -> EventPage {
    let wanted = Wanted { after, limit: WINDOW, kinds: &[] };
    events.read(&place.workspace, place.session, wanted).await.unwrap()
}

fn follow(events: &Events, place: &EventPlace, after: u64) -> Follower {
    events.follow(&place.workspace, place.session, after, Vec::new())
}

async fn seqs(follower: &mut Follower) -> Option<Vec<u64>> {
    let events = follower.next().await.unwrap()?;
    Some(events.iter().map(|event| event.seq).collect())
}

/// X-E98: an event has the envelope that is promised, and nothing else.
#[tokio::test]
async fn x_e98_events_have_their_envelope() {
    for place in Place::both() {
        let store = place.open().await;
        let here = at(1);
        begin(&store, &here).await;
        let events = Events::new(store);
        let payload = json!({ "text": "Grüße\0" });
        let kind = EventKind::UserMessage;
        let event = events.append(&here, kind, &payload, Some("m1")).await.unwrap();
        let expected = json!({
            "session_id": "ses_010101010101",
            "timestamp": event.envelope()["timestamp"],
            "sequence": 1,
            "type": "user.message",
            "payload": payload,
            "run_id": "run_010101010101",
            "message_id": "m1",
        });
        assert_eq!(event.envelope(), expected);
        assert!(expected["timestamp"].as_str().unwrap().ends_with('Z'));
        let outside = EventPlace { run: None, ..here.clone() };
        let event = events.append(&outside, kind, &Value::Null, None).await.unwrap();
        let envelope = event.envelope();
        let mut names: Vec<_> = envelope.as_object().unwrap().keys().collect();
        names.sort_unstable();
        assert_eq!(names, ["payload", "sequence", "session_id", "timestamp", "type"]);
        assert_eq!(page(&events, &here, 0).await.events[1], event);
    }
}

/// X-E93: the second of two equal messages gives the first back, also to another daemon.
#[tokio::test]
async fn x_e93_the_second_of_two_equal_messages_is_the_first() {
    for place in Place::both() {
        let here = at(1);
        let (one, other) = (Events::new(place.open().await), Events::new(place.open().await));
        begin(&one.shared.store, &here).await;
        let send = async |events: &Events, text: &str| {
            let payload = json!({ "text": text });
            events.append(&here, EventKind::UserMessage, &payload, Some("m")).await.unwrap()
        };
        let first = send(&one, "first").await;
        assert_eq!(send(&other, "second").await, first);
        assert_eq!(status(&one, &here, 0).await.seq, 2);
    }
}

#[tokio::test]
async fn an_invalid_event_is_refused_and_leaves_no_gap() {
    for place in Place::both() {
        let here = at(1);
        let events = Events::new(place.open().await);
        let kind = EventKind::AgentArtifact;
        let error = events.append(&here, kind, &json!({}), None).await.unwrap_err();
        assert!(matches!(error, EventsError::NoSession(_)), "{error:?}");
        let wanted = Wanted { after: 0, limit: 1, kinds: &[] };
        let error = events.read(&here.workspace, here.session, wanted).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(follow(&events, &here, 0).next().await.unwrap(), None);
        begin(&events.shared.store, &here).await;
        let fits = json!("x".repeat(PAYLOAD_MAX - 2));
        let longer = json!("x".repeat(PAYLOAD_MAX - 1));
        let error = events.append(&here, kind, &longer, None).await.unwrap_err();
        assert!(matches!(error, EventsError::TooLong(n) if n == PAYLOAD_MAX + 1), "{error:?}");
        for id in ["", "a\0", &"x".repeat(MESSAGE_ID_MAX + 1)] {
            let error = events.append(&here, kind, &json!({}), Some(id)).await.unwrap_err();
            assert!(matches!(error, EventsError::MessageId), "{error:?}");
        }
        assert_eq!(events.append(&here, kind, &fits, None).await.unwrap().seq, 1);
        // An event that happened and could not be added is counted.
        events.note(&at(2), EventKind::SessionEnded, &json!({}), None).await;
        events.note(&here, EventKind::SessionEnded, &json!({}), None).await;
        assert_eq!((events.unwritten(), page(&events, &here, 0).await.last), (1, 2));
    }
}

/// Events that have happened are added in their order, as far as they can be.
#[tokio::test]
async fn several_noted_events_are_added_in_order() {
    for place in Place::both() {
        let here = at(1);
        let events = Events::new(place.open().await);
        begin(&events.shared.store, &here).await;
        let mut follower = follow(&events, &here, 0);
        let longer = json!("x".repeat(PAYLOAD_MAX - 1));
        let (begun, mounted) = (EventKind::SessionCreated, EventKind::McpMount);
        let all = [(begun, json!({ "n": 1 })), (EventKind::McpError, longer), (mounted, json!({}))];
        events.note_all(&here, &all).await;
        assert_eq!(seqs(&mut follower).await, Some(vec![1, 2]));
        let told = page(&events, &here, 0).await.events;
        let told: Vec<_> = told.into_iter().map(|event| (event.kind, event.place.run)).collect();
        let wanted = [begun, mounted].map(|kind| (kind.as_str().to_owned(), here.run));
        assert_eq!((told, events.unwritten()), (wanted.to_vec(), 1));
        // A session that is gone has no events.
        events.note_all(&at(2), &all[..1]).await;
        events.note_all(&here, &[]).await;
        assert_eq!((events.unwritten(), page(&events, &here, 0).await.last), (1, 2));
    }
}

#[tokio::test]
async fn a_page_names_the_number_after_which_the_next_page_begins() {
    for place in Place::both() {
        let here = at(1);
        let events = Events::new(place.open().await);
        begin(&events.shared.store, &here).await;
        for number in 1..=5 {
            status(&events, &here, number).await;
        }
        events.append(&here, EventKind::AgentError, &json!({}), None).await.unwrap();
        let read = async |after, limit, kinds: &[EventKind]| {
            let wanted = Wanted { after, limit, kinds };
            let page = events.read(&here.workspace, here.session, wanted).await.unwrap();
            (page.events.iter().map(|event| event.seq).collect::<Vec<_>>(), page.next, page.last)
        };
        assert_eq!(read(0, 2, &[]).await, (vec![1, 2], 2, 6));
        assert_eq!(read(2, 0, &[]).await, (vec![3], 3, 6));
        assert_eq!(read(4, u64::MAX, &[]).await, (vec![5, 6], 6, 6));
        assert_eq!(read(0, 9, &[EventKind::AgentError]).await, (vec![6], 6, 6));
        assert_eq!(read(0, 9, &[EventKind::AgentShare]).await, (vec![], 6, 6));
        assert_eq!(read(9, 9, &[]).await, (vec![], 9, 6));
    }
}

/// X-D10: the newest events are stored, and a page has the number of the first; so with their size.
#[tokio::test]
async fn x_d10_the_newest_events_are_stored_within_a_window() {
    for place in Place::both() {
        let (here, there) = (at(1), at(2));
        let store = place.open().await;
        begin(&store, &here).await;
        begin(&store, &there).await;
        let default = Bounds::default();
        assert_eq!(default.window, 5_000);
        let by_number = Bounds { window: 10, slack: 3, ..default };
        let events = Events::with(store.clone(), NEVER, by_number, Waits::default());
        for number in 1..=40 {
            status(&events, &here, number).await;
            let page = page(&events, &here, 0).await;
            let count = page.events.len() as u64;
            assert!(count >= number.min(10) && count <= 13, "{count} of {number}");
            assert_eq!((page.oldest, page.last), (number + 1 - count, number));
        }
        let by_size = Bounds { session: 10_000, ..default };
        let events = Events::with(store.clone(), NEVER, by_size, Waits::default());
        let payload = json!("x".repeat(3_000));
        // A message that is not kept any more is new.
        for expected in [1, 1, 1, 5, 5] {
            let kind = EventKind::AgentArtifact;
            let message = events.append(&there, kind, &payload, Some("m")).await.unwrap();
            assert_eq!(message.seq, expected);
            events.append(&there, EventKind::AgentArtifact, &payload, None).await.unwrap();
            let sizes = store.events().sizes(&there.stream(), 99).await.unwrap();
            assert!(sizes.iter().map(|(_, size)| size).sum::<u64>() <= 10_000);
        }
        let longer = json!("x".repeat(20_000));
        let last = events.append(&there, EventKind::AgentArtifact, &longer, None).await.unwrap();
        assert_eq!(page(&events, &there, 0).await.events, [last], "the last one stays");
        // If a workspace has too many bytes, the events of the session that has been silent for
        // longest are removed.
        let of_all = Bounds { workspace: 21_000, ..default };
        let events = Events::with(store, NEVER, of_all, Waits::default());
        let last = status(&events, &there, 1).await;
        assert_eq!(page(&events, &here, 0).await.events, []);
        assert_eq!(page(&events, &here, 0).await.oldest, 41);
        assert_eq!(page(&events, &there, 0).await.events.last(), Some(&last));
        assert_eq!(status(&events, &here, 41).await.seq, 41);
    }
}

/// Events of its own process wake a follower, which reads nothing until then.
#[tokio::test]
async fn a_follower_is_woken_by_events_of_its_own_process() {
    for place in Place::both() {
        let (here, there) = (at(1), at(2));
        let store = place.open().await;
        begin(&store, &here).await;
        begin(&store, &there).await;
        let events = Events::with(store, NEVER, Bounds::default(), Waits::default());
        status(&events, &here, 1).await;
        let mut follower = follow(&events, &here, 0);
        let mut second = follow(&events, &here, 1);
        let mut of_all = events.follow_workspace(&here.workspace, 1, vec![EventKind::AgentStatus]);
        assert_eq!(seqs(&mut follower).await, Some(vec![1]));
        let (one, two, all, ()) =
            tokio::join!(seqs(&mut follower), seqs(&mut second), of_all.next(), async {
                tokio::task::yield_now().await;
                status(&events, &there, 1).await;
                status(&events, &here, 2).await;
            });
        assert_eq!((one, two), (Some(vec![2]), Some(vec![2])));
        let all = all.unwrap().unwrap();
        assert_eq!((all[0].place.session, all[0].number), (there.session, 2));
        assert_eq!(events.shared.wakers.len(), 2);
        drop((second, of_all));
        assert_eq!(events.shared.wakers.len(), 1);
        drop(follower);
        assert_eq!(events.shared.wakers.len(), 0);
    }
}

/// Events that another daemon adds to the same store are found as well.
#[tokio::test]
async fn a_follower_finds_events_that_other_daemons_add() {
    for place in Place::both() {
        let here = at(1);
        let (own, other) = (Events::new(place.open().await), Events::new(place.open().await));
        begin(&own.shared.store, &here).await;
        let mut follower = follow(&own, &here, 0);
        let (found, ()) = tokio::join!(seqs(&mut follower), async {
            tokio::task::yield_now().await;
            status(&other, &here, 1).await;
        });
        assert_eq!(found, Some(vec![1]));
    }
}

/// A follower gets all events, once and in order, some at a time, however many there are.
#[tokio::test]
async fn a_follower_gets_everything_once_and_in_order() {
    for place in Place::both() {
        let here = at(1);
        let store = place.open().await;
        begin(&store, &here).await;
        let events = Events::with(store, NEVER, Bounds::default(), Waits::default());
        let mut follower = follow(&events, &here, 0);
        let reading = async {
            let mut all = Vec::new();
            while all.len() < 100 {
                let some = seqs(&mut follower).await.unwrap();
                assert!(some.len() <= 32);
                all.extend(some);
            }
            all
        };
        let writing = async {
            for number in 0..100 {
                status(&events, &here, number).await;
            }
        };
        let (all, ()) = tokio::join!(reading, writing);
        assert_eq!(all, (1..=100).collect::<Vec<_>>());
    }
}

/// Following ends with the session, once the last event was given, or without one a while later.
#[tokio::test]
async fn following_ends_with_the_session() {
    for place in Place::both() {
        let here = at(1);
        let store = place.open().await;
        begin(&store, &here).await;
        let events = Events::with(store.clone(), NEVER, Bounds::default(), Waits::default());
        let (mut told, other) = (follow(&events, &here, 0), follow(&events, &here, 0));
        status(&events, &here, 1).await;
        assert!(store.sessions().end(&here.workspace, here.session, RunEnd::Ended).await.unwrap());
        assert_eq!(seqs(&mut told).await, Some(vec![1]));
        let (last, ()) = tokio::join!(seqs(&mut told), async {
            tokio::task::yield_now().await;
            events.note(&here, EventKind::SessionEnded, &json!({}), None).await;
        });
        assert_eq!(last, Some(vec![2]));
        assert_eq!(seqs(&mut told).await, None);
        drop(other);
        // The end of a session whose event is missing, as after a crash between both.
        let events =
            Events::with(store, Duration::from_millis(1), Bounds::default(), Waits::default());
        let mut untold = events.follow(&here.workspace, here.session, 2, Vec::new());
        assert_eq!(seqs(&mut untold).await, None);
    }
}

/// Events of ended sessions go when their time is over, and no others.
#[tokio::test]
async fn a_sweep_removes_events_of_sessions_that_ended_30_days_ago() {
    for place in Place::both() {
        let (ended, living) = (at(1), at(2));
        let store = place.open().await;
        begin(&store, &ended).await;
        begin(&store, &living).await;
        let events = Events::new(store.clone());
        for number in 1..=3 {
            status(&events, &ended, number).await;
            status(&events, &living, number).await;
        }
        assert!(
            store.sessions().end(&ended.workspace, ended.session, RunEnd::Ended).await.unwrap()
        );
        let day = Duration::from_secs(24 * 60 * 60);
        let now = SystemTime::now();
        assert_eq!(events.sweep(now + 29 * day).await.unwrap(), 0);
        assert_eq!(events.sweep(now + 31 * day).await.unwrap(), 3);
        assert_eq!(events.sweep(now + 31 * day).await.unwrap(), 0);
        let gone = page(&events, &ended, 0).await;
        assert_eq!((gone.events.len(), gone.oldest, gone.last), (0, 4, 3));
        assert_eq!(page(&events, &living, 0).await.events.len(), 3);
    }
}
