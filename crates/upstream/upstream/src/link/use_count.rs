//! Counts the uses of a link: a retired link ends only after its last use (E40, E41).

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, Notify},
    time::Instant,
};

use super::Link;

/// The bit of a link that accepts no new use.
const RETIRED: u64 = 1;
/// The value of one use in the state.
const ONE: u64 = 2;
/// The bits that count uses.
const USES: u64 = u32::MAX as u64 & !RETIRED;
/// The value of one guard that keeps the server awake, in the bits above the uses.
const KEPT: u64 = 1 << 32;

/// The number of a link's users, and the time since the last one.
pub(crate) struct UseCount {
    /// The retired flag, the number of users and the number of guards that keep the server awake.
    /// One atomic word holds them, so that no user enters between a check and a change.
    state: AtomicU64,
    ended: Notify,
    since: Instant,
    /// Time of the last use, in milliseconds after `since`.
    last: AtomicU64,
    /// Time when the last guard that kept the server awake was dropped, in milliseconds after
    /// `since`.
    awake: AtomicU64,
    /// True once a use has ended.
    was_left: AtomicBool,
    /// Held by the caller that checks the server.
    pub(super) checking: Mutex<()>,
}

impl UseCount {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            ended: Notify::new(),
            since: Instant::now(),
            last: AtomicU64::new(0),
            awake: AtomicU64::new(0),
            was_left: AtomicBool::new(false),
            checking: Mutex::new(()),
        }
    }

    fn enter(&self) -> bool {
        let entered = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            (state & RETIRED == 0).then_some(state + ONE)
        });
        entered.is_ok()
    }

    fn leave(&self) {
        self.was_left.store(true, Ordering::Relaxed);
        self.touch();
        let before = self.state.fetch_sub(ONE, Ordering::AcqRel);
        if before & (USES | RETIRED) == ONE | RETIRED {
            self.ended.notify_waiters();
        }
    }

    pub(super) fn touch(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    fn keep(&self) {
        self.state.fetch_add(KEPT, Ordering::AcqRel);
    }

    fn let_go(&self) {
        self.awake.store(self.now(), Ordering::Relaxed);
        self.state.fetch_sub(KEPT, Ordering::AcqRel);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    /// The time without a user of the link or a guard that keeps the server awake; `None` while the
    /// link has one.
    fn idle(&self) -> Option<Duration> {
        (self.state() & !RETIRED == 0).then(|| self.since_last().min(self.ago(&self.awake)))
    }

    /// Retires the link; returns `false` if the link has a user or is kept awake.
    fn retire_unused(&self) -> bool {
        let retired = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            (state & !RETIRED == 0).then_some(RETIRED)
        });
        retired.is_ok()
    }

    /// True if the link has a user, or had one.
    pub(super) fn was_used(&self) -> bool {
        self.state() & USES > 0 || self.was_left.load(Ordering::Relaxed)
    }

    /// True if the link has more than one user.
    pub(super) fn is_shared(&self) -> bool {
        self.state() & USES >= 2 * ONE
    }

    /// The time since the last finished use.
    pub(super) fn since_last(&self) -> Duration {
        self.ago(&self.last)
    }

    fn ago(&self, time: &AtomicU64) -> Duration {
        self.since.elapsed().saturating_sub(Duration::from_millis(time.load(Ordering::Relaxed)))
    }

    fn retire(&self) {
        self.state.fetch_or(RETIRED, Ordering::AcqRel);
    }

    async fn drained(&self) {
        self.retire();
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.state() & USES == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl fmt::Debug for UseCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("UseCount")
            .field("count", &((state & USES) / ONE))
            .field("kept", &(state / KEPT))
            .field("is_retired", &(state & RETIRED != 0))
            .finish_non_exhaustive()
    }
}

/// A link in use. A newer link does not end this link during the use. A server that fails, is
/// disabled or is stopped ends this link all the same.
#[derive(Debug)]
pub struct InUse(Arc<Link>);

impl Deref for InUse {
    type Target = Arc<Link>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.uses.leave();
    }
}

/// Guard of a caller that waits for the server's own messages. The server does not count as idle
/// before the guard is dropped. The guard does not delay the end of the link.
#[derive(Debug)]
pub struct KeptAwake(Arc<Link>);

impl Deref for KeptAwake {
    type Target = Arc<Link>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for KeptAwake {
    fn drop(&mut self) {
        self.0.uses.let_go();
    }
}

impl Link {
    /// Keeps the server from being stopped as idle until the guard is dropped. For callers that
    /// subscribe to changes.
    #[must_use]
    pub fn keep_awake(self: &Arc<Self>) -> KeptAwake {
        self.uses.keep();
        KeptAwake(self.clone())
    }

    /// Retires the link; returns `false` if the link has a user or is kept awake.
    #[must_use]
    pub fn retire_unused(&self) -> bool {
        self.uses.retire_unused()
    }

    /// Starts a use of the link. `None` if the link is retired: a newer link has replaced it, or
    /// will.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<InUse> {
        self.uses.enter().then(|| InUse(self.clone()))
    }

    /// Retires the link: it accepts no new use from now on.
    pub fn retire(&self) {
        self.uses.retire();
    }

    /// Retires the link, and waits until it has no user.
    pub async fn drained(&self) {
        self.uses.drained().await;
    }

    /// True if exactly one caller uses the link now.
    #[must_use]
    pub fn has_one_use(&self) -> bool {
        self.uses.state() & USES == ONE
    }

    /// True if the link accepts no new use.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.uses.state() & RETIRED != 0
    }

    /// The time without a user of the link or a guard that keeps the server awake; `None` while the
    /// link has one.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        self.uses.idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E40: the end waits for the last use, and no use enters after the link is retired.
    #[tokio::test]
    async fn e40_a_retired_link_ends_with_its_last_use() {
        let uses = UseCount::new();
        assert!(uses.enter() && uses.enter());
        assert_eq!(uses.idle(), None);
        let mut draining = tokio_test_poll(uses.drained());
        assert!(!draining.is_done().await);
        assert!(!uses.enter(), "retired");
        uses.leave();
        assert!(!draining.is_done().await);
        uses.leave();
        assert!(draining.is_done().await);
        assert!(uses.idle().is_some());
    }

    /// D12: a guard that keeps the server awake does not delay the end of the link. No user can
    /// enter between the check for users and the retirement.
    #[tokio::test]
    async fn d12_a_link_that_is_kept_awake_is_not_idle_and_can_end() {
        let uses = UseCount::new();
        uses.keep();
        assert_eq!(uses.idle(), None);
        assert!(!uses.retire_unused() && uses.enter());
        let mut draining = tokio_test_poll(uses.drained());
        assert!(!draining.is_done().await);
        uses.leave();
        assert!(draining.is_done().await, "although it is kept awake");
        let uses = UseCount::new();
        assert!(uses.enter() && !uses.retire_unused());
        uses.leave();
        assert!(uses.retire_unused() && !uses.enter());
    }

    /// D12: the idle time begins when the guard is dropped, so that a caller can still fetch what a
    /// message has announced.
    #[tokio::test(start_paused = true)]
    async fn d12_a_link_is_idle_from_the_moment_of_its_release() {
        let uses = UseCount::new();
        uses.keep();
        tokio::time::advance(Duration::from_secs(60)).await;
        uses.let_go();
        assert_eq!(uses.idle(), Some(Duration::ZERO));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(uses.idle(), Some(Duration::from_secs(3)));
        assert_eq!(uses.since_last(), Duration::from_secs(63), "it has said nothing");
    }

    struct Polled<F>(std::pin::Pin<Box<F>>);

    fn tokio_test_poll<F: Future<Output = ()>>(future: F) -> Polled<F> {
        Polled(Box::pin(future))
    }

    impl<F: Future<Output = ()>> Polled<F> {
        /// Polls the future once; `true` if the future is done.
        async fn is_done(&mut self) -> bool {
            std::future::poll_fn(|context| {
                std::task::Poll::Ready(self.0.as_mut().poll(context).is_ready())
            })
            .await
        }
    }
}
