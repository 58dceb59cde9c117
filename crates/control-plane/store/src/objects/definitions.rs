//! Definitions of tools, prompts, templates, resources and instructions that servers gave to runs.
//! The servers are those of the catalog, and those of live configurations whose entries pin
//! definitions.

pub(crate) mod statements;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use narthex_model::{Alias, RunId, ServerId, WorkspaceId};

use self::statements::{CATALOG, LIVE, Statements};
use super::{ms, now_ms, optional_time, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// After how long it is written down again that a definition is still there.
const SEEN_AGAIN: Duration = Duration::from_secs(60 * 60);

/// Most texts of one name that wait for a human: a server that sends another text each time must
/// not fill the store.
const WAITING_MAX: i64 = 20;
/// Most unwanted texts that are returned at once.
const UNWANTED_MAX: i64 = 500;

/// The server of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionsOf<'a> {
    /// A server of a workspace's catalog.
    Catalog(&'a WorkspaceId, &'a ServerId),
    /// A server of a live configuration: the place of its entry, and its alias.
    Live(&'a str, &'a Alias),
}

impl<'a> DefinitionsOf<'a> {
    fn statements(self) -> &'static Statements {
        match self {
            Self::Catalog(..) => &CATALOG,
            Self::Live(..) => &LIVE,
        }
    }

    fn place(self) -> [Value<'a>; 2] {
        match self {
            Self::Catalog(workspace, server) => {
                [Value::Text(workspace.as_str()), Value::Text(server.as_str())]
            }
            Self::Live(place, alias) => [Value::Text(place), Value::Text(alias.as_str())],
        }
    }
}

/// The review status of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionState {
    /// The first definition of its name, without a reason for a review.
    Pinned,
    /// Under review: no run gets it before a human accepts it.
    Quarantined,
    /// A human has accepted it.
    Accepted,
    /// A human has rejected it.
    Rejected,
}

impl DefinitionState {
    /// All states.
    pub const ALL: [Self; 4] = narthex_model::every![Pinned, Quarantined, Accepted, Rejected];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Quarantined => "quarantined",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }

    /// True if runs get a definition with this status.
    #[must_use]
    pub fn is_seen(self) -> bool {
        matches!(self, Self::Pinned | Self::Accepted)
    }
}

/// A definition without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionHead {
    /// Digest of the definition's text, in hexadecimal.
    pub digest: String,
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub kind: String,
    /// The name of the tool, prompt, resource or template.
    pub name: String,
    pub state: DefinitionState,
    /// The run that first saw the definition.
    pub run: String,
    pub first_seen: SystemTime,
    /// Time when the definition was last seen, to the hour.
    pub last_seen: SystemTime,
    /// The time of the last decision, and the human who made it.
    pub decided: Option<(SystemTime, String)>,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionRow {
    pub head: DefinitionHead,
    /// The server's text.
    pub text: String,
    /// The reasons for the review, as JSON.
    pub why: String,
}

/// A text of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDefinition {
    pub kind: String,
    pub name: String,
    pub text: String,
}

/// A definition that is not stored yet.
#[derive(Debug, Clone)]
pub struct NewDefinition {
    pub digest: String,
    pub kind: &'static str,
    pub name: String,
    /// True if no run gets the definition before a human accepts it.
    pub is_quarantined: bool,
    pub text: String,
    pub why: String,
    /// The reasons for a review if another text of its name was pinned meanwhile.
    pub why_late: String,
}

/// Access to the definitions of one server.
#[derive(Debug, Clone, Copy)]
pub struct Definitions<'a> {
    database: &'a Database,
    of: DefinitionsOf<'a>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(database: &'a Database, of: DefinitionsOf<'a>) -> Self {
        Self { database, of }
    }

    /// All definitions without their texts, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn heads(&self) -> Result<Vec<DefinitionHead>, StatementError> {
        let rows = self.database.read(self.of.statements().heads, &self.of.place()).await?;
        rows.iter().map(head).collect()
    }

    /// The texts that runs get, the latest decision first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn texts(&self) -> Result<Vec<KnownDefinition>, StatementError> {
        let rows = self.database.read(self.of.statements().texts, &self.of.place()).await?;
        rows.iter().map(known).collect()
    }

    /// The texts that no run gets, at most 500. Rejected ones come first, the latest decision in
    /// front; those under review follow.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn unwanted(&self) -> Result<Vec<KnownDefinition>, StatementError> {
        let values = [&self.of.place()[..], &[Value::Integer(UNWANTED_MAX)]].concat();
        let rows = self.database.read(self.of.statements().unwanted, &values).await?;
        rows.iter().map(known).collect()
    }

    /// The definition of a digest, if it is stored.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, digest: &str) -> Result<Option<DefinitionRow>, StatementError> {
        let values = [&self.of.place()[..], &[Value::Text(digest)]].concat();
        let rows = self.database.read(self.of.statements().find, &values).await?;
        rows.first().map(whole).transpose()
    }

    /// The definitions of these digests that are stored, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn some(&self, digests: &[&str]) -> Result<Vec<DefinitionRow>, StatementError> {
        if digests.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = format!(",{},", digests.join(","));
        let values = [&self.of.place()[..], &[Value::Text(&wanted)]].concat();
        let rows = self.database.read(self.of.statements().some, &values).await?;
        rows.iter().map(whole).collect()
    }

    /// The tools of the other servers of the workspace or place, as pairs of server and
    /// tool. Rejected ones are left out.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn other_tools(&self) -> Result<Vec<(String, String)>, StatementError> {
        let rows = self.database.read(self.of.statements().other_tools, &self.of.place()).await?;
        rows.iter().map(|row| Ok((row.text("server")?, row.text("name")?))).collect()
    }

    /// Stores new definitions that a run has seen, and returns the status of all definitions of the
    /// server. A definition to be pinned goes under review if its name has another text by now,
    /// also a rejected one. At most the newest 20 definitions under review of one name are stored.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such server, or when a statement fails.
    pub async fn add(
        &self,
        run: RunId,
        new: &[NewDefinition],
    ) -> Result<Vec<DefinitionHead>, StatementError> {
        let (run, now) = (run.to_text(), now_ms());
        let mut steps = Vec::new();
        for one in new {
            let step = |state: DefinitionState, why| {
                let own = [
                    Value::Text(&one.digest),
                    Value::Text(one.kind),
                    Value::Text(&one.name),
                    Value::Text(state.as_str()),
                    Value::Text(&one.text),
                    Value::Text(why),
                    Value::Text(&run),
                    Value::Integer(now),
                ];
                Step::new(self.of.statements().add, [&self.of.place()[..], &own].concat())
            };
            if !one.is_quarantined {
                steps.push(step(DefinitionState::Pinned, &one.why));
                // Adds nothing if the step before has added the definition, or it existed.
                steps.push(step(DefinitionState::Quarantined, &one.why_late));
            } else {
                steps.push(step(DefinitionState::Quarantined, &one.why));
            }
        }
        if steps.is_empty() {
            return self.heads().await;
        }
        let names = new.iter().map(|one| (one.kind, &*one.name)).collect::<BTreeSet<_>>();
        for (kind, name) in names {
            let own = [Value::Text(kind), Value::Text(name), Value::Integer(WAITING_MAX)];
            let values = [&self.of.place()[..], &own].concat();
            steps.push(Step::new(self.of.statements().forget, values));
        }
        let values = self.of.place().to_vec();
        let rows =
            self.database.write_then_read(&steps, self.of.statements().heads, values).await?;
        rows.unwrap_or_default().iter().map(head).collect()
    }

    /// Stores that these definitions were seen now, if the stored time is old.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn seen(&self, heads: &[&DefinitionHead]) -> Result<(), StatementError> {
        let now = SystemTime::now();
        let mut all = Vec::new();
        for head in heads.iter().filter(|head| head.last_seen + SEEN_AGAIN < now) {
            let own = [Value::Text(&head.digest), Value::Integer(ms(now))];
            all.push([&self.of.place()[..], &own].concat());
        }
        self.database.write_each(self.of.statements().seen, &all).await
    }

    /// Puts definitions under review; each digest comes with the reason. A definition that a human
    /// has decided on does not change.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn doubt(&self, doubted: &[(String, String)]) -> Result<(), StatementError> {
        let [owner, server] = self.of.place();
        let values = |(one, why)| vec![owner, server, Value::Text(one), Value::Text(why)];
        let all: Vec<_> = doubted.iter().map(|(one, why)| values((&**one, &**why))).collect();
        self.database.write_each(self.of.statements().doubt, &all).await
    }

    /// Accepts or rejects these definitions, all of them or none. Returns `false` and changes
    /// nothing if one does not exist, or has this status already.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn decide(
        &self,
        is_accepted: bool,
        digests: &[&str],
        by: &str,
    ) -> Result<bool, StatementError> {
        let Statements { accept, reject, .. } = *self.of.statements();
        let statement = if is_accepted { accept } else { reject };
        let now = now_ms();
        let mut steps = Vec::new();
        for digest in digests {
            let own = [Value::Text(digest), Value::Integer(now), Value::Text(by)];
            let values = [&self.of.place()[..], &own].concat();
            steps.push(Step::must_change(statement, values));
        }
        self.database.write_steps(&steps).await
    }
}

fn known(row: &Row) -> Result<KnownDefinition, StatementError> {
    let (kind, name, text) = (row.text("kind")?, row.text("name")?, row.text("text")?);
    Ok(KnownDefinition { kind, name, text })
}

fn whole(row: &Row) -> Result<DefinitionRow, StatementError> {
    let (text, why) = (row.text("text")?, row.text("why")?);
    Ok(DefinitionRow { head: head(row)?, text, why })
}

fn head(row: &Row) -> Result<DefinitionHead, StatementError> {
    let word = row.text("state")?;
    let state = DefinitionState::ALL.into_iter().find(|state| state.as_str() == word);
    let decided = optional_time(row, "decided_at")?;
    let by = row.text("decided_by")?;
    Ok(DefinitionHead {
        digest: row.text("digest")?,
        kind: row.text("kind")?,
        name: row.text("name")?,
        state: state.ok_or_else(|| row.damaged())?,
        run: row.text("run")?,
        first_seen: time(row, "first_seen")?,
        last_seen: time(row, "last_seen")?,
        decided: decided.map(|at| (at, by)),
    })
}

/// A number of each server, or of all, as `statement` computes it from this owner's definitions.
pub(crate) async fn numbers(
    (database, statement): (&Database, Statement),
    owner: &str,
) -> Result<BTreeMap<String, i64>, StatementError> {
    let rows = database.read(statement, &[Value::Text(owner)]).await?;
    rows.iter().map(|row| Ok((row.text("server")?, row.integer("number")?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    /// S31: definitions are found by their name: a server that lists many costs no more for each
    /// than one that lists few.
    #[tokio::test]
    async fn s31_definitions_are_found_by_their_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let alias = Alias::new("many").unwrap();
        let of = store.definitions(DefinitionsOf::Live("mcp.json", &alias));
        let text = || Value::Text("x");
        let number = || Value::Integer(1);
        let add = [text(), text(), text(), text(), text(), text(), text(), number()];
        let forget = [text(), text(), number()];
        let place = [text(), text()];
        for statements in [&CATALOG, &LIVE] {
            for (statement, own) in [(statements.add, &add[..]), (statements.forget, &forget[..])] {
                let sql = format!("EXPLAIN QUERY PLAN {}", statement.sql).leak();
                let explained = Statement { name: statement.name, sql };
                let rows = of.database.read(explained, &[&place[..], own].concat()).await.unwrap();
                let plan: Vec<_> = rows.iter().map(|row| row.text("detail").unwrap()).collect();
                let mut looks = plan.iter().filter(|step| step.contains("definitions"));
                let are_by_name = looks.all(|step| step.contains("kind=? AND name=?"));
                assert!(are_by_name, "{}: {plan:?}", statement.name);
                assert!(plan.iter().any(|step| step.contains("definitions_named")), "{plan:?}");
            }
        }
    }
}
