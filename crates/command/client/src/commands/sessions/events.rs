//! `narthex sessions events` and `narthex sessions message`: events of a session, and people's
//! messages to its agent.

use std::{
    io::{Read as _, stdin},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use crate::cli::{SessionEventsArgs, SessionMessageArgs};
use http::Method;
use narthex_model::Timestamp;
use serde_json::{Value, json};

use super::{session_path, with_remedy};
use crate::{
    Context, Failure,
    commands::{
        streams::{again, cut_off},
        waiting::waiting,
    },
    daemon_client::{ApiRequest, DaemonClient, segment},
    output::{self, harmless},
};

/// Number of events that are asked for at a time.
const PAGE: u64 = 100;
/// Characters of a payload that are shown in a line.
const SHOWN: usize = 300;
/// More than the daemon takes, so that the daemon itself refuses a longer text.
const TEXT_MAX: u64 = 1024 * 1024;
/// A longer time is as good as for good.
const EXPIRES_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// The last of a stream of a session that has ended.
const END: &str = "stream.end";

/// Shows the events of a session, and with `follow` the later ones as well.
pub(super) async fn events(
    client: &DaemonClient,
    args: &SessionEventsArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    if args.follow {
        return follow(client, args, context).await;
    }
    let (mut items, mut after) = (Vec::new(), args.after);
    let last = loop {
        let path = format!("{}&limit={PAGE}", path(args, after));
        let asked = client.api_get(path);
        let mut page = waiting("asking the daemon", context, asked).await.map_err(with_remedy)?;
        if let Value::Array(events) = page["items"].take() {
            items.extend(events);
        }
        match page["next"].as_str().and_then(|next| next.parse().ok()) {
            Some(next) => after = next,
            None => break page,
        }
    };
    if context.format.is_json() {
        let (oldest, last) = (&last["oldest"], &last["last"]);
        output::done(&json!({ "items": items, "oldest": oldest, "last": last }))?;
        return Ok(ExitCode::SUCCESS);
    }
    items.iter().try_for_each(|event| show(event, context))?;
    let oldest = last["oldest"].as_u64().unwrap_or(0);
    if !context.format.is_quiet() && args.after + 1 < oldest {
        output::notice(&format!("the events before number {oldest} were deleted"));
    }
    if !context.format.is_quiet() && items.is_empty() {
        output::line("There are no such events.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows events until the session has ended; a stream that breaks off is resumed.
async fn follow(
    client: &DaemonClient,
    args: &SessionEventsArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let mut after = args.after;
    let mut stream =
        client.api_events(Method::GET, path(args, after)).await.map_err(with_remedy)?;
    loop {
        while let Some(event) = stream.next().await.unwrap_or_else(cut_off) {
            if event["type"] == END {
                if context.format.is_text() {
                    output::notice("the session has ended");
                }
                return Ok(ExitCode::SUCCESS);
            }
            after = event["sequence"].as_u64().unwrap_or(after);
            show(&event, context)?;
        }
        stream = again(client, &path(args, after)).await.map_err(with_remedy)?;
    }
}

/// Says something to the agent of a session.
pub(super) async fn message(
    client: &DaemonClient,
    args: SessionMessageArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let SessionMessageArgs { id, mut text, request_id, message_id, user, expires_in, place } = args;
    if text == "-" {
        text.clear();
        stdin().take(TEXT_MAX).read_to_string(&mut text)?;
    }
    let mut body = json!({ "text": text });
    let end = |lasts: Duration| Timestamp::new(SystemTime::now() + lasts.min(EXPIRES_MAX));
    let expires_at = expires_in.map(|lasts| end(lasts).to_string());
    let said = [
        ("request_id", request_id),
        ("message_id", message_id),
        ("expires_at", expires_at),
        ("user", user),
    ];
    for (name, value) in said {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let path = format!("{}/messages", session_path(&place, &id));
    let asked = client.api(ApiRequest::new(Method::POST, path).entry(&body.to_string()));
    let event = waiting("sending the message", context, asked).await.map_err(with_remedy)?;
    let sentence = format!("sent as event {} of the session {id}", event["sequence"]);
    output::told(&event, &sentence, context.format)
}

fn path(args: &SessionEventsArgs, after: u64) -> String {
    let types = args.types.as_deref().map(|types| format!("&type={}", segment(types)));
    let events = session_path(&args.place, &args.id);
    format!("{events}/events?after={after}{}", types.unwrap_or_default())
}

/// Shows an event as a line: the text of a message, or the payload of another event.
fn show(event: &Value, context: &Context) -> Result<(), Failure> {
    if context.format.is_json() {
        return output::json(event);
    }
    let sequence = &event["sequence"];
    if context.format.is_quiet() {
        return output::line(&sequence.to_string());
    }
    let payload = &event["payload"];
    let said = match payload["text"].as_str() {
        Some(text) => harmless(&text.replace(['\n', '\r'], " ")),
        None => harmless(&payload.to_string()),
    };
    let mut shown: String = said.chars().take(SHOWN).collect();
    if shown.len() < said.len() {
        shown.push_str(" … (--json shows all of it)");
    }
    let word = |name: &str| harmless(event[name].as_str().unwrap_or("-"));
    output::line(&format!("{sequence}  {}  {}  {shown}", word("timestamp"), word("type")))
}
