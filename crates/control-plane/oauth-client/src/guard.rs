//! The addresses that requests of one server's sign-in may go to (C9, S9), and those to the
//! company's own identity providers.

use std::slice;

use narthex_http_client::{AllowedAddresses, Neighbourhood};
use narthex_oauth::Reach;
use url::{Host, Origin, Url};

/// The addresses that requests of one server's sign-in may go to: https to public hosts, and the
/// host's own network only for servers that are there themselves, as [`Neighbourhood`] says.
#[derive(Debug, Clone)]
pub struct Guard {
    reach: Reach,
    /// The origin of the server itself, whose documents are read as its messages are.
    server: Origin,
    near: Neighbourhood,
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
            near: Neighbourhood::of(server).await,
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
