//! `narthex clients`: the registered MCP clients, through the daemon. A token is shown once, in the
//! configuration to paste.

use std::process::ExitCode;

use http::Method;
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::{runs::create::read, waiting::waiting};
use crate::cli::{ClientsCommand, RegisterClientArgs};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(command: ClientsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let one =
        |workspace, id: &str| workspace_path(workspace, &format!("/mcp-clients/{}", segment(id)));
    match command {
        ClientsCommand::Register(args) => register(&client, &args, &context).await,
        ClientsCommand::List { place } => {
            let path = workspace_path(&place.workspace, "/mcp-clients");
            let asked = client.api_all(&path);
            let items = waiting("asking the daemon", &context, asked).await?;
            let header = ["id", "client", "agent or profile", "opens", "run", "expires", "by"];
            let none = format!(
                "There are no registered clients yet; those that `{}` connects need none of \
                 these tokens.",
                narthex("setup", &[])
            );
            table::list(&items, &header, row, &none, &context)
        }
        ClientsCommand::Show { id, place } => {
            let path = one(&place.workspace, &id);
            let asked = client.api(ApiRequest::new(Method::GET, path));
            let shown = waiting("asking the daemon", &context, asked).await?;
            show(&shown, &context)
        }
        ClientsCommand::Revoke { id, place } => {
            let path = one(&place.workspace, &id);
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting("revoking the client", &context, asked).await?;
            let sentence = format!("{} is revoked, and its run has ended", harmless(&id));
            output::told(&json!({ "id": id }), &sentence, context.format)
        }
    }
}

async fn register(
    client: &DaemonClient,
    args: &RegisterClientArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let RegisterClientArgs { client: name, agent, profile, with, origins, expires_at, place } =
        args;
    let mut body = with
        .as_deref()
        .map(|file| read(file, "write one JSON object"))
        .transpose()?
        .unwrap_or_default();
    body.insert("client".to_owned(), json!(name));
    for (member, name) in [("agent_name", agent), ("profile", profile)] {
        if let Some(name) = name {
            body.insert(member.to_owned(), json!(name));
        }
    }
    if !origins.is_empty() {
        body.insert("origins".to_owned(), json!(origins));
    }
    if let Some(time) = expires_at {
        body.insert("expires_at".to_owned(), json!(time));
    }
    let path = workspace_path(&place.workspace, "/mcp-clients");
    let request = ApiRequest::new(Method::POST, path).entry(&Value::from(body).to_string());
    let made = waiting("registering the client", context, client.api(request)).await?;
    if context.format.is_json() {
        output::done(&made)?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        output::line(&table::text(&made, "token"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let snippet = json!({ "mcpServers": made["mcpServers"] });
    output::line(&format!("{snippet:#}"))?;
    let id = table::text(&made, "id");
    let paste = "paste this into the client's configuration now: it is shown only once";
    output::notice(&match made["is_live"].as_bool() {
        Some(false) => {
            format!("{id} is registered, but cannot connect now ({}); {paste}", opens(&made))
        }
        _ => format!("{id} is registered; {paste}"),
    });
    Ok(ExitCode::SUCCESS)
}

fn show(client: &Value, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(client)?;
    } else if !context.format.is_quiet() {
        let origins = client["origins"].as_array().map(Vec::as_slice).unwrap_or_default();
        let origins: Vec<_> = origins.iter().filter_map(Value::as_str).map(harmless).collect();
        output::line(&format!(
            "The client {} was registered at {} by {}.\n\n  {}\n  origins  {}\n  \
             opens    {}\n  expires  {}\n  revoked  {}\n  session  {}\n  run      {}",
            table::text(client, "client"),
            table::text(client, "created_at"),
            table::text(client, "created_by"),
            match client["profile"].as_str() {
                Some(profile) => format!("profile  {}", harmless(profile)),
                None if client["agent_name"].is_null() => "sees     all servers".to_owned(),
                None => format!("agent    {}", table::text(client, "agent_name")),
            },
            origins.join(", "),
            opens(client),
            table::or_none(client, "expires_at"),
            table::or_none(client, "revoked_at"),
            table::or_none(client, "session_id"),
            table::or_none(client, "run_id"),
        ))?;
        if client["program"].is_string() {
            output::line(&format!(
                "  program  {}\n  acts for {}",
                table::text(client, "program"),
                table::text(client, "acts_for"),
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says if a client may come in, and why not.
fn opens(client: &Value) -> String {
    let why = match client["closed_because"].as_str() {
        None => "",
        Some("agent_deleted") => "agent deleted",
        Some("agent_inactive") => "agent not active",
        Some("profile_gone") => "no usable profile",
        Some("disabled") => "principal disabled",
        Some("human_lost") => "its human is disabled or lacks the role",
        Some(why) => &harmless(why),
    };
    match (client["is_live"] == true, why) {
        (true, "") => "yes".to_owned(),
        (true, why) => format!("until its run ends: {why}"),
        (false, "") => "no".to_owned(),
        (false, why) => format!("no: {why}"),
    }
}

fn row(client: &Value) -> Vec<String> {
    vec![
        table::text(client, "id"),
        table::text(client, "client"),
        match client["profile"].as_str() {
            Some(profile) => format!("profile {}", harmless(profile)),
            None if client["agent_name"].is_null() => "all servers".to_owned(),
            None => table::text(client, "agent_name"),
        },
        opens(client),
        table::or_none(client, "run_id"),
        table::or_none(client, "expires_at"),
        table::text(client, "created_by"),
    ]
}
