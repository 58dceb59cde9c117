//! The list of all dependencies with versions and licences, as a `CycloneDX` document.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use super::entry::TIME;
use super::platform::Platform;
use super::product::VERSION;
use crate::process;
use crate::tools;
use crate::workspace;

/// The name under which the tool writes into the folder of each crate.
const NAME: &str = "narthex-dist.cdx";

/// Writes the document of the program on this platform.
pub(super) fn make(folder: &Path) -> Result<PathBuf> {
    let mut command = tools::CYCLONEDX.command()?;
    command.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--all", "--quiet"]);
    command.args(["--override-filename", NAME]).env("SOURCE_DATE_EPOCH", TIME.to_string());
    let ran = process::run(&mut command);
    let text = collect()?;
    ran?;
    let text = without_machine(&text.context("the tool wrote no document of narthex")?)?;
    let suffix = Platform::current()?.suffix();
    let file = folder.join(format!("narthex-{VERSION}-{suffix}.cdx.json"));
    fs::write(&file, text)?;
    Ok(file)
}

/// Removes what the tool has written into the folders of all crates, and gives the program's.
fn collect() -> Result<Option<String>> {
    let mut found = None;
    let root = workspace::root();
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().current_dir(&root).exec()?;
    for package in metadata.workspace_packages() {
        let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
        let file = folder.join(format!("{NAME}.json"));
        if file.exists() {
            let text = fs::read_to_string(&file)?;
            fs::remove_file(&file)?;
            if *package.name == "narthex" {
                found = Some(text);
            }
        }
    }
    Ok(found)
}

/// The document without the paths of this machine, which the tool writes into names of crates.
fn without_machine(text: &str) -> Result<String> {
    let text = text.replace(&format!("{}", workspace::root().display()), "");
    let document: Value = serde_json::from_str(&text).context("the tool wrote no JSON")?;
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
}
