//! `narthex sessions`: sessions of agents, over all their runs, through the daemon.

mod events;
mod list;
mod resume;

use std::process::ExitCode;

use crate::cli::{SessionsCommand, WorkspaceArgs};
use http::Method;
use narthex_model::{
    ErrorKind,
    command::{commands_in, narthex},
};
use serde_json::{Value, json};

use super::{runs::words, waiting::waiting};
use crate::{
    Context, Failure, FailureKind,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(command: SessionsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        SessionsCommand::List { place } => list::list(&client, &place, &context).await,
        SessionsCommand::Show { id, place } => {
            show(&client, &session_path(&place, &id), &context).await
        }
        SessionsCommand::Events(args) => events::events(&client, &args, &context).await,
        SessionsCommand::Message(args) => events::message(&client, args, &context).await,
        SessionsCommand::Suspend { id, place } => suspend(&client, &id, &place, &context).await,
        SessionsCommand::Resume(args) => resume::resume(&client, &args, &context).await,
        SessionsCommand::End { id, place } => {
            let asked = client.api(ApiRequest::new(Method::DELETE, session_path(&place, &id)));
            waiting("ending the session", &context, asked).await.map_err(with_remedy)?;
            let sentence = format!("the session {id} has ended, with all its runs");
            output::told(&json!({ "session_id": id }), &sentence, context.format)
        }
    }
}

async fn suspend(
    client: &DaemonClient,
    id: &str,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let path = format!("{}/suspend", session_path(place, id));
    let asked = client.api(ApiRequest::new(Method::POST, path));
    let session = waiting("ending its runs", context, asked).await.map_err(with_remedy)?;
    let resume = narthex("sessions resume {}", &[&id]);
    let sentence = format!("the session {id} is suspended; `{resume}` resumes it");
    output::told(&session, &sentence, context.format)
}

async fn show(client: &DaemonClient, path: &str, context: &Context) -> Result<ExitCode, Failure> {
    let asked = client.api_get(path);
    let session = waiting("asking the daemon", context, asked).await.map_err(with_remedy)?;
    if context.format.is_json() {
        output::done(&session)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs = session["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if context.format.is_quiet() {
        runs.iter().try_for_each(|run| output::line(&table::text(run, "run_id")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let status = match (session["ended_at"].as_str(), session["suspended_at"].as_str()) {
        (Some(at), _) => format!("ended at {}", harmless(at)),
        (None, Some(at)) => format!("was suspended at {}", harmless(at)),
        (None, None) => "is running".to_owned(),
    };
    output::line(&format!(
        "The session {} was created at {} and {status}.\n\n  agent         {}\n  \
         created by    {}\n  parent run    {}\n  injected env  {}\n",
        table::text(&session, "session_id"),
        table::text(&session, "created_at"),
        table::or_none(&session, "agent_name"),
        table::text(&session, "created_by"),
        table::or_none(&session, "parent_run_id"),
        env(&session),
    ))?;
    let rows: Vec<_> = runs.iter().map(run_row).collect();
    output::line(&table::render(
        &["run", "pid", "status", "created", "ended"],
        &rows,
        "The session has no runs.",
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn run_row(run: &Value) -> Vec<String> {
    vec![
        table::text(run, "run_id"),
        run["pid"].as_u64().unwrap_or_default().to_string(),
        table::text(run, "status"),
        table::text(run, "created_at"),
        table::or_none(run, "ended_at"),
    ]
}

fn env(session: &Value) -> String {
    words(&session["agent_env_names"], |name| name.as_str().unwrap_or_default())
}

fn with_remedy(failure: Failure) -> Failure {
    let has_remedy = !commands_in(&failure.message).is_empty();
    match failure.kind == FailureKind::Operation(ErrorKind::NotFound) && !has_remedy {
        true => {
            let message =
                format!("{}; `{}` shows them", failure.message, narthex("sessions list", &[]));
            Failure { message, ..failure }
        }
        false => failure,
    }
}

fn session_path(place: &WorkspaceArgs, id: &str) -> String {
    workspace_path(&place.workspace, &format!("/sessions/{}", segment(id)))
}
