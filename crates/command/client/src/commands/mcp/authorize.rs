//! `narthex mcp authorize`: signs in to a server in a browser, and waits until the server is ready.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use narthex_model::{
    ErrorKind, Timestamp,
    command::{narthex, quoted},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

use super::browser;
use crate::{
    Context, Failure,
    cli::AuthorizeArgs,
    commands::waiting::waiting,
    daemon_client::{DaemonClient, segment, server_path},
    output::{self, counted, harmless},
    stop::stop_signal,
    web::is_loopback,
};

/// The pause between two looks at the server, and at a sign-in on another device.
const PAUSE: Duration = Duration::from_millis(300);
const DEVICE_PAUSE: Duration = Duration::from_secs(2);
/// The time that a server gets to become ready once there are tokens.
const CONNECTING: Duration = Duration::from_secs(60);
/// The time from the return of the browser to the answer with tokens.
const EXCHANGING: Duration = Duration::from_secs(30);

pub(super) async fn run(
    args: &AuthorizeArgs,
    client: &DaemonClient,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let name = &*args.name;
    let end = if args.is_device { "/authorize?device=true" } else { "/authorize" };
    let asked = async {
        let before = client.api_get(server_path(name, "")).await?;
        Ok::<_, Failure>((before, client.api_post(server_path(name, end)).await?))
    };
    let asked = waiting(&format!("starting the sign-in to {name}"), context, asked).await;
    let (before, begun) = asked?;
    if args.is_device {
        return at_device(name, &begun, client, context).await;
    }
    let page = Page { name, url: text(&begun, "url"), before: &before };
    at_page(&page, args.has_no_browser, context).await
}

/// The page at which a person signs in to a server.
#[derive(Debug)]
pub(super) struct Page<'p> {
    pub(super) name: &'p str,
    pub(super) url: &'p str,
    /// The row of the server from before the page was shown.
    pub(super) before: &'p Value,
}

/// Shows the page, and waits for the end of the sign-in.
pub(super) async fn at_page(
    page: &Page<'_>,
    has_no_browser: bool,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let Page { name, url, before } = *page;
    let client = DaemonClient::operator(&context.daemon)?;
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| {
        let text = format!("the sign-in to `{}` has no address of the web", harmless(name));
        Failure::new(ErrorKind::Invalid, text)
    })?;
    let tunnel = tunnel(&url, context.daemon.daemon_url.as_deref());
    // A browser that is opened at once would come back to nothing.
    let is_open = !has_no_browser && tunnel.is_none() && browser::open(&url);
    if let Some(tunnel) = tunnel {
        output::notice(&harmless(&format!(
            "the browser comes back to the machine of the daemon, at an address that only that \
             machine has; run `{tunnel}` on this machine first, and leave it open"
        )));
    }
    let told = match is_open {
        true => format!("your browser opens the sign-in to {name}; if it does not, open"),
        false => format!("sign in to {name} at"),
    };
    let told = format!("{told} {url}");
    let work = until_ready(name, &client, Looks::new(before, None));
    let shown = format!("waiting for you at {name}");
    let work = waiting(&shown, context, work);
    let row = awaited(name, &told, work).await?;
    finish(name, &row, context)
}

/// The command that leads a browser of this machine to the daemon, if the redirect URI of a sign-in
/// is on the loopback interface of another machine.
fn tunnel(url: &Url, daemon_url: Option<&str>) -> Option<String> {
    let daemon = Url::parse(daemon_url?).ok().filter(|daemon| !is_loopback(daemon))?;
    let (_, back) = url.query_pairs().find(|(name, _)| name == "redirect_uri")?;
    let back =
        Url::parse(&back).ok().filter(|back| back.scheme() == "http" && is_loopback(back))?;
    let (port, here) = (back.port_or_known_default()?, back.host_str()?);
    let host = daemon.host_str()?.trim_start_matches('[').trim_end_matches(']');
    Some(format!("ssh -N -L {port}:{here}:{port} {}", quoted(host)))
}

async fn at_device(
    name: &str,
    begun: &Value,
    client: &DaemonClient,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let (place, code) = (text(begun, "verificationUri"), text(begun, "userCode"));
    let mut told = format!("open {place} on any device, and enter the code {code}");
    if let Some(whole) = begun["verificationUriComplete"].as_str() {
        told.push_str(&format!("; or open {whole}"));
    }
    let id = text(begun, "id");
    let work = async {
        until_agreed(name, id, client).await?;
        until_ready(name, client, Looks::new(&Value::Null, Some(Instant::now()))).await
    };
    let shown = format!("waiting for you at {name}");
    let work = waiting(&shown, context, work);
    let row = awaited(name, &told, work).await?;
    finish(name, &row, context)
}

/// Says what a person has to do, and does the work, unless a signal comes first: the sign-in stays
/// open then.
async fn awaited<T>(
    name: &str,
    told: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // Before the person reads anything: who stops this program then knows how to go on.
    let stopped = stop_signal()?;
    output::notice(&harmless(told));
    tokio::select! {
        done = work => done,
        () = stopped => {
            let list = narthex("mcp list", &[]);
            let text = format!(
                "stopped waiting; the sign-in to `{}` stays open for 10 minutes, and `{list}` \
                 shows when it is done",
                harmless(name)
            );
            Err(Failure::interrupted(text))
        }
    }
}

/// Waits until a person has agreed at another device.
async fn until_agreed(name: &str, id: &str, client: &DaemonClient) -> Result<(), Failure> {
    let path = server_path(name, &format!("/authorize/{}", segment(id)));
    loop {
        let state = client.api_get(path.clone()).await?;
        let why = match text(&state, "state") {
            "done" => return Ok(()),
            "pending" => {
                sleep(DEVICE_PAUSE).await;
                continue;
            }
            "denied" => "the sign-in was denied at the other device".to_owned(),
            "expired" => "no one has entered the code in time".to_owned(),
            _ => state["failure"].as_str().unwrap_or("the sign-in failed").to_owned(),
        };
        let again = narthex("mcp authorize {} --device", &[&name]);
        let text = format!("{}; try again with `{again}`", why.trim_end_matches('.'));
        return Err(Failure::new(ErrorKind::Conflict, text));
    }
}

/// Waits until the server is ready with tokens of this sign-in.
async fn until_ready(
    name: &str,
    client: &DaemonClient,
    mut looks: Looks,
) -> Result<Value, Failure> {
    loop {
        let row = client.api_get(server_path(name, "")).await?;
        match looks.at(&row, Instant::now()) {
            Look::Ready => return Ok(row),
            Look::Wait => {}
            Look::Failed(why) => return Err(failed(name, &why)),
        }
        sleep(PAUSE).await;
    }
}

/// The text of a member, or nothing.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn failed(name: &str, why: &str) -> Failure {
    let again = narthex("mcp authorize {}", &[&name]);
    let text = format!("{}; try again with `{again}`", why.trim_end_matches('.'));
    Failure::new(ErrorKind::Unavailable, text)
}

/// The state of a sign-in, as the row of its server shows it.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    Ready,
    Wait,
    Failed(String),
}

/// Observations of one sign-in so far.
#[derive(Debug)]
struct Looks {
    /// The sign-in of the row before this one.
    before: Value,
    /// The time since which there are tokens.
    agreed: Option<Instant>,
    /// The time since which no address is open and there are no tokens.
    closed: Option<Instant>,
}

impl Looks {
    /// `before` is the row from before the sign-in, and `agreed` the time of the consent, if it is
    /// known already.
    fn new(before: &Value, agreed: Option<Instant>) -> Self {
        Self { before: before["signIn"].clone(), agreed, closed: None }
    }

    fn at(&mut self, row: &Value, now: Instant) -> Look {
        let (sign_in, is_open) = (&row["signIn"], row["authUrl"].is_string());
        let has_tokens = sign_in["succeededAt"].is_string() && sign_in["failure"].is_null();
        // A renewal changes the tokens as well, and leaves the address open.
        if has_tokens && !is_open && *sign_in != self.before {
            self.agreed.get_or_insert(now);
        }
        if let Some(since) = self.agreed {
            return match text(row, "state") {
                "ready" => Look::Ready,
                "error" | "disabled" => Look::Failed(reason(row)),
                _ if now.duration_since(since) > CONNECTING => Look::Failed(reason(row)),
                _ => Look::Wait,
            };
        }
        if is_open {
            self.closed = None;
            return Look::Wait;
        }
        // The browser has come back, or the sign-in has ended.
        let since = *self.closed.get_or_insert(now);
        match now.duration_since(since) > EXCHANGING {
            true => Look::Failed(
                "the sign-in was not finished; its last page in the browser says why".to_owned(),
            ),
            false => Look::Wait,
        }
    }
}

fn reason(row: &Value) -> String {
    match row["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("you have signed in, but the server is {}", text(row, "state")),
    }
}

fn finish(name: &str, row: &Value, context: &Context) -> Result<ExitCode, Failure> {
    let tools = counted(row["tools"].as_u64().unwrap_or_default(), "tool");
    let end = row["signIn"]["expiresAt"].as_str().and_then(Timestamp::read);
    let end = match end {
        Some(end) if row["signIn"]["canRenew"] != true && end > SystemTime::now() => {
            format!("; its token ends at {} and cannot be renewed", Timestamp::new(end))
        }
        _ => String::new(),
    };
    output::told(row, &format!("{name} is ready: {tools}{end}"), context.format)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(state: &str, url: Option<&str>, succeeded: Option<&str>) -> Value {
        let sign_in = json!({ "succeededAt": succeeded });
        json!({ "state": state, "authUrl": url, "signIn": sign_in, "tools": 3 })
    }

    /// A server that was ready before its sign-in is not taken for one that has signed in.
    #[test]
    fn oauth_c16_a_sign_in_is_done_with_new_tokens_alone() {
        let (old, new) = (Some("2026-11-27T10:00:00.000Z"), Some("2026-11-27T11:00:00.000Z"));
        let open = Some("https://as.example.com/authorize");
        let now = Instant::now();
        let mut looks = Looks::new(&row("ready", open, old), None);
        assert_eq!(looks.at(&row("ready", open, old), now), Look::Wait);
        assert_eq!(looks.at(&row("authenticating", None, new), now), Look::Wait);
        assert_eq!(looks.at(&row("connecting", None, new), now), Look::Wait);
        assert_eq!(looks.at(&row("ready", None, new), now), Look::Ready);
        let late = now + CONNECTING + PAUSE;
        assert!(matches!(looks.at(&row("authenticating", None, new), late), Look::Failed(_)));
        assert!(matches!(looks.at(&row("error", None, new), now), Look::Failed(_)));
    }

    /// E29: a browser of another machine gets the command that leads it back, with the port of the
    /// redirect URI.
    #[test]
    fn e29_a_remote_daemon_on_loopback_needs_a_tunnel() {
        let of = |back: &str, daemon: Option<&str>| {
            let mut url = Url::parse("https://as.example.com/authorize").unwrap();
            url.query_pairs_mut().append_pair("redirect_uri", back);
            tunnel(&url, daemon)
        };
        let back = "http://127.0.0.1:4711/oauth/callback/linear";
        let command = "ssh -N -L 4711:127.0.0.1:4711 build.example.com";
        assert_eq!(of(back, Some("https://build.example.com:8443")).as_deref(), Some(command));
        let six = of("http://[::1]:4711/oauth/callback/x", Some("https://[2001:db8::1]"));
        assert_eq!(six.as_deref(), Some("ssh -N -L 4711:[::1]:4711 2001:db8::1"));
        assert_eq!(of(back, None), None);
        assert_eq!(of(back, Some("http://127.0.0.1:5000")), None, "there is a tunnel already");
        assert_eq!(of("https://n.example.com/oauth/callback", Some("https://x.example.com")), None);
        let plain = Url::parse("https://as.example.com/authorize").unwrap();
        assert_eq!(tunnel(&plain, Some("https://x.example.com")), None);
    }

    /// A sign-in that is over without tokens ends the wait, after the time of an exchange.
    #[test]
    fn oauth_c16_a_sign_in_that_ended_without_tokens_fails() {
        let now = Instant::now();
        let mut looks = Looks::new(&row("authenticating", Some("https://a.example"), None), None);
        let closed = row("authenticating", None, None);
        assert_eq!(looks.at(&closed, now), Look::Wait);
        assert_eq!(looks.at(&closed, now + EXCHANGING), Look::Wait);
        let Look::Failed(why) = looks.at(&closed, now + EXCHANGING + PAUSE) else {
            panic!("it still waits")
        };
        assert!(failed("linear", &why).message.ends_with("`narthex mcp authorize linear`"));
        // An address that is open again is another attempt.
        let mut looks = Looks::new(&closed, None);
        assert_eq!(looks.at(&closed, now), Look::Wait);
        let open = row("authenticating", Some("https://a.example"), None);
        assert_eq!(looks.at(&open, now + EXCHANGING * 2), Look::Wait);
        assert_eq!(looks.at(&closed, now + EXCHANGING * 3), Look::Wait);
    }
}
