//! `narthex tokens`: the tokens of services, through the daemon. A token is shown once, at its
//! creation.

use std::process::ExitCode;

use http::Method;
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::cli::{NewTokenArgs, TokensCommand};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

const DAY_S: u64 = 24 * 60 * 60;

pub async fn run(command: TokensCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        TokensCommand::List { place } => {
            let path = workspace_path(&place.workspace, "/service-tokens");
            let asked = client.api_all(&path);
            let items = waiting("asking the daemon", &context, asked).await?;
            let header =
                ["id", "service", "label", "opens", "proved", "expires", "last used", "by"];
            let none = table::none_yet("tokens", &narthex("tokens create SERVICE", &[]));
            table::list(&items, &header, row, &none, &context)
        }
        TokensCommand::Create(args) => create(&client, &args, &context).await,
        TokensCommand::Revoke { id, place } => {
            let below = format!("/service-tokens/{}", segment(&id));
            let path = workspace_path(&place.workspace, &below);
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting("revoking the token", &context, asked).await?;
            let sentence = format!("{id} is revoked");
            output::told(&json!({ "id": id }), &sentence, context.format)
        }
    }
}

async fn create(
    client: &DaemonClient,
    args: &NewTokenArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let NewTokenArgs { service, roles, label, expires_in, place } = args;
    let mut body = json!({ "service": service });
    if !roles.is_empty() {
        body["roles"] = json!(roles);
    }
    if let Some(label) = label {
        body["label"] = json!(label);
    }
    if let Some(days) = expires_in {
        body["expires_in"] = json!(days * DAY_S);
    }
    let path = workspace_path(&place.workspace, "/service-tokens");
    let asked = client.api(ApiRequest::new(Method::POST, path).entry(&body.to_string()));
    let made = waiting("creating the token", context, asked).await?;
    if context.format.is_json() {
        output::done(&made)?;
    } else {
        output::line(&table::text(&made, "token"))?;
        if !context.format.is_quiet() {
            let (id, until) = (table::text(&made, "id"), table::text(&made, "expires_at"));
            let service = harmless(service);
            output::notice(&format!(
                "{id} of {service} is valid until {until}; it is shown only once"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(token: &Value) -> Vec<String> {
    let or_none = |name| match table::text(token, name) {
        text if text.is_empty() => "-".to_owned(),
        text => text,
    };
    vec![
        table::text(token, "id"),
        table::text(token, "service"),
        or_none("label"),
        if token["is_live"] == true { "yes" } else { "no" }.to_owned(),
        if token["is_proved"] == true { "yes" } else { "no" }.to_owned(),
        or_none("expires_at"),
        or_none("last_used_at"),
        table::text(token, "created_by"),
    ]
}
