//! `narthex uninstall`: takes back what narthex has set up on this machine for this user.
//!
//! The files of clients come first: while one cannot be brought back, nothing else is removed,
//! since its client still needs the daemon, and the data have the copy from before.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use fs_err as fs;
use narthex_client::{
    cli::UninstallArgs,
    commands::{
        daemon::{Stopped, stop_daemon},
        service::{is_installed, remove_own},
    },
};
use narthex_model::{ErrorKind, command::narthex};
use serde_json::json;

use super::{
    setup::{place, undo::Undo},
    trust::{asked, is_seen},
};
use crate::{
    Failure,
    cli::Context,
    config,
    data_dir::DataDir,
    output::{self, harmless},
};

/// The time in which the daemon has to end its calls and servers.
const STOPPED: Duration = Duration::from_secs(60);

/// The lock beside the user's file of servers.
const LOCK: &str = "settings.json.lock";

/// The parts that can be removed.
struct Present {
    data: DataDir,
    /// True if clients were set up.
    has_setup: bool,
    /// True if a service of this data directory is installed.
    has_service: bool,
    /// The process of the daemon.
    daemon: Option<u32>,
    has_data: bool,
    /// The user's own settings files.
    settings: Vec<PathBuf>,
    /// True if the store is a database elsewhere.
    has_database: bool,
}

/// The parts that were removed.
#[derive(Default)]
struct Removed {
    undo: Option<Undo>,
    service: Option<PathBuf>,
    daemon: Option<Stopped>,
    deleted: Vec<PathBuf>,
    /// Files in the data directory that narthex does not know, which stay.
    left: Vec<PathBuf>,
}

pub(crate) async fn run(args: UninstallArgs, context: Context) -> Result<ExitCode, Failure> {
    let present = Present::find(&context)?;
    let is_text = !context.format.is_json() && !context.format.is_quiet();
    if is_text && !args.yes {
        present.show(&args)?;
    }
    if args.dry_run {
        let data = json!({ "is_dry_run": true, "present": present.to_json() });
        return output::told_lines(
            &data,
            &["Nothing has changed: this was a dry run.".to_owned()],
            context.format,
        );
    }
    let question = match args.delete_data {
        true => "Remove all of this, the data too?",
        false => "Remove this, and keep the data?",
    };
    if !(args.yes || (is_text && is_seen() && asked(question).await?)) {
        let flags =
            if args.delete_data { "uninstall --yes --delete-data" } else { "uninstall --yes" };
        let text = format!(
            "nothing was removed; answer `y` on a terminal, or run `{}`",
            narthex(flags, &[])
        );
        return Err(Failure::new(ErrorKind::Denied, text));
    }
    let removed = present.remove(args.delete_data, &context).await?;
    present.told(&removed, &context)
}

impl Present {
    fn find(context: &Context) -> Result<Self, Failure> {
        let settings = &context.settings;
        let data = DataDir::at(&settings.daemon.data);
        let has_setup = !place::journal(&data)?.steps().is_empty();
        let files = [settings.servers.clone(), settings.variables.file().cloned()];
        let is_own = |file: &PathBuf| is_in_own_folder(file) && file.exists();
        Ok(Self {
            has_setup,
            has_service: is_installed(&context.client())?,
            daemon: data.holder()?,
            has_data: data.path().exists(),
            settings: files.into_iter().flatten().filter(is_own).collect(),
            has_database: settings.store_url.is_some(),
            data,
        })
    }

    fn show(&self, args: &UninstallArgs) -> Result<(), Failure> {
        let mut lines = Vec::new();
        if self.has_setup {
            lines.push(
                "The files of your clients come back as they were before the set-up.".to_owned(),
            );
        }
        if self.has_service {
            lines.push("The service is removed.".to_owned());
        }
        if let Some(pid) = self.daemon {
            lines.push(format!("The daemon, process {pid}, is stopped."));
        }
        let verb = if args.delete_data { "deleted" } else { "kept" };
        let all = self.has_data.then(|| self.data.path()).into_iter();
        for path in all.chain(self.settings.iter().map(PathBuf::as_path)) {
            lines.push(format!("{} is {verb}.", path.display()));
        }
        if !lines.is_empty() {
            output::line("This command does the following:")?;
        }
        lines.iter().try_for_each(|line| output::line(&format!("  {}", harmless(line))))
    }

    async fn remove(&self, deletes_data: bool, context: &Context) -> Result<Removed, Failure> {
        let mut removed = Removed::default();
        let plain = context.client();
        if self.has_setup {
            removed.undo = Some(Undo::made(self.data.path(), context).await?);
        }
        removed.service = remove_own(&plain).await?;
        removed.daemon = Some(stop_daemon(STOPPED, false, &plain).await?);
        if deletes_data {
            removed.left = self.data.remove()?;
            if removed.left.is_empty() && self.has_data {
                removed.deleted.push(self.data.path().to_owned());
            }
            for file in &self.settings {
                match fs::remove_file(file) {
                    Ok(()) => removed.deleted.push(file.clone()),
                    // The undo removes a file that the set-up made.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error.into()),
                }
            }
            remove_own_folder()?;
        }
        Ok(removed)
    }

    fn told(&self, removed: &Removed, context: &Context) -> Result<ExitCode, Failure> {
        let mut lines = Vec::new();
        if let Some(undo) = &removed.undo {
            lines.extend(undo.sentences());
        }
        if let Some(file) = &removed.service {
            lines.push(format!("Removed the service {}.", file.display()));
        }
        if let Some(pid) = removed.daemon.and_then(|stopped| stopped.pid) {
            lines.push(format!("Stopped the daemon, process {pid}."));
        }
        lines.extend(removed.deleted.iter().map(|path| format!("Deleted {}.", path.display())));
        for path in &removed.left {
            lines.push(format!("{} is not of narthex, and stays.", path.display()));
        }
        if !removed.deleted.is_empty() && self.has_database {
            lines.push(
                "The data in the database stay; your database's own tools remove them.".to_owned(),
            );
        }
        if removed.deleted.is_empty() && removed.left.is_empty() && self.has_data {
            let place = self.data.path().display();
            lines.push(format!("The data in {place} stay, and a later installation uses them."));
        }
        let program = config::program();
        let program = Path::new(&program).display();
        lines.push(format!("The program {program} stays; the tool that installed it removes it."));
        let lines: Vec<_> = lines.iter().map(|line| harmless(line)).collect();
        let data = json!({
            "is_dry_run": false,
            "undo": removed.undo.as_ref().map(Undo::to_json),
            "removed_service": removed.service,
            "stopped_daemon": removed.daemon.and_then(|stopped| stopped.pid),
            "deleted": removed.deleted,
            "left": removed.left,
        });
        output::told_lines(&data, &lines, context.format)
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "has_setup": self.has_setup,
            "has_service": self.has_service,
            "daemon": self.daemon,
            "data": self.has_data.then(|| self.data.path()),
            "settings": self.settings,
        })
    }
}

/// True for a settings file at its usual place. A file that the command line names elsewhere is
/// the user's own.
fn is_in_own_folder(file: &Path) -> bool {
    file.parent().is_some_and(|folder| {
        config::own_folder(&config::variable).is_some_and(|own| own == folder)
    })
}

/// Removes the lock of the user's file of servers, and the folder of settings files if nothing else
/// is in it.
fn remove_own_folder() -> Result<(), Failure> {
    let Some(folder) = config::own_folder(&config::variable) else { return Ok(()) };
    match fs::remove_file(folder.join(LOCK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    match fs::remove_dir(&folder) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Err(error.into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
