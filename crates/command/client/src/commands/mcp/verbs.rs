//! Verbs for one server, or for the files, in one step.

use std::{process::ExitCode, time::SystemTime};

use http::Method;
use narthex_model::{CallError, ErrorKind, command::narthex};
use serde_json::{Value, json};

use super::{Whose, authorize, text, with_names};
use crate::{
    Context, Failure,
    cli::ReauthorizeArgs,
    commands::{add::left, files, waiting::waiting},
    daemon_client::{ApiRequest, DaemonClient, server_path},
    data_dir::DataDir,
    output::{self, counted, harmless},
    public_registry::bundle::Bundles,
    rows::logs_of,
};

pub(super) async fn reload(context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = waiting("reading the files", context, client.api_post("/api/reload"));
    let reloaded = asked.await?;
    let files = reloaded["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let now = SystemTime::now();
    let refused = files::refused(files, now);
    if !refused.is_empty() {
        let failure = Failure::new(ErrorKind::Invalid, refused.join("\n"));
        return Err(failure.with_details(Some(reloaded)));
    }
    if context.format.is_json() {
        output::done(&reloaded)?;
        return Ok(ExitCode::SUCCESS);
    }
    for sentence in files::gone(files, now) {
        output::notice(&format!("warning: {sentence}"));
    }
    let count = reloaded["server_count"].as_u64().unwrap_or(0);
    match context.format.is_quiet() {
        true => output::line(&count.to_string())?,
        false => output::line(&counted(count, "server"))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn remove(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    // The entry is gone afterwards.
    let named = left::named(&client, name, context).await;
    let request = ApiRequest::new(Method::DELETE, server_path(name, ""));
    match waiting(&format!("removing {name}"), context, client.api(request)).await {
        Ok(_) => {
            let secrets = left::secrets(&client, name, &named).await;
            let had_bundle = without_bundle(name, context);
            let end = if had_bundle { " and its bundle" } else { "" };
            let data = json!({ "name": name, "had_bundle": had_bundle, "left_secrets": secrets });
            let done = told(&data, &format!("removed {name}{end}"), context);
            left::tell(&secrets, context);
            done
        }
        Err(failure) => Err(with_names(name, Whose::Settings, failure, &client).await),
    }
}

/// Removes the files of a server that came as a bundle. True if there were some.
fn without_bundle(name: &str, context: &Context) -> bool {
    // Bundles of a daemon that is named by its address are elsewhere.
    if context.daemon.daemon_url.is_some() {
        return false;
    }
    match Bundles::of(&DataDir::at(&context.daemon.data)).remove(name) {
        Ok(count) => count > 0,
        Err(failure) => {
            output::notice(&format!("warning: {}", harmless(&failure.message)));
            false
        }
    }
}

pub(super) async fn disable(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    let answer = post(name, "disable", context).await?;
    told(&answer, &format!("{name} is disabled"), context)
}

pub(super) async fn enable(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    came_out(name, &post(name, "enable", context).await?, context)
}

pub(super) async fn reauthorize(
    args: &ReauthorizeArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let name = &*args.name;
    let answer = post(name, "reauthorize", context).await?;
    if answer["result"]["status"] == "authenticating" {
        let url = text(&answer["result"], "authUrl");
        let page = authorize::Page { name, url, before: &answer["server"] };
        return authorize::at_page(&page, args.has_no_browser, context).await;
    }
    match no_sign_in(name, text(&answer["server"], "auth")) {
        Some(failure) => Err(failure),
        None => came_out(name, &answer, context),
    }
}

pub(super) async fn sign_out(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    let answer = post(name, "sign-out", context).await?;
    told(&answer, &format!("signed out of {name}"), context)
}

/// The failure for a server at which no person signs in, by the mode of its authentication. `None`
/// if a person signs in, or the mode is not known.
fn no_sign_in(name: &str, mode: &str) -> Option<Failure> {
    let first = match mode {
        "none" => "",
        "apiKey" => "correct its key if the server refuses it, and ",
        "clientCredentials" => "correct its client if the server refuses it, and ",
        _ => return None,
    };
    let reconnect = narthex("mcp reconnect {}", &[&name]);
    let text = format!(
        "`{}` has no sign-in, so nothing was changed; {first}connect it anew with `{reconnect}`",
        harmless(name)
    );
    Some(Failure::new(ErrorKind::Conflict, text))
}

pub(super) async fn reconnect(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    came_out(name, &post(name, "reconnect", context).await?, context)
}

async fn post(name: &str, verb: &str, context: &Context) -> Result<Value, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api_post(server_path(name, &format!("/{verb}")));
    match waiting(&format!("{verb} {name}"), context, asked).await {
        Ok(answer) => Ok(answer),
        Err(failure) => Err(with_names(name, Whose::Daemon, failure, &client).await),
    }
}

/// Shows the result of a verb for a server; the command fails if the server has failed.
fn came_out(name: &str, answer: &Value, context: &Context) -> Result<ExitCode, Failure> {
    let result = &answer["result"];
    if result["status"] == "error" {
        let error = serde_json::from_value::<CallError>(result["error"].clone());
        let mut error = error.map_err(|error| {
            let text = format!("the daemon's answer cannot be read: {error}");
            Failure::new(ErrorKind::Invalid, text)
        })?;
        let logs = logs_of(name, error.kind.as_str(), answer["server"]["has_logs"] == true);
        error.message.push_str(&logs.unwrap_or_default());
        return Err(Failure::call(error));
    }
    let how = match (text(result, "status"), result["toolCount"].as_u64()) {
        ("ready", Some(count)) => format!("ready: {}", counted(count, "tool")),
        ("authenticating", _) => format!("waiting for a sign-in at {}", text(result, "authUrl")),
        (other, _) => other.to_owned(),
    };
    told(answer, &format!("{name} is {how}"), context)
}

fn told(data: &Value, sentence: &str, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(data)?;
    } else if !context.format.is_quiet() {
        output::sentence(&harmless(sentence))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E59: a request for a sign-in that does not exist is no success.
    #[test]
    fn e59_a_server_without_sign_in_is_told_how_to_connect_anew() {
        for (mode, remedy) in [
            ("none", "so nothing was changed; connect it anew with `narthex mcp reconnect git`"),
            ("apiKey", "correct its key"),
            ("clientCredentials", "correct its client"),
        ] {
            let failure = no_sign_in("git", mode).unwrap();
            assert!(failure.message.starts_with("`git` has no sign-in"), "{failure}");
            assert!(failure.message.contains(remedy), "{failure}");
        }
        for mode in ["authorizationCode", ""] {
            assert_eq!(no_sign_in("git", mode), None, "{mode}");
        }
    }
}
