//! The load generator as a program; prints one line of JSON with what it has measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use http::{HeaderValue, Uri};
use narthex_testkit::load::{Era, IdlePlan, Plan, RunsPlan, StdioPlan, Target, Work};
use serde::Serialize;

/// Calls an MCP server over HTTP as fast as it answers, and checks every answer.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure calls in a closed loop
    Run(RunArgs),
    /// Measure calls of a program over its standard input and output
    Stdio(StdioArgs),
    /// Measure what idle sessions cost
    Idle(IdleArgs),
    /// Measure what creating, keeping and ending runs costs
    Runs(RunsArgs),
    /// Count the tools that are listed
    Tools(TargetArgs),
}

#[derive(Args)]
struct TargetArgs {
    /// The endpoint
    #[arg(long)]
    url: Uri,
    /// The protocol era: legacy or modern
    #[arg(long)]
    era: Era,
    /// A file with a token, sent as a bearer token
    #[arg(long, value_name = "PATH")]
    bearer_file: Option<PathBuf>,
    /// A process whose use of processor and memory is measured; may be repeated
    #[arg(long, value_name = "PID")]
    watch: Vec<u32>,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Work: echo, blob, progress or list
    #[arg(long, default_value = "echo")]
    work: String,
    /// Bytes of a blob, steps of progress, or tools of the list
    #[arg(long, default_value_t = 0)]
    size: usize,
    /// Prefixes of tool names; several are taken in turn
    #[arg(long)]
    prefix: Vec<String>,
    /// How many connections, each with one request at a time
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// How long to call before measuring
    #[arg(long, default_value_t = 500)]
    warm_up_ms: u64,
    /// How long to measure
    #[arg(long, default_value_t = 2000)]
    window_ms: u64,
    /// A fixture that the calls must arrive at; may be repeated
    #[arg(long, value_name = "URL")]
    fixture: Vec<Uri>,
}

#[derive(Args)]
struct StdioArgs {
    /// The protocol era: legacy or modern
    #[arg(long)]
    era: Era,
    /// Work: echo, blob or list
    #[arg(long, default_value = "echo")]
    work: String,
    /// Bytes of a blob, or tools of the list
    #[arg(long, default_value_t = 0)]
    size: usize,
    /// How many calls are open at any time
    #[arg(long, default_value_t = 1)]
    callers: usize,
    /// How long to call before measuring
    #[arg(long, default_value_t = 500)]
    warm_up_ms: u64,
    /// How long to measure
    #[arg(long, default_value_t = 2000)]
    window_ms: u64,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<String>,
}

#[derive(Args)]
struct IdleArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// How many sessions
    #[arg(long, default_value_t = 1000)]
    sessions: usize,
    /// Keep a connection with an open stream for each session
    #[arg(long)]
    streams: bool,
}

#[derive(Args)]
struct RunsArgs {
    /// With the URL of a workspace's runs
    #[command(flatten)]
    target: TargetArgs,
    /// The document that is posted
    #[arg(long)]
    body: String,
    /// How many live runs
    #[arg(long, default_value_t = 1000)]
    runs: usize,
    /// How many further ones are ended
    #[arg(long, default_value_t = 200)]
    ended: usize,
}

#[derive(Serialize)]
struct Tools {
    tools: usize,
}

/// One thread: it shares the machine with what it measures.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Run(args) => print(&run(args).await?),
        Command::Stdio(args) => print(&args.read()?.run().await?),
        Command::Idle(args) => {
            let (target, watched) = args.target.read()?;
            let (sessions, has_streams) = (args.sessions, args.streams);
            print(&IdlePlan { target, sessions, has_streams, watched }.run().await?)
        }
        Command::Runs(args) => {
            let (target, watched) = args.target.read()?;
            let RunsArgs { body, runs, ended, .. } = args;
            print(&RunsPlan { target, body, runs, ended, watched }.run().await?)
        }
        Command::Tools(args) => print(&Tools { tools: args.read()?.0.count_tools().await? }),
    }
}

async fn run(args: RunArgs) -> anyhow::Result<impl Serialize> {
    let (target, watched) = args.target.read()?;
    let prefixes = if args.prefix.is_empty() { vec![String::new()] } else { args.prefix };
    let plan = Plan {
        target,
        work: Work::new(&args.work, args.size)?,
        prefixes,
        connections: args.connections,
        warm_up: Duration::from_millis(args.warm_up_ms),
        window: Duration::from_millis(args.window_ms),
        watched,
        fixtures: args.fixture,
    };
    plan.run().await
}

impl StdioArgs {
    fn read(self) -> anyhow::Result<StdioPlan> {
        let mut words = self.program.into_iter();
        Ok(StdioPlan {
            program: words.next().context("no program is named")?.into(),
            args: words.collect(),
            era: self.era,
            work: Work::new(&self.work, self.size)?,
            callers: self.callers,
            warm_up: Duration::from_millis(self.warm_up_ms),
            window: Duration::from_millis(self.window_ms),
        })
    }
}

impl TargetArgs {
    fn read(self) -> anyhow::Result<(Target, Vec<u32>)> {
        let Self { url, era, bearer_file, watch } = self;
        let authorization = bearer_file.as_deref().map(read_bearer).transpose()?;
        Ok((Target { url, authorization, era }, watch))
    }
}

fn read_bearer(path: &Path) -> anyhow::Result<HeaderValue> {
    let token = fs_err::read_to_string(path)?;
    let mut value: HeaderValue =
        format!("Bearer {}", token.trim()).parse().context("the file holds no token")?;
    value.set_sensitive(true);
    Ok(value)
}

#[expect(clippy::print_stdout, reason = "the line is what the program is for")]
fn print(outcome: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(outcome)?);
    Ok(())
}
