//! `narthex members`: principals and their roles in a workspace, through the daemon.

use std::process::ExitCode;

use crate::cli::{MembersCommand, WorkspaceArgs};
use http::Method;
use narthex_model::Role;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output, table,
};

pub async fn run(command: MembersCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        MembersCommand::List { place } => {
            let path = workspace_path(&place.workspace, "/members");
            let asked = client.api_all(&path);
            let items = waiting("asking the daemon", &context, asked).await?;
            let header = ["name", "kind", "roles", "disabled", "id"];
            table::list(&items, &header, row, "There are no members yet.", &context)
        }
        MembersCommand::Set { member, mut roles, role, place } => {
            roles.extend(role);
            let path = member_path(&place, &member);
            let body = json!({ "roles": roles }).to_string();
            let asked = client.api(ApiRequest::new(Method::PUT, path).entry(&body));
            let set = waiting("changing the member", &context, asked).await?;
            let roles = roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
            output::told(&set, &format!("{member} is {roles} now"), context.format)
        }
        MembersCommand::Remove { member, place } => {
            let path = member_path(&place, &member);
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting("removing the member", &context, asked).await?;
            let sentence = format!("{member} is no longer a member");
            output::told(&json!({ "member": member }), &sentence, context.format)
        }
    }
}

fn row(member: &Value) -> Vec<String> {
    let roles = Role::ALL.map(Role::as_str).into_iter().filter(|role| {
        member["roles"].as_array().is_some_and(|roles| roles.iter().any(|one| one == role))
    });
    vec![
        table::text(member, "name"),
        table::text(member, "kind"),
        roles.collect::<Vec<_>>().join(","),
        if member["is_disabled"] == true { "yes" } else { "no" }.to_owned(),
        table::text(member, "id"),
    ]
}

fn member_path(place: &WorkspaceArgs, member: &str) -> String {
    workspace_path(&place.workspace, &format!("/members/{}", segment(member)))
}
