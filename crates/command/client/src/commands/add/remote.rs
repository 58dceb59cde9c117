//! The addresses of remote servers that a registry names: none of them leads the daemon into its
//! own network, unless the registry is there itself (S9).

use std::time::Duration;

use narthex_http_client::Neighbourhood;
use narthex_model::{ErrorKind, command::narthex};
use tokio::time::timeout;
use url::Url;

use crate::{
    Failure,
    output::harmless,
    public_registry::ways::{Way, WayKind},
    web::without_query,
};

/// Longest time to look a name up. A name that is not known in time is left to the trial.
const LOOK: Duration = Duration::from_secs(10);

/// Checks the address of a remote server. A host that the user fills in is the user's choice, and
/// other ways have no address.
///
/// # Errors
/// When the address leads to this machine or to a private network that the registry is not in.
pub(super) async fn check(way: &Way, registry: &Url) -> Result<(), Failure> {
    let is_remote = matches!(way.kind, WayKind::Http | WayKind::Sse);
    let url = Url::parse(&way.target).ok().filter(|_| is_remote);
    let Some((url, host)) = url.and_then(|url| Some((url.clone(), url.host()?.to_owned()))) else {
        return Ok(());
    };
    let look = async {
        let is_near = Neighbourhood::of(registry).await.has(&host);
        !is_near && Neighbourhood::of(&url).await.is_private()
    };
    if !timeout(LOOK, look).await.unwrap_or_default() {
        return Ok(());
    }
    let add = narthex("mcp add NAME --url URL", &[]);
    let text = format!(
        "the remote server {} is on this machine or in a private network, and the registry is not; \
         nothing was asked or stored. If you know the server, add it with `{add}`",
        without_query(&url)
    );
    Err(Failure::new(ErrorKind::Invalid, harmless(&text)))
}

#[cfg(test)]
mod tests {
    use narthex_testkit::addresses::INSIDE;
    use serde_json::json;

    use super::*;
    use crate::public_registry::ways::ways;

    async fn ask(address: &str, registry: &str) -> Result<(), Failure> {
        let remote = json!({ "type": "streamable-http", "url": address });
        let server = json!({ "name": "a/b", "remotes": [remote] });
        let (usable, _) = ways(&serde_json::from_value(server).unwrap());
        check(&usable[0], &Url::parse(registry).unwrap()).await
    }

    /// S9: a public registry names no server of the user's own network, in any spelling.
    #[tokio::test]
    async fn s9_a_public_registry_names_no_server_inside() {
        for inside in INSIDE {
            let failure = ask(inside, "https://1.1.1.1").await.unwrap_err();
            assert!(
                failure.message.contains("narthex mcp add NAME --url URL"),
                "{inside}: {failure}"
            );
        }
        for fine in ["https://1.0.0.1/mcp", "https://{host}/mcp", "https://1.0.0.1/{x}"] {
            ask(fine, "https://1.1.1.1").await.unwrap();
        }
    }

    /// A registry of this machine or of a company names its neighbours.
    #[tokio::test]
    async fn s9_a_registry_inside_names_servers_there() {
        ask("https://10.0.0.2/mcp", "https://10.0.0.1").await.unwrap();
        ask("https://127.0.0.1:1/mcp", "http://127.0.0.1:2").await.unwrap();
    }
}
