//! Starts a daemon for another command: the installed service, or a process in the background.

use std::{
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use narthex_model::{ErrorKind, command::narthex};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    Context, Failure,
    data_dir::{DAEMON_LOG, DaemonState, DataDir},
    environment, output,
    service::{self, FAILED, Manager},
};

/// The time in which a daemon has to listen. Servers start later.
pub const LISTENING: Duration = Duration::from_secs(60);
/// The pause between two questions to the manager of services.
const LOOK: Duration = Duration::from_secs(1);
/// The pause between two looks for it.
const PAUSE: Duration = Duration::from_millis(50);

/// The daemon that is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// True for a daemon of the current folder. Otherwise it is the one of all clients: the
    /// installed service, or a daemon in the home folder.
    pub is_of_folder: bool,
    /// The file of servers, if the command line names one.
    pub config: Option<&'a Path>,
    /// The file of the user's servers, if the command line names one.
    pub servers: Option<&'a Path>,
}

/// A start under way.
#[derive(Debug)]
pub enum Starting {
    /// The manager of services starts the daemon, and is asked from time to time.
    Service {
        /// The time of the next question.
        next: Instant,
    },
    /// A command that ends when its daemon listens, or has failed.
    Command(Box<Child>),
}

impl Starting {
    /// Starts the service of this data directory, or else a daemon in the background.
    ///
    /// # Errors
    /// When neither can be started.
    pub async fn begin(wanted: Wanted<'_>, context: &Context) -> Result<Self, Failure> {
        if !wanted.is_of_folder && starts_service(context).await? {
            return Ok(Self::Service { next: Instant::now() + LOOK });
        }
        let options = &context.daemon;
        let data = DataDir::open(&options.data)?;
        let mut command = Command::new(environment::program());
        command.args(["up", "--detach", "--json", "--data"]).arg(data.path());
        let files = [
            ("--settings", options.settings.as_deref()),
            ("--config", wanted.config),
            ("--servers", wanted.servers),
        ];
        for (flag, file) in files {
            if let Some(file) = file {
                command.arg(flag).arg(file);
            }
        }
        // All clients share the daemon, and each is started in a folder of its own.
        if !wanted.is_of_folder
            && let Some(home) = environment::home(&environment::variable)
        {
            command.current_dir(home);
        }
        // Standard output is the client's.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let log = data.path().join(DAEMON_LOG);
        output::notice(&format!("starting a daemon; its log is {}", log.display()));
        Ok(Self::Command(Box::new(command.spawn()?)))
    }

    /// Fails if the start has failed.
    ///
    /// # Errors
    /// The failure of the start.
    pub async fn check(&mut self) -> Result<(), Failure> {
        let child = match self {
            Self::Command(child) => child,
            Self::Service { next } if Instant::now() < *next => return Ok(()),
            Self::Service { next } => {
                *next = Instant::now() + LOOK;
                return check_service().await;
            }
        };
        match child.try_wait()? {
            Some(status) if !status.success() => {
                let mut text = Vec::new();
                if let Some(output) = &mut child.stdout {
                    output.read_to_end(&mut text)?;
                }
                let said: Value = serde_json::from_slice(&text).unwrap_or_default();
                let said = said["error"]["message"].as_str().map(str::to_owned);
                let text = said.unwrap_or_else(|| format!("the daemon failed to start ({status})"));
                Err(Failure::new(ErrorKind::Unavailable, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until the daemon listens.
    ///
    /// # Errors
    /// When the start has failed, or takes over a minute.
    pub async fn listening(&mut self, data: &DataDir) -> Result<(), Failure> {
        listening(data, LISTENING, async || self.check().await).await.map(drop)
    }
}

/// Waits until a daemon of the data directory listens. A failure of `check` ends the wait.
///
/// # Errors
/// The failure of `check`, or that no daemon listens in this time.
pub async fn listening(
    data: &DataDir,
    within: Duration,
    mut check: impl AsyncFnMut() -> Result<(), Failure>,
) -> Result<DaemonState, Failure> {
    let end = Instant::now() + within;
    loop {
        if let Some(state) = data.running()? {
            return Ok(state);
        }
        check().await?;
        if Instant::now() >= end {
            let text = format!(
                "the daemon does not listen after {} s; its log says more: `{}`",
                within.as_secs(),
                narthex("service logs", &[])
            );
            return Err(Failure::new(ErrorKind::Timeout, text));
        }
        sleep(PAUSE).await;
    }
}

/// Fails if the manager has given the service up. One that cannot be asked says nothing about it.
async fn check_service() -> Result<(), Failure> {
    match Manager::of(false)?.reached().await {
        Ok(state) if state.word == FAILED => {
            let text = format!(
                "the service cannot start; its log has the reason: `{}`",
                narthex("service logs", &[])
            );
            Err(Failure::new(ErrorKind::Unavailable, text))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Has the manager start the installed service; false if there is none for this data directory, or
/// if the manager cannot be reached from here.
async fn starts_service(context: &Context) -> Result<bool, Failure> {
    let manager = Manager::of(false)?;
    let Ok(file) = manager.file() else { return Ok(false) };
    let text = fs_err::read_to_string(&file).unwrap_or_default();
    if !service::is_ours(&text) || !service::is_about(&text, manager, &context.daemon.data) {
        return Ok(false);
    }
    match service::run(&manager.start()).await {
        Ok(_) => {
            output::notice("starting the service");
            Ok(true)
        }
        Err(failure) => {
            output::notice(&format!("the service cannot be started: {}", failure.message));
            Ok(false)
        }
    }
}
