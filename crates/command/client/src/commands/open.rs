//! `narthex open`: opens the console in the browser of this machine, signed in by a link.

use std::process::ExitCode;

use http::Method;
use narthex_model::{ErrorKind, command::narthex};
use serde_json::{Value, json};
use url::Url;

use super::{mcp::browser, waiting::waiting};
use crate::{
    Context, Failure,
    cli::OpenArgs,
    daemon_client::{ApiRequest, DaemonClient, segment},
    environment,
    output::{self, harmless},
};

/// The variables with the name of the user on this machine.
const USERS: [&str; 2] = ["USER", "LOGNAME"];
/// The name of the first human where the user has none that can be used.
const NAMELESS: &str = "me";

/// Makes a link for a human, and opens it.
///
/// # Errors
/// When the daemon cannot be reached or refuses, or it is unclear who the human is.
pub async fn run(args: OpenArgs, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let name = match args.name {
        Some(name) => name,
        None => the_human(&client, &context).await?,
    };
    let path = format!("/api/principals/{}/sign-in-links", segment(&name));
    let asked = client.api(ApiRequest::new(Method::POST, path));
    let made = waiting("asking the daemon", &context, asked).await?;
    let link = made["url"].as_str().unwrap_or_default();
    let url = Url::parse(link).ok();
    let is_open = !args.has_no_browser && url.is_some_and(|url| browser::open(&url));
    if context.format.is_json() {
        output::done(&made)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&harmless(link))?;
    if !context.format.is_quiet() {
        output::notice(&match is_open {
            true => format!("your browser opens the console as {name}; if not, open this link"),
            false => format!("open this link in a browser to see the console as {name}"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// The only operator among the humans, who is created if there are no humans.
async fn the_human(client: &DaemonClient, context: &Context) -> Result<String, Failure> {
    let all = waiting("asking the daemon", context, client.api_all("/api/principals")).await?;
    let humans = || all.iter().filter(|one| one["kind"] == "human");
    let operators: Vec<_> = humans()
        .filter(|one| one["is_operator"] == true && one["disabled_at"].is_null())
        .filter_map(|one| one["name"].as_str())
        .collect();
    match operators.as_slice() {
        [name] => Ok((*name).to_owned()),
        [] if humans().next().is_none() => create(client, context).await,
        [] => {
            let open = narthex("open NAME", &[]);
            let text = format!("no human is an operator; name one of the humans with `{open}`");
            Err(Failure::new(ErrorKind::Conflict, text))
        }
        several => {
            let open = narthex("open NAME", &[]);
            let names = several.iter().map(|name| harmless(name)).collect::<Vec<_>>().join(", ");
            let text = format!("several humans are operators ({names}); name one with `{open}`");
            Err(Failure::new(ErrorKind::Conflict, text))
        }
    }
}

/// Creates the first human, as an operator with the name of the user.
async fn create(client: &DaemonClient, context: &Context) -> Result<String, Failure> {
    let name = name_of(USERS.iter().find_map(|name| environment::variable(name)).as_deref());
    let body: Value = json!({ "name": name, "is_operator": true });
    let request = ApiRequest::new(Method::POST, "/api/principals").entry(&body.to_string());
    waiting("creating your account", context, client.api(request)).await?;
    if context.format.is_text() {
        output::notice(&format!("created the account {name}, an operator"));
    }
    Ok(name)
}

/// The name of an account, from a name on this machine.
fn name_of(user: Option<&str>) -> String {
    let fits = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._@+-".contains(*c);
    let user = user.unwrap_or_default().to_ascii_lowercase();
    let name: String = user.chars().filter(fits).take(128).collect();
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each name on a machine becomes one that an account can have.
    #[test]
    fn names_of_users_become_names_of_accounts() {
        for (user, name) in [
            (Some("ada"), "ada"),
            (Some("Ada Lovelace"), "adalovelace"),
            (Some("größe"), "gre"),
            (Some("  "), "me"),
            (None, "me"),
        ] {
            assert_eq!(name_of(user), name);
        }
    }
}
