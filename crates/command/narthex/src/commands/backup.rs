//! `narthex backup`: copies the data of a data directory into one file, also while a daemon runs.

use std::{
    fs::TryLockError,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use fs_err as fs;
use narthex_client::{
    cli::BackupArgs,
    settings_files::{SERVERS_FILE, SETTINGS_FILE},
};
use narthex_model::{ErrorKind, Timestamp, command::narthex};
use serde_json::json;

use super::waiting::waiting;
use crate::{
    Failure,
    archive::{Contents, MASTER_KEY, SETTINGS, SHARES, STORE, Writer, taken},
    cli::Context,
    config::Settings,
    data_dir::DataDir,
    output::{self, harmless},
    stored::StorePlace,
};

pub(crate) async fn run(args: BackupArgs, context: Context) -> Result<ExitCode, Failure> {
    if context.settings.daemon.daemon_url.is_some() {
        let text = "a backup needs the store's files; run this command on the daemon's machine, \
                    without --daemon-url";
        return Err(Failure::usage(text));
    }
    let to = std::path::absolute(&args.file)?;
    if fs::symlink_metadata(&to).is_ok() {
        return Err(taken(&to));
    }
    let place = DataDir::open(&context.settings.daemon.data)?;
    if args.with_master_key && !place.master_key_file().exists() {
        let text = format!(
            "there is no file {}: the master key is in the environment or a keychain; copy it from \
             there, and leave out --with-master-key",
            place.master_key_file().display()
        );
        return Err(Failure::new(ErrorKind::NotFound, text));
    }
    let working = Working::new(&place)?;
    let store = copy_of_store(&place, &working, &context).await?;
    let files = files(&args, &context.settings, &place, store)?;
    let written = tokio::task::spawn_blocking({
        let to = to.clone();
        move || write(&to, files)
    });
    let contents = waiting("writing the backup", &context.client(), written).await;
    drop(working);
    let contents = contents.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))??;
    told(&to, &contents, &context)
}

/// The private folder of the data directory in which the store is copied. The lock of the folder
/// keeps a second backup from it. It is removed when this is dropped; a killed command leaves it to
/// the next one.
struct Working {
    folder: PathBuf,
    _lock: fs::File,
}

impl Working {
    fn new(place: &DataDir) -> Result<Self, Failure> {
        let folder = place.backup_dir();
        let lock = loop {
            match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(error.into());
                }
                Ok(()) | Err(_) => {}
            }
            let lock = match fs::File::open(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            match lock.file().try_lock() {
                Ok(()) if narthex_private::is_at(&lock, &folder)? => break lock,
                // Another backup has removed the folder at its end.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(place)),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        };
        for left in entries(&folder)? {
            fs::remove_file(left.path())?;
        }
        Ok(Self { folder, _lock: lock })
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!("the folder of a backup could not be removed: {error}");
        }
    }
}

fn in_use(place: &DataDir) -> Failure {
    let text = format!(
        "another backup of {} is being made; wait until it has ended, then try again",
        place.path().display()
    );
    Failure::new(ErrorKind::Conflict, text)
}

/// Copies the store; gives the copy.
async fn copy_of_store(
    place: &DataDir,
    working: &Working,
    context: &Context,
) -> Result<PathBuf, Failure> {
    let Some(store) = StorePlace::of(place, &context.settings).look().await? else {
        let text = format!(
            "there is no store yet, so there is nothing to copy; start a daemon with `{}` first, \
             or name another folder with --data",
            narthex("up --detach", &[])
        );
        return Err(Failure::new(ErrorKind::NotFound, text));
    };
    let copy = working.folder.join(STORE);
    let copied = waiting("copying the store", &context.client(), store.backup(&copy)).await;
    store.close().await;
    copied.map_err(|error| Failure::caused(error.kind(), &error))?;
    Ok(copy)
}

/// The files of the backup, each with its name there.
fn files(
    args: &BackupArgs,
    settings: &Settings,
    place: &DataDir,
    store: PathBuf,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let of_store = Some((STORE.to_owned(), store));
    let of_servers = settings.servers.clone();
    let of_servers = of_servers.map(|file| (format!("{SETTINGS}/{SERVERS_FILE}"), file));
    let of_settings = settings.variables.file().cloned();
    let of_settings = of_settings.map(|file| (format!("{SETTINGS}/{SETTINGS_FILE}"), file));
    let key = args.with_master_key.then(|| (MASTER_KEY.to_owned(), place.master_key_file()));
    let mut files: Vec<_> =
        [of_store, of_servers, of_settings, key].into_iter().flatten().collect();
    for workspace in entries(&place.shares_dir().join("workspaces"))? {
        let id = workspace.file_name().to_string_lossy().into_owned();
        for copy in entries(&workspace.path())? {
            let name = copy.file_name().to_string_lossy().into_owned();
            files.push((format!("{SHARES}/{id}/{name}"), copy.path()));
        }
    }
    Ok(files)
}

fn write(to: &Path, files: Vec<(String, PathBuf)>) -> Result<Contents, Failure> {
    let mut writer = Writer::create(to)?;
    for (name, from) in files {
        // A file of the settings need not exist, and a running daemon may delete a shared file.
        writer.add(name, &from)?;
    }
    writer.finish(Timestamp::new(SystemTime::now()).to_string())
}

fn told(to: &Path, contents: &Contents, context: &Context) -> Result<ExitCode, Failure> {
    let file = to.display().to_string();
    let bytes = fs::metadata(to)?.len();
    let has_key = contents.has(MASTER_KEY);
    let shared = contents.files.iter().filter(|one| one.name.starts_with(SHARES)).count();
    let data = json!({
        "file": file, "bytes": bytes, "files": contents.files, "has_master_key": has_key,
    });
    let with = match shared {
        0 => String::new(),
        1 => " with 1 shared file".to_owned(),
        count => format!(" with {count} shared files"),
    };
    let sentence = format!("copied the data to {} ({bytes} bytes){with}", harmless(&file));
    let done = output::told(&data, &sentence, context.format)?;
    if !context.format.is_json() {
        output::notice(match has_key {
            true => {
                "warning: the backup has the master key, so its reader can open every secret; keep \
                 it where only you can read it, and delete it after the move"
            }
            false => {
                "secrets in the backup open only with the master key, which is not in it: store \
                 master.key, NARTHEX_MASTER_KEY or the keychain's entry at another place"
            }
        });
    }
    Ok(done)
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Failure> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.collect::<Result<_, _>>()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
