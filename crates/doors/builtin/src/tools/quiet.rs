//! The tool with which a child announces that it will be silent (X-E91).

use std::time::Duration;

use narthex_events::EventKind;
use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, Timestamp};
use narthex_runs::QUIET_MAX;
use serde::Deserialize;
use serde_json::json;

use super::{children::of_runs, object};
use crate::{Called, Effect, Tool, said};

pub(super) fn tool() -> Tool {
    Tool {
        title: "Announce a quiet time",
        description: "Says that nothing will be heard of you for so many seconds, so that nobody \
                      takes you for lost. The newest counts; 0 takes it back. For agents that \
                      another one has started.",
        schema: object(
            json!({
                "seconds": {"type": "number"},
                "reason": {"type": "string", "maxLength": 2000},
            }),
            &["seconds"],
        ),
        ..Tool::new("expect_quiet_for", Effect::Settles, |called| Box::pin(expect(called)))
    }
}

#[derive(Deserialize)]
struct QuietTime {
    seconds: f64,
    reason: Option<String>,
}

async fn expect(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: QuietTime = called.arguments()?;
    let lasts = Duration::try_from_secs_f64(asked.seconds.min(QUIET_MAX.as_secs_f64()));
    let lasts = lasts.ok().filter(|lasts| !lasts.is_zero());
    let until = called.platform.runs.expect_quiet(called.run, lasts).await;
    let until = until.map_err(|error| of_runs(&error))?;
    let until = until.map(|until| Timestamp::new(until).to_string());
    if until.is_some() {
        let payload = json!({ "status": "waiting", "detail": asked.reason, "quiet_until": until });
        called.tell(EventKind::AgentStatus, payload, None).await?;
    }
    Ok(said("noted", json!({ "ok": true, "quiet_until": until })))
}
