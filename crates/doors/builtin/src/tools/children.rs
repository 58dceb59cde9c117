//! Tools for the child sessions of an agent, and for its parent session (D5, X-E84–X-E93). The run
//! determines both; an argument only selects one of the children.

use std::time::SystemTime;

use narthex_control::{Control, Message, Speaker};
use narthex_events::{EventKind, EventRow, Wanted};
use narthex_gateway::BuiltInResult;
use narthex_model::{Alias, CallError, CallErrorKind, SessionId, Timestamp};
use narthex_runs::{Awaited, Child, ModelWords, RunError, StartedChild};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{inbox, object, permission::ask_to_spawn, quiet};
use crate::{
    Called, Effect, Tool,
    called::{coded, failed, of_events},
    said,
};

/// Number of events to read, by default and at most.
const EVENTS: i64 = 500;
const EVENTS_MAX: i64 = 5_000;
/// The maximum size of the events in a result, in bytes. The first event is always included.
const OUTPUT_BYTES: usize = 512 * 1024;

pub(super) fn tools() -> Vec<Tool> {
    let started = [spawnable(), spawn(), start_agent(), output(), inject(), cancel()];
    started.into_iter().chain([message(), quiet::tool()]).collect()
}

/// The schema of the argument that names a child.
pub(super) fn child_argument() -> Value {
    json!({"type": "string", "maxLength": 100,
           "description": "The session, as its start gave it."})
}

fn spawnable() -> Tool {
    Tool {
        title: "List agents to start",
        description: "Lists the agents that you may start. A human must allow others (a grant of \
                      the type spawn).",
        schema: object(json!({}), &[]),
        ..Tool::new("list_spawnable_agents", Effect::Reads, |called| Box::pin(list(called)))
    }
}

async fn list(called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let names = called.platform.runs.spawnable(called.run).await;
    let names = names.map_err(|error| of_runs(&error))?;
    let agents = names.iter().map(|name| json!({ "id": name, "slug": name, "name": name }));
    let agents: Vec<_> = agents.collect();
    let text = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let text = if text.is_empty() { "none".to_owned() } else { text };
    Ok(said(text, json!({ "spawnable": agents })))
}

fn spawn() -> Tool {
    Tool {
        title: "Start an agent",
        description: "Starts a session of another agent as your child. Returns at once: the child \
                      is `pending` until somebody carries it out. Read what it does with \
                      `read_child_output`, talk to it with `inject_message`, end it with \
                      `cancel_session`.",
        schema: object(
            json!({
                "child_agent_id": {"type": "string", "minLength": 1, "maxLength": 200,
                    "description": "The agent, as `list_spawnable_agents` names it."},
                "prompt": {"type": "string", "maxLength": 100_000,
                    "description": "What the child is to do."},
                "params": {"type": "object",
                    "description": "The parameters that the agent asks for."},
                "model": {"type": "string", "minLength": 1, "maxLength": 200},
                "runtime_type": {"type": "string", "minLength": 1, "maxLength": 200},
            }),
            &["child_agent_id"],
        ),
        ..Tool::new("spawn_session", Effect::Adds, |called| Box::pin(start(called)))
    }
}

/// The alias of `spawn_session` that orchestrators use.
pub(super) const START_AGENT: &str = "start_agent";

/// `spawn_session` with the argument names of orchestrators. Rules, the audit and limits use only
/// the name `spawn_session`.
fn start_agent() -> Tool {
    Tool {
        title: "Start an agent",
        description: "Starts a session of another agent as your child. Returns at once: the child \
                      is `pending` until a platform carries it out.",
        schema: object(
            json!({
                "agent_name": {"type": "string", "minLength": 1, "maxLength": 200},
                "prompt": {"type": "string", "maxLength": 100_000},
                "params": {"type": "object"},
                "model": {"type": "string", "minLength": 1, "maxLength": 200},
            }),
            &["agent_name"],
        ),
        ..Tool::new(START_AGENT, Effect::Adds, |called| Box::pin(start(called)))
    }
}

/// Converts arguments of `start_agent` into those of `spawn_session`. That tool refuses arguments
/// that are not an object.
pub(super) fn start_agent_as(arguments: &[u8]) -> Vec<u8> {
    let Ok(mut members) = serde_json::from_slice::<Map<String, Value>>(arguments) else {
        return arguments.to_vec();
    };
    if !members.contains_key("child_agent_id")
        && let Some(name) = members.remove("agent_name")
    {
        members.insert("child_agent_id".to_owned(), name);
    }
    Value::Object(members).to_string().into_bytes()
}

#[derive(Deserialize)]
struct Spawn {
    child_agent_id: String,
    prompt: Option<String>,
    params: Option<Map<String, Value>>,
    model: Option<String>,
    runtime_type: Option<String>,
}

async fn start(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Spawn = called.arguments()?;
    let own = called.session()?;
    let mut request = json!({ "type": "start_session", "agent_name": &asked.child_agent_id });
    if let Some(prompt) = asked.prompt {
        request["prompt"] = prompt.into();
    }
    if let Some(params) = asked.params {
        request["params"] = params.into();
    }
    let awaited = Awaited { model: asked.model, runtime: asked.runtime_type };
    let agent = asked.child_agent_id;
    let started = called.platform.runs.spawn(called.run, &agent, &request, awaited).await;
    let started = started.map_err(|error| of_spawn(&called, &agent, &error))?;
    let StartedChild { row, status, is_new, lacks_platform } = started;
    let mut text = match is_new {
        true => {
            format!("started `{}` as the session {}, which is {}", row.agent, row.session, status)
        }
        false => format!("`{}` is active already, as the session {}", row.agent, row.session),
    };
    if lacks_platform {
        text += ". No platform has claimed a run of this workspace in the last hour, so it may \
                 stay pending: do not wait for it alone";
    }
    let agent = called.run.authority.actors().agent.clone();
    let session = json!({
        "id": row.session.to_text(),
        "run_id": row.id.to_text(),
        "agent_id": row.agent,
        "parent_session_id": own.to_text(),
        "parent_agent_id": agent,
        "triggered_by": "agent",
        "status": status,
        "triggered_at": Timestamp::new(row.created_at).to_string(),
    });
    let answer = json!({
        "ok": true,
        "is_new": is_new,
        "lacks_platform": lacks_platform,
        "session": session,
    });
    Ok(said(text, answer))
}

/// The error when a child is not started. If only an operator can repair the fault, a model learns
/// only that there is one, but no key of the run scope and no setting (D28).
fn of_spawn(called: &Called<'_>, agent: &str, error: &RunError) -> CallError {
    match (error.for_models(), error) {
        (Some(ModelWords { code, what }), _) => {
            let text = format!("the agent `{agent}` cannot be started: {what}");
            coded(CallErrorKind::ServerError, &code, text)
        }
        (None, RunError::NotSpawnable(_)) => with_asking(called, agent, of_runs(error)),
        (None, _) => of_runs(error),
    }
}

/// Adds to a refusal the call with which the agent can ask a human for the grant, if the run has
/// that tool and may ask.
fn with_asking(called: &Called<'_>, agent: &str, refused: CallError) -> CallError {
    let tool = called.platform.runs.gateway().asking_tool(called.caller);
    let arguments = ask_to_spawn(&called.platform.control, called.run, agent);
    let (Some(tool), Some(arguments)) = (tool, arguments) else { return refused };
    let mut details = refused.details.unwrap_or_default();
    let calls = [json!({ "name": tool, "arguments": arguments })];
    details["ask"] = json!({ "server": Alias::built_in().as_str(), "calls": calls });
    let message = format!("this run may not start the agent `{agent}`");
    CallError { message, details: Some(details), ..refused }
}

fn output() -> Tool {
    Tool {
        title: "Read what a child does",
        description: "Reads the events of a child from a number on: its status, artifacts, \
                      questions, messages and end. Go on with the `next_seq` of the answer.",
        schema: object(
            json!({
                "child_session_id": child_argument(),
                "after_seq": {"type": "integer", "minimum": 0, "default": 0},
                "limit": {"type": "integer", "default": EVENTS,
                    "description": "From 1 to 5000; what is beyond counts as the nearest."},
            }),
            &["child_session_id"],
        ),
        ..Tool::new("read_child_output", Effect::Reads, |called| Box::pin(read(called)))
    }
}

#[derive(Deserialize)]
struct Output {
    child_session_id: String,
    #[serde(default)]
    after_seq: u64,
    limit: Option<i64>,
}

async fn read(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Output = called.arguments()?;
    let child = called.platform.runs.child(called.run, &asked.child_session_id).await;
    let child = child.map_err(|error| of_runs(&error))?;
    let limit = asked.limit.unwrap_or(EVENTS).clamp(1, EVENTS_MAX).unsigned_abs();
    let wanted = Wanted { after: asked.after_seq, limit, kinds: &[] };
    let events = called.events()?;
    let page = events.read(&called.run.workspace, child.session.id, wanted).await;
    let page = page.map_err(|error| of_events(&error))?;
    let (mut told, mut bytes, mut next) = (Vec::new(), 0, page.next);
    let count = page.events.len();
    for event in page.events.into_iter().map(EventRow::for_models) {
        let one = shown(&event);
        bytes += one.to_string().len();
        if bytes > OUTPUT_BYTES && !told.is_empty() {
            break;
        }
        next = event.seq;
        told.push(one);
    }
    if told.len() == count {
        next = page.next;
    }
    let text = format!("{}: {} events", child.status, told.len());
    Ok(said(
        text,
        json!({
            "child": { "id": child.session.id.to_text(), "status": child.status },
            "events": told,
            "next_seq": next,
            "oldest_seq": page.oldest,
            "last_seq": page.last,
        }),
    ))
}

fn shown(event: &EventRow) -> Value {
    json!({
        "seq": event.seq,
        "type": event.kind,
        "payload": event.payload,
        "timestamp": Timestamp::new(event.at).to_string(),
    })
}

fn inject() -> Tool {
    Tool {
        title: "Tell a child something",
        description: "Sends a message to a child that goes on; it comes as a message of this \
                      session. The same message_id twice is one message.",
        schema: object(
            json!({
                "child_session_id": child_argument(),
                "text": {"type": "string", "minLength": 1, "maxLength": 20_000},
                "message_id": {"type": "string", "minLength": 1, "maxLength": 100},
                "expires_at": inbox::expires_at_argument(),
            }),
            &["child_session_id", "text"],
        ),
        ..Tool::new("inject_message", Effect::Adds, |called| Box::pin(tell_child(called)))
    }
}

#[derive(Deserialize)]
struct Injected {
    child_session_id: String,
    text: String,
    message_id: Option<String>,
    expires_at: Option<String>,
}

async fn tell_child(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Injected = called.arguments()?;
    let expires_at = inbox::expires_at(asked.expires_at.as_deref())?;
    let child = called.platform.runs.live_child(called.run, &asked.child_session_id).await;
    let child = child.map_err(|error| of_runs(&error))?;
    let own = called.session()?.to_text();
    // The same id from another sender names another message.
    let message_id = asked.message_id.map(|id| format!("{own}-{id}"));
    let more = vec![("from_session_id", json!(own))];
    let message = Message { text: asked.text, message_id, expires_at, more, ..Message::default() };
    // The user who has this run's turn also gets the child's turn.
    let speaker = Speaker::handing_on(called.run.authority.actors().user.clone());
    let row = send(&called, child.session.id, message, &speaker).await?;
    Ok(said("sent", json!({ "ok": true, "sequence": row.seq })))
}

async fn send(
    called: &Called<'_>,
    to: SessionId,
    message: Message,
    speaker: &Speaker,
) -> Result<EventRow, CallError> {
    let (control, workspace) = (&called.platform.control, &called.run.workspace);
    let sent = control.session_tell(workspace, to, message, (&called.actor(), speaker)).await;
    sent.map_err(|error| failed(&error))
}

fn cancel() -> Tool {
    Tool {
        title: "End a child",
        description: "Ends a child for good with all its runs, and all that it has started. A \
                      second time changes nothing.",
        schema: object(
            json!({
                "child_session_id": child_argument(),
                "reason": {"type": "string", "maxLength": 2000},
            }),
            &["child_session_id"],
        ),
        ..Tool::new("cancel_session", Effect::Destroys, |called| Box::pin(end(called)))
    }
}

#[derive(Deserialize)]
struct Cancelled {
    child_session_id: String,
    reason: Option<String>,
}

async fn end(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Cancelled = called.arguments()?;
    let (runs, id) = (&called.platform.runs, &asked.child_session_id);
    let done = runs.cancel(called.run, id, asked.reason.as_deref()).await;
    let (cancelled, child) = done.map_err(|error| of_runs(&error))?;
    let text = if cancelled { "ended" } else { "it had ended before" };
    let session = ended(&child);
    Ok(said(text, json!({ "ok": true, "cancelled": cancelled, "session": session })))
}

fn ended(child: &Child) -> Value {
    let at = child.session.ended_at;
    json!({
        "id": child.session.id.to_text(),
        "status": child.status,
        "completed_at": at.map(|at: SystemTime| Timestamp::new(at).to_string()),
    })
}

fn message() -> Tool {
    Tool {
        title: "Tell your caller something",
        description: "Sends a message to the session that started yours. Only orchestrators take \
                      any.",
        schema: object(
            json!({
                "summary": {"type": "string", "minLength": 1, "maxLength": 2000},
                "body": {"type": "string", "maxLength": 20_000},
                "needs_response": {"type": "boolean", "default": false},
                "expires_at": inbox::expires_at_argument(),
            }),
            &["summary"],
        ),
        ..Tool::new("message_caller", Effect::Adds, |called| Box::pin(tell_caller(called)))
    }
}

#[derive(Deserialize)]
struct ToCaller {
    summary: String,
    body: Option<String>,
    #[serde(default)]
    needs_response: bool,
    expires_at: Option<String>,
}

async fn tell_caller(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: ToCaller = called.arguments()?;
    let expires_at = inbox::expires_at(asked.expires_at.as_deref())?;
    let caller = called.platform.runs.caller(called.run).await;
    let caller = caller.map_err(|error| of_runs(&error))?;
    let (workspace, child) = (called.run.workspace.clone(), caller.child);
    let owed = match caller.is_orchestrator {
        true => called.platform.runs.owed_for_message(&workspace, child).await,
        false => Ok(None),
    };
    let owed = owed.map_err(|error| of_runs(&error))?;
    // Followers of this session see the message even if the parent agent does not receive it.
    let mut payload = json!({
        "summary": asked.summary,
        "needs_response": asked.needs_response,
        "to_session_id": caller.session.to_text(),
        "delivered": caller.is_orchestrator,
    });
    if let Some(body) = &asked.body {
        payload["body"] = json!(body);
    }
    called.tell(EventKind::AgentMessage, payload, None).await?;
    if !caller.is_orchestrator {
        let reason = "parent_not_orchestrator";
        let text =
            "the agent that started you takes no messages; it reads what you report to people";
        return Ok(said(text, json!({ "ok": true, "delivered": false, "reason": reason })));
    }
    let mut more = vec![
        ("from_session_id", json!(caller.child.to_text())),
        ("needs_response", json!(asked.needs_response)),
    ];
    more.extend(asked.body.map(|body| ("body", json!(body))));
    let message = Message { text: asked.summary, expires_at, more, owed, ..Message::default() };
    let (runs, by) = (called.platform.runs.clone(), called.actor());
    // The task continues to its end if the caller disconnects. The data for resuming the parent
    // session is stored with the message, and the session's wake follows.
    let telling = async move |control: Control| {
        let spoken = (&by, &Speaker::aside());
        let row = control.session_tell(&workspace, caller.session, message, spoken).await?;
        runs.caller_told(&workspace, child, row.seq).await;
        Ok(row)
    };
    let told = called.platform.control.to_the_end(telling).await;
    let row = told.map_err(|error| failed(&error))?;
    Ok(said("sent", json!({ "ok": true, "delivered": true, "sequence": row.seq })))
}

/// The error for a failure of runs, with the documented code.
pub(super) fn of_runs(error: &RunError) -> CallError {
    match error {
        RunError::Control(error) => failed(error),
        RunError::NotSpawnable(agent) | RunError::OtherModels(agent) => {
            let details = json!({ "code": error.code(), "grant_type": "spawn",
                                  "child_agent_id": agent });
            let kind = CallErrorKind::PermissionRequired;
            CallError { details: Some(details), ..CallError::new(kind, error.to_string()) }
        }
        error => {
            let mut told = coded(error.kind().into(), error.code(), error.to_string());
            // Other interfaces show these members beside an error, for example its list of faults.
            let members = error.members().map(|members| json!(members));
            if let (Some(details), Some(Value::Object(members))) = (&mut told.details, members) {
                for (name, member) in members {
                    if !matches!(&*name, "error" | "code") {
                        details[name] = member;
                    }
                }
            }
            told
        }
    }
}
