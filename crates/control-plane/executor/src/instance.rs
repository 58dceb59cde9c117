//! The folder with files about runs, and the name by which its daemon claims them.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::{fs, io::AsyncWriteExt};

use crate::ExecutorError;

/// Names the daemon that has the folder, also after a restart.
const NAME: &str = "instance";
/// The folder of files with tokens.
pub(crate) const RUNS: &str = "runs";
/// Number of random bytes of a name.
const NAME_BYTES: usize = 8;

/// Makes the folder, removes files of an earlier process in it, and returns its daemon's name.
///
/// # Errors
/// When the folder cannot be used, or there is no randomness.
pub(crate) async fn prepare(place: &Path) -> Result<String, ExecutorError> {
    let fault = |source| ExecutorError::Place { path: place.to_owned(), source };
    let files = place.join(RUNS);
    match fs::remove_dir_all(&files).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
        Ok(()) | Err(_) => {}
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&files).await.map_err(fault)?;
    let path = place.join(NAME);
    match fs::read_to_string(&path).await {
        Ok(name) => Ok(name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; NAME_BYTES];
            getrandom::fill(&mut bytes).map_err(ExecutorError::Randomness)?;
            let name = format!("executor-{}", hex::encode(bytes));
            write(&path, &name).await.map_err(fault)?;
            Ok(name)
        }
        Err(error) => Err(fault(error)),
    }
}

/// The daemon's name, if its folder had executors once.
///
/// # Errors
/// When the folder cannot be used.
pub(crate) async fn known(place: &Path) -> Result<Option<String>, ExecutorError> {
    match fs::read_to_string(place.join(NAME)).await {
        Ok(name) => Ok(Some(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ExecutorError::Place { path: place.to_owned(), source }),
    }
}

/// Writes a file that no other user can read, whole or not at all.
///
/// # Errors
/// When the system refuses.
pub(crate) async fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    match fs::remove_file(&fresh).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).await?;
    file.write_all(text.as_bytes()).await?;
    file.flush().await?;
    drop(file);
    fs::rename(&fresh, path).await
}
