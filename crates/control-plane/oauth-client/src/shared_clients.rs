//! Clients that an operator has registered for all servers of an authorization server (Q6).

use std::{fmt, sync::Arc};

use narthex_model::Secret;
use narthex_oauth::{Reach, client::ClientIdentity};
use url::{Host, Url};

use crate::store::GrantKey;

/// A client that an operator has registered, for servers whose entries name none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedClient {
    /// Its name in the settings.
    pub name: String,
    /// The authorization servers that know the client.
    pub issuer: IssuerRule,
    /// The client id.
    pub client_id: String,
    /// The client's secret, if it has one.
    pub client_secret: Option<Secret>,
    /// Hosts of the servers that may use it, maybe with `:port`; all if there are none.
    pub servers: Vec<String>,
    /// The workspaces that may use it; all if there are none.
    pub workspaces: Vec<String>,
}

/// The authorization servers that a shared client is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerRule {
    /// The issuer of this identifier.
    Exact(String),
    /// All issuers with https at this host.
    Host(String),
}

/// A text that is neither an issuer nor a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is neither an issuer, such as https://id.example.com/tenant, nor a host")]
pub struct NoIssuer;

impl IssuerRule {
    /// Reads an issuer or the name of a host.
    ///
    /// # Errors
    /// When the text is neither, or the address is not https (http on loopback).
    pub fn parse(text: &str) -> Result<Self, NoIssuer> {
        if !text.contains("://") {
            let is_host = |host: Host| matches!(&host, Host::Domain(name) if name.contains('.'));
            return match Host::parse(text).is_ok_and(is_host) {
                true => Ok(Self::Host(text.to_ascii_lowercase())),
                false => Err(NoIssuer),
            };
        }
        let url = Url::parse(text).map_err(|_error| NoIssuer)?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        match is_plain && Reach::of(&url).check(&url).is_ok() {
            true => Ok(Self::Exact(text.to_owned())),
            false => Err(NoIssuer),
        }
    }

    /// True for an issuer of the rule. Only an empty path may have a slash or none (Q1).
    fn has(&self, issuer: &str) -> bool {
        match self {
            Self::Exact(own) => {
                own == issuer
                    || bare(own).is_some_and(|own| bare(issuer).is_some_and(|issuer| issuer == own))
            }
            Self::Host(host) => Url::parse(issuer).is_ok_and(|url| {
                let is_usual = url.scheme() == "https" && url.port().is_none();
                is_usual && url.host_str() == Some(host)
            }),
        }
    }
}

/// An issuer with an empty path, without its slash.
fn bare(issuer: &str) -> Option<&str> {
    let has_no_path = Url::parse(issuer).is_ok_and(|url| url.path() == "/");
    has_no_path.then(|| issuer.trim_end_matches('/'))
}

impl SharedClient {
    fn is_for(&self, key: &GrantKey, server: &Url) -> bool {
        let host = server.host_str().unwrap_or_default();
        let with_port = server.port().map(|port| format!("{host}:{port}"));
        let is_it = |one: &String| one == host || Some(one) == with_port.as_ref();
        (self.servers.is_empty() || self.servers.iter().any(is_it))
            && (self.workspaces.is_empty() || self.workspaces.contains(&key.workspace))
    }

    /// The client with its proof.
    pub(crate) fn identity(&self, listed: Option<&[String]>) -> ClientIdentity {
        ClientIdentity::new(self.client_id.clone(), self.client_secret.clone(), listed)
    }
}

/// All shared clients of a process, in the order in which they are tried. Clones share them.
#[derive(Clone, Default)]
pub struct SharedClients(Arc<[SharedClient]>);

impl SharedClients {
    /// These clients.
    #[must_use]
    pub fn new(all: Vec<SharedClient>) -> Self {
        Self(all.into())
    }

    /// The clients in their order.
    #[must_use]
    pub fn all(&self) -> &[SharedClient] {
        &self.0
    }

    /// The clients at an issuer that a server may use.
    pub(crate) fn at<'c>(
        &'c self,
        issuer: &'c str,
        key: &'c GrantKey,
        server: &'c Url,
    ) -> impl Iterator<Item = &'c SharedClient> {
        self.0.iter().filter(move |one| one.issuer.has(issuer) && one.is_for(key, server))
    }
}

/// Shows the names alone.
impl fmt::Debug for SharedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|one| &one.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(issuer: &str) -> SharedClient {
        SharedClient {
            name: "chat".to_owned(),
            issuer: IssuerRule::parse(issuer).unwrap(),
            client_id: "app".to_owned(),
            client_secret: Some(Secret::new("canary-shared-client")),
            servers: Vec::new(),
            workspaces: Vec::new(),
        }
    }

    fn finds(client: SharedClient, issuer: &str, workspace: &str, server: &str) -> bool {
        let key = GrantKey { workspace: workspace.to_owned(), server: "x".to_owned(), user: None };
        let all = SharedClients::new(vec![client]);
        all.at(issuer, &key, &Url::parse(server).unwrap()).next().is_some()
    }

    #[test]
    fn oauth_q6_an_issuer_is_matched_exactly_or_by_its_host() {
        let at = |rule: &str, issuer: &str| finds(client(rule), issuer, "w", "https://m.example");
        for (rule, issuer) in [
            ("https://chat.example", "https://chat.example"),
            ("https://chat.example", "https://chat.example/"),
            ("https://chat.example/", "https://chat.example"),
            ("https://id.example/one", "https://id.example/one"),
            ("chat.example", "https://chat.example"),
            ("Chat.example", "https://chat.example/team"),
            ("http://127.0.0.1:4000", "http://127.0.0.1:4000"),
        ] {
            assert!(at(rule, issuer), "{rule} {issuer}");
        }
        for (rule, issuer) in [
            ("https://id.example/one", "https://id.example/one/"),
            ("https://id.example/one", "https://id.example/two"),
            ("https://chat.example", "https://chat.example.evil.example"),
            ("chat.example", "https://a.chat.example"),
            ("chat.example", "https://chat.example:8443"),
            ("chat.example", "http://chat.example"),
            ("chat.example", "https://chat.example@evil.example"),
        ] {
            assert!(!at(rule, issuer), "{rule} {issuer}");
        }
        for wrong in ["", "chat", "http://chat.example", "https://", "https://a.example/?x", "a b"]
        {
            assert_eq!(IssuerRule::parse(wrong), Err(NoIssuer), "{wrong}");
        }
    }

    #[test]
    fn oauth_q6_a_client_can_be_for_some_servers_and_workspaces() {
        let issuer = "https://chat.example";
        let limited = SharedClient {
            servers: vec!["mcp.chat.example".to_owned(), "127.0.0.1:5000".to_owned()],
            workspaces: vec!["team".to_owned()],
            ..client(issuer)
        };
        let finds = |workspace, server| finds(limited.clone(), issuer, workspace, server);
        assert!(finds("team", "https://mcp.chat.example/mcp"));
        assert!(finds("team", "http://127.0.0.1:5000/mcp"));
        assert!(!finds("other", "https://mcp.chat.example/mcp"));
        for server in ["https://evil.example/mcp", "http://127.0.0.1:5001/mcp"] {
            assert!(!finds("team", server), "{server}");
        }
    }

    #[test]
    fn s27_shared_clients_show_no_secret() {
        let client = client("https://chat.example");
        let all = SharedClients::new(vec![client.clone()]);
        let shown = format!("{client:?} {all:?}");
        assert!(!shown.contains("canary") && shown.contains("[\"chat\"]"), "{shown}");
    }
}
