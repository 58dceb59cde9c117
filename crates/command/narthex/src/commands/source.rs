//! Reads the configuration of a command, and shows its warnings.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_audit::Audit;
use narthex_client::dialect;
use narthex_client_files::clients::{Client, Dialect, clients};
use narthex_control::ControlOptions;
use narthex_model::{
    Alias, ErrorKind,
    command::{CommandLine, narthex, quoted},
    json::without_comments,
};
use narthex_registry::{
    config::{
        ConfigFileError, Entry, Env, LoadContext, LoadedConfig, load_file, parse, parse_settings,
    },
    layers::DefaultServer,
    watch::{Approve, LayerOptions, ProjectFile, Refused},
};
use narthex_store::Store;
use narthex_traffic::Meters;
use narthex_vault::Vault;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use crate::{
    Failure,
    config::{self, Settings},
    data_dir::DataDir,
    output,
    stored::StorePlace,
    trust::{Folder, Standing},
};

/// The content of a file of servers that has none yet: of a project, and of the user.
const PROJECT: &str = r#"{"servers": {}}"#;
const USERS: &str = r#"{"mcp": {"servers": {}}}"#;

/// The file of the current folder.
pub(crate) fn usual() -> PathBuf {
    PathBuf::from("mcp.json")
}

/// The files of the daemon, which it follows. A fault in one now, when a person looks, ends the
/// start; a later one is reported, and the last good content is used on (E118).
pub(crate) async fn followed(
    settings: &Settings,
    place: &StorePlace,
    store: Store,
    vault: Vault,
) -> Result<ControlOptions, Failure> {
    let root = config::workspace_root()?;
    let mut files = LayerOptions::new(&root, Arc::new(config::placeholder));
    files.settings.clone_from(&settings.servers);
    named_files_exist(settings)?;
    let has_project = settings.config.is_some() || usual().exists();
    if let Some(file) = settings.servers.as_deref().filter(|file| !has_project && !file.exists()) {
        output::notice(&format!(
            "there is no file {} with servers of all your projects yet; `{}` creates it",
            file.display(),
            narthex("mcp add NAME -- COMMAND", &[])
        ));
    }
    let project = match &settings.config {
        Some(file) => {
            tell_warnings(&load(file)?);
            let approve: Approve = Arc::new(|_file, _text| Ok(()));
            ProjectFile { path: std::path::absolute(file)?, approve, approvals: None }
        }
        None => {
            let path = usual();
            if path.exists() {
                tell_warnings(&load_trusted(place).await?);
            } else {
                output::notice(&format!(
                    "there is no mcp.json in this folder yet: `{}` writes one, and the daemon \
                     reads it once you have approved it with `{}`",
                    narthex("init", &[]),
                    narthex("trust", &[])
                ));
                files_of_clients().iter().for_each(|text| output::notice(text));
            }
            let approve = approval(store.clone(), Handle::current());
            let path = std::path::absolute(path)?;
            ProjectFile { path, approve, approvals: Some(place.approvals()) }
        }
    };
    files.project = Some(project);
    let defaults = match &settings.default_servers {
        Some(file) => default_servers(file)?,
        None => Vec::new(),
    };
    Ok(ControlOptions {
        files,
        store: Some(store),
        vault: Some(vault),
        variables: settings.variables.clone(),
        audit: Audit::disabled(),
        login: None,
        sign_ins: None,
        meters: Meters::default(),
        grants: Arc::default(),
        granting: settings.granting,
        rules: Arc::default(),
        executors: settings.executors.known(),
        defaults,
    })
}

/// Refuses a file of servers that is named explicitly and is not there: most names are misspelt.
///
/// # Errors
/// The first absent file, with the flag, variable or setting that names it.
fn named_files_exist(settings: &Settings) -> Result<(), Failure> {
    // The default servers are written into the user's file, which they create.
    let servers = settings.servers.as_ref().filter(|_| settings.default_servers.is_none());
    let named = [
        ("config", settings.config.as_ref(), PROJECT),
        ("servers", servers, USERS),
        ("default_servers", settings.default_servers.as_ref(), PROJECT),
    ];
    for (path, file, content) in named {
        let (Some(source), Some(file)) = (settings.source(path), file) else { continue };
        // A file that cannot be looked up is reported where it is read.
        if file.try_exists().is_ok_and(|is_there| !is_there) {
            return Err(Failure::usage(format!(
                "{source} names {}, which does not exist; correct the path, or create the file \
                 with `{content}`",
                file.display()
            )));
        }
    }
    Ok(())
}

/// Asks the store whether a content may count (D27). Called on threads that may block.
fn approval(store: Store, runtime: Handle) -> Approve {
    Arc::new(move |file, text| {
        let refused = |failure: &Failure| Refused { reason: failure.to_string() };
        let folder = Folder::of(file, text).map_err(|failure| refused(&failure))?;
        let asked = runtime.block_on(folder.standing(store.trusted_files()));
        match asked.map_err(|failure| refused(&failure))? {
            Standing::Approved => Ok(()),
            Standing::Changed | Standing::Unknown => {
                let trust = trusting(file);
                let reason =
                    format!("this content is not trusted; read it and approve it with `{trust}`");
                Err(Refused { reason })
            }
        }
    })
}

/// Reads the servers that are put into the user's settings once (E146).
fn default_servers(file: &Path) -> Result<Vec<DefaultServer>, Failure> {
    let wrong = |text: String| {
        let text = format!(
            "the default servers in {} cannot be used: {text}; the file must be {{\"servers\": \
             {{\"name\": {{…}}}}}}, as an mcp.json is",
            file.display()
        );
        Failure::new(ErrorKind::Invalid, text)
    };
    narthex_private::check_named(file)?;
    let text = fs_err::read_to_string(file)?;
    let document: DefaultsDocument = serde_json::from_slice(&without_comments(text.as_bytes()))
        .map_err(|error| wrong(error.to_string()))?;
    let entries = document.servers.into_iter().map(|(name, entry)| {
        let name = Alias::new(&name).map_err(|error| wrong(error.to_string()))?;
        Ok(DefaultServer { name, entry: entry.get().to_owned() })
    });
    entries.collect()
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultsDocument {
    servers: BTreeMap<String, Box<RawValue>>,
}

/// Reads a file that was named on the command line or in the settings, and so is approved.
pub(crate) fn read(path: &Path) -> Result<LoadedConfig, Failure> {
    let loaded = load(path)?;
    show_warnings(&loaded);
    Ok(loaded)
}

fn load(path: &Path) -> Result<LoadedConfig, Failure> {
    narthex_private::check_named(path)?;
    load_file(path, &config::workspace_root()?, &config::placeholder).map_err(faulty)
}

/// Reads the current folder's file, if its user has approved it (D27).
async fn load_trusted(place: &StorePlace) -> Result<LoadedConfig, Failure> {
    let path = usual();
    if !path.exists() {
        let text = format!(
            "there is no mcp.json in this folder; write one with `{}`, or name another file with \
             --config FILE",
            narthex("init", &[])
        );
        return Err(Failure::new(ErrorKind::NotFound, text));
    }
    let folder = Folder::read(&path)?;
    let store = place.open().await?;
    let standing = folder.standing(store.trusted_files()).await;
    store.close().await;
    let Some(why) = untrusted(standing?) else {
        let env = Env::Values(&config::placeholder);
        let context = LoadContext { file: &path, workspace_root: folder.root(), env };
        return parse(&folder.text, &context).map_err(faulty);
    };
    // A text that is no configuration starts nothing, and needs no approval first.
    unfilled_text(&folder, &path)?;
    let whole = std::path::absolute(&path)?;
    let text = format!(
        "mcp.json in this folder {why}, and the daemon would start the programs that it names; \
         read them and approve them with `{}`, or name the file with --config {} to trust all its \
         later changes as well",
        trusting(&path),
        quoted(&whole.display().to_string())
    );
    Err(Failure::new(ErrorKind::Denied, text))
}

/// The reason in words why a file has no effect; `None` for an approved file.
pub(crate) fn untrusted(standing: Standing) -> Option<&'static str> {
    match standing {
        Standing::Approved => None,
        Standing::Changed => Some("has changed since it was trusted"),
        Standing::Unknown => Some("is not trusted yet"),
    }
}

/// The command that approves a file, from any folder.
pub(crate) fn trusting(path: &Path) -> CommandLine {
    narthex("trust {}", &[&whole(path).display()])
}

/// The path from the root of the file system.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_unknown| path.to_owned())
}

/// The command that approves the project file of a client, from any folder.
pub(crate) fn trusting_of(client: &Client, path: &Path) -> CommandLine {
    let is_known = match dialect::of(path, None) {
        Ok(Dialect::Of(file)) => file.client.id == client.id,
        Ok(Dialect::Own) | Err(_) => false,
    };
    if is_known {
        return trusting(path);
    }
    narthex("trust {} --format {}", &[&whole(path).display(), &client.id])
}

/// The sentence on project files of clients in this folder, which only a set-up reads.
pub(crate) fn files_of_clients() -> Option<String> {
    let found = approvals_of_clients();
    (!found.is_empty()).then(|| {
        format!(
            "This folder has project files of clients: {}. Then `{}` moves their servers to \
             narthex.",
            found.join(", "),
            narthex("setup", &[])
        )
    })
}

/// For each project file of a client in this folder, the words on the command that approves it.
pub(crate) fn approvals_of_clients() -> Vec<String> {
    let found = clients().iter().filter(|client| client.is_of_project());
    let found = found.filter_map(|client| {
        let file = dialect::project_file(&client.id).filter(|file| file.exists())?;
        let trust = trusting_of(client, &file);
        Some(format!("`{trust}` approves that of {}", client.name))
    });
    found.collect()
}

/// The approval of a folder's file. Looks without making anything: where there is no store, nothing
/// was approved.
pub(crate) async fn standing(path: &Path, settings: &Settings) -> Result<Standing, Failure> {
    standing_of(&Folder::read(path)?, settings).await
}

/// The approval of a file that was read already.
pub(crate) async fn standing_of(folder: &Folder, settings: &Settings) -> Result<Standing, Failure> {
    let place = StorePlace::of(&DataDir::at(&settings.daemon.data), settings);
    let Some(store) = place.look().await? else { return Ok(Standing::Unknown) };
    let standing = folder.standing(store.trusted_files()).await;
    store.close().await;
    standing
}

/// A folder's file with its variables left as they are written, so that no value is in it, and for
/// the rest as a daemon in the folder of the file has it, wherever this process works (D27).
pub(crate) fn unfilled_text(folder: &Folder, file: &Path) -> Result<LoadedConfig, Failure> {
    let context = LoadContext { file, workspace_root: folder.root(), env: Env::AsWritten };
    parse(&folder.text, &context).map_err(faulty)
}

/// A file that configures servers, read without filling in anything, so that no value is in it.
pub(crate) struct Unfilled {
    pub(crate) path: PathBuf,
    /// True for the file of the folder and the one named by `--config`.
    pub(crate) is_project: bool,
    pub(crate) loaded: Result<LoadedConfig, Failure>,
}

/// The existing ones of the files that a daemon would follow here.
pub(crate) fn unfilled(settings: &Settings) -> Vec<Unfilled> {
    let project = settings.config.clone().unwrap_or_else(usual);
    let files = [settings.servers.clone().map(|path| (path, false)), Some((project, true))];
    let there = files.into_iter().flatten().filter(|(path, _)| path.exists());
    let read = |(path, is_project): (PathBuf, bool)| {
        let loaded = read_unfilled(&path, is_project);
        Unfilled { path, is_project, loaded }
    };
    there.map(read).collect()
}

/// Reads the file again with its placeholders filled in, as the daemon would.
pub(crate) fn filled(file: &Unfilled) -> Result<LoadedConfig, Failure> {
    read_with(&file.path, file.is_project, Env::Values(&config::placeholder))
}

fn read_unfilled(path: &Path, is_project: bool) -> Result<LoadedConfig, Failure> {
    read_with(path, is_project, Env::AsWritten)
}

fn read_with(path: &Path, is_project: bool, env: Env<'_>) -> Result<LoadedConfig, Failure> {
    let root = config::workspace_root()?;
    let context = LoadContext { file: path, workspace_root: &root, env };
    let folder = Folder::read(path)?;
    match is_project {
        true => parse(&folder.text, &context).map_err(faulty),
        false => parse_settings(&folder.text, &context).map_err(faulty),
    }
}

/// The failure of a file that is no configuration.
pub(crate) fn faulty(error: ConfigFileError) -> Failure {
    Failure::caused(error.kind(), &error)
}

/// Shows warnings of a file that the daemon will follow, unless its log reports them.
fn tell_warnings(loaded: &LoadedConfig) {
    if !narthex_telemetry::tells_of_files() {
        show_warnings(loaded);
    }
}

fn show_warnings(loaded: &LoadedConfig) {
    for warning in &loaded.warnings {
        output::notice(&format!("warning: {warning}"));
    }
}

fn name(entry: &Entry) -> &str {
    match entry {
        Entry::Server(definition) => definition.alias.as_str(),
        Entry::Fault(fault) => &fault.name,
    }
}

/// Leaves only one server, so that nothing is started that the command does not need.
pub(crate) fn narrow(loaded: &mut LoadedConfig, alias: &Alias, file: &Path) -> Result<(), Failure> {
    if !loaded.entries.iter().any(|entry| name(entry) == alias.as_str()) {
        let names: Vec<_> = loaded.entries.iter().map(name).collect();
        return Err(unknown(alias, &file.display().to_string(), &names));
    }
    loaded.entries.retain(|entry| name(entry) == alias.as_str());
    Ok(())
}

/// There is no such server, but there are others.
pub(crate) fn unknown(alias: &Alias, place: &str, names: &[&str]) -> Failure {
    let meant = narthex_model::did_you_mean(alias.as_str(), names.iter().copied());
    let known = match (names, meant) {
        ([], _) => "it has none".to_owned(),
        (names, Some(meant)) => {
            format!("{meant} It has {}", names.join(", "))
        }
        (names, None) => format!("it has {}", names.join(", ")),
    };
    let text = format!("there is no server `{alias}` in {place}; {known}");
    Failure::new(ErrorKind::NotFound, text)
}
