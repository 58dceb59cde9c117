//! From a refused request to the metadata of the authorization server (RFC 9728, RFC 8414).

mod places;
mod server;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use narthex_model::ErrorKind;
use url::Url;

use self::server::Fault;
use super::{
    Flow, Reply, SETTING_AUTHORIZATION_SERVER, SETTING_PKCE, ScopeSources, Settings, shown_url,
};
use crate::{
    address::{AddressFault, Reach},
    challenge::Bearer,
    metadata::{ResourceMetadata, ServerMetadata},
    scopes::Scopes,
};

/// The largest number of authorization servers that are tried.
const ISSUERS_MAX: usize = 4;

/// A search for the authorization server of one MCP server. It ends with [`Step::Found`] or
/// [`Step::Failed`].
#[derive(Debug)]
pub struct Discovery {
    server: Url,
    flow: Flow,
    settings: Settings,
    challenged: Option<Scopes>,
    resource: Option<Resource>,
    phase: Phase,
    queue: VecDeque<Candidate>,
    /// The candidate whose answer is awaited.
    current: Option<Candidate>,
    asked: Vec<Url>,
    /// The tried authorization servers.
    issuers: Vec<Url>,
    /// The latest reason why a document was not used.
    fault: Option<Fault>,
}

#[derive(Debug)]
struct Resource {
    identifier: String,
    scopes: Option<Scopes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The resource's metadata.
    Resource,
    /// The metadata of the authorization servers.
    Server,
    /// Metadata at the MCP server's own origin, as of MCP 2025-03-26.
    Legacy,
}

/// A place of a document.
#[derive(Debug, Clone)]
struct Candidate {
    url: Url,
    /// The issuer that the place was built from; none for the resource's metadata.
    issuer: Option<String>,
}

/// The next step of a discovery.
#[derive(Debug)]
pub enum Step {
    /// Send a GET request, and pass the reply to [`Discovery::answer`]. The caller checks the
    /// address of each redirect and follows at most 5.
    Get(Url),
    /// The authorization server.
    Found(Box<Found>),
    /// None can be used.
    Failed(DiscoveryError),
}

/// An authorization server that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Identifier of the MCP server, as its metadata has it.
    pub identifier: String,
    /// Value of the parameter `resource` of all requests; `None`: leave it out.
    pub resource: Option<String>,
    /// Identifier of the authorization server, as its metadata has it. Clients and tokens belong
    /// to it.
    pub issuer: String,
    /// The authorization server's metadata, with checked addresses.
    pub metadata: ServerMetadata,
    /// The scopes to request.
    pub scopes: Scopes,
    /// True if the places are those of MCP 2025-03-26, without any metadata.
    pub is_legacy: bool,
}

/// The reason why no authorization server was found. It names the asked addresses and the setting
/// that helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// A server does not answer now.
    #[error(
        "OAuth metadata of the server cannot be read now: {url} {}; try again later",
        status_text(*status)
    )]
    Unavailable {
        /// The address, as it may be shown.
        url: String,
        /// The HTTP status; none if there was no answer.
        status: Option<u16>,
    },
    /// The server publishes no metadata.
    #[error(
        "the server asks for a sign-in, but says nowhere which authorization server it trusts \
         (asked: {asked}); set {SETTING_AUTHORIZATION_SERVER} to the issuer that its documentation \
         names"
    )]
    NoResourceMetadata {
        /// The asked addresses, as they may be shown.
        asked: String,
    },
    /// The metadata belongs to another server.
    #[error(
        "the metadata at {url} is of another resource ({said}): the server at {server} could \
         receive tokens of that one, so it is refused; correct the server's URL"
    )]
    ResourceMismatch {
        /// The address of the metadata.
        url: String,
        /// The resource that the metadata names.
        said: String,
        /// The configured server.
        server: String,
    },
    /// The authorization server publishes no usable metadata.
    #[error(
        "no metadata of the authorization server {issuer} can be used{fault} (asked: {asked}); \
         set {SETTING_AUTHORIZATION_SERVER} to another issuer"
    )]
    NoServerMetadata {
        /// The issuers, as they may be shown.
        issuer: String,
        /// The latest fault of a document, with a colon before it.
        fault: String,
        /// The asked addresses, as they may be shown.
        asked: String,
    },
    /// The authorization server does not list S256.
    #[error(
        "the authorization server {issuer} does not say that it supports PKCE with S256, without \
         which codes can be stolen; if its documentation says that it does, set {SETTING_PKCE} to \
         \"assume\""
    )]
    NoS256 {
        /// The issuer, as it may be shown.
        issuer: String,
    },
    /// An issuer in the settings cannot be used.
    #[error("{SETTING_AUTHORIZATION_SERVER} cannot be used: {0}")]
    BadSetting(AddressFault),
}

impl DiscoveryError {
    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::BadSetting(_)
            | Self::NoResourceMetadata { .. }
            | Self::ResourceMismatch { .. }
            | Self::NoServerMetadata { .. }
            | Self::NoS256 { .. } => ErrorKind::Invalid,
        }
    }
}

fn status_text(status: Option<u16>) -> String {
    status.map_or_else(|| "does not answer".to_owned(), |status| format!("answers {status}"))
}

impl Discovery {
    /// Starts a discovery for the server at an URL, with the challenge of its refusal.
    #[must_use]
    pub fn begin(
        server: &Url,
        challenge: Option<&Bearer>,
        flow: Flow,
        settings: Settings,
    ) -> (Self, Step) {
        let mut discovery = Self {
            server: server.clone(),
            flow,
            settings,
            challenged: challenge.and_then(|challenge| challenge.scope.clone()),
            resource: None,
            phase: Phase::Resource,
            queue: VecDeque::new(),
            current: None,
            asked: Vec::new(),
            issuers: Vec::new(),
            fault: None,
        };
        let reach = discovery.reach();
        let named = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
        // An address that must not be used is no reason to give up: the known places remain.
        let named = named.and_then(|text| reach.parse(text).ok());
        let places = named.into_iter().chain(places::of_resource(server));
        discovery.enqueue(places.map(|url| Candidate { url, issuer: None }));
        let step = discovery.next();
        (discovery, step)
    }

    /// Takes the reply to the latest [`Step::Get`].
    pub fn answer(&mut self, reply: &Reply<'_>) -> Step {
        let Some(candidate) = self.current.take() else { return self.next() };
        if reply.is_transient() {
            let (url, status) = (shown_url(&candidate.url), reply.status());
            return Step::Failed(DiscoveryError::Unavailable { url, status });
        }
        let body = if reply.is_success() { reply.body() } else { &[] };
        match candidate.issuer.clone() {
            None => match ResourceMetadata::read(body) {
                Some(metadata) => self.take_resource(&candidate.url, metadata),
                None => self.next(),
            },
            Some(issuer) => match ServerMetadata::read(body) {
                Some(metadata) => self.take_server(&issuer, metadata),
                None => self.next(),
            },
        }
    }

    fn reach(&self) -> Reach {
        Reach::of(&self.server)
    }

    fn enqueue(&mut self, candidates: impl IntoIterator<Item = Candidate>) {
        for candidate in candidates {
            let is_known =
                |other: &Candidate| other.url == candidate.url && other.issuer == candidate.issuer;
            if !self.queue.iter().any(is_known) {
                self.queue.push_back(candidate);
            }
        }
    }

    /// Asks the next candidate, or ends the phase without a result.
    fn next(&mut self) -> Step {
        if let Some(candidate) = self.queue.pop_front() {
            let url = candidate.url.clone();
            self.asked.push(url.clone());
            self.current = Some(candidate);
            return Step::Get(url);
        }
        match self.phase {
            Phase::Resource if self.settings.authorization_server.is_some() => {
                self.ask_servers(&[])
            }
            Phase::Resource if self.settings.legacy => self.ask_origin(),
            Phase::Resource => {
                Step::Failed(DiscoveryError::NoResourceMetadata { asked: self.asked() })
            }
            Phase::Server => self.fail_server(),
            Phase::Legacy if self.fault.is_some() => self.fail_server(),
            Phase::Legacy => match server::fixed_endpoints(&self.server) {
                Some(metadata) => self.accept(metadata, true),
                None => self.fail_server(),
            },
        }
    }

    fn take_resource(&mut self, url: &Url, metadata: ResourceMetadata) -> Step {
        let ResourceMetadata { resource, authorization_servers, scopes_supported } = metadata;
        if let Some(said) = &resource
            && !places::covers(said, &self.server)
        {
            let said = Url::parse(said).map(|url| shown_url(&url));
            let said = said.unwrap_or_else(|_error| "no address".to_owned());
            let (url, server) = (shown_url(url), shown_url(&self.server));
            return Step::Failed(DiscoveryError::ResourceMismatch { url, said, server });
        }
        if authorization_servers.is_empty() && self.settings.authorization_server.is_none() {
            return self.next();
        }
        let identifier = resource.unwrap_or_else(|| places::identifier(&self.server));
        self.resource = Some(Resource { identifier, scopes: scopes_supported });
        self.ask_servers(&authorization_servers)
    }

    /// Asks for the metadata of the issuer in the settings, or of those that the resource names.
    fn ask_servers(&mut self, named: &[String]) -> Step {
        self.phase = Phase::Server;
        self.queue.clear();
        let reach = self.reach();
        let own = self.settings.authorization_server.clone();
        if let Some(fault) = own.as_ref().and_then(|issuer| reach.parse(issuer).err()) {
            return Step::Failed(DiscoveryError::BadSetting(fault));
        }
        let issuers = own.as_ref().map_or(named, std::slice::from_ref);
        for issuer in issuers.iter().take(ISSUERS_MAX) {
            match reach.parse(issuer) {
                Ok(url) => {
                    let candidate = |url| Candidate { url, issuer: Some(issuer.clone()) };
                    self.enqueue(places::of_issuer(&url).into_iter().map(candidate));
                    self.issuers.push(url);
                }
                Err(fault) => {
                    self.fault = Some(Fault::Address("authorization_servers", fault));
                    self.issuers.extend(Url::parse(issuer));
                }
            }
        }
        self.next()
    }

    /// Asks for metadata at the server's own origin.
    fn ask_origin(&mut self) -> Step {
        self.phase = Phase::Legacy;
        let origin = self.server.origin().ascii_serialization();
        if let Ok(url) = Url::parse(&origin) {
            let places = places::of_issuer(&url).into_iter().take(1);
            self.enqueue(places.map(|url| Candidate { url, issuer: Some(origin.clone()) }));
            self.issuers.push(url);
        }
        self.next()
    }

    fn take_server(&mut self, issuer: &str, metadata: ServerMetadata) -> Step {
        if !server::is_issuer(issuer, &metadata.issuer) {
            self.fault = Some(Fault::Issuer);
            return self.next();
        }
        if let Err(fault) = server::check_endpoints(&metadata, self.reach(), self.flow) {
            self.fault = Some(fault);
            return self.next();
        }
        self.accept(metadata, false)
    }

    fn accept(&mut self, metadata: ServerMetadata, is_legacy: bool) -> Step {
        let issuer = Url::parse(&metadata.issuer).ok();
        let settings = self.settings.with_preset(issuer.iter().chain([&self.server]));
        let is_assumed = settings.pkce == Some(super::PkceRule::Assume);
        if self.flow == Flow::Browser && !is_assumed && !metadata.supports_s256() {
            let issuer = issuer.as_ref().map(shown_url).unwrap_or_default();
            return Step::Failed(DiscoveryError::NoS256 { issuer });
        }
        let resource = self.resource.take();
        let (identifier, resource_scopes) = match resource {
            Some(Resource { identifier, scopes }) => (identifier, scopes),
            None => (places::identifier(&self.server), None),
        };
        let sources = ScopeSources {
            configured: settings.scopes.as_ref(),
            challenged: self.challenged.as_ref(),
            resource: resource_scopes.as_ref(),
            server: metadata.scopes_supported.as_ref(),
        };
        Step::Found(Box::new(Found {
            resource: settings.resource(&identifier),
            identifier,
            issuer: metadata.issuer.clone(),
            scopes: sources.choose(),
            metadata,
            is_legacy,
        }))
    }

    fn fail_server(&mut self) -> Step {
        let fault = self.fault.take().map(|fault| format!(": {fault}")).unwrap_or_default();
        let (issuer, asked) = (shown_all(&self.issuers), self.asked());
        Step::Failed(DiscoveryError::NoServerMetadata { issuer, fault, asked })
    }

    fn asked(&self) -> String {
        shown_all(&self.asked)
    }
}

fn shown_all(urls: &[Url]) -> String {
    let shown: Vec<_> = urls.iter().map(shown_url).collect();
    if shown.is_empty() { "without an address".to_owned() } else { shown.join(", ") }
}
