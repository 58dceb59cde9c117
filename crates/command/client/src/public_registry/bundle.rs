//! Bundles (MCPB): archives with a server and its `manifest.json`, which are unpacked here.
//!
//! A registry names the address of the file and its SHA-256. `download` gets the file and compares
//! the hash before anything else reads it. `unpack` writes its files into a new folder, `manifest`
//! reads their description, and `server` makes a command of it. `folder` has the places of bundles
//! in the data directory.

mod download;
mod folder;
mod manifest;
mod path;
mod server;
mod source;
mod unpack;

use narthex_model::ErrorKind;

pub(super) use self::source::source;
pub use self::{
    download::Progress,
    folder::{Bundles, Placed, Staged},
    server::BundleServer,
    source::{BundleRequest, BundleSource, stopped},
};
use self::{manifest::Manifest, server::Folders, unpack::Limits};
use crate::Failure;

impl BundleRequest<'_> {
    /// Downloads the bundle, checks it and unpacks it beside its place. Dropping the result removes
    /// the files.
    ///
    /// # Errors
    /// When the file cannot be read or has another hash, breaks a rule of archives, or has a
    /// manifest that cannot be used.
    pub async fn fetch(
        &self,
        staged: Staged,
        progress: &mut Progress<'_>,
    ) -> Result<(BundleServer, Staged), Failure> {
        download::download(self, &staged.archive(), progress).await?;
        self.unpack(&staged).await?;
        staged.drop_archive()?;
        let faulty = |faults: Vec<String>| {
            self.refused(&format!("has a manifest.json that cannot be used: {}", faults.join("; ")))
        };
        let manifest = Manifest::of_folder(&staged.files()).map_err(faulty)?;
        let home = self.home.map(|home| home.to_string_lossy().into_owned());
        let (files, folder) = (staged.files(), staged.folder().to_string_lossy().into_owned());
        let folders = Folders { files: &files, folder: &folder, home: home.as_deref() };
        let server = BundleServer::new(&manifest, &folders).map_err(faulty)?;
        Ok((server, staged))
    }

    async fn unpack(&self, staged: &Staged) -> Result<(), Failure> {
        let (archive, files, token) = (staged.archive(), staged.files(), self.stopped.clone());
        let unpacked = tokio::task::spawn_blocking(move || {
            let is_stopped = || token.is_cancelled();
            unpack::unpack(&archive, &files, Limits::default(), &is_stopped)
        });
        let unpacked =
            unpacked.await.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
        if self.stopped.is_cancelled() {
            return Err(stopped());
        }
        unpacked.map_err(|reason| self.refused(&format!("cannot be unpacked: {reason}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E209: a bundle comes by https, and with its hash.
    #[test]
    fn e209_a_bundle_needs_https_and_a_hash() {
        let (url, hash) = ("https://a.example/b.mcpb", "AB".repeat(32));
        let made = source(url, Some(&hash)).unwrap();
        assert_eq!((made.url.as_str(), made.sha256), (url, "ab".repeat(32)));
        assert!(source("http://127.0.0.1:1/b", Some(&hash)).is_ok());
        for address in [
            "http://a.example/b.mcpb",
            "file:///etc/passwd",
            "b.mcpb",
            "",
            "https://u:p@a.example/b",
            "https://",
        ] {
            let why = source(address, Some(&hash)).unwrap_err();
            assert!(why.contains("not an address of https"), "{why}");
        }
        assert!(source(url, None).unwrap_err().contains("has no `fileSha256`"));
        for hash in ["", "ab", &"g".repeat(64), &"a".repeat(65)] {
            let why = source(url, Some(hash)).unwrap_err();
            assert!(why.contains("not a SHA-256"), "{why}");
        }
    }
}
