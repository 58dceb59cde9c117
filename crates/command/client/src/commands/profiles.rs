//! `narthex profiles`: the profiles of the live configuration, as the daemon has them.

use std::process::ExitCode;

use http::Method;
use narthex_model::command::narthex;
use serde_json::Value;

use super::waiting::waiting;
use crate::cli::ProfilesCommand;
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment},
    output::{self, harmless},
    table,
};

/// The sentence for a configuration without profiles.
const NONE: &str = "There are no profiles yet; add one to `mcp.profiles` of your settings.json.";

pub async fn run(command: ProfilesCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        ProfilesCommand::List => {
            let asked = client.api_all("/api/profiles");
            let mut items = waiting("asking the daemon", &context, asked).await?;
            items.iter_mut().for_each(|profile| add_url(profile, &client));
            let header = ["profile", "tools", "servers", "sessions", "fault"];
            table::list(&items, &header, row, NONE, &context)
        }
        ProfilesCommand::Show { name } => {
            let path = format!("/api/profiles/{}", segment(&name));
            let asked = client.api(ApiRequest::new(Method::GET, path));
            let mut shown = waiting("asking the daemon", &context, asked).await?;
            add_url(&mut shown, &client);
            show(&shown, &context)
        }
    }
}

/// Adds the whole URL of the endpoint, as a client needs it, if the profile can be used.
fn add_url(profile: &mut Value, client: &DaemonClient) {
    if let Some(path) = profile["path"].as_str() {
        profile["url"] = format!("{}{path}", client.state.url.trim_end_matches('/')).into();
    }
}

fn row(profile: &Value) -> Vec<String> {
    let visible = profile["visible"].as_array().map_or(0, Vec::len);
    vec![
        table::text(profile, "name"),
        visible.to_string(),
        named(profile).join(", "),
        profile["sessions"].to_string(),
        faults(profile).into_iter().next().unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The servers of a profile, and the tools of others.
fn named(profile: &Value) -> Vec<String> {
    let texts = |member: &str| profile[member].as_array().cloned().unwrap_or_default();
    let all = texts("servers").into_iter().chain(texts("tools"));
    all.filter_map(|one| one.as_str().map(harmless)).collect()
}

fn faults(profile: &Value) -> Vec<String> {
    let faults = profile["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sentence = |fault: &Value| {
        format!("{}: {}", table::text(fault, "path"), table::text(fault, "message"))
    };
    faults.iter().map(sentence).collect()
}

fn show(profile: &Value, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(profile)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = table::text(profile, "name");
    if context.format.is_quiet() {
        output::line(&name)?;
        return Ok(ExitCode::SUCCESS);
    }
    for fault in faults(profile) {
        output::notice(&format!("refused: {fault}"));
    }
    let Some(url) = profile["url"].as_str() else { return Ok(ExitCode::SUCCESS) };
    let connect = narthex("connect --profile {}", &[&name]);
    output::line(&format!(
        "The profile {name} has these tools:\n\n{}\n\n  HTTP   {}\n  \
         stdio  {connect}\n  audit  the calls of its clients are those of {}",
        tools(profile),
        harmless(url),
        table::text(profile, "run_id"),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn tools(profile: &Value) -> String {
    let visible = profile["visible"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |tool: &Value| ["name", "server", "tool"].map(|key| table::text(tool, key)).to_vec();
    let rows: Vec<_> = visible.iter().map(row).collect();
    table::render(&["name", "server", "tool"], &rows, "none: its servers have listed no such tool")
}
