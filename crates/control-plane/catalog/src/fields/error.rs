//! Reasons why a change of the catalog is not made.

use std::fmt;

use narthex_model::{
    CatalogKind, ErrorKind, WorkspaceId,
    command::{CommandLine, narthex},
    written::faults,
};
use serde::Serialize;

use crate::{Fault, FaultCode, Faults, Warning};

/// Most faults that a sentence names; the others are in the list alone.
const TOLD_MAX: usize = 10;

/// A failed request to the catalog, which has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// This process stores no objects.
    #[error("this process has no catalog; start the daemon with `{}`", narthex("up", &[]))]
    NoStore,
    /// The workspace does not exist.
    #[error(
        "there is no workspace `{0}`; `{command}` lists yours",
        command = narthex("workspaces list", &[])
    )]
    NoWorkspace(WorkspaceId),
    /// The object does not exist.
    #[error(
        "there is no {kind} `{id}`; `{command}` lists all names",
        command = list_of(*.kind)
    )]
    Unknown {
        /// The kind of the object.
        kind: CatalogKind,
        /// The object's id.
        id: String,
    },
    /// The agent has no attachment of this alias.
    #[error(
        "the agent `{agent}` has no attachment `{alias}` of its own; `{command}` lists its \
         attachments",
        command = narthex("agents attachments {}", &[.agent])
    )]
    NotAttached {
        /// The agent.
        agent: String,
        /// The alias.
        alias: String,
    },
    /// The id is taken.
    #[error("the {kind} `{id}` exists already; change that one, or choose another id")]
    Exists {
        /// The kind of the object.
        kind: CatalogKind,
        /// The object's id.
        id: String,
    },
    /// The stored object is not the version that the caller has read.
    #[error(
        "the {kind} `{id}` has changed since you read it: it was created, changed or removed; read \
         it again"
    )]
    Changed {
        /// The kind of the object.
        kind: CatalogKind,
        /// The object's id.
        id: String,
    },
    /// Other objects refer to the object (O41).
    #[error("the {kind} `{id}` is in use by {}", told_users(.users))]
    InUse {
        /// The kind of the object.
        kind: CatalogKind,
        /// The object's id.
        id: String,
        /// Each place with a reference.
        users: Vec<FieldError>,
    },
    /// The workspace has too many objects of the kind, or would have.
    #[error("a workspace can have {most} objects of the kind {kind}; remove some first")]
    TooMany {
        /// The kind of the objects.
        kind: CatalogKind,
        /// Maximum number of objects.
        most: usize,
    },
    /// Another process changed the objects against which an import was checked.
    #[error("the catalog was changed at the same time, and nothing was stored; try again")]
    ImportOutrun,
    /// The caller may not write servers.
    #[error("`servers`: this needs the role admin in the workspace; leave servers out")]
    ServersDenied,
    /// The object is wrong, or does not fit the other objects.
    #[error("{}", told("nothing was stored", .0))]
    Refused(Vec<FieldError>),
    /// A question is wrong, which would have stored nothing.
    #[error("{}", lines(.0).join("\n"))]
    Question(Vec<FieldError>),
    /// The stored object cannot be used.
    #[error(
        "{}",
        told(&format!("the stored {kind} `{id}` cannot be used, write it again"), .errors)
    )]
    Unreadable {
        /// The kind of the object.
        kind: CatalogKind,
        /// The object's id.
        id: String,
        /// All faults of the object.
        errors: Vec<FieldError>,
    },
}

/// A fault of one field. Shows names and places, never the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The place in the sent object, such as `default_config.api_key`. A place in another object
    /// starts with that object: `capabilities.papers.mcpServers.library.ref`. Empty for the whole
    /// object, which is shown as `body`.
    #[serde(serialize_with = "crate::shown_place")]
    pub field: String,
    /// The kind of the fault, for programs.
    pub code: FieldCode,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

/// A notice for a person. A warning stops nothing, and never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldWarning {
    /// The place, as in [`FieldError::field`].
    #[serde(serialize_with = "crate::shown_place")]
    pub field: String,
    /// The notice and its remedy.
    pub message: String,
}

/// The kind of a fault: a word with `_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FieldCode {
    /// A code of the configuration's faults.
    Fault(FaultCode),
    /// A code of the catalog's own: `in_use`.
    Own(&'static str),
}

impl CatalogError {
    /// The error for the faults of a text.
    pub fn of(faults: Faults) -> Self {
        Self::Refused(faults.iter().map(|fault| FieldError::of(fault, "")).collect())
    }

    /// The same faults, for a request that only asks.
    #[must_use]
    pub fn of_question(self) -> Self {
        match self {
            Self::Refused(faults) => Self::Question(faults),
            other => other,
        }
    }

    /// The kind of the failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoWorkspace(_) | Self::Unknown { .. } | Self::NotAttached { .. } => {
                ErrorKind::NotFound
            }
            Self::NoStore
            | Self::Exists { .. }
            | Self::Changed { .. }
            | Self::InUse { .. }
            | Self::ImportOutrun
            | Self::Unreadable { .. } => ErrorKind::Conflict,
            Self::ServersDenied => ErrorKind::Denied,
            Self::TooMany { .. } => ErrorKind::Exhausted,
            Self::Refused(_) | Self::Question(_) => ErrorKind::Invalid,
        }
    }

    /// All faults, field by field.
    #[must_use]
    pub fn fields(&self) -> &[FieldError] {
        match self {
            Self::InUse { users: fields, .. }
            | Self::Refused(fields)
            | Self::Question(fields)
            | Self::Unreadable { errors: fields, .. } => fields,
            Self::NoStore
            | Self::NoWorkspace(_)
            | Self::Unknown { .. }
            | Self::NotAttached { .. }
            | Self::Exists { .. }
            | Self::TooMany { .. }
            | Self::ImportOutrun
            | Self::ServersDenied
            | Self::Changed { .. } => &[],
        }
    }
}

impl FieldCode {
    /// True if the fault does not depend on other objects of the catalog. If `is_named`, all names
    /// are known, and references to missing objects count as such faults.
    pub fn is_of_itself(self, is_named: bool) -> bool {
        match self {
            Self::Fault(code) => code.is_of_itself() || is_named && code.is_of_a_name(),
            Self::Own(_) => false,
        }
    }
}

impl FieldError {
    /// A fault of a field of the request itself.
    #[must_use]
    pub fn invalid(field: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(field, FieldCode::Fault(FaultCode::ValueInvalid), message, remedy)
    }

    pub fn new(
        field: &str,
        code: FieldCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { field: field.to_owned(), code, message: message.into(), remedy: remedy.into() }
    }

    /// A fault of the object at the place `own`. The prefix `own` is left out for a place inside
    /// the object.
    pub fn of(fault: &Fault, own: &str) -> Self {
        let field = inside(&fault.path, own);
        Self::new(field, FieldCode::Fault(fault.code), &fault.message, &fault.remedy)
    }
}

impl FieldWarning {
    /// A warning about an object at the place `own`.
    pub fn of(warning: &Warning, own: &str) -> Self {
        let field = inside(&warning.path, own).to_owned();
        Self { field, message: warning.message.clone() }
    }
}

/// A place without the prefix `own`, if it is inside that object.
fn inside<'p>(path: &'p str, own: &str) -> &'p str {
    let Some(rest) = path.strip_prefix(own) else { return path };
    match rest.chars().next() {
        Some('.') => &rest[1..],
        Some('[') | None => rest,
        // A place in another object, whose name only begins the same.
        Some(_) => path,
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "`{}`: ", self.field)?;
        }
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

/// The command that lists the objects of a kind.
fn list_of(kind: CatalogKind) -> CommandLine {
    match kind {
        CatalogKind::Server => narthex("servers list", &[]),
        CatalogKind::Capability => narthex("capabilities list", &[]),
        CatalogKind::Agent => narthex("agents list", &[]),
    }
}

/// The places that refer to an object, and once the remedy.
fn told_users(users: &[FieldError]) -> String {
    let mut told: Vec<_> =
        users.iter().take(TOLD_MAX).map(|user| format!("`{}`", user.field)).collect();
    if users.len() > TOLD_MAX {
        told.push(format!("{} more", users.len() - TOLD_MAX));
    }
    let remedy = users.first().map(|user| user.remedy.as_str()).unwrap_or_default();
    format!("{}; {remedy}", told.join(", "))
}

fn told(heading: &str, errors: &[FieldError]) -> String {
    faults(heading, &lines(errors))
}

/// A line for each fault, up to a number of them.
fn lines(errors: &[FieldError]) -> Vec<String> {
    let mut told: Vec<_> = errors.iter().take(TOLD_MAX).map(ToString::to_string).collect();
    if errors.len() > TOLD_MAX {
        told.push(format!("and {} more", errors.len() - TOLD_MAX));
    }
    told
}
