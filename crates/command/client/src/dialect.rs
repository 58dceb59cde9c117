//! The dialect of a file with servers, on this machine: narthex's own, or that of a client.

use std::path::{Path, PathBuf};

use narthex_client_files::clients::{Dialect, DialectError, Machine, System, clients};
use narthex_model::ErrorKind;

use crate::{
    Failure,
    environment::{home, variable},
};

/// A home folder for a user without one: no file is below it.
const NO_HOME: &str = "/dev/null/home";

/// The dialect of a file: the one of `--format`, else by the path.
///
/// # Errors
/// When there is no such client, or when the path can be one of several clients.
pub fn of(path: &Path, format: Option<&str>) -> Result<Dialect, Failure> {
    on_machine(|machine| {
        machine.dialect(path, format).map_err(|error| match error {
            DialectError::Unknown { .. } => Failure::usage(error.to_string()),
            DialectError::Ambiguous { .. } => Failure::new(ErrorKind::Invalid, error.to_string()),
        })
    })?
}

/// The file that a client has in the current folder, which need not exist. `None` for a client
/// without files in projects, and where the file is the user's own: the home folder is no project.
#[must_use]
pub fn project_file(client: &str) -> Option<PathBuf> {
    let of_project = clients().iter().find(|row| row.id == client && row.is_of_project())?;
    let mut of_user = clients().iter().filter(|row| !row.is_of_project());
    let file = |machine: &Machine<'_>| {
        let path = machine.to_create(of_project)?;
        let is_of_user = of_user.any(|row| machine.candidates(row).contains(&path));
        (!is_of_user).then_some(path)
    };
    on_machine(file).ok()?
}

fn on_machine<T>(ask: impl FnOnce(&Machine<'_>) -> T) -> Result<T, Failure> {
    let folder = std::env::current_dir()?;
    let home = home(&variable).unwrap_or_else(|| NO_HOME.into());
    let system = System::current();
    Ok(ask(&Machine { system, home: &home, folder: &folder, variable: &variable }))
}
