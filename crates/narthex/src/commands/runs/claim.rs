//! `narthex runs claim`.

use http::Method;
use narthex_cli::ClaimArgs;
use narthex_model::command::narthex;
use serde_json::json;

use super::{run_path, text, with_remedy};
use crate::{
    Failure,
    cli::Context,
    commands::waiting::waiting,
    daemon_client::{ApiRequest, DaemonClient},
    output,
};

pub(super) async fn run(args: &ClaimArgs, context: &Context) -> Result<(), Failure> {
    let mut body = json!({ "lease_seconds": args.lease.as_secs() });
    if let Some(claim) = &args.claim {
        body["claim"] = json!(claim);
    }
    let client = DaemonClient::operator(&context.settings)?;
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
    output::line(&format!(
        "The run {id} is yours until {until}. This is shown once:\n\n{snippet:#}\n\n\
         `{longer}` holds it for longer.",
    ))
}
