//! Definitions as humans see them, and their decisions on them.

use std::collections::{HashMap, HashSet};

use narthex_audit::kind;
use narthex_control::{By, CatalogError, Control, ControlError, FieldError};
use narthex_model::{CatalogKind, ServerId, WorkspaceId};
use narthex_store::{
    DefinitionHead, DefinitionRow, DefinitionState, Definitions, DefinitionsOf, StatementError,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    DEFINITION_MAX, Definition, Difference, harmless,
    judging::judge,
    reviews::{
        ReviewError, Reviews,
        live::{DefinitionSource, StoredServer},
        server::{STORED_MAX, event},
    },
};

/// A definition, with the facts for a human's decision.
#[derive(Debug, Clone)]
pub struct SeenDefinition {
    /// The stored definition.
    pub head: DefinitionHead,
    /// The reason why it is, or was, under review: an object with `reason`, `renamed_from`, `like`
    /// and `findings`.
    pub why: Value,
    /// Its text, made harmless.
    pub text: String,
    /// The changes since the text that runs have; `None` if there is none, or runs have this one.
    pub difference: Option<Difference>,
}

/// Some definitions of a server.
#[derive(Debug)]
pub struct DefinitionPage {
    /// By kind and name.
    pub items: Vec<SeenDefinition>,
    /// The digest after which the next page begins. `None`: there is no further one.
    pub next: Option<String>,
}

/// The digests of the definitions that a human has seen and decides on: a text that has changed
/// since then is another one (S23).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionChoice {
    digests: Vec<String>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionVerdict {
    /// New runs get it, and callers of a live server get it at once.
    Accept,
    /// Reviews and callers do not get it, and no human is asked about it again.
    Reject,
}

impl Reviews {
    /// The first `limit` definitions of a server after the one of the digest `after`, which is
    /// empty for the beginning. Without a source it is the one that has a server of this name.
    ///
    /// # Errors
    /// When there is no such workspace or server, both sources have one, it is a live one that pins
    /// nothing, or the store fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        (server, source): (&str, Option<DefinitionSource>),
        state: Option<DefinitionState>,
        (after, limit): (&str, u32),
    ) -> Result<DefinitionPage, ReviewError> {
        let server = self.stored_server(workspace, server, source).await?;
        let definitions = self.store()?.definitions(server.of());
        let mut heads = definitions.heads().await.map_err(ControlError::Store)?;
        // Sorted here, since databases differ in how they order texts.
        let key = |one: &DefinitionHead| (one.kind.clone(), one.name.clone(), one.digest.clone());
        heads.sort_by_cached_key(key);
        let begin = heads.iter().position(|head| head.digest == after).map_or(0, |at| at + 1);
        let wanted = heads[begin..].iter().filter(|head| state.is_none_or(|it| it == head.state));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut wanted: Vec<_> = wanted.take(limit.saturating_add(1)).collect();
        let has_more = wanted.len() > limit;
        wanted.truncate(limit);
        let items = seen(&definitions, &wanted, &heads).await.map_err(ControlError::Store)?;
        let next = items.last().map(|last| last.head.digest.clone());
        Ok(DefinitionPage { items, next: next.filter(|_| has_more) })
    }

    /// The definition of a server with this digest; `None` if there is none.
    ///
    /// # Errors
    /// As for [`Reviews::page`].
    pub async fn one(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        source: Option<DefinitionSource>,
        digest: &str,
    ) -> Result<Option<SeenDefinition>, ReviewError> {
        let server = self.stored_server(workspace, server, source).await?;
        let definitions = self.store()?.definitions(server.of());
        let heads = definitions.heads().await.map_err(ControlError::Store)?;
        let wanted: Vec<_> = heads.iter().filter(|head| head.digest == digest).collect();
        let found = seen(&definitions, &wanted, &heads).await.map_err(ControlError::Store)?;
        Ok(found.into_iter().next())
    }

    /// The kind and the name of each definition that a server of the catalog was seen to list, in
    /// any run and in any state.
    ///
    /// # Errors
    /// When there is no store, or it fails.
    pub async fn names(
        &self,
        workspace: &WorkspaceId,
        server: &ServerId,
    ) -> Result<Vec<(String, String)>, ReviewError> {
        let definitions = self.store()?.definitions(DefinitionsOf::Catalog(workspace, server));
        let heads = definitions.heads().await.map_err(ControlError::Store)?;
        Ok(heads.into_iter().map(|head| (head.kind, head.name)).collect())
    }

    /// Decides on definitions of a server, by a JSON document, on all of them or none; returns
    /// their states then. Callers of a live server see the decision when this returns. The caller
    /// must be a human.
    ///
    /// # Errors
    /// As for [`Reviews::page`], and when the document is faulty, it names a definition that is
    /// not there, that has this decision already, or that could not be shown to a human, it cannot
    /// be recorded, or the store fails.
    pub async fn decide(
        &self,
        workspace: &WorkspaceId,
        (server, source): (&str, Option<DefinitionSource>),
        (text, verdict): (&[u8], DefinitionVerdict),
        by: &By,
    ) -> Result<Vec<DefinitionHead>, ReviewError> {
        let server = self.stored_server(workspace, server, source).await?;
        let choice = read(text)?;
        let rows = self.chosen(&server, &choice, verdict).await?;
        let (reviews, workspace, by) = (self.clone(), workspace.clone(), by.clone());
        let deciding = self.control().to_the_end(async move |control: Control| {
            let kind = match verdict {
                DefinitionVerdict::Accept => kind::DEFINITION_ACCEPTED,
                DefinitionVerdict::Reject => kind::DEFINITION_REJECTED,
            };
            let names: Vec<_> = rows.iter().map(|row| row.head.name.clone()).collect();
            let digests: Vec<_> = rows.iter().map(|row| row.head.digest.as_str()).collect();
            let event = event(kind, &workspace, server.of(), by.clone(), &names);
            let noted = control.note(event.with("digests", digests.clone())).await?;
            let store = control.catalog_store(&workspace).await?;
            let definitions = store.definitions(server.of());
            let is_accepted = verdict == DefinitionVerdict::Accept;
            let decided = definitions.decide(is_accepted, &digests, &by.id).await;
            if !decided.map_err(ControlError::Store)? {
                let text = "another human has decided on one of the definitions at the same time";
                let fault = FieldError::invalid("digests", text, "read the definitions again");
                return Err(CatalogError::Refused(vec![fault]).into());
            }
            noted.done().await;
            let heads = definitions.heads().await;
            let holds = reviews.decided_on(&server).await;
            let digests = digests.iter().map(|&one| one.to_owned()).collect::<HashSet<_>>();
            Ok((digests, heads, holds))
        });
        let (digests, heads, holds) = deciding.await?;
        holds?;
        let heads = heads.map_err(ControlError::Store)?;
        Ok(heads.into_iter().filter(|head| digests.contains(&head.digest)).collect())
    }

    /// The chosen definitions, if the decision is possible for all of them.
    async fn chosen(
        &self,
        server: &StoredServer,
        choice: &DefinitionChoice,
        verdict: DefinitionVerdict,
    ) -> Result<Vec<DefinitionRow>, ReviewError> {
        let definitions = self.store()?.definitions(server.of());
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        for (at, digest) in choice.digests.iter().enumerate() {
            let found = definitions.find(digest).await;
            let found = found.map_err(ControlError::Store)?;
            match found.map(|row| (fault(&row, verdict), row)) {
                Some((None, row)) => rows.push(row),
                Some((Some((message, remedy)), _)) => {
                    faults.push(FieldError::invalid(&format!("digests[{at}]"), message, remedy));
                }
                None => {
                    let field = format!("digests[{at}]");
                    let remedy = "write a digest that the list of definitions shows";
                    faults.push(FieldError::invalid(
                        &field,
                        "there is no definition with this digest",
                        remedy,
                    ));
                }
            }
        }
        match faults.is_empty() {
            true => Ok(rows),
            false => Err(ControlError::from(CatalogError::Refused(faults)).into()),
        }
    }

    /// The id of a server, if it is in the catalog.
    pub(crate) async fn catalogued(
        &self,
        workspace: &WorkspaceId,
        server: &str,
    ) -> Result<Option<ServerId>, ReviewError> {
        let store = self.control().catalog_store(workspace).await?;
        let found = store.catalog(CatalogKind::Server).find(workspace, server).await;
        let found = found.map_err(ControlError::Store)?;
        Ok(found.and_then(|row| ServerId::new(&row.id).ok()))
    }
}

/// The reason why a decision on a definition is not possible, and the remedy.
fn fault(row: &DefinitionRow, verdict: DefinitionVerdict) -> Option<(&'static str, &'static str)> {
    let DefinitionRow { head, text, .. } = row;
    match (verdict, head.state) {
        (DefinitionVerdict::Accept, DefinitionState::Pinned | DefinitionState::Accepted) => {
            Some(("runs get this definition already", "leave it out"))
        }
        (DefinitionVerdict::Reject, DefinitionState::Rejected) => {
            Some(("it is rejected already", "leave it out"))
        }
        (DefinitionVerdict::Accept, _)
            if Definition::read(&head.name, text.as_bytes()).is_err() =>
        {
            Some(("it cannot be read completely", "change the definition at its server"))
        }
        _ => None,
    }
}

fn read(text: &[u8]) -> Result<DefinitionChoice, ReviewError> {
    let refused = |message: String| {
        let remedy =
            "write digests that the list of definitions shows, as in {\"digests\": [\"…\"]}";
        let fault = FieldError::invalid("digests", message, remedy);
        ReviewError::from(ControlError::from(CatalogError::Refused(vec![fault])))
    };
    let mut choice: DefinitionChoice =
        serde_json::from_slice(text).map_err(|error| refused(error.to_string()))?;
    let mut seen = HashSet::new();
    choice.digests.retain(|digest| seen.insert(digest.clone()));
    match choice.digests.len() {
        0 => Err(refused("there is no digest".to_owned())),
        STORED_MAX.. => Err(refused("there are too many digests".to_owned())),
        _ => Ok(choice),
    }
}

/// The definitions of these heads, each with its changes. Two statements read all texts.
async fn seen(
    definitions: &Definitions<'_>,
    wanted: &[&DefinitionHead],
    heads: &[DefinitionHead],
) -> Result<Vec<SeenDefinition>, StatementError> {
    let digests: Vec<_> = wanted.iter().map(|head| head.digest.as_str()).collect();
    let mut found = by_digest(definitions.some(&digests).await?);
    // A definition may have gone with its server meanwhile.
    let rows: Vec<_> = digests.iter().filter_map(|digest| found.remove(*digest)).collect();
    let rows: Vec<(DefinitionRow, Value)> = rows
        .into_iter()
        .map(|row| {
            let why = serde_json::from_str(&row.why).unwrap_or_default();
            (row, why)
        })
        .collect();
    let before: Vec<_> = rows.iter().map(|(row, why)| before(&row.head, why, heads)).collect();
    let digests: Vec<_> = before.iter().flatten().map(|head| head.digest.as_str()).collect();
    let older = by_digest(definitions.some(&digests).await?);
    let pairs = rows.into_iter().zip(before);
    let items = pairs.map(|((row, why), before)| {
        let DefinitionRow { head, text, why: _ } = row;
        let before = before.and_then(|before| older.get(&before.digest));
        let difference =
            before.and_then(|before| judge::difference(&head.name, &before.text, &text));
        let text = harmless(&text, DEFINITION_MAX);
        SeenDefinition { head, why, text, difference }
    });
    Ok(items.collect())
}

fn by_digest(rows: Vec<DefinitionRow>) -> HashMap<String, DefinitionRow> {
    rows.into_iter().map(|row| (row.head.digest.clone(), row)).collect()
}

/// The definition that runs have in place of one that they do not have.
fn before<'h>(
    head: &DefinitionHead,
    why: &Value,
    heads: &'h [DefinitionHead],
) -> Option<&'h DefinitionHead> {
    let name = why["renamed_from"].as_str().unwrap_or(&head.name);
    let is_before = |one: &&DefinitionHead| {
        one.state.is_seen() && one.kind == head.kind && one.name == name && !head.state.is_seen()
    };
    let before = heads.iter().filter(is_before);
    before.max_by_key(|one| (one.decided.as_ref().map(|(at, _)| *at), one.first_seen))
}
