//! The two token files (D4): created once, for their owner alone, and used from then on.

use std::{
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use fs_err as fs;
use narthex_model::{ErrorKind, RunToken, command::quoted};

use super::DataDir;
use crate::Failure;

/// More than any token has.
const TOKEN_MAX: u64 = 1024;

impl DataDir {
    /// The clients' token; created now if there is none.
    pub fn client_token(&self) -> Result<RunToken, Failure> {
        ensure(&self.client_token_file())
    }

    /// The operators' token; created now if there is none.
    pub fn admin_token(&self) -> Result<RunToken, Failure> {
        ensure(&self.admin_token_file())
    }
}

/// The clients' token of a running daemon.
pub fn read_client_token(data: &DataDir) -> Result<RunToken, Failure> {
    narthex_private::check_folder(data.path())?;
    read(&data.client_token_file())
}

/// The operators' token of a running daemon.
pub fn read_admin_token(data: &DataDir) -> Result<RunToken, Failure> {
    narthex_private::check_folder(data.path())?;
    read(&data.admin_token_file())
}

fn ensure(path: &Path) -> Result<RunToken, Failure> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    OpenOptionsExt::mode(options.options_mut(), 0o600);
    match options.open(path) {
        Ok(mut file) => {
            let made = make(&mut file);
            if made.is_err() {
                // The next start would find a partial file, and ask to delete it.
                fs::remove_file(path)?;
            }
            made
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error.into()),
    }
}

fn make(file: &mut fs::File) -> Result<RunToken, Failure> {
    let token = RunToken::generate().map_err(|error| {
        let text = format!("the operating system gives no random bytes: {error}");
        Failure::new(ErrorKind::Unavailable, text)
    })?;
    writeln!(file, "{}", token.expose())?;
    file.sync_all()?;
    Ok(token)
}

fn read(path: &Path) -> Result<RunToken, Failure> {
    let file = narthex_private::open(path)?;
    let metadata = file.metadata()?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let text = format!(
            "the token file {0} has the mode {mode:04o}, so others may have read it; make it \
             private with `chmod 600 {1}`, or delete it to get a new token at the next start",
            path.display(),
            quoted(&path.to_string_lossy())
        );
        return Err(Failure::new(ErrorKind::Denied, text));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let text = format!(
            "the token file {0} belongs to another user; delete it with `rm {1}`, or use another \
             folder with --data",
            path.display(),
            quoted(&path.to_string_lossy())
        );
        return Err(Failure::new(ErrorKind::Denied, text));
    }
    let mut text = String::new();
    file.take(TOKEN_MAX).read_to_string(&mut text)?;
    RunToken::parse(text.trim()).ok_or_else(|| {
        let text = format!(
            "the file {} holds no token; delete it to get a new one at the next start",
            path.display()
        );
        Failure::new(ErrorKind::Invalid, text)
    })
}
