//! `narthex runs claim`.

use crate::cli::ClaimArgs;
use http::Method;
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::{run_path, text, with_remedy};
use crate::{
    Context, Failure,
    commands::waiting::waiting,
    daemon_client::{ApiRequest, DaemonClient},
    output::{self, harmless},
};

pub(super) async fn run(args: &ClaimArgs, context: &Context) -> Result<(), Failure> {
    let mut body = json!({ "lease_seconds": args.lease.as_secs() });
    if let Some(claim) = &args.claim {
        body["claim"] = json!(claim);
    }
    let client = DaemonClient::operator(&context.daemon)?;
    let path = format!("{}/claim", run_path(&args.place.workspace, &args.id));
    let asked = client.api(ApiRequest::new(Method::POST, path).entry(&body.to_string()));
    let claimed = waiting("starting the servers of the run", context, Box::pin(asked)).await;
    let claimed = claimed.map_err(with_remedy)?;
    if context.format.is_json() {
        return output::done(&claimed);
    }
    let (claim, until) = (text(&claimed, "claim"), text(&claimed, "claimed_until"));
    let run = &claimed["run"];
    if context.format.is_quiet() {
        return output::line(format!("{claim} {}", text(run, "token")).trim_end());
    }
    if run.is_null() {
        return output::line(&format!("The claim {claim} holds until {until}."));
    }
    let snippet = json!({ "mcpServers": run["mcpServers"] });
    let id = text(run, "run_id");
    let longer = narthex("runs claim {} --claim {}", &[&id, &claim]);
    let longer = longer.in_workspace(&args.place.workspace);
    output::line(&format!(
        "The run {id} is yours until {until}. This is shown once:\n\n{snippet:#}\n\n\
         {}`{longer}` holds it for longer.",
        brief(&claimed)
    ))
}

/// The run's model and all texts for the model: a paragraph for each part. Texts of several lines
/// stand below their name.
fn brief(claimed: &Value) -> String {
    let parts = [
        ("Model", "model"),
        ("Runtime", "runtime_type"),
        ("System prompt", "system_prompt"),
        ("Prompt", "prompt"),
        ("Params", "params"),
    ];
    let lines = |text: &str| text.lines().map(harmless).collect::<Vec<_>>().join("\n");
    let part = |(name, member): (&str, &str)| {
        let shown = match &claimed[member] {
            Value::Null => return None,
            Value::String(text) if text.is_empty() => return None,
            Value::Object(fields) if fields.is_empty() => return None,
            Value::String(text) => lines(text),
            other => lines(&format!("{other:#}")),
        };
        let gap = if shown.contains('\n') { "\n" } else { " " };
        Some(format!("{name}:{gap}{shown}\n\n"))
    };
    parts.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O80: people read all texts for the model, and no text moves their cursor.
    #[test]
    fn o80_the_brief_of_a_claim_is_shown() {
        let claimed = json!({ "prompt": "count\nall", "params": { "depth": 2 }, "model": "big",
            "system_prompt": "Be \u{1b}[2Jbrief.", "runtime_type": null });
        let expected = "Model: big\n\nSystem prompt: Be \u{fffd}[2Jbrief.\n\n\
                        Prompt:\ncount\nall\n\nParams:\n{\n  \"depth\": 2\n}\n\n";
        assert_eq!(brief(&claimed), expected);
        assert_eq!(brief(&json!({ "prompt": "", "params": {} })), "");
    }
}
