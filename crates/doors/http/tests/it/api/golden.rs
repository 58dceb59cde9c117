//! Checks the rights of each route: asks the door itself, and compares with
//! `docs/reference/access.md`.

use std::path::Path;

use fs_err as fs;
use http::StatusCode;
use http_body_util::BodyExt;
use narthex_http::ROUTES;
use narthex_model::Role;

use super::tenants::Tenants;
use crate::world::ADMIN;

const HEADER: &str = "| route | methods | no token | run | runner | author | auditor | admin | \
                      admin elsewhere | operator |\n|---|---|--|--|--|--|--|--|--|--|\n";
/// The text of the answer for a workspace that does not exist.
const HIDDEN: &str = "there is no workspace `team`";

/// The answer to one caller, as a word in the table.
async fn cell(tenants: &Tenants, token: &str, method: &str, path: &str) -> &'static str {
    // The unknown parameter stops the request after its caller was admitted, before it changes
    // anything.
    let path = format!("{path}?probe=1");
    let answer = tenants.ask(token, method, &path, "").open().await;
    match answer.status() {
        StatusCode::UNAUTHORIZED => "401",
        StatusCode::FORBIDDEN => "403",
        StatusCode::NOT_FOUND => {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let is_hidden = String::from_utf8_lossy(&body).contains(HIDDEN);
            // Answers to HEAD have a body here; the connection would drop it.
            if is_hidden { "404" } else { "yes" }
        }
        _ => "yes",
    }
}

/// S6, X-M7, X-M43, X-E14, X-E13, X-E18, X-E30, X-E66, S2: the table has a cell for every route,
/// method and caller, which equals the real answer. A new route is missing from the table, so the
/// test fails. With `UPDATE_GOLDEN` set, the page is written.
#[tokio::test]
async fn s6_the_table_of_routes_and_roles_matches_real_answers() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let mine = |role| tenants.token("team", role).to_owned();
    let callers = [
        String::new(),
        tenants.api.world.token.clone(),
        mine(Role::Runner),
        mine(Role::Author),
        mine(Role::Auditor),
        mine(Role::Admin),
        tenants.token("rival", Role::Admin).to_owned(),
        ADMIN.to_owned(),
    ];
    let mut table = HEADER.to_owned();
    for route in ROUTES {
        let path = route.template.replace("{workspace}", "team").replace(['{', '}'], "");
        let mut rows: Vec<(Vec<&str>, String)> = Vec::new();
        for method in route.methods.split(", ") {
            let mut cells = String::new();
            for token in &callers {
                let cell = cell(&tenants, token, method, &path).await;
                cells.push_str(&format!(" {cell} |"));
            }
            match rows.iter_mut().find(|(_, other)| *other == cells) {
                Some((methods, _)) => methods.push(method),
                None => rows.push((vec![method], cells)),
            }
        }
        for (methods, cells) in rows {
            table.push_str(&format!("| `{}` | {} |{cells}\n", route.template, methods.join(", ")));
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/access.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("| route |").unwrap();
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let renewed = format!("{before}{table}\n{after}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, &renewed).unwrap();
    }
    let text = fs::read_to_string(&page).unwrap();
    for (old, new) in text.lines().zip(renewed.lines()) {
        assert_eq!(old, new, "docs/reference/access.md; UPDATE_GOLDEN=1 renews it");
    }
    assert_eq!(text.len(), renewed.len(), "docs/reference/access.md; UPDATE_GOLDEN=1 renews it");
}

/// D28: a refusal to a run's token, at any route, names no other token and no command.
#[tokio::test]
async fn d28_a_refusal_to_a_run_names_no_other_token_and_no_command() {
    const MARKS: [&str; 5] = ["NARTHEX_TOKEN", "--token", "admin", "operator", "`narthex "];
    let tenants = Tenants::with(&["team"]).await;
    let token = tenants.api.world.token.clone();
    let mut refused = 0;
    for route in ROUTES {
        let path = route.template.replace("{workspace}", "team").replace(['{', '}'], "");
        for method in route.methods.split(", ") {
            let answer = tenants.ask(&token, method, &format!("{path}?probe=1"), "").open().await;
            if !answer.status().is_client_error() {
                continue;
            }
            refused += 1;
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&body);
            for mark in MARKS {
                assert!(!text.contains(mark), "`{mark}` at {method} {path}: {text}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
