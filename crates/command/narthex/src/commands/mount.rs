//! `narthex mount`: mounts the files of a run in a folder, until a signal or the end of the run.

use std::process::ExitCode;

use narthex_client::Context;
use narthex_client::cli::MountArgs;

use crate::Failure;

#[cfg(not(target_os = "linux"))]
pub(crate) async fn run(_args: MountArgs, _context: Context) -> Result<ExitCode, Failure> {
    let vfs = narthex_model::command::narthex("vfs ls", &[]);
    let text = format!("folders can be mounted only on Linux; `{vfs}` shows the same files here");
    Err(Failure::new(narthex_model::ErrorKind::Unavailable, text))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn threads() -> usize {
    1
}

/// Number of threads that the process of a mount needs for its calls.
#[cfg(target_os = "linux")]
pub(crate) fn threads() -> usize {
    narthex_fuse::threads()
}

#[cfg(target_os = "linux")]
pub(crate) async fn run(args: MountArgs, context: Context) -> Result<ExitCode, Failure> {
    linux::run(args, context).await
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::File,
        io::Write,
        os::unix::fs::DirBuilderExt,
        path::{Path, PathBuf},
        process::ExitCode,
    };

    use narthex_client::{Context, cli::MountArgs};
    use narthex_fuse::mounter::{
        Daemon, Ended, Mounting, MountingError, MountingOptions,
        background::{self, Begun},
    };
    use narthex_model::{ErrorKind, Pid, Timestamp, with_causes};
    use narthex_vfs::Limits;
    use serde_json::json;
    use tokio::task::spawn_blocking;

    use crate::{
        Failure,
        daemon_client::DaemonClient,
        output::{self, Format, counted},
        stop::stop_signal,
    };

    pub(super) async fn run(args: MountArgs, context: Context) -> Result<ExitCode, Failure> {
        let log = log_of(&args, &context);
        if args.detach && !background::is_second() {
            return begin_in_background(log, args.log.is_some()).await;
        }
        if !background::is_second() {
            return mount(args, &context, &log).await;
        }
        background::leave()?;
        let format = context.format;
        mount(args, &context, &log).await.inspect_err(|failure| {
            if format.is_json() {
                return;
            }
            // The caller that started the first process may have gone; the log has it, too.
            if let Err(error) = background::ended(&format!("error: {failure}")) {
                tracing::debug!(%error, "the process that started the mount has ended");
            }
        })
    }

    async fn mount(args: MountArgs, context: &Context, log: &Path) -> Result<ExitCode, Failure> {
        let client = DaemonClient::of_run(&context.daemon)?;
        let daemon = Daemon::new(&client.state.url, client.token(), client.settings());
        let daemon = daemon.map_err(|error| Failure::new(error.kind(), with_causes(&error)))?;
        let mut folder = args.folder;
        if background::is_second() {
            // The last path that may be relative.
            folder = std::path::absolute(&folder)?;
            background::leave_folder()?;
        }
        // Signals are caught before the first mount, so that a signal always leads to an unmount.
        let mut stops = stop_signal()?;
        let options = MountingOptions {
            folder,
            pid: args.pid.map(Pid::new),
            watcher: Some(std::env::current_exe()?.into_os_string()),
            limits: Limits::default(),
            keeps_awake: args.low_latency,
        };
        let mut mounting = tokio::select! {
            biased;
            // A mount that is half made by then is taken away again.
            () = &mut stops => return Ok(ExitCode::SUCCESS),
            begun = Mounting::begin(daemon, options) => begun.map_err(|error| failed(&error))?,
        };
        if let Err(failure) = told(&mounting, context.format, log) {
            mounting.unmount().await.map_err(|error| failed(&error))?;
            return Err(failure);
        }
        let of = format!("{} (run {})", mounting.folder().display(), mounting.pid());
        log_line(&format!("{of} is mounted"));
        let ended = tokio::select! {
            biased;
            () = &mut stops => None,
            ended = mounting.ended() => Some(ended),
        };
        mounting.unmount().await.map_err(|error| failed(&error))?;
        match ended {
            None => log_line(&format!("{of} is unmounted, as requested")),
            Some(Ended::Folder) => log_line(&format!("{of} was unmounted by another process")),
            Some(Ended::Run) => {
                output::notice(&stamped(&format!(
                    "the run has ended, and its files are gone: {of}"
                )));
            }
            Some(Ended::Daemon { why }) => {
                let text = stamped(&format!(
                    "{why}; {of} is unmounted. Mount it again when the daemon runs"
                ));
                return Err(Failure::daemon_down(text));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints the servers that are mounted; in the background for the process that started it.
    fn told(mounting: &Mounting, format: Format, log: &Path) -> Result<(), Failure> {
        let (pid, servers) = (mounting.pid(), mounting.servers());
        let folder = mounting.folder().display().to_string();
        let process = std::process::id();
        let count = counted(servers.len() as u64, "server");
        let is_second = background::is_second();
        let text = match format {
            Format::Json => {
                let data = json!({
                    "folder": folder, "pid": pid.get(), "servers": servers, "process": process,
                });
                json!({ "ok": true, "data": data }).to_string()
            }
            // Scripts need it to end the mount.
            Format::Quiet if is_second => process.to_string(),
            Format::Quiet => String::new(),
            Format::Text if is_second => format!(
                "Run {pid} has {count} at {folder}. `kill {process}` unmounts it; its log is {}",
                log.display()
            ),
            Format::Text => format!("Run {pid} has {count} at {folder}. Ctrl-C unmounts it."),
        };
        match (is_second, text.is_empty()) {
            (true, _) => background::ready(&text).map_err(Failure::from),
            (false, true) => Ok(()),
            (false, false) => output::line(&text),
        }
    }

    /// Writes a line to the log of a mount in the background alone: others may share it.
    fn log_line(text: &str) {
        if background::is_second() {
            output::notice(&stamped(text));
        }
    }

    /// The text, in the background with the time and the process id before it.
    fn stamped(text: &str) -> String {
        match background::is_second() {
            true => format!(
                "{} [{}] {text}",
                Timestamp::new(std::time::SystemTime::now()),
                std::process::id()
            ),
            false => text.to_owned(),
        }
    }

    /// The log of a mount in the background.
    fn log_of(args: &MountArgs, context: &Context) -> PathBuf {
        let log = args.log.clone().unwrap_or_else(|| context.daemon.data.join("mount.log"));
        // For callers that print the path, and may be elsewhere by then.
        std::path::absolute(&log).unwrap_or(log)
    }

    /// Starts a second process that mounts, and shows its output.
    async fn begin_in_background(path: PathBuf, is_named: bool) -> Result<ExitCode, Failure> {
        let log = path.clone();
        let beginning = spawn_blocking(move || {
            let file = opened(&path, is_named).map_err(|error| no_log(&path, error))?;
            let program = std::env::current_exe()?.into_os_string();
            Ok::<_, Failure>(background::begin(&program, file)?)
        });
        match beginning.await.map_err(std::io::Error::other)?? {
            Begun::Ready(text) => output::line(&text).map(|()| ExitCode::SUCCESS),
            Begun::Ended { code, printed, why } => {
                if why.is_empty() && printed.is_empty() {
                    let log = log.display();
                    output::notice(&format!("error: the mount ended at once; its log is {log}"));
                }
                // A caller that has closed standard output wants to know nothing.
                let mut out = output::raw();
                drop(out.write_all(&printed).and_then(|()| out.flush()));
                if !why.is_empty() {
                    output::notice(&why);
                }
                let code = code.and_then(|code| u8::try_from(code).ok());
                Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
            }
        }
    }

    /// The log, to be read and added to by its owner alone. If the user has named the log, its
    /// folder has to be there: the name may be misspelt.
    fn opened(path: &Path, is_named: bool) -> std::io::Result<File> {
        if let Some(folder) = path.parent().filter(|_| !is_named) {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        if !is_named {
            let log = narthex_private::open_to_append(path);
            return Ok(log.map_err(std::io::Error::other)?.into_parts().0);
        }
        let mut options = fs_err::OpenOptions::new();
        options.read(true).append(true).create(true);
        fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(options.open(path)?.into_parts().0)
    }

    fn no_log(path: &Path, error: std::io::Error) -> Failure {
        let is_absent = error.kind() == std::io::ErrorKind::NotFound;
        let remedy = match is_absent {
            true => "create its folder, or name another file with `--log FILE`",
            false => "name a file of your own with `--log FILE`",
        };
        let failure = Failure::from(error);
        let path = path.display();
        let message = format!("the log {path} cannot be opened: {}; {remedy}", failure.message);
        Failure { message, ..failure }
    }

    fn failed(error: &MountingError) -> Failure {
        match error.kind() {
            ErrorKind::Unauthenticated => {
                let text = "the daemon does not know this token, or its run has ended; give the \
                            token of an active run with --token-file FILE or in NARTHEX_TOKEN";
                Failure::new(ErrorKind::Unauthenticated, text)
            }
            kind => Failure::new(kind, with_causes(error)),
        }
    }
}
