//! `narthex call`: one tool call, in process or through the daemon.

use std::{path::Path, process::ExitCode, time::Duration};

use narthex_gateway::RunToken;
use narthex_model::{Alias, CallError, CallErrorKind, ErrorKind};
use narthex_registry::config::LoadedConfig;
use narthex_wire::{Message, MessageKind, Raw};
use serde_json::Value;

use super::{progress::Progress, source};
use crate::{
    App, AppOptions,
    arguments,
    cli::{CallArgs, Context},
    config,
    data_dir::DataDir,
    failure::{Failure, FailureKind},
    output,
    peer::{Peer, Tool, protocol_failure},
};

/// Longer than any server may take to settle by its own limits.
const SETTLED: Duration = Duration::from_secs(3600);

pub(crate) async fn run(args: CallArgs, context: Context) -> Result<ExitCode, Failure> {
    let Some(file) = args.config.clone() else {
        return Err(Failure::new(ErrorKind::Unavailable, "no daemon yet"));
    };
    let mut loaded = source::read(&file)?;
    source::narrow(&mut loaded, &args.alias, &file)?;
    let app = start(loaded, &context).await?;
    let stopped = super::up::stop_signal()?;
    let done = tokio::select! {
        done = in_process(&app, &args, &context) => done,
        () = stopped => Err(Failure::new(ErrorKind::Unavailable, "interrupted")),
    };
    app.drain().await;
    done
}

/// An app without doors, for this process alone.
pub(crate) async fn start(loaded: LoadedConfig, context: &Context) -> Result<App, Failure> {
    let data = DataDir::open(&context.settings.data)?;
    let token = RunToken::generate().map_err(|error| {
        Failure::new(ErrorKind::Unavailable, format!("the system has no randomness: {error}"))
    })?;
    App::start(AppOptions {
        config: loaded,
        environment: config::base_environment(),
        deadlines: context.settings.deadlines,
        limits: context.settings.limits,
        token,
        audit_dir: data.audit_dir(),
        doors: None,
    })
    .await
}

async fn in_process(app: &App, args: &CallArgs, context: &Context) -> Result<ExitCode, Failure> {
    wait_until_settled(app, &args.alias).await;
    call(Peer::Local(app), args, context).await
}

/// Waits for one server, whatever the others do.
async fn wait_until_settled(app: &App, alias: &Alias) {
    let progress = std::sync::Mutex::new(Progress::new());
    let settled = app.registry().wait_until(SETTLED, |snapshot| {
        let Some(row) = snapshot.get(alias.as_str()) else { return true };
        if let Ok(mut progress) = progress.lock() {
            progress.show(row);
        }
        row.state.is_settled()
    });
    drop(settled.await);
}

/// The call itself, wherever it goes.
async fn call(peer: Peer<'_>, args: &CallArgs, context: &Context) -> Result<ExitCode, Failure> {
    let tools = peer.tools(&args.alias).await.unwrap_or_default();
    let known = tools.iter().find(|tool| tool.name == args.tool);
    let schema = known.and_then(Tool::input_schema);
    let arguments = arguments::parse(&args.arguments, schema)?;
    let tool = known.cloned().unwrap_or_else(|| Tool {
        name: args.tool.clone(),
        definition: Value::Null,
    });
    let calling = peer.call(&args.alias, &tool, arguments);
    let limit = args.timeout.or(context.settings.call_timeout);
    let answer = match limit {
        None => calling.await?,
        Some(limit) => tokio::time::timeout(limit, calling).await.map_err(|_elapsed| {
            let text = format!("`{}` did not answer within {} ms", args.tool, limit.as_millis());
            Failure::call(CallError::new(CallErrorKind::Timeout, text))
        })??,
    };
    show(&answer, args, context, &tools)
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
        output::line(&String::from_utf8_lossy(raw))?;
        return Ok(if is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let result: Value = serde_json::from_slice(raw).map_err(|error| {
        Failure::new(ErrorKind::Unavailable, format!("the result cannot be read: {error}"))
    })?;
    if is_error {
        return Err(with_near_names(tool_failure(&result), args, tools));
    }
    output::line(&describe(&result))?;
    Ok(ExitCode::SUCCESS)
}

/// The failure that a result tells of: by the gateway in its own shape, or by the server in any.
fn tool_failure(result: &Value) -> Failure {
    let of_gateway = result.get("structuredContent").and_then(|content| content.get("error"));
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
        let near = arguments::near(&args.tool, tools.iter().map(|tool| tool.name.as_str()));
        let hint = match near[..] {
            [] => format!("list them with `narthex tools {}`", args.alias),
            _ => format!("did you mean {}?", near.join(", ")),
        };
        failure.message = format!("{}; {hint}", failure.message.trim_end_matches('.'));
    }
    failure
}

/// Text as it is; what is no text in a few words.
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

/// Only for messages.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
