//! The store of a data directory: its file there, or a database at a URL.

use std::path::PathBuf;

use narthex_client::{Failure, data_dir::DataDir};
use narthex_model::{ErrorKind, Secret};
use narthex_store::Store;

use crate::config::Settings;

/// The place of the store that belongs to a data directory.
#[derive(Debug, Clone)]
pub(crate) struct StorePlace {
    data: DataDir,
    /// The database's URL; `None` if the store is a file of the directory.
    url: Option<Secret>,
    /// True if the store is only read, and stays in the form of the program that uses it.
    is_read_only: bool,
}

impl StorePlace {
    /// The place of a directory's store by the settings.
    pub(crate) fn of(data: &DataDir, settings: &Settings) -> Self {
        Self { data: data.clone(), url: settings.store_url.clone(), is_read_only: false }
    }

    /// The same place, of a store that another program uses and that is not changed.
    pub(crate) fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    /// Opens the store. Several processes may do so at a time, also beside a daemon.
    pub(crate) async fn open(&self) -> Result<Store, Failure> {
        if self.is_read_only {
            return self.look().await?.ok_or_else(|| {
                let place = match &self.url {
                    Some(_) => "the database".to_owned(),
                    None => self.data.store_file().display().to_string(),
                };
                let text = format!("the store of the running daemon is gone from {place}");
                Failure::new(ErrorKind::NotFound, text)
            });
        }
        match &self.url {
            Some(url) => Store::connect(url).await.map_err(|e| Failure::caused(e.kind(), &e)),
            None => Store::open(&self.data.store_file())
                .await
                .map_err(|error| Failure::caused(error.kind(), &error)),
        }
    }

    /// Opens the store only to read the trusted files; `None` if there is no store. Creates
    /// nothing.
    pub(crate) async fn look(&self) -> Result<Option<Store>, Failure> {
        match &self.url {
            Some(url) => {
                Store::connect_to_look(url).await.map_err(|e| Failure::caused(e.kind(), &e))
            }
            None => Store::look(&self.data.store_file())
                .await
                .map_err(|error| Failure::caused(error.kind(), &error)),
        }
    }

    /// The file that changes with every approval: the store's own, if it is a file.
    pub(crate) fn approvals(&self) -> PathBuf {
        let name = if self.url.is_some() { "approvals.changed" } else { "store.db-wal" };
        self.data.path().join(name)
    }

    /// Makes a running daemon notice an approval.
    pub(crate) fn note_approval(&self, hash: &str) -> Result<(), Failure> {
        if self.url.is_none() {
            return Ok(());
        }
        Ok(narthex_private::replace(&self.approvals(), hash.as_bytes())?)
    }
}
