//! Events of sessions: numbers without gaps for all writers, repeated messages that count once, a
//! beginning that moves, and counts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{
    AppendedEvent, EventFilter, EventRow, EventsOf, GivenAt, NewEvent, NewRun, NewUnread,
    SessionRow, StatementError, Store, WorkspaceChange,
};

use crate::support::{Place, id};

const DAY: Duration = Duration::from_secs(86_400);

fn of(number: u8) -> EventsOf {
    EventsOf { workspace: id("default"), session: SessionId::new([number; 6]) }
}

/// A session with one run.
async fn begin(store: &Store, of: &EventsOf) {
    let EventsOf { workspace, session } = of;
    let row = SessionRow {
        workspace: workspace.clone(),
        id: *session,
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
    let run = NewRun {
        id: RunId::new(session.bytes()),
        workspace,
        session: *session,
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: &session.to_text(),
        sealed: "",
        created_by: "admin",
        expires_at: SystemTime::now() + DAY,
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

fn new<'e>(of: &'e EventsOf, payload: &'e str, message_id: Option<&'e str>) -> NewEvent<'e> {
    let happened_at = UNIX_EPOCH + DAY;
    let (run, kind) = (None, "user.message");
    let (turn, unread, owed, is_own) = (None, None, None, false);
    NewEvent { of, run, kind, message_id, payload, happened_at, turn, unread, owed, is_own }
}

fn after(after: u64) -> EventFilter<'static> {
    EventFilter { after, kinds: &[], limit: 1000 }
}

fn seqs(events: &[EventRow]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

async fn seqs_of(store: &Store, of: &EventsOf) -> Vec<u64> {
    seqs(&store.events().page(of, after(0)).await.unwrap().unwrap().events)
}

async fn write_six(store: Store, of: EventsOf, writer: usize) {
    for batch in [0..1, 1..3, 3..6] {
        let last = format!("[{writer},{}]", batch.end - 1);
        let payloads: Vec<_> = batch.map(|number| format!("[{writer},{number}]")).collect();
        let all: Vec<_> = payloads.iter().map(|payload| new(&of, payload, None)).collect();
        assert_eq!(store.events().append(&all).await.unwrap().unwrap().row.payload, last);
    }
}

/// X-E98: twenty writers on three connections leave no gap and no duplicate.
#[tokio::test]
async fn x_e98_numbers_of_concurrent_writers_have_no_gaps() {
    for place in Place::both() {
        let stores = [place.open().await, place.open().await, place.open().await];
        let (one, other) = (of(1), of(2));
        begin(&stores[0], &one).await;
        begin(&stores[0], &other).await;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..20 {
            let store = stores[writer % 3].clone();
            let of = if writer.is_multiple_of(4) { other.clone() } else { one.clone() };
            writers.spawn(write_six(store, of, writer));
        }
        while let Some(done) = writers.join_next().await {
            done.unwrap();
        }
        let page = stores[1].events().page(&one, after(0)).await.unwrap().unwrap();
        assert_eq!(seqs(&page.events), (1..=90).collect::<Vec<_>>());
        assert_eq!((page.oldest, page.last, page.has_ended), (1, 90, false));
        assert_eq!(seqs_of(&stores[2], &other).await, (1..=30).collect::<Vec<_>>());
        // Each writer's own are in the order in which it wrote them.
        for writer in 0..20 {
            let of = if writer % 4 == 0 { &other } else { &one };
            let all = stores[0].events().page(of, after(0)).await.unwrap().unwrap().events;
            let own = all.iter().map(|event| &event.payload);
            let own: Vec<_> = own.filter(|it| it.starts_with(&format!("[{writer},"))).collect();
            assert_eq!(
                own,
                (0..6)
                    .map(|n| format!("[{writer},{n}]"))
                    .collect::<Vec<_>>()
                    .iter()
                    .collect::<Vec<_>>()
            );
        }
        let feed = stores[0].events().feed(&one.workspace, after(0)).await.unwrap();
        let numbers: Vec<_> = feed.events.iter().map(|event| event.number).collect();
        assert_eq!((numbers, feed.last), ((1..=120).collect(), 120));
    }
}

/// X-E93: a message that comes twice is one, in its session and of its kind.
#[tokio::test]
async fn x_e93_a_duplicate_message_is_stored_once() {
    for place in Place::both() {
        let store = place.open().await;
        let (one, other) = (of(1), of(2));
        begin(&store, &one).await;
        begin(&store, &other).await;
        let events = store.events();
        let run = Some(RunId::new([1; 6]));
        let first = NewEvent { run, ..new(&one, "1", Some("m")) };
        let AppendedEvent { row: first, stream, .. } =
            events.append(&[first]).await.unwrap().unwrap();
        assert_eq!((first.seq, first.run, first.message_id.as_deref()), (1, run, Some("m")));
        assert_eq!((stream.oldest, stream.last, stream.bytes), (1, 1, 129));
        assert!(events.append(&[new(&one, "2", Some("m"))]).await.unwrap().is_none());
        assert_eq!(events.message(&one, "user.message", "m").await.unwrap(), Some(first));
        assert_eq!(events.message(&other, "user.message", "m").await.unwrap(), None);
        events.append(&[new(&other, "3", Some("m"))]).await.unwrap().unwrap();
        assert_eq!(events.message(&one, "agent.error", "m").await.unwrap(), None);
        let of_another_kind = NewEvent { kind: "agent.error", ..new(&one, "4", Some("m")) };
        let next = events.append(&[of_another_kind]).await.unwrap().unwrap();
        let (next, stream) = (next.row, next.stream);
        assert_eq!((next.seq, next.number, stream.workspace_bytes), (2, 3, 3 * 129));
        // Nor are the events before it, or behind it.
        let all = [new(&one, "5", None), new(&one, "6", Some("m")), new(&one, "7", None)];
        assert!(events.append(&all).await.unwrap().is_none());
        assert_eq!(seqs_of(&store, &one).await, [1, 2]);
    }
}

#[tokio::test]
async fn events_are_read_by_their_kind_and_number() {
    for place in Place::both() {
        let store = place.open().await;
        let of = of(1);
        begin(&store, &of).await;
        let events = store.events();
        for kind in ["a.b", "a.b_c", "b", "a.b"] {
            events.append(&[NewEvent { kind, ..new(&of, "{}", None) }]).await.unwrap().unwrap();
        }
        for (kinds, from, limit, expected) in [
            (&[][..], 0, 10, vec![1, 2, 3, 4]),
            (&["a.b"], 0, 10, vec![1, 4]),
            (&["a.b", "a.b_c"], 0, 10, vec![1, 2, 4]),
            (&["a.bxc", "a", ",", ""], 0, 10, vec![]),
            (&["a.b"], 1, 10, vec![4]),
            (&[], 1, 2, vec![2, 3]),
            (&[], 4, 10, vec![]),
        ] {
            let filter = EventFilter { after: from, kinds, limit };
            let page = events.page(&of, filter).await.unwrap().unwrap();
            assert_eq!((seqs(&page.events), page.last), (expected.clone(), 4), "{kinds:?}");
            let feed = events.feed(&of.workspace, filter).await.unwrap();
            assert_eq!((seqs(&feed.events), feed.last), (expected, 4), "{kinds:?}");
        }
        assert_eq!(events.page(&super::events::of(2), after(0)).await.unwrap(), None);
        let absent = WorkspaceId::new("absent").unwrap();
        assert_eq!(events.feed(&absent, after(0)).await.unwrap().last, 0);
        let lost = EventsOf { workspace: absent, ..of.clone() };
        let error = events.append(&[new(&lost, "{}", None)]).await.unwrap_err();
        assert!(matches!(error, StatementError::OwnerMissing { .. }), "{error:?}");
    }
}

/// Removed events do not count any more, and no number is given twice.
#[tokio::test]
async fn a_trimmed_stream_continues_with_its_numbers() {
    for place in Place::both() {
        let store = place.open().await;
        let (one, other) = (of(1), of(2));
        begin(&store, &one).await;
        begin(&store, &other).await;
        let events = store.events();
        events.append(&[new(&other, "{}", None)]).await.unwrap().unwrap();
        for _ in 0..5 {
            events.append(&[new(&one, "{}", None)]).await.unwrap().unwrap();
        }
        assert!(events.trim(&one, 4).await.unwrap());
        assert!(!events.trim(&one, 4).await.unwrap(), "they are gone");
        assert!(!events.trim(&one, 7).await.unwrap(), "there is none before that");
        let page = events.page(&one, after(0)).await.unwrap().unwrap();
        assert_eq!((seqs(&page.events), page.oldest, page.last), (vec![4, 5], 4, 5));
        assert_eq!(events.sizes(&one, 9).await.unwrap(), [(4, 130), (5, 130)]);
        assert!(events.trim(&one, 6).await.unwrap());
        let page = events.page(&one, after(0)).await.unwrap().unwrap();
        assert_eq!((page.events.len(), page.oldest, page.last), (0, 6, 5));
        let added = events.append(&[new(&one, "{}", None)]).await.unwrap().unwrap();
        let (row, stream) = (added.row, added.stream);
        assert_eq!((row.seq, row.number), (6, 7));
        let (own, all) = (stream.bytes, stream.workspace_bytes);
        assert_eq!((stream.oldest, own, all), (6, 130, 2 * 130));
    }
}

/// Events stay after the end of their session for the time that their workspace sets, and go with
/// it.
#[tokio::test]
async fn events_outlive_their_session_for_the_configured_time() {
    for place in Place::both() {
        let store = place.open().await;
        let (ended, living, silent) = (of(1), of(2), of(3));
        for (of, at) in [(&ended, 9), (&living, 5), (&silent, 3)] {
            begin(&store, of).await;
            let happened_at = UNIX_EPOCH + at * DAY;
            let event = NewEvent { happened_at, ..new(of, "{}", None) };
            store.events().append(&[event]).await.unwrap().unwrap();
        }
        assert!(
            store.sessions().end(&ended.workspace, ended.session, RunEnd::Ended).await.unwrap()
        );
        let overdue = async |days: u32| {
            let found = store.events().overdue(SystemTime::now() + days * DAY, 10).await.unwrap();
            found.into_iter().map(|(of, _)| of).collect::<Vec<_>>()
        };
        assert_eq!(overdue(29).await, []);
        assert_eq!(overdue(31).await, std::slice::from_ref(&ended));
        let keep = |days| WorkspaceChange { events_kept_days: Some(days), ..Default::default() };
        assert!(store.workspaces().change(&ended.workspace, &keep(0)).await.unwrap());
        assert_eq!(overdue(4000).await, []);
        assert!(store.workspaces().change(&ended.workspace, &keep(2)).await.unwrap());
        assert_eq!(overdue(1).await, []);
        assert_eq!(overdue(3).await, std::slice::from_ref(&ended));
        // Ended sessions come first among the streams that can be spared, then the longest silent
        // ones.
        let mut spare = Vec::new();
        while let Some((of, stream)) = store.events().spare(&living).await.unwrap() {
            assert!(store.events().trim(&of, stream.last + 1).await.unwrap());
            spare.push(of);
        }
        assert_eq!(spare, [ended, silent.clone()]);
        assert!(
            store.sessions().end(&silent.workspace, silent.session, RunEnd::Ended).await.unwrap()
        );
        assert!(
            store.sessions().end(&living.workspace, living.session, RunEnd::Ended).await.unwrap()
        );
        let page = store.events().page(&living, after(0)).await.unwrap().unwrap();
        assert_eq!((page.events.len(), page.has_ended), (1, true));
        assert!(store.workspaces().delete(&living.workspace, true).await.unwrap());
        for table in ["session_events", "event_streams", "event_totals"] {
            let count = format!("SELECT CAST(count(*) AS TEXT) FROM {table}");
            assert_eq!(place.sql(&count).await, ["0"], "{table}");
        }
    }
}

/// Time does not go back within a session, whatever the clocks of its writers show.
#[tokio::test]
async fn times_of_events_do_not_go_back_within_a_session() {
    for place in Place::both() {
        let store = place.open().await;
        let of = of(1);
        begin(&store, &of).await;
        for days in [3, 2, 4] {
            let happened_at = UNIX_EPOCH + days * DAY;
            let event = NewEvent { happened_at, ..new(&of, "{}", None) };
            store.events().append(&[event]).await.unwrap().unwrap();
        }
        let page = store.events().page(&of, after(0)).await.unwrap().unwrap();
        let days: Vec<_> = page.events.iter().map(|event| event.happened_at).collect();
        assert_eq!(days, [3, 3, 4].map(|days| UNIX_EPOCH + days * DAY));
    }
}

/// X-E93: a message is unread until it is acknowledged, or its event is removed. An expired message
/// stays unread for good.
#[tokio::test]
async fn x_e93_messages_are_unread_until_they_are_acknowledged() {
    for place in Place::both() {
        let store = place.open().await;
        let of = of(1);
        begin(&store, &of).await;
        let now = SystemTime::now();
        let say = async |expires_at| {
            let unread = NewUnread { sender: None, expires_at, due_at: now };
            let new = NewEvent { unread: Some(unread), ..new(&of, "{}", None) };
            store.events().append(&[new]).await.unwrap().unwrap().row.seq
        };
        let inboxes = store.inboxes();
        let unread = async || seqs(&inboxes.unread(&of, now, 9).await.unwrap());
        let (one, two) = (say(None).await, say(Some(now + DAY)).await);
        let over = say(Some(UNIX_EPOCH + DAY)).await;
        let three = say(None).await;
        assert_eq!(unread().await, [one, two, three]);
        assert_eq!(inboxes.next_due().await.unwrap(), None, "no client reads here");
        inboxes.acknowledge(&of, over, (now, now + DAY)).await.unwrap();
        assert_eq!(unread().await, [three]);
        let count = inboxes.count(&of, now).await.unwrap();
        assert_eq!((count.unread, count.acknowledged), (1, over));
        assert_eq!(inboxes.expired(&of, (1, three), now).await.unwrap(), [over]);
        assert!(inboxes.next_due().await.unwrap().is_some());
        assert!(store.events().trim(&of, three + 1).await.unwrap());
        assert_eq!(unread().await, [0_u64; 0]);
        assert_eq!(inboxes.next_due().await.unwrap(), None);
        let absent = EventsOf { session: SessionId::new([9; 6]), ..of.clone() };
        let at = GivenAt { now, given_again: now, again: now };
        let missing = inboxes.give(&absent, None, at).await.unwrap_err();
        assert!(matches!(missing, StatementError::OwnerMissing { .. }), "{missing}");
    }
}
