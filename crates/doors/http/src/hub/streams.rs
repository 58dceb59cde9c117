//! The streams of one session, and the time for which they are stored.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use narthex_gateway::Session;
use narthex_wire::{Payload, Revision};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{Channel, Reader, RunRoom, lock};
use crate::ReplayLimits;

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct Streams {
    limits: ReplayLimits,
    room: Arc<RunRoom>,
    node: Arc<str>,
    session: Arc<Session>,
    table: Mutex<Table>,
    /// Notified when a stream ends while no other ended stream is stored.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    channels: HashMap<u64, Arc<Channel>>,
    last_key: Option<u64>,
    /// The stream for messages that belong to no call.
    own: Option<Arc<Channel>>,
    /// Streams whose calls have ended, oldest first.
    finished: VecDeque<Finished>,
    finished_bytes: usize,
}

#[derive(Debug)]
struct Finished {
    key: u64,
    bytes: usize,
    until: Instant,
}

/// The stream of one call, while the call runs.
#[derive(Debug)]
pub(crate) struct CallChannel {
    streams: Arc<Streams>,
    key: u64,
    channel: Arc<Channel>,
}

impl Streams {
    pub(super) fn new(
        (limits, room): (ReplayLimits, Arc<RunRoom>),
        node: Arc<str>,
        session: Arc<Session>,
    ) -> Self {
        Self { limits, room, node, session, table: Mutex::default(), ended: Notify::new() }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Opens the stream of a call.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(crate) fn open_call(self: &Arc<Self>) -> Result<CallChannel, getrandom::Error> {
        let mut table = lock(&self.table);
        let key = table.new_key()?;
        let channel = self.channel(key, None);
        table.channels.insert(key, channel.clone());
        drop(table);
        Ok(CallChannel { streams: self.clone(), key, channel })
    }

    /// The stream for messages that belong to no call.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(crate) fn own(&self) -> Result<Arc<Channel>, getrandom::Error> {
        let mut table = lock(&self.table);
        if let Some(own) = &table.own {
            return Ok(own.clone());
        }
        let key = table.new_key()?;
        let channel = self.channel(key, self.session.take_outbox());
        table.channels.insert(key, channel.clone());
        table.own = Some(channel.clone());
        Ok(channel)
    }

    fn channel(
        &self,
        key: u64,
        source: Option<tokio::sync::mpsc::Receiver<Payload>>,
    ) -> Arc<Channel> {
        let kept = (self.limits, self.room.clone());
        Arc::new(Channel::new(format!("{}-{key:016x}-", self.node), kept, source))
    }

    /// Resumes a stream after the event with this id; `None` if this session has no such event.
    pub(crate) fn resume(&self, event_id: &str) -> Option<Reader> {
        let (rest, number) = event_id.rsplit_once('-')?;
        let (node, key) = rest.rsplit_once('-')?;
        if node != &*self.node || key.len() != 16 {
            return None;
        }
        let key = u64::from_str_radix(key, 16).ok()?;
        let channel = lock(&self.table).channels.get(&key)?.clone();
        channel.read(Some(number.parse().ok()?), false)
    }

    /// Drops ended streams when their time is over. Returns when the session ends.
    pub(super) async fn keep(&self) {
        loop {
            let next = lock(&self.table).finished.front().map(|finished| finished.until);
            let due = async {
                match next {
                    Some(until) => sleep_until(until).await,
                    None => self.ended.notified().await,
                }
            };
            tokio::select! {
                biased;
                () = self.session.closed().cancelled() => return,
                () = due => lock(&self.table).sweep(Instant::now(), &self.limits),
            }
        }
    }
}

impl Table {
    /// Returns a key for a new stream. A session's first key is random, so that an event id of
    /// another session, or from before a restart of the program, matches no stream here.
    fn new_key(&mut self) -> Result<u64, getrandom::Error> {
        let key = match self.last_key {
            Some(last) => last.wrapping_add(1),
            None => getrandom::u64()?,
        };
        self.last_key = Some(key);
        Ok(key)
    }

    fn sweep(&mut self, now: Instant, limits: &ReplayLimits) {
        while let Some(oldest) = self.finished.front() {
            let is_over = self.finished.len() > limits.finished_streams
                || (self.finished_bytes > limits.finished_bytes && self.finished.len() > 1);
            if oldest.until > now && !is_over {
                return;
            }
            self.channels.remove(&oldest.key);
            self.finished_bytes -= oldest.bytes;
            self.finished.pop_front();
        }
    }
}

impl CallChannel {
    /// The stream itself.
    pub(crate) fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    /// True if the client's revision allows a stream to end before its answer.
    pub(crate) fn is_breakable(&self) -> bool {
        self.streams.session.revision >= Revision::V2025_11_25
    }
}

impl Drop for CallChannel {
    fn drop(&mut self) {
        let bytes = self.channel.end();
        let (now, limits) = (Instant::now(), &self.streams.limits);
        let mut table = lock(&self.streams.table);
        let is_first = table.finished.is_empty();
        table.finished.push_back(Finished { key: self.key, bytes, until: now + limits.keep });
        table.finished_bytes += bytes;
        table.sweep(now, limits);
        drop(table);
        // Otherwise the task that drops ended streams already waits for an older one, which is due
        // sooner.
        if is_first {
            self.streams.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narthex_model::{RunId, WorkspaceId};

    use super::{super::Room, *};

    fn table(sizes: &[usize], limits: &ReplayLimits) -> Table {
        let mut table = Table::default();
        let until = Instant::now() + limits.keep;
        let room = Room::new(limits.total_bytes).of(RunId::new([1; 6]), &WorkspaceId::default());
        for (key, &bytes) in (0..).zip(sizes) {
            let kept = (*limits, room.clone());
            table.channels.insert(key, Arc::new(Channel::new(String::new(), kept, None)));
            table.finished.push_back(Finished { key, bytes, until });
            table.finished_bytes += bytes;
        }
        table
    }

    fn kept(mut table: Table, after: Duration, limits: &ReplayLimits) -> Vec<u64> {
        table.sweep(Instant::now() + after, limits);
        let bytes: usize = table.finished.iter().map(|finished| finished.bytes).sum();
        assert_eq!(table.finished_bytes, bytes);
        assert_eq!(table.channels.len(), table.finished.len());
        table.finished.iter().map(|finished| finished.key).collect()
    }

    /// S31: stored streams of ended calls are limited in number, bytes and time.
    #[test]
    fn s31_finished_streams_are_bounded() {
        let limits =
            ReplayLimits { finished_streams: 3, finished_bytes: 100, ..ReplayLimits::default() };
        let soon = Duration::ZERO;
        assert_eq!(kept(table(&[1, 1, 1], &limits), soon, &limits), [0, 1, 2]);
        assert_eq!(kept(table(&[1, 1, 1, 1, 1], &limits), soon, &limits), [2, 3, 4]);
        assert_eq!(kept(table(&[60, 60, 40], &limits), soon, &limits), [1, 2]);
        assert_eq!(kept(table(&[1, 1, 500], &limits), soon, &limits), [2], "the newest stays");
        assert!(kept(table(&[1, 1], &limits), limits.keep, &limits).is_empty());
    }
}
