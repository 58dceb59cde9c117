//! `narthex restore`: makes a data directory from a backup, whole or not at all.

mod settings;

use std::{
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use fs_err as fs;
use narthex_client::{
    cli::RestoreArgs,
    commands::typed::{is_agreed, is_seen},
};
use narthex_model::{
    ErrorKind,
    command::{narthex, quoted},
};
use narthex_store::{StatementError, Store};
use serde_json::{Value, json};

use self::settings::FoundSettings;
use super::waiting::waiting;
use crate::{
    Failure,
    archive::{self, Contents, MASTER_KEY, SHARES, STORE},
    cli::Context,
    output::{self, harmless},
};

pub(crate) async fn run(args: RestoreArgs, context: Context) -> Result<ExitCode, Failure> {
    if context.settings.store_url.is_some() {
        let text = "the settings name a database for the store, and a backup has a store of its \
                    own; unset NARTHEX_STORE_URL, or remove `store.url` from the settings";
        return Err(Failure::new(ErrorKind::Conflict, text));
    }
    let data = real(std::path::absolute(&context.settings.daemon.data)?)?;
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
    let store = store.map_err(|error| Failure::caused(error.kind(), &error))?;
    let counts = Counts::of(&store, &contents).await;
    store.close().await;
    let counts = counts.map_err(|error| Failure::caused(error.kind(), &error))?;
    // An empty folder is replaced; one that is filled by now is not.
    fs::rename(&staging.0, &data)?;
    // The data are whole from here on, so no fault of the settings ends the command.
    let mut settings = FoundSettings::look(&data, &context);
    let counts = Counts { of_settings: settings.counts(), ..counts };
    if settings.is_any_new()
        && may_place(&settings, args.yes, &data, &context).await.unwrap_or(false)
    {
        settings.place();
    }
    settings.tidy(&data);
    told(&data, &contents, &counts, &settings, &context)
}

/// The numbers of restored objects.
struct Counts {
    workspaces: usize,
    /// Secrets that have a value.
    secrets: usize,
    shared_files: usize,
    /// Servers and profiles of the settings; `None` without readable settings.
    of_settings: Option<(usize, usize)>,
}

impl Counts {
    async fn of(store: &Store, contents: &Contents) -> Result<Self, StatementError> {
        let workspaces = store.workspaces().all().await?;
        let mut secrets = 0;
        for workspace in &workspaces {
            let all = store.secrets().all(&workspace.id).await?;
            secrets += all.iter().filter(|secret| secret.is_set()).count();
        }
        let shared_files = contents.files.iter().filter(|file| file.name.starts_with(SHARES));
        let (workspaces, shared_files) = (workspaces.len(), shared_files.count());
        Ok(Self { workspaces, secrets, shared_files, of_settings: None })
    }

    fn sentence(&self) -> String {
        let counted = |count: usize, what: &str| output::counted(count as u64, what);
        let settings = self.of_settings.map(|(servers, profiles)| {
            let (servers, profiles) = (counted(servers, "server"), counted(profiles, "profile"));
            format!("; its settings have {servers} and {profiles}")
        });
        format!(
            "{}, {} and {}{}",
            counted(self.workspaces, "workspace"),
            counted(self.secrets, "secret"),
            counted(self.shared_files, "shared file"),
            settings.unwrap_or_default()
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "workspaces": self.workspaces,
            "secrets": self.secrets,
            "shared_files": self.shared_files,
            "servers": self.of_settings.map(|(servers, _)| servers),
            "profiles": self.of_settings.map(|(_, profiles)| profiles),
        })
    }
}

/// Shows the settings of the backup with their programs, and asks for them on a terminal.
async fn may_place(
    settings: &FoundSettings,
    is_yes: bool,
    data: &Path,
    context: &Context,
) -> Result<bool, Failure> {
    let is_text = context.format.is_text();
    let can_ask = is_text && is_seen();
    if is_text && (is_yes || can_ask) {
        output::line(&format!("The data are in {}.", harmless(&data.display().to_string())))?;
        settings.show()?;
    }
    let question = "Put these settings in place, so that the daemon may start this?";
    is_agreed(is_yes, context.format, question).await
}

/// The directory that a link leads to, or else the path itself.
fn real(data: PathBuf) -> Result<PathBuf, Failure> {
    if !data.is_symlink() {
        return Ok(data);
    }
    fs::canonicalize(&data).map_err(|error| {
        let text = format!(
            "the data directory {} is a link that leads nowhere ({error}); remove the link, or \
             name another directory with --data",
            data.display()
        );
        Failure::new(ErrorKind::Conflict, text)
    })
}

/// Refuses a directory that has anything in it.
fn is_free(data: &Path) -> Result<(), Failure> {
    let mut entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let text = format!(
                "the data directory {} is not a directory; name another one with --data",
                data.display()
            );
            return Err(Failure::new(ErrorKind::Conflict, text));
        }
        Err(error) => return Err(error.into()),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let text = format!(
        "the data directory {} is not empty, and nothing has changed; name another one with \
         --data, or stop its daemon with `{}` and move the directory away with `mv {} {}`",
        data.display(),
        narthex("daemon stop", &[]),
        quoted(&data.to_string_lossy()),
        quoted(&narthex_private::aside(data).to_string_lossy())
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

fn told(
    data: &Path,
    contents: &Contents,
    counts: &Counts,
    settings: &FoundSettings,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let has_key = contents.has(MASTER_KEY);
    let place = data.display().to_string();
    let sentence = format!(
        "restored the backup of {} into {}: {}; start the daemon with `{}`",
        contents.created_at,
        harmless(&place),
        counts.sentence(),
        narthex("up --detach", &[])
    );
    let told = json!({
        "data": place, "files": contents.files.len(), "created_at": contents.created_at,
        "has_master_key": has_key, "counts": counts.to_json(), "settings": settings.to_json(),
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
    settings.notices().iter().for_each(|text| output::notice(text));
    output::notice(
        "clients and operators need the new tokens, which the daemon makes at its start; files of \
         folders must be approved again where their paths differ",
    );
    Ok(done)
}
