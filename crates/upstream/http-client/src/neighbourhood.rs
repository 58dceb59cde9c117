//! The hosts of this machine and its networks that an operator's choice opens to others (S9).

use std::net::IpAddr;

use tokio::net::lookup_host;
use url::{Host, Url};

use crate::AllowedAddresses;

/// Ends of names that exist in own networks alone.
const OWN_NAMES: [&str; 5] = ["home", "internal", "intranet", "lan", "local"];

/// The hosts that may be on loopback or in a private network, as the server that names them is
/// there itself.
///
/// The owner of a name can lead it to any network. So a server's name opens that network only to
/// names beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbourhood(Near);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Near {
    Nowhere,
    /// All hosts: the operator wrote an address, or a name that only the own network has.
    All,
    /// The host of this name, and those with the same parent.
    Beside(String),
}

impl Neighbourhood {
    /// The neighbourhood of a server that an operator chose. Looks its name up.
    pub async fn of(server: &Url) -> Self {
        let all_if = |is_private| Self(if is_private { Near::All } else { Near::Nowhere });
        match server.host() {
            Some(Host::Ipv4(ip)) => all_if(is_private(ip.into())),
            Some(Host::Ipv6(ip)) => all_if(is_private(ip.into())),
            Some(Host::Domain("localhost")) => Self(Near::All),
            Some(Host::Domain(name)) => {
                let port = server.port_or_known_default().unwrap_or(443);
                match leads_inside(name, port).await {
                    true if is_of_own_network(name) => Self(Near::All),
                    true => Self::beside(name),
                    false => Self(Near::Nowhere),
                }
            }
            None => Self(Near::Nowhere),
        }
    }

    /// The neighbourhood of a name that leads to a private network.
    #[must_use]
    pub fn beside(name: &str) -> Self {
        Self(Near::Beside(name.to_owned()))
    }

    /// True if the server is on this machine or in a private network itself.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.0 != Near::Nowhere
    }

    /// True for a host that may be anywhere.
    #[must_use]
    pub fn has(&self, host: &Host<String>) -> bool {
        match (&self.0, host) {
            (Near::All, _) => true,
            (Near::Beside(name), Host::Domain(host)) => is_beside(name, host),
            (Near::Beside(_), Host::Ipv4(_) | Host::Ipv6(_)) | (Near::Nowhere, _) => false,
        }
    }

    /// The addresses to which a client for this address may connect.
    #[must_use]
    pub fn reach(&self, url: &Url) -> AllowedAddresses {
        match url.host().is_some_and(|host| self.has(&host.to_owned())) {
            true => AllowedAddresses::Anywhere,
            false => AllowedAddresses::Public,
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
    use super::*;

    /// S9: the owner of a public name leads it to a private network while narthex looks.
    #[test]
    fn s9_a_name_that_leads_inside_opens_no_other_hosts() {
        let near = Neighbourhood::beside("mcp.evil.example");
        let has = |text: &str| near.has(&Host::parse(text).unwrap());
        for its_own in ["mcp.evil.example", "sso.evil.example", "evil.example", "a.b.evil.example"]
        {
            assert!(has(its_own), "{its_own}");
        }
        for other in ["10.0.0.1", "[::1]", "localhost", "wiki.corp.example", "notevil.example"] {
            assert!(!has(other), "{other}");
        }
        assert!(!is_beside("evil.example", "corp.example"));
        assert!(!Neighbourhood(Near::Nowhere).has(&Host::parse("10.0.0.1").unwrap()));
        for own in ["mcp", "mcp.lan", "a.b.internal."] {
            assert!(is_of_own_network(own), "{own}");
        }
        assert!(!is_of_own_network("mcp.corp.example"));
    }

    /// S9: an address of the operator's choice opens its network, and a public one opens none.
    #[tokio::test]
    async fn s9_a_server_opens_its_own_network_alone() {
        let reach = async |server: &str, other: &str| {
            let near = Neighbourhood::of(&Url::parse(server).unwrap()).await;
            near.reach(&Url::parse(other).unwrap())
        };
        let inside = "https://10.0.0.7/x";
        for own in ["https://10.0.0.1", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"]
        {
            assert_eq!(reach(own, inside).await, AllowedAddresses::Anywhere, "{own}");
        }
        assert_eq!(reach("https://1.1.1.1", inside).await, AllowedAddresses::Public);
    }
}
