//! Finds the daemon's socket, waits for it for a limited time, and can start a daemon.

use std::{convert::Infallible, io, path::Path, time::Duration};

use crate::cli::ConnectArgs;
use narthex_model::{ErrorKind, command::narthex, did_you_mean};
use tokio::{
    net::UnixStream,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Context, Failure,
    daemon_client::DaemonClient,
    data_dir::DataDir,
    output,
    starting::{Starting, Wanted},
};

/// The longest wait for the first lists of a daemon that has just started.
const LISTS: Duration = Duration::from_secs(10);
/// The pause between two looks for a daemon.
const PAUSE: Duration = Duration::from_millis(200);
/// The code of a failure without a daemon.
const DOWN: &str = "daemon_down";

/// Dials the daemon of a data directory.
pub(super) struct Dialer<'a> {
    args: &'a ConnectArgs,
    context: &'a Context,
    /// True if there was a connection before: a missing server may then come back.
    has_dialed: bool,
    /// True if a daemon was started here, whose servers may come later than its socket.
    has_started: bool,
    /// Cancelled when the client has closed standard input: no further daemon is waited for.
    closed: CancellationToken,
}

/// One wait for a daemon.
pub(super) struct Wait {
    end: Instant,
    /// The reason of the wait, once a notice has named it.
    told: Option<String>,
}

/// Why there is no connection.
enum Fault {
    /// A later attempt may succeed.
    Passing(Failure),
    /// No later attempt can succeed.
    Lasting(Failure),
}

impl<'a> Dialer<'a> {
    pub(super) fn new(
        args: &'a ConnectArgs,
        context: &'a Context,
        closed: CancellationToken,
    ) -> Self {
        Self { args, context, has_dialed: false, has_started: false, closed }
    }

    /// A wait for a daemon that begins now.
    pub(super) fn wait(&self) -> Wait {
        Wait { end: Instant::now() + self.args.wait, told: None }
    }

    /// Waits a moment before the next try; false, at once, if the time is over or the client has
    /// closed standard input.
    pub(super) async fn pauses(&self, wait: &Wait) -> bool {
        if self.is_over(wait) {
            return false;
        }
        self.pause().await;
        true
    }

    async fn pause(&self) {
        tokio::select! {
            () = sleep(PAUSE) => {}
            () = self.closed.cancelled(), if !self.starts() => {}
        }
    }

    /// True if no daemon is waited for any more. A daemon that is started here answers the requests
    /// from before the client closed standard input.
    fn is_over(&self, wait: &Wait) -> bool {
        Instant::now() >= wait.end || self.is_closed()
    }

    /// True if a missing daemon is started. Without `--start` it is not after a connection: the
    /// daemon may have been stopped on purpose, or be about to start again.
    fn starts(&self) -> bool {
        let is_usual = !(self.args.no_start || self.has_dialed || self.args.wait.is_zero());
        self.args.start || is_usual
    }

    fn is_closed(&self) -> bool {
        self.closed.is_cancelled() && !self.starts()
    }

    /// Connects as soon as there is a daemon to connect to.
    ///
    /// # Errors
    /// When no daemon can be used, or none appears before the end of the wait or before the client
    /// closes standard input.
    pub(super) async fn dial(&mut self, wait: &mut Wait) -> Result<UnixStream, Failure> {
        let mut started: Option<Starting> = None;
        let (is_first, mut was_down) = (!self.has_dialed, false);
        loop {
            let failure = match self.once().await {
                Ok(stream) => {
                    self.has_dialed = true;
                    if is_first && was_down {
                        self.first_lists().await;
                    }
                    return Ok(stream);
                }
                Err(Fault::Lasting(failure)) => return Err(failure),
                Err(Fault::Passing(failure)) => failure,
            };
            was_down |= failure.code == Some(DOWN);
            match &mut started {
                None if self.starts() && !self.data().is_locked()? => {
                    started = Some(Starting::begin(self.wanted(), self.context).await?);
                    self.has_started = true;
                }
                None => {}
                Some(starting) => starting.check().await?,
            }
            if self.is_over(wait) {
                return Err(self.given_up(failure, wait));
            }
            self.pause().await;
            // Standard input may have ended already: then there is no wait.
            if wait.told.is_none() && !self.is_over(wait) {
                output::notice(&self.notice(&failure));
                wait.told = Some(failure.message);
            }
        }
    }

    /// Waits until a daemon that has just started has the first lists of its servers, for a limited
    /// time: many clients read the list of tools once. Returns at once if the daemon cannot be
    /// asked; it reports the tools as a change of the list then.
    async fn first_lists(&self) {
        let listed = async {
            let Ok(Some(client)) = DaemonClient::of_data_if_up(&self.context.daemon) else {
                return;
            };
            while let Ok(rows) = client.api_get("/api/servers".to_owned()).await
                && rows["settled"] != true
            {
                sleep(PAUSE).await;
            }
        };
        if timeout(LISTS, listed).await.is_err() {
            let (most, status) = (LISTS.as_secs(), narthex("status", &[]));
            output::notice(&format!(
                "some servers have no list of tools after {most} s, and come later: `{status}` \
                 shows them"
            ));
        }
    }

    /// The daemon to start.
    fn wanted(&self) -> Wanted<'a> {
        let ConnectArgs { start, config, servers, .. } = self.args;
        Wanted { is_of_folder: *start, config: config.as_deref(), servers: servers.as_deref() }
    }

    /// The reason of a wait, and its limit.
    fn notice(&self, failure: &Failure) -> String {
        let (most, data) = (self.args.wait.as_secs_f64(), self.context.daemon.data.display());
        match failure.code {
            Some(DOWN) if self.starts() => {
                format!("waiting for the daemon, for up to {most} s")
            }
            Some(DOWN) => format!(
                "no daemon runs with the data directory {data}: waiting for one, for up to {most} \
                 s. `{}` starts one.",
                narthex("up --detach", &[])
            ),
            _ => format!("{}; trying again, for up to {most} s", failure.message),
        }
    }

    /// The failure at the end of a wait, without the text that a notice has shown already.
    fn given_up(&self, failure: Failure, wait: &Wait) -> Failure {
        let Some(told) = &wait.told else { return failure };
        let why = match self.is_closed() {
            true => "the client closed standard input".to_owned(),
            false => format!("no connection within {} s", self.args.wait.as_secs_f64()),
        };
        let message = match failure.code {
            Some(DOWN) if self.starts() => {
                format!(
                    "{why}: the daemon does not listen yet; its log says more: `{}`; or allow more \
                     time with --wait",
                    narthex("service logs", &[])
                )
            }
            Some(DOWN) => format!(
                "{why}, and no daemon runs; start one with `{}`, or let `{}` start it",
                narthex("up --detach", &[]),
                narthex("connect", &[])
            ),
            _ if failure.message == *told => {
                format!("{why}; see the daemon's state with `{}`", narthex("status", &[]))
            }
            _ => format!("{why}: {}", failure.message),
        };
        Failure { message, ..failure }
    }

    /// Runs the work, and gives it up after the time that the command waits for a daemon.
    ///
    /// # Errors
    /// The failure of the work, or a timeout.
    pub(super) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.args.wait, work).await.unwrap_or_else(|_late| Err(self.silent()))
    }

    /// Waits for the first half of the time that the command waits for a daemon. If `has_answer` is
    /// false then, asks the daemon itself, for the other half. A daemon that answers that may need
    /// its time for a request, and is not asked again.
    ///
    /// # Errors
    /// When the daemon gives no sign of life. Without a wait there is no such check.
    pub(super) async fn listens_for_life(
        &self,
        has_answer: impl Fn() -> bool,
    ) -> Result<Infallible, Failure> {
        let half = self.args.wait / 2;
        sleep(half).await;
        if !half.is_zero() && !has_answer() {
            let asked = timeout(half, self.is_asked()).await;
            asked.map_err(|_late| self.silent())?;
        }
        std::future::pending().await
    }

    /// Ends with any answer of the daemon's HTTP door, and with its end. A daemon that cannot be
    /// asked gives no sign of life.
    async fn is_asked(&self) {
        let client = match DaemonClient::of_data_if_up(&self.context.daemon) {
            Ok(Some(client)) => client,
            Ok(None) => return,
            Err(_unasked) => std::future::pending().await,
        };
        drop(client.api_get("/api/servers".to_owned()).await);
    }

    fn silent(&self) -> Failure {
        let process = self.data().holder().ok().flatten();
        let process = process.map(|pid| format!(", process {pid},")).unwrap_or_default();
        let text = format!(
            "the daemon{process} has not answered within {} s; end it with `{}`, and start the \
             client again",
            self.args.wait.as_secs_f64(),
            narthex("daemon stop --force", &[])
        );
        Failure::new(ErrorKind::Timeout, text)
    }

    fn data(&self) -> DataDir {
        DataDir::at(&self.context.daemon.data)
    }

    /// The failure of a data directory without a daemon, with the remedies of this command.
    fn without_daemon(&self, failure: Failure) -> Failure {
        let data = self.context.daemon.data.display();
        let message = match self.starts() {
            true => format!(
                "the daemon with the data directory {data} does not listen yet; allow more time \
                 with --wait"
            ),
            false => format!(
                "no daemon runs with the data directory {data}; start one with `{}`, or let `{}` \
                 start it",
                narthex("up --detach", &[]),
                narthex("connect", &[])
            ),
        };
        Failure { message, ..failure }
    }

    async fn once(&self) -> Result<UnixStream, Fault> {
        let daemon = self.data().daemon().map_err(|failure| match failure.code {
            Some(DOWN) => Fault::Passing(self.without_daemon(failure)),
            _ => Fault::Lasting(failure),
        })?;
        let folder = daemon.socket_dir.ok_or_else(|| {
            let text = "the daemon has no Unix socket, and its log has the cause; use its HTTP \
                        address instead";
            Fault::Lasting(Failure::new(ErrorKind::Unavailable, text))
        })?;
        // The process that answers there is taken for the daemon.
        narthex_private::check_folder(&folder).map_err(|error| match error.is_absent() {
            true => Fault::Passing(error.into()),
            false => Fault::Lasting(error.into()),
        })?;
        let path = folder.join(self.socket());
        let connected = UnixStream::connect(&path).await;
        connected.map_err(|error| self.fault(&path, &folder, &error))
    }

    fn socket(&self) -> String {
        match (&self.args.server, &self.args.profile) {
            (Some(alias), _) => format!("{alias}.sock"),
            // No alias has a dot.
            (None, Some(profile)) => format!("p.{profile}.sock"),
            (None, None) => "mcp.sock".to_owned(),
        }
    }

    fn fault(&self, path: &Path, folder: &Path, error: &io::Error) -> Fault {
        let is_named = self.args.server.is_some() || self.args.profile.is_some();
        let is_missing = error.kind() == io::ErrorKind::NotFound && is_named;
        let failure = match (&self.args.server, &self.args.profile) {
            // Each server of the daemon has a socket there, and so has each profile.
            (Some(alias), _) if is_missing => no_server(alias.as_str(), folder),
            (None, Some(profile)) if is_missing => no_profile(profile.as_str(), folder),
            _ => {
                let text = format!("cannot connect to {}: {error}", path.display());
                Failure::new(ErrorKind::Unavailable, text)
            }
        };
        // A misspelt server or profile never comes.
        match is_missing && !self.has_dialed && !self.has_started {
            true => Fault::Lasting(failure),
            false => Fault::Passing(failure),
        }
    }
}

/// The names of sockets in a folder, without their ends.
fn sockets(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".sock").map(str::to_owned)).collect()
}

/// The failure of a profile that the daemon does not have, with the name that was probably meant.
fn no_profile(profile: &str, folder: &Path) -> Failure {
    let sockets = sockets(folder);
    let names = sockets.iter().filter_map(|name| name.strip_prefix("p."));
    let hint = did_you_mean(profile, names)
        .unwrap_or_else(|| format!("`{}` lists its profiles", narthex("profiles list", &[])));
    let text = format!("there is no usable profile `{profile}`; {hint}");
    Failure::new(ErrorKind::NotFound, text)
}

/// The failure of a server that the daemon does not have, with the name that was probably meant.
fn no_server(alias: &str, folder: &Path) -> Failure {
    let mut names = sockets(folder);
    names.retain(|name| name != "mcp" && !name.contains('.'));
    let hint = did_you_mean(alias, names.iter().map(String::as_str))
        .unwrap_or_else(|| format!("`{}` lists its servers", narthex("status", &[])));
    let text = format!("there is no server `{alias}`; {hint}");
    Failure::new(ErrorKind::NotFound, text)
}
