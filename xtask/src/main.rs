//! The one entry to checking, testing and measuring this repository: `cargo xtask COMMAND`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool that talks to a terminal"
)]

mod bench;
mod check;
mod conformance;
mod console;
mod dist;
mod oauth;
mod openapi;
mod peers;
mod process;
mod schemathesis;
mod soak;
mod steps;
mod tally;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks, tests and measures the narthex workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Formatting, tidy, clippy and documentation, each without a single warning.
    Check,
    /// The house rules that no other tool knows: sizes, imports, owners, requirements, texts.
    Tidy(tidy::Options),
    /// The claims of `docs/requirements.md`, each with the tests that carry its number.
    Requirements(tidy::Index),
    /// Everything that CI runs: check, unit, doc, conformance and real peer tests.
    Test(test::Options),
    /// Runs the tests that take too long for every change: many rounds, load, scale, mutants.
    Soak(soak::Options),
    /// Writes `docs/reference/openapi.json`, as the daemon serves it, or compares it.
    Openapi(openapi::Options),
    /// Makes the packages of a release in `target/packages`; `--check` installs and tries each.
    Dist(dist::Options),
    /// Measures calls directly, through nginx and through narthex.
    Bench(bench::Options),
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    process::kill_children_on_interrupt()?;
    let is_good = match cli.command {
        Command::Check => check::run()?,
        Command::Tidy(options) => tidy::run(&options)?,
        Command::Requirements(options) => tidy::print_index(&options)?,
        Command::Test(options) => test::run(&options)?,
        Command::Soak(options) => soak::run(&options)?,
        Command::Openapi(options) => openapi::run(&options)?,
        Command::Dist(options) => dist::run(&options)?,
        Command::Bench(options) => bench::run(&options)?,
    };
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
