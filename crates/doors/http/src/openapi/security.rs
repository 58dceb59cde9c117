//! The access rules of routes, as the document states them.

use serde_json::{Value, json};

use crate::openapi::Access;

/// The proofs that the door takes.
pub(super) fn schemes() -> Value {
    json!({
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "`admin.token` of an operator, the token of a service (`nxs_…`), of a \
                            run (`nxt_…`), of a registered MCP client (`nxc_…`), or an access \
                            token of the door (`nxa_…`).",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "narthex",
            "description": "The session of a human who has signed in; over https the cookie is \
                            `__Host-narthex`.",
        },
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Narthex-Csrf",
            "description": "The CSRF token in the page of the session; needed only with the \
                            session cookie.",
        },
    })
}

/// The alternatives that an operation accepts. Names are those of callers: roles in the workspace,
/// or `operator`, `human`, `service`, `run` and `client`.
pub(super) fn needed(access: Access, method: &str) -> Value {
    let who = who(access);
    if who.is_empty() {
        return json!([]);
    }
    if matches!(access, Access::Client | Access::OwnRun) {
        return json!([{ "token": who }]);
    }
    let humans: Vec<_> = who.iter().filter(|one| **one != "run").collect();
    match method {
        "GET" | "HEAD" => json!([{ "token": who }, { "session": humans }]),
        _ => json!([{ "token": who }, { "session": humans, "csrf": [] }]),
    }
}

/// The access rule as a sentence for people.
pub(super) fn words(access: Access) -> String {
    match access {
        Access::Open => "Open to every caller.".to_owned(),
        Access::Own(proof) => format!("Takes no token. Proof: {proof}."),
        _ => format!("For: {}.", who(access).join(", ")),
    }
}

fn who(access: Access) -> Vec<&'static str> {
    match access {
        Access::Open | Access::Own(_) => Vec::new(),
        Access::Client => vec!["run", "client"],
        Access::OwnRun => vec!["run"],
        Access::Shared | Access::Whole => vec!["run", "operator"],
        Access::Operator => vec!["operator"],
        Access::Known => vec!["operator", "human", "service"],
        Access::Member(roles) => members(roles),
        Access::Starter(roles) => [members(roles), vec!["run"]].concat(),
    }
}

fn members(roles: &[narthex_model::Role]) -> Vec<&'static str> {
    let mut all: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
    all.push("operator");
    all
}
