//! Definitions of servers of the catalog, and of live ones that pin them: shown with what changed
//! in them, accepted and rejected.

use std::{fmt, time::SystemTime};

use bytes::Bytes;
use http_body::Body;
use narthex_definitions::reviews::{
    DefinitionHead, DefinitionSource, DefinitionState, DefinitionVerdict, SeenDefinition,
};
use narthex_model::{ErrorKind, Timestamp};
use serde_json::{Value, json};

use super::{Answered, Asked, ok, query::Query};
use crate::problem::Problem;

impl Asked<'_> {
    /// Definitions of a server: listed, or decided on.
    pub(super) async fn of_definitions<B>(
        &self,
        verdict: Option<DefinitionVerdict>,
        body: B,
    ) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        match verdict {
            None => self.list_definitions().await,
            Some(verdict) => self.decide_definitions(body, verdict).await,
        }
    }

    /// Those of a server, page by page.
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
        let items: Vec<_> = page.items.iter().map(shown).collect();
        Ok(ok(&json!({ "items": items, "next": page.next })))
    }

    /// Decides on some, by the digests that were shown.
    async fn decide_definitions<B>(&self, body: B, verdict: DefinitionVerdict) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
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
        let items: Vec<_> = decided.iter().map(head).collect();
        Ok(ok(&json!({ "items": items })))
    }
}

/// The source of the server, where two may have the name.
fn source(query: &Query) -> Result<Option<DefinitionSource>, Problem> {
    let words = DefinitionSource::ALL.map(DefinitionSource::as_str);
    let word = query.word("source", &[&["any"], &words[..]].concat())?;
    Ok(DefinitionSource::ALL.into_iter().find(|source| source.as_str() == word))
}

fn head(head: &DefinitionHead) -> Value {
    json!({
        "kind": head.kind,
        "name": head.name,
        "digest": head.digest,
        "state": head.state.as_str(),
        "first_run_id": head.run,
        "first_seen": time(head.first_seen),
        "last_seen": time(head.last_seen),
        "decided_at": head.decided.as_ref().map(|(at, _)| time(*at)),
        "decided_by": head.decided.as_ref().map(|(_, by)| by),
    })
}

fn shown(definition: &SeenDefinition) -> Value {
    let SeenDefinition { head: of, why, text, difference } = definition;
    let mut shown = head(of);
    for member in ["reason", "renamed_from", "like"] {
        shown[member] = why[member].clone();
    }
    shown["findings"] = match &why["findings"] {
        Value::Array(findings) => json!(findings),
        _ => json!([]),
    };
    shown["text"] = json!(text);
    shown["difference"] = json!(difference);
    shown
}

fn time(time: SystemTime) -> String {
    Timestamp::new(time).to_string()
}
