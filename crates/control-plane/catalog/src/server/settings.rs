//! Limits of a server, and the items that callers may see: as in the entries of files.

use std::{num::NonZeroU64, time::Duration};

use narthex_model::{
    Exposed, NameRule, NotificationName, OutputLimits, TrafficLimits, UriRule, json::Node,
};
use serde::Serialize;

use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::word,
};

/// Limits, and the items that callers may see.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSettings {
    /// Time limit of one call in milliseconds: 1 to 600000 (E86).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Longest duration of a call whose progress restarts its time limit, in milliseconds: 1 to
    /// 3600000. `None` if progress extends nothing (D30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_extends: Option<u64>,
    /// Time limit of mounting without downloads, in milliseconds: 1 to 600000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_timeout_ms: Option<u64>,
    /// True if narthex reconnects a server over HTTP that was merely unreachable. `None` for true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_recover: Option<bool>,
    /// Maximum number of tokens in a result, by estimate (D23).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<NonZeroU64>,
    /// Maximum number of bytes of text in a result (D23).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<NonZeroU64>,
    /// Limits for its traffic (O100). They are not frozen with a run.
    #[serde(skip_serializing_if = "TrafficLimits::is_none")]
    pub limits: TrafficLimits,
    /// Filter for the tools that callers see.
    #[serde(skip_serializing_if = "NameRules::is_open")]
    pub tools: NameRules,
    /// Filter for the resources that callers see.
    #[serde(skip_serializing_if = "NameRules::is_open")]
    pub resources: NameRules,
    /// Filter for the prompts that callers see.
    #[serde(skip_serializing_if = "NameRules::is_open")]
    pub prompts: NameRules,
    /// Notifications outside `notifications/` that clients may send, by their exact names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationName>,
    /// The sharing of the started server among runs; `None` for the default of its shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The treatment of a flagged definition that is the first of its name; `None` puts it under
    /// review.
    #[serde(rename = "on_flagged", skip_serializing_if = "Option::is_none")]
    pub on_flagged: Option<OnFlagged>,
    /// True if the server is disabled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

/// The sharing of the connection to a server, and of its process (D12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Not shared: each run has its own server.
    Run,
    /// Shared by runs with the same configuration and credentials.
    Shared,
}

/// The treatment of a definition that was flagged from the start (S22).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFlagged {
    /// The definition is under review until a human has accepted it.
    Quarantine,
    /// Runs get the definition, and humans see the findings.
    Warn,
}

/// The visible names, as patterns: the written form of a [`NameRule`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NameRules {
    /// Only these names, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Names that are never visible.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// The longest time that a call may have, in milliseconds (E86).
const TIMEOUT_MAX_MS: u64 = 600_000;

/// The longest time of a call whose progress extends it, and the default.
const EXTENDS_MAX_MS: u64 = 3_600_000;
const EXTENDS_USUAL_MS: u64 = 600_000;

impl NameRules {
    /// True if all names are visible.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    pub(crate) fn rule(&self) -> NameRule {
        NameRule::new(self.allow.as_deref(), &self.deny)
    }

    /// These rules for URIs.
    fn uri_rule(&self) -> UriRule {
        UriRule::new(self.allow.as_deref(), &self.deny)
    }
}

impl ServerSettings {
    pub(crate) fn exposed(&self) -> Exposed {
        Exposed {
            tools: self.tools.rule(),
            resources: self.resources.uri_rule(),
            prompts: self.prompts.rule(),
        }
    }

    pub(crate) fn output(&self) -> OutputLimits {
        OutputLimits { tokens: self.max_output_tokens, bytes: self.max_output_bytes }
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }

    pub(crate) fn progress_extends(&self) -> Option<Duration> {
        self.progress_extends.map(Duration::from_millis)
    }

    pub(crate) fn mount_timeout(&self) -> Option<Duration> {
        self.mount_timeout_ms.map(Duration::from_millis)
    }
}

pub(super) fn read(reader: &mut Reader, object: &Object<'_>) -> ServerSettings {
    ServerSettings {
        timeout_ms: timeout(reader, object, "timeoutMs"),
        progress_extends: extends(reader, object, "progressExtends"),
        mount_timeout_ms: timeout(reader, object, "mountTimeoutMs"),
        auto_recover: reader.flag(object, "autoRecover"),
        max_output_tokens: reader.amount(object, "maxOutputTokens").and_then(NonZeroU64::new),
        max_output_bytes: reader.amount(object, "maxOutputBytes").and_then(NonZeroU64::new),
        limits: reader.traffic(object, "limits"),
        tools: rules(reader, object, "tools"),
        resources: rules(reader, object, "resources"),
        prompts: rules(reader, object, "prompts"),
        notifications: notifications(reader, object),
        isolation: word(
            reader,
            object,
            "isolation",
            &[("run", Isolation::Run), ("shared", Isolation::Shared)],
        ),
        on_flagged: word(
            reader,
            object,
            "on_flagged",
            &[("quarantine", OnFlagged::Quarantine), ("warn", OnFlagged::Warn)],
        ),
        disabled: reader.flag(object, "disabled").unwrap_or(false),
    }
}

fn notifications(reader: &mut Reader, object: &Object<'_>) -> Vec<NotificationName> {
    let nodes = reader.list(object, "notifications").unwrap_or_default();
    let mut names = Vec::with_capacity(nodes.len());
    for (at, node) in nodes {
        let Some(text) = reader.as_text(node, &at) else { continue };
        names.extend(reader.name(&at, text, NotificationName::new));
    }
    names
}

fn timeout(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<u64> {
    within(reader, object, key, TIMEOUT_MAX_MS)
}

fn within(reader: &mut Reader, object: &Object<'_>, key: &str, most: u64) -> Option<u64> {
    let amount = reader.amount(object, key)?;
    if amount > most {
        let message = format!("the time is longer than {most} ms");
        let at = object.at.key(key);
        reader.fault(&at, FaultCode::ValueInvalid, message, "shorten it");
    }
    Some(amount)
}

/// A time in milliseconds; `true` means 10 minutes, `false` none.
fn extends(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<u64> {
    match object.get(key) {
        Some(Node::Bool(is_set)) => is_set.then_some(EXTENDS_USUAL_MS),
        _ => within(reader, object, key, EXTENDS_MAX_MS),
    }
}

/// Reads `{"allow": […], "deny": […]}`, or a list of allowed names.
pub(crate) fn rules(reader: &mut Reader, object: &Object<'_>, key: &str) -> NameRules {
    match object.get(key) {
        None => NameRules::default(),
        Some(Node::List(_)) => {
            NameRules { allow: Some(reader.texts(object, key)), deny: Vec::new() }
        }
        Some(_) => {
            let Some(inner) = reader.object(object, key) else { return NameRules::default() };
            reader.only(&inner, &["allow", "deny"]);
            let allow = inner.get("allow").is_some();
            NameRules {
                allow: allow.then(|| reader.texts(&inner, "allow")),
                deny: reader.texts(&inner, "deny"),
            }
        }
    }
}
