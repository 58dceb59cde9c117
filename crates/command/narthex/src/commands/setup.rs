//! `narthex setup`: moves the servers of this user's MCP clients to narthex, and connects the
//! clients to it.
//!
//! Files of the user are written, and those of the folder whose content the user has approved.
//! A server leaves a client's file only after the daemon has listed its tools. Each change is
//! recorded before it is made, so that `--undo` works after an end at any moment.

mod again;
mod apply;
mod connection;
mod daemon;
pub(super) mod find;
pub(super) mod own_machine;
pub(super) mod place;
mod projects;
mod reached;
mod report;
mod secrets;
mod service;
mod settings;
mod shown;
mod stopped;
pub(super) mod undo;

use std::{path::Path, process::ExitCode};

use narthex_client::{
    cli::SetupArgs, commands::typed::is_agreed, environment::check_lasting, stop::stop_signal,
};
use narthex_client_files::journal::Step;
use narthex_model::{ErrorKind, command::narthex};

use self::{daemon::Daemon, find::Survey, stopped::Stopped};
use crate::{
    Failure,
    cli::Context,
    data_dir::DataDir,
    output::{self, harmless},
};

pub(crate) async fn run(args: SetupArgs, context: Context) -> Result<ExitCode, Failure> {
    let place = context.settings.daemon.data.clone();
    if args.undo {
        return undo::run(&args, &place, &context).await;
    }
    let begin = Begin::of(&place)?;
    let stopped = stop_signal()?;
    let done = tokio::select! {
        biased;
        done = Box::pin(set_up(&args, &place, &context)) => done,
        () = stopped => Err(Failure::interrupted("nothing has changed")),
    };
    match done {
        Err(failure) if failure.is_interrupted() => Err(begin.stopped(&place, &args.only)?),
        done => done,
    }
}

/// The state before a set-up.
struct Begin {
    /// The recorded steps, those of earlier set-ups.
    steps: Vec<Step>,
    has_daemon: bool,
}

impl Begin {
    fn of(place: &Path) -> Result<Self, Failure> {
        let data = DataDir::at(place);
        let steps = place::journal(&data)?.steps().to_vec();
        Ok(Self { steps, has_daemon: data.is_locked()? })
    }

    /// The failure of a set-up that a signal has stopped since.
    fn stopped(&self, place: &Path, only: &[String]) -> Result<Failure, Failure> {
        let data = DataDir::at(place);
        let journal = place::journal(&data)?;
        // A set-up forgets servers of earlier ones that do not work.
        let new = journal.steps().iter().filter(|step| !self.steps.contains(step));
        let steps: Vec<_> = new.cloned().collect();
        let is_daemon_started = !self.has_daemon && data.is_locked()?;
        let settings = settings::LABEL;
        Ok(Stopped { steps: &steps, settings, is_daemon_started, only }.failure())
    }
}

async fn set_up(args: &SetupArgs, place: &Path, context: &Context) -> Result<ExitCode, Failure> {
    let journal = place::journal(&DataDir::at(place))?;
    let survey = Survey::find(&args.only, &context.settings, &journal).await?;
    let is_text = context.format.is_text();
    if is_text {
        // With `--yes` no person reads the plan before the act, and the end has the reasons.
        survey.show(!args.yes || survey.is_done())?;
    }
    if survey.is_done() {
        return unchanged(&survey, args.dry_run, context);
    }
    let offer = service::offer(context).await?;
    if is_text {
        let is_running = DataDir::at(place).is_locked()?;
        let lines = service::shown(&offer, is_running).into_iter().chain(survey.to_quit());
        let lines: Vec<_> = lines.map(|line| harmless(&line)).collect();
        if !lines.is_empty() {
            output::sentence(&format!("\n{}", lines.join("\n")))?;
        }
    }
    if args.dry_run {
        return unchanged(&survey, args.dry_run, context);
    }
    check_lasting()?;
    survey.check_private()?;
    Daemon::check_before(&survey.settings, context).await?;
    let is_wanted = is_agreed(args.yes, context.format, &survey.question()).await?;
    if !is_wanted {
        let text = format!(
            "nothing was set up, and nothing has changed; answer `y` on a terminal, or run `{}`",
            again::sure(&args.only)
        );
        let details = Some(survey.to_json());
        return Err(Failure::new(ErrorKind::Denied, text).with_details(details));
    }
    let data = DataDir::open(place)?;
    let _lock = place::lock(&data)?;
    let mut journal = place::journal(&data)?;
    let survey = survey.again(&args.only, &context.settings, &journal).await?;
    let applied = apply::run(&survey, offer, &mut journal, context).await;
    let applied = applied.map_err(|failure| half_way(failure, &args.only))?;
    report::tell(&survey, &applied, context)?;
    Ok(ExitCode::SUCCESS)
}

/// The result of a command that changes nothing.
fn unchanged(survey: &Survey, is_dry: bool, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(&survey.to_json())?;
    } else if context.format.is_quiet() {
        survey.moving().try_for_each(|one| output::line(one.alias.as_str()))?;
    } else if is_dry {
        output::sentence("\nNothing has changed: this was a dry run.")?;
    } else {
        output::sentence("\nThere is nothing to set up, and nothing has changed.")?;
        let hint = match survey.plan.servers.is_empty() && !survey.has_servers {
            true => format!(
                "To begin without a client's servers, `{}` and `{}` find a server in a registry. \
                 `{}` adds one whose command you know.",
                narthex("search WORDS", &[]),
                narthex("add NAME", &[]),
                narthex("mcp add NAME -- COMMAND", &[]),
            ),
            false => format!(
                "`{}` shows the servers that narthex has, and why one fails.",
                narthex("mcp list", &[])
            ),
        };
        output::sentence(&hint)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The failure of a set-up that has begun.
fn half_way(failure: Failure, only: &[String]) -> Failure {
    let message = format!(
        "{}; `{}` continues, and `{}` takes back all that was done until now",
        failure.message,
        again::again(only),
        narthex("setup --undo", &[]),
    );
    Failure { message, ..failure }
}
