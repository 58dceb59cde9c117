//! Tests of one stream: events that readers read once, twice, late or never.

use std::{pin::pin, task::Waker};

use narthex_model::{RunId, WorkspaceId};
use proptest::prelude::*;

use super::{super::Room, *};

const PREFIX: &str = "n0-00000000000000aa-";

fn channel(limits: ReplayLimits) -> Arc<Channel> {
    in_room(&Room::new(limits.total_bytes), 1, limits)
}

/// Creates a stream of this run, which belongs to the default workspace.
fn in_room(room: &Arc<Room>, run: u8, limits: ReplayLimits) -> Arc<Channel> {
    let room = room.of(RunId::new([run; 6]), &WorkspaceId::default());
    Arc::new(Channel::new(PREFIX.to_owned(), (limits, room), None))
}

fn message(text: &str) -> Event {
    Event::Message(Payload::from(text.as_bytes().to_vec()))
}

/// Pushes the event if that is possible without waiting.
fn push(channel: &Arc<Channel>, event: Event) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    pin!(channel.push(event)).poll(&mut cx).is_ready()
}

/// The next event as text. `None` if no event is ready, `Some(None)` at the end of the stream.
fn next(reader: &mut Reader) -> Option<Option<String>> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut sending = Sending::default();
    match reader.poll_event(&mut cx, &mut sending) {
        Poll::Pending => None,
        Poll::Ready(None) => Some(None),
        Poll::Ready(Some(())) => {
            let Poll::Ready(Some(Ok(frame))) = sending.joined().unwrap() else { panic!() };
            let data = frame.into_data().unwrap();
            Some(Some(String::from_utf8(data.to_vec()).unwrap()))
        }
    }
}

fn text(number: u64, data: &str) -> Option<Option<String>> {
    Some(Some(format!("id: {PREFIX}{number}\ndata: {data}\n\n")))
}

#[test]
fn a_primed_reader_first_gets_an_event_with_an_id() {
    let channel = channel(ReplayLimits::default());
    let mut reader = channel.read(None, true).unwrap();
    assert_eq!(next(&mut reader), Some(Some(format!("id: {PREFIX}0\ndata:\n\n"))));
    assert_eq!(next(&mut reader), None);
    assert!(push(&channel, message("1")));
    assert_eq!(next(&mut reader), text(1, "1"));
    channel.end();
    assert_eq!(next(&mut reader), Some(None));
}

#[test]
fn a_second_reader_replaces_the_first_reader_and_continues_at_its_position() {
    let channel = channel(ReplayLimits::default());
    let mut first = channel.read(None, false).unwrap();
    push(&channel, message("a"));
    push(&channel, message("b"));
    assert_eq!(next(&mut first), text(1, "a"));
    let mut second = channel.read(None, false).unwrap();
    assert_eq!(next(&mut first), Some(None));
    drop(first);
    assert_eq!(next(&mut second), text(2, "b"));
}

#[test]
fn a_break_ends_the_connection_once() {
    let channel = channel(ReplayLimits::default());
    let mut reader = channel.read(None, false).unwrap();
    push(&channel, message("a"));
    push(&channel, Event::Break(Some(500)));
    push(&channel, message("b"));
    assert_eq!(next(&mut reader), text(1, "a"));
    let parting = format!("id: {PREFIX}2\nretry: 500\ndata:\n\n");
    assert_eq!(next(&mut reader), Some(Some(parting.clone())));
    assert_eq!(next(&mut reader), Some(None));
    drop(reader);
    let mut again = channel.read(Some(1), false).unwrap();
    assert_eq!(next(&mut again), Some(Some(parting)));
    assert_eq!(next(&mut again), text(3, "b"), "a break that is over ends nothing");
}

#[test]
fn a_reader_with_an_unknown_event_id_is_refused() {
    let channel = channel(ReplayLimits::default());
    push(&channel, message("a"));
    assert!(channel.read(Some(2), false).is_none());
    assert!(channel.read(Some(u64::MAX), false).is_none());
    assert!(channel.read(Some(1), false).is_some());
}

#[test]
fn a_slow_reader_delays_the_call_and_an_absent_reader_does_not() {
    let channel = channel(ReplayLimits { events: 2, ..ReplayLimits::default() });
    let mut reader = channel.read(None, false).unwrap();
    assert!(push(&channel, message("1")) && push(&channel, message("2")));
    assert!(!push(&channel, message("3")));
    assert_eq!(next(&mut reader), text(1, "1"));
    assert!(push(&channel, message("3")));
    drop(reader);
    for number in 4..10 {
        assert!(push(&channel, message(&number.to_string())));
    }
    let mut late = channel.read(Some(1), false).unwrap();
    assert_eq!(next(&mut late), text(8, "8"), "starts at the oldest that is left");
}

/// The texts that a new reader after `last` gets until it has to wait, or until the stream ends.
fn rest(channel: &Arc<Channel>, last: u64) -> Vec<String> {
    let mut reader = channel.read(Some(last), false).unwrap();
    let events = std::iter::from_fn(|| next(&mut reader).flatten());
    let text = |event: String| event.split_once("data: ").unwrap().1.trim_end().to_owned();
    events.map(text).collect()
}

/// S31: a run that floods its streams loses its own oldest events, in the order of their arrival,
/// and no event of another run. A dropped event frees its bytes.
#[test]
fn s31_a_run_that_floods_its_streams_loses_only_its_own_oldest_events() {
    let room = Room::new(100);
    let limits = ReplayLimits::default();
    let [first, second] = [1, 1].map(|run| in_room(&room, run, limits));
    let other = in_room(&room, 2, limits);
    assert!(push(&other, message("0123456789")));
    assert!(push(&first, message("1st 456789")) && push(&second, message("2nd 456789")));
    for index in 0..4 {
        assert!(push(&first, message(&format!("more 5678{index}"))));
    }
    // The run's part is half of the buffer: of six events of ten bytes, the oldest are dropped.
    assert_eq!(rest(&first, 0).len(), 4);
    assert!(push(&second, message("last 56789")));
    assert_eq!((rest(&first, 0).len(), rest(&second, 0)), (4, vec!["last 56789".to_owned()]));
    assert_eq!(rest(&other, 0), ["0123456789"]);
    // A stream that has ended and stores no event can be resumed only after its last event.
    second.end();
    for _ in 0..5 {
        assert!(push(&first, message("new 456789")));
    }
    assert!(second.read(Some(0), false).is_none() && second.read(Some(2), false).is_some());
    assert_eq!(rest(&other, 0), ["0123456789"]);
    drop((first, second));
    let late = in_room(&room, 3, limits);
    for _ in 0..5 {
        assert!(push(&late, message("0123456789")));
    }
    assert_eq!(rest(&late, 0).len(), 5);
}

/// S31: a present reader loses no event: the call waits until the reader has read.
#[test]
fn s31_a_call_waits_for_its_slow_reader_and_no_event_is_lost() {
    let room = Room::new(100);
    let limits = ReplayLimits::default();
    let [slow, flood] = [1, 1].map(|run| in_room(&room, run, limits));
    let mut reader = slow.read(None, false).unwrap();
    for index in 1..=5 {
        assert!(push(&slow, message(&format!("01234567 {index}"))));
    }
    assert!(!push(&slow, message("too much 6")));
    // Events without a reader are dropped at once.
    assert!(push(&flood, message("nobody 789")) && rest(&flood, 0).is_empty());
    assert_eq!(next(&mut reader), text(1, "01234567 1"));
    assert!(push(&slow, message("01234567 6")), "what was read has made room");
    for index in 2..=6 {
        assert_eq!(next(&mut reader), text(index, &format!("01234567 {index}")));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Push,
    Read,
    /// The connection breaks, and this many of the last events never reached the client.
    Cut(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op =
        prop_oneof![3 => Just(Op::Push), 3 => Just(Op::Read), 1 => (0_usize..4).prop_map(Op::Cut)];
    prop::collection::vec(op, 0..120)
}

proptest! {
    /// However often a connection breaks, a client that resumes gets every event exactly once.
    #[test]
    fn s19_a_client_that_resumes_after_any_break_gets_each_event_once(ops in ops()) {
        let channel = channel(ReplayLimits::default());
        let mut reader = channel.read(None, true).unwrap();
        let mut sent = 0_u64;
        let mut got = Vec::new();
        let take = |reader: &mut Reader, got: &mut Vec<u64>| {
            let Some(Some(event)) = next(reader) else { return false };
            let (_, data) = event.split_once("data:").unwrap();
            if let Ok(number) = data.trim().parse() {
                got.push(number);
            }
            true
        };
        for op in ops {
            match op {
                Op::Push => {
                    sent += 1;
                    prop_assert!(push(&channel, message(&sent.to_string())));
                }
                Op::Read => {
                    take(&mut reader, &mut got);
                }
                Op::Cut(lost) => {
                    got.truncate(got.len().saturating_sub(lost));
                    let last = got.last().copied().unwrap_or(0);
                    reader = channel.read(Some(last), false).unwrap();
                }
            }
        }
        while take(&mut reader, &mut got) {}
        prop_assert_eq!(got, (1..=sent).collect::<Vec<_>>());
    }
}
