//! `narthex up`: the daemon, from its start to the end of its last child.

mod background;
mod door;
mod event;
mod handover;
mod listen;
mod notify;
mod prepared;
mod published;
mod steps;
mod warnings;

use std::{
    net::SocketAddr,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use narthex_client::{cli::UpArgs, door::local_url};
use narthex_control::Control;
use narthex_http::listener::{Leaving, ServeOptions, Workers};
use narthex_http::{HttpOptions, TokenHash};
use narthex_model::command::{narthex, quoted};
use narthex_registry::watch::LayersEvent;
use narthex_tls::Identity;
use serde_json::json;

use self::{
    door::Door, event::Event, handover::Heir, prepared::Prepared, published::Published,
    steps::Steps,
};
use super::{setup::own_machine::own_machine, source};
use crate::{
    App, AppOptions, Doors, Failure, Servers,
    app::node_id,
    cli::Context,
    config,
    data_dir::{DaemonState, DataDir},
    elsewhere::Elsewhere,
    output::{self, harmless},
    rows::Row,
    server_rows,
    stop::stop_signal_with,
    stored::StorePlace,
};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The time in which clients have to leave a daemon that hands its listener over.
const LEAVING: Duration = Duration::from_secs(3);
/// The time in which threads have to end once nothing is waited for any more.
const WORKERS_END: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: UpArgs, context: Context) -> Result<ExitCode, Failure> {
    let data = DataDir::open(&context.settings.daemon.data)?;
    if args.detach {
        return background::start(&data, &context).await;
    }
    // A program that takes over leads the session of the one before it, which was the same process.
    if args.background && !args.handed_over {
        background::leave_session()?;
    }
    if args.check {
        return Box::pin(check(args, data, context)).await;
    }
    Box::pin(daemon(args, data, context)).await
}

/// Does the part of a start before it serves, beside the daemon that is to be replaced: its store
/// is only read.
async fn check(args: UpArgs, data: DataDir, context: Context) -> Result<ExitCode, Failure> {
    let place = StorePlace::of(&data, &context.settings).read_only();
    drop(Box::pin(Prepared::new(&args, &data, &place, &context.settings)).await?);
    output::told(&json!({ "version": VERSION }), VERSION, context.format)
}

/// Runs the daemon in this process.
async fn daemon(args: UpArgs, data: DataDir, context: Context) -> Result<ExitCode, Failure> {
    let settings = &context.settings;
    let place = StorePlace::of(&data, settings);
    let prepared = Box::pin(Prepared::new(&args, &data, &place, settings)).await?;
    let Prepared { lock, token, admin, store, followed, shares, listener, door } = prepared;
    if args.handed_over {
        // The program before may have been one that wrote less.
        lock.sign()?;
    }
    let file = settings.config.clone().unwrap_or_else(source::usual);
    let heir = Heir::of(&listener, &lock)?;
    let (leaving, address, tls) = (Leaving::default(), listener.local_addr()?, door.tls());
    let mut ends = stop_signal_with(door.hangup())?;
    let workers = Workers::start()?;
    let app = App::start(AppOptions {
        servers: Servers::Followed(Box::new(followed)),
        environment: config::base_environment(),
        connections: settings.connections.clone(),
        gateway: settings.gateway_options(node_id()?),
        policy: settings.policy.clone(),
        token,
        audit_dir: data.audit_dir(),
        work_dir: data.path().to_owned(),
        executors: settings.executors.clone(),
        client_metadata_url: settings.sign_in.client_metadata_url().cloned(),
        shared_clients: settings.sign_in.shared_clients().clone(),
        doors: Some(Doors {
            listener,
            http: http_options(settings, &data, address, TokenHash::of(admin.expose())),
            serve: ServeOptions {
                tls,
                leaving: leaving.clone(),
                ..settings.serve_options(workers.clone())
            },
            socket_dirs: data.socket_dirs(config::runtime_dir()),
            shares,
            post_hosts: settings.post_hosts.clone(),
        }),
    })
    .await?;
    warnings::tell_unknown(&settings.policy, &app.registry().snapshot());
    warnings::tell_unproved(settings, app.control()).await;
    let state = DaemonState {
        pid: std::process::id(),
        url: local_url(address, door.is_tls()),
        socket_dir: app.socket_dir().map(Path::to_owned),
        config: std::path::absolute(&file)?,
        store: Some(store),
        fingerprints: door.identity().map(Identity::fingerprint).into_iter().collect(),
        can_restart: true,
        generation: node_id()?,
        version: Some(VERSION.to_owned()),
        refused: None,
    };
    listen::keep(&args, settings, &data, address.port())?;
    let steps = Steps { is_background: args.background };
    steps.listening(VERSION, &state);
    let published = Published::begin(&data, state)?;
    notify::ready();
    let reporter = Reporter { data: &data, context: &context, shown: Vec::new() };
    let running = Running { app, door, published, leaving, workers, heir, steps };
    let successor = running.until_the_end(reporter, &mut ends).await?;
    if let Some(command) = successor {
        context.successor.set(command);
    } else if context.format.is_json() {
        output::json(&Event::Stopped)?;
    } else {
        steps.tell("stopped");
    }
    Ok(ExitCode::SUCCESS)
}

/// Conditions on HTTP requests, and the machine whose files of clients the console may write.
fn http_options(
    settings: &config::Settings,
    data: &DataDir,
    address: SocketAddr,
    admin: TokenHash,
) -> HttpOptions {
    let own_machine = own_machine(settings, data, address);
    HttpOptions { own_machine, ..settings.http_options(address, admin) }
}

/// A daemon that listens.
struct Running<'a> {
    app: App,
    door: Door,
    published: Published<'a>,
    /// The leave of clients before a hand-over.
    leaving: Leaving,
    workers: Workers,
    heir: Heir,
    steps: Steps,
}

/// The reason why a daemon serves no longer.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It was asked to stop.
    Stop,
    /// Another program takes its place.
    HandOver,
}

impl Running<'_> {
    /// Serves until the daemon is asked to stop or to hand over, and drains. Gives the program that
    /// takes its place.
    async fn until_the_end(
        mut self,
        reporter: Reporter<'_>,
        ends: &mut (impl Future<Output = ()> + Unpin),
    ) -> Result<Option<Command>, Failure> {
        let mut served = self.serve(reporter, ends).await;
        if let Ok(End::HandOver) = served {
            served = self.begin_handover(ends).await;
        }
        if !matches!(served, Ok(End::HandOver)) {
            // Before the doors close: a free port may be taken by others, who would be shown
            // tokens.
            self.published.retract();
        }
        let is_drained = self.steps.drain(&self.app, self.door.hangup()).await;
        // Work that a second signal has stopped goes with its threads, children included.
        if tokio::time::timeout(WORKERS_END, self.workers.stop()).await.is_err() {
            tracing::warn!("a worker thread did not stop in time; it ends with the process");
        }
        match served? {
            End::HandOver if is_drained => self.heir.successor().map(Some),
            End::HandOver => {
                self.published.retract();
                Ok(None)
            }
            End::Stop => Ok(None),
        }
    }

    async fn serve(
        &mut self,
        mut reporter: Reporter<'_>,
        ends: &mut (impl Future<Output = ()> + Unpin),
    ) -> Result<End, Failure> {
        let Self { app, door, heir, published, .. } = self;
        reporter.listening(&published.state(), door)?;
        let renewal = door.renew(published, reporter.context.format.is_json());
        tokio::select! {
            failed = reporter.follow(app) => failed.map(|()| End::Stop),
            failed = renewal => failed.map(|never| match never {}),
            due = heir.is_due(published) => due.map(|()| End::HandOver),
            () = ends => Ok(End::Stop),
        }
    }

    /// Has clients leave: their next connections wait for the next program.
    async fn begin_handover(
        &mut self,
        ends: &mut (impl Future<Output = ()> + Unpin),
    ) -> Result<End, Failure> {
        self.published.change(|state| state.can_restart = false)?;
        self.steps.tell("restarting: open calls finish, and new ones wait");
        tokio::select! {
            () = self.leaving.begin(LEAVING) => Ok(End::HandOver),
            () = ends => Ok(End::Stop),
        }
    }
}

/// Reports events to the terminal or the calling program.
struct Reporter<'a> {
    data: &'a DataDir,
    context: &'a Context,
    shown: Vec<Row>,
}

impl Reporter<'_> {
    fn listening(&self, state: &DaemonState, door: &Door) -> Result<(), Failure> {
        if self.context.format.is_json() {
            return output::json(&Event::Listening {
                url: &state.url,
                mcp: format!("{}/mcp", state.url),
                token_file: self.data.client_token_file(),
                admin_token_file: self.data.admin_token_file(),
                socket: state.socket_dir.as_ref().map(|dir| dir.join("mcp.sock")),
                pid: state.pid,
                fingerprint: state.fingerprints.first().copied(),
            });
        }
        output::line(&self.welcome(state, door)?)
    }

    fn welcome(&self, state: &DaemonState, door: &Door) -> Result<String, Failure> {
        let token_file = self.data.client_token_file();
        // The certificate of files is for the public name.
        let public = self.context.settings.sign_in.public_url().filter(|_| door.is_tls());
        let url = public.unwrap_or(&state.url);
        // The usual folder needs no flag.
        let mut arguments = Elsewhere::of(&self.context.settings).arguments()?;
        arguments.insert(0, "connect".to_owned());
        let stdio = json!({ "mcpServers": { "narthex": {
            "command": Path::new(&config::program()),
            "args": arguments,
        } } });
        let socket = state.socket_dir.as_ref().map(|dir| dir.join("mcp.sock"));
        let socket = socket.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        let token_file = token_file.display().to_string();
        Ok(format!(
            "narthex listens on {url}\n\n  all servers  {url}/mcp\n  \
             one server   {url}/mcp/NAME\n  socket       {socket}\n  token        {token_file}\n\
             {}\n\
             This connects the MCP clients of this machine, and asks first:\n\n  {}\n\n\
             By hand, a client that starts programs takes this:\n\n{stdio:#}\n\n\
             A client that speaks HTTP takes the address {url}/mcp\n\
             and a header, which this prints:\n\n  echo \"Authorization: Bearer $(cat {})\"\n",
            door.certificate_lines(),
            narthex("setup", &[]),
            quoted(&token_file),
        ))
    }

    /// Reports changes of servers and of their files, for as long as the future is polled.
    async fn follow(&mut self, app: &App) -> Result<(), Failure> {
        let registry = app.registry();
        let mut changes = registry.changes();
        let mut files = app.control().map(Control::file_events);
        let mut is_ready = false;
        loop {
            changes.borrow_and_update();
            let snapshot = registry.snapshot();
            let rows = server_rows::all(&snapshot);
            if rows != self.shown {
                self.changed(&rows)?;
                self.shown = rows;
            }
            if !is_ready && snapshot.is_settled() {
                is_ready = true;
                self.ready()?;
            }
            let file_event = async {
                match &mut files {
                    Some(files) => files.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return Ok(());
                },
                event = file_event => match event {
                    Some(event) => self.file(&event)?,
                    None => files = None,
                },
            }
        }
    }

    /// Reports the result of a file's change.
    fn file(&self, event: &LayersEvent) -> Result<(), Failure> {
        let (file, error, is_gone) = match event {
            LayersEvent::Changed { warnings, .. } => {
                if !self.context.format.is_json() {
                    output::notice("the configuration has changed");
                    if !narthex_telemetry::tells_of_files() {
                        warnings.iter().for_each(|one| output::notice(&format!("warning: {one}")));
                    }
                }
                return Ok(());
            }
            LayersEvent::Failed { file, error } => (file, Some(error.to_string()), false),
            LayersEvent::Recovered { file } => (file, None, false),
            LayersEvent::Gone { file } => (file, None, true),
        };
        if self.context.format.is_json() {
            return output::json(&Event::File { file, error, is_gone });
        }
        if (error.is_some() || is_gone) && narthex_telemetry::tells_of_files() {
            return Ok(());
        }
        let file = file.display();
        output::notice(&match error {
            // The error begins with the file.
            Some(error) => format!("{error}; the daemon uses its earlier content"),
            None if is_gone => {
                format!("{file} was deleted or moved; its servers are unavailable until it is back")
            }
            None => format!("{file} can be used again"),
        });
        Ok(())
    }

    fn changed(&self, rows: &[Row]) -> Result<(), Failure> {
        for gone in self.shown.iter().filter(|one| !rows.iter().any(|row| row.alias == one.alias)) {
            match self.context.format.is_json() {
                true => output::json(&Event::Removed { alias: &gone.alias })?,
                false => output::line(&format!("{:<16} removed", harmless(&gone.alias)))?,
            }
        }
        for row in rows {
            let before = self.shown.iter().find(|before| before.alias == row.alias);
            if before == Some(row) {
                continue;
            }
            if self.context.format.is_json() {
                output::json(&Event::Server(row))?;
            } else if row.status.is_settled() || before.is_some() {
                let (name, summary) = (harmless(&row.alias), harmless(&row.summary()));
                output::sentence(&format!("{name:<16} {summary}"))?;
            }
        }
        Ok(())
    }

    fn ready(&self) -> Result<(), Failure> {
        if self.context.format.is_json() {
            return output::json(&Event::Ready { servers: &self.shown });
        }
        Ok(())
    }
}
