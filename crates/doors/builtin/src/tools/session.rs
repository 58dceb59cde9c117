//! Tools that act on the session itself.

use narthex_events::EventKind;
use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, CallErrorKind};
use narthex_runs::COMPLETED;
use serde::Deserialize;
use serde_json::json;

use super::{children::of_runs, object};
use crate::{Called, Effect, Tool, called::coded, said};

pub(super) fn tools() -> Vec<Tool> {
    vec![end_session()]
}

fn end_session() -> Tool {
    Tool {
        title: "End the session",
        description: "Ends this session for good, with all its runs. Call it last, when the work \
                      is done; people read the summary.",
        schema: object(
            json!({"summary": {"type": "string", "minLength": 1, "maxLength": 20_000}}),
            &["summary"],
        ),
        ..Tool::new("end_session", Effect::Destroys, |called| Box::pin(end(called)))
    }
}

#[derive(Deserialize)]
struct Ending {
    summary: String,
}

async fn end(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Ending { summary } = called.arguments()?;
    let session = called.session()?;
    let may_end = called.platform.runs.may_end_session(called.run).await;
    if !may_end.map_err(|error| of_runs(&error))? {
        let text = "the people of this session end it themselves; tell them that you are done, by \
                    `emit_status`";
        let kind = CallErrorKind::PermissionRequired;
        return Err(coded(kind, "end_session_rejected", text));
    }
    // The event is stored exactly once, however often the agent calls the tool while the session
    // ends.
    let payload = json!({"summary": summary});
    called.tell(EventKind::SessionCompleted, payload, Some(COMPLETED)).await?;
    let (runs, workspace) = (called.platform.runs.clone(), called.run.workspace.clone());
    let by = called.actor();
    // The answer is sent first, since the end of the session also ends this call.
    called.platform.control.spawn(async move {
        let id = session.to_text();
        if let Err(error) = runs.session_end(&workspace, &id, &by).await {
            tracing::warn!(session.id = id, "a session could not be ended for its agent: {error}");
        }
    });
    Ok(said("ending", json!({"ok": true, "status": "ending"})))
}
