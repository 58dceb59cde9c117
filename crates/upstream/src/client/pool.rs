//! The connections of one origin: a bounded number in use, some idle, newest reused first.

use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

use super::connection::Connection;

/// Idle connections and the number of those in use.
#[derive(Debug)]
pub(super) struct Pool {
    /// Oldest first.
    idle: Mutex<VecDeque<Idle>>,
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
        let free = Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS));
        Self { idle: Mutex::default(), free, max_idle, idle_timeout }
    }

    /// Waits until another connection may be in use.
    pub(super) async fn slot(self: &Arc<Self>) -> Slot {
        let permit = self.free.acquire().await.expect("the semaphore is never closed");
        permit.forget();
        Slot(Arc::clone(self))
    }

    /// Closes what has been idle for too long.
    pub(super) fn close_expired(&self) {
        let expired = self.take_expired(&mut self.lock());
        drop(expired);
    }

    /// Expired connections, to be dropped when the lock is released: closing is a system call.
    fn take_expired(&self, idle: &mut VecDeque<Idle>) -> Option<VecDeque<Idle>> {
        let oldest = idle.front()?;
        let now = Instant::now();
        if now.duration_since(oldest.since) < self.idle_timeout {
            return None;
        }
        let fresh = idle.partition_point(|i| now.duration_since(i.since) >= self.idle_timeout);
        let kept = idle.split_off(fresh);
        Some(std::mem::replace(idle, kept))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        // Nothing that holds the lock can leave the list half changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The newest idle connection that is still open, or the slot back.
    pub(super) fn reuse(self) -> Result<Lease, Self> {
        loop {
            let (newest, expired) = {
                let mut idle = self.0.lock();
                let expired = self.0.take_expired(&mut idle);
                (idle.pop_back(), expired)
            };
            drop(expired);
            let Some(Idle { mut connection, .. }) = newest else { return Err(self) };
            // This is where a close by the server comes to light.
            connection.drive(&mut Context::from_waker(Waker::noop()));
            if connection.is_reusable() {
                return Ok(self.occupy(connection));
            }
        }
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
        let pool = &slot.0;
        if !connection.is_reusable() || pool.max_idle == 0 {
            return;
        }
        connection.rest();
        let mut idle = pool.lock();
        let expired = pool.take_expired(&mut idle);
        let surplus = if idle.len() >= pool.max_idle { idle.pop_front() } else { None };
        idle.push_back(Idle { connection, since: Instant::now() });
        drop(idle);
        drop((expired, surplus));
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
