//! The sockets of one run: accepts connections, and waits until they have ended.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use narthex_gateway::{Endpoint, Gateway, RunView};
use narthex_model::{Alias, ProfileName};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    SocketError, SocketOptions,
    connection::{self, Place},
    folder::{Folder, Socket, profile_socket_name, socket_name},
};

/// The pause before the next accept after the system has refused one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The open sockets of one run.
#[derive(Debug)]
pub struct SocketDoor {
    place: Place,
    aggregated: Socket,
    /// The socket of each server, by its file name.
    servers: BTreeMap<String, (Alias, Socket)>,
    folder: Folder,
}

impl SocketDoor {
    /// Opens `mcp.sock`, and one `<alias>.sock` for each server of the run. Creates the folder if
    /// it does not exist. Must be called inside a runtime.
    ///
    /// A server with the alias `mcp` has no socket of its own.
    ///
    /// # Errors
    /// When other users may enter the folder, a path is too long, or another process serves the
    /// folder.
    pub fn bind(
        folder: &Path,
        run: Arc<RunView>,
        gateway: Gateway,
        options: SocketOptions,
    ) -> Result<Self, SocketError> {
        Self::bind_in(Folder::open(folder)?, run, gateway, options)
    }

    /// Binds in a folder `name` inside the folder `base`; the inner folder is removed with the
    /// door. Sockets that a crash has left there are replaced.
    ///
    /// # Errors
    /// The errors of [`SocketDoor::bind`].
    pub fn bind_passing(
        base: &Path,
        name: &str,
        run: Arc<RunView>,
        gateway: Gateway,
        options: SocketOptions,
    ) -> Result<Self, SocketError> {
        Self::bind_in(Folder::open_passing(base, name)?, run, gateway, options)
    }

    /// Removes the door folders inside `base` that a crash has left, if `is_meant` accepts their
    /// names.
    pub fn sweep(base: &Path, is_meant: impl Fn(&str) -> bool) {
        Folder::sweep(base, is_meant);
    }

    fn bind_in(
        folder: Folder,
        run: Arc<RunView>,
        gateway: Gateway,
        options: SocketOptions,
    ) -> Result<Self, SocketError> {
        let aggregated = folder.bind("mcp.sock")?;
        let place = Place { gateway, run, options: Arc::new(options) };
        let mut servers = BTreeMap::new();
        for (name, alias) in wanted(&place) {
            let socket = folder.bind(&name)?;
            servers.insert(name, (alias, socket));
        }
        Ok(Self { place, aggregated, servers, folder })
    }

    /// The folder that contains the sockets.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the socket for all servers together.
    #[must_use]
    pub fn aggregated(&self) -> &Path {
        self.aggregated.path()
    }

    /// The path of each server's socket.
    pub fn servers(&self) -> impl Iterator<Item = (&Alias, &Path)> {
        self.servers.values().map(|(alias, socket)| (alias, socket.path()))
    }

    /// Serves connections until `stop`, then lets open calls continue for the drain time. Sockets
    /// are opened and closed as the run's servers change. All sockets are removed at the end.
    pub fn serve(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.accept(stop))
    }

    async fn accept(self, stop: CancellationToken) {
        let Self { place, aggregated, servers, folder } = self;
        let room = Arc::new(Semaphore::new(place.options.connections));
        let mut changes = place.gateway.changes(&place.run);
        let mut profiles = place.gateway.registry().profile_changes();
        let mut serving =
            Serving { place, room, tasks: TaskTracker::new(), stop, folder, open: BTreeMap::new() };
        let all = serving.stop.clone();
        serving.accept(Served::Endpoint(Endpoint::Aggregated), aggregated, all);
        for (name, (alias, socket)) in servers {
            serving.begin(name, Served::Endpoint(Endpoint::Transparent(alias)), socket);
        }
        loop {
            changes.mark_seen();
            profiles.mark_unchanged();
            serving.follow();
            tokio::select! {
                biased;
                () = serving.stop.cancelled() => break,
                is_followed = changes.next() => if !is_followed {
                    break;
                },
                changed = profiles.changed() => if changed.is_err() {
                    break;
                },
            }
        }
        serving.stop.cancelled().await;
        serving.tasks.close();
        serving.tasks.wait().await;
    }
}

/// The sockets that the run's servers should have now, by file name.
fn wanted(place: &Place) -> BTreeMap<String, Alias> {
    let aliases = place.gateway.aliases(&place.run).into_iter();
    aliases.filter_map(|alias| Some((socket_name(Some(&alias))?, alias))).collect()
}

/// The profiles that clients of the run may choose, by file name.
fn profiles(place: &Place) -> BTreeMap<String, Served> {
    if !place.gateway.may_choose_profile(&place.run) {
        return BTreeMap::new();
    }
    let profiles = place.gateway.profile_runs().into_iter().filter_map(|run| run.profile());
    let names = profiles.map(|profile| profile.name().clone());
    names.map(|name| (profile_socket_name(name.as_str()), Served::Profile(name))).collect()
}

/// The end of the connections of one socket.
#[derive(Debug, Clone)]
enum Served {
    /// An endpoint of the door's run.
    Endpoint(Endpoint),
    /// The endpoint of a profile.
    Profile(ProfileName),
}

/// The state of a door that accepts connections.
struct Serving {
    place: Place,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    folder: Folder,
    /// Guards that close the servers' sockets when they are dropped.
    open: BTreeMap<String, DropGuard>,
}

impl Serving {
    /// Opens and closes sockets, so that they match the run's current servers.
    fn follow(&mut self) {
        let servers = wanted(&self.place).into_iter();
        let servers =
            servers.map(|(name, alias)| (name, Served::Endpoint(Endpoint::Transparent(alias))));
        let wanted: BTreeMap<_, _> = servers.chain(profiles(&self.place)).collect();
        self.open.retain(|name, _| wanted.contains_key(name));
        for (name, served) in wanted {
            if self.open.contains_key(&name) {
                continue;
            }
            match self.folder.bind(&name) {
                Ok(socket) => self.begin(name, served, socket),
                Err(error) => tracing::warn!("the socket {name} cannot be opened: {error}"),
            }
        }
    }

    fn begin(&mut self, name: String, served: Served, socket: Socket) {
        let stop = self.stop.child_token();
        self.open.insert(name, stop.clone().drop_guard());
        self.accept(served, socket, stop);
    }

    fn accept(&self, served: Served, socket: Socket, stop: CancellationToken) {
        let accepting = Accepting {
            place: self.place.clone(),
            served,
            room: self.room.clone(),
            tasks: self.tasks.clone(),
            stop,
        };
        self.tasks.spawn(accepting.run(socket));
    }
}

/// A listening socket that accepts connections.
struct Accepting {
    place: Place,
    served: Served,
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

    /// Serves a connection as soon as the limit permits. Its place is taken only now, after a
    /// client has connected, since all sockets share the limit.
    async fn begin(&self, stream: UnixStream) {
        let Ok(room) = self.room.clone().acquire_owned().await else { return };
        let mut place = self.place.clone();
        let endpoint = match &self.served {
            Served::Endpoint(endpoint) => endpoint.clone(),
            Served::Profile(name) => {
                // The profile may be gone: then the client finds its connection closed.
                let Some(run) = place.gateway.profile_run(name.as_str()) else { return };
                place.run = run;
                Endpoint::Aggregated
            }
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            connection::serve(place, endpoint, stream, stop).await;
            drop(room);
        });
    }
}

/// True if the system reports that the peer has our user id.
fn is_own_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}
