//! An app in this process, without doors, for one command.

use std::{sync::Mutex, time::Duration};

use narthex_executor::Executors;
use narthex_gateway::RunToken;
use narthex_model::ErrorKind;
use narthex_oauth_client::SharedClients;
use narthex_policy::RunPolicy;
use narthex_registry::config::LoadedConfig;

use super::progress::Progress;
use crate::{
    App, AppOptions, Failure, Servers, app::no_randomness, cli::Context, config, data_dir::DataDir,
    stop::stop_signal,
};

/// Longer than any server may take to settle by its own limits.
const SETTLED: Duration = Duration::from_secs(3600);

/// Starts it; `call_timeout` replaces the setting.
pub(super) async fn start(
    loaded: LoadedConfig,
    call_timeout: Option<Duration>,
    context: &Context,
) -> Result<App, Failure> {
    let data = DataDir::open(&context.settings.daemon.data)?;
    let token = RunToken::generate().map_err(|error| no_randomness(&error))?;
    let mut gateway = context.settings.gateway_options(crate::app::node_id()?);
    gateway.call_timeout = call_timeout.unwrap_or(gateway.call_timeout);
    let options = AppOptions {
        servers: Servers::Fixed(loaded),
        environment: config::base_environment(),
        gateway,
        connections: context.settings.connections.clone(),
        policy: RunPolicy::AllAttached,
        token,
        audit_dir: data.audit_dir(),
        work_dir: data.path().to_owned(),
        executors: Executors::default(),
        client_metadata_url: None,
        shared_clients: SharedClients::default(),
        doors: None,
    };
    App::start(options).await
}

/// Does the command's work, unless a signal comes first, and drains in any case.
pub(super) async fn run<T>(
    app: &App,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let done = match stop_signal() {
        Err(failure) => Err(failure),
        Ok(stopped) => tokio::select! {
            done = work => done,
            () = stopped => Err(Failure::new(ErrorKind::Unavailable, "interrupted")),
        },
    };
    app.drain().await;
    done
}

/// Waits until every server is ready or has failed, and shows the present work of each server.
pub(super) async fn settle(app: &App) {
    let progress = Mutex::new(Progress::new());
    let settled = app.registry().wait_until(SETTLED, |snapshot| {
        if let Ok(mut progress) = progress.lock() {
            progress.show(&snapshot.servers);
        }
        snapshot.is_settled()
    });
    drop(settled.await);
}
