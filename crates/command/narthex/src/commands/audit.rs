//! `narthex audit`: lists, exports, verifies and limits the recorded events.

mod list;
mod verify;

use std::process::ExitCode;

use http::Method;
use narthex_client::Context;
use serde_json::json;

use super::waiting::waiting;
use crate::{
    Failure,
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    output,
};
use narthex_client::cli::{AuditCommand, AuditPlaceArgs};

pub(crate) async fn run(command: AuditCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        AuditCommand::List(args) => list::run(&args, &context).await,
        AuditCommand::Export { place } => export(&place, &context).await,
        AuditCommand::Verify(args) => verify::run(args, &context).await,
        AuditCommand::Keep { place, days, events } => keep(&place, days, events, &context).await,
    }
}

/// The path of the events.
fn path(place: &AuditPlaceArgs) -> String {
    match place.installation {
        true => "/api/audit".to_owned(),
        false => workspace_path(&place.workspace, "/audit"),
    }
}

async fn export(place: &AuditPlaceArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let mut lines = client.api_lines(path(place)).await?;
    let mut last = String::new();
    while let Some(line) = lines.next().await? {
        output::line(&line)?;
        last = line;
    }
    verify::whole(&last)?;
    Ok(ExitCode::SUCCESS)
}

async fn keep(
    place: &AuditPlaceArgs,
    days: Option<u64>,
    events: Option<u64>,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = format!("{}/settings", path(place));
    let asked = client.api_get(path.clone());
    let mut kept = waiting("asking the daemon", context, asked).await?;
    if days.is_some() || events.is_some() {
        // A limit that is not given stays.
        let days = days.map_or_else(|| kept["kept_days"].clone(), |days| json!(days));
        let events = events.map_or_else(|| kept["kept_events"].clone(), |events| json!(events));
        let body = json!({ "kept_days": days, "kept_events": events }).to_string();
        let asked = client.api(ApiRequest::new(Method::PUT, path).entry(&body));
        kept = waiting("removing old events", context, asked).await?;
    }
    if context.format.is_json() {
        output::done(&kept)?;
    } else if !context.format.is_quiet() {
        let limit = |name: &str| kept[name].as_u64().filter(|count| *count > 0);
        let days = limit("kept_days").map_or_else(
            || "forever".to_owned(),
            |count| format!("for {}", output::counted(count, "day")),
        );
        let events = limit("kept_events").map_or_else(
            || "in any number".to_owned(),
            |count| format!("at most {}", output::counted(count, "event")),
        );
        output::line(&format!("events are stored {days}, {events}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
