//! Unacknowledged messages: reminders, giving up, expiry, and removal.

use std::time::{Duration, SystemTime};

use narthex_model::{RunId, Timestamp};
use narthex_store::{EventsOf, GivenAt, RunRow};

use super::*;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A message of the session `at(2)` to another one; gives its number.
async fn say(events: &Events, to: &EventPlace, text: &str, more: Value) -> u64 {
    said(events, to, text, more).await.seq
}

/// Sends a message, and returns its event; reminders are due from the event's time on.
async fn said(events: &Events, to: &EventPlace, text: &str, more: Value) -> EventRow {
    let mut payload = json!({ "text": text, "from_session_id": at(2).session.to_text() });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let place = EventPlace { run: None, ..to.clone() };
    let id = format!("{}-{text}", at(2).session);
    let kind = EventKind::UserMessage;
    events.append(&place, kind, &payload, Some(&id)).await.unwrap()
}

async fn unread(events: &Events, of: &EventPlace) -> Vec<u64> {
    let unread = events.unread(&of.workspace, of.session, (100, usize::MAX)).await.unwrap();
    assert_eq!(unread.count, unread.messages.len() as u64);
    unread.messages.iter().map(|event| event.seq).collect()
}

async fn acknowledge(events: &Events, of: &EventPlace, seq: u64) -> (u64, u64) {
    events.acknowledge(&of.workspace, of.session, seq).await.unwrap()
}

/// The events of a session about messages, by type.
async fn told(events: &Events, of: &EventPlace) -> Vec<(String, Value)> {
    let all = page(events, of, 0).await.events.into_iter();
    let about = all.filter(|event| event.kind.starts_with("session.message_"));
    about.map(|event| (event.kind, event.payload)).collect()
}

/// The numbers of the reminders of a session's message.
async fn tellings(events: &Events, of: &EventPlace, seq: u64) -> Vec<u64> {
    let told = told(events, of).await.into_iter();
    let its = told.filter(|(kind, one)| kind == "session.message_unread" && one["sequence"] == seq);
    its.map(|(_, payload)| payload["attempt"].as_u64().unwrap()).collect()
}

/// Two sessions, of which the second writes to the first.
async fn two(store: &Store) -> (EventPlace, EventPlace) {
    let (here, sender) = (at(1), at(2));
    begin(store, &here).await;
    begin(store, &sender).await;
    (here, sender)
}

fn of(place: &EventPlace) -> EventsOf {
    EventsOf { workspace: place.workspace.clone(), session: place.session }
}

/// Number of seconds between two times, to the nearest.
fn seconds(from: SystemTime, to: SystemTime) -> u64 {
    (to.duration_since(from).unwrap() + Duration::from_millis(500)).as_secs()
}

/// Goes from one due time to the next, until none is left; returns the time that each took, in
/// seconds.
async fn to_the_end(events: &Events, from: SystemTime) -> Vec<u64> {
    let (mut waits, mut now) = (Vec::new(), from);
    while let Some(next) = events.deliver_due(now).await.unwrap() {
        assert!(next > now, "what is due is done");
        // The store keeps milliseconds.
        waits.push(seconds(now, next));
        now = next;
    }
    waits
}

/// X-E93: reminders of a message come after 2, 10, 30, 30 and 30 seconds. It is given up another 30
/// later, which its sender learns once; it can be read still.
#[tokio::test]
async fn x_e93_an_unacknowledged_message_gets_reminders_and_is_given_up() {
    for place in Place::both() {
        let events = Events::new(place.open().await);
        let (here, sender) = two(&events.shared.store).await;
        // No client reads here yet.
        assert_eq!(unread(&events, &here).await, Vec::<u64>::new());
        let EventRow { seq, at: begun, .. } = said(&events, &here, "one", json!({})).await;
        assert_eq!(to_the_end(&events, begun).await, [2, 10, 30, 30, 30, 30]);
        assert_eq!(tellings(&events, &here, seq).await, [1, 2, 3, 4, 5]);
        let heard = told(&events, &sender).await;
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].0, "session.message_undelivered");
        let expected = json!({
            "session_id": here.session.to_text(), "sequence": seq, "message_id": "one",
            "reason": "unacknowledged", "expires_at": null,
        });
        assert_eq!(heard[0].1, expected);
        assert_eq!(events.deliver_due(begun + HOUR).await.unwrap(), None);
        assert_eq!(unread(&events, &here).await, [seq]);
        assert_eq!(to_the_end(&events, begun + HOUR).await, Vec::<u64>::new());
        assert_eq!(acknowledge(&events, &here, seq).await, (seq, 0));
        assert_eq!(unread(&events, &here).await, Vec::<u64>::new());
    }
}

/// No reminders are sent as long as no client acknowledges messages or reads them explicitly. They
/// begin with the first reading, and the messages read must be acknowledged within 30 seconds.
#[tokio::test]
async fn x_e93_a_client_that_never_acknowledges_gets_no_reminders() {
    for place in Place::both() {
        let events = Events::new(place.open().await);
        let (here, sender) = two(&events.shared.store).await;
        let begun = SystemTime::now();
        let first = say(&events, &here, "one", json!({})).await;
        assert_eq!(events.deliver_due(begun + HOUR).await.unwrap(), None);
        assert_eq!((told(&events, &here).await, told(&events, &sender).await), (vec![], vec![]));
        let before = SystemTime::now();
        assert_eq!(unread(&events, &here).await, [first]);
        let given = SystemTime::now();
        assert!(events.deliver_due(before + Duration::from_secs(29)).await.unwrap().is_some());
        assert_eq!(tellings(&events, &here, first).await, [0_u64; 0]);
        events.deliver_due(given + Duration::from_secs(31)).await.unwrap();
        assert_eq!(tellings(&events, &here, first).await, [1]);
        // A message after an acknowledgement has its reminder after 2 seconds; the old one has
        // none.
        assert_eq!(acknowledge(&events, &here, first).await, (first, 0));
        let second = say(&events, &here, "two", json!({})).await;
        events.deliver_due(SystemTime::now() + Duration::from_secs(3)).await.unwrap();
        assert_eq!(tellings(&events, &here, first).await, [1]);
        assert_eq!(tellings(&events, &here, second).await, [1]);
        // An older acknowledgement takes nothing back, and one of a missing event is refused.
        assert_eq!(acknowledge(&events, &here, 1).await, (first, 1));
        let last = page(&events, &here, 0).await.last;
        let none = events.acknowledge(&here.workspace, here.session, last + 1).await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::Invalid, "{none}");
        assert_eq!(acknowledge(&events, &here, last).await, (last, 0));
    }
}

/// X-E93: a client that reads again and again without acknowledging puts a message off once between
/// two reminders, and not for ever. Messages that it has not read are not put off at all.
#[tokio::test]
async fn x_e93_reading_without_acknowledging_delays_a_reminder_only_once() {
    for place in Place::both() {
        let events = Events::new(place.open().await);
        let (here, sender) = two(&events.shared.store).await;
        let first = say(&events, &here, "one", json!({})).await;
        let second = say(&events, &here, "two", json!({})).await;
        let read = async |bounds| {
            let given = events.unread(&here.workspace, here.session, bounds).await.unwrap();
            assert_eq!(given.count, 2);
            given.messages.iter().map(|event| event.seq).collect::<Vec<_>>()
        };
        // The first reading is limited by number, and the second by size.
        assert_eq!(read((1, usize::MAX)).await, [first]);
        assert_eq!(read((9, 1)).await, [first]);
        let begun = SystemTime::now();
        events.deliver_due(begun + Duration::from_secs(4)).await.unwrap();
        assert_eq!(tellings(&events, &here, first).await, [0_u64; 0]);
        assert_eq!(tellings(&events, &here, second).await, [1]);
        // A reader that looks each ten seconds, with the store's clock.
        let (store, of) = (&events.shared.store, of(&here));
        let mut now = begun + Duration::from_secs(4);
        let mut looks = 0;
        while events.deliver_due(now).await.unwrap().is_some() {
            let at = GivenAt { now, given_again: now + Duration::from_secs(30), again: now };
            store.inboxes().give(&of, Some(second), at).await.unwrap();
            now += Duration::from_secs(10);
            looks += 1;
            assert!(looks < 40, "it is put off for ever");
        }
        for seq in [first, second] {
            assert_eq!(tellings(&events, &here, seq).await, [1, 2, 3, 4, 5]);
        }
        assert_eq!(told(&events, &sender).await.len(), 2, "both were given up");
        assert_eq!(read((9, usize::MAX)).await, [first, second]);
    }
}

/// X-E93: a client that acknowledges old messages again and again does not put off newer ones.
#[tokio::test]
async fn x_e93_old_acknowledgements_do_not_delay_reminders() {
    for place in Place::both() {
        let events = Events::new(place.open().await);
        let (here, _) = two(&events.shared.store).await;
        let old = say(&events, &here, "old", json!({})).await;
        assert_eq!(acknowledge(&events, &here, old).await, (old, 0));
        let seq = say(&events, &here, "new", json!({})).await;
        let next = async || events.shared.store.inboxes().next_due().await.unwrap().unwrap();
        let due = next().await;
        let later = due + Duration::from_secs(1);
        let again = (due - Duration::from_millis(1), later);
        events.shared.store.inboxes().acknowledge(&of(&here), old, again).await.unwrap();
        assert_eq!(next().await, due);
        events.deliver_due(due).await.unwrap();
        assert_eq!(tellings(&events, &here, seq).await, [1]);
    }
}

/// X-E93: the due times are in the store: another daemon continues with them, and of two that send
/// the same reminder at once one succeeds.
#[tokio::test]
async fn x_e93_another_daemon_continues_the_due_reminders() {
    for place in Place::both() {
        let (one, other) = (Events::new(place.open().await), Events::new(place.open().await));
        let (here, sender) = two(&one.shared.store).await;
        assert_eq!(unread(&one, &here).await, Vec::<u64>::new());
        let EventRow { seq, at: begun, .. } = said(&one, &here, "one", json!({})).await;
        let second = one.deliver_due(begun + Duration::from_secs(3)).await.unwrap().unwrap();
        let (a, b) = tokio::join!(one.deliver_due(second), other.deliver_due(second));
        assert_eq!(a.unwrap(), b.unwrap());
        assert_eq!(tellings(&other, &here, seq).await, [1, 2]);
        drop(one);
        let again = Events::new(place.open().await);
        assert_eq!(to_the_end(&again, second).await, [30, 30, 30, 30]);
        assert_eq!(tellings(&again, &here, seq).await, [1, 2, 3, 4, 5]);
        assert_eq!(told(&again, &sender).await.len(), 1);
    }
}

/// X-E93: no reader gets a message that has expired before it was acknowledged; its sender gets a
/// report. A message that was acknowledged in time is not affected.
#[tokio::test]
async fn x_e93_an_expired_message_is_not_delivered() {
    for place in Place::both() {
        let events = Events::new(place.open().await);
        let (here, sender) = two(&events.shared.store).await;
        let time = |at: SystemTime| json!({ "expires_at": Timestamp::new(at).to_string() });
        assert_eq!(unread(&events, &here).await, Vec::<u64>::new());
        let now = SystemTime::now();
        let over = say(&events, &here, "over", time(now - HOUR)).await;
        let soon = say(&events, &here, "soon", time(now + Duration::from_secs(20))).await;
        let late = say(&events, &here, "late", time(now + HOUR)).await;
        assert_eq!(unread(&events, &here).await, [soon, late]);
        // Neither the reading nor the schedule reaches beyond the end of a message.
        events.deliver_due(now + Duration::from_secs(21)).await.unwrap();
        let heard = told(&events, &sender).await;
        let heard: Vec<_> =
            heard.iter().map(|(_, one)| (&one["sequence"], &one["reason"])).collect();
        let expired = json!("expired");
        assert_eq!(heard, [(&json!(over), &expired), (&json!(soon), &expired)]);
        assert_eq!(acknowledge(&events, &here, late).await.0, late);
        let all = page(&events, &here, 0).await.events;
        let said = |seq: u64| {
            let event = all.iter().find(|event| event.seq == seq).unwrap();
            (event.payload["text"].clone(), event.payload["expired"].clone())
        };
        assert_eq!(said(over), (Value::Null, json!(true)));
        assert_eq!(said(late), (json!("late"), Value::Null));
        let feed = events.feed(&here.workspace, 0, &[EventKind::UserMessage], 9).await.unwrap();
        assert_eq!(feed.events[0].payload["text"], Value::Null, "{:?}", feed.events[0]);
        assert_eq!(feed.events[0].payload["from_session_id"], sender.session.to_text());
    }
}

/// While no client carries out a run of the session no reminders are sent or counted; they begin
/// when a client does so again. A session that has ended is left alone.
#[tokio::test]
async fn x_e93_messages_wait_until_a_client_carries_out_a_run() {
    for place in Place::both() {
        let events = Events::new(place.open().await);
        let store = &events.shared.store;
        let (here, sender) = two(store).await;
        assert_eq!(unread(&events, &here).await, Vec::<u64>::new());
        let first = RunId::new(here.session.bytes());
        assert!(store.runs().end(&here.workspace, first, RunEnd::Ended).await.unwrap());
        let begun = SystemTime::now();
        let seq = say(&events, &here, "one", json!({})).await;
        let mortal = json!({ "expires_at": Timestamp::new(begun + HOUR).to_string() });
        let mortal = say(&events, &here, "two", mortal).await;
        let next = events.deliver_due(begun + Duration::from_secs(60)).await.unwrap();
        let wait = seconds(begun, next.unwrap());
        assert_eq!(wait, HOUR.as_secs(), "only its end is waited for");
        assert_eq!(told(&events, &here).await, vec![]);
        assert_eq!(run_again(store, &here).await.ended, None);
        let kind = EventKind::SessionResumed;
        events.append(&here, kind, &json!({}), None).await.unwrap();
        events.deliver_due(SystemTime::now() + Duration::from_secs(3)).await.unwrap();
        assert_eq!(tellings(&events, &here, seq).await, [1]);
        assert_eq!(tellings(&events, &here, mortal).await, [1]);
        assert!(store.sessions().end(&here.workspace, here.session, RunEnd::Ended).await.unwrap());
        assert_eq!(events.deliver_due(begun + 2 * HOUR).await.unwrap(), None);
        assert_eq!((told(&events, &here).await.len(), told(&events, &sender).await.len()), (2, 0));
    }
}

/// X-E93: the sender of an unread message that is removed with old events gets one report. There is
/// no report for an acknowledged message, or if no client ever acknowledges messages.
#[tokio::test]
async fn x_e93_the_sender_learns_of_an_unread_message_that_is_removed() {
    for place in Place::both() {
        let bounds = Bounds { window: 10, slack: 3, ..Bounds::default() };
        let events = Events::with(place.open().await, NEVER, bounds, Waits::default());
        let (here, sender) = two(&events.shared.store).await;
        let fill = async || {
            for number in 0..20 {
                status(&events, &here, number).await;
            }
        };
        say(&events, &here, "no reader", json!({})).await;
        fill().await;
        assert_eq!(told(&events, &sender).await, vec![]);
        let first = say(&events, &here, "one", json!({})).await;
        assert_eq!(unread(&events, &here).await, [first]);
        acknowledge(&events, &here, first).await;
        let second = say(&events, &here, "two", json!({})).await;
        fill().await;
        let heard = told(&events, &sender).await;
        assert_eq!(heard.len(), 1, "{heard:?}");
        let of = ["sequence", "message_id", "reason"].map(|name| heard[0].1[name].clone());
        assert_eq!(of, [json!(second), json!("two"), json!("removed")]);
        assert_eq!(unread(&events, &here).await, Vec::<u64>::new());
        fill().await;
        assert_eq!(told(&events, &sender).await.len(), 1, "once");
        assert_eq!(events.deliver_due(SystemTime::now() + HOUR).await.unwrap(), None);
    }
}

/// A further run in a session.
async fn run_again(store: &Store, place: &EventPlace) -> RunRow {
    let id = RunId::new([99; 6]);
    let run = NewRun {
        id,
        workspace: &place.workspace,
        session: place.session,
        agent: "",
        parent: None,
        agent_env: &[],
        token: "another",
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
    assert!(store.runs().create(run, None).await.unwrap().is_some());
    store.runs().find(id).await.unwrap().unwrap()
}

/// The task sends the due reminders, also reminders that become due while it waits for later ones,
/// or were due before it began.
#[tokio::test]
async fn x_e93_one_task_sends_all_due_reminders() {
    for place in Place::both() {
        let store = place.open().await;
        let waits = Waits([Duration::from_millis(1); 6]);
        let events = Events::with(store, NEVER, Bounds::default(), waits);
        let (here, sender) = two(&events.shared.store).await;
        assert_eq!(unread(&events, &here).await, Vec::<u64>::new());
        let early = say(&events, &here, "early", json!({})).await;
        let given_up = async |follower: &mut Follower| {
            let events = follower.next().await.unwrap().unwrap();
            assert_eq!(events.len(), 1);
            events[0].payload["sequence"].as_u64().unwrap()
        };
        let kinds = vec![EventKind::SessionMessageUndelivered];
        let mut follower = events.follow(&sender.workspace, sender.session, 0, kinds);
        let later = async {
            assert_eq!(given_up(&mut follower).await, early);
            let late = say(&events, &here, "late", json!({})).await;
            assert_eq!(given_up(&mut follower).await, late);
            late
        };
        let late = tokio::select! {
            late = later => late,
            () = events.deliver() => unreachable!("it goes on as long as it is polled"),
        };
        for seq in [early, late] {
            assert_eq!(tellings(&events, &here, seq).await, [1, 2, 3, 4, 5]);
        }
    }
}
