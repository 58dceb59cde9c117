//! `narthex completions`: what a shell needs to complete this command line.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::{
    cli::{Cli, CompletionsArgs},
    failure::Failure,
    output,
};

pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "narthex", &mut text);
    output::line(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
