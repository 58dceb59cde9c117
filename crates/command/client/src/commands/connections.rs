//! `narthex connections`: the sign-ins of humans to servers of the catalog, through the daemon.

use std::{process::ExitCode, time::Duration};

use http::Method;
use narthex_model::{ErrorKind, command::narthex};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use url::Url;

use super::{mcp::browser, waiting::waiting};
use crate::{
    Context, Failure,
    cli::{ConnectAccountArgs, ConnectionsCommand, WorkspaceArgs},
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    stop::stop_signal,
    table,
};

/// The pause between two looks at a connection.
const PAUSE: Duration = Duration::from_millis(500);
/// The life of an open sign-in.
const LIFE: Duration = Duration::from_mins(10);

pub async fn run(command: ConnectionsCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        ConnectionsCommand::List { user, place } => {
            list(&path(&place, user.as_deref()), &context).await
        }
        ConnectionsCommand::Connect(args) => connect(&args, &context).await,
        ConnectionsCommand::Disconnect { server, user, place } => {
            let path = format!("{}/{}", path(&place, user.as_deref()), segment(&server));
            let client = DaemonClient::operator(&context.daemon)?;
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting(&format!("disconnecting {server}"), &context, asked).await?;
            let told = format!("{server} is disconnected");
            output::told(&json!({ "server": server }), &told, context.format)
        }
    }
}

/// The connections of a human; of the caller by default.
fn path(place: &WorkspaceArgs, user: Option<&str>) -> String {
    let user = segment(user.unwrap_or("me"));
    workspace_path(&place.workspace, &format!("/users/{user}/mcp-tokens"))
}

async fn list(path: &str, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let items = waiting("asking the daemon", context, client.api_all(path)).await?;
    let header = ["server", "about", "connected", "renews", "signed in at"];
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let row = |one: &Value| {
        vec![
            table::text(one, "server"),
            table::text(one, "display_name"),
            yes(one["connected"] == true),
            yes(one["has_refresh_token"] == true),
            table::text(&one["sign_in"], "issuer"),
        ]
    };
    let none = "No server of the workspace has a sign-in of people.";
    table::list(&items, &header, row, none, context)
}

async fn connect(args: &ConnectAccountArgs, context: &Context) -> Result<ExitCode, Failure> {
    let ConnectAccountArgs { server, has_no_browser, place } = args;
    let client = DaemonClient::operator(&context.daemon)?;
    let all = path(place, None);
    let asked = async {
        let before = succeeded(&row(&client, &all, server).await?);
        let begun = client.api_post(format!("{all}/{}/connect", segment(server))).await?;
        Ok::<_, Failure>((before, begun))
    };
    let what = format!("starting the sign-in to {server}");
    let (before, begun) = waiting(&what, context, asked).await?;
    let url = begun["url"].as_str().and_then(|url| Url::parse(url).ok());
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(|| {
        let text = format!("the sign-in to `{}` has no address of the web", harmless(server));
        Failure::new(ErrorKind::Invalid, text)
    })?;
    let told = match !has_no_browser && browser::open(&url) {
        true => format!("your browser opens the sign-in to {server}; if it does not, open"),
        false => format!("sign in to {server} at"),
    };
    output::notice(&harmless(&format!("{told} {url}")));
    let stopped = stop_signal()?;
    let work = until_connected(&client, &all, server, before);
    let what = format!("waiting for you at {server}");
    let work = waiting(&what, context, work);
    tokio::select! {
        done = work => {
            output::told(&done?, &format!("{server} is connected"), context.format)
        }
        () = stopped => {
            let list = narthex("connections list", &[]);
            let text = format!("stopped waiting; `{list}` shows when `{server}` is connected");
            Err(Failure::interrupted(harmless(&text)))
        }
    }
}

/// Waits until there are newer tokens than those of `before`.
async fn until_connected(
    client: &DaemonClient,
    all: &str,
    server: &str,
    before: Option<String>,
) -> Result<Value, Failure> {
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        let row = row(client, all, server).await?;
        if row["connected"] == true && succeeded(&row) != before {
            return Ok(row);
        }
        sleep(PAUSE).await;
    }
    let again = narthex("connections connect {}", &[&server]);
    let text = format!("the sign-in was not finished in time; try again with `{again}`");
    Err(Failure::new(ErrorKind::Timeout, text))
}

/// The row of a server; null if there is none.
async fn row(client: &DaemonClient, all: &str, server: &str) -> Result<Value, Failure> {
    let items = client.api_all(all).await?;
    Ok(items.into_iter().find(|one| one["server"] == server).unwrap_or_default())
}

/// The time of the last request for tokens that succeeded.
fn succeeded(row: &Value) -> Option<String> {
    row["sign_in"]["succeededAt"].as_str().map(str::to_owned)
}
