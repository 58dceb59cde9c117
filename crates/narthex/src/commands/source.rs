//! Reads the configuration that a command works with, and shows its warnings.

use std::path::{Path, PathBuf};

use narthex_model::{Alias, ErrorKind};
use narthex_registry::config::{Entry, LoadContext, LoadedConfig, load_file, parse};

use crate::{
    config,
    data_dir::DataDir,
    failure::Failure,
    output,
    trust::{Folder, Standing},
};

/// The file of the current folder.
pub(crate) fn usual() -> PathBuf {
    PathBuf::from("mcp.json")
}

/// Reads a file that was named on the command line or in the settings, and so is approved.
pub(crate) fn read(path: &Path) -> Result<LoadedConfig, Failure> {
    let loaded = load_file(path, &config::workspace_root()?, &config::variable)?;
    show_warnings(&loaded);
    Ok(loaded)
}

/// Reads the current folder's file, if its user has approved it (D27).
pub(crate) fn read_trusted(data: &DataDir) -> Result<LoadedConfig, Failure> {
    let path = usual();
    if !path.exists() {
        return Err(Failure::new(
            ErrorKind::NotFound,
            "there is no mcp.json in this folder; write one, or name another file with \
             --config FILE",
        ));
    }
    let folder = Folder::read(&path)?;
    let why = match folder.standing(data)? {
        Standing::Approved => {
            let root = config::workspace_root()?;
            let context =
                LoadContext { file: &path, workspace_root: &root, env: &config::variable };
            let loaded = parse(&folder.text, &context)?;
            show_warnings(&loaded);
            return Ok(loaded);
        }
        Standing::Changed => "has changed since it was trusted",
        Standing::Unknown => "is not trusted yet",
    };
    let text = format!(
        "mcp.json in this folder {why}, and the programs that it names would be started; look at \
         them and approve them with `narthex trust`, or name the file with --config mcp.json"
    );
    Err(Failure::new(ErrorKind::Denied, text))
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
    let known = match names {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    let text = format!("there is no server `{alias}` in {place}; {known}");
    Failure::new(ErrorKind::NotFound, text)
}
