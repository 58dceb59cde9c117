//! Options of signing in.

use std::sync::Arc;

use narthex_model::{AgentName, Roles, WorkspaceId};
use narthex_oauth::{
    scopes::Scopes,
    server::{AuthorizationServers, DocumentHosts, Door, RedirectRules, TrustedIssuer},
};
use url::Url;

use crate::{
    PublicOrigin, SessionLimits,
    oidc::{Admission, Client},
};

/// The ways for humans to sign in at this process.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// The address at which browsers reach the process.
    pub origin: PublicOrigin,
    /// The lifetimes of a sign-in.
    pub limits: SessionLimits,
    /// The OpenID providers.
    pub providers: Vec<ProviderOptions>,
    /// The door as an authorization server for its clients; `None` if it gives no tokens.
    pub door: Option<DoorOptions>,
}

impl LoginOptions {
    /// The default options, without providers, and with a door that gives no tokens.
    #[must_use]
    pub fn new(origin: PublicOrigin) -> Self {
        Self { origin, limits: SessionLimits::default(), providers: Vec::new(), door: None }
    }
}

/// The rules of the door as an authorization server.
#[derive(Debug, Clone)]
pub struct DoorOptions {
    /// The addresses of the door.
    pub door: Door,
    /// The redirect URIs that clients may have.
    pub redirects: RedirectRules,
    /// The hosts from which metadata documents of clients are fetched.
    pub documents: DocumentHosts,
    /// The proof of a human where none has signed in.
    pub consent: LocalConsent,
    /// The servers that the metadata names to clients. With others than narthex itself, narthex
    /// gives no tokens.
    pub servers: AuthorizationServers,
    /// The company's own issuers, whose access tokens and assertions count.
    pub issuers: Vec<Arc<IssuerOptions>>,
}

/// An issuer of a company, whose access tokens open the door.
#[derive(Debug, Clone)]
pub struct IssuerOptions {
    /// Narthex's name for the issuer, in the settings and in the log.
    pub name: String,
    /// The issuer and its algorithms.
    pub trusted: TrustedIssuer,
    /// The address of its keys; `None` if its metadata names the address.
    pub jwks_uri: Option<Url>,
    /// The issuer's own name for this door, which counts as each of the resources.
    pub audience: Option<String>,
    /// The clients whose tokens count, by their ids at the issuer; `None` for all.
    pub clients: Option<Vec<String>>,
    /// The scopes that a token needs.
    pub scopes: Scopes,
    /// The agent whose servers the clients see; `None` for the live configuration.
    pub agent: Option<IssuerAgent>,
}

/// An agent with its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerAgent {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The agent.
    pub agent: AgentName,
}

/// The proof of a human on the page of consent, where no human has signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocalConsent {
    /// None counts: the human has to sign in.
    #[default]
    SignIn,
    /// A click in a browser of this machine counts as one by the holder of the admin token. For
    /// listeners on loopback alone.
    Click,
}

impl DoorOptions {
    /// The default rules of a door.
    #[must_use]
    pub fn new(door: Door) -> Self {
        let (redirects, documents) = (RedirectRules::default(), DocumentHosts::default());
        let (consent, servers) = (LocalConsent::default(), AuthorizationServers::Own);
        Self { door, redirects, documents, consent, servers, issuers: Vec::new() }
    }
}

impl IssuerOptions {
    /// An issuer with the default rules: all of its clients see the live configuration.
    #[must_use]
    pub fn new(name: String, trusted: TrustedIssuer) -> Self {
        Self {
            name,
            trusted,
            jwks_uri: None,
            audience: None,
            clients: None,
            scopes: Scopes::default(),
            agent: None,
        }
    }
}

/// An OpenID provider.
#[derive(Debug, Clone)]
pub struct ProviderOptions {
    /// Narthex's name for the provider, in addresses and on the page: 1 to 64 of `a-z`, `0-9`, `-`.
    pub name: String,
    /// Narthex as a client of the provider.
    pub client: Client,
    /// The rules that admit unknown persons.
    pub admission: Admission,
    /// The roles of admitted persons, per workspace.
    pub roles: Vec<(WorkspaceId, Roles)>,
}
