//! Faults of an object or a run: a place, a code for programs, a message and a remedy.

use std::{collections::BTreeSet, fmt};

use narthex_model::{Alias, ErrorKind, SecretName, ServerId};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::surroundings::Surroundings;

/// The kind of a fault, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    /// The text is no JSON, or too long.
    TextInvalid,
    /// A key that occurs twice in one object.
    DuplicateKey,
    /// An unknown key (O35).
    UnknownField,
    /// A field that must be there.
    FieldMissing,
    /// A value of the wrong type.
    TypeWrong,
    /// A name, URL, pattern or other text that breaks its rule.
    ValueInvalid,
    /// Two fields that exclude each other.
    FieldsExclude,
    /// A placeholder that is not closed, or has an unknown source or key (O56).
    PlaceholderInvalid,
    /// A placeholder with a source that is not allowed in this place (O12, O67, O69).
    PlaceholderNotAllowed,
    /// A variable of the environment that is not on the allowlist (O68).
    EnvNotAllowed,
    /// A secret that is part of a longer text, or in a place where none may be (X-M33, X-M34).
    SecretMisplaced,
    /// A secret that does not exist or was cleared (X-M39, X-M42).
    SecretNotSet,
    /// A server that is described where only a reference is allowed (O48).
    InlineServer,
    /// A reference to a server that is not in the catalog (O61).
    McpRefResolutionFailed,
    /// A capability that does not exist (O45).
    CapabilityMissing,
    /// One alias with two servers (O46).
    AliasConflict,
    /// Two capabilities with different values for one key, which the agent does not override.
    ValueConflict,
    /// A key that the server does not declare (X-E21).
    KeyUndeclared,
    /// A key that only the platform may set (O28).
    KeyInternal,
    /// Two keys, or a key and the server's authentication, that set one header or variable (O87).
    CarrierConflict,
    /// A header that may not be set, or a value that cannot be sent (O88).
    CarrierInvalid,
    /// Parameters that do not fit the agent's schema (O85).
    ParamsInvalid,
    /// A required value that is missing, was removed or is unresolved (O16).
    MissingRequiredMcpConfig,
    /// A server with a sign-in per person, on an agent that acts for no single person (X-M15).
    OauthNotAllowed,
    /// An agent that is disabled (O51).
    AgentInactive,
    /// A text longer than a run may have.
    LimitExceeded,
}

impl FaultCode {
    /// The spelling of the code in JSON.
    ///
    /// # Panics
    /// Never: the JSON of a variant without fields is a text.
    #[must_use]
    pub fn word(self) -> String {
        json!(self).as_str().expect("a variant without fields is a text").to_owned()
    }

    /// True if the fault does not depend on other objects of the catalog.
    #[must_use]
    pub fn is_of_itself(self) -> bool {
        [Self::EnvNotAllowed, Self::SecretMisplaced, Self::SecretNotSet].contains(&self)
    }

    /// True if the fault is a reference to an object that does not exist.
    #[must_use]
    pub fn is_of_a_name(self) -> bool {
        [Self::McpRefResolutionFailed, Self::CapabilityMissing].contains(&self)
    }
}

/// One fault. Shows names and places, never the value of a scope, a variable or a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The place in the text, such as `config_schema.limits.type`. In a whole run the object is in
    /// front: `agents.reader.mcpServers.library.config.api_key`. Empty for the whole text, which is
    /// shown as `body`.
    #[serde(serialize_with = "shown_place")]
    pub path: String,
    /// The kind of the fault.
    pub code: FaultCode,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub remedy: String,
    /// The server of the agent that the fault concerns.
    #[serde(rename = "server_name", skip_serializing_if = "Option::is_none")]
    pub alias: Option<Alias>,
    /// The config key that the fault concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The server whose reference failed.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<ServerId>,
    /// The secret that is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretName>,
    /// The variable that may not be used.
    #[serde(skip)]
    pub(crate) variable: Option<String>,
}

impl Fault {
    pub(crate) fn new(
        path: impl fmt::Display,
        code: FaultCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_string(),
            code,
            message: message.into(),
            remedy: remedy.into(),
            alias: None,
            field: None,
            reference: None,
            secret: None,
            variable: None,
        }
    }

    /// Sets the server of the agent that the fault concerns, and the key, if it concerns one.
    pub(crate) fn of(mut self, alias: &Alias, field: Option<&str>) -> Self {
        self.alias = Some(alias.clone());
        self.field = field.map(str::to_owned);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

/// Serializes the place of a fault: `body` for the whole document, so that it is never empty.
///
/// # Errors
/// The errors of the serializer.
pub fn shown_place<S: Serializer>(place: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if place.is_empty() { "body" } else { place })
}

/// All faults of a text, an agent or a run: never empty, in a stable order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// `None` if there are none.
    pub(crate) fn new(faults: Vec<Fault>) -> Option<Self> {
        (!faults.is_empty()).then_some(Self(faults))
    }

    /// Collects faults under one remedy that allows all refused variables: the steps for one
    /// variable would undo those for another.
    pub(crate) fn of_all(mut faults: Vec<Fault>, surroundings: &Surroundings<'_>) -> Option<Self> {
        let variables: BTreeSet<String> =
            faults.iter().filter_map(|fault| fault.variable.clone()).collect();
        let names: Vec<&str> = variables.iter().map(String::as_str).collect();
        for fault in faults.iter_mut().filter(|fault| fault.variable.is_some()) {
            fault.remedy = surroundings.allowing(&names);
        }
        Self::new(faults)
    }

    /// All faults, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }

    /// The kind of failure: always the caller's input.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    /// The first fault and all faults, as the members of a refusal.
    #[must_use]
    pub fn rejection(&self) -> Rejection {
        let Some(first) = self.0.first() else { return Rejection::default() };
        let missing_fields = (first.code == FaultCode::MissingRequiredMcpConfig).then(|| {
            let is_alike = |fault: &&Fault| fault.code == first.code && fault.alias == first.alias;
            let fields = self.0.iter().filter(is_alike).filter_map(|fault| fault.field.clone());
            let mut fields: Vec<_> = fields.collect();
            fields.dedup();
            fields
        });
        Rejection {
            error: first.message.clone(),
            code: Some(first.code.word()),
            server_name: first.alias.as_ref().map(ToString::to_string),
            reference: first.reference.clone(),
            missing_fields,
            errors: self.0.clone(),
            ..Rejection::default()
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// The members of the refusal of a run, beside its text: the first fault, for readers that
/// understand only one error (O61), and all faults. A member without a value is left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rejection {
    /// The first fault.
    pub error: String,
    /// The code of the first fault, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The faulty server, by the name of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The server whose reference failed.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<ServerId>,
    /// The field that the caller may not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'static str>,
    /// The required values of the faulty server that are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_fields: Option<Vec<String>>,
    /// Details for programs: the missing scopes and how to ask for them, or the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// All faults of the configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
}

/// A notice for a person. A warning stops nothing, and never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The place, as in [`Fault::path`].
    pub path: String,
    /// The problem and its remedy.
    pub message: String,
}
