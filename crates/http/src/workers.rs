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
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often a thread with connections looks at its clock. Shorter than any limit that a call sets:
/// a runtime that has no earlier appointment interrupts its own sleep, by two system calls, for
/// each of them.
const TICK: Duration = Duration::from_millis(500);

/// Threads that share out connections. They end with the last clone, so it should outlive
/// whatever was begun on them.
///
/// Without any ([`Workers::default`]), connections are served by the runtime that accepts them.
#[derive(Debug, Clone, Default)]
pub struct Workers(Option<Arc<Threads>>);

#[derive(Debug)]
struct Threads {
    all: Vec<Worker>,
    _stop: DropGuard,
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
        let stop = CancellationToken::new();
        let all = (0..count).map(|number| Worker::start(number, stop.clone()));
        let all = all.collect::<io::Result<_>>()?;
        Ok(Self(Some(Arc::new(Threads { all, _stop: stop.drop_guard() }))))
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
    fn start(number: usize, stop: CancellationToken) -> io::Result<Self> {
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
            // Nothing that blocks may hold up the end.
            runtime.shutdown_background();
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
    fn connections_go_where_there_are_fewest() {
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
    fn threads_do_what_is_given_to_them_and_end_with_the_last_handle() {
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
}
