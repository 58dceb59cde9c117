//! The rules of a workspace: shown, replaced, cleared, and asked about a call (D13).

use std::fmt;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use narthex_control::{RulesChecked, WrittenRules};
use narthex_model::Timestamp;
use narthex_wire::Raw;
use serde_json::{Value, json};

use super::{Answered, Asked, catalog::with_tag, ok};
use crate::{respond, routes::Target};

impl Asked<'_> {
    /// Rules: shown, replaced, cleared, and asked.
    pub(super) async fn policy<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        match self.target {
            Target::PolicyCheck => self.rules_check(body).await,
            _ => self.rules(body).await,
        }
    }

    /// The answer of the rules for a call.
    async fn rules_check<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let (control, workspace) = (self.control()?, self.workspace()?);
        let gateway = &self.door.gateway;
        let as_ruled =
            |tool: &str, written: &[u8]| gateway.built_in_as_ruled(tool, Raw::new(written));
        let said = control.rules_check(&workspace, text.as_bytes(), as_ruled).await?;
        let mut told = checked(&said);
        told["warnings"] = json!(self.unknown_names(&text).await?);
        Ok(ok(&told))
    }

    /// Rules: shown, replaced and cleared.
    async fn rules<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let (workspace, control) = (self.workspace()?, self.control()?);
        let rules = match self.parts.method {
            Method::PUT => {
                let (condition, by) = (self.precondition()?, self.by());
                let text = self.entry(body, &[]).await?;
                control.rules_write(&workspace, text.as_bytes(), condition, by).await?
            }
            Method::DELETE => {
                control.rules_clear(&workspace, self.precondition()?, self.by()).await?;
                return Ok(respond::empty(StatusCode::NO_CONTENT));
            }
            _ => control.rules(&workspace).await?,
        };
        let mut document = shown(&rules);
        if self.parts.method == Method::PUT {
            document["warnings"] = json!(self.unknown_in_rules(&rules).await?);
        }
        let answer = ok(&document);
        Ok(match &rules.tag {
            Some(tag) => with_tag(answer, tag),
            None => answer,
        })
    }
}

fn shown(rules: &WrittenRules) -> Value {
    let row = rules.row.as_ref();
    json!({
        "rules": rules.text(),
        "ids": rules.ids,
        "faults": rules.faults,
        "revision": row.map_or(0, |row| row.head.revision),
        "updated_at": row.map(|row| Timestamp::new(row.head.updated_at).to_string()),
        "updated_by": row.map(|row| row.updated_by.clone()),
    })
}

fn checked(checked: &RulesChecked) -> Value {
    let ruling = &checked.ruling;
    let scopes: Vec<_> = ruling.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({
        "decision": checked.decision(),
        "rule": ruling.forbidden.as_ref().map(|by| &*by.rule),
        "reason": ruling.forbidden.as_ref().map(|by| &*by.reason),
        "scopes": scopes,
        "matched": ruling.matched.iter().map(|id| &**id).collect::<Vec<_>>(),
        "failed": ruling.failed.iter().map(|id| &**id).collect::<Vec<_>>(),
    })
}
