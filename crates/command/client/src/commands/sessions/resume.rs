//! `narthex sessions resume`.

use std::process::ExitCode;

use crate::cli::SessionResumeArgs;
use http::Method;
use serde_json::{Map, Value, json};

use super::{session_path, with_remedy};
use crate::{
    Context, Failure,
    commands::{runs::create, waiting::waiting},
    daemon_client::{ApiRequest, DaemonClient},
};

const EXAMPLE: &str = "write the settings of the run as one JSON object, such as {\"prompt\": \"Go \
                       on.\", \"scope\": {…}}, or {} for nothing";

pub(super) async fn resume(
    client: &DaemonClient,
    args: &SessionResumeArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let document = document(args)?;
    let path = format!("{}/resume", session_path(&args.place, &args.id));
    let request = ApiRequest::new(Method::POST, path).entry(&document.to_string());
    let asked = Box::pin(client.api(request));
    let begun = waiting("starting the servers of the run", context, asked).await;
    let begun = create::begun(begun.map_err(with_remedy), context)?;
    create::told(&begun, client, context).await?;
    Ok(ExitCode::SUCCESS)
}

/// The document of the request: the file's, with the values of flags.
fn document(args: &SessionResumeArgs) -> Result<Value, Failure> {
    let mut document = match &args.file {
        None => Map::new(),
        Some(file) => create::read(file, EXAMPLE)?,
    };
    let mut add = |name: &str, value: Option<Value>| {
        document.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("prompt", args.prompt.as_ref().map(|prompt| json!(prompt)));
    add("user", args.user.as_ref().map(|user| json!(user)));
    add("expires_in", args.expires_in.map(|time| json!(time.as_secs().max(1))));
    add("sockets", args.sockets.then_some(json!(true)));
    Ok(Value::Object(document))
}
