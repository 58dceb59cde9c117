//! A few connections to one file, each with a thread of its own.
//!
//! The connection that was used last is used next. So no more connections are opened than
//! statements run at once, and the cache of the one in use is warm. A connection whose caller has
//! gone during a statement is used again last.

use std::{
    mem,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Number of steps of SQLite's machine between two looks at the clock: well below 1 ms.
const STEPS_PER_LOOK: i32 = 1000;

/// The connections of one kind. Clones are the same ones.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: SqliteConnectOptions,
    /// Most open connections.
    most: u32,
    places: Arc<Semaphore>,
    open: Mutex<Open>,
    is_closed: AtomicBool,
}

/// The open connections.
#[derive(Debug, Default)]
struct Open {
    /// Number of connections: those of leases, and the idle ones.
    count: u32,
    /// The connections without a lease, the last used one at the end.
    idle: Vec<Connected>,
}

#[derive(Debug)]
struct Connected {
    connection: SqliteConnection,
    deadline: Deadline,
    /// True if its last statement may be running still.
    is_busy: bool,
}

/// The time at which the statements of a connection are stopped. Dropping a future alone would
/// leave its statement running, and its connection out of use.
///
/// SQLite asks for it through one handler for the whole life of a connection: setting a handler
/// would stop the connection's thread for each statement.
#[derive(Debug, Clone)]
struct Deadline(Arc<Mutex<Instant>>);

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Lease {
    /// `None` only before [`Connections::take`] returns the lease, and while it is dropped.
    connected: Option<Connected>,
    connections: Connections,
    /// Free when the connection is idle again.
    _place: OwnedSemaphorePermit,
}

impl Connections {
    /// Connects when the first statement runs.
    pub(super) fn new(options: SqliteConnectOptions, most: u32) -> Self {
        let places = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1)));
        let (open, is_closed) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Shared { options, most, places, open, is_closed }))
    }

    /// Takes a connection, whose statements are stopped at the deadline. Callers wait in order.
    pub(super) async fn take(&self, deadline: Instant) -> Result<Lease, sqlx::Error> {
        let place = self.0.places.clone().acquire_owned().await;
        let place = place.map_err(|_closed| sqlx::Error::PoolClosed)?;
        if self.0.is_closed.load(Ordering::SeqCst) {
            return Err(sqlx::Error::PoolClosed);
        }
        let connected = self.0.open().next(self.0.most);
        let mut lease = Lease { connected, connections: self.clone(), _place: place };
        if !lease.is_usable().await {
            lease.connected = None;
            lease.connected = Some(self.0.connect().await?);
        }
        lease.connected_mut().is_busy = true;
        lease.stop_at(deadline);
        Ok(lease)
    }

    /// Waits for running statements, and closes all connections. Later statements fail.
    pub(super) async fn close(&self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        // Callers that wait already get their place first, and learn that it is of no use.
        let all = self.0.places.acquire_many(self.0.most).await;
        self.0.places.close();
        let idle = mem::take(&mut self.0.open().idle);
        for connected in idle {
            if let Err(error) = connected.connection.close().await {
                tracing::debug!(%error, "a connection to the store did not close");
            }
        }
        drop(all);
    }
}

impl Shared {
    async fn connect(&self) -> Result<Connected, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        let deadline = Deadline(Arc::new(Mutex::new(Instant::now())));
        let asked = deadline.clone();
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS_PER_LOOK, move || Instant::now() < asked.get());
        drop(handle);
        Ok(Connected { connection, deadline, is_busy: true })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // No holder of the lock can leave the list half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The connection of a new lease; `None` if the lease has to connect, for which it counts
    /// already.
    fn next(&mut self, most: u32) -> Option<Connected> {
        if let Some(at) = self.idle.iter().rposition(|connected| !connected.is_busy) {
            return Some(self.idle.remove(at));
        }
        if self.count < most || self.idle.is_empty() {
            self.count += 1;
            return None;
        }
        Some(self.idle.remove(0))
    }
}

impl Deadline {
    fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, deadline: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

impl Lease {
    /// Stops the connection's statements at another time from now on.
    pub(crate) fn stop_at(&mut self, deadline: Instant) {
        self.connected_mut().deadline.set(deadline);
    }

    /// Notes that all statements have ended, and their transaction with them. Without this note,
    /// the next user of the connection waits until its thread has nothing left to do.
    pub(super) fn rest(&mut self) {
        self.connected_mut().is_busy = false;
    }

    /// Waits for the end of statements whose caller has gone, which are stopped at their own
    /// deadline. False if the connection cannot be used any more.
    async fn is_usable(&mut self) -> bool {
        let Some(Connected { connection, is_busy, .. }) = &mut self.connected else { return false };
        if !*is_busy {
            return true;
        }
        // The library cannot leave a transaction that SQLite has ended by itself, as it does at an
        // interruption or a full disk.
        connection.ping().await.is_ok() && !connection.is_in_transaction()
    }

    fn connected_mut(&mut self) -> &mut Connected {
        self.connected.as_mut().expect("a lease has a connection until it is dropped")
    }
}

impl Deref for Lease {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        let connected = self.connected.as_ref();
        &connected.expect("a lease has a connection until it is dropped").connection
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connected_mut().connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut open = self.connections.0.open();
        match self.connected.take() {
            Some(connected) => open.idle.push(connected),
            None => open.count -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HASTE: Duration = Duration::from_millis(300);
    const PATIENCE: Duration = Duration::from_secs(600);

    fn connections(dir: &tempfile::TempDir, most: u32) -> Connections {
        let path = dir.path().join("x.db");
        Connections::new(SqliteConnectOptions::new().filename(path).create_if_missing(true), most)
    }

    async fn take(connections: &Connections) -> Lease {
        connections.take(Instant::now() + PATIENCE).await.unwrap()
    }

    fn idle(connections: &Connections) -> usize {
        connections.0.open().idle.len()
    }

    #[tokio::test]
    async fn statements_in_turn_share_one_connection() {
        let dir = tempfile::tempdir().unwrap();
        let connections = connections(&dir, 4);
        for _ in 0..8 {
            let mut lease = take(&connections).await;
            sqlx::query("SELECT 1").execute(&mut *lease).await.unwrap();
            lease.rest();
        }
        assert_eq!(idle(&connections), 1);
        let (one, other) = (take(&connections).await, take(&connections).await);
        drop((one, other));
        assert_eq!(idle(&connections), 2);
        connections.close().await;
        assert_eq!(idle(&connections), 0);
        assert!(matches!(take_closed(&connections).await, sqlx::Error::PoolClosed));
        // A second close finds nothing to do.
        connections.close().await;
    }

    async fn take_closed(connections: &Connections) -> sqlx::Error {
        connections.take(Instant::now() + PATIENCE).await.unwrap_err()
    }

    /// A statement whose caller has gone is stopped at its own deadline. It delays others only if
    /// no other connection is left.
    #[tokio::test]
    async fn a_connection_with_a_lost_statement_is_used_last() {
        let dir = tempfile::tempdir().unwrap();
        let connections = connections(&dir, 2);
        let mut lease = connections.take(Instant::now() + HASTE).await.unwrap();
        let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";
        tokio::select! {
            biased;
            ended = sqlx::query(endless).execute(&mut *lease) => panic!("{ended:?}"),
            () = tokio::task::yield_now() => {}
        }
        drop(lease);
        let other = take(&connections).await;
        assert_eq!((idle(&connections), connections.0.open().count), (1, 2));
        let mut lease = take(&connections).await;
        sqlx::query("SELECT 1").execute(&mut *lease).await.unwrap();
        drop((other, lease));
        assert_eq!((idle(&connections), connections.0.open().count), (2, 2));
    }

    /// A transaction whose caller has gone is rolled back before the next caller's statements.
    #[tokio::test]
    async fn a_lost_transaction_is_over_before_the_next_statement() {
        let dir = tempfile::tempdir().unwrap();
        let connections = connections(&dir, 1);
        let mut lease = take(&connections).await;
        sqlx::query("CREATE TABLE t (n INTEGER)").execute(&mut *lease).await.unwrap();
        lease.rest();
        drop(lease);
        let mut lease = take(&connections).await;
        let mut lost = (*lease).begin_with("BEGIN IMMEDIATE").await.unwrap();
        sqlx::query("INSERT INTO t VALUES (1)").execute(&mut *lost).await.unwrap();
        drop(lost);
        drop(lease);
        let mut lease = take(&connections).await;
        assert!(!lease.is_in_transaction());
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&mut *lease).await.unwrap();
        assert_eq!(count, 0);
    }
}
