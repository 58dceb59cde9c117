//! `narthex audit verify`: here, not in the daemon, so that an export can be verified anywhere.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
};

use narthex_audit::{Report, Verifier};
use narthex_model::ErrorKind;
use serde_json::{Value, json};

use super::path;
use crate::{
    cli::{AuditPlaceArgs, Context},
    commands::waiting::waiting,
    daemon_client::DaemonClient,
    failure::Failure,
    output::{self, harmless},
};

pub(super) async fn run(
    place: &AuditPlaceArgs,
    file: Option<PathBuf>,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let report = match file {
        Some(file) => tokio::task::spawn_blocking(move || of_file(&file))
            .await
            .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))??,
        None => waiting("reading every event", context, of_daemon(place, context)).await?,
    };
    tell(&report, context)
}

fn of_file(file: &Path) -> Result<Report, Failure> {
    let mut verifier = Verifier::new();
    for line in BufReader::new(fs_err::File::open(file)?).lines() {
        verifier.line(&line?);
    }
    Ok(verifier.finish())
}

async fn of_daemon(place: &AuditPlaceArgs, context: &Context) -> Result<Report, Failure> {
    let client = DaemonClient::operator(&context.settings)?;
    let mut lines = client.api_lines(path(place)).await?;
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
            "the audit is not as it was written; of {events} events in {chains} chains, these are \
             the first that are not:\n  {}",
            told.join("\n  ")
        );
        let details = serde_json::to_value(report).ok();
        return Err(Failure { details, ..Failure::new(ErrorKind::Conflict, text) });
    }
    let unsure = report.chains.iter().filter(|one| one.declared.is_vouched.is_none()).count();
    if context.format.is_json() {
        output::done(&json!(report))?;
    } else if !context.format.is_quiet() {
        output::line(&format!("{events} events in {chains} chains are as they were written"))?;
        if unsure > 0 {
            output::notice(&format!(
                "where {unsure} of the chains end is vouched for by no key that is at hand here"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether an export ended as it should.
pub(super) fn whole(last: &str) -> Result<(), Failure> {
    let is_end = serde_json::from_str(last).is_ok_and(|line: Value| line["end"].is_object());
    match is_end {
        true => Ok(()),
        false => Err(Failure::new(
            ErrorKind::Unavailable,
            "the daemon ended the export before its end; look at its log, and try again",
        )),
    }
}
