//! The addresses that requests of one server's sign-in may go to (C9, S9), and those to the
//! company's own identity providers.

use std::{net::IpAddr, slice};

use narthex_http_client::AllowedAddresses;
use narthex_oauth::Reach;
use tokio::net::lookup_host;
use url::{Host, Origin, Url};

/// Ends of names that exist in own networks alone.
const OWN_NAMES: [&str; 5] = ["home", "internal", "intranet", "lan", "local"];

/// The addresses that requests of one server's sign-in may go to: https to public hosts, and the
/// host's own network only for servers that are there themselves.
///
/// The owner of a name can lead it to any network. So a server's name opens that network only to
/// names beside it.
#[derive(Debug, Clone)]
pub struct Guard {
    reach: Reach,
    /// The origin of the server itself, whose documents are read as its messages are.
    server: Origin,
    near: Near,
    /// Hosts that an operator chose for this server.
    chosen: Vec<Host<String>>,
}

impl Guard {
    /// The guard of a server. `chosen` are further addresses of an operator's choice.
    pub(crate) async fn of(server: &Url, chosen: &[Url]) -> Self {
        let hosts = chosen.iter().filter_map(|url| url.host().map(|host| host.to_owned()));
        Self {
            reach: Reach::of(server),
            server: server.origin(),
            near: Near::of(server).await,
            chosen: hosts.collect(),
        }
    }

    /// The guard of what an address names that an operator chose, such as an identity provider's.
    pub async fn of_choice(url: &Url) -> Self {
        Self::of(url, slice::from_ref(url)).await
    }

    /// The rule for addresses that another party names.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// The same for a document, which may be at the server itself whatever its scheme is.
    pub(crate) fn readable(&self, url: &Url) -> Option<AllowedAddresses> {
        let is_own = url.origin() == self.server && matches!(url.scheme(), "http" | "https");
        match is_own {
            // An operator chose this address.
            true => Some(AllowedAddresses::Anywhere),
            false => self.allowed(url),
        }
    }

    /// The addresses to which a client for this address may connect; `None` if the address must not
    /// be used at all.
    #[must_use]
    pub fn allowed(&self, url: &Url) -> Option<AllowedAddresses> {
        let host = url.host()?.to_owned();
        let is_chosen = self.chosen.contains(&host);
        // An operator may choose an authorization server on loopback for any server.
        let is_usable =
            self.reach.check(url).is_ok() || (is_chosen && Reach::of(url).check(url).is_ok());
        is_usable.then_some(match is_chosen || self.near.has(&host) {
            true => AllowedAddresses::Anywhere,
            false => AllowedAddresses::Public,
        })
    }
}

/// The hosts that may be on loopback or in a private network, as the server itself is there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Near {
    Nowhere,
    /// All hosts: the operator wrote an address, or a name that only the own network has.
    All,
    /// The host of this name, and those with the same parent.
    Beside(String),
}

impl Near {
    async fn of(server: &Url) -> Self {
        let all_if = |is_private| if is_private { Self::All } else { Self::Nowhere };
        match server.host() {
            Some(Host::Ipv4(ip)) => all_if(is_private(ip.into())),
            Some(Host::Ipv6(ip)) => all_if(is_private(ip.into())),
            Some(Host::Domain("localhost")) => Self::All,
            Some(Host::Domain(name)) => {
                let port = server.port_or_known_default().unwrap_or(443);
                match leads_inside(name, port).await {
                    true if is_of_own_network(name) => Self::All,
                    true => Self::Beside(name.to_owned()),
                    false => Self::Nowhere,
                }
            }
            None => Self::Nowhere,
        }
    }

    fn has(&self, host: &Host<String>) -> bool {
        match (self, host) {
            (Self::All, _) => true,
            (Self::Beside(name), Host::Domain(host)) => is_beside(name, host),
            (Self::Beside(_), Host::Ipv4(_) | Host::Ipv6(_)) | (Self::Nowhere, _) => false,
        }
    }
}

fn is_private(ip: IpAddr) -> bool {
    !AllowedAddresses::Public.permits(ip)
}

/// True if a name leads to loopback or a private network, and nowhere else.
async fn leads_inside(name: &str, port: u16) -> bool {
    match lookup_host((name, port)).await {
        Ok(found) => {
            let found: Vec<_> = found.collect();
            !found.is_empty() && found.iter().all(|address| is_private(address.ip()))
        }
        Err(_unknown) => false,
    }
}

/// True for a name that no one can register for the whole Internet.
fn is_of_own_network(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let end = name.rsplit('.').next().unwrap_or_default();
    !name.contains('.') || OWN_NAMES.contains(&end)
}

/// True for the name of a server, and for those with the same parent.
fn is_beside(server: &str, host: &str) -> bool {
    let (server, host) = (server.trim_end_matches('.'), host.trim_end_matches('.'));
    // The parent of a name with one dot is a whole part of the Internet.
    let parent = server.split_once('.').map(|(_, parent)| parent);
    let parent = parent.filter(|parent| parent.contains('.'));
    let start = parent.and_then(|parent| host.strip_suffix(parent));
    host == server || start.is_some_and(|start| start.is_empty() || start.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use narthex_testkit::addresses::INSIDE;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    async fn guard(server: &str, chosen: &[&str]) -> Guard {
        let chosen: Vec<_> = chosen.iter().map(|text| url(text)).collect();
        Guard::of(&url(server), &chosen).await
    }

    /// X-E37, X-E40, S9.
    #[tokio::test]
    async fn oauth_c9_a_public_server_leads_to_public_hosts_only() {
        let guard = guard("https://1.1.1.1/mcp", &[]).await;
        assert_eq!(guard.allowed(&url("https://as.example/x")), Some(AllowedAddresses::Public));
        // The address is checked when it is dialled.
        assert_eq!(guard.allowed(&url("https://10.0.0.1/x")), Some(AllowedAddresses::Public));
        for never in ["http://as.example/x", "http://127.0.0.1/x", "file:///etc/passwd"] {
            assert_eq!(guard.allowed(&url(never)), None, "{never}");
        }
    }

    #[tokio::test]
    async fn oauth_c9_a_server_on_loopback_or_in_a_private_network_leads_there() {
        let local = guard("http://127.0.0.1:1/mcp", &[]).await;
        let anywhere = Some(AllowedAddresses::Anywhere);
        assert_eq!(local.allowed(&url("http://localhost:2/x")), anywhere);
        assert_eq!(local.allowed(&url("http://as.example/x")), None);
        let private = guard("https://10.1.2.3/mcp", &[]).await;
        assert_eq!(private.allowed(&url("https://10.1.2.4/x")), anywhere);
        assert_eq!(private.allowed(&url("http://127.0.0.1/x")), None);
    }

    /// S9: the owner of a public name leads it to a private network while narthex looks.
    #[test]
    fn s9_a_name_that_leads_inside_opens_no_other_hosts() {
        let near = Near::Beside("mcp.evil.example".to_owned());
        let has = |text: &str| near.has(&Host::parse(text).unwrap());
        for its_own in ["mcp.evil.example", "sso.evil.example", "evil.example", "a.b.evil.example"]
        {
            assert!(has(its_own), "{its_own}");
        }
        for other in ["10.0.0.1", "[::1]", "localhost", "wiki.corp.example", "notevil.example"] {
            assert!(!has(other), "{other}");
        }
        assert!(!is_beside("evil.example", "corp.example"));
        assert!(!Near::Nowhere.has(&Host::parse("10.0.0.1").unwrap()));
        for own in ["mcp", "mcp.lan", "a.b.internal."] {
            assert!(is_of_own_network(own), "{own}");
        }
        assert!(!is_of_own_network("mcp.corp.example"));
    }

    #[tokio::test]
    async fn oauth_c9_documents_are_read_at_the_server_itself_and_nothing_is_sent_in_the_clear() {
        let guard = guard("http://10.1.2.3/mcp", &[]).await;
        let own = url("http://10.1.2.3/.well-known/x");
        assert_eq!(guard.readable(&own), Some(AllowedAddresses::Anywhere));
        assert_eq!(guard.allowed(&own), None);
        assert_eq!(guard.readable(&url("http://10.1.2.4/.well-known/x")), None);
    }

    /// S9: whatever its spelling, an address of this machine or its networks is refused at once, or
    /// when it is dialled.
    #[tokio::test]
    async fn s9_oauth_c9_a_public_server_opens_no_inner_address() {
        let choice = Guard::of_choice(&url("https://1.1.1.1/issuer")).await;
        for guard in [guard("https://1.1.1.1/mcp", &[]).await, choice] {
            for inside in INSIDE {
                let allowed = guard.allowed(&url(inside));
                assert_ne!(allowed, Some(AllowedAddresses::Anywhere), "{inside}");
                assert_eq!(guard.readable(&url(inside)), allowed, "{inside}");
            }
        }
    }

    /// S9: an operator chooses the host of an identity provider, and no host that it names.
    #[tokio::test]
    async fn oauth_c9_a_chosen_address_is_reached_wherever_it_is() {
        let anywhere = Some(AllowedAddresses::Anywhere);
        let public = Guard::of_choice(&url("https://1.1.1.1/issuer")).await;
        assert_eq!(public.allowed(&url("https://1.1.1.1/keys")), anywhere);
        let other = Some(AllowedAddresses::Public);
        assert_eq!(public.allowed(&url("https://keys.example/jwks")), other);
        assert_eq!(public.allowed(&url("http://1.1.1.1/keys")), None);
        let inner = Guard::of_choice(&url("https://10.1.2.3/issuer")).await;
        assert_eq!(inner.allowed(&url("https://10.1.2.4/keys")), anywhere);
        let local = Guard::of_choice(&url("http://127.0.0.1:9000")).await;
        assert_eq!(local.allowed(&url("http://127.0.0.1:9001/keys")), anywhere);
    }

    #[tokio::test]
    async fn oauth_c9_a_host_of_the_settings_may_be_private() {
        let guard = guard("https://1.1.1.1/mcp", &["https://10.0.0.1/realm"]).await;
        let anywhere = Some(AllowedAddresses::Anywhere);
        assert_eq!(guard.allowed(&url("https://10.0.0.1/token")), anywhere);
        assert_eq!(guard.allowed(&url("https://10.0.0.2/x")), Some(AllowedAddresses::Public));
    }
}
