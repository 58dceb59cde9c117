//! `narthex uninstall`: takes back what narthex has set up on this machine for this user.
//!
//! The files of clients come first: while one cannot be brought back, nothing else is removed,
//! since its client still needs the daemon, and the data have the copy from before. Data are
//! deleted only from a directory that narthex has made.

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
        typed::is_agreed,
    },
    data_dir::{Left, Removal},
    environment::usual_data,
};
use narthex_model::{
    ErrorKind,
    command::{narthex, quoted},
};
use narthex_registry::layers::remove_lock;
use narthex_vault::Keychain;
use serde_json::json;

use super::setup::{place, undo::Undo};
use crate::{
    Failure,
    cli::Context,
    config::{self, KeyPlace},
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
    /// The path of the data directory, without links.
    real: PathBuf,
    /// True if clients were set up.
    has_setup: bool,
    /// True if a service of this data directory is installed.
    has_service: bool,
    /// The process of the daemon.
    daemon: Option<u32>,
    has_data: bool,
    /// The parts of the data directory, if they are to be deleted.
    removal: Option<Removal>,
    /// The user's own settings files.
    settings: Vec<PathBuf>,
    /// True if the settings go with the data: the directory is the user's usual one. A daemon of
    /// another directory shares them with that one.
    owns_settings: bool,
    /// The keys of secrets that lie outside of the data directory.
    keys: KeyPlace,
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
    /// Files and folders in the data directory that stay.
    left: Vec<Left>,
}

pub(crate) async fn run(args: UninstallArgs, context: Context) -> Result<ExitCode, Failure> {
    let present = Present::find(&args, &context)?;
    let is_text = context.format.is_text();
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
    if !is_agreed(args.yes, context.format, question).await? {
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
    fn find(args: &UninstallArgs, context: &Context) -> Result<Self, Failure> {
        let settings = &context.settings;
        let data = DataDir::at(&settings.daemon.data);
        let real = fs::canonicalize(data.path()).unwrap_or_else(|_absent| data.path().to_owned());
        let has_setup = !place::journal(&data)?.steps().is_empty();
        let files = [settings.servers.clone(), settings.variables.file().cloned()];
        let is_own = |file: &PathBuf| is_in_own_folder(file) && file.exists();
        let is_usual = |usual: PathBuf| fs::canonicalize(&usual).unwrap_or(usual) == real;
        Ok(Self {
            removal: args.delete_data.then(|| data.removal(!has_setup)).transpose()?,
            owns_settings: usual_data(&config::variable).is_ok_and(is_usual),
            keys: settings.keys.clone(),
            real: real.clone(),
            has_setup,
            has_service: is_installed(&context.client())?,
            daemon: data.holder()?,
            has_data: fs::symlink_metadata(data.path()).is_ok(),
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
        match &self.removal {
            Some(removal) => lines.extend(self.removal_lines(removal)),
            None if self.has_data => lines.push(format!("{} is kept.", self.data.path().display())),
            None => {}
        }
        let verb = if args.delete_data && self.owns_settings { "deleted" } else { "kept" };
        lines.extend(self.settings.iter().map(|path| format!("{} is {verb}.", path.display())));
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
            let mut removal = self.data.remove()?;
            if removal.left.is_empty() {
                // The directory and a link to it stand for all that was in them.
                let places = [self.data.path(), self.real.as_path()];
                removal.deleted.retain(|path| places.contains(&path.as_path()));
            }
            (removed.deleted, removed.left) = (removal.deleted, removal.left);
            if self.owns_settings {
                self.remove_settings(&mut removed)?;
            }
        }
        Ok(removed)
    }

    /// Lines with each path that is deleted, and each that stays.
    fn removal_lines(&self, removal: &Removal) -> Vec<String> {
        let (data, mut lines) = (self.data.path(), Vec::new());
        if !removal.deleted.is_empty() {
            lines.push(match removal.left.is_empty() {
                true => format!("{} is deleted, with all that is in it:", data.display()),
                false => format!("Of {} this is deleted:", data.display()),
            });
            lines.extend(removal.deleted.iter().map(|path| format!("  {}", path.display())));
        }
        if self.has_setup {
            let copies = self.data.setup_dir();
            lines.push(format!(
                "{} stays if not all files of clients come back byte for byte.",
                copies.display()
            ));
        }
        lines.extend(removal.left.iter().map(left_line));
        lines
    }

    /// Removes the user's own settings files, and their folder if nothing else is in it.
    fn remove_settings(&self, removed: &mut Removed) -> Result<(), Failure> {
        for file in &self.settings {
            match fs::remove_file(file) {
                Ok(()) => removed.deleted.push(file.clone()),
                // The undo removes a file that the set-up made.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        remove_own_folder()
    }

    /// Lines with what stays after the data are deleted.
    fn stays(&self, removed: &Removed) -> Vec<String> {
        let mut lines: Vec<_> = removed.left.iter().map(left_line).collect();
        if self.removal.is_some() && !self.owns_settings {
            lines.extend(self.settings.iter().filter(|file| file.exists()).map(|file| {
                format!(
                    "{} stays: your daemons with other data directories use it, too.",
                    file.display()
                )
            }));
        }
        if removed.deleted.is_empty() {
            return lines;
        }
        if self.has_database {
            lines.push(
                "The data in the database stay; your database's own tools remove them.".to_owned(),
            );
        }
        lines.extend(keys_line(&self.keys, &self.real));
        lines
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
        lines.extend(self.stays(removed));
        if self.removal.is_none() && self.has_data {
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
            "left": removed.left.iter().map(|left| &left.path).collect::<Vec<_>>(),
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
            "deletes": self.removal.as_ref().map(|removal| &removal.deleted),
            "deletes_settings": self.removal.is_some() && self.owns_settings,
        })
    }
}

fn left_line(left: &Left) -> String {
    format!("{} stays: {}.", left.path.display(), left.reason)
}

/// A line about master keys that are not in the data directory.
fn keys_line(keys: &KeyPlace, data: &Path) -> Option<String> {
    let data = data.to_string_lossy();
    let data = quoted(&data);
    let (place, command) = match keys {
        KeyPlace::File => return None,
        KeyPlace::Command { .. } => {
            return Some(
                "The master keys that `vault.key_command` has stored stay; remove them with the \
                 tools of that store."
                    .to_owned(),
            );
        }
        KeyPlace::Keychain(Keychain::SecretService) => {
            ("the Secret Service", format!("secret-tool clear application narthex data-dir {data}"))
        }
        KeyPlace::Keychain(Keychain::MacOs) => (
            "the keychain of macOS",
            format!("security delete-generic-password -s narthex -a {data}"),
        ),
    };
    Some(format!("The master keys in {place} stay; remove them with `{command}`."))
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
    remove_lock(&folder.join(LOCK))?;
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
