//! `cargo xtask openapi`: writes `docs/reference/openapi.json` anew, or compares it with an older
//! one.

mod meaning;

use anyhow::{Context, Result};
use clap::Args;
use fs_err as fs;
use serde_json::Value;

use crate::process;
use crate::workspace::{self, cargo};

/// The test that compares the document with the one in the repository.
const TEST: &str = "api::openapi::the_document_in_the_repository_equals_the_served_document";
/// The places of the document, the present one first.
const PLACES: [&str; 2] = ["docs/reference/openapi.json", "docs/openapi.json"];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Compares the document in the repository with that of this revision, and writes nothing
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
}

/// Has that test write what it would compare.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(revision) = &options.since {
        return compare(revision);
    }
    // All crates are built, as one crate alone would build others with other features.
    let mut command = cargo(&["test", "--workspace", "--test", "it", "--"]);
    command.args(["--exact", TEST]).env("UPDATE_GOLDEN", "1");
    process::run(&mut command)?;
    Ok(true)
}

/// Prints the differences of meaning. Texts may differ. False if there is a difference.
fn compare(revision: &str) -> Result<bool> {
    let old = PLACES.iter().find_map(|place| {
        let mut command = std::process::Command::new("git");
        let shown = command.args(["show", &format!("{revision}:{place}")]);
        let output = shown.current_dir(workspace::root()).output().ok()?;
        output.status.success().then_some(output.stdout)
    });
    let old = old.with_context(|| format!("the revision `{revision}` has no document"))?;
    let old: Value = serde_json::from_slice(&old)?;
    let new: Value = serde_json::from_slice(&fs::read(workspace::root().join(PLACES[0]))?)?;
    let differences = meaning::differences(&old, &new);
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} differences of meaning since {revision}", differences.len());
    Ok(differences.is_empty())
}
