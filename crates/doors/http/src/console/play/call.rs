//! The call itself, on the path of every call, and its answer in words.

use std::sync::Arc;

use narthex_audit::kind;
use narthex_console::{
    pages::play::{CallAnswer, Fact},
    parts::Words,
};
use narthex_control::AuditQuery;
use narthex_gateway::{Caller as Calling, RunView};
use narthex_model::{CallErrorKind, ErrorKind};
use narthex_runs::Created;
use narthex_wire::{Raw, estimated_tokens, rpc};
use serde_json::Value;
use tokio::time::Instant;

use super::{caller::Caller, indented::indented};
use crate::{
    Access,
    calling::message_of,
    console::viewer::Viewer,
    devices::{Reply, ask},
    problem::Problem,
    routes::{AUDIT, SEE_RUNS},
    servers::creator_of,
};

/// Maximum number of characters of an answer and of a request on the page.
const SHOWN_MAX: usize = 24_000;

/// A call to make.
pub(super) struct Wanted<'w> {
    pub(super) caller: &'w Caller,
    pub(super) server: &'w str,
    pub(super) tool: &'w str,
    /// The arguments as JSON.
    pub(super) arguments: &'w str,
    /// The parameters of the agent.
    pub(super) params: Option<Value>,
}

/// An answer with what was measured.
struct Measured {
    reply: Reply,
    ms: u128,
    request: String,
}

/// Makes the call in a new run, which ends afterwards.
pub(super) async fn made(viewer: &Viewer<'_>, wanted: Wanted<'_>) -> Result<CallAnswer, Problem> {
    let Some(runs) = &viewer.door.options.runs else {
        return Err(Problem::new(ErrorKind::Conflict, "this process creates and ends no runs"));
    };
    let request = wanted.caller.request(wanted.server, wanted.params.clone());
    let creator = creator_of(viewer.door, &viewer.principal);
    let created = runs.create(&viewer.workspace, &request, creator).await?;
    let measured = in_run(viewer, &created.run, &wanted).await;
    let id = created.row.id.to_text();
    if let Err(error) = runs.end(&viewer.workspace, &id, &viewer.by()).await {
        tracing::warn!(run.id = %id, "the run of a call from a page did not end: {error}");
    }
    let measured = measured?;
    let record = record(viewer, &id).await?;
    let mut answer = answered(measured, facts_of(&created, record.as_ref()));
    let sees_runs = viewer.may(Access::Member(SEE_RUNS));
    answer.run = sees_runs.then(|| viewer.path(&format!("runs/{id}")));
    Ok(answer)
}

/// Sends the call as a client of the run does.
async fn in_run(
    viewer: &Viewer<'_>,
    run: &Arc<RunView>,
    wanted: &Wanted<'_>,
) -> Result<Measured, Problem> {
    let gateway = &viewer.door.gateway;
    let Some(endpoint) = gateway.endpoint(run, wanted.server) else {
        let server = Words::within(wanted.server, 100);
        let text = format!("the new run has no server `{server}`; choose another");
        return Err(Problem::new(ErrorKind::NotFound, text));
    };
    let message = message_of(wanted.tool, wanted.arguments, gateway.limits())?;
    let request = String::from_utf8_lossy(message.bytes()).into_owned();
    let began = Instant::now();
    let reply = ask(gateway, Calling::new(run.clone(), endpoint, None), message).await;
    let Some(reply) = reply else {
        return Err(Problem::new(ErrorKind::Unavailable, "the daemon is stopping"));
    };
    Ok(Measured { reply, ms: began.elapsed().as_millis(), request })
}

/// The record of the call in the audit, for those who may read it.
async fn record(viewer: &Viewer<'_>, run: &str) -> Result<Option<Value>, Problem> {
    if !viewer.may(Access::Member(AUDIT)) {
        return Ok(None);
    }
    let query = AuditQuery {
        run: run.to_owned(),
        kind: kind::TOOL_CALLED.to_owned(),
        ..AuditQuery::newest(Some(viewer.workspace.clone()), 1)
    };
    let page = viewer.control().audit_list(&query).await?;
    Ok(page.items.into_iter().next().map(|item| item.event))
}

/// The facts of the run and of the decision.
fn facts_of(created: &Created, record: Option<&Value>) -> Vec<Fact> {
    let fact = |name, value: &str| Fact { name, value: Words::new(value) };
    let run = format!("{}, run {}, which has ended now", created.row.id.to_text(), created.row.pid);
    let mut facts = vec![fact("run", &run)];
    let Some(record) = record else {
        facts.push(fact("decision", "in the audit, which you may not read, or not recorded yet"));
        return facts;
    };
    let text = |place: &str| record.pointer(place).and_then(Value::as_str);
    let decision = match (text("/details/refused_by"), text("/granted_via")) {
        (Some(check), _) => format!("refused by the check `{check}`"),
        (None, Some(grants)) => format!("allowed by the grant {grants}"),
        (None, None) => "allowed; no grant was needed".to_owned(),
    };
    facts.push(fact("decision", &decision));
    if let Some(rule) = text("/details/rule") {
        facts.push(fact("rule", rule));
    }
    if let Some(outcome) = text("/outcome") {
        facts.push(fact("outcome in the audit", outcome));
    }
    facts
}

fn answered(measured: Measured, mut facts: Vec<Fact>) -> CallAnswer {
    let Measured { reply, ms, request } = measured;
    let Reply { outcome, refused, retry_after } = reply;
    let mut fact = |name, value: String| facts.push(Fact { name, value: Words::new(&value) });
    fact("time", format!("{ms} ms, without the start of the run"));
    if let Some(wait) = retry_after {
        fact("try again", format!("after {} s", wait.as_millis().div_ceil(1000)));
    }
    if let Some(refused) = refused {
        let reached = if refused.is_unsent { "no" } else { "maybe" };
        fact("the server saw the call", reached.to_owned());
    }
    let call_kind = refused.map(|refused| refused.kind);
    let (text, verdict, kind, is_failure) = match outcome {
        Ok(result) => {
            let tokens = estimated_tokens(&result);
            fact("size", format!("{} bytes, about {tokens} tokens", result.len()));
            let is_error = Raw::new(&result).get("isError").and_then(Raw::as_bool) == Some(true);
            let text = String::from_utf8_lossy(&result).into_owned();
            match (call_kind, is_error) {
                (Some(kind), _) => (text, "The call was refused", Some(kind), true),
                (None, true) => {
                    (text, "The tool reports an error", Some(CallErrorKind::ServerError), true)
                }
                (None, false) => (text, "The tool has answered", None, false),
            }
        }
        Err(error) => {
            fact("code of the protocol", error.code.to_string());
            let kind = call_kind.unwrap_or_else(|| rpc::kind_of(error.code).into());
            let text = serde_json::json!({
                "code": error.code, "message": error.message, "data": error.data,
            });
            (text.to_string(), "The call has failed", Some(kind), true)
        }
    };
    let said = is_failure.then(|| said(&text)).flatten();
    let (text, is_cut) = cut(&indented(&text));
    CallAnswer {
        verdict,
        is_failure,
        kind: kind.map(CallErrorKind::as_str),
        explained: kind.map(explained),
        said,
        run: None,
        facts,
        request: cut(&indented(&request)).0,
        text,
        is_cut,
    }
}

/// The text of a failed answer: that of its content, or the message of an error.
fn said(answer: &str) -> Option<Words> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let content = answer.get("content").and_then(Value::as_array);
    let of_content = content.into_iter().flatten().find_map(|block| block.get("text"));
    let text = of_content.or_else(|| answer.get("message")).and_then(Value::as_str)?;
    (!text.is_empty()).then(|| Words::new(text))
}

/// The beginning of a text, and true if that is not all of it.
fn cut(text: &str) -> (String, bool) {
    match text.char_indices().nth(SHOWN_MAX) {
        None => (text.to_owned(), false),
        Some((end, _)) => (text.get(..end).unwrap_or_default().to_owned(), true),
    }
}

/// A kind of failures in words.
fn explained(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::PermissionRequired => {
            "A human must allow this tool first, or a rule forbids the call."
        }
        CallErrorKind::AuthUnavailable => "There is no usable credential for the server.",
        CallErrorKind::TransportError => {
            "The server could not be reached, or the connection broke."
        }
        CallErrorKind::Timeout => "The time of the call was over, and it was cancelled.",
        CallErrorKind::ServerError => "The server answered that the call has failed.",
        CallErrorKind::ToolNotFound => "There is no such tool for this caller.",
        CallErrorKind::ServerDisabled => "The server is disabled.",
        CallErrorKind::SecretCleared => "A secret that the server needs was cleared.",
        CallErrorKind::LimitExceeded => "A limit of rate, size, number or budget was reached.",
        CallErrorKind::InvalidArguments => "The arguments do not fit.",
        CallErrorKind::DefinitionChanged => {
            "The definition of the tool has changed since it was accepted."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason of a failure is read out of the answer.
    #[test]
    fn the_text_of_a_failed_answer_is_found() {
        let result = r#"{"content":[{"type":"image"},{"type":"text","text":"no file"}]}"#;
        let error = r#"{"code":1,"message":"no tool"}"#;
        for (answer, text) in [(result, Some("no file")), (error, Some("no tool")), ("x", None)] {
            let found = said(answer);
            assert_eq!(found.as_ref().map(Words::as_str), text);
        }
    }

    /// A long answer is cut between characters, and says so.
    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(cut("größe"), ("größe".to_owned(), false));
        let (text, is_cut) = cut(&"ß".repeat(SHOWN_MAX + 1));
        assert_eq!((text.chars().count(), is_cut), (SHOWN_MAX, true));
    }
}
