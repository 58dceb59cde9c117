//! `narthex completions`: prints a shell's completion script for this command line.

use std::process::ExitCode;

use clap::CommandFactory;
use serde_json::json;

use crate::{
    Failure,
    cli::{Cli, CompletionsArgs, Context},
    output,
};

pub(crate) fn run(args: &CompletionsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "narthex", &mut text);
    let script = String::from_utf8_lossy(&text);
    match context.format.is_json() {
        true => output::json(&json!({ "shell": args.shell.to_string(), "script": script }))?,
        false => output::line(&script)?,
    }
    Ok(ExitCode::SUCCESS)
}
