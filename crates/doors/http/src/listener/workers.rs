//! The threads that answer: each serves its share of the connections, alone.
//!
//! A connection stays with its thread, and so do its calls and the connections to servers that
//! these use: nothing on a call's way wakes another thread.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    sync::Notify,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// Interval at which a thread with connections looks at its clock. Shorter than any limit that a
/// call sets: a runtime that has no earlier timer interrupts its own sleep, by two system calls,
/// for each of them.
const TICK: Duration = Duration::from_millis(500);

/// Threads that share out connections. They end with the last clone or [`Workers::stop`], and with
/// them all tasks that were spawned there.
///
/// Without any ([`Workers::default`]), connections are served by the runtime that accepts them.
#[derive(Debug, Clone, Default)]
pub struct Workers(Option<Arc<Threads>>);

#[derive(Debug)]
struct Threads {
    all: Vec<Worker>,
    stop: DropGuard,
    ended: TaskTracker,
}

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    seats: Arc<Seats>,
}

/// The connections of one thread.
#[derive(Debug, Default)]
struct Seats {
    taken: AtomicUsize,
    /// Rung for the first one.
    bell: Notify,
}

/// A connection's place at one of the threads.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) runtime: Handle,
    seats: Arc<Seats>,
}

impl Workers {
    /// Starts threads, as many as the process may run at once.
    ///
    /// # Errors
    /// When the system gives no thread or no means to wait for its connections.
    pub fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let (stop, ended) = (CancellationToken::new().drop_guard(), TaskTracker::new());
        let mut all = Vec::with_capacity(count);
        for number in 0..count {
            all.push(Worker::start(number, stop.token().clone(), ended.token())?);
        }
        Ok(Self(Some(Arc::new(Threads { all, stop, ended }))))
    }

    /// Ends the threads, and with them whatever still runs there; returns when all of it is gone.
    pub async fn stop(&self) {
        let Some(threads) = &self.0 else { return };
        threads.stop.token().cancel();
        threads.ended.close();
        threads.ended.wait().await;
    }

    /// A place at the thread with the fewest connections; `None` if there are no threads.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let all = &self.0.as_ref()?.all;
        let least = all.iter().min_by_key(|one| one.seats.taken())?;
        if least.seats.taken.fetch_add(1, Ordering::Relaxed) == 0 {
            least.seats.bell.notify_one();
        }
        Some(Seat { runtime: least.runtime.clone(), seats: least.seats.clone() })
    }
}

impl Worker {
    fn start(
        number: usize,
        stop: CancellationToken,
        running: TaskTrackerToken,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, seats) = (runtime.handle().clone(), Arc::<Seats>::default());
        let ticking = seats.clone();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = ticking.tick() => {}
                }
            });
            // No blocking task may delay the end.
            runtime.shutdown_background();
            drop(running);
        };
        thread::Builder::new().name(format!("worker-{number}")).spawn(run)?;
        Ok(Self { runtime: handle, seats })
    }
}

impl Seats {
    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    async fn tick(&self) {
        loop {
            match self.taken() {
                0 => self.bell.notified().await,
                _ => tokio::time::sleep(TICK).await,
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_to_the_worker_with_the_fewest_connections() {
        assert!(Workers::default().seat().is_none());
        let workers = Workers::start().unwrap();
        let count = workers.0.as_ref().unwrap().all.len();
        let seats: Vec<Seat> = (0..3 * count).map(|_| workers.seat().unwrap()).collect();
        let load = || -> Vec<usize> {
            let all = &workers.0.as_ref().unwrap().all;
            all.iter().map(|one| one.seats.taken()).collect()
        };
        assert_eq!(load(), vec![3; count]);
        let gone = seats.into_iter().next().unwrap();
        let id = gone.runtime.id();
        drop(gone);
        assert_eq!(workers.seat().unwrap().runtime.id(), id);
    }

    #[test]
    fn worker_threads_run_their_tasks_and_end_with_the_last_handle() {
        let workers = Workers::start().unwrap();
        let seat = workers.seat().unwrap();
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let open = sender.clone();
        seat.runtime.spawn(async move {
            sender.send("runs").unwrap();
            // Held until the runtime drops its tasks.
            let _open = open;
            std::future::pending::<()>().await;
        });
        assert_eq!(receiver.recv(), Ok("runs"));
        drop(workers);
        receiver.recv().unwrap_err();
    }

    #[tokio::test]
    async fn a_stop_waits_until_all_tasks_of_workers_are_dropped() {
        let workers = Workers::start().unwrap();
        let seat = workers.seat().unwrap();
        let kept = workers.clone();
        let held = Arc::new(());
        let task = held.clone();
        seat.runtime.spawn(async move {
            let _held = (task, kept);
            std::future::pending::<()>().await;
        });
        workers.stop().await;
        assert_eq!(Arc::strong_count(&held), 1);
        Workers::default().stop().await;
    }
}
