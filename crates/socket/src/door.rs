//! The sockets of one run: accepts connections and waits for them at the end.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use narthex_gateway::{Endpoint, Gateway, RunView};
use narthex_model::Alias;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    SocketError,
    connection::{self, Place},
    folder::{Folder, Socket, socket_name},
};

/// How long to wait after the system had no descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the door.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Connections open at one time; further ones wait to be accepted.
    pub connections: usize,
    /// Requests that one connection may have running; further ones wait.
    pub requests: usize,
    /// How long a client may read nothing of what waits for it.
    pub write_timeout: Duration,
    /// How long calls may go on after the door was told to stop.
    pub drain_timeout: Duration,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            connections: 1024,
            requests: 128,
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// The open sockets of one run.
#[derive(Debug)]
pub struct SocketDoor {
    place: Place,
    sockets: Vec<(Endpoint, Socket)>,
    _folder: Folder,
}

impl SocketDoor {
    /// Opens `mcp.sock` and one `<alias>.sock` for each alias, in a folder that is made if it is
    /// not there. Must be called inside a runtime.
    ///
    /// A server that is itself called `mcp` has no socket of its own.
    ///
    /// # Errors
    /// When the folder admits others, a path is too long, or another process serves them.
    pub fn bind(
        folder: &Path,
        run: Arc<RunView>,
        aliases: impl IntoIterator<Item = Alias>,
        gateway: Gateway,
        options: SocketOptions,
    ) -> Result<Self, SocketError> {
        let folder = Folder::open(folder)?;
        let mut sockets = vec![(Endpoint::Aggregated, folder.bind("mcp.sock")?)];
        for alias in aliases {
            let Some(name) = socket_name(Some(&alias)) else {
                tracing::warn!(server.name = %alias, "a server of this name has no socket");
                continue;
            };
            sockets.push((Endpoint::Transparent(alias), folder.bind(&name)?));
        }
        let place = Place { gateway, run, options: Arc::new(options) };
        Ok(Self { place, sockets, _folder: folder })
    }

    /// The sockets' paths, the aggregated one first.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.sockets.iter().map(|(_, socket)| socket.path().to_owned()).collect()
    }

    /// Serves connections until told to stop, then lets open calls finish for a while. The
    /// sockets are gone afterwards.
    pub async fn serve(self, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        let room = Arc::new(Semaphore::new(self.place.options.connections));
        for (endpoint, socket) in self.sockets {
            let accepting = Accepting {
                place: self.place.clone(),
                endpoint,
                room: room.clone(),
                tasks: tasks.clone(),
                stop: stop.clone(),
            };
            tasks.spawn(accepting.run(socket));
        }
        stop.cancelled().await;
        tasks.close();
        tasks.wait().await;
    }
}

/// One listening socket.
struct Accepting {
    place: Place,
    endpoint: Endpoint,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Accepting {
    async fn run(self, socket: Socket) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.accept_all(&socket.listener)).await;
    }

    async fn accept_all(&self, listener: &UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) if is_own_user(&stream) => self.begin(stream).await,
                Ok(_) => {
                    tracing::warn!("refused a connection of another user");
                    self.place.gateway.metrics().refused("socket_user");
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection as soon as there is room. Room is not taken before somebody comes, as
    /// the sockets share it.
    async fn begin(&self, stream: UnixStream) {
        let Ok(room) = self.room.clone().acquire_owned().await else { return };
        let (place, endpoint) = (self.place.clone(), self.endpoint.clone());
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            connection::serve(place, endpoint, stream, stop).await;
            drop(room);
        });
    }
}

/// Whether the peer has our user id, by the system's word.
fn is_own_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}
