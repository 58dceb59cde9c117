//! Definitions of catalog servers and of live servers that pin them: lists them with their changes,
//! accepts and rejects them.

use narthex_definitions::reviews::{
    DefinitionHead, DefinitionSource, DefinitionState, DefinitionVerdict, SeenDefinition,
};
use narthex_model::ErrorKind;
use serde_json::Value;

use super::{Answered, Asked, ok, query::Query};
use crate::{
    body::RequestBody,
    problem::Problem,
    shapes::{self, As, DefinitionDecision, DefinitionDecisions, Page},
};

impl Asked<'_> {
    /// Lists the definitions of a server, or decides on some of them.
    pub(super) async fn of_definitions(
        &self,
        verdict: Option<DefinitionVerdict>,
        body: RequestBody,
    ) -> Answered {
        match verdict {
            None => self.list_definitions().await,
            Some(verdict) => self.decide_definitions(body, verdict).await,
        }
    }

    /// Lists the definitions of a server, page by page.
    async fn list_definitions(&self) -> Answered {
        let (workspace, server) = (self.workspace()?, self.segment(1));
        let query = self.query(&["state", "source", "after", "limit"])?;
        let source = source(&query)?;
        let words = DefinitionState::ALL.map(DefinitionState::as_str);
        let word = query.word("state", &[&["all"], &words[..]].concat())?;
        let state = DefinitionState::ALL.into_iter().find(|state| state.as_str() == word);
        let page = (query.text("after"), query.limit()?);
        let reviews = self.known_runs()?.reviews();
        let page = reviews.page(&workspace, (&server, source), state, page).await?;
        let items = page.items.iter().map(shown).collect();
        Ok(ok(&Page { items, next: page.next }))
    }

    /// Accepts or rejects the definitions whose digests the caller sends.
    async fn decide_definitions(&self, body: RequestBody, verdict: DefinitionVerdict) -> Answered {
        let source = source(&self.query(&["source"])?)?;
        let (workspace, server) = (self.workspace()?, self.segment(1));
        if let Some(who) = self.principal.no_human() {
            let text = format!("only a human decides on definitions: {who}");
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        let text = self.entry(body, &[]).await?;
        let (reviews, decision) = (self.known_runs()?.reviews(), (text.as_bytes(), verdict));
        let server = (&*server, source);
        let decided = reviews.decide(&workspace, server, decision, &self.by()).await?;
        Ok(ok(&DefinitionDecisions { items: decided.iter().map(head).collect() }))
    }
}

/// The source of the server, to distinguish a catalog server and a live server with the same name.
fn source(query: &Query) -> Result<Option<DefinitionSource>, Problem> {
    let words = DefinitionSource::ALL.map(DefinitionSource::as_str);
    let word = query.word("source", &[&["any"], &words[..]].concat())?;
    Ok(DefinitionSource::ALL.into_iter().find(|source| source.as_str() == word))
}

fn head(head: &DefinitionHead) -> DefinitionDecision {
    let DefinitionHead { digest, kind, name, state, run, first_seen, last_seen, decided } = head;
    DefinitionDecision {
        kind: kind.clone(),
        name: name.clone(),
        digest: digest.into(),
        state: (*state).into(),
        first_run_id: run.into(),
        first_seen: (*first_seen).into(),
        last_seen: (*last_seen).into(),
        decided_at: decided.as_ref().map(|(at, _)| (*at).into()),
        decided_by: decided.as_ref().map(|(_, by)| by.clone()),
    }
}

fn shown(definition: &SeenDefinition) -> shapes::SeenDefinition {
    let SeenDefinition { head: of, why, text, difference } = definition;
    shapes::SeenDefinition {
        decision: head(of),
        reason: As::json(why["reason"].clone()),
        renamed_from: As::json(why["renamed_from"].clone()),
        like: As::json(why["like"].clone()),
        findings: match &why["findings"] {
            findings @ Value::Array(_) => As::json(findings.clone()),
            _ => As::json(Value::Array(Vec::new())),
        },
        text: text.clone(),
        difference: As::of(difference),
    }
}
