//! Tests of the stored events of one stream.

use narthex_model::{RunId, WorkspaceId};
use narthex_wire::Payload;
use proptest::prelude::*;

use super::*;
use crate::hub::Room;

fn message(bytes: usize) -> Event {
    Event::Message(Payload::from(vec![b'x'; bytes]))
}

fn limits(events: usize, bytes: usize) -> ReplayLimits {
    ReplayLimits { events, bytes, ..ReplayLimits::default() }
}

fn replay(limits: ReplayLimits) -> Replay {
    let room = Room::new(limits.total_bytes);
    Replay::new(limits, room.of(RunId::new([1; 6]), &WorkspaceId::default()))
}

#[test]
fn the_newest_event_stays_even_if_it_exceeds_the_limit() {
    let mut replay = replay(limits(4, 10));
    replay.push(message(4));
    replay.push(message(100));
    assert_eq!((replay.next(), replay.bytes()), (3, 100));
    assert_eq!(replay.at(1).unwrap().0, 2, "what is gone is replaced by the oldest that is left");
    assert!(replay.at(3).is_none());
}

#[test]
fn a_replay_is_full_only_for_readers_that_would_lose_an_event() {
    let mut replay = replay(limits(2, 1000));
    assert!(!replay.is_full_for(&message(5000), 1), "nothing is there to lose");
    replay.push(message(1));
    replay.push(message(1));
    assert!(replay.is_full_for(&message(1), 1));
    assert!(!replay.is_full_for(&message(1), 2), "the first event was read, so it may go");
    assert!(replay.is_full_for(&message(5000), 2), "a long event would push out the second too");
    assert!(!replay.is_full_for(&message(5000), 3));
}

proptest! {
    /// S31: with any sequence of events, the stored ones stay within the limits, and numbers have
    /// no gaps.
    #[test]
    fn s31_stored_events_are_bounded_in_number_and_size(
        sizes in prop::collection::vec(0_usize..50, 1..200),
    ) {
        let mut replay = replay(limits(8, 100));
        for (index, size) in sizes.iter().enumerate() {
            replay.push(message(*size));
            prop_assert_eq!(replay.next(), index as u64 + 2);
            prop_assert!(replay.bytes() <= 100);
            let (oldest, _) = replay.at(0).unwrap();
            prop_assert!(replay.next() - oldest <= 8);
            let kept: usize = (oldest..replay.next())
                .map(|number| replay.at(number).unwrap().1.len())
                .sum();
            prop_assert_eq!(kept, replay.bytes());
        }
    }
}
