//! `narthex service uninstall`: stops the service and removes its files.
//!
//! Without a manager, such as in a session of `su` or in a container, the files go all the same,
//! and the daemon is stopped as `narthex daemon stop` does.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use fs_err as fs;
use serde_json::json;

use super::place::{Place, run_all, would_run};
use crate::{
    Context, Failure,
    cli::{ServiceOfArgs, ServiceUninstallArgs},
    commands::{daemon::stop_daemon, waiting::waiting},
    data_dir::unless_absent,
    output,
    service::{Manager, SYSTEM_USER, SYSUSERS, Words, is_ours},
};

/// The time in which a daemon without a manager has to end its calls and servers.
const STOPPED: Duration = Duration::from_secs(60);

/// The way to remove a service.
enum Removal {
    /// The commands of the manager before and after its file is removed.
    ByManager { before: Vec<Words>, after: Vec<Words> },
    /// The manager cannot be reached, for this reason.
    Alone { reason: String },
}

impl Removal {
    async fn of(place: &Place) -> Self {
        match place.manager.reached().await {
            Ok(state) => {
                let (before, after) = place.manager.uninstall(&state);
                Self::ByManager { before, after }
            }
            Err(reason) => Self::Alone { reason },
        }
    }

    fn commands(&self) -> Vec<Words> {
        match self {
            Self::ByManager { before, after } => [before.as_slice(), after.as_slice()].concat(),
            Self::Alone { .. } => Vec::new(),
        }
    }

    /// The lines of a dry run.
    fn would(&self, place: &Place) -> Vec<String> {
        let file = format!("Would remove {}", place.file.display());
        match self {
            Self::ByManager { before, after } => {
                would_run(before).chain([file]).chain(would_run(after)).collect()
            }
            Self::Alone { reason } => {
                vec![file, format!("Would stop the daemon without its manager: {reason}")]
            }
        }
    }

    /// Stops the service, and removes its files.
    async fn make(&self, place: &Place, context: &Context) -> Result<(), Failure> {
        match self {
            Self::ByManager { before, after } => {
                waiting("stopping the service", context, run_all(before)).await?;
                remove_files(place)?;
                run_all(after).await
            }
            Self::Alone { reason } => {
                // A service of the machine runs as another user, whose data are not read here.
                if !place.is_system() {
                    stop_daemon(STOPPED, false, context).await?;
                }
                remove_files(place)?;
                output::notice(&without_manager(place, reason));
                Ok(())
            }
        }
    }
}

/// The note about a service that was removed without its manager.
fn without_manager(place: &Place, reason: &str) -> String {
    let rest = match place.manager {
        Manager::SystemdUser => {
            "; a manager that runs elsewhere forgets the service with `systemctl --user \
             daemon-reload`, or at its next start"
        }
        Manager::SystemdSystem => {
            "; a daemon that still runs is ended with `kill`, and a manager that runs elsewhere \
             forgets the service with `systemctl daemon-reload`"
        }
        Manager::Launchd => "; launchd forgets the service at the end of your session",
    };
    format!("{reason}, so the service was removed without it{rest}")
}

pub(super) async fn run(
    args: &ServiceUninstallArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let place = Place::of(&args.of, context)?;
    let file = place.file.display();
    if place.own_text()?.is_none() {
        let data = json!({
            "was_installed": false, "is_dry_run": args.dry_run, "file": place.file,
        });
        return output::told(
            &data,
            &format!("There is no service: {file} is absent."),
            context.format,
        );
    }
    place.check_rights()?;
    let removal = Removal::of(&place).await;
    let stays = match place.is_system() {
        true => {
            format!("The data in {} and the user {SYSTEM_USER} stay.", place.data.path().display())
        }
        false => format!("The data in {} and your settings stay.", place.data.path().display()),
    };
    let commands = removal.commands();
    let data = |is_dry_run: bool| {
        json!({
            "was_installed": true,
            "is_dry_run": is_dry_run,
            "manager": place.manager.name(),
            "file": place.file,
            "commands": commands,
        })
    };
    if args.dry_run {
        let mut lines = removal.would(&place);
        lines.push(stays);
        return output::told_lines(&data(true), &lines, context.format);
    }
    removal.make(&place, context).await?;
    let lines = [format!("Stopped the service, and removed {file}"), stays];
    output::told_lines(&data(false), &lines, context.format)
}

/// Removes the files of the service, and the link by which systemd starts it.
fn remove_files(place: &Place) -> Result<(), Failure> {
    fs::remove_file(&place.file)?;
    if let Some(link) = place.manager.start_link(&place.file)
        && fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink())
    {
        unless_absent(fs::remove_file(&link))?;
    }
    if place.is_system() {
        remove_own(Path::new(SYSUSERS))?;
    }
    Ok(())
}

/// Stops and removes the service of this data directory and user.
pub(super) async fn remove_own_service(context: &Context) -> Result<Option<PathBuf>, Failure> {
    let place = Place::of(&ServiceOfArgs::default(), context)?;
    if !place.is_installed() {
        return Ok(None);
    }
    Removal::of(&place).await.make(&place, context).await?;
    Ok(Some(place.file))
}

/// Removes a file if narthex has written it.
fn remove_own(path: &Path) -> Result<(), Failure> {
    match fs::read_to_string(path) {
        Ok(text) if is_ours(&text) => Ok(fs::remove_file(path)?),
        Ok(_) | Err(_) => Ok(()),
    }
}
