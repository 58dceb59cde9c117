//! `narthex shares`: shares of agents, through the daemon.

use std::{io::Write, path::Path, process::ExitCode};

use crate::cli::{CommentShareArgs, GetShareArgs, SharesCommand, WorkspaceArgs};
use fs_err::OpenOptions;
use http::Method;
use narthex_model::{command::narthex, problem_code};
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(command: SharesCommand, context: Context) -> Result<ExitCode, Failure> {
    carry_out(command, context).await.map_err(with_remedy)
}

/// Adds the command that lists shares to the refusal of an unknown one.
fn with_remedy(failure: Failure) -> Failure {
    match failure.problem_code.as_deref() == Some(problem_code::SHARE_NOT_FOUND) {
        true => {
            let message =
                format!("{}; `{}` lists the shares", failure.message, narthex("shares list", &[]));
            Failure { message, ..failure }
        }
        false => failure,
    }
}

async fn carry_out(command: SharesCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        SharesCommand::List { place } => list(&client, &place, &context).await,
        SharesCommand::Show { id, place } => show(&client, &path(&place, &id), &context).await,
        SharesCommand::Get(args) => get(&client, &args, &context).await,
        SharesCommand::Comment(args) => comment(&client, args, &context).await,
        SharesCommand::Resolve { id, thread, undo, place } => {
            let path = format!("{}/comments/{}", path(&place, &id), segment(&thread));
            let body = json!({ "resolved": !undo }).to_string();
            let asked = client.api(ApiRequest::new(Method::PATCH, path).entry(&body));
            let told = waiting("changing the thread", &context, asked).await?;
            let how = if undo { "open again" } else { "settled" };
            output::told(&told, &format!("the thread {thread} is {how}"), context.format)
        }
        SharesCommand::Delete { id, place } => {
            let asked = client.api(ApiRequest::new(Method::DELETE, path(&place, &id)));
            waiting("deleting the share", &context, asked).await?;
            let told = format!("the share {id} is deleted");
            output::told(&json!({ "share_id": id }), &told, context.format)
        }
    }
}

fn path(place: &WorkspaceArgs, id: &str) -> String {
    workspace_path(&place.workspace, &format!("/shares/{}", segment(id)))
}

async fn list(
    client: &DaemonClient,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let path = workspace_path(&place.workspace, "/shares");
    let items = waiting("asking the daemon", context, client.api_all(&path)).await?;
    let header = ["id", "type", "title", "bytes", "shared", "session"];
    let row = |one: &Value| {
        vec![
            table::text(one, "share_id"),
            table::text(one, "share_type"),
            table::text(one, "title"),
            one["total_size"].to_string(),
            table::text(one, "updated_at"),
            table::text(one, "session_id"),
        ]
    };
    table::list(&items, &header, row, "Nothing is shared yet.", context)
}

async fn show(client: &DaemonClient, path: &str, context: &Context) -> Result<ExitCode, Failure> {
    let asked = async {
        let mut share = client.api_get(path).await?;
        share["threads"] = client.api_all(&format!("{path}/comments")).await?.into();
        Ok::<_, Failure>(share)
    };
    let share = waiting("asking the daemon", context, asked).await?;
    if context.format.is_json() {
        output::done(&share)?;
        return Ok(ExitCode::SUCCESS);
    }
    let items = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let files = items(&share, "files");
    if context.format.is_quiet() {
        files.iter().try_for_each(|file| output::line(&table::text(file, "path")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |name| table::text(&share, name);
    output::line(&format!(
        "“{}” ({}) was shared by {} of {}, last at {}.\n",
        text("title"),
        text("share_type"),
        text("run_id"),
        text("session_id"),
        text("updated_at"),
    ))?;
    let row = |file: &Value| {
        vec![table::text(file, "path"), file["size"].to_string(), table::text(file, "content_type")]
    };
    let rows: Vec<_> = files.iter().map(row).collect();
    output::line(&table::render(&["file", "bytes", "content type"], &rows, "It has no files."))?;
    for thread in items(&share, "threads") {
        let about = thread["anchor"].as_str().map(|anchor| format!(", on “{}”", harmless(anchor)));
        let state = if thread["resolved_at"].is_null() { "" } else { ", settled" };
        let id = table::text(&thread, "thread_id");
        output::line(&format!("\n{id}{}{state}", about.unwrap_or_default()))?;
        for comment in items(&thread, "comments") {
            let (author, said) = (table::text(&comment, "author"), table::text(&comment, "text"));
            output::line(&format!("  {author}: {said}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn get(
    client: &DaemonClient,
    args: &GetShareArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let file = args.file.as_ref().map(|file| format!("?path={}", segment(file)));
    let path = format!("{}/content{}", path(&args.place, &args.id), file.unwrap_or_default());
    let saving = async {
        let is_stdout = args.output == Path::new("-");
        let mut body = client.api_content(path, "*/*").await?.body;
        // The file is created after the daemon's answer, so that a refusal leaves no file.
        let mut target: Box<dyn Write + Send> = match is_stdout {
            true => output::raw(),
            false => Box::new(OpenOptions::new().write(true).create_new(true).open(&args.output)?),
        };
        let mut size: u64 = 0;
        while let Some(chunk) = body.chunk().await {
            let chunk = chunk.map_err(|error| crate::daemon_client::failure(&error))?;
            target.write_all(&chunk)?;
            size += chunk.len() as u64;
        }
        target.flush()?;
        Ok::<_, Failure>((size, is_stdout))
    };
    let (size, is_stdout) = waiting("saving the file", context, saving).await?;
    if is_stdout {
        return Ok(ExitCode::SUCCESS);
    }
    let told = json!({ "output": args.output, "size": size });
    let sentence = format!("{} has {}", args.output.display(), output::counted(size, "byte"));
    output::told(&told, &sentence, context.format)
}

async fn comment(
    client: &DaemonClient,
    args: CommentShareArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let CommentShareArgs { id, text, anchor, thread, place } = args;
    let mut body = json!({ "text": text });
    for (name, value) in [("anchor", anchor), ("thread_id", thread)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let request = ApiRequest::new(Method::POST, format!("{}/comments", path(&place, &id)));
    let asked = client.api(request.entry(&body.to_string()));
    let told = waiting("saying it", context, asked).await?;
    let thread = table::text(&told, "thread_id");
    output::told(&told, &format!("added the comment to the thread {thread}"), context.format)
}
