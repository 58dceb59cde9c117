//! The connections of one origin: a bounded number in use, some idle, newest reused first.
//!
//! Only the runtime that opened a connection uses it. In another runtime every arrival would wake a
//! second thread, and the connection would die with its own runtime.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use tokio::{
    runtime::{Handle, Id},
    sync::Semaphore,
    time::Instant,
};

use super::connection::Connection;

/// Among how many lists idle connections are divided, so that threads seldom meet at one.
const SHARDS: usize = 16;

/// Idle connections and the number of those in use.
#[derive(Debug)]
pub(super) struct Pool {
    /// Lists of idle connections, each with its oldest first. A connection's runtime decides about
    /// its list.
    idle: [Mutex<VecDeque<Idle>>; SHARDS],
    idle_count: AtomicUsize,
    /// True if a task closes connections that stay idle.
    is_swept: AtomicBool,
    free: Semaphore,
    max_idle: usize,
    idle_timeout: Duration,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

/// The right to have one connection in use. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Slot(Arc<Pool>);

/// A connection in use. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Lease {
    connection: Box<Connection>,
    slot: Slot,
}

impl Pool {
    pub(super) fn new(max_connections: usize, max_idle: usize, idle_timeout: Duration) -> Self {
        Self {
            idle: Default::default(),
            idle_count: AtomicUsize::new(0),
            is_swept: AtomicBool::new(false),
            free: Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)),
            max_idle,
            idle_timeout,
        }
    }

    /// The right to one more connection in use, if there is room.
    pub(super) fn try_slot(self: &Arc<Self>) -> Option<Slot> {
        let permit = self.free.try_acquire().ok()?;
        permit.forget();
        Some(Slot(Arc::clone(self)))
    }

    /// Waits until another connection may be in use.
    pub(super) async fn slot(self: &Arc<Self>) -> Slot {
        let permit = self.free.acquire().await.expect("the semaphore is never closed");
        permit.forget();
        Slot(Arc::clone(self))
    }

    /// The newest idle connection of a runtime that is not too old.
    fn newest(&self, home: Id) -> Option<Box<Connection>> {
        let mut idle = self.shard(home);
        let at = idle.iter().rposition(|idle| idle.connection.home() == home)?;
        let newest = idle.remove(at)?;
        drop(idle);
        self.idle_count.fetch_sub(1, Ordering::SeqCst);
        // Servers tend to close one at such an age just as it is used.
        (newest.since.elapsed() < self.idle_timeout).then_some(newest.connection)
    }

    fn keep(self: &Arc<Self>, connection: Box<Connection>) {
        let home = connection.home();
        let kept = Idle { connection, since: Instant::now() };
        let is_full = self.idle_count.load(Ordering::SeqCst) >= self.max_idle;
        let mut idle = self.shard(home);
        let mut given_up = if is_full { idle.pop_front() } else { None };
        if is_full && given_up.is_none() {
            drop(idle);
            given_up = self.oldest_of_another(home);
            if given_up.is_none() {
                return;
            }
            idle = self.shard(home);
        }
        idle.push_back(kept);
        drop(idle);
        // A connection that takes the place of another changes no number.
        if given_up.is_none() {
            self.idle_count.fetch_add(1, Ordering::SeqCst);
        }
        // Closing is a system call: not under a lock.
        drop(given_up);
        self.have_swept();
    }

    /// Takes away the oldest connection of a list that no thread uses at this moment: a runtime
    /// that came late would otherwise connect anew for each request.
    fn oldest_of_another(&self, home: Id) -> Option<Idle> {
        let own = shard_of(home);
        let others = (1..SHARDS).map(|step| &self.idle[(own + step) % SHARDS]);
        others.filter_map(|shard| shard.try_lock().ok()).find_map(|mut idle| idle.pop_front())
    }

    /// Sees to it that idle connections are closed in time.
    fn have_swept(self: &Arc<Self>) {
        // After the count has changed, as the sweeper reads the count after this.
        if self.is_swept.load(Ordering::SeqCst) || self.is_swept.swap(true, Ordering::SeqCst) {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(sweep(Arc::downgrade(self), self.idle_timeout))),
            // The program is ending, and its connections with it.
            Err(_) => self.is_swept.store(false, Ordering::SeqCst),
        }
    }

    /// Closes connections that have been idle for too long. Returns `true` if any are left.
    fn close_expired(&self) -> bool {
        let now = Instant::now();
        let is_fresh = |idle: &Idle| now.duration_since(idle.since) < self.idle_timeout;
        for shard in &self.idle {
            let mut idle = lock(shard);
            let first_fresh = idle.iter().position(is_fresh).unwrap_or(idle.len());
            let expired: Vec<Idle> = idle.drain(..first_fresh).collect();
            drop(idle);
            self.idle_count.fetch_sub(expired.len(), Ordering::SeqCst);
        }
        self.idle_count.load(Ordering::SeqCst) > 0
    }

    fn shard(&self, home: Id) -> MutexGuard<'_, VecDeque<Idle>> {
        lock(&self.idle[shard_of(home)])
    }
}

/// The list for the connections of a runtime.
fn shard_of(home: Id) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(home);
    usize::try_from(hash % SHARDS as u64).unwrap_or_default()
}

fn lock(shard: &Mutex<VecDeque<Idle>>) -> MutexGuard<'_, VecDeque<Idle>> {
    // No holder of the lock can leave the list half changed.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes idle connections in time, as long as there are any.
async fn sweep(pool: Weak<Pool>, idle_timeout: Duration) {
    loop {
        tokio::time::sleep(idle_timeout).await;
        let Some(pool) = pool.upgrade() else { return };
        if pool.close_expired() {
            continue;
        }
        pool.is_swept.store(false, Ordering::SeqCst);
        // A connection that became idle meanwhile started no sweeper, as this one was still marked.
        if pool.idle_count.load(Ordering::SeqCst) == 0 || pool.is_swept.swap(true, Ordering::SeqCst)
        {
            return;
        }
    }
}

impl Slot {
    /// The newest idle connection that is still open, or the slot back.
    pub(super) fn reuse(self) -> Result<Lease, Self> {
        let home = Handle::current().id();
        while let Some(mut connection) = self.0.newest(home) {
            // This is where a close by the server comes to light.
            connection.drive(&mut Context::from_waker(Waker::noop()));
            if connection.is_reusable() {
                return Ok(self.occupy(connection));
            }
        }
        Err(self)
    }

    /// Puts a connection into use.
    pub(super) fn occupy(self, connection: Box<Connection>) -> Lease {
        Lease { connection, slot: self }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.free.add_permits(1);
    }
}

impl Lease {
    /// Gives a connection back whose exchange is over; closes it if it cannot be used again.
    pub(super) fn finish(self) {
        let Self { connection, slot } = self;
        if connection.is_reusable() && slot.0.max_idle > 0 {
            connection.rest();
            slot.0.keep(connection);
        }
    }

    /// Closes the connection but keeps the right to use another one.
    pub(super) fn discard(self) -> Slot {
        self.slot
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
