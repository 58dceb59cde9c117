//! The listener: accepts connections, limits their number and their time, and closes them.
//!
//! A separate layer: it imports no other module of this crate, and knows no route.

mod guard;
mod io;
mod options;
mod workers;

use std::{convert::Infallible, io as std_io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::io::{Activity, WatchedIo};

pub use guard::{Guard, single};
pub use options::ServeOptions;
pub use workers::Workers;

/// The pause before the next accept if the system refuses one, for example when file handles run
/// out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers the requests that a listener receives.
pub trait Respond: Send + Sync + 'static {
    /// The type of its answers' bodies.
    type Body: Body<Data = Bytes, Error = Infallible> + Send + 'static;

    /// Answers one request. The connection stores the future, so it should be small.
    fn respond(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Serves a router until `shutdown`, then returns.
///
/// Each connection is a task of `tasks`. After `shutdown`, idle connections close at once. The
/// others close when their request is answered or the grace period is over.
pub async fn serve<R: Respond>(
    listener: TcpListener,
    router: R,
    options: ServeOptions,
    shutdown: CancellationToken,
    tasks: TaskTracker,
) {
    let slots = Arc::new(Semaphore::new(options.max_connections));
    let shared = Arc::new(Shared { router, options, shutdown: shutdown.clone() });
    let mut is_full = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        let slot = slots.clone().try_acquire_owned().ok();
        // Logged once each time the limit is reached: a flood of connections must not flood the
        // log.
        if slot.is_none() && !is_full {
            let limit = shared.options.max_connections;
            tracing::warn!(limit, "refusing connections: the limit of open connections is reached");
        }
        is_full = slot.is_none();
        if let Some(slot) = slot {
            begin(&shared, stream, slot, &tasks);
        }
    }
}

/// Serves a connection, on a worker thread if there are any.
fn begin<R: Respond>(
    shared: &Arc<Shared<R>>,
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
    tasks: &TaskTracker,
) {
    let shared = shared.clone();
    let Some(seat) = shared.options.workers.seat() else {
        tasks.spawn(serve_connection(shared, stream, slot));
        return;
    };
    // Only the worker's own system handle may report that bytes arrive, so the socket is registered
    // anew.
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "could not hand a connection over"),
    };
    let runtime = seat.runtime.clone();
    let serving = async move {
        let _seat = seat;
        match TcpStream::from_std(stream) {
            Ok(stream) => serve_connection(shared, stream, slot).await,
            Err(error) => tracing::warn!(%error, "could not take a connection over"),
        }
    };
    tasks.spawn_on(serving, &runtime);
}

async fn rest_after(error: &std_io::Error) {
    use std_io::ErrorKind;
    // These errors concern one client, which has disconnected.
    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "could not accept a connection");
    sleep(ACCEPT_PAUSE).await;
}

struct Shared<R> {
    router: R,
    options: ServeOptions,
    shutdown: CancellationToken,
}

async fn serve_connection<R: Respond>(
    shared: Arc<Shared<R>>,
    stream: TcpStream,
    _slot: OwnedSemaphorePermit,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let activity = Arc::new(Activity::default());
    let service = service_fn(|request: Request<Incoming>| {
        activity.request();
        let answering = shared.router.respond(request);
        async { Ok::<_, Infallible>(answering.await) }
    });
    let io = WatchedIo::new(TokioIo::new(stream), activity.clone());
    let connection = http1::Builder::new().serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    // Each connection has a child token: every poll locks its token, and one shared lock would slow
    // down all connections.
    let shutdown = shared.shutdown.child_token();
    let options = &shared.options;
    let mut deadline = Instant::now() + options.header_timeout;
    let mut seen = activity.look();
    let mut is_ending = false;
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled(), if !is_ending => {
                is_ending = true;
                deadline = Instant::now() + options.grace;
                connection.as_mut().graceful_shutdown();
            }
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection failed");
                }
                return;
            }
            () = sleep_until(deadline) => {
                let now = activity.look();
                if is_ending || now.is_idle_since_start() || now.is_stuck_since(&seen) {
                    return;
                }
                if now.has_no_request_since(&seen) {
                    // Closes an idle connection now, and a busy one after its answer.
                    connection.as_mut().graceful_shutdown();
                }
                seen = now;
                deadline = Instant::now() + options.idle_timeout;
            }
        }
    }
}
