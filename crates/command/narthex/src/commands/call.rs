//! `narthex call`: one tool call, in process or through the daemon.

use std::process::ExitCode;

use narthex_client::cli::CallArgs;
use narthex_model::{
    CallError, CallErrorKind, ErrorKind, command::completed, json::with_whole_pairs,
};
use narthex_wire::{Message, MessageKind, Raw, meta_key};
use serde_json::Value;

use super::{in_process, source};
use crate::{
    Failure, FailureKind, arguments,
    cli::Context,
    daemon_client::DaemonClient,
    output,
    peer::{Peer, Tool, near_names, protocol_failure},
    rows::{Row, sign_in_of},
    server_rows,
};

pub(crate) async fn run(args: CallArgs, context: Context) -> Result<ExitCode, Failure> {
    let Some(file) = args.config.clone() else {
        let client = DaemonClient::of_run_or_file(&context.settings.daemon)?;
        let called = call(Peer::Daemon(&client), &args, &context).await;
        return match called {
            Err(failure) if failure.kind == FailureKind::Operation(ErrorKind::NotFound) => {
                Err(unknown_alias(failure, &client, &args).await)
            }
            Err(failure) if failure.kind == FailureKind::Call(CallErrorKind::AuthUnavailable) => {
                let rows = rows_if_up(&context).await;
                Err(with_remedy(failure, rows, &args))
            }
            Err(failure) if is_absent(&failure) => {
                let rows = rows_if_up(&context).await;
                Err(with_cause(failure, rows, &args))
            }
            called => called,
        };
    };
    let mut loaded = source::read(&file)?;
    source::narrow(&mut loaded, &args.alias, &file)?;
    let app = in_process::start(loaded, args.timeout, &context).await?;
    in_process::run(&app, async {
        in_process::settle(&app).await;
        let called = call(Peer::Local(&app), &args, &context).await;
        let rows = || server_rows::all(&app.registry().snapshot());
        called.map_err(|failure| match failure.kind {
            FailureKind::Call(CallErrorKind::ToolNotFound) => with_cause(failure, rows(), &args),
            FailureKind::Call(CallErrorKind::AuthUnavailable) => {
                with_remedy(failure, rows(), &args)
            }
            _ => failure,
        })
    })
    .await
}

/// The rows of the daemon, as far as this user may see them.
async fn rows_if_up(context: &Context) -> Vec<Row> {
    match DaemonClient::operator_if_up(&context.settings.daemon) {
        Ok(Some(client)) => client.rows::<Row>().await.unwrap_or_default(),
        Ok(None) | Err(_) => Vec::new(),
    }
}

/// True if a tool is not there.
fn is_absent(failure: &Failure) -> bool {
    failure.kind == FailureKind::Call(CallErrorKind::ToolNotFound)
}

/// Why a tool is not there, if its server cannot list its tools: its row has the cause, which is
/// for operators.
fn with_cause(mut failure: Failure, rows: Vec<Row>, args: &CallArgs) -> Failure {
    let row = rows.into_iter().find(|row| row.alias == args.alias.as_str() && !row.is_overridden);
    let cause = row.as_ref().and_then(Row::unlisted_tools);
    if let Some(cause) = cause {
        failure.message = format!("{}; {cause}", failure.message.trim_end_matches('.'));
    }
    failure
}

/// Adds the remedy of a person for the credential, from the server's row for operators. The answer
/// to a call has no such remedy, since models read it.
fn with_remedy(mut failure: Failure, rows: Vec<Row>, args: &CallArgs) -> Failure {
    let row = rows.into_iter().find(|row| row.alias == args.alias.as_str() && !row.is_overridden);
    if let Some(row) = row
        && let Some(error) = &row.error
        && error.kind == CallErrorKind::AuthUnavailable
    {
        let sign_in = sign_in_of(&row.alias, row.status.as_str(), &error.message);
        let told = format!("{}{}", error.message, sign_in.unwrap_or_default());
        failure.message = completed(&told).into_owned();
    }
    failure
}

/// The server is not there, in the words of `narthex tools`; any other failure stays as it is.
async fn unknown_alias(failure: Failure, client: &DaemonClient, args: &CallArgs) -> Failure {
    let Ok(rows) = client.rows::<Row>().await else { return failure };
    let names: Vec<_> = rows.iter().map(|row| row.alias.as_str()).collect();
    match names.contains(&args.alias.as_str()) {
        true => failure,
        false => source::unknown(&args.alias, &client.place(), &names),
    }
}

/// Lists the tools and makes the call, wherever it goes; `--timeout` limits both together.
async fn call(peer: Peer<'_>, args: &CallArgs, context: &Context) -> Result<ExitCode, Failure> {
    let calling = listed_and_called(peer, args);
    let (answer, tools) = match args.timeout {
        None => calling.await?,
        Some(limit) => tokio::time::timeout(limit, calling).await.map_err(|_elapsed| {
            let text = format!("`{}` did not answer within {} ms", args.tool, limit.as_millis());
            Failure::call(CallError::new(CallErrorKind::Timeout, text))
        })??,
    };
    show(&answer, args, context, &tools)
}

/// The answer, and the tools of the server as far as it lists them.
async fn listed_and_called(
    peer: Peer<'_>,
    args: &CallArgs,
) -> Result<(Message, Vec<Tool>), Failure> {
    let tools = match peer.tools(&args.alias).await {
        Ok(tools) => tools,
        // The time of a call is over, and the call would wait for the same server once more.
        Err(failure) if failure.kind == FailureKind::Operation(ErrorKind::Timeout) => {
            return Err(Failure::call(CallError::new(CallErrorKind::Timeout, failure.message)));
        }
        Err(_) => Vec::new(),
    };
    let known = tools.iter().find(|tool| tool.name == args.tool);
    let schema = known.and_then(Tool::input_schema);
    let arguments = arguments::parse(&args.arguments, schema)?;
    let tool =
        known.cloned().unwrap_or_else(|| Tool { name: args.tool.clone(), definition: Value::Null });
    let answer = peer.call(&args.alias, &tool, arguments).await?;
    Ok((answer, tools))
}

fn show(
    answer: &Message,
    args: &CallArgs,
    context: &Context,
    tools: &[Tool],
) -> Result<ExitCode, Failure> {
    if answer.kind() == MessageKind::Error {
        return Err(with_near_names(protocol_failure(answer), args, tools));
    }
    let is_error = answer.get("isError").and_then(Raw::as_bool).unwrap_or(false);
    let raw = answer.body_raw().map_or(&b"{}"[..], Raw::as_bytes);
    if context.format.is_json() {
        output::json_text(&String::from_utf8_lossy(raw))?;
        return Ok(if is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let result: Value = serde_json::from_slice(&with_whole_pairs(raw)).map_err(|error| {
        Failure::new(ErrorKind::Unavailable, format!("the result cannot be read: {error}"))
    })?;
    if is_error {
        return Err(with_near_names(tool_failure(&result), args, tools));
    }
    output::line(&describe(&result))?;
    Ok(ExitCode::SUCCESS)
}

/// The failure that a result reports: by the gateway in its own shape, or by the server in any.
fn tool_failure(result: &Value) -> Failure {
    let structured = result.get("structuredContent").and_then(|content| content.get("error"));
    let beside = || result.get("_meta").and_then(|meta| meta.get(meta_key::ERROR));
    let of_gateway = structured.or_else(beside);
    let error = of_gateway.and_then(|error| serde_json::from_value(error.clone()).ok());
    Failure::call(
        error.unwrap_or_else(|| CallError::new(CallErrorKind::ServerError, describe(result))),
    )
}

fn with_near_names(mut failure: Failure, args: &CallArgs, tools: &[Tool]) -> Failure {
    let is_known = tools.iter().any(|tool| tool.name == args.tool);
    let is_missing = matches!(
        failure.kind,
        FailureKind::Call(CallErrorKind::ToolNotFound)
            | FailureKind::Operation(ErrorKind::NotFound | ErrorKind::Invalid)
    );
    if is_missing && !is_known && !tools.is_empty() {
        let hint = near_names(&args.alias, &args.tool, tools, args.config.as_deref());
        failure.message = format!("{}; {hint}", failure.message.trim_end_matches('.'));
    }
    failure
}

/// Text as it is; other content in a few words.
fn describe(result: &Value) -> String {
    let content = result.get("content").and_then(Value::as_array);
    let blocks: Vec<_> = content.into_iter().flatten().map(block).collect();
    match (blocks.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => format!("{structured:#}"),
        _ => blocks.join("\n"),
    }
}

fn block(block: &Value) -> String {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    let resource = |key: &str| {
        let resource = block.get("resource").and_then(|resource| resource.get(key));
        resource.and_then(Value::as_str).unwrap_or_default()
    };
    match text("type") {
        "text" => text("text").to_owned(),
        kind @ ("image" | "audio") => {
            let bytes = text("data").len() / 4 * 3;
            format!("[{kind}, {}, about {bytes} bytes]", text("mimeType"))
        }
        "resource" if !resource("text").is_empty() => resource("text").to_owned(),
        "resource" => format!("[resource {}, {}]", resource("uri"), resource("mimeType")),
        "resource_link" => format!("[link to {} {}]", text("name"), text("uri")),
        other => format!("[content of type {other}]"),
    }
}
