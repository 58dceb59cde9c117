//! Tasks that start on the thread of their caller, and continue in the runtime.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Wake, Waker},
};

use tokio::runtime::Handle as Runtime;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A started task that waits.
struct InlineTask {
    runtime: Runtime,
    rest: Mutex<Rest>,
}

/// The rest of a task.
enum Rest {
    /// The task is polled for the first time.
    Begins,
    /// The first poll is under way, and the event that the task waits for has come.
    IsWaked,
    Waits(Task),
    /// The runtime has the task.
    IsHandedOn,
}

/// Begins a task here: what it can do without waiting is done when this returns. Whatever ends its
/// waiting hands it to the runtime, so that none of the runtime's threads is waked for it before.
pub(crate) fn begin(runtime: &Runtime, mut task: Task) {
    let begun = Arc::new(InlineTask { runtime: runtime.clone(), rest: Mutex::new(Rest::Begins) });
    let waker = Waker::from(begun.clone());
    let _entered = runtime.enter();
    if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        return;
    }
    let mut rest = begun.rest();
    match *rest {
        Rest::IsWaked => {
            *rest = Rest::IsHandedOn;
            drop(rest);
            runtime.spawn(task);
        }
        _ => *rest = Rest::Waits(task),
    }
}

impl InlineTask {
    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for InlineTask {
    fn wake(self: Arc<Self>) {
        let mut rest = self.rest();
        match mem::replace(&mut *rest, Rest::IsHandedOn) {
            Rest::Begins | Rest::IsWaked => *rest = Rest::IsWaked,
            Rest::Waits(task) => {
                drop(rest);
                self.runtime.spawn(task);
            }
            Rest::IsHandedOn => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::{
        sync::oneshot,
        task::yield_now,
        time::{Duration, timeout},
    };

    use super::*;

    /// A counter, and a task that counts once before it waits for `waiting`, and once after.
    fn counts(waiting: impl Future + Send + 'static) -> (Arc<AtomicUsize>, Task) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let task = Box::pin(async move {
            counted.fetch_add(1, Ordering::SeqCst);
            waiting.await;
            counted.fetch_add(1, Ordering::SeqCst);
        });
        (count, task)
    }

    async fn reaches(count: &AtomicUsize, number: usize) {
        let reached = async {
            while count.load(Ordering::SeqCst) < number {
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), reached).await.expect("the task ends");
    }

    #[tokio::test]
    async fn a_task_starts_at_once_and_ends_after_waking() {
        let (sender, receiver) = oneshot::channel::<()>();
        let (count, task) = counts(receiver);
        begin(&Runtime::current(), task);
        assert_eq!(count.load(Ordering::SeqCst), 1);
        yield_now().await;
        assert_eq!(count.load(Ordering::SeqCst), 1, "it waits");
        sender.send(()).expect("it waits");
        reaches(&count, 2).await;
    }

    #[tokio::test]
    async fn a_task_that_does_not_wait_is_done_at_once() {
        let (count, task) = counts(async {});
        begin(&Runtime::current(), task);
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    /// The waiting may end before the first poll of the task is over.
    #[tokio::test]
    async fn a_task_waked_during_its_first_poll_is_polled_again() {
        let (count, task) = counts(yield_once());
        begin(&Runtime::current(), task);
        reaches(&count, 2).await;
    }

    /// Wakes itself before it waits.
    async fn yield_once() {
        let mut has_waited = false;
        std::future::poll_fn(|context| {
            if mem::replace(&mut has_waited, true) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }

    /// Threads wake many tasks just as they begin to wait.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_task_is_lost_to_a_race() {
        for _ in 0..2000 {
            let (sender, receiver) = oneshot::channel::<()>();
            let (count, task) = counts(receiver);
            let waking = Runtime::current().spawn(async move { sender.send(()) });
            begin(&Runtime::current(), task);
            reaches(&count, 2).await;
            waking.await.expect("it ends").expect("the task waits");
        }
    }
}
