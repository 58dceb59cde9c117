//! The channels of a workspace: its admins configure them, and its agents post to them.

use std::time::{Duration, SystemTime};

use narthex_audit::{ActorKind, AuditEvent, kind};
use narthex_control::{By, CatalogError, Control, ControlError, FieldError};
use narthex_model::{
    ChannelName, ErrorKind, RunId, Secret, SecretName, SecretReference, SessionId, Timestamp,
    UnknownKey, WorkspaceId, command::narthex, json::Node,
};
use narthex_store::ChannelRow;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::{
    MessageFailure, Outbound, OutboundError, ProviderKind,
    post::PostFailure,
    provider::{Log, Provider, Slack, Webhook},
};

/// Time that an agent waits for a channel.
const WITHIN: Duration = Duration::from_secs(5);

/// A message of an agent.
#[derive(Debug, Clone)]
pub struct Message {
    /// The channel's name, in the spelling of [`channel_spelling`].
    pub channel: String,
    /// The text.
    pub text: String,
    /// The id of the thread to post in, in the channel's system.
    pub thread_id: Option<String>,
    /// The displayed sender, if the channel can show one.
    pub username: Option<String>,
}

/// The run that sends a message.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// The run.
    pub run: RunId,
    /// The run's session, if it has one.
    pub session: Option<SessionId>,
}

/// A posted message.
#[derive(Debug, Clone)]
pub struct Posted {
    /// The message's id, in the channel's system.
    pub message_id: String,
    /// The channel of the message.
    pub channel: ChannelName,
    /// Time of posting.
    pub posted_at: SystemTime,
}

/// A message on its way.
pub(crate) struct Outgoing {
    pub(crate) id: String,
    pub(crate) workspace: WorkspaceId,
    pub(crate) sender: Sender,
    pub(crate) channel: ChannelName,
    pub(crate) said: Message,
    pub(crate) at: SystemTime,
}

impl Outgoing {
    pub(crate) fn document(&self) -> Value {
        json!({
            "type": "message",
            "message_id": self.id,
            "channel": self.channel.as_str(),
            "text": self.said.text,
            "thread_id": self.said.thread_id,
            "username": self.said.username,
            "workspace": self.workspace.as_str(),
            "session_id": self.sender.session.map(SessionId::to_text),
            "run_id": self.sender.run.to_text(),
            "posted_at": Timestamp::new(self.at).to_string(),
        })
    }
}

/// The canonical spelling of a channel's name: agents may write it with `#`, capitals or spaces.
/// Rules and lookups use this spelling. A name in this spelling does not change.
#[must_use]
pub fn channel_spelling(text: &str) -> String {
    let name = text.trim_start_matches(|one: char| one == '#' || one.is_whitespace());
    name.trim_end().to_ascii_lowercase()
}

impl Outbound {
    /// The channels of a workspace, in the order of their names.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn channels(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<Vec<ChannelRow>, OutboundError> {
        let store = self.control().catalog_store(workspace).await?;
        Ok(store.channels().all(workspace).await.map_err(ControlError::Store)?)
    }

    /// One channel.
    ///
    /// # Errors
    /// When the name is unknown, or the store fails.
    pub async fn channel(
        &self,
        workspace: &WorkspaceId,
        name: &str,
    ) -> Result<ChannelRow, OutboundError> {
        let store = self.control().catalog_store(workspace).await?;
        let unknown = || OutboundError::NoChannel(name.chars().take(100).collect());
        let name = ChannelName::new(name).map_err(|_unfit| unknown())?;
        let found = store.channels().find(workspace, &name).await.map_err(ControlError::Store)?;
        found.ok_or_else(unknown)
    }

    /// Configures a channel, by `{"provider": …, "url": "${NAME}", "signing_key": "${NAME}"}`.
    ///
    /// # Errors
    /// When a field is wrong, a secret is not set, its address cannot be posted to, the workspace
    /// does not exist, or the store fails.
    pub async fn channel_set(
        &self,
        workspace: &WorkspaceId,
        name: &str,
        text: &[u8],
        by: &By,
    ) -> Result<ChannelRow, OutboundError> {
        self.control().catalog_store(workspace).await?;
        let mut fields = Fields::read(text, &["provider", "url", "signing_key"])?;
        let name = fields.name(name);
        let provider = fields.provider();
        let (has_url, is_signed) =
            provider.map_or((true, true), |kind| (kind.has_url(), kind.is_signed()));
        let url = fields.secret("url", has_url);
        let signing_key = fields.secret("signing_key", is_signed);
        for (field, secret) in [("url", &url), ("signing_key", &signing_key)] {
            if let Some(secret) = secret {
                self.check_secret(workspace, field, secret, &mut fields).await?;
            }
        }
        let (Some(name), Some(provider)) = (name, provider) else {
            return Err(OutboundError::refused(fields.faults));
        };
        fields.done()?;
        let (updated_at, updated_by) = (SystemTime::now(), by.id.to_string());
        let provider = provider.as_str().to_owned();
        let row = ChannelRow { name, provider, url, signing_key, updated_at, updated_by };
        let (place, who, stored) = (workspace.clone(), by.clone(), row.clone());
        let set = async move |control: Control| {
            let event = AuditEvent::new(kind::CHANNEL_SET, who.clone()).in_workspace(&place);
            let event = event.on("channel", stored.name.to_string());
            let noted = control.note(event.with("provider", stored.provider.clone())).await?;
            let store = control.catalog_store(&place).await?;
            let done = store.channels().set(&place, &stored, &who.id).await;
            done.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(())
        };
        self.control().to_the_end(set).await?;
        self.channel(workspace, row.name.as_str()).await
    }

    /// Removes a channel.
    ///
    /// # Errors
    /// When the name is unknown, or the store fails.
    pub async fn channel_delete(
        &self,
        workspace: &WorkspaceId,
        name: &str,
        by: &By,
    ) -> Result<(), OutboundError> {
        let name = self.channel(workspace, name).await?.name;
        let (place, who) = (workspace.clone(), by.clone());
        let delete = async move |control: Control| {
            let event = AuditEvent::new(kind::CHANNEL_REMOVED, who).in_workspace(&place);
            let noted = control.note(event.on("channel", name.to_string())).await?;
            let store = control.catalog_store(&place).await?;
            if store.channels().delete(&place, &name).await.map_err(ControlError::Store)? {
                noted.done().await;
            }
            Ok(())
        };
        Ok(self.control().to_the_end(delete).await?)
    }

    /// Posts a message of a run to a channel of its workspace.
    ///
    /// # Errors
    /// When the channel does not exist, does not accept the message or cannot be reached in 5 s, or
    /// the audit record cannot be written.
    pub async fn post(
        &self,
        workspace: &WorkspaceId,
        sender: Sender,
        said: Message,
    ) -> Result<Posted, MessageFailure> {
        let deadline = Instant::now() + WITHIN;
        let name = channel_spelling(&said.channel);
        let row = self.channel(workspace, &name).await.map_err(|error| match error {
            OutboundError::NoChannel(name) | OutboundError::NoWebhook(name) => {
                MessageFailure::NoChannel(name)
            }
            OutboundError::Control(error) => error.into(),
        })?;
        let provider = self.provider(workspace, &row).await?;
        let mut bytes = [0; 12];
        getrandom::fill(&mut bytes).map_err(|_none| {
            let why = "the operating system gives no random bytes".to_owned();
            MessageFailure::Unreachable(row.name.to_string(), why)
        })?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let message = Outgoing {
            id: format!("msg_{digits}"),
            workspace: workspace.clone(),
            sender,
            channel: row.name.clone(),
            said,
            at: SystemTime::now(),
        };
        let by = By::new(ActorKind::Run, sender.run.to_text());
        let event = AuditEvent::new(kind::MESSAGE_POSTED, by).in_workspace(workspace);
        let event = event.of_run(sender.run.to_text()).on("channel", row.name.to_string());
        let noted = self.control().note(event.with("message", message.id.clone())).await?;
        let sent = provider.send(&message, deadline).await;
        sent.map_err(|failure| of_post(row.name.to_string(), &failure))?;
        noted.done().await;
        let Outgoing { id: message_id, channel, at: posted_at, .. } = message;
        Ok(Posted { message_id, channel, posted_at })
    }

    async fn provider(
        &self,
        workspace: &WorkspaceId,
        row: &ChannelRow,
    ) -> Result<Box<dyn Provider + '_>, MessageFailure> {
        let secret = async |name: &Option<SecretName>| {
            let missing = || {
                let why = "a secret of its configuration is not set".to_owned();
                MessageFailure::Unauthorized(row.name.to_string(), why)
            };
            let name = name.as_ref().ok_or_else(missing)?;
            self.secret(workspace, name).await?.ok_or_else(missing)
        };
        let poster = &self.shared.poster;
        Ok(match ProviderKind::parse(&row.provider) {
            Some(ProviderKind::Log) => Box::new(Log),
            Some(ProviderKind::Webhook) => {
                let (url, key) = (secret(&row.url).await?, secret(&row.signing_key).await?);
                Box::new(Webhook { poster, url, key })
            }
            Some(ProviderKind::Slack) => Box::new(Slack { poster, url: secret(&row.url).await? }),
            None => {
                let why = "this version of narthex does not know its provider".to_owned();
                return Err(MessageFailure::Unreachable(row.name.to_string(), why));
            }
        })
    }

    /// The newest value of a secret; `None` if it is not set.
    pub(crate) async fn secret(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
    ) -> Result<Option<Secret>, ControlError> {
        let reference = SecretReference::newest(name.clone());
        match self.control().vault()?.open(workspace, &reference).await {
            Ok(opened) => Ok(Some(opened.value)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that a secret is set, and if it is an address, that posts to it are possible.
    pub(crate) async fn check_secret(
        &self,
        workspace: &WorkspaceId,
        field: &str,
        name: &SecretName,
        fields: &mut Fields,
    ) -> Result<(), OutboundError> {
        match self.secret(workspace, name).await? {
            None => {
                let set = narthex("secrets set {}", &[name]).in_workspace(workspace.as_str());
                let message = format!("the secret `{name}` is not set in workspace `{workspace}`");
                fields.fault(field, &message, &format!("set it with `{set}`"));
            }
            Some(value) if field == "url" => {
                if let Err(why) = self.shared.poster.check(&value) {
                    let remedy = "set it to an https address, or ask an operator to allow its host";
                    fields.fault(field, &format!("its value cannot be used: {why}"), remedy);
                }
            }
            Some(_) => {}
        }
        Ok(())
    }
}

fn of_post(channel: String, failure: &PostFailure) -> MessageFailure {
    match failure {
        PostFailure::TooLate => MessageFailure::TooLate(channel),
        PostFailure::Answered(status) if status.is_client_error() && !failure.is_transient() => {
            MessageFailure::Unauthorized(channel, failure.to_string())
        }
        failure => MessageFailure::Unreachable(channel, failure.to_string()),
    }
}

/// The fields of a small document, and all their faults.
pub(crate) struct Fields {
    pub(crate) values: Map<String, Value>,
    pub(crate) faults: Vec<FieldError>,
}

impl Fields {
    pub(crate) fn read(text: &[u8], known: &[&str]) -> Result<Self, OutboundError> {
        let refused = |message: String| {
            let remedy = format!("send an object with some of `{}`", known.join("`, `"));
            OutboundError::refused(vec![FieldError::invalid("", message, remedy)])
        };
        let node = Node::parse(text).map_err(|problem| refused(problem.to_string()))?;
        let values: Map<String, Value> =
            serde_json::from_slice(text).map_err(|error| refused(error.to_string()))?;
        let mut fields = Self { values, faults: Vec::new() };
        for place in node.keys_given_twice() {
            fields.fault(&place.to_string(), "it is given twice", "keep one");
        }
        let names: Vec<String> = fields.values.keys().cloned().collect();
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            let unknown = UnknownKey::new(name, known);
            let shown: String = name.chars().take(100).collect();
            fields.fault(&shown, &unknown.message(), &unknown.remedy());
        }
        Ok(fields)
    }

    pub(crate) fn fault(&mut self, field: &str, message: &str, remedy: &str) {
        self.faults.push(FieldError::invalid(field, message, remedy));
    }

    pub(crate) fn name(&mut self, text: &str) -> Option<ChannelName> {
        match ChannelName::new(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.fault("name", &error.to_string(), "choose another");
                None
            }
        }
    }

    fn provider(&mut self) -> Option<ProviderKind> {
        let found = self.values.get("provider").and_then(Value::as_str);
        let found = found.and_then(ProviderKind::parse);
        if found.is_none() {
            let words = ProviderKind::ALL.map(ProviderKind::as_str).join("`, `");
            self.fault("provider", "there is no such provider", &format!("write one of `{words}`"));
        }
        found
    }

    /// The name of a secret, where one is required, and no other value.
    pub(crate) fn secret(&mut self, field: &str, is_needed: bool) -> Option<SecretName> {
        let remedy = "write the name of a secret, as `${NAME}`";
        match self.values.get(field).filter(|value| !value.is_null()) {
            None if is_needed => self.fault(field, "it is missing", remedy),
            None => {}
            Some(_) if !is_needed => {
                self.fault(field, "a channel of this provider does not use this", "leave it out");
            }
            Some(value) => match SecretReference::from_json(value) {
                Ok(reference) if reference.version.is_none() => return Some(reference.name),
                // The value is not repeated: it may be the secret itself.
                _ => self.fault(field, "it is not the name of a secret", remedy),
            },
        }
        None
    }

    pub(crate) fn done(self) -> Result<(), OutboundError> {
        if self.faults.is_empty() { Ok(()) } else { Err(OutboundError::refused(self.faults)) }
    }
}

impl From<CatalogError> for OutboundError {
    fn from(error: CatalogError) -> Self {
        Self::Control(error.into())
    }
}
