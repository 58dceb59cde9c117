//! Decides when to read changed lists anew: notices are joined, and pauses grow.
//!
//! A server may announce a change after each list that it returns, or announce a hundred changes at
//! once. Narthex reads the lists at once after the first notice. While further notices follow each
//! reading, the pause between readings doubles. The pause is never shorter than a multiple of the
//! reading's own duration.

use std::time::Duration;

use narthex_wire::Message;
use tokio::time::{Instant, sleep_until};

/// The pause after the first reading, and the longest pause.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The pause after a reading lasts this many times as long as the reading, up to the longest pause.
/// So reading large lists does not take up all the time.
const REST: u32 = 4;
/// The least time without a notice after which a server counts as quiet.
const QUIET_MIN: Duration = Duration::from_secs(10);
/// The pause from which on a server's notices count as endless.
const ENDLESS: Duration = Duration::from_secs(10);

/// The announced changes of one link that have not been read yet.
#[derive(Debug, Default)]
pub struct ListChanges {
    /// One notice per method.
    joined: Vec<Message>,
    /// Time when the last reading ended.
    read: Option<Instant>,
    /// Time of the last notice.
    heard: Option<Instant>,
    pause: Duration,
    /// Time when the current or the last reading started.
    began: Option<Instant>,
    /// The least pause, which depends on the duration of the last reading.
    rest: Duration,
}

impl ListChanges {
    /// Stores the notice of a changed list.
    pub fn heard(&mut self, notice: Message) {
        let now = Instant::now();
        if self.is_quiet_at(now) {
            self.pause = Duration::ZERO;
        }
        self.heard = Some(now);
        if self.joined.iter().all(|joined| joined.method() != notice.method()) {
            self.joined.push(notice);
        }
    }

    /// Waits until the lists must be read; does not return while no change is announced.
    pub async fn due(&self) {
        match (self.joined.is_empty(), self.read) {
            (true, _) => std::future::pending().await,
            (false, None) => {}
            (false, Some(read)) => sleep_until(read + self.pause.max(self.rest)).await,
        }
    }

    /// Starts a reading; returns the notices that caused it, one per method.
    pub fn begin(&mut self) -> Vec<Message> {
        self.began = Some(Instant::now());
        std::mem::take(&mut self.joined)
    }

    /// Notes the end of a reading. Notices that arrived meanwhile cause the next reading after a
    /// pause.
    pub fn done(&mut self) {
        let now = Instant::now();
        let took = self.began.map_or(Duration::ZERO, |began| now - began);
        self.read = Some(now);
        self.rest = took.saturating_mul(REST).min(PAUSE_MAX);
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
    }

    /// The pause between readings, if the pause is so long that the notices may never end.
    #[must_use]
    pub fn endless(&self) -> Option<Duration> {
        (self.pause >= ENDLESS).then_some(self.pause)
    }

    /// Waits until a server with endless notices has become quiet; does not return for other
    /// servers.
    pub async fn quieted(&self) {
        match (self.heard, self.endless()) {
            (Some(heard), Some(_)) => sleep_until(heard + self.quiet()).await,
            _ => std::future::pending().await,
        }
    }

    /// Resets the pause of a server that has become quiet.
    pub fn calm(&mut self) {
        self.pause = Duration::ZERO;
    }

    fn is_quiet_at(&self, now: Instant) -> bool {
        self.heard.is_none_or(|heard| now >= heard + self.quiet())
    }

    fn quiet(&self) -> Duration {
        QUIET_MIN.max(self.pause * 2)
    }
}

#[cfg(test)]
mod tests {
    use narthex_wire::{Limits, method, rpc};

    use super::*;

    fn notice(method: &str) -> Message {
        let text = rpc::notification(method, None).into_bytes();
        Message::parse(text, &Limits::default()).unwrap()
    }

    /// Simulates a server that announces a change after each reading, for this time; returns the
    /// number of readings.
    async fn readings(changes: &mut ListChanges, time: Duration) -> u32 {
        let end = Instant::now() + time;
        let mut count = 0;
        while tokio::time::timeout_at(end, changes.due()).await.is_ok() {
            assert_eq!(changes.begin().len(), 1);
            changes.heard(notice(method::TOOLS_LIST_CHANGED));
            changes.done();
            count += 1;
        }
        count
    }

    /// E74: a long reading is followed by a longer pause, even if it is the first reading.
    #[tokio::test(start_paused = true)]
    async fn e74_a_long_reading_is_followed_by_a_longer_pause() {
        for (took, pause) in [
            (Duration::ZERO, PAUSE_MIN),
            (Duration::from_secs(2), Duration::from_secs(8)),
            (Duration::from_secs(30), PAUSE_MAX),
        ] {
            let mut changes = ListChanges::default();
            changes.heard(notice(method::TOOLS_LIST_CHANGED));
            changes.due().await;
            assert_eq!(changes.begin().len(), 1);
            tokio::time::advance(took).await;
            changes.heard(notice(method::TOOLS_LIST_CHANGED));
            changes.done();
            let read = Instant::now();
            changes.due().await;
            assert_eq!(read.elapsed(), pause, "{took:?}");
            assert_eq!(changes.endless(), None);
        }
    }

    /// E74: many notices cause one reading, and the pauses grow for a server with endless notices.
    #[tokio::test(start_paused = true)]
    async fn e74_notices_join_and_pauses_grow() {
        let mut changes = ListChanges::default();
        for _ in 0..300 {
            changes.heard(notice(method::TOOLS_LIST_CHANGED));
            changes.heard(notice(method::PROMPTS_LIST_CHANGED));
        }
        let before = Instant::now();
        changes.due().await;
        assert_eq!((changes.begin().len(), before.elapsed()), (2, Duration::ZERO));
        changes.heard(notice(method::TOOLS_LIST_CHANGED));
        changes.done();
        assert_eq!(changes.endless(), None);
        let hour = Duration::from_secs(3600);
        assert!((60..75).contains(&readings(&mut changes, hour).await));
        assert_eq!(changes.endless(), Some(PAUSE_MAX));
        assert!((59..=61).contains(&readings(&mut changes, hour).await));
    }

    /// E74: after a quiet time of the server, the first notice causes a reading at once again.
    #[tokio::test(start_paused = true)]
    async fn e74_a_server_that_was_quiet_is_followed_at_once_again() {
        let mut changes = ListChanges::default();
        changes.heard(notice(method::TOOLS_LIST_CHANGED));
        readings(&mut changes, Duration::from_secs(100)).await;
        assert!(changes.endless().is_some());
        changes.quieted().await;
        changes.calm();
        assert_eq!(changes.endless(), None);
        drop(changes.begin());
        tokio::time::advance(Duration::from_secs(11)).await;
        let before = Instant::now();
        changes.heard(notice(method::TOOLS_LIST_CHANGED));
        changes.due().await;
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
