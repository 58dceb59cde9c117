//! `cargo xtask openapi`: writes `docs/reference/openapi.json` anew.

use anyhow::Result;

use crate::process;
use crate::workspace::cargo;

/// The test that compares the document with the one in the repository.
const TEST: &str = "api::openapi::the_document_in_the_repository_is_true";

/// Has that test write what it would compare.
pub(crate) fn run() -> Result<bool> {
    // All crates are built, as one crate alone would build others with other features.
    let mut command = cargo(&["test", "--workspace", "--test", "it", "--"]);
    command.args(["--exact", TEST]).env("UPDATE_GOLDEN", "1");
    process::run(&mut command)?;
    Ok(true)
}
