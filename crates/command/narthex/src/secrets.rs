//! The daemon's vault: its rows in the store, its keys from the environment, a keychain or a file.

use std::sync::Arc;

use fs_err as fs;
use narthex_control::SecretRows;
use narthex_model::ErrorKind;
use narthex_store::Store;
use narthex_vault::{GivenKeys, Keeper, KeeperError, KeyCommand, KeyFile, SealedBackend, Vault};

use crate::{
    Failure,
    config::{self, KeyPlace},
    data_dir::DataDir,
};

// The vault takes every value that the command takes.
const _: () = assert!(narthex_client::commands::secrets::VALUE_MAX == narthex_vault::VALUE_MAX);

/// Opens the vault. Keys from the environment are used unchanged. Otherwise the keys come from the
/// keychain or the key file; the first key is made if nothing was ever sealed. Only the directory's
/// daemon may do this.
pub(crate) async fn open(
    data: &DataDir,
    place: &KeyPlace,
    store: &Store,
) -> Result<Vault, Failure> {
    let given = config::master_key();
    let keeper: Arc<dyn Keeper> = match (given, place) {
        // Set to nothing it is refused, too: a user who meant to give a key gets no other (S15).
        (Some(keys), KeyPlace::File) => {
            Arc::new(GivenKeys::new(config::MASTER_KEY, keys.expose()).map_err(failed)?)
        }
        (None, KeyPlace::File) => Arc::new(KeyFile::new(data.master_key_file())),
        (Some(_), _) => {
            let text = format!(
                "the settings name a keychain for the master key, but {} is set as well; unset it, \
                 or remove `vault` from the settings",
                config::MASTER_KEY
            );
            return Err(Failure::new(ErrorKind::Conflict, text));
        }
        (None, KeyPlace::Keychain(keychain)) => {
            alone(data)?;
            let command = KeyCommand::keychain(*keychain, data.path()).map_err(failed)?;
            Arc::new(command.without(config::hidden()))
        }
        (None, KeyPlace::Command { load, store }) => {
            alone(data)?;
            let command = KeyCommand::new(load.clone(), store.clone());
            Arc::new(command.without(config::hidden()))
        }
    };
    let rows = Arc::new(SecretRows::new(store.clone()));
    let backend = SealedBackend::start(rows, keeper).await;
    let backend = backend.map_err(|error| Failure::caused(error.kind(), &error))?;
    Ok(Vault::new(Arc::new(backend)))
}

fn failed(error: KeeperError) -> Failure {
    Failure::caused(error.kind(), &error)
}

/// Refuses a key file beside a keychain: the file's keys would be unused, but still readable.
fn alone(data: &DataDir) -> Result<(), Failure> {
    let file = data.master_key_file();
    match fs::symlink_metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => {
            let text = format!(
                "the settings name a keychain for the master key, but the key file {} exists as \
                 well; move its keys to the keychain and delete the file, or remove `vault` from \
                 the settings",
                file.display()
            );
            Err(Failure::new(ErrorKind::Conflict, text))
        }
    }
}
