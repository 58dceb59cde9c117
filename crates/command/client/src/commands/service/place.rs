//! The service that a command is about, and the commands of its manager.

use std::{
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::{
    ErrorKind,
    command::{CommandLine, narthex, quoted},
};

use crate::{
    Context, Failure,
    cli::ServiceOfArgs,
    data_dir::DataDir,
    environment::{self, usual_data},
    service::{self, Manager, SYSTEM_DATA, Words},
};

/// The service that a command is about.
pub(super) struct Place {
    pub(super) manager: Manager,
    /// The unit or property list.
    pub(super) file: PathBuf,
    pub(super) data: DataDir,
}

impl Place {
    pub(super) fn of(args: &ServiceOfArgs, context: &Context) -> Result<Self, Failure> {
        let manager = Manager::of(args.system)?;
        let given = &context.daemon.data;
        let is_usual = usual_data(&environment::variable).is_ok_and(|usual| usual == *given);
        let data = match args.system && is_usual {
            true => Path::new(SYSTEM_DATA),
            false => given,
        };
        Ok(Self { manager, file: manager.file()?, data: DataDir::at(data) })
    }

    pub(super) fn is_system(&self) -> bool {
        self.manager == Manager::SystemdSystem
    }

    /// The text of the present unit or property list; `None` if there is none.
    pub(super) fn text(&self) -> Result<Option<String>, Failure> {
        text_of(&self.file)
    }

    /// The text of the present file, which may be changed.
    ///
    /// # Errors
    /// When narthex did not write the file, or wrote it for another data directory.
    pub(super) fn own_text(&self) -> Result<Option<String>, Failure> {
        let Some(text) = own_text(&self.file)? else { return Ok(None) };
        let file = self.file.display();
        if !service::is_about(&text, self.manager, self.data.path()) {
            let text = format!(
                "the service of {file} has another data directory than {}; name its own with \
                 --data",
                self.data.path().display()
            );
            return Err(Failure::new(ErrorKind::Conflict, text));
        }
        Ok(Some(text))
    }

    /// True if narthex has installed a service of this data directory.
    pub(super) fn is_installed(&self) -> bool {
        self.own_text().is_ok_and(|text| text.is_some())
    }

    /// The command that a person types about this service.
    pub(super) fn command(&self, about: About) -> CommandLine {
        let (own, of_machine) = match about {
            About::Install => (narthex("service install", &[]), "service install --system"),
            About::Status => (narthex("service status", &[]), "service status --system"),
            About::Logs => (narthex("service logs", &[]), "service logs --system"),
            About::Uninstall => (narthex("service uninstall", &[]), "service uninstall --system"),
        };
        if self.is_system() { narthex(of_machine, &[]) } else { own }
    }

    /// Writes a file that every user may read.
    pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        narthex_private::replace(path, text.as_bytes())?;
        Ok(fs::set_permissions(path, PermissionsExt::from_mode(0o644))?)
    }

    /// Fails unless this process may change the service.
    pub(super) fn check_rights(&self) -> Result<(), Failure> {
        if !self.is_system() || rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let text = "the service of the machine belongs to root; run the command with `sudo`, or \
                    without --system for a service of your own";
        Err(Failure::new(ErrorKind::Denied, text))
    }
}

/// The text of a file; `None` if there is none.
fn text_of(file: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The text of a file that narthex has written; `None` if there is none.
///
/// # Errors
/// When another author has written the file, with the command that moves it away.
pub(super) fn own_text(file: &Path) -> Result<Option<String>, Failure> {
    match text_of(file)? {
        Some(text) if !service::is_ours(&text) => {
            let text = format!(
                "`narthex` did not write {}, and does not change it; move it away with `mv {} {}`",
                file.display(),
                quoted(&file.to_string_lossy()),
                quoted(&narthex_private::aside(file).to_string_lossy())
            );
            Err(Failure::new(ErrorKind::Conflict, text))
        }
        found => Ok(found),
    }
}

/// A command of `narthex service`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Install,
    Status,
    Logs,
    Uninstall,
}

pub(super) async fn run_all(commands: &[Words]) -> Result<(), Failure> {
    for command in commands {
        service::run(command).await?;
    }
    Ok(())
}

/// Lines that show commands which would be run.
pub(super) fn would_run(commands: &[Words]) -> impl Iterator<Item = String> {
    commands.iter().map(|command| format!("Would run: {}", service::shown(command)))
}
