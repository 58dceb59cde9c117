//! `narthex up`: the daemon, from its start to the last child's end.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use narthex_http::{TokenHash, Workers};
use narthex_model::ErrorKind;
use narthex_registry::Registry;
use serde::Serialize;
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use super::source;
use crate::{
    App, AppOptions, Doors,
    cli::{Context, UpArgs},
    config,
    data_dir::{DaemonState, DataDir},
    failure::Failure,
    output,
    rows::Row,
};

/// How long threads may take to end once nothing is waited for any more.
const WORKERS_END: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: UpArgs, context: Context) -> Result<ExitCode, Failure> {
    let settings = &context.settings;
    let data = DataDir::open(&settings.data)?;
    let _lock = data.lock()?;
    let token = data.client_token()?;
    let admin = data.admin_token()?;
    let (file, loaded) = match &settings.config {
        Some(file) => (file.clone(), source::read(file)?),
        None => (source::usual(), source::read_trusted(&data)?),
    };
    let listener = listen(&settings.listen, args.allow_remote).await?;
    let address = listener.local_addr()?;
    let mut ends = stop_signal()?;
    let workers = Workers::start()?;
    let app = App::start(AppOptions {
        config: loaded,
        environment: config::base_environment(),
        deadlines: settings.deadlines,
        gateway: settings.gateway_options()?,
        token,
        audit_dir: data.audit_dir(),
        doors: Some(Doors {
            listener,
            http: settings.http_options(address, TokenHash::of(admin.expose())),
            serve: settings.serve_options(workers.clone()),
            socket_dirs: data.socket_dirs(),
        }),
    })
    .await?;
    let state = DaemonState {
        pid: std::process::id(),
        url: format!("http://{address}"),
        socket_dir: app.socket_dir().map(Path::to_owned),
        config: std::path::absolute(&file)?,
    };
    data.publish(&state)?;
    let reporter = Reporter { data: &data, context: &context, shown: Vec::new() };
    let served = serve(&app, &state, reporter, &mut ends).await;
    drain(&app).await;
    // Whatever a second signal has cut off goes with its threads, children included.
    if tokio::time::timeout(WORKERS_END, workers.stop()).await.is_err() {
        tracing::warn!("a thread is still busy and is left behind");
    }
    data.retract();
    served?;
    if context.format.is_json() {
        output::json(&Event::Stopped)?;
    } else {
        output::notice("stopped");
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    app: &App,
    state: &DaemonState,
    mut reporter: Reporter<'_>,
    ends: &mut (impl Future<Output = ()> + Unpin),
) -> Result<(), Failure> {
    reporter.listening(state)?;
    tokio::select! {
        failed = reporter.follow(app.registry()) => failed,
        () = ends => Ok(()),
    }
}

/// Drains; a second signal cuts it short, and what is left dies with its handles.
async fn drain(app: &App) {
    let Ok(again) = stop_signal() else { return app.drain().await };
    output::notice("stopping; once more to stop at once");
    tokio::select! {
        () = app.drain() => {}
        () = again => output::notice("stopped at once"),
    }
}

/// Resolves at the first SIGINT, SIGTERM or SIGHUP from now on.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()> + Unpin, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }))
}

async fn listen(address: &str, is_remote_allowed: bool) -> Result<TcpListener, Failure> {
    let addresses: Vec<SocketAddr> = match tokio::net::lookup_host(address).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            return Err(Failure::usage(format!(
                "--listen `{address}` is no address with a port, such as 127.0.0.1:7717: {error}"
            )));
        }
    };
    if !addresses.iter().all(|address| address.ip().is_loopback()) {
        if !is_remote_allowed {
            return Err(Failure::usage(format!(
                "--listen {address} can be reached from other machines, by plain HTTP that anyone \
                 between can read, tokens included; listen on 127.0.0.1, or add --allow-remote"
            )));
        }
        output::notice(&format!(
            "warning: {address} can be reached from other machines, by plain HTTP: whoever can \
             read the network reads tokens, arguments and results"
        ));
    }
    TcpListener::bind(&addresses[..]).await.map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::AddrInUse => ErrorKind::Conflict,
            std::io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            _ => ErrorKind::Unavailable,
        };
        let text = format!("cannot listen on {address}: {error}; choose another with --listen");
        Failure::new(kind, text)
    })
}

/// What a calling program is told, one line each.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    /// Callers can come.
    Listening {
        url: &'a str,
        mcp: String,
        token_file: PathBuf,
        admin_token_file: PathBuf,
        socket: Option<PathBuf>,
        pid: u32,
    },
    /// A server is new or has changed.
    Server(&'a Row),
    /// All servers have settled, for the first time.
    Ready { servers: &'a [Row] },
    /// Every child has ended.
    Stopped,
}

/// Tells the terminal or the calling program what happens.
struct Reporter<'a> {
    data: &'a DataDir,
    context: &'a Context,
    shown: Vec<Row>,
}

impl Reporter<'_> {
    fn listening(&self, state: &DaemonState) -> Result<(), Failure> {
        if self.context.format.is_json() {
            return output::json(&Event::Listening {
                url: &state.url,
                mcp: format!("{}/mcp", state.url),
                token_file: self.data.client_token_file(),
                admin_token_file: self.data.admin_token_file(),
                socket: state.socket_dir.as_ref().map(|dir| dir.join("mcp.sock")),
                pid: state.pid,
            });
        }
        output::line(&self.welcome(state))
    }

    fn welcome(&self, state: &DaemonState) -> String {
        let token_file = self.data.client_token_file();
        let http = json!({ "mcpServers": { "narthex": {
            "type": "http",
            "url": format!("{}/mcp", state.url),
            "headers": { "Authorization": format!("Bearer <see {}>", token_file.display()) },
        } } });
        let stdio = json!({ "mcpServers": { "narthex": {
            "command": Path::new(&config::program()),
            "args": ["connect", "--data", self.data.path()],
        } } });
        let socket = state.socket_dir.as_ref().map(|dir| dir.join("mcp.sock"));
        let socket = socket.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        format!(
            "narthex listens on {0}\n\n  all servers  {0}/mcp\n  one server   {0}/mcp/ALIAS\n  \
             socket       {socket}\n  token        {1}\n\n\
             For a client that speaks HTTP:\n\n{http:#}\n\n\
             For a client that starts programs:\n\n{stdio:#}\n",
            state.url,
            token_file.display(),
        )
    }

    /// Reports changes of servers for as long as it is polled.
    async fn follow(&mut self, registry: &Registry) -> Result<(), Failure> {
        let mut changes = registry.changes();
        let mut is_ready = false;
        loop {
            changes.borrow_and_update();
            let snapshot = registry.snapshot();
            let rows = Row::all(&snapshot);
            if rows != self.shown {
                self.changed(&rows)?;
                self.shown = rows;
            }
            if !is_ready && snapshot.is_settled() {
                is_ready = true;
                self.ready()?;
            }
            if changes.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    fn changed(&self, rows: &[Row]) -> Result<(), Failure> {
        for row in rows {
            let before = self.shown.iter().find(|before| before.alias == row.alias);
            if before == Some(row) {
                continue;
            }
            if self.context.format.is_json() {
                output::json(&Event::Server(row))?;
            } else if row.status.is_settled() || before.is_some() {
                output::line(&format!("{:<16} {}", row.alias, row.summary()))?;
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
