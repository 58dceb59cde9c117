//! Tools with which a session gives files to its children, and fetches files from them (X-M3).

use narthex_gateway::BuiltInResult;
use narthex_model::CallError;
use narthex_runs::Handed;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    children::{child_argument, of_runs},
    object, spell_paths,
};
use crate::{Called, Effect, Tool, said};

/// Maximum number of paths in one fetch.
const PATHS_MAX: usize = 100;

pub(super) fn tools() -> Vec<Tool> {
    vec![share_to_child(), pull_from_child()]
}

fn path() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 4096})
}

fn share_to_child() -> Tool {
    Tool {
        title: "Hand files to a child",
        description: "Copies a file or folder of your workspace folder into that of a child that \
                      goes on, as it is now: at most 50 MiB, without links and hidden files.",
        schema: object(
            json!({
                "child_session_id": child_argument(),
                "source_path": path(),
                "dest_path": {"type": "string", "minLength": 1, "maxLength": 4096,
                    "default": "from-caller",
                    "description": "The folder in the child's, below which the files come."},
            }),
            &["child_session_id", "source_path"],
        ),
        spelling: Some(|arguments| spell_paths(arguments, &["source_path", "dest_path"])),
        ..Tool::new("share_to_child", Effect::Settles, |called| Box::pin(hand(called)))
    }
}

#[derive(Deserialize)]
struct Given {
    child_session_id: String,
    source_path: String,
    dest_path: Option<String>,
}

async fn hand(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Given { child_session_id, source_path, dest_path } = called.arguments()?;
    let runs = &called.platform.runs;
    let done = runs.hand_to_child(called.run, &child_session_id, source_path, dest_path).await;
    let handed = done.map_err(|error| of_runs(&error))?;
    let (text, mut answer) = copied(&handed, "the child's folder");
    answer["stage_id"] = handed.stage.into();
    answer["total_size"] = handed.bytes.into();
    Ok(said(text, answer))
}

fn pull_from_child() -> Tool {
    Tool {
        title: "Fetch files of a child",
        description: "Copies what a child has made from its workspace folder into yours, below \
                      `children/` and its session, in place of what was fetched before: at most \
                      50 MiB, without links and hidden files.",
        schema: object(
            json!({
                "child_session_id": child_argument(),
                "paths": {"type": "array", "items": path(), "maxItems": PATHS_MAX,
                    "description": "Files and folders in the child's folder; all if left out."},
            }),
            &["child_session_id"],
        ),
        spelling: Some(|arguments| spell_paths(arguments, &["paths"])),
        ..Tool::new("pull_from_child", Effect::Destroys, |called| Box::pin(fetch(called)))
    }
}

#[derive(Deserialize)]
struct Wanted {
    child_session_id: String,
    #[serde(default)]
    paths: Vec<String>,
}

async fn fetch(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Wanted { child_session_id, paths } = called.arguments()?;
    let done = called.platform.runs.fetch_from_child(called.run, &child_session_id, paths).await;
    let handed = done.map_err(|error| of_runs(&error))?;
    let (text, mut answer) = copied(&handed, "your folder");
    answer["total_bytes"] = handed.bytes.into();
    Ok(said(text, answer))
}

fn copied(handed: &Handed, whose: &str) -> (String, Value) {
    let Handed { path, files, skipped, .. } = handed;
    let many = if *files == 1 { "file is" } else { "files are" };
    let text = format!("{files} {many} below `{path}` in {whose}; {skipped} passed over");
    let answer = json!({
        "ok": true,
        "dest_path": path,
        "files": files,
        "skipped_count": skipped,
    });
    (text, answer)
}
