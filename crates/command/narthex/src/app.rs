//! The assembly: configuration, registry, gateway and doors, and their shutdown.

mod begin;
mod in_process;
mod parts;
mod sign_ins;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use narthex_audit::{Audit, AuditError, AuditSettings};
use narthex_client::door::local_url;
use narthex_control::{Control, ControlOptions, StoreLedger};
use narthex_executor::{ExecutorOptions, Executors};
use narthex_gateway::{Caller, Endpoint, Gateway, GatewayOptions, RunToken, RunView};
use narthex_http::HttpOptions;
use narthex_http::listener::{ServeOptions, Workers};
use narthex_model::{Alias, ErrorKind, with_causes};
use narthex_oauth_client::SharedClients;
use narthex_outbound::Outbound;
use narthex_policy::RunPolicy;
use narthex_registry::{Registry, RegistryOptions, config::LoadedConfig};
use narthex_runs::{Runs, RunsOptions, ShareOptions};
use narthex_socket::{SocketDoor, SocketError, SocketOptions};
use narthex_supervisor::BaseEnvironment;
use narthex_upstream::ClientIdentity;
use narthex_wire::Revision;
use rustix::{fs::Access, io::Errno};
use tokio::{net::TcpListener, sync::OnceCell};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use self::{
    begin::{begin, begin_run, begin_runs, post},
    parts::{disabled, keeps_definitions, local_run, shared, supervision},
    sign_ins::Wanted,
};
use crate::{ConnectionOptions, Failure, config, run_sockets::RunFolders};

/// The parts and options of an [`App`].
#[derive(Debug)]
pub struct AppOptions {
    /// The servers.
    pub servers: Servers,
    /// The environment of every child process.
    pub environment: BaseEnvironment,
    /// Limits of the connections to servers.
    pub connections: ConnectionOptions,
    /// Limits and names of the data plane.
    pub gateway: GatewayOptions,
    /// The servers of the run `local`.
    pub policy: RunPolicy,
    /// The token of the run `local`.
    pub token: RunToken,
    /// The folder of the audit record; created if it is missing.
    pub audit_dir: PathBuf,
    /// The folder with the sessions' folders, and files about runs.
    pub work_dir: PathBuf,
    /// The programs that carry runs out.
    pub executors: Executors,
    /// The address of narthex's client id metadata document, if it is elsewhere.
    pub client_metadata_url: Option<Url>,
    /// The apps that an operator has registered at providers of servers.
    pub shared_clients: SharedClients,
    /// The doors; `None` for a call in process.
    pub doors: Option<Doors>,
}

/// The source of the servers.
#[derive(Debug)]
pub enum Servers {
    /// Fixed servers, for as long as the app lives.
    Fixed(LoadedConfig),
    /// The servers in followed files.
    Followed(Box<ControlOptions>),
}

/// The doors for callers from outside.
#[derive(Debug)]
pub struct Doors {
    /// The listener for HTTP, already bound.
    pub listener: TcpListener,
    /// The limits and options of HTTP requests.
    pub http: HttpOptions,
    /// Limits of HTTP connections.
    pub serve: ServeOptions,
    /// Folders for Unix sockets: the first one with a short enough path is used.
    pub socket_dirs: Vec<PathBuf>,
    /// The storage of shared files.
    pub shares: ShareOptions,
    /// Hosts to which messages may be posted at any address, and without TLS.
    pub post_hosts: Vec<String>,
}

impl Doors {
    /// The address of a path, for callers on this machine. With TLS it has a name that the
    /// certificate is for.
    fn url(&self, control: Option<&Control>, path: &str) -> Option<String> {
        let origin = control.and_then(Control::sign_in_origin);
        if let Some(origin) = origin.filter(|_| self.serve.tls.is_some()) {
            return Some(origin.at(path));
        }
        let base = local_url(self.listener.local_addr().ok()?, self.serve.tls.is_some());
        Some(format!("{base}{path}"))
    }
}

/// The address of the built-in server, for callers on this machine.
fn built_in_url(doors: Option<&Doors>, control: &Control) -> Option<String> {
    doors?.url(Some(control), &format!("/mcp/{}", Alias::built_in()))
}

/// A running gateway with all its parts. Call [`App::drain`] before dropping it: otherwise its
/// children are killed at once.
#[derive(Debug)]
pub struct App {
    gateway: Gateway,
    /// The control plane, if the servers come from files.
    control: Option<Control>,
    runs: Option<Runs>,
    local: Arc<RunView>,
    /// The environment of every child process.
    environment: BaseEnvironment,
    /// Cancelled when the app accepts no more callers.
    closing: CancellationToken,
    /// The doors' tasks.
    tasks: TaskTracker,
    /// The folder of the Unix sockets, if there are any.
    socket_dir: Option<PathBuf>,
    drained: OnceCell<()>,
    /// The last field, so that it is dropped last: its threads run the tasks of the other fields.
    _workers: Workers,
}

/// The threads that serve connections, which live as long as the app.
fn workers(doors: Option<&Doors>) -> Workers {
    doors.map(|doors| doors.serve.workers.clone()).unwrap_or_default()
}

/// Checks the steps of [`App::start`] that follow once a start takes over from another program:
/// the audit record and the confinement. Changes nothing.
///
/// # Errors
/// The failure of the step.
pub(crate) fn check(audit_dir: &Path, is_strict: bool) -> Result<(), Failure> {
    let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::access(audit_dir, wanted) {
        // The start creates the folder.
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => {
            let (folder, source) = (audit_dir.to_owned(), error.into());
            return Err(unrecorded(&AuditError::Folder { folder, source }));
        }
    }
    Audit::check(audit_dir).map_err(|error| unrecorded(&error))?;
    supervision(is_strict).map(drop)
}

/// The parts from which the sign-ins to servers are made.
fn wanted(options: &AppOptions) -> Wanted<'_> {
    let door = options.doors.as_ref();
    Wanted {
        followed: match &options.servers {
            Servers::Followed(of) => Some(of),
            Servers::Fixed(_) => None,
        },
        door: door
            .and_then(|door| Some((door.listener.local_addr().ok()?, door.serve.tls.is_some()))),
        client_metadata_url: options.client_metadata_url.as_ref(),
        shared_clients: &options.shared_clients,
        proxies: &options.connections.proxies,
        owner: &options.gateway.node_id,
    }
}

fn open_audit(folder: &Path) -> Result<Audit, Failure> {
    Audit::open(folder, &AuditSettings::default()).map_err(|error| unrecorded(&error))
}

fn unrecorded(error: &AuditError) -> Failure {
    Failure::new(ErrorKind::Unavailable, with_causes(error))
}

impl App {
    /// Starts all parts. Servers are still connecting when this returns.
    ///
    /// # Errors
    /// When the audit record or a door cannot be opened.
    pub async fn start(options: AppOptions) -> Result<Self, Failure> {
        let audit = open_audit(&options.audit_dir)?;
        let (sign_ins, credentials) = wanted(&options).open();
        let registry = Registry::new(RegistryOptions {
            deadlines: options.connections.deadlines,
            limits: options.gateway.limits,
            disabled: disabled(&options.servers).await?,
            has_pins: keeps_definitions(&options.servers),
            idle_stop: options.connections.idle_stop,
            children_max: options.connections.processes_max,
            supervision: supervision(options.connections.is_strict)?,
            proxies: options.connections.proxies,
            credentials: Some(credentials),
            ..RegistryOptions::new(identity(), options.environment.clone())
        })
        .map_err(|error| no_randomness(&error))?;
        let (meters, granted) = shared(&options.servers);
        let local = local_run(&options.token, options.policy, &meters, granted)?;
        let gateway = GatewayOptions { meters, ..options.gateway };
        let gateway = Gateway::new(registry.clone(), audit.clone(), gateway)
            .map_err(|error| no_randomness(&error))?;
        begin_run(&gateway, &local)?;
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        // First, so that no door is ever asked about an empty set of servers.
        let control = begin(registry, options.servers, sign_ins.as_ref(), audit).await?;
        sign_ins::begin(sign_ins, control.as_ref(), &gateway);
        gateway.follow_profiles(&local);
        let mut outbound = None;
        let runs = match &control {
            None => None,
            Some(control) => {
                gateway.set_ledger(Arc::new(StoreLedger::new(control.clone())));
                let runs = RunsOptions {
                    workspace_root: config::workspace_root()?,
                    env: Arc::new(config::placeholder),
                    start_timeout: options.connections.mount,
                    local: local.id,
                    built_in_url: built_in_url(options.doors.as_ref(), control),
                    folders: options.work_dir.join("folders"),
                    sockets: options.doors.as_ref().map(|doors| {
                        let (dirs, gateway) = (doors.socket_dirs.clone(), gateway.clone());
                        let (closing, tasks) = (closing.clone(), tasks.clone());
                        Arc::new(RunFolders::new(gateway, dirs, closing, tasks)) as Arc<_>
                    }),
                    shares: options.doors.as_ref().map(|doors| doors.shares.clone()),
                };
                let runs = Runs::new(gateway.clone(), control.clone(), runs);
                outbound = options.doors.as_ref().map(|doors| post(&gateway, control, doors));
                Box::pin(begin_runs(&gateway, control, &runs, outbound.clone())).await?;
                Some(runs)
            }
        };
        let mut app = Self {
            gateway,
            control,
            runs,
            local,
            environment: options.environment,
            closing,
            tasks,
            socket_dir: None,
            drained: OnceCell::new(),
            _workers: workers(options.doors.as_ref()),
        };
        if let Some(doors) = options.doors {
            let url = doors.url(app.control.as_ref(), "/mcp");
            app.open(doors, outbound);
            app.carry_out(options.executors, options.work_dir, url).await?;
        }
        Ok(app)
    }

    /// Has runs carried out that wait for these.
    async fn carry_out(
        &self,
        executors: Executors,
        work_dir: PathBuf,
        url: Option<String>,
    ) -> Result<(), Failure> {
        let (Some(control), Some(runs), Some(url)) = (&self.control, &self.runs, url) else {
            return Ok(());
        };
        let environment = self.environment.clone();
        let place = work_dir.join("executors");
        let options = ExecutorOptions { executors, environment, url, place };
        let started = narthex_executor::start(runs.clone(), control.clone(), options).await;
        started.map_err(|error| Failure::new(error.kind(), with_causes(&error)))
    }

    fn open(&mut self, doors: Doors, outbound: Option<Outbound>) {
        let Doors { listener, mut http, serve, socket_dirs, .. } = doors;
        http.is_tls = serve.tls.is_some();
        http.outbound = outbound;
        http.closing = self.closing.clone();
        http.control.clone_from(&self.control);
        http.runs.clone_from(&self.runs);
        let router = narthex_http::router(self.gateway.clone(), http);
        let (closing, tasks) = (self.closing.clone(), self.tasks.clone());
        self.tasks.spawn(router.serve(listener, serve, closing, tasks));
        for dir in socket_dirs {
            match self.open_sockets(&dir) {
                Ok(()) => {
                    self.socket_dir = Some(dir);
                    break;
                }
                Err(error @ SocketError::PathTooLong { .. }) => tracing::debug!(%error),
                // The other doors work without it.
                Err(error) => {
                    tracing::warn!("no Unix sockets: {}", with_causes(&error));
                    break;
                }
            }
        }
    }

    fn open_sockets(&self, dir: &Path) -> Result<(), SocketError> {
        let (run, gateway) = (self.local.clone(), self.gateway.clone());
        let door = SocketDoor::bind(dir, run, gateway, SocketOptions::default())?;
        self.tasks.spawn(door.serve(self.closing.clone()));
        Ok(())
    }

    /// The data plane.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The servers.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        self.gateway.registry()
    }

    /// The control plane; `None` if the servers are fixed.
    #[must_use]
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// The folder of the Unix sockets.
    #[must_use]
    pub fn socket_dir(&self) -> Option<&Path> {
        self.socket_dir.as_deref()
    }

    /// This process itself as a caller, for modern requests.
    #[must_use]
    pub fn local_caller(&self, endpoint: Endpoint) -> Caller {
        Caller::new(self.local.clone(), endpoint, None)
    }

    /// Shuts the app down: accepts no more callers, lets open calls finish for a limited time, ends
    /// sessions, and stops every child. A second caller waits for the same shutdown.
    pub async fn drain(&self) {
        self.drained.get_or_init(|| self.end()).await;
    }

    async fn end(&self) {
        self.closing.cancel();
        self.tasks.close();
        // From now on nothing starts that would have to be stopped (E126).
        if let Some(control) = &self.control {
            // Their tokens are in the store, which closes with the control plane.
            sign_ins::close(control).await;
            control.close().await;
        }
        // Servers are needed until the doors have given their last answer, and the gateway stops
        // them when its own tasks have ended: so the doors' end is one of these. Each step of the
        // gateway's end has a deadline, so that no caller and no server can hold it up for long.
        let doors = self.tasks.clone();
        self.gateway.tasks().spawn(async move { doors.wait().await });
        self.gateway.drain().await;
    }
}

/// The identity that narthex shows to servers.
fn identity() -> ClientIdentity {
    let info = concat!(r#"{"name":"narthex","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
    ClientIdentity {
        info: Bytes::from_static(info.as_bytes()),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    }
}

/// Tells this process from others behind the same name (D26).
pub(crate) fn node_id() -> Result<String, Failure> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|error| no_randomness(&error))?;
    Ok(hex::encode(bytes))
}

pub(crate) fn no_randomness(error: &getrandom::Error) -> Failure {
    let text = format!("the operating system gives no random bytes: {error}");
    Failure::new(ErrorKind::Unavailable, text)
}
