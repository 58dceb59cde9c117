//! The folder of the user's own settings files.

use std::{io, path::Path};

use fs_err as fs;
use narthex_client_files::{
    edit::{Document, Format},
    file,
};
use narthex_registry::layers::remove_lock;
use serde_json::Value;

use crate::{Failure, config};

/// The lock beside the user's file of servers.
const LOCK: &str = "settings.json.lock";

/// True for a settings file at its usual place. A file that the command line names elsewhere is
/// the user's own.
pub(super) fn has(file: &Path) -> bool {
    file.parent().is_some_and(|folder| {
        config::own_folder(&config::variable).is_some_and(|own| own == folder)
    })
}

/// True if a settings file has a value, or cannot be read.
pub(super) fn has_entries(path: &Path) -> bool {
    let bytes = match file::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return false,
        Err(_) => return true,
    };
    let document = Document::parse(Format::Jsonc, &bytes);
    let Ok(value) = document.and_then(|document| document.value(&[])) else { return true };
    value.is_some_and(|value| has_value(&value))
}

/// True for a value that is no empty object.
fn has_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => fields.values().any(has_value),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    }
}

/// Removes the lock of the user's file of servers, and the folder of settings files if nothing else
/// is in it.
pub(super) fn remove() -> Result<(), Failure> {
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
