//! What runs do, told to whoever watches (R-M35): operations as they end, and how busy runs are.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http_body::Body;
use narthex_control::FieldError;
use narthex_model::{Alias, ErrorKind, Timestamp};
use narthex_mount::{Code, MountName, Place};
use narthex_runs::{RunError, RunStatus, SeenRun};
use narthex_trace::{FileOperation, Watcher};
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::OwnedSemaphorePermit, time::sleep};

use super::{Answered, Asked, Query, events::STREAM_LIFE, ok};
use crate::{auth::Principal, feed::Events, problem::Problem};

mod lines;
mod top;

use self::lines::{Shown, line};

/// How many operations a mount may report at a time.
const REPORT_MAX: usize = 256;
/// How long such a report may be.
const REPORT_BYTES: usize = 2 * 1024 * 1024;
/// How many servers may be named.
const ALIASES_MAX: usize = 64;

/// What of watching is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchTarget {
    /// The operations of a run, as they end.
    Trace,
    /// Operations that a mount of a run reports.
    Operations,
    /// How busy the runs of a workspace are.
    Top,
}

/// What a mount reports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    operations: Vec<Reported>,
}

/// One operation that has ended in another process.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    operation: String,
    path: String,
    fd: Option<u64>,
    size: Option<i64>,
    result: Option<u64>,
    error: Option<String>,
    duration_us: u64,
}

impl Asked<'_> {
    /// What runs do, and what mounts report of that.
    pub(super) async fn of_watching<B>(&self, target: WatchTarget, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        match target {
            WatchTarget::Trace => self.trace().await,
            WatchTarget::Operations => self.report_operations(body).await,
            WatchTarget::Top => self.top().await,
        }
    }

    /// Every operation of a run from now on, as it ends, until the run does.
    async fn trace(&self) -> Answered {
        let aliases = aliases(&self.query(&["alias"])?)?;
        let (workspace, name) = (self.workspace()?, self.segment(1));
        let runs = self.known_runs()?.clone();
        let run = self.watchable(runs.get(&workspace, &name).await?, &name)?;
        let id = run.id().ok_or_else(|| absent(&name))?;
        let watcher = self.door.gateway.tap().watch(id, aliases);
        // Looked at once more: from here on its end is told.
        let again = runs.get(&workspace, &id.to_text()).await?;
        if let RunStatus::Over(how) = again.status() {
            let how = how.as_str();
            let text =
                format!("the run `{name}` is over ({how}); only those that go on do anything");
            return Err(Problem::new(ErrorKind::Conflict, text));
        }
        let place = self.stream_place()?;
        let is_local = run.view.as_ref().is_some_and(|view| runs.is_local(view));
        let shown = Shown::new(run.row.as_ref().map_or(1, |row| row.pid.get()));
        let begin = json!({
            "type": "begin",
            "run_id": id.to_text(),
            "pid": shown.pid,
            "is_local": is_local,
            "agent_name": run.row.as_ref().map(|row| &row.agent).filter(|name| !name.is_empty()),
            "at": Timestamp::new(shown.since).to_string(),
        });
        Ok(self.stream(async move |events: Events| {
            let put = async {
                events.put(&begin).await;
                put_all(watcher, &shown, &events, place).await;
                let ended = runs.get(&workspace, &id.to_text()).await;
                let status = ended.map_or("ended", |run| run.status().as_str());
                events.put(&json!({ "type": "end", "status": status })).await;
            };
            tokio::select! {
                biased;
                () = sleep(STREAM_LIFE) => {}
                () = put => {}
            }
        }))
    }

    /// A run, if whoever asks may watch it: those of others look absent to a run.
    fn watchable(&self, run: SeenRun, name: &str) -> Result<SeenRun, Problem> {
        match &self.principal {
            Principal::Run(own) if run.id() != Some(own.id) => Err(absent(name)),
            Principal::Run(_) | Principal::Known(_) | Principal::Human(_) => Ok(run),
            Principal::LocalAdmin => Ok(run),
        }
    }

    fn stream_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let streams = self.door.event_streams.clone();
        streams.try_acquire_owned().map_err(|_none| {
            let text = "as many streams of events are open as there may be; try again later";
            Problem::new(ErrorKind::Exhausted, text)
        })
    }

    /// Takes what a mount of a run reports of its operations. It is told as the mount says it; the
    /// record is the audit's.
    async fn report_operations<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let name = self.segment(1);
        let Principal::Run(own) = &self.principal else { return Err(absent(&name)) };
        if own.id.to_text() != name {
            return Err(absent(&name));
        }
        let text = self.text(body, &[], REPORT_BYTES).await?;
        let report = read_report(&text)?;
        let tap = self.door.gateway.tap();
        for (index, reported) in report.operations.iter().enumerate() {
            let (alias, done) = reported.read(index)?;
            tap.file(own.id, alias.as_ref(), done);
        }
        Ok(ok(&json!({ "is_watched": tap.is_watching(own.id) })))
    }
}

/// Puts out what is seen, until the run has ended.
async fn put_all(
    mut watcher: Watcher,
    shown: &Shown,
    events: &Events,
    _place: OwnedSemaphorePermit,
) {
    while let Some(seen) = watcher.next().await {
        if seen.lost > 0 {
            events.put(&json!({ "type": "lost", "count": seen.lost })).await;
        }
        let mut told = json!(line(&seen.operation, shown));
        told["type"] = "operation".into();
        events.put(&told).await;
    }
}

fn read_report(text: &str) -> Result<Report, Problem> {
    let invalid = |what: String| {
        let remedy = "write {\"operations\": [{\"operation\", \"path\", \"duration_us\", …}]}";
        let fault = FieldError::invalid("operations", what, remedy);
        Problem::of_fields(format!("the report cannot be used: {fault}"), &[fault])
    };
    if !text.trim_start().starts_with('{') {
        return Err(invalid("the body is no object".to_owned()));
    }
    let report: Report = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    match report.operations.len() {
        0..=REPORT_MAX => Ok(report),
        count => Err(invalid(format!("{count} are more than the {REPORT_MAX} that one may have"))),
    }
}

impl Reported {
    /// What is told of it, and of which server. Only words that are known get any further.
    fn read(&self, index: usize) -> Result<(Option<Alias>, FileOperation<'_>), Problem> {
        let invalid = |field: &str, remedy: String| {
            let field = format!("operations[{index}].{field}");
            let fault = FieldError::invalid(&field, "this is none", remedy);
            Problem::of_fields(format!("the report cannot be used: {fault}"), &[fault])
        };
        let name = OPERATIONS.into_iter().find(|known| *known == self.operation);
        let name = name.ok_or_else(|| {
            invalid("operation", format!("write one of `{}`", OPERATIONS.join("`, `")))
        })?;
        let place = Place::parse(&self.path);
        let place = place.map_err(|error| invalid("path", error.message))?;
        let alias = match place {
            Place::In(MountName { alias, .. }, _) => Some(alias),
            Place::Mounts => None,
        };
        let known = |word: &String| Code::ALL.iter().find(|code| code.as_str() == word);
        let code = match &self.error {
            None => None,
            Some(word) => Some(known(word).ok_or_else(|| {
                let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
                invalid("error", format!("write one of `{}`", codes.join("`, `")))
            })?),
        };
        let result = code.map_or(Ok(self.result.unwrap_or(0)), |code| Err(code.as_str()));
        let took = Duration::from_micros(self.duration_us);
        let (path, fd, size) = (&*self.path, self.fd, self.size);
        Ok((alias, FileOperation { name, path, fd, size, result, took }))
    }
}

/// What can be done with files.
const OPERATIONS: [&str; 8] =
    ["Open", "Read", "Write", "Close", "Stat", "List", "Mount", "Unmount"];

fn absent(name: &str) -> Problem {
    RunError::Unknown(name.chars().take(100).collect()).into()
}

/// Names of servers with commas between them; none here are all.
fn aliases(query: &Query) -> Result<Vec<Alias>, Problem> {
    let unfit = |what: String, remedy: &str| {
        let fault = FieldError::invalid("alias", what, remedy);
        Problem::of_fields(format!("the address cannot be used: {fault}"), &[fault])
    };
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
