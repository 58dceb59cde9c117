//! The listener: accepts connections, limits their number and their time, and closes them.
//!
//! A separate layer: it imports no other module of this crate, and knows no route.

mod connection;
mod guard;
mod handshake;
mod io;
mod leaving;
mod options;
mod room;
mod shared;
mod workers;

use std::{io as std_io, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::OwnedSemaphorePermit,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    room::Room,
    shared::{Shared, watched},
};

pub use guard::{Guard, single};
pub use leaving::Leaving;
pub use options::ServeOptions;
pub use shared::Respond;
pub use workers::Workers;

/// The pause before the next accept if the system refuses one, for example when file handles run
/// out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    let shared = Arc::new(Shared {
        connections: Room::new(options.max_connections, "open connections"),
        handshakes: Room::new(options.handshakes_max, "open TLS handshakes"),
        router,
        options,
        shutdown: shutdown.clone(),
    });
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = shared.options.leaving.begun() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, sender) = match accepted {
            Ok((stream, peer)) => (stream, peer.ip()),
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        let room = match &shared.options.tls {
            None => &shared.connections,
            Some(_) => &shared.handshakes,
        };
        if let Some(slot) = room.take() {
            begin(&shared, Accepted { stream, sender, slot }, &tasks);
        }
    }
}

/// An accepted connection, with its place among all.
struct Accepted {
    stream: TcpStream,
    sender: IpAddr,
    slot: OwnedSemaphorePermit,
}

/// Serves a connection, on a worker thread if there are any.
fn begin<R: Respond>(shared: &Arc<Shared<R>>, accepted: Accepted, tasks: &TaskTracker) {
    let (shared, leaving) = (shared.clone(), &shared.options.leaving);
    let Some(seat) = shared.options.workers.seat() else {
        tasks.spawn(leaving.track(serve_stream(shared, accepted)));
        return;
    };
    let Accepted { stream, sender, slot } = accepted;
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
            Ok(stream) => serve_stream(shared, Accepted { stream, sender, slot }).await,
            Err(error) => tracing::warn!(%error, "could not take a connection over"),
        }
    };
    tasks.spawn_on(leaving.track(serving), &runtime);
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

async fn serve_stream<R: Respond>(shared: Arc<Shared<R>>, accepted: Accepted) {
    let Accepted { stream, sender, slot } = accepted;
    if let Some(tls) = shared.options.tls.clone() {
        // Boxed, so that plain connections have small tasks.
        return Box::pin(handshake::serve(shared, tls, sender, stream, slot)).await;
    }
    let (stream, activity) = watched(stream);
    connection::serve(shared, sender, stream, activity).await;
    drop(slot);
}
