//! The daemon's vault: its rows in the store, its keys from the environment or a file.

use std::sync::Arc;

use narthex_control::SecretRows;
use narthex_store::Store;
use narthex_vault::{GivenKeys, Keeper, KeyFile, SealedBackend, Vault};

use crate::{config, data_dir::DataDir, failure::Failure};

/// Opens the vault. Keys that the environment gives are used as they are; else the key file is
/// read, and made if nothing was ever sealed. Only the directory's daemon may do this.
pub(crate) async fn open(data: &DataDir, store: &Store) -> Result<Vault, Failure> {
    let keeper: Arc<dyn Keeper> = match config::master_key() {
        // Set to nothing it is refused, too: whoever meant to give a key gets no other (S15).
        Some(keys) => Arc::new(GivenKeys::new(config::MASTER_KEY, keys.expose())?),
        None => Arc::new(KeyFile::new(data.master_key_file())),
    };
    let rows = Arc::new(SecretRows::new(store.clone()));
    Ok(Vault::new(Arc::new(SealedBackend::start(rows, keeper).await?)))
}
