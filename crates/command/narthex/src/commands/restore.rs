//! `narthex restore`: makes a data directory from a backup, whole or not at all.

use std::{
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use fs_err as fs;
use narthex_client::cli::RestoreArgs;
use narthex_model::{ErrorKind, command::narthex};
use narthex_store::Store;
use serde_json::json;

use super::waiting::waiting;
use crate::{
    Failure,
    archive::{self, Contents, MASTER_KEY, SETTINGS, STORE},
    cli::Context,
    output::{self, harmless},
};

pub(crate) async fn run(args: RestoreArgs, context: Context) -> Result<ExitCode, Failure> {
    if context.settings.store_url.is_some() {
        let text = "the settings name a database for the store, and a backup has a store of its \
                    own; unset NARTHEX_STORE_URL, or remove `store.url` from the settings";
        return Err(Failure::new(ErrorKind::Conflict, text));
    }
    let data = std::path::absolute(&context.settings.daemon.data)?;
    is_free(&data)?;
    let parent = data.parent().unwrap_or(Path::new("/")).to_owned();
    fs::create_dir_all(&parent)?;
    // The folder is moved to its place once all is checked. A killed command leaves it behind.
    let staging = Staging::new(&parent)?;
    let extracted = tokio::task::spawn_blocking({
        let (file, to) = (args.file.clone(), staging.0.clone());
        move || archive::extract(&file, &to)
    });
    let extracted = waiting("reading the backup", &context.client(), extracted).await;
    let contents = extracted.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))??;
    if !contents.has(STORE) {
        let text = format!("{} has no store, so it is not restored", args.file.display());
        return Err(Failure::new(ErrorKind::Invalid, text));
    }
    // A store of a newer narthex and a damaged one are refused here.
    let copy = staging.0.join(STORE);
    let opening = Store::open(&copy);
    let store = waiting("checking the store", &context.client(), opening).await;
    store.map_err(|error| Failure::caused(error.kind(), &error))?.close().await;
    // An empty folder is replaced; one that is filled by now is not.
    fs::rename(&staging.0, &data)?;
    let kept = put_settings(&data, &context)?;
    told(&data, &contents, &kept, &context)
}

/// Refuses a directory that has anything in it.
fn is_free(data: &Path) -> Result<(), Failure> {
    let mut entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let text = format!(
        "the data directory {} is not empty, and nothing has changed; name another one with \
         --data, or stop its daemon and move it away",
        data.display()
    );
    Err(Failure::new(ErrorKind::Conflict, text))
}

/// A new folder, which is removed when this is dropped, unless it was moved.
struct Staging(PathBuf);

impl Staging {
    fn new(parent: &Path) -> Result<Self, Failure> {
        let name = format!(".narthex-restore-{}", crate::app::node_id()?);
        let path = parent.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("a folder of an unfinished restore could not be removed: {error}");
        }
    }
}

/// Moves the settings to their places where there are none yet. Returns those that stay in the data
/// directory, each with the present file.
fn put_settings(data: &Path, context: &Context) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let settings = &context.settings;
    let places = [
        ("settings.json", settings.servers.clone()),
        ("narthex.toml", settings.variables.file().cloned()),
    ];
    let mut kept = Vec::new();
    for (name, place) in places {
        let from = data.join(SETTINGS).join(name);
        let (true, Some(place)) = (from.exists(), place) else { continue };
        let text = fs::read(&from)?;
        match fs::read(&place) {
            Ok(present) if present == text => fs::remove_file(&from)?,
            Ok(_) => kept.push((from, place)),
            Err(_) => {
                if let Some(folder) = place.parent() {
                    fs::create_dir_all(folder)?;
                }
                narthex_private::replace(&place, &text)?;
                fs::remove_file(&from)?;
            }
        }
    }
    if kept.is_empty() && data.join(SETTINGS).exists() {
        fs::remove_dir_all(data.join(SETTINGS))?;
    }
    Ok(kept)
}

fn told(
    data: &Path,
    contents: &Contents,
    kept: &[(PathBuf, PathBuf)],
    context: &Context,
) -> Result<ExitCode, Failure> {
    let has_key = contents.has(MASTER_KEY);
    let place = data.display().to_string();
    let sentence = format!(
        "restored {} files of {} into {}; start the daemon with `{}`",
        contents.files.len(),
        contents.created_at,
        harmless(&place),
        narthex("up", &[])
    );
    let left = kept.iter().map(|(from, place)| json!({ "file": from, "present": place }));
    let left: Vec<_> = left.collect();
    let told = json!({
        "data": place, "files": contents.files.len(), "created_at": contents.created_at,
        "has_master_key": has_key, "settings_left": left,
    });
    let done = output::told(&told, &sentence, context.format)?;
    if context.format.is_json() {
        return Ok(done);
    }
    if !has_key {
        output::notice(
            "the backup has no master key: before the start copy master.key into the data \
             directory, or set NARTHEX_MASTER_KEY or the keychain's entry, as on the other machine",
        );
    }
    for (from, place) in kept {
        output::notice(&format!(
            "{} exists already and is unchanged; the file of the backup is {}",
            harmless(&place.display().to_string()),
            harmless(&from.display().to_string())
        ));
    }
    output::notice(
        "clients and operators need the new tokens, which the daemon makes at its start; files of \
         folders must be approved again where their paths differ",
    );
    Ok(done)
}
