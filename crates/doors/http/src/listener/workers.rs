//! The threads that answer requests: each thread alone serves its share of the connections.
//!
//! A connection stays with its thread. So do its calls and the connections to servers that these
//! calls use: a call never has to wake another thread.

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

/// Interval of a timer on each thread that has connections. The interval is shorter than any time
/// limit of a call: without an earlier timer, the runtime would interrupt its sleep for each such
/// limit, which costs two system calls.
const TICK: Duration = Duration::from_millis(500);

/// Threads that share the connections. They end with the last clone or by [`Workers::stop`], and
/// all tasks on them end with them.
///
/// Without threads ([`Workers::default`]), the accepting runtime serves the connections.
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
    /// Notified when the thread gets its first connection.
    bell: Notify,
}

/// A connection's place on one of the threads.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) runtime: Handle,
    seats: Arc<Seats>,
}

impl Workers {
    /// Starts as many threads as the process can run in parallel.
    ///
    /// # Errors
    /// When the system refuses to start a thread, or to create a runtime for it.
    pub fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let (stop, ended) = (CancellationToken::new().drop_guard(), TaskTracker::new());
        let mut all = Vec::with_capacity(count);
        for number in 0..count {
            all.push(Worker::start(number, stop.token().clone(), ended.token())?);
        }
        Ok(Self(Some(Arc::new(Threads { all, stop, ended }))))
    }

    /// Ends the threads and all tasks on them. Returns when all have ended.
    pub async fn stop(&self) {
        let Some(threads) = &self.0 else { return };
        threads.stop.token().cancel();
        threads.ended.close();
        threads.ended.wait().await;
    }

    /// Takes a place on the thread with the fewest connections; `None` if there are no threads.
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
            // Blocking tasks must not delay the end.
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
