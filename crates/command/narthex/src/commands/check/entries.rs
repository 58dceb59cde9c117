//! The entries: missing programs, unset variables, and other faults.

use std::path::Path;

use narthex_model::{ConfigFault, ServerDefinition};
use narthex_registry::config::{ConfigWarning, Entry, LoadedConfig};

use super::{
    Check,
    host::{definitions, find, program_name, targets},
    rows::Served,
};
use crate::commands::{
    packages::{self, FailedStarts},
    source::{self, Unfilled},
};

pub(super) fn all(files: &[Unfilled], served: &Served, failed: &FailedStarts) -> Vec<Check> {
    let mut checks: Vec<_> = targets(files)
        // A placeholder's value is reported where it cannot be filled in.
        .filter(|(_, target)| {
            let folder = target.working_dir.as_deref().map(Path::to_string_lossy);
            !target.command.contains("${") && !folder.is_some_and(|folder| folder.contains("${"))
        })
        .map(|(name, target)| {
            let folder = target.working_dir.as_deref().unwrap_or(Path::new(""));
            command(name, &target.command, folder)
        })
        .collect();
    checks.extend(definitions(files).flat_map(|definition| unpinned(definition, failed)));
    for file in files.iter().filter(|file| file.loaded.is_ok()) {
        match source::filled(file) {
            Ok(loaded) => checks.extend(faults(&loaded, served)),
            Err(failure) => {
                let text = format!("{} cannot be read again", file.path.display());
                checks.push(Check::warn("ENTRY", text, "try again").detail(failure.message));
            }
        }
    }
    checks
}

/// S5: packages that may be other code at each start.
fn unpinned(definition: &ServerDefinition, failed: &FailedStarts) -> Vec<Check> {
    let name = &definition.alias;
    let check = |package: String| {
        let text = format!("`{name}` downloads a package without a fixed version");
        Check::warn("UNPINNED", text, "write the pin into the entry's `args`").detail(package)
    };
    packages::unpinned(definition, failed).into_iter().map(check).collect()
}

fn command(name: &str, command: &str, folder: &Path) -> Check {
    match find(command, folder) {
        Some(path) => {
            let text = format!("`{name}` starts {}", program_name(command));
            Check::info("COMMAND", text).detail(path.display().to_string())
        }
        None => {
            let place = if command.contains('/') { "there" } else { "in PATH" };
            let text = format!("`{name}` starts {command}, which was not found {place}");
            Check::warn("COMMAND", text, "install it, or write the path of the program")
        }
    }
}

fn faults(loaded: &LoadedConfig, served: &Served) -> Vec<Check> {
    let mut checks = Vec::new();
    for entry in &loaded.entries {
        if let Entry::Fault(fault) = entry {
            checks.extend(of_fault(fault, served));
        }
    }
    let of_warning = |warning: &ConfigWarning| {
        let text = format!("{} at {}", warning.file.display(), warning.path);
        Check::warn("ENTRY", text, "correct the entry").detail(&warning.message)
    };
    checks.extend(loaded.warnings.iter().map(of_warning));
    checks
}

/// One line for each problem of an entry.
fn of_fault(fault: &ConfigFault, served: &Served) -> Vec<Check> {
    let details = fault.error.details.as_ref();
    let problems = details.and_then(|details| details["problems"].as_array());
    let check = |code: &str, message: &str| {
        let name = &fault.name;
        match code {
            "variable_missing" if served.names.contains(name) => {
                let text = format!(
                    "`{name}` needs a variable that is not set in this shell; the daemon has it"
                );
                Check::info("ENV", text).detail(message)
            }
            "variable_missing" => {
                let text = format!("`{name}` needs a variable of the environment that is not set");
                Check::warn("ENV", text, "set it where the daemon starts").detail(message)
            }
            _ => {
                let text = format!("`{name}` cannot be used");
                Check::warn("ENTRY", text, "correct the entry").detail(message)
            }
        }
    };
    match problems {
        Some(problems) if !problems.is_empty() => {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let told =
                problems.iter().map(|one| check(&text(&one["code"]), &text(&one["message"])));
            told.collect()
        }
        Some(_) | None => vec![check("", &fault.error.message)],
    }
}
