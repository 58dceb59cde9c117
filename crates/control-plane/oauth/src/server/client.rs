//! Clients of the authorization server, as they are stored.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::{client_keys::ClientKeys, redirect::RedirectUri, text::ClientName, time::StoredTime};
use crate::{
    TokenHash,
    random::random_text,
    scopes::{OFFLINE_ACCESS, Scopes},
};

/// Time after which a registered client that was never used is forgotten.
pub const UNUSED_LIFE: Duration = Duration::from_hours(7 * 24);
/// The longest client id, in bytes.
const ID_MAX: usize = 2048;
/// The first characters of the id of a client that registered itself.
const REGISTERED: &str = "dcr-";

/// The id of a client: one that narthex gave, or the https address of the client's metadata
/// document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(String);

/// A text is no client id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client id is malformed: it must be the id of one client")]
pub struct BadClientId;

/// A known client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// The id.
    pub id: ClientId,
    /// The client's own name for itself.
    pub name: ClientName,
    /// The client's own page, if it names a usable one.
    pub link: Option<String>,
    /// The admitted redirect URIs, as the client wrote them.
    pub redirect_uris: Vec<RedirectUri>,
    /// The proof that the client has to bring to the token endpoint.
    pub proof: ClientProof,
    /// The registered scopes; `None` if the client registered without naming any.
    pub scopes: Option<Scopes>,
    /// The registered kind of application, which decides nothing.
    pub application_type: Option<String>,
    /// The way in which the client became known.
    pub origin: ClientOrigin,
    /// Time of registration, or of the first sight of its document.
    pub created_at: StoredTime,
    /// Time of the last use; `None` before the first.
    pub used_at: Option<StoredTime>,
}

/// The way in which a client became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientOrigin {
    /// An operator registered it, and chose its id.
    Operator,
    /// It registered itself.
    Registration,
    /// Its id is the address of its metadata document.
    Document,
}

/// The proof that a client brings to the token endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientProof {
    /// None: a public client, which PKCE protects.
    Public,
    /// A secret, of which the hash is stored.
    Secret(TokenHash),
    /// An assertion that is signed with a private key, of which the public keys are known.
    Keys(ClientKeys),
}

impl ClientId {
    /// Reads the id in a request. It is the id of one client: two ids in one text are refused, as
    /// is an address that is not written in its usual form.
    ///
    /// # Errors
    /// When the text is no client id.
    pub fn parse(text: &str) -> Result<Self, BadClientId> {
        let is_url = text.contains(':') || text.contains('/');
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        let is_id = match is_url {
            true => document_url(text).is_some(),
            false => !text.is_empty() && text.bytes().all(is_plain),
        };
        (text.len() <= ID_MAX && is_id).then(|| Self(text.to_owned())).ok_or(BadClientId)
    }

    /// Generates the id of a client that registers itself.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn generate() -> Result<Self, getrandom::Error> {
        Ok(Self(format!("{REGISTERED}{}", random_text::<16>()?)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address of the client's metadata document; `None` for a client with another id.
    #[must_use]
    pub fn document_url(&self) -> Option<Url> {
        document_url(&self.0)
    }
}

/// Reads a client id that is the address of a document (Client ID Metadata Document, 3): https, on
/// a host with a public name, with a path, and without user name, fragment and dots as segments.
fn document_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    let has_public_name = match url.host() {
        Some(Host::Domain(name)) => name.contains('.') && !name.ends_with(['.', '-']),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => false,
    };
    // The usual form has no segments that are dots, and no second address inside.
    let is_usual = url.as_str() == text && !text.contains([' ', ',', '\'', '"']);
    let has_path = url.path() != "/";
    let is_good = url.scheme() == "https" && is_usual && has_public_name && has_path;
    (is_good && !has_user && url.fragment().is_none()).then_some(url)
}

impl Client {
    /// The redirect URI of an authorization request, if a registered one admits it.
    #[must_use]
    pub fn redirect_uri(&self, requested: &str) -> Option<RedirectUri> {
        self.redirect_uris.iter().find_map(|uri| uri.admitted(requested))
    }

    /// The host that the client proved to own, which is that of its metadata document. `None` for a
    /// client that registered itself, which proved nothing.
    #[must_use]
    pub fn verified_host(&self) -> Option<String> {
        self.id.document_url().map(|url| url.authority().to_owned())
    }

    /// True if the client keeps no secret or key, so that its refresh tokens rotate.
    #[must_use]
    pub fn is_public(&self) -> bool {
        match self.proof {
            ClientProof::Public => true,
            ClientProof::Secret(_) | ClientProof::Keys(_) => false,
        }
    }

    /// The scopes that this client may get of those that the server supports: the registered ones,
    /// or all if it registered none. `offline_access` is always among them.
    #[must_use]
    pub fn allowed(&self, supported: &Scopes) -> Scopes {
        let allowed = match &self.scopes {
            Some(registered) => supported.common(registered),
            None => supported.clone(),
        };
        allowed.with(OFFLINE_ACCESS)
    }

    /// True if the client registered itself, was never used since, and can be forgotten.
    #[must_use]
    pub fn is_abandoned(&self, now: SystemTime) -> bool {
        let age = StoredTime::of(now).since(self.created_at);
        let is_unused = self.used_at.is_none() && age >= UNUSED_LIFE;
        is_unused && self.origin == ClientOrigin::Registration
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::server::redirect::RedirectRules;

    fn client(id: ClientId) -> Client {
        Client {
            id,
            name: ClientName::of("Desk"),
            link: None,
            redirect_uris: vec![RedirectRules::default().admit("http://localhost/cb").unwrap()],
            proof: ClientProof::Public,
            scopes: None,
            application_type: None,
            origin: ClientOrigin::Registration,
            created_at: StoredTime::default(),
            used_at: None,
        }
    }

    #[test]
    fn door_q23_an_id_is_that_of_one_client() {
        let generated = ClientId::generate().unwrap();
        assert_eq!(ClientId::parse(generated.as_str()), Ok(generated));
        for good in ["claude-code", "https://claude.ai/oauth/metadata", "https://a.example/?v=1&x"]
        {
            assert_eq!(ClientId::parse(good).is_ok(), !good.contains('?'), "{good}");
        }
        let long = format!("https://a.example/{}", "a".repeat(ID_MAX));
        for bad in ["", "a b", "a,b", "a\n", "<script>", "a b https://a.example/x", &long] {
            assert_eq!(ClientId::parse(bad), Err(BadClientId), "{bad}");
        }
    }

    #[test]
    fn door_a3_an_address_is_https_with_a_public_name_and_a_path() {
        let good = "https://app.example:8443/oauth/client.json?v=1";
        let id = ClientId::parse(good).unwrap();
        assert_eq!(id.document_url().unwrap().as_str(), good);
        assert_eq!(client(id).verified_host().as_deref(), Some("app.example:8443"));
        for bad in [
            "http://app.example/c",
            "https://app.example",
            "https://app.example/",
            "https://app.example/a/../c",
            "https://app.example/./c",
            "https://app.example/%2e%2e/c",
            "https://app.example/c#x",
            "https://a@app.example/c",
            "https://:b@app.example/c",
            "https://localhost/c",
            "https://10.0.0.1/c",
            "https://[::1]/c",
            "https://app.example./c",
            "https://APP.example/c",
            "https:app.example/c",
            "https://app.example/c,https://b.example/c",
            "javascript://app.example/c",
        ] {
            assert_eq!(ClientId::parse(bad), Err(BadClientId), "{bad}");
        }
    }

    #[test]
    fn door_q20_offline_access_is_allowed_to_all() {
        let supported = Scopes::read("mcp admin").unwrap();
        let mut client = client(ClientId::generate().unwrap());
        assert_eq!(client.allowed(&supported).to_string(), "admin mcp offline_access");
        client.scopes = Some(Scopes::read("mcp other").unwrap());
        assert_eq!(client.allowed(&supported).to_string(), "mcp offline_access");
    }

    #[test]
    fn door_a4_unused_clients_are_abandoned_after_days() {
        let mut client = client(ClientId::generate().unwrap());
        let late = UNIX_EPOCH + UNUSED_LIFE;
        assert!(!client.is_abandoned(late - Duration::from_secs(1)));
        assert!(client.is_abandoned(late));
        let by_operator = Client { origin: ClientOrigin::Operator, ..client.clone() };
        assert!(!by_operator.is_abandoned(late));
        client.used_at = Some(StoredTime::default());
        assert!(!client.is_abandoned(late));
        let text = serde_json::to_string(&client).unwrap();
        assert_eq!(serde_json::from_str::<Client>(&text).unwrap(), client);
    }
}
