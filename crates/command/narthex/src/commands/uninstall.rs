//! `narthex uninstall`: takes back what narthex has set up on this machine for this user.
//!
//! The files of clients come first: while one cannot be brought back, nothing else is removed,
//! since its client still needs the daemon, and the data have the copy from before. Data are
//! deleted only from a directory that narthex has made.

mod keys;
mod own_folder;
mod secrets;

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
        service::{self, remove_own},
        typed::is_agreed,
    },
    data_dir::{Left, Removal},
    environment::usual_data,
};
use narthex_model::{ErrorKind, command::narthex};
use serde_json::json;

use super::setup::{
    place,
    undo::{Asking, Preview, Undo, client_names},
};
use crate::{
    Failure,
    cli::Context,
    config::{self, KeyPlace},
    data_dir::DataDir,
    output::{self, harmless},
};

/// The time in which the daemon has to end its calls and servers.
const STOPPED: Duration = Duration::from_secs(60);

/// The command that deletes the data, too.
const DELETING: &str = "uninstall --delete-data";

/// The reason for which the settings stay though the data go.
const MORE: &str = "it has servers or settings that this uninstallation did not put there";

/// The parts that can be removed.
struct Present {
    data: DataDir,
    /// The path of the data directory, without links.
    real: PathBuf,
    /// True if clients were set up.
    has_setup: bool,
    /// The undo of the set-up, before it is made.
    preview: Preview,
    /// The names of the clients whose files come back.
    clients: Vec<&'static str>,
    /// The file that a service has, or would have.
    service_file: PathBuf,
    /// True if a service of this data directory is installed.
    has_service: bool,
    /// The process of the daemon.
    daemon: Option<u32>,
    has_data: bool,
    /// The parts of the data directory, if they are to be deleted.
    removal: Option<Removal>,
    /// The user's own settings files.
    settings: Vec<PathBuf>,
    /// The one with servers, to which set-ups move those of clients.
    servers: Option<PathBuf>,
    /// Names of the secrets that go with the data, and that no file of a client gets back.
    lost: Vec<String>,
    /// True if the settings go with the data: the directory is the user's usual one. A daemon of
    /// another directory shares them with that one.
    owns_settings: bool,
    /// The keys of secrets that lie outside of the data directory.
    keys: KeyPlace,
    /// True if the store is a database elsewhere.
    has_database: bool,
    /// True if the settings file cannot be used, so that it is unknown what it names.
    is_without_file: bool,
}

/// The parts that were removed.
#[derive(Default)]
struct Removed {
    undo: Option<Undo>,
    service: Option<PathBuf>,
    daemon: Option<Stopped>,
    deleted: Vec<PathBuf>,
    /// Names of the secrets that went with the data.
    deleted_secrets: Vec<String>,
    /// Files and folders that stay.
    left: Vec<Left>,
}

pub(crate) async fn run(args: UninstallArgs, context: Context) -> Result<ExitCode, Failure> {
    let mut present = Present::find(&args, &context)?;
    if present.removal.is_some() {
        present.lost = secrets::lost(&present.data, &context.settings).await;
    }
    if !present.has_work() {
        return present.told_idle(&args, &context);
    }
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
    let question = match (present.preview.is_whole(), args.delete_data) {
        (false, _) => "Bring back what can be, and remove nothing else?",
        (true, true) => "Remove all of this, the data too?",
        (true, false) => "Remove this, and keep the data?",
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
    output::told_lines(&removed.to_json(), &present.results(&removed), context.format)
}

impl Present {
    fn find(args: &UninstallArgs, context: &Context) -> Result<Self, Failure> {
        let settings = &context.settings;
        let data = DataDir::at(&settings.daemon.data);
        let real = fs::canonicalize(data.path()).unwrap_or_else(|_absent| data.path().to_owned());
        let journal = place::journal(&data)?;
        let has_setup = !journal.steps().is_empty();
        let preview = Preview::of(&journal);
        let files = [settings.servers.clone(), settings.variables.file().cloned()];
        let is_own = |file: &PathBuf| own_folder::has(file) && file.exists();
        let is_usual = |usual: PathBuf| fs::canonicalize(&usual).unwrap_or(usual) == real;
        Ok(Self {
            removal: args.delete_data.then(|| data.removal(!has_setup)).transpose()?,
            owns_settings: usual_data(&config::variable).is_ok_and(is_usual),
            keys: settings.keys.clone(),
            real: real.clone(),
            has_setup,
            clients: client_names(preview.labels()),
            preview,
            service_file: service::file(&context.client())?,
            has_service: service::is_installed(&context.client())?,
            daemon: data.holder()?,
            has_data: fs::symlink_metadata(data.path()).is_ok(),
            settings: files.into_iter().flatten().filter(is_own).collect(),
            has_database: settings.store_url.is_some(),
            is_without_file: context.is_without_file,
            servers: settings.servers.clone(),
            lost: Vec::new(),
            data,
        })
    }

    /// True if there is something that the command removes.
    fn has_work(&self) -> bool {
        let deletes = |removal: &Removal| !removal.deleted.is_empty() || self.deletes_settings();
        self.has_setup
            || self.has_service
            || self.daemon.is_some()
            || self.removal.as_ref().is_some_and(deletes)
    }

    /// True if a settings file goes with the data.
    fn deletes_settings(&self) -> bool {
        let goes = |file: &PathBuf| !self.has_more(file) || self.has_setup;
        self.removal.is_some() && self.owns_settings && self.settings.iter().any(goes)
    }

    /// True for the file of servers with something in it: after an undo, others have put it there.
    fn has_more(&self, file: &Path) -> bool {
        self.servers.as_deref() == Some(file) && own_folder::has_entries(file)
    }

    /// The settings file that stays though the data go, since others use it.
    fn left_settings(&self) -> impl Iterator<Item = Left> {
        let left = self.settings.iter().filter(|file| self.owns_settings && self.has_more(file));
        left.map(|file| Left { path: file.clone(), reason: MORE.to_owned() })
    }

    /// The result where there is nothing to remove.
    fn told_idle(&self, args: &UninstallArgs, context: &Context) -> Result<ExitCode, Failure> {
        if self.removal.is_some() && self.owns_settings && !args.dry_run {
            // The folder may still be there, empty.
            own_folder::remove()?;
        }
        let mut left = Vec::new();
        if let Some(removal) = &self.removal {
            left.extend(removal.left.iter().cloned().chain(self.left_settings()));
        }
        let removed = Removed { left, ..Removed::default() };
        let mut lines = vec![harmless(&self.idle_line())];
        lines.extend(self.results(&removed));
        let data = match args.dry_run {
            true => json!({ "is_dry_run": true, "present": self.to_json() }),
            false => removed.to_json(),
        };
        output::told_lines(&data, &lines, context.format)
    }

    /// The line about a machine with nothing to remove.
    fn idle_line(&self) -> String {
        let service = self.service_file.display();
        if self.has_data || !self.settings.is_empty() {
            return format!(
                "Nothing is left to remove: there is no set-up of clients, no daemon, and no \
                 service {service}."
            );
        }
        let data = self.data.path().display();
        let folder = config::own_folder(&config::variable);
        let settings = folder.map(|folder| format!(", no settings in {}", folder.display()));
        format!(
            "Nothing of narthex is installed for you: there are no data in {data}{}, and no \
             service {service}.",
            settings.unwrap_or_default()
        )
    }

    fn show(&self, args: &UninstallArgs) -> Result<(), Failure> {
        let lines = self.lines(args);
        if !lines.is_empty() {
            output::sentence("This command does the following:")?;
        }
        lines.iter().try_for_each(|line| output::sentence(&format!("  {}", harmless(line))))
    }

    /// Lines with all that the command would do.
    fn lines(&self, args: &UninstallArgs) -> Vec<String> {
        let mut lines = Vec::new();
        if self.has_setup && (self.preview.is_whole() || !self.clients.is_empty()) {
            let whose = match &self.clients[..] {
                [] => "your clients".to_owned(),
                names => names.join(", "),
            };
            lines.push(format!(
                "The files of {whose} come back as they were before the set-up; changes of others \
                 since then stay."
            ));
        }
        lines.extend(self.preview.changed_lines());
        if !self.preview.is_whole() {
            lines.extend(self.preview.fault_lines());
            let again = if args.delete_data { DELETING } else { "uninstall" };
            lines.push(format!(
                "Nothing else is removed until that is mended; then run `{}` again.",
                narthex(again, &[])
            ));
            return lines;
        }
        if self.has_service {
            lines.push(format!("The service {} is removed.", self.service_file.display()));
        }
        if let Some(pid) = self.daemon {
            lines.push(format!("The daemon, process {pid}, is stopped."));
        }
        match &self.removal {
            Some(removal) => lines.extend(self.removal_lines(removal)),
            None => {
                lines.extend(self.preview.secrets_line());
                let kept =
                    self.has_data.then(|| format!("{} is kept.", self.data.path().display()));
                lines.extend(kept);
            }
        }
        for line in self.settings.iter().map(|file| self.settings_line(file, args.delete_data)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// The line with the fate of a settings file.
    fn settings_line(&self, file: &Path, deletes_data: bool) -> String {
        let path = file.display();
        match (deletes_data && self.owns_settings, self.has_more(file)) {
            (false, _) => self.preview.line_of(file).unwrap_or_else(|| format!("{path} is kept.")),
            (true, false) => format!("{path} is deleted."),
            (true, true) if self.has_setup => {
                format!("{path} is deleted, unless it has more than the set-up put there.")
            }
            (true, true) => format!("{path} is kept: {MORE}."),
        }
    }

    async fn remove(&self, deletes_data: bool, context: &Context) -> Result<Removed, Failure> {
        let mut removed = Removed::default();
        let plain = context.client();
        if self.has_setup {
            let asking = self.asking(deletes_data);
            let undo = Undo::made(self.data.path(), asking, context).await?;
            let again = if deletes_data { DELETING } else { "uninstall" };
            undo.check(&narthex(again, &[]), context)?;
            removed.undo = Some(undo);
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
            let has_vault = !self.has_database && !removed.deleted.is_empty();
            removed.deleted_secrets.clone_from(&self.lost);
            if let Some(undo) = &mut removed.undo {
                let kept = undo.leave_out_deleted(&removed.deleted, has_vault);
                removed.deleted_secrets.extend(kept);
            }
            removed.deleted_secrets.sort_unstable();
            removed.deleted_secrets.dedup();
        }
        Ok(removed)
    }

    /// The use that the undo makes of the daemon. None is needed if the data go: the vault goes
    /// with them, unless it is a database elsewhere.
    fn asking(&self, deletes_data: bool) -> Asking {
        match (deletes_data, self.has_database) {
            (false, _) => Asking::Needed,
            (true, true) => Asking::Wanted,
            (true, false) => Asking::IfUp,
        }
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
                "{} stays if a file of a client does not get back all that it had.",
                copies.display()
            ));
        }
        lines.extend(removal.left.iter().map(left_line));
        if !removal.deleted.is_empty() {
            if !self.lost.is_empty() {
                let names = self.lost.join(", ");
                lines.push(format!("With the data go these secrets, kept only there: {names}."));
            }
            lines.extend(self.outside_lines());
        }
        lines
    }

    /// Removes the user's own settings files, and their folder if nothing else is in it. A file
    /// with servers or settings that the undo has left is another's.
    fn remove_settings(&self, removed: &mut Removed) -> Result<(), Failure> {
        removed.left.extend(self.left_settings());
        for file in self.settings.iter().filter(|file| !self.has_more(file)) {
            match fs::remove_file(file) {
                Ok(()) => removed.deleted.push(file.clone()),
                // The undo removes a file that the set-up made.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        own_folder::remove()
    }

    /// Lines with what was deleted: of a data directory in which something stays, one line for all.
    fn deleted_lines(&self, removed: &Removed) -> Vec<String> {
        let places = [self.data.path(), self.real.as_path()];
        let is_within = |path: &&PathBuf| {
            let path = path.as_path();
            places.iter().any(|place| path.starts_with(place) && path != *place)
        };
        let (within, others): (Vec<_>, Vec<_>) = removed.deleted.iter().partition(is_within);
        let mut lines: Vec<_> =
            others.into_iter().map(|path| format!("Deleted {}.", path.display())).collect();
        if !removed.deleted_secrets.is_empty() {
            let names = removed.deleted_secrets.join(", ");
            lines.push(format!("Deleted with the data: the secrets {names}."));
        }
        if !within.is_empty() {
            let place = self.data.path().display();
            lines.push(format!("Deleted all that narthex had in {place}, but for what stays:"));
        }
        lines
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
        if !removed.deleted.is_empty() {
            lines.extend(self.outside_lines());
        }
        lines
    }

    /// Lines with what lies outside of the data directory, and stays.
    fn outside_lines(&self) -> Vec<String> {
        let database = self.has_database.then(|| {
            "The data in the database stay; your database's own tools remove them.".to_owned()
        });
        let unknown = self.is_without_file.then(|| {
            "If the settings file names a database or a keychain, the data or the keys there stay."
                .to_owned()
        });
        database.into_iter().chain(keys::line(&self.keys, &self.real)).chain(unknown).collect()
    }

    /// The results, for people.
    fn results(&self, removed: &Removed) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(undo) = &removed.undo {
            // The removal of data names the copies that stay.
            lines.extend(undo.sentences(self.removal.is_none()));
        }
        if let Some(file) = &removed.service {
            lines.push(format!("Removed the service {}.", file.display()));
        }
        if let Some(pid) = removed.daemon.and_then(|stopped| stopped.pid) {
            lines.push(format!("Stopped the daemon, process {pid}."));
        }
        lines.extend(self.deleted_lines(removed));
        lines.extend(self.stays(removed));
        if self.removal.is_none() && self.has_data {
            let (place, delete) = (self.data.path().display(), narthex(DELETING, &[]));
            lines.push(format!(
                "The data in {place} stay, and a later installation uses them; `{delete}` deletes \
                 them."
            ));
        }
        if self.removal.is_none() {
            let settings = self.settings.iter().filter(|file| file.exists());
            lines.extend(settings.map(|file| format!("Your settings {} stay.", file.display())));
        }
        let program = config::program();
        let program = Path::new(&program).display();
        lines.push(format!("The program {program} stays; the tool that installed it removes it."));
        lines.iter().map(|line| harmless(line)).collect()
    }

    fn to_json(&self) -> serde_json::Value {
        // A file that cannot be brought back keeps all else.
        let removal = self.removal.as_ref().filter(|_| self.preview.is_whole());
        json!({
            "has_setup": self.has_setup,
            "faults": self.preview.faults_json(),
            "has_service": self.has_service,
            "daemon": self.daemon,
            "data": self.has_data.then(|| self.data.path()),
            "settings": self.settings,
            "deletes": removal.map(|removal| &removal.deleted),
            "deletes_settings": removal.is_some() && self.deletes_settings(),
            "deletes_secrets": if removal.is_some() { &self.lost[..] } else { &[] },
        })
    }
}

impl Removed {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "is_dry_run": false,
            "undo": self.undo.as_ref().map(Undo::to_json),
            "removed_service": self.service,
            "stopped_daemon": self.daemon.and_then(|stopped| stopped.pid),
            "deleted": self.deleted,
            "deleted_secrets": self.deleted_secrets,
            "left": self.left.iter().map(|left| &left.path).collect::<Vec<_>>(),
        })
    }
}

fn left_line(left: &Left) -> String {
    format!("{} stays: {}.", left.path.display(), left.reason)
}
