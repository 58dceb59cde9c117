//! The rules of a workspace.

use super::super::operation::{Content, Operation, delete, get, post, put, written};

const RULES: &str = "/api/workspaces/{workspace}/policy";
const CONDITION: &[&str] = &["IfMatch", "IfNoneMatch"];

pub(super) const OPERATIONS: &[Operation] = &[
    get(RULES, "policy_show", "Shows the rules").answers(
        200,
        Content::Json(written("Rules")),
        &["ETag"],
    ),
    put(RULES, "policy_set", "Replaces the rules, from the next call on")
        .takes(written("RulesNew"))
        .asks(CONDITION)
        .answers(200, Content::Json(written("Rules")), &["ETag"])
        .refuses(&[400, 412]),
    delete(RULES, "policy_clear", "Removes all rules").asks(CONDITION).ends().refuses(&[412]),
    post(
        "/api/workspaces/{workspace}/policy/check",
        "policy_check",
        "Tests the rules for a call, without making it",
    )
    .takes(written("RulesQuestion"))
    .gives(written("RulesChecked")),
];
