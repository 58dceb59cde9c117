//! Reads the configuration that a command works with, and shows its warnings.

use std::path::Path;

use narthex_model::Alias;
use narthex_registry::config::{Entry, LoadedConfig, load_file};

use crate::{config, failure::Failure, output};

/// Reads a file that was named on the command line or in the settings, and so is approved.
pub(crate) fn read(path: &Path) -> Result<LoadedConfig, Failure> {
    let loaded = load_file(path, &config::workspace_root()?, &config::variable)?;
    show_warnings(&loaded);
    Ok(loaded)
}

pub(crate) fn show_warnings(loaded: &LoadedConfig) {
    for warning in &loaded.warnings {
        output::notice(&format!("warning: {warning}"));
    }
}

pub(crate) fn name(entry: &Entry) -> &str {
    match entry {
        Entry::Server(definition) => definition.alias.as_str(),
        Entry::Fault(fault) => &fault.name,
    }
}

/// Leaves only one server, so that nothing is started that the command does not need.
pub(crate) fn narrow(
    loaded: &mut LoadedConfig,
    alias: &Alias,
    file: &Path,
) -> Result<(), Failure> {
    if !loaded.entries.iter().any(|entry| name(entry) == alias.as_str()) {
        let names: Vec<_> = loaded.entries.iter().map(name).collect();
        return Err(unknown(alias, &format!("{}", file.display()), &names));
    }
    loaded.entries.retain(|entry| name(entry) == alias.as_str());
    Ok(())
}

/// There is no such server, but perhaps one with a name like it.
pub(crate) fn unknown(alias: &Alias, place: &str, names: &[&str]) -> Failure {
    let known = match names {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    let text = format!("there is no server `{alias}` in {place}; {known}");
    Failure::new(narthex_model::ErrorKind::NotFound, text)
}
