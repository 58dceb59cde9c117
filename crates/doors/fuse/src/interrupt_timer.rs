//! One shared timer checks all blocked callers for a pending signal.
//!
//! A timer of its own for each caller would wake a thread of the runtime for each call.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle as Runtime, sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::cpu_latency::CpuLatency;

/// Interval of the checks of waiting callers: a caller cannot report that it was interrupted, since
/// the library does not support the kernel's request for that.
const LOOKED_AT: Duration = Duration::from_millis(100);

/// Number of further checks when no caller waits any more: programs that call again soon find the
/// timer running.
const MORE: u32 = 20;

/// The shared checks of waiting callers, for as long as a caller waits and a moment longer.
#[derive(Debug)]
pub(crate) struct InterruptTimer {
    runtime: Runtime,
    stopping: CancellationToken,
    /// The device that keeps processors awake meanwhile, if they are.
    awake: Option<PathBuf>,
    look: Notify,
    waiting: AtomicUsize,
    is_running: AtomicBool,
}

/// A waiting caller. The timer runs while there is one.
#[derive(Debug)]
pub(crate) struct Watched<'a>(&'a InterruptTimer);

impl InterruptTimer {
    /// A timer that starts with the first waiting caller, and ends with the stop.
    pub(crate) fn new(
        runtime: Runtime,
        stopping: CancellationToken,
        awake: Option<PathBuf>,
    ) -> Arc<Self> {
        let (waiting, is_running) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { runtime, stopping, awake, look: Notify::new(), waiting, is_running })
    }

    /// Registers a waiting caller.
    pub(crate) fn watch(self: &Arc<Self>) -> Watched<'_> {
        // In this order: the task that ends the timer reads the two values in the opposite order.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.go();
        Watched(self)
    }

    fn go(self: &Arc<Self>) {
        if self.is_running.load(Ordering::SeqCst) || self.is_running.swap(true, Ordering::SeqCst) {
            return;
        }
        let (timer, stopping) = (self.clone(), self.stopping.clone());
        self.runtime.spawn(async move {
            stopping.run_until_cancelled(timer.take()).await;
        });
    }

    async fn take(self: Arc<Self>) {
        let awake = self.awake.as_deref().and_then(|device| {
            let told = CpuLatency::begin(device);
            told.inspect_err(|error| tracing::debug!(%error, "no processor is kept awake")).ok()
        });
        let mut idle = 0;
        while idle < MORE {
            sleep(LOOKED_AT).await;
            idle = if self.waiting.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
            self.look.notify_waiters();
        }
        drop(awake);
        self.is_running.store(false, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.go();
        }
    }
}

impl Watched<'_> {
    /// Resolves with the next look.
    pub(crate) async fn look(&self) {
        self.0.look.notified().await;
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        task::yield_now,
        time::{Instant, advance},
    };

    use super::*;

    fn timer() -> Arc<InterruptTimer> {
        InterruptTimer::new(Runtime::current(), CancellationToken::new(), None)
    }

    #[tokio::test(start_paused = true)]
    async fn all_blocked_callers_are_checked_together() {
        let timer = timer();
        let (first, second) = (timer.watch(), timer.watch());
        let began = Instant::now();
        for _ in 0..3 {
            tokio::join!(first.look(), second.look());
        }
        assert_eq!(began.elapsed(), 3 * LOOKED_AT);
    }

    /// Also after a long pause.
    #[tokio::test(start_paused = true)]
    async fn checks_stop_without_blocked_callers_and_start_again() {
        let timer = timer();
        timer.watch().look().await;
        for _ in 0..MORE {
            assert!(timer.is_running.load(Ordering::SeqCst));
            advance(LOOKED_AT).await;
            // The woken tasks continue.
            for _ in 0..3 {
                yield_now().await;
            }
        }
        assert!(!timer.is_running.load(Ordering::SeqCst));
        timer.watch().look().await;
        assert!(timer.is_running.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn processors_stay_awake_while_a_caller_waits() {
        let device = tempfile::NamedTempFile::new().expect("there is room");
        let awake = Some(device.path().to_owned());
        let timer = InterruptTimer::new(Runtime::current(), CancellationToken::new(), awake);
        let told = || fs_err::read(device.path()).expect("it is there");
        assert_eq!(told(), b"", "no caller waits yet");
        timer.watch().look().await;
        assert_eq!(told(), 0_i32.to_ne_bytes());
        assert_eq!(open_files(device.path()), 1);
        while timer.is_running.load(Ordering::SeqCst) {
            sleep(LOOKED_AT).await;
        }
        assert_eq!(open_files(device.path()), 0, "the wish is over");
    }

    /// Number of times that this process has a file open, without the maker's.
    fn open_files(path: &std::path::Path) -> usize {
        let all = fs_err::read_dir("/proc/self/fd").expect("it is there");
        let names = all.filter_map(|entry| fs_err::read_link(entry.ok()?.path()).ok());
        names.filter(|name| name == path).count() - 1
    }

    #[tokio::test(start_paused = true)]
    async fn no_caller_is_checked_after_the_stop() {
        let timer = timer();
        let watched = timer.watch();
        timer.stopping.cancel();
        tokio::select! {
            () = watched.look() => panic!("it was stopped"),
            () = sleep(10 * LOOKED_AT) => {}
        }
    }
}
