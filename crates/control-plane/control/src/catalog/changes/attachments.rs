//! The single attachments of an agent (X-M36 to X-M44). An attachment is a part of its agent, and
//! each change stores the whole agent.

use std::collections::BTreeSet;

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::{CatalogError, FieldError, FieldWarning};
use narthex_catalog::{Agent, AttachRequest, Attachment, Fault, FaultCode, Parsed, ServerEntry};
use narthex_model::{Alias, CatalogKind, PrincipalId, ServerId, json::shortened};
use narthex_store::CatalogRow;
use serde_json::{Map, Value, json};

use super::{CatalogChange, Checked, Prepared};
use crate::{
    Control, ControlError,
    catalog::{
        checks::{Definition, Stored, Workspace},
        object, tag, unknown,
    },
};

/// One attachment of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogAttachment {
    /// The attachment's alias.
    pub alias: Alias,
    /// Id of the server.
    pub reference: ServerId,
    /// Config values as written: only roles that may write them can read them (D39).
    pub config: Map<String, Value>,
    /// True if a run continues without the server when the server fails; `None` if not set.
    pub optional: Option<bool>,
    /// The filter for the server's tools, as written; `None` if it hides none.
    pub tools: Option<Value>,
}

/// The attachments of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogAttachments {
    /// The attachments, in the order of their aliases.
    pub items: Vec<CatalogAttachment>,
    /// The version tag of the agent.
    pub tag: String,
}

/// A stored attachment.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogAttached {
    /// The attachment after the write.
    pub attachment: CatalogAttachment,
    /// The version tag of the agent after the write.
    pub tag: String,
    /// True if an attachment of this alias existed before.
    pub was_there: bool,
    /// Warnings for people.
    pub warnings: Vec<FieldWarning>,
}

/// State of a human's sign-in to a server that an agent uses (X-E27).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogConnection {
    /// The server's id.
    pub server: ServerId,
    /// The display name of the server.
    pub name: String,
    /// True if the caller is signed in at the server.
    pub is_connected: bool,
}

/// An agent with one attachment, checked and ready to store.
struct Attaching {
    prepared: Prepared,
    attachment: CatalogAttachment,
    before: Option<Attachment>,
    keys: BTreeSet<String>,
}

impl Control {
    /// The attachments of the agent itself, without those of its capabilities.
    ///
    /// # Errors
    /// When the agent does not exist or cannot be read, there is no store or no such workspace, or
    /// the store fails.
    pub async fn attachment_list(
        &self,
        workspace: &narthex_model::WorkspaceId,
        agent: &str,
    ) -> Result<CatalogAttachments, ControlError> {
        let kind = CatalogKind::Agent;
        let store = self.catalog_store(workspace).await?;
        let row = store.catalog(kind).find(workspace, agent).await.map_err(ControlError::Store)?;
        let row = row.ok_or_else(|| unknown(kind, agent))?;
        let read = self.catalog_work(move || {
            let agent = read_agent(&row)?;
            let items = agent.servers.iter().map(|(alias, one)| attachment(alias, one)).collect();
            Ok::<_, CatalogError>(CatalogAttachments { items, tag: tag(&row) })
        });
        Ok(read.await??)
    }

    /// Stores an attachment of an agent, and replaces an attachment of the same alias. `alias` is
    /// the alias in the address, if the address has one.
    ///
    /// # Errors
    /// When the agent does not exist or cannot be read; when the attachment is wrong by itself or
    /// together with the others; when the precondition does not hold for the agent, there is no
    /// store or no such workspace, or the store or the vault fails.
    pub async fn attachment_put(
        &self,
        change: CatalogChange,
        agent: &str,
        alias: Option<&str>,
        text: Vec<u8>,
    ) -> Result<CatalogAttached, ControlError> {
        let (agent, alias) = (agent.to_owned(), alias.map(str::to_owned));
        let put = async move |this: Self| {
            let _together = this.shared.cataloguing.take(&change.workspace).await;
            let stored = this.catalog_stored(&change.workspace).await?;
            let (name, precondition) = (agent.clone(), change.precondition.clone());
            let attaching = this.catalog_work(move || {
                let before = found(&stored, &name)?;
                precondition.hold(CatalogKind::Agent, &name, Some(before))?;
                attach(&stored, before, alias.as_deref(), &text)
            });
            let Attaching { prepared, attachment, before, keys } = attaching.await??;
            let kind = match &before {
                None => kind::AGENT_ATTACHED,
                Some(_) => kind::AGENT_ENV_UPDATED,
            };
            // The event has names of fields, but no values (X-M61).
            let event = event(kind, &change, &agent, attachment.alias.as_str()).changing(keys);
            let written = this.store_prepared(&change, prepared, Some(event)).await?;
            Ok(CatalogAttached {
                attachment,
                tag: written.object.tag,
                was_there: before.is_some(),
                warnings: written.warnings,
            })
        };
        self.to_the_end(put).await
    }

    /// Removes an attachment from an agent.
    ///
    /// # Errors
    /// When the agent or the attachment does not exist, or the agent cannot be read; when the rest
    /// would have a new fault; when the precondition does not hold for the agent, there is no store
    /// or no such workspace, or the store or the vault fails.
    pub async fn attachment_delete(
        &self,
        change: CatalogChange,
        agent: &str,
        alias: &str,
    ) -> Result<(), ControlError> {
        let (agent, alias) = (agent.to_owned(), alias.to_owned());
        let delete = async move |this: Self| {
            let _together = this.shared.cataloguing.take(&change.workspace).await;
            let stored = this.catalog_stored(&change.workspace).await?;
            let (name, gone) = (agent.clone(), alias.clone());
            let precondition = change.precondition.clone();
            let prepared = this.catalog_work(move || {
                let before = found(&stored, &name)?;
                precondition.hold(CatalogKind::Agent, &name, Some(before))?;
                detach(&stored, before, &gone)
            });
            let event = event(kind::AGENT_DETACHED, &change, &agent, &alias);
            this.store_prepared(&change, prepared.await??, Some(event)).await?;
            Ok(())
        };
        self.to_the_end(delete).await
    }

    /// The servers of the agent's runs to which a human signs in (X-E27), also those of its
    /// capabilities. Each server comes once, in the order of ids, with the state of `user`.
    ///
    /// # Errors
    /// When the agent does not exist or cannot be read, there is no store or no such workspace, or
    /// the store or the vault fails.
    pub async fn attachment_connections(
        &self,
        workspace: &narthex_model::WorkspaceId,
        agent: &str,
        user: Option<&PrincipalId>,
    ) -> Result<Vec<CatalogConnection>, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let connected = match user {
            Some(user) => self.connected_servers(workspace, user).await?,
            None => BTreeSet::new(),
        };
        let agent = agent.to_owned();
        let connections = self.catalog_work(move || {
            let agent = read_agent(found(&stored, &agent)?)?;
            let workspace = stored.read();
            let used = workspace.servers_of(&agent).into_iter();
            // For an exchange, the sign-in to narthex counts (C31).
            let connects =
                |entry: &ServerEntry| entry.auth.is_per_user() && entry.auth.exchange().is_none();
            let signed_in = used.filter(|entry| connects(entry));
            let connection = |entry: &ServerEntry| CatalogConnection {
                is_connected: connected.contains(entry.id.as_str()),
                server: entry.id.clone(),
                name: entry.name.clone(),
            };
            Ok::<_, CatalogError>(signed_in.map(connection).collect())
        });
        Ok(connections.await??)
    }
}

fn event(
    kind: &'static str,
    change: &CatalogChange,
    agent: &str,
    alias: &str,
) -> AuditEvent<'static> {
    AuditEvent::new(kind, change.by.clone())
        .in_workspace(&change.workspace)
        .on("agent", agent.to_owned())
        .with("alias", alias)
}

fn found<'s>(stored: &'s Stored, agent: &str) -> Result<&'s CatalogRow, CatalogError> {
    let row = stored.find(CatalogKind::Agent, agent);
    row.ok_or_else(|| unknown(CatalogKind::Agent, agent))
}

fn read_agent(row: &CatalogRow) -> Result<Box<Agent>, CatalogError> {
    let kind = CatalogKind::Agent;
    match Definition::parse(kind, row.document.as_bytes(), Some(&row.id)) {
        Ok((Definition::Agent(agent), _)) => Ok(agent),
        Ok(_) | Err(_) => {
            let errors = object(kind, row).errors;
            Err(CatalogError::Unreadable { kind, id: row.id.clone(), errors })
        }
    }
}

fn attachment(alias: &Alias, attachment: &Attachment) -> CatalogAttachment {
    CatalogAttachment {
        alias: alias.clone(),
        reference: attachment.reference.clone(),
        config: attachment.written(),
        optional: attachment.optional,
        tools: (!attachment.tools.is_open()).then(|| json!(attachment.tools)),
    }
}

fn attach(
    stored: &Stored,
    row: &CatalogRow,
    alias: Option<&str>,
    text: &[u8],
) -> Result<Attaching, CatalogError> {
    let agent = read_agent(row)?;
    let wanted = alias.map(Alias::of_server).transpose().map_err(|error| {
        let remedy = "write to another address";
        CatalogError::Refused(vec![FieldError::invalid("alias", error.to_string(), remedy)])
    })?;
    let parsed = AttachRequest::parse(text, wanted.as_ref());
    let Parsed { value: request, warnings } = parsed.map_err(CatalogError::of)?;
    let mut changed = agent.clone();
    let (alias, attached) = (request.alias.clone(), request.attachment.clone());
    let before = changed.servers.insert(alias.clone(), attached.clone());
    let keys = match &before {
        None => request.attachment.keys().map(str::to_owned).collect(),
        Some(before) => request.attachment.changed_from(before),
    };
    let own = |fault: &Fault| {
        let is_own = fault.alias.as_ref() == Some(&request.alias);
        is_own.then(|| in_words(fault, &agent, &request))
    };
    let mut all: Vec<_> = warnings.iter().map(|warning| FieldWarning::of(warning, "")).collect();
    let workspace = stored.read();
    let mut unwise = checked(&workspace, &agent, &changed, own)?;
    let changed = Definition::Agent(changed);
    let is_own = |one: &FieldWarning| one.field == format!("mcpServers.{alias}.ref");
    unwise.extend(workspace.never_starts(&changed).into_iter().filter(is_own));
    all.extend(unwise.into_iter().map(|one| warned_in_words(one, &request)));
    let prepared = prepared(changed, row, all);
    Ok(Attaching { prepared, attachment: attachment(&alias, &attached), before, keys })
}

fn detach(stored: &Stored, row: &CatalogRow, alias: &str) -> Result<Prepared, CatalogError> {
    let agent = read_agent(row)?;
    let mut changed = agent.clone();
    let gone = Alias::new(alias).ok().and_then(|alias| changed.servers.remove(&alias));
    if gone.is_none() {
        let (agent, alias) = (row.id.clone(), shortened(alias));
        return Err(CatalogError::NotAttached { agent, alias });
    }
    let warnings = checked(&stored.read(), &agent, &changed, |_| None)?;
    Ok(prepared(Definition::Agent(changed), row, warnings))
}

fn prepared(definition: Definition, before: &CatalogRow, warnings: Vec<FieldWarning>) -> Prepared {
    let (id, document) = (definition.id().to_owned(), definition.document());
    Prepared { checked: Checked { id, document, warnings }, before: Some(before.clone()) }
}

/// Refuses faults that the change causes, and faults that `own` finds in the request. Other faults
/// that the agent had before become warnings, so that they do not prevent a change of another
/// attachment.
fn checked(
    workspace: &Workspace,
    before: &Agent,
    after: &Agent,
    own: impl Fn(&Fault) -> Option<String>,
) -> Result<Vec<FieldWarning>, CatalogError> {
    let place = format!("agents.{}", after.name);
    let known = workspace
        .agent_faults(before)
        .map_or_else(|faults| faults.iter().cloned().collect::<Vec<_>>(), |_warnings| Vec::new());
    let faults = match workspace.agent_faults(after) {
        Ok(warnings) => {
            return Ok(warnings.iter().map(|one| FieldWarning::of(one, &place)).collect());
        }
        Err(faults) => faults,
    };
    let (mut refused, mut warnings) = (Vec::new(), Vec::new());
    for fault in faults.iter() {
        let told = FieldError::of(fault, &place);
        match own(fault) {
            Some(field) => refused.push(FieldError { field, ..told }),
            None if known.contains(fault) => warnings.push(FieldWarning {
                field: told.field,
                message: format!("runs are refused until this is corrected: {}", fault.message),
            }),
            None => refused.push(told),
        }
    }
    if refused.is_empty() { Ok(warnings) } else { Err(CatalogError::Refused(refused)) }
}

/// Gives a warning its place in the request, if it concerns the attachment of the request.
fn warned_in_words(warning: FieldWarning, request: &AttachRequest) -> FieldWarning {
    let AttachRequest { alias, reference_member, config_member, .. } = request;
    let inside = warning.field.strip_prefix(&format!("mcpServers.{alias}."));
    let field = match inside.map(|path| (path, path.strip_prefix("config."))) {
        Some((_, Some(key))) => format!("{config_member}.{key}"),
        Some(("ref", None)) => (*reference_member).to_owned(),
        Some((path, None)) => path.to_owned(),
        None => return warning,
    };
    FieldWarning { field, ..warning }
}

/// The place of a fault in the request (X-E123).
fn in_words(fault: &Fault, agent: &Agent, request: &AttachRequest) -> String {
    let AttachRequest { alias, attachment, reference_member, config_member } = request;
    let own = format!("agents.{}.mcpServers.{alias}.", agent.name);
    let inside = fault.path.strip_prefix(&own);
    match (&fault.field, inside) {
        (Some(key), _) => {
            let is_typed = *config_member == "env_json" && attachment.is_secret(key);
            let member = if is_typed { ".ref" } else { "" };
            match inside.and_then(|path| path.strip_prefix("config.")) {
                Some(path) => format!("{config_member}.{path}{member}"),
                // The missing key has no place, so the fault names the place where its value would
                // be.
                None if fault.code == FaultCode::MissingRequiredMcpConfig => {
                    format!("{config_member}.{key}")
                }
                None => fault.path.clone(),
            }
        }
        (None, Some("ref")) => (*reference_member).to_owned(),
        (None, Some(path)) => path.to_owned(),
        (None, None) => fault.path.clone(),
    }
}
