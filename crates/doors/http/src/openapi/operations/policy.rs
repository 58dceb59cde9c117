//! The rules of a workspace.

use super::super::operation::{Content, Operation, delete, get, of, post, put};
use crate::shapes;

const RULES: &str = "/api/workspaces/{workspace}/policy";
const CONDITION: &[&str] = &["IfMatch", "IfNoneMatch"];

pub(super) const OPERATIONS: &[Operation] = &[
    get(RULES, "policy_show", "Shows the rules").answers(
        200,
        Content::Json(of::<shapes::Rules>()),
        &["ETag"],
    ),
    put(RULES, "policy_set", "Replaces the rules, from the next call on")
        .takes(of::<shapes::RulesNew>())
        .asks(CONDITION)
        .answers(200, Content::Json(of::<shapes::Rules>()), &["ETag"])
        .refuses(&[400, 412]),
    delete(RULES, "policy_clear", "Removes all rules").asks(CONDITION).ends().refuses(&[412]),
    post(
        "/api/workspaces/{workspace}/policy/check",
        "policy_check",
        "Tests the rules for a call, without making it",
    )
    .takes(of::<shapes::RulesQuestion>())
    .gives(of::<shapes::RulesChecked>()),
];
