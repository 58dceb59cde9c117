//! `narthex completions` and `narthex man`: a shell's completion script and the manual pages, both
//! generated from the command line.

use std::process::ExitCode;

use clap::{Command, CommandFactory};
use fs_err as fs;
use serde_json::json;

use crate::{
    Failure,
    cli::{Cli, CompletionsArgs, Context, ManArgs},
    output,
};

pub(crate) fn run(args: &CompletionsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "narthex", &mut text);
    let script = String::from_utf8_lossy(&text);
    match context.format.is_json() {
        true => output::done(&json!({ "shell": args.shell.to_string(), "script": script }))?,
        false => output::line(&script)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for the program and one for each command that help shows, such as
/// `narthex-mcp-list.1`.
pub(crate) fn write_manual(
    command: Command,
    args: &ManArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let folder = &args.folder;
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)?;
    match context.format.is_json() {
        true => output::done(&json!({ "folder": folder.display().to_string() }))?,
        false => output::line(&format!("The manual pages are in {}", folder.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}
