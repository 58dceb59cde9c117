//! The rules of a workspace: shows, replaces and clears them, and answers how they decide a call
//! (D13).

use http::{Method, StatusCode};
use narthex_control::WrittenRules;
use narthex_wire::Raw;

use super::{Answered, Asked, catalog::with_tag, ok};
use crate::{
    body::RequestBody,
    respond,
    routes::Target,
    shapes::{RuleFault, Rules, RulesChecked},
};

impl Asked<'_> {
    /// Handles the rules of a workspace, or a question about them.
    pub(super) async fn policy(&self, body: RequestBody) -> Answered {
        match self.target {
            Target::PolicyCheck => self.rules_check(body).await,
            _ => self.rules(body).await,
        }
    }

    /// Answers how the rules decide a call.
    async fn rules_check(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let (control, workspace) = (self.control()?, self.workspace()?);
        let gateway = &self.door.gateway;
        let as_ruled =
            |tool: &str, written: &[u8]| gateway.built_in_as_ruled(tool, Raw::new(written));
        let said = control.rules_check(&workspace, text.as_bytes(), as_ruled).await?;
        Ok(ok(&checked(&said, self.unknown_names(&text).await?)))
    }

    /// Shows, replaces or clears the rules.
    async fn rules(&self, body: RequestBody) -> Answered {
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
        let warnings = match self.parts.method {
            Method::PUT => Some(self.unknown_in_rules(&rules).await?),
            _ => None,
        };
        let answer = ok(&shown(&rules, warnings));
        Ok(match &rules.tag {
            Some(tag) => with_tag(answer, tag),
            None => answer,
        })
    }
}

fn shown(rules: &WrittenRules, warnings: Option<Vec<String>>) -> Rules {
    let row = rules.row.as_ref();
    Rules {
        rules: rules.text().into(),
        ids: rules.ids.clone(),
        faults: rules.faults.iter().map(fault).collect(),
        revision: row.map_or(0, |row| row.head.revision),
        updated_at: row.map(|row| row.head.updated_at.into()),
        updated_by: row.map(|row| row.updated_by.clone()),
        warnings,
    }
}

fn fault(fault: &narthex_control::RuleFault) -> RuleFault {
    let narthex_control::RuleFault { line, rule, message, remedy } = fault;
    RuleFault {
        line: line.and_then(|line| line.try_into().ok()),
        rule: rule.clone(),
        message: message.clone(),
        remedy: remedy.clone(),
    }
}

fn checked(checked: &narthex_control::RulesChecked, warnings: Vec<String>) -> RulesChecked {
    let ruling = &checked.ruling;
    let ids = |ids: &[_]| ids.iter().map(ToString::to_string).collect();
    RulesChecked {
        decision: checked.decision(),
        rule: ruling.forbidden.as_ref().map(|by| by.rule.to_string()),
        reason: ruling.forbidden.as_ref().map(|by| by.reason.to_string()),
        scopes: ruling.scopes.iter().map(ToString::to_string).collect(),
        matched: ids(&ruling.matched),
        failed: ids(&ruling.failed),
        warnings,
    }
}
