//! Samples of the page of rules.

use std::time::Duration;

use super::{frame_of, words};
use crate::{
    pages::policy::{Changed, Decision, PolicyPage, Preview, RuleFault, Written},
    parts::{
        Moment,
        form::{Field, Input},
    },
};

/// The page with a fault, a decision and a preview.
#[must_use]
pub fn page_of(more: &str) -> PolicyPage {
    let short: String = more.chars().take(200).collect();
    let area = Input::area(&format!("forbid(principal, action, resource);\n{short}"), 16);
    let row = Changed {
        agent: words("writer", more),
        server: words("linear", more),
        tool: words("create_issue", more),
        before: "allowed",
        after: "forbidden",
    };
    PolicyPage {
        frame: frame_of(more),
        rules: Field::new("rules", "Cedar", area),
        tag: format!("1-1{short}"),
        call: vec![Field::new("server", "Server", Input::line(&format!("linear{short}")))],
        faults: vec![RuleFault {
            message: words("line 3: unexpected end", more),
            remedy: words("close the rule", more),
        }],
        decision: Some(Decision {
            sentence: words("forbidden by the rule writes", more),
            is_refused: true,
            matched: vec![words("writes, line 3", more)],
        }),
        preview: Some(Preview { rows: vec![row], asked: 12, is_part: true }),
        written: Some(Written {
            revision: 2,
            at: Moment::after_epoch(Duration::from_secs(1_790_000_000)),
            by: words("ada", more),
        }),
        check: "/w/default/policy/check".to_owned(),
        preview_path: "/w/default/policy/preview".to_owned(),
        save: Some("/w/default/policy/save".to_owned()),
    }
}
