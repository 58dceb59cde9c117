//! `narthex audit verify`: runs here instead of in the daemon, so that an export can be verified
//! anywhere.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::ExitCode,
};

use narthex_audit::{Broken, Fault, Report, Verifier, Waiting};
use narthex_client::Context;
use narthex_client::cli::AuditVerifyArgs;
use narthex_model::{ErrorKind, command::narthex};
use serde_json::{Value, json};

use crate::{
    Failure,
    commands::waiting::waiting,
    daemon_client::{DaemonClient, workspace_path},
    output::{self, counted, harmless},
};

/// The path of the audit of events without a workspace.
const INSTALLATION: &str = "/api/audit";

pub(super) async fn run(args: AuditVerifyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let report = match args.file {
        Some(file) => tokio::task::spawn_blocking(move || of_file(&file))
            .await
            .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))??,
        None => {
            let client = DaemonClient::operator(&context.daemon)?;
            let verified = async {
                match (args.workspace, args.installation) {
                    (_, true) => of_daemon(&client, INSTALLATION.to_owned()).await,
                    (Some(workspace), false) => {
                        of_daemon(&client, workspace_path(&workspace, "/audit")).await
                    }
                    (None, false) => of_all(&client).await,
                }
            };
            waiting("reading every event", context, verified).await?
        }
    };
    tell(&report, context)
}

/// Verifies all events that the caller may read, one place after the other.
async fn of_all(client: &DaemonClient) -> Result<Report, Failure> {
    let workspaces = client.api_all("/api/workspaces").await?;
    let ids = workspaces.iter().filter_map(|one| one["id"].as_str());
    let mut paths: Vec<_> = ids.map(|id| workspace_path(id, "/audit")).collect();
    paths.push(INSTALLATION.to_owned());
    let mut all: Option<Report> = None;
    let mut denied = None;
    for path in paths {
        match (of_daemon(client, path).await, &mut all) {
            (Ok(report), None) => all = Some(report),
            (Ok(Report { events, chains, broken, waiting }), Some(all)) => {
                all.waiting.extend(waiting);
                all.events += events;
                all.chains.extend(chains);
                all.broken.extend(broken);
            }
            (Err(failure), _) if failure.kind.as_str() == ErrorKind::Denied.as_str() => {
                denied.get_or_insert(failure);
            }
            (Err(failure), _) => return Err(failure),
        }
    }
    match (all, denied) {
        (Some(all), _) => Ok(all),
        (None, Some(denied)) => Err(denied),
        (None, None) => Err(Failure::new(ErrorKind::NotFound, "there is no audit to read")),
    }
}

fn of_file(file: &Path) -> Result<Report, Failure> {
    let mut verifier = Verifier::new();
    for line in BufReader::new(fs_err::File::open(file)?).lines() {
        verifier.line(&line?);
    }
    let report = verifier.finish();
    if is_of_others(&report) {
        let export = narthex("audit export", &[]);
        let text = format!("{} is no audit export; write one with `{export}`", file.display());
        return Err(Failure::new(ErrorKind::Invalid, text));
    }
    Ok(report)
}

/// True if no line of the text is of an export.
fn is_of_others(report: &Report) -> bool {
    let is_foreign = |one: &Broken| matches!(one.fault, Fault::Unreadable | Fault::TextCut);
    !report.is_whole() && report.chains.is_empty() && report.broken.iter().all(is_foreign)
}

async fn of_daemon(client: &DaemonClient, path: String) -> Result<Report, Failure> {
    let mut lines = client.api_lines(path).await?;
    let mut verifier = Verifier::new();
    while let Some(line) = lines.next().await? {
        verifier.line(&line);
    }
    Ok(verifier.finish())
}

fn tell(report: &Report, context: &Context) -> Result<ExitCode, Failure> {
    let (events, chains) = (report.events, report.chains.len());
    if !report.is_whole() {
        let told: Vec<_> = report.broken.iter().map(|one| harmless(&one.to_string())).collect();
        let text = format!(
            "the audit was changed after it was written; of {}, these are the first faults:\n  {}",
            found(events, chains),
            told.join("\n  ")
        );
        let details = serde_json::to_value(report).ok();
        return Err(Failure::new(ErrorKind::Conflict, text).with_details(details));
    }
    let waiting = report.waiting.iter().map(|one| harmless(&one.to_string()));
    if report.waiting.iter().any(|one| one.is_stuck) {
        let waiting: Vec<_> = waiting.collect();
        let text = format!(
            "the {events} stored events are unchanged, but others are not in the store yet and are \
             not verified; the daemon's log has the cause:\n  {}",
            waiting.join("\n  ")
        );
        let details = serde_json::to_value(report).ok();
        return Err(Failure::new(ErrorKind::Unavailable, text).with_details(details));
    }
    let unsure = report.chains.iter().filter(|one| one.declared.is_vouched.is_none()).count();
    if context.format.is_json() {
        output::done(&json!(report))?;
    } else if !context.format.is_quiet() {
        let are = if events == 1 { "is as it was" } else { "are as they were" };
        match events {
            0 => output::line("there are no events")?,
            _ => output::line(&format!("{} {are} written", found(events, chains)))?,
        }
        for one in waiting {
            output::notice(&one);
        }
        if unsure > 0 {
            output::notice(&format!(
                "the end of {unsure} of the chains cannot be proved, since no key here has signed \
                 it"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn found(events: u64, chains: usize) -> String {
    format!("{} in {}", counted(events, "event"), counted(chains as u64, "chain"))
}

/// Fails unless an export ended as it should.
pub(super) fn whole(last: &str) -> Result<(), Failure> {
    let line: Option<Value> = serde_json::from_str(last).ok();
    let end = line.filter(|line| line["end"].is_object());
    if let Some(waiting) = end.as_ref().and_then(Waiting::at_end) {
        output::notice(&harmless(&waiting.to_string()));
    }
    match end.is_some() {
        true => Ok(()),
        false => Err(Failure::new(
            ErrorKind::Unavailable,
            "the daemon stopped the export early; check the daemon's log, then try again",
        )),
    }
}
