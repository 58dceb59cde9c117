//! Tools with which a run reports to people about its work.

use narthex_events::EventKind;
use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, CallErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{REQUEST_ID, object};
use crate::{Called, Effect, Tool, called::coded, said};

pub(super) fn tools() -> Vec<Tool> {
    vec![emit_status(), emit_artifact(), request_input(), emit_error()]
}

fn emit_status() -> Tool {
    let words = ["starting", "researching", "analyzing", "writing", "reviewing", "waiting", "done"];
    Tool {
        title: "Say how you get on",
        description: "Tells people what you are doing now. Call it whenever you begin something \
                      else.",
        schema: object(
            json!({
                "status": {"type": "string", "enum": words},
                "detail": {"type": "string", "maxLength": 2000},
            }),
            &["status"],
        ),
        ..Tool::new("emit_status", Effect::Adds, |called| Box::pin(status(called)))
    }
}

#[derive(Serialize, Deserialize)]
struct Status {
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

async fn status(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let status: Status = called.arguments()?;
    let payload = json!(status);
    // An agent should continue to work even if no event can be stored.
    let is_told = match called.tell(EventKind::AgentStatus, payload, None).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(
                run.id = %called.run.id,
                "a status of a run could not be stored: {error}"
            );
            false
        }
    };
    let text = format!("status: {}", status.status);
    Ok(said(text, json!({"ok": true, "recorded": is_told})))
}

fn emit_artifact() -> Tool {
    let words = ["code", "analysis", "summary", "document", "diff", "other"];
    Tool {
        title: "Show a result",
        description: "Shows people a piece of your work. Markdown is rendered; `code` is shown as \
                      it is.",
        schema: object(
            json!({
                "artifact_type": {"type": "string", "enum": words},
                "title": {"type": "string", "minLength": 1, "maxLength": 500},
                "content": {"type": "string", "maxLength": 200_000},
                "language": {"type": "string", "maxLength": 100},
                "metadata": {"type": "object"},
            }),
            &["artifact_type", "title", "content"],
        ),
        ..Tool::new("emit_artifact", Effect::Adds, |called| Box::pin(artifact(called)))
    }
}

#[derive(Serialize, Deserialize)]
struct Artifact {
    artifact_type: String,
    title: String,
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

async fn artifact(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let artifact: Artifact = called.arguments()?;
    let told = called.tell(EventKind::AgentArtifact, json!(artifact), None).await?;
    let text = format!("“{}” is shown", artifact.title);
    Ok(said(text, json!({"ok": true, "title": artifact.title, "sequence": told.seq})))
}

fn request_input() -> Tool {
    Tool {
        title: "Ask a person",
        description: "Asks people a question. Returns at once; the answer comes as a message with \
                      this request_id. Go on with other work, or end your turn.",
        schema: object(
            json!({
                "question": {"type": "string", "minLength": 1, "maxLength": 10_000},
                "request_id": {"type": "string", "pattern": REQUEST_ID,
                    "description": "The same one twice is one question."},
                "options": {"type": "array", "maxItems": 50,
                    "items": {"type": "string", "maxLength": 1000}},
            }),
            &["question", "request_id"],
        ),
        ..Tool::new("request_input", Effect::Settles, |called| Box::pin(input(called)))
    }
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Input {
    question: String,
    request_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

async fn input(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let input: Input = called.arguments()?;
    let message = format!("input-{}", input.request_id);
    let told = called.tell(EventKind::AgentInputRequest, json!(input), Some(&message)).await?;
    let id = input.request_id.clone();
    // If two questions have the same id, people see only the first.
    if Input::deserialize(&told.payload).ok() != Some(input) {
        let text = format!(
            "another question was asked before under the request_id `{id}`; choose another id"
        );
        return Err(coded(CallErrorKind::InvalidArguments, "request_id_conflict", text));
    }
    let text = format!("asked; the answer comes as a message with the request_id `{id}`");
    Ok(said(text, json!({"ok": true, "status": "pending", "request_id": id})))
}

fn emit_error() -> Tool {
    Tool {
        title: "Tell of a failure",
        description: "Tells people that something failed, and whether you can go on.",
        schema: object(
            json!({
                "message": {"type": "string", "minLength": 1, "maxLength": 10_000},
                "recoverable": {"type": "boolean"},
            }),
            &["message", "recoverable"],
        ),
        ..Tool::new("emit_error", Effect::Adds, |called| Box::pin(error(called)))
    }
}

#[derive(Serialize, Deserialize)]
struct Failure {
    message: String,
    recoverable: bool,
}

async fn error(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let failure: Failure = called.arguments()?;
    let told = called.tell(EventKind::AgentError, json!(failure), None).await?;
    Ok(said("told", json!({"ok": true, "sequence": told.seq})))
}
