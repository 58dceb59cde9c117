//! Streams the operations of runs to watchers as each operation ends (R-M35), and shows the load of
//! runs.

use http::StatusCode;
use narthex_control::FieldError;
use narthex_model::{Alias, ErrorKind, RunEnd};
use narthex_run_events::Watcher;
use narthex_runs::{RunError, RunStatus, SeenRun};
use tokio::{sync::OwnedSemaphorePermit, time::sleep};

use super::{Answered, Asked, Query, events::STREAM_LIFE, query::refused};
use crate::{
    auth::Principal,
    feed::Events,
    post::prefers_stream,
    problem::Problem,
    shapes::{RunTraceBegin, RunTraceEnd, RunTraceLost, RunTraced},
};

mod lines;
mod top;

use self::lines::{Shown, line};

/// Maximum number of servers that a watcher may name.
const ALIASES_MAX: usize = 64;

/// The target of a request to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchTarget {
    /// The operations of a run, each as it ends.
    Trace,
    /// The load of a workspace's runs.
    Top,
}

impl Asked<'_> {
    /// Handles a request to watch a run, or for the load of a workspace's runs.
    pub(super) async fn of_watching(&self, target: WatchTarget) -> Answered {
        match target {
            WatchTarget::Trace => self.trace().await,
            WatchTarget::Top => self.top().await,
        }
    }

    /// Streams every operation of a run from now on, each as it ends, until the run ends.
    async fn trace(&self) -> Answered {
        let aliases = aliases(&self.query(&["alias"])?)?;
        let (workspace, name) = (self.workspace()?, self.segment(1));
        let runs = self.known_runs()?.clone();
        let run = self.watchable(runs.get(&workspace, &name).await?, &name)?;
        let id = run.id().ok_or_else(|| absent(&name))?;
        self.known_aliases(&run, &aliases)?;
        let watcher = self.door.gateway.tap().watch(id, aliases);
        // The run is read again: an end after this point is reported in the stream.
        let again = runs.get(&workspace, &id.to_text()).await?;
        if let RunStatus::Over(how) = again.status() {
            let how = how.as_str();
            let text = format!("the run `{name}` has ended ({how}); name an active run");
            return Err(Problem::new(ErrorKind::Conflict, text));
        }
        if !prefers_stream(&self.parts.headers) {
            let text = "the trace of a run is a stream; put `text/event-stream` first in `Accept`";
            let problem = Problem::new(ErrorKind::Invalid, text);
            return Err(problem.with_status(StatusCode::NOT_ACCEPTABLE));
        }
        let place = self.stream_place()?;
        let is_local = run.view.as_ref().is_some_and(|view| runs.is_local(view));
        let shown = Shown::new(run.row.as_ref().map_or(0, |row| row.pid.get()));
        let agent = run.row.as_ref().map(|row| &row.agent).filter(|name| !name.is_empty());
        let begin = RunTraced::Begin(RunTraceBegin {
            event: RunTraceBegin::TYPE,
            run_id: id.to_text().into(),
            pid: shown.pid,
            is_local,
            agent_name: agent.map(Into::into),
            at: shown.since.into(),
        });
        Ok(self.stream(async move |events: Events| {
            let put = async {
                events.put(&begin).await;
                put_all(watcher, &shown, &events, place).await;
                let ended = runs.get(&workspace, &id.to_text()).await;
                let over = RunStatus::Over(RunEnd::Ended);
                let status = ended.map_or(over, |run| run.status()).into();
                events.put(&RunTraced::End(RunTraceEnd { event: RunTraceEnd::TYPE, status })).await;
            };
            tokio::select! {
                biased;
                () = sleep(STREAM_LIFE) => {}
                () = put => {}
            }
        }))
    }

    /// The run, if the caller may watch it. For a run, other runs are absent.
    fn watchable(&self, run: SeenRun, name: &str) -> Result<SeenRun, Problem> {
        match &self.principal {
            Principal::Run(own) if run.id() != Some(own.id) => Err(absent(name)),
            Principal::Run(_) | Principal::Known(_) | Principal::Human(_) => Ok(run),
            Principal::LocalAdmin => Ok(run),
        }
    }

    /// Refuses names of servers that the run lacks, since the stream would never report any
    /// operation of theirs.
    fn known_aliases(&self, run: &SeenRun, asked: &[Alias]) -> Result<(), Problem> {
        let Some(view) = &run.view else { return Ok(()) };
        let has = self.door.gateway.aliases(view);
        let Some(unknown) = asked.iter().find(|alias| !has.contains(alias)) else { return Ok(()) };
        let names: Vec<_> = has.iter().map(Alias::as_str).collect();
        let remedy = match names.is_empty() {
            true => "it has no servers now".to_owned(),
            false => format!("name one that it has: {}", names.join(", ")),
        };
        Err(unfit(format!("the run has no server `{unknown}`"), &remedy))
    }

    /// Takes one place under the limit of open event streams.
    pub(super) fn stream_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let streams = self.door.event_streams.clone();
        streams.try_acquire_owned().map_err(|_none| {
            let text = "the limit of open event streams is reached; try again later";
            Problem::new(ErrorKind::Exhausted, text)
        })
    }
}

/// Puts each operation into the stream, until the run has ended.
async fn put_all(
    mut watcher: Watcher,
    shown: &Shown,
    events: &Events,
    _place: OwnedSemaphorePermit,
) {
    while let Some(seen) = watcher.next().await {
        if seen.lost > 0 {
            let lost = RunTraceLost { event: RunTraceLost::TYPE, count: seen.lost };
            events.put(&RunTraced::Lost(lost)).await;
        }
        events.put(&RunTraced::Operation(line(&seen.operation, shown))).await;
    }
}

fn absent(name: &str) -> Problem {
    RunError::Unknown(name.chars().take(100).collect()).into()
}

/// The aliases of servers in a query, separated by commas; an empty list means all servers.
fn aliases(query: &Query) -> Result<Vec<Alias>, Problem> {
    let words = query.text("alias").split(',').filter(|word| !word.is_empty());
    let aliases: Result<Vec<_>, _> = words
        .map(|word| Alias::new(word).map_err(|error| unfit(error.to_string(), "write an alias")))
        .collect();
    match aliases? {
        aliases if aliases.len() > ALIASES_MAX => {
            Err(unfit(format!("{} are too many", aliases.len()), "name 64 at most, or none"))
        }
        aliases => Ok(aliases),
    }
}

fn unfit(what: String, remedy: &str) -> Problem {
    refused(&[FieldError::invalid("alias", what, remedy)])
}
