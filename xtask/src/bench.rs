//! `cargo xtask bench`: what a call costs directly, through nginx, and through narthex; and what
//! servers over stdio, idle sessions, many rows, many runs and pages of the console cost.
//!
//! All ways are measured in one run against the same fixtures, in turns, so that a slow moment of
//! the machine meets all of them. A whole run writes `docs/reference/benchmarks.md`; a part of it
//! only prints. An aim that is missed is shown as missed.

mod aims;
mod console;
mod decisions;
pub(crate) mod guard;
mod idle;
mod load;
mod machine;
mod mounts;
mod nginx;
mod plan;
mod profile;
mod registry;
mod report;
mod results;
mod runs;
mod stage;
mod stdio;
mod table;

use std::process::Command;

use anyhow::Result;
use clap::Args;
use fs_err as fs;

use self::load::Load;
use self::nginx::Nginx;
use self::plan::{Case, Era, Extra, Selection};
use self::results::{Results, Row};
use self::stage::Stage;
use crate::process;
use crate::workspace;

/// The document that stores the results of a whole run.
const DOCUMENT: &str = "docs/reference/benchmarks.md";

#[derive(Args)]
pub(crate) struct Options {
    /// A short run: one round of short windows, for a first look.
    #[arg(long)]
    quick: bool,
    /// Measure only what has these words: eras, kinds of work, numbers of connections, ways.
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    only: Vec<String>,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// The build profile to measure.
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Measure the programs as the last build left them.
    #[arg(long)]
    no_build: bool,
    /// How many times each measurement is made, in turns with the others.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Also show where the gateway's processor time goes.
    #[arg(long)]
    profile_cpu: bool,
}

impl Options {
    /// True if the results may represent the product.
    fn is_whole(&self) -> bool {
        !self.quick && !self.no_build && self.only.is_empty() && self.profile == "dist"
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 5 }).max(1)
    }
}

/// Measures; false if an aim is missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let selection = Selection::read(&options.only)?;
    if !options.no_build && selection.needs_programs() {
        build(&options.profile)?;
    }
    let nginx = Nginx::find_or_download()?;
    let dir = workspace::target().join("bench");
    fs::create_dir_all(&dir)?;
    let mut results = Results::new(machine::describe(&nginx, &options.profile)?, options.rounds());
    for era in Era::ALL.into_iter().filter(|era| selection.has_era(*era)) {
        let stage = Stage::start(era, &nginx, &options.profile, &dir)?;
        for case in Case::all(era).into_iter().filter(|case| selection.has_case(case)) {
            results.rows.extend(measure(&stage, case, &selection, options)?);
        }
        if options.profile_cpu {
            results.profiles.extend(profile::record(&stage, &dir)?);
        }
        results.nginx_config.clone_from(&stage.nginx_config);
        stage.stop()?;
    }
    if selection.has_extra(Extra::Stdio) {
        results.stdio = stdio::measure(options, &selection, &dir)?;
    }
    if selection.has_extra(Extra::Registry) {
        results.registry = registry::measure(options)?;
    }
    if selection.has_extra(Extra::Decisions) {
        results.decisions = decisions::measure(options)?;
    }
    if selection.has_extra(Extra::Idle) {
        results.idle = idle::measure(&nginx, options, &dir)?;
    }
    if selection.has_extra(Extra::Runs) {
        results.runs = runs::measure(options, &dir)?;
    }
    if selection.has_extra(Extra::Mounts) {
        results.mounts = mounts::measure(options, &dir)?;
    }
    if selection.has_extra(Extra::Console) {
        results.console = Some(console::measure(options, &dir)?);
    }
    finish(&results, options)
}

fn build(profile: &str) -> Result<()> {
    let packages = ["-p", "narthex", "-p", "narthex-testkit", "--bins"];
    process::run(workspace::cargo(&["build", "--profile", profile]).args(packages))
}

/// Makes one measurement of each way in turn, and again.
fn measure(
    stage: &Stage,
    case: Case,
    selection: &Selection,
    options: &Options,
) -> Result<Vec<Row>> {
    let ways = case.ways().into_iter().filter(|way| selection.has_way(*way));
    let mut rows: Vec<Row> = ways.map(|way| Row::new(case, way)).collect();
    for round in 1..=options.rounds() {
        for row in &mut rows {
            let sample = Load::new(stage, &case, row.way, options.quick).run()?;
            eprintln!("{case} {:<11} {round}: {sample}", row.way.name());
            row.samples.push(sample);
        }
    }
    Ok(rows)
}

fn finish(results: &Results, options: &Options) -> Result<bool> {
    let aims = aims::check(results);
    let text = report::write(results, &aims);
    let json = serde_json::to_string_pretty(results)?;
    let dir = workspace::target().join("bench");
    fs::write(dir.join("results.json"), &json)?;
    if options.is_whole() {
        fs::write(workspace::root().join(DOCUMENT), &text)?;
    }
    println!("{}", if options.json { &json } else { &text });
    Ok(aims.iter().all(|aim| aim.is_met))
}

/// A program of the workspace, as it was built for this run.
fn program(name: &str, profile: &str) -> Command {
    Command::new(workspace::built_as(profile, name))
}
