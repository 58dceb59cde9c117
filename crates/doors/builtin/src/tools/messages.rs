//! Messages to channels of the workspace, which people read.

use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, CallErrorKind, Timestamp};
use narthex_outbound::{Message, MessageFailure, Sender, channel_spelling};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::object;
use crate::{Called, Effect, Tool, failed, said};

pub(super) fn tools() -> Vec<Tool> {
    vec![post_message()]
}

fn post_message() -> Tool {
    Tool {
        title: "Post to a channel",
        description: "Posts a message to a channel of the workspace, such as a room of a chat \
                      where people are. For who follows this session, `emit_status` and \
                      `emit_artifact` will do. Answers come, if at all, as messages.",
        schema: object(
            json!({
                "channel": {"type": "string", "minLength": 1, "maxLength": 100,
                    "description": "Its name, as the admins of the workspace have set it up; with \
                                    or without `#`."},
                "text": {"type": "string", "minLength": 1, "maxLength": 20_000},
                "thread_id": {"type": "string", "minLength": 1, "maxLength": 200,
                    "description": "What the channel calls the thread in which it is said."},
                "username": {"type": "string", "minLength": 1, "maxLength": 80,
                    "description": "As whom it is shown, where the channel can do that."},
            }),
            &["channel", "text"],
        ),
        is_open_world: true,
        spelling: Some(spell),
        ..Tool::new("post_message", Effect::Adds, |called| Box::pin(post(called)))
    }
}

fn spell(arguments: &mut Map<String, Value>) {
    if let Some(Value::String(channel)) = arguments.get_mut("channel") {
        *channel = channel_spelling(channel);
    }
}

#[derive(Deserialize)]
struct Wanted {
    channel: String,
    text: String,
    thread_id: Option<String>,
    username: Option<String>,
}

async fn post(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let Wanted { channel, text, thread_id, username } = called.arguments()?;
    let message = Message { channel, text, thread_id, username };
    let sender = Sender { run: called.run.id, session: called.session().ok() };
    let outbound = called.platform.outbound.as_ref().ok_or_else(|| {
        let text = "this process posts nothing";
        CallError::new(CallErrorKind::ServerError, text)
    })?;
    // A failed post is an ordinary outcome: the agent continues without it.
    match outbound.post(&called.run.workspace, sender, message).await {
        Ok(posted) => {
            let answer = json!({
                "ok": true,
                "message_id": posted.message_id,
                "channel": posted.channel.as_str(),
                "posted_at": Timestamp::new(posted.posted_at).to_string(),
            });
            Ok(said(format!("posted to `{}`", posted.channel), answer))
        }
        Err(MessageFailure::Control(error)) => Err(failed(&error)),
        Err(failure) => {
            let answer = json!({"ok": false, "error": failure.code()});
            Ok(said(failure.to_string(), answer))
        }
    }
}
