//! Providers of channels, which carry their messages.

use std::{pin::Pin, time::SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use narthex_model::Secret;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    channels::Outgoing,
    post::{Letter, PostFailure, Poster},
    sign::signature,
};

/// The provider that carries a channel's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// The daemon's log.
    Log,
    /// A signed POST to an address.
    Webhook,
    /// An incoming webhook as in Slack, Mattermost and others.
    Slack,
}

/// Sends a message.
pub(crate) trait Provider: Send + Sync {
    /// Sends it, until `deadline` at the latest.
    fn send<'a>(&'a self, message: &'a Outgoing, deadline: Instant) -> Sending<'a>;
}

pub(crate) type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), PostFailure>> + Send + 'a>>;

pub(crate) struct Log;

pub(crate) struct Webhook<'p> {
    pub(crate) poster: &'p Poster,
    pub(crate) url: Secret,
    pub(crate) key: Secret,
}

pub(crate) struct Slack<'p> {
    pub(crate) poster: &'p Poster,
    pub(crate) url: Secret,
}

impl ProviderKind {
    /// Every kind.
    pub const ALL: [Self; 3] = narthex_model::every![Log, Webhook, Slack];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Webhook => "webhook",
            Self::Slack => "slack",
        }
    }

    /// The kind of a name; `None` for an unknown one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// True if it posts to an address.
    pub(crate) fn has_url(self) -> bool {
        !matches!(self, Self::Log)
    }

    /// True if it signs its posts.
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::Webhook)
    }
}

/// The log target of channel messages: the log has them whatever its level is.
const TARGET: &str = "narthex::channel";

impl Provider for Log {
    fn send<'a>(&'a self, message: &'a Outgoing, _deadline: Instant) -> Sending<'a> {
        Box::pin(async move {
            let Outgoing { workspace, sender, channel, said, .. } = message;
            tracing::info!(
                target: TARGET,
                {
                    workspace.id = %workspace,
                    run.id = %sender.run,
                    channel = %channel,
                    text = ?said.text
                },
                "an agent posts a message"
            );
            Ok(())
        })
    }
}

impl Provider for Webhook<'_> {
    fn send<'a>(&'a self, message: &'a Outgoing, deadline: Instant) -> Sending<'a> {
        let letter = signed(&self.key, &message.id, &message.document());
        Box::pin(async move { self.poster.post_soon(&self.url, &letter, deadline).await })
    }
}

impl Provider for Slack<'_> {
    fn send<'a>(&'a self, message: &'a Outgoing, deadline: Instant) -> Sending<'a> {
        let mut body = json!({ "text": plain(&message.said.text) });
        if let Some(username) = &message.said.username {
            body["username"] = json!(plain(&username.replace(['\n', '\t'], " ")));
        }
        if let Some(thread) = &message.said.thread_id {
            body["thread_ts"] = json!(thread);
        }
        let letter = Letter { headers: json_headers(), body: body.to_string().into_bytes() };
        Box::pin(async move { self.poster.post_soon(&self.url, &letter, deadline).await })
    }
}

/// A document with the headers of Standard Webhooks.
pub(crate) fn signed(key: &Secret, id: &str, document: &Value) -> Letter {
    let body = document.to_string().into_bytes();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let mut headers = json_headers();
    let values = [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", signature(key, id, seconds, &body)),
    ];
    for (name, value) in values {
        // Ids, numbers and base64 are ASCII.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Letter { headers, body }
}

fn json_headers() -> HeaderMap {
    let agent = HeaderValue::from_static(concat!("narthex/", env!("CARGO_PKG_VERSION")));
    let json = HeaderValue::from_static("application/json");
    HeaderMap::from_iter([(header::CONTENT_TYPE, json), (header::USER_AGENT, agent)])
}

/// Text in which no character has a meaning for a chat: an agent must not call all members, nor
/// have its text rendered differently than it is written.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars().filter(|c| !is_unseen(*c)) {
        match c {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            // `@all` calls all members in some chats; an `@` inside a mail address calls no member.
            '@' if !before.is_alphanumeric() => plain.extend(['@', NO_WORD]),
            c => plain.push(c),
        }
        before = c;
    }
    plain
}

/// A space of no width: the following text belongs to no word before it.
const NO_WORD: char = '\u{200b}';

/// True for characters that are unseen or change how other text is shown: controls except line ends
/// and tabs, and characters that turn the direction of writing.
fn is_unseen(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M3.
    #[test]
    fn a_text_of_an_agent_cannot_mention_people_or_channels() {
        for (said, shown) in [
            ("<!channel> a & b", "&lt;!channel&gt; a &amp; b"),
            ("<@U024BE7LH|ada> &lt;", "&lt;@\u{200b}U024BE7LH|ada&gt; &amp;lt;"),
            ("@all (@here) ada@example.com", "@\u{200b}all (@\u{200b}here) ada@example.com"),
            ("a\0b\x1b[2J\r\nc\td", "ab[2J\nc\td"),
            ("exe.\u{202e}gpj\u{2069}", "exe.gpj"),
        ] {
            assert_eq!(plain(said), shown, "{said:?}");
        }
        // A removed character cannot hide an `@` behind a letter.
        assert_eq!(plain("a \u{202d}@all"), "a @\u{200b}all");
    }
}
