//! The waker of a connection's driver: passes wake-ups on to the connection's user.
//!
//! Taking a piece out of hyper's body notifies the driver that there is room again. Here that would
//! wake the very task that is running and drives the connection when the task wants more. The task
//! would be polled once more for nothing, with all tasks around it. [`quietly`] prevents such a
//! wake-up.

use std::{
    cell::Cell,
    sync::{Arc, Mutex, PoisonError},
    task::{Wake, Waker},
};

thread_local! {
    /// True if this thread is inside [`quietly`]. A wake-up from there is one by the task for
    /// itself; the important ones come from another thread or at another time.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Waker of the connection's user.
#[derive(Debug, Default)]
pub(super) struct Relay(Mutex<Option<Waker>>);

/// Runs this without letting it wake users of connections.
pub(super) fn quietly<T>(run: impl FnOnce() -> T) -> T {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            IS_QUIET.set(false);
        }
    }
    IS_QUIET.set(true);
    let _loud = Loud;
    run()
}

impl Relay {
    /// Passes the next wake-up on to this waker.
    pub(super) fn register(&self, waker: &Waker) {
        let mut user = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !user.as_ref().is_some_and(|user| user.will_wake(waker)) {
            *user = Some(waker.clone());
        }
    }

    /// Removes the task to wake, so that an ended task is freed.
    pub(super) fn clear(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if IS_QUIET.get() {
            return;
        }
        let user = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(user) = user {
            user.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn wake_ups_are_forwarded_except_those_by_the_user() {
        let (relay, count) = (Arc::<Relay>::default(), Arc::<Count>::default());
        let (waker, user) = (Waker::from(Arc::clone(&relay)), Waker::from(Arc::clone(&count)));
        let woken = || count.0.load(Ordering::SeqCst);
        waker.wake_by_ref();
        relay.register(&user);
        quietly(|| waker.wake_by_ref());
        assert_eq!(woken(), 0);
        // Wake-ups from another thread are not suppressed.
        quietly(|| std::thread::scope(|scope| scope.spawn(|| waker.wake_by_ref()).join().unwrap()));
        assert_eq!(woken(), 1);
        waker.wake_by_ref();
        assert_eq!(woken(), 1);
        relay.register(&user);
        waker.wake();
        assert_eq!(woken(), 2);
    }
}
