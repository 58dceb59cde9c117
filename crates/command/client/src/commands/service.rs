//! `narthex service`: the daemon as a service of systemd or launchd.

mod install;
mod place;
mod port;
mod show;
mod uninstall;

pub use install::{Offer, Plan};
pub use port::{PortChange, Readdress, Readdressed, another_port, tell_chosen};

use std::process::ExitCode;

use self::place::Place;
use crate::{
    Context, Failure,
    cli::{ServiceCommand, ServiceOfArgs},
    door::DoorSettings,
};

/// True if a service of this data directory and user is installed.
///
/// # Errors
/// When this system has no place for a service.
pub fn is_installed(context: &Context) -> Result<bool, Failure> {
    Ok(Place::of(&ServiceOfArgs::default(), context)?.is_installed())
}

/// The file that the service of this user has, or would have.
///
/// # Errors
/// When this system has no place for a service.
pub fn file(context: &Context) -> Result<std::path::PathBuf, Failure> {
    Ok(Place::of(&ServiceOfArgs::default(), context)?.file)
}

/// Stops and removes the service of this data directory and user, and says nothing. Gives its
/// file; `None` if there was no service.
///
/// # Errors
/// When the service cannot be stopped or its file cannot be removed.
pub async fn remove_own(context: &Context) -> Result<Option<std::path::PathBuf>, Failure> {
    uninstall::remove_own_service(context).await
}

/// Runs the command. `door` is the daemon's door by the settings of this process; `readdress`
/// follows a change of the port.
pub async fn run(
    command: ServiceCommand,
    context: &Context,
    door: DoorSettings,
    readdress: &Readdress,
) -> Result<ExitCode, Failure> {
    match command {
        ServiceCommand::Install(args) => install::run(&args, context, door).await,
        ServiceCommand::Status(args) => show::status(&Place::of(&args, context)?, context).await,
        ServiceCommand::Logs(args) => show::logs(&args, context).await,
        ServiceCommand::Port(args) => port::run(&args, context, door, readdress).await,
        ServiceCommand::Uninstall(args) => uninstall::run(&args, context).await,
    }
}
