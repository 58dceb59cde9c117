//! Tools for files that runs share with their workspace, and for comments on them.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, CallErrorKind};
use narthex_runs::{
    CommentOn, Commenter, NewShare, RunError, SeenShare, SharedFileRow, SharingError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{object, spell_paths};
use crate::{Called, Effect, Tool, failed, of_sharing, said};

/// The maximum size of a file that a tool reads. As base64 in JSON, it is a third larger.
const READ_MAX: u64 = 6 * 1024 * 1024;
/// The maximum size of a result with such a file.
const READ_RESULT_MAX: usize = 9 * 1024 * 1024;
/// The maximum size of a text that the result also has in words.
const TEXT_MAX: usize = 256 * 1024;
/// Maximum number of files that a share's description lists.
const LISTED_MAX: usize = 500;
/// The maximum size of their names, in bytes. JSON may use six bytes for one character.
const LISTED_BYTES: usize = 128 * 1024;

pub(super) fn tools() -> Vec<Tool> {
    vec![share(), read_share(), share_comment(), share_comment_resolve()]
}

fn share() -> Tool {
    Tool {
        title: "Share files",
        description: "Shows people a copy of a file or folder of your workspace folder. A folder \
                      with an `index.html` is a site. Share again with the same `share_id` to show \
                      a newer version. Comments come as messages.",
        schema: object(
            json!({
                "path": {"type": "string", "minLength": 1, "maxLength": 4096,
                    "description": "Relative to your workspace folder; `.` is all of it."},
                "title": {"type": "string", "minLength": 1, "maxLength": 200},
                "share_id": {"type": "string", "maxLength": 100,
                    "description": "A share of this session, which gets these files."},
            }),
            &["path"],
        ),
        spelling: Some(|arguments| spell_paths(arguments, &["path"])),
        ..Tool::new("share", Effect::Adds, |called| Box::pin(shared(called)))
    }
}

#[derive(Deserialize)]
struct Wanted {
    path: String,
    title: Option<String>,
    share_id: Option<String>,
}

async fn shared(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Wanted { path, title, share_id } = called.arguments()?;
    let title = title.map(|title| title.replace(char::is_control, " "));
    let asked = NewShare { path, title, share: share_id };
    let done = called.platform.runs.share(called.run, asked).await;
    let (share, snapshot) = done.map_err(|error| refused(&error))?;
    let SeenShare { row, files } = &share;
    let (id, count) = (row.id.to_text(), files.len());
    let many = if count == 1 { "file" } else { "files" };
    let mut text = format!("“{}” is shared as `{id}`: {}, {count} {many}", row.title, row.kind);
    if snapshot.skipped_count > 0 {
        text.push_str(&format!("; {} of the folder left out", snapshot.skipped_count));
    }
    let skipped = snapshot.skipped.iter();
    let skipped = skipped.map(|one| json!({"path": one.path, "reason": one.why.as_str()}));
    let answer = json!({
        "ok": true,
        "share_id": id,
        "share_type": row.kind,
        "title": row.title,
        "revision": row.revision,
        "files": listed(files),
        "file_count": count,
        "total_size": row.total_size,
        "entry_point": row.entry_point,
        "skipped": skipped.collect::<Vec<_>>(),
        "skipped_count": snapshot.skipped_count,
    });
    Ok(said(text, answer))
}

/// The first files of a share, as many as a result may list.
fn listed(files: &[SharedFileRow]) -> Vec<Value> {
    let mut room = LISTED_BYTES;
    let fitting = files.iter().take(LISTED_MAX).take_while(|file| {
        let left = room.checked_sub(file.path.len() + file.content_type.len());
        room = left.unwrap_or(0);
        left.is_some()
    });
    let told = |file: &SharedFileRow| {
        let SharedFileRow { path, size, content_type, .. } = file;
        json!({"path": path, "size": size, "content_type": content_type})
    };
    fitting.map(told).collect()
}

fn read_share() -> Tool {
    Tool {
        title: "Read what is shared",
        description: "Reads one file of a share of this workspace, also of another agent's. \
                      Without `path` it is the file to begin with; where there are several and \
                      none to begin with, the answer lists them.",
        schema: object(
            json!({
                "share_id": {"type": "string", "maxLength": 100},
                "path": {"type": "string", "minLength": 1, "maxLength": 4096},
            }),
            &["share_id"],
        ),
        result_max: READ_RESULT_MAX,
        ..Tool::new("read_share", Effect::Reads, |called| Box::pin(read(called)))
    }
}

#[derive(Deserialize)]
struct Read_ {
    share_id: String,
    path: Option<String>,
}

async fn read(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Read_ { share_id, path } = called.arguments()?;
    let (runs, workspace) = (&called.platform.runs, &called.run.workspace);
    let found = runs.share_file(workspace, &share_id, path.as_deref()).await;
    let (share, file, copy) = match found {
        Err(RunError::Sharing(error @ SharingError::WhichFile)) => {
            return Err(which(&called, &share_id, &error).await);
        }
        found => found.map_err(|error| refused(&error))?,
    };
    if file.size > READ_MAX {
        return Err(of_sharing(&SharingError::TooLongToRead { size: file.size, max: READ_MAX }));
    }
    let reading = tokio::task::spawn_blocking(move || {
        let mut content = Vec::new();
        copy.take(READ_MAX).read_to_end(&mut content).map(|_length| content)
    });
    let content = match reading.await {
        Ok(Ok(content)) => content,
        Ok(Err(error)) => return Err(unreadable(&error)),
        Err(error) => return Err(unreadable(&error)),
    };
    let text = match std::str::from_utf8(&content) {
        Ok(text) if text.len() <= TEXT_MAX => text.to_owned(),
        _ => format!("`{}` has {} bytes of {}", file.path, file.size, file.content_type),
    };
    let answer = json!({
        "share_id": share.row.id.to_text(),
        "path": file.path,
        "mime_type": file.content_type,
        "size": file.size,
        "content_b64": STANDARD.encode(&content),
    });
    // The text is the content of the file, or the reason why it is missing.
    Ok(BuiltInResult { is_told: true, ..said(text, answer) })
}

/// The error, with the list of the share's files if the call does not name one.
async fn which(called: &Called<'_>, id: &str, error: &SharingError) -> CallError {
    let mut refused = of_sharing(error);
    let share = called.platform.runs.share_get(&called.run.workspace, id).await;
    if let (Ok(share), Some(Value::Object(details))) = (share, &mut refused.details) {
        details.insert("files".to_owned(), listed(&share.files).into());
    }
    refused
}

fn unreadable(error: &dyn std::error::Error) -> CallError {
    CallError::new(CallErrorKind::ServerError, format!("the file cannot be read: {error}"))
}

fn share_comment() -> Tool {
    Tool {
        title: "Comment on what is shared",
        description: "Says something of a share of this workspace: in a thread that there is \
                      (`thread_id`), or in a new one about a whole share or a passage of it \
                      (`share_id`, and `anchor` for a passage). Who shared it and who wrote in \
                      the thread gets it as a message.",
        schema: json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 1, "maxLength": 10_000},
                "thread_id": {"type": "string", "maxLength": 100},
                "share_id": {"type": "string", "maxLength": 100},
                "scope": {"type": "string", "enum": ["share", "passage"], "default": "share"},
                "anchor": {"type": "string", "minLength": 1, "maxLength": 2000,
                    "description": "The passage, such as a line, a heading or its words."},
            },
            "required": ["text"],
            "oneOf": [
                {"title": "`thread_id`, for a thread that there is", "required": ["thread_id"],
                 "not": {"anyOf": [
                    {"required": ["share_id"]}, {"required": ["scope"]}, {"required": ["anchor"]},
                ]}},
                {"title": "`share_id`, `anchor` and `\"scope\": \"passage\"`, for a passage",
                 "required": ["share_id", "scope", "anchor"],
                 "properties": {"scope": {"const": "passage"}},
                 "not": {"required": ["thread_id"]}},
                {"title": "`share_id` alone, for all of a share",
                 "required": ["share_id"], "properties": {"scope": {"const": "share"}},
                 "not": {"anyOf": [{"required": ["anchor"]}, {"required": ["thread_id"]}]}},
            ],
            "additionalProperties": false,
        }),
        ..Tool::new("share_comment", Effect::Adds, |called| Box::pin(comment(called)))
    }
}

#[derive(Deserialize)]
struct Comment {
    text: String,
    thread_id: Option<String>,
    #[serde(default)]
    share_id: String,
    #[serde(default)]
    anchor: String,
}

async fn comment(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Comment { text, thread_id, share_id, anchor } = called.arguments()?;
    let on = match thread_id {
        Some(thread) => CommentOn::Thread(thread),
        None => CommentOn::Share { id: share_id, anchor },
    };
    let by = commenter(&called)?;
    let thread = called.platform.runs.share_comment(&called.run.workspace, by, on, text).await;
    let thread = thread.map_err(|error| refused(&error))?;
    let (id, share) = (thread.row.id.to_text(), thread.row.share.to_text());
    let text = format!("added to the thread `{id}`, which has {} comments", thread.comments.len());
    Ok(said(text, json!({"ok": true, "thread_id": id, "share_id": share})))
}

fn share_comment_resolve() -> Tool {
    Tool {
        title: "Settle a thread",
        description: "Marks a thread of comments as settled, or opens it again with `unresolve`.",
        schema: object(
            json!({
                "thread_id": {"type": "string", "maxLength": 100},
                "unresolve": {"type": "boolean", "default": false},
            }),
            &["thread_id"],
        ),
        ..Tool::new("share_comment_resolve", Effect::Settles, |called| Box::pin(resolve(called)))
    }
}

#[derive(Deserialize)]
struct Resolve {
    thread_id: String,
    #[serde(default)]
    unresolve: bool,
}

async fn resolve(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Resolve { thread_id, unresolve } = called.arguments()?;
    let (by, runs) = (commenter(&called)?, &called.platform.runs);
    let done = runs.share_resolve(&called.run.workspace, by, &thread_id, !unresolve).await;
    let row = done.map_err(|error| refused(&error))?.row;
    let text = if unresolve { "the thread is open again" } else { "the thread is settled" };
    let resolved = row.resolved.is_some();
    Ok(said(text, json!({"ok": true, "thread_id": row.id.to_text(), "resolved": resolved})))
}

fn commenter(called: &Called<'_>) -> Result<Commenter, CallError> {
    called.session()?;
    Commenter::run(called.run).ok_or_else(|| of_sharing(&SharingError::NoSession))
}

fn refused(error: &RunError) -> CallError {
    match error {
        RunError::Sharing(error) => of_sharing(error),
        RunError::Control(error) => failed(error),
        error => crate::called::of_kind(error.kind(), error),
    }
}
