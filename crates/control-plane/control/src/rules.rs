//! The rules of workspaces (D13): checked and stored here, evaluated by policy at each call.

mod check;

use std::{sync::Arc, time::UNIX_EPOCH};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_cedar::{RuleFault, RuleFaults, RuleName, RuleSet};
use narthex_model::{ErrorKind, ToolScopes, WorkspaceId, json::Node};
use narthex_policy::WorkspaceRules;
use narthex_store::{RulesHead, RulesRow, Store};

pub use self::check::RulesChecked;
use crate::{By, CatalogError, Control, ControlError, FieldError, Precondition};

/// Reasons why rules stay unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The stored rules are not the ones that the caller has read.
    #[error("the rules were changed since you read them; read them again, then retry")]
    Changed,
}

impl RulesError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Changed => ErrorKind::Conflict,
        }
    }
}

/// The rules of a workspace, as written.
#[derive(Debug, Clone)]
pub struct WrittenRules {
    /// The stored row; `None` if there never was one.
    pub row: Option<RulesRow>,
    /// The ids of the rules, in the order of the text; empty if they do not compile.
    pub ids: Vec<String>,
    /// The reasons why the rules do not compile, such as rules of another version: all calls are
    /// refused then.
    pub faults: Vec<RuleFault>,
    /// The names that the rules use; empty if they do not compile.
    pub names: Vec<RuleName>,
    /// The tool scopes that the rules require by `@approval`; empty if they do not compile.
    pub scopes: ToolScopes,
    /// The version tag; `None` if there never were rules.
    pub tag: Option<String>,
}

impl WrittenRules {
    fn new(row: Option<RulesRow>) -> Self {
        let compiled = RuleSet::compile(row.as_ref().map_or("", |row| &row.document));
        let (set, faults) = match compiled {
            Ok(set) => (Some(set), Vec::new()),
            Err(RuleFaults(faults)) => (None, faults),
        };
        let ids = set.iter().flat_map(RuleSet::ids).map(str::to_owned).collect();
        let names = set.as_ref().map_or_else(Vec::new, |set| set.names().to_vec());
        let scopes = set.as_ref().map(RuleSet::scopes).unwrap_or_default();
        let tag = row.as_ref().map(|row| tag(&row.head));
        Self { row, ids, faults, names, scopes, tag }
    }

    /// The text; empty if there are no rules.
    #[must_use]
    pub fn text(&self) -> &str {
        self.row.as_ref().map_or("", |row| &row.document)
    }
}

impl Control {
    /// The rules of a workspace, for its runs; the value always has the current ones.
    #[must_use]
    pub fn rules_of(&self, workspace: &WorkspaceId) -> Arc<WorkspaceRules> {
        self.shared.rules.of(workspace)
    }

    /// The rules of a workspace, as written.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn rules(&self, workspace: &WorkspaceId) -> Result<WrittenRules, ControlError> {
        let store = self.catalog_store(workspace).await?;
        Ok(WrittenRules::new(found(store, workspace).await?))
    }

    /// Replaces the rules by those in a document `{"rules": "…"}`. They apply to the next call at
    /// this daemon, also in active runs, and at others within [`crate::POLL`].
    ///
    /// # Errors
    /// When the rules are wrong: all faults at once; when the precondition does not hold; when
    /// there is no such workspace or no store, or the store fails.
    pub async fn rules_write(
        &self,
        workspace: &WorkspaceId,
        text: &[u8],
        precondition: Precondition,
        by: By,
    ) -> Result<WrittenRules, ControlError> {
        let mut fields = Fields::read(text, &["rules"])?;
        let rules = rules_of(&mut fields);
        fields.done()?;
        let set = RuleSet::compile(&rules).map_err(|faults| refused(&faults))?;
        self.put(workspace, (rules, set), precondition, by).await
    }

    /// Removes all rules of a workspace.
    ///
    /// # Errors
    /// When the precondition does not hold; when there is no such workspace or no store, or the
    /// store fails.
    pub async fn rules_clear(
        &self,
        workspace: &WorkspaceId,
        precondition: Precondition,
        by: By,
    ) -> Result<(), ControlError> {
        let none = RuleSet::compile("").map_err(|faults| refused(&faults))?;
        self.put(workspace, (String::new(), none), precondition, by).await.map(drop)
    }

    async fn put(
        &self,
        workspace: &WorkspaceId,
        (text, set): (String, RuleSet),
        precondition: Precondition,
        by: By,
    ) -> Result<WrittenRules, ControlError> {
        let workspace = workspace.clone();
        let write = async move |this: Self| {
            let store = this.catalog_store(&workspace).await?;
            let mut known = this.shared.rules.changing().await;
            let before = found(store, &workspace).await?;
            let tags = before.as_ref().map(|row| (row.document.is_empty(), tag(&row.head)));
            let there = tags.as_ref().filter(|(is_empty, _)| !is_empty);
            let holds = match &precondition {
                Precondition::None => true,
                Precondition::New => there.is_none(),
                Precondition::Exists => there.is_some(),
                Precondition::Tags(wanted) => tags.is_some_and(|(_, tag)| wanted.contains(&tag)),
            };
            if !holds {
                return Err(RulesError::Changed.into());
            }
            if before.as_ref().map_or("", |row| &row.document) == text {
                // Another daemon may have written these rules, and this daemon may still use older
                // ones.
                this.shared.rules.of(&workspace).set(set.boxed());
                return Ok(WrittenRules::new(before));
            }
            let event = AuditEvent::new(kind::RULES_UPDATED, by.clone()).in_workspace(&workspace);
            let event = event.on("workspace", workspace.to_string()).with("rules", set.len());
            let noted = this.note(event.with("text_sha256", digest(&text))).await?;
            let head = before.as_ref().map(|row| row.head);
            let is_done = store.rules().write(&workspace, head, &text, &by.id).await;
            if !is_done.map_err(ControlError::Store)? {
                return Err(RulesError::Changed.into());
            }
            // Applied before the answer: after it, a client must not get a call through that a new
            // rule forbids.
            this.shared.rules.of(&workspace).set(set.boxed());
            let now = found(store, &workspace).await?;
            known.extend(now.as_ref().map(|row| (workspace.clone(), row.head)));
            noted.done().await;
            Ok(WrittenRules::new(now))
        };
        self.to_the_end(write).await
    }
}

async fn found(store: &Store, workspace: &WorkspaceId) -> Result<Option<RulesRow>, ControlError> {
    store.rules().find(workspace).await.map_err(ControlError::Store)
}

/// The text of the rules in a document. It may be as long as rules may be.
fn rules_of(fields: &mut Fields) -> String {
    match fields.take("rules") {
        Some(Node::Text(text)) => return text,
        Some(other) => fields.fault("rules", format!("it is {}", other.found()), "write a text"),
        None => fields.fault("rules", "it is missing", "write the rules as one text"),
    }
    String::new()
}

fn refused(faults: &RuleFaults) -> CatalogError {
    let field = |fault: &RuleFault| {
        let place = fault.place();
        let message = match (fault.line, place.is_empty()) {
            (_, true) => fault.message.clone(),
            (Some(line), false) if fault.rule.is_some() => {
                format!("line {line}, {place}: {}", fault.message)
            }
            _ => format!("{place}: {}", fault.message),
        };
        FieldError::invalid("rules", message, fault.remedy.clone())
    };
    CatalogError::Refused(faults.0.iter().map(field).collect())
}

fn tag(head: &RulesHead) -> String {
    let since = head.updated_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{}", since.as_millis(), head.revision)
}

fn digest(text: &str) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(text))
}
