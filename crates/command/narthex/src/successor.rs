//! The program that takes the place of this one in the same process.

use std::{
    os::unix::process::CommandExt,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use narthex_model::ErrorKind;

use crate::Failure;

/// The place for the program that is executed when all work of this one has ended. Clones are of
/// the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Successor(Arc<Mutex<Option<Command>>>);

impl Successor {
    /// Names the program.
    pub(crate) fn set(&self, command: Command) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(command);
    }

    /// Executes the program, which does not return; without one, returns at once.
    ///
    /// # Errors
    /// When the program cannot be executed.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        let named = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut command) = named else { return Ok(()) };
        let error = command.exec();
        let program = command.get_program().to_string_lossy().into_owned();
        let text = format!("{program} cannot be executed in place of this program: {error}");
        Err(Failure::new(ErrorKind::Unavailable, text))
    }
}
