//! A descriptor that is given back by itself.

use bytes::Bytes;

use super::Process;
use crate::VfsError;

/// An open descriptor of a process. Dropping it closes it, and gives up what is under way for it.
#[derive(Debug)]
pub struct Held<'a> {
    process: &'a Process,
    fd: u64,
}

impl Process {
    /// Opens a path for as long as what this gives is there.
    ///
    /// # Errors
    /// As [`Process::open`].
    pub fn hold(&self, path: &str) -> Result<Held<'_>, VfsError> {
        Ok(Held { process: self, fd: self.open(path)? })
    }
}

impl Held<'_> {
    /// Writes the arguments of a call, and waits until it is answered.
    ///
    /// # Errors
    /// As [`Process::write`].
    pub async fn write(&self, bytes: Bytes) -> Result<usize, VfsError> {
        self.process.write(self.fd, bytes).await
    }

    /// All that there is to read and was not read.
    ///
    /// # Errors
    /// As [`Process::read`].
    pub async fn read(&self) -> Result<Bytes, VfsError> {
        self.process.read(self.fd, 0).await
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The descriptor has ended already if the process or the mount ended.
        if let Err(error) = self.process.close(self.fd) {
            tracing::debug!(%error, "the descriptor was closed already");
        }
    }
}
