//! The table of all routes. A route that is missing here does not exist.

mod place;

use narthex_definitions::reviews::DefinitionVerdict;
use narthex_model::{CatalogKind, Role};

use crate::openapi::Access;
use crate::{
    servers::{EventTarget, GrantTarget, OutboundTarget, ShareTarget, WatchTarget},
    signin::SignInTarget,
};

pub(crate) use self::place::{Place, Segments, find, is_public_document};

/// A path with some of its methods.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The path. A segment in braces matches any one segment, and `{path}` matches the rest of the
    /// path. A path has at most three of these.
    pub template: &'static str,
    /// The methods, as the header `Allow` lists them.
    pub methods: &'static str,
    /// The callers that may use the route.
    pub access: Access,
    /// The caches that may store its answers.
    pub caching: Caching,
    pub(crate) target: Target,
}

/// The caches that may store the answers of a route (S27).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// No cache.
    Never,
    /// Any cache, for a while: the answer is a public document, which is the same for all callers.
    PublicDocument,
}

/// The role that may do all that is possible in a workspace.
pub(crate) const ADMIN: &[Role] = &[Role::Admin];
/// The roles that write the parts of which agents are made.
pub(crate) const AUTHOR: &[Role] = &[Role::Admin, Role::Author];
/// The roles that read agents.
pub(crate) const READER: &[Role] = &[Role::Admin, Role::Author, Role::Runner];
/// The roles that read the names of secrets and the rights of principals, but no value.
pub(crate) const NAMES: &[Role] = &[Role::Admin, Role::Author, Role::Auditor];
pub(crate) const AUDIT: &[Role] = &[Role::Admin, Role::Auditor];
pub(crate) const EVERY: &[Role] = &[Role::Admin, Role::Author, Role::Runner, Role::Auditor];
/// The roles that create and end runs.
pub(crate) const RUN: &[Role] = &[Role::Admin, Role::Runner];
/// The roles that send an agent messages.
pub(crate) const ANSWER: &[Role] = &[Role::Admin, Role::Author, Role::Runner];
/// The roles that read the definitions that servers declare, and the changes in them.
pub(crate) const SEE_CATALOG: &[Role] = &[Role::Admin, Role::Author, Role::Auditor];
pub(crate) const SEE_RUNS: &[Role] = &[Role::Admin, Role::Runner, Role::Auditor];

/// A request of a program at the authorization server of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramTarget {
    /// A document about the door.
    Metadata,
    Register,
    Token,
    Revoke,
    /// A question about a token.
    Introspect,
}

/// A resource of the registry API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistryTarget {
    /// All servers.
    Servers,
    /// The versions of a server.
    Versions,
    /// One version of a server.
    Version,
}

/// The target of a route about workspaces, their members, or the tokens of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessTarget {
    Workspaces,
    WorkspaceCreate,
    Workspace,
    WorkspaceChange,
    WorkspaceDelete,
    Members,
    MemberSet,
    MemberRemove,
    Tokens,
    TokenCreate,
    TokenRevoke,
}

/// The target of a route about the whole installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallationTarget {
    Daemon,
    /// All workspaces, with the numbers of their objects.
    WorkspaceUses,
    /// The master keys, without their bytes.
    MasterKeys,
}

/// The target of a route about the sign-in to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerSignInTarget {
    /// Starts a sign-in.
    Begin,
    /// Shows the state of a sign-in at another device.
    Device,
    /// Signs out, and starts a sign-in.
    Again,
    /// Signs out.
    End,
}

/// The target of a route about the connections of humans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionTarget {
    /// The caller's connections in all workspaces.
    Mine,
    /// A human's connections in a workspace.
    All,
    /// One connection.
    One,
    /// Starts a connection.
    Connect,
}

/// The target of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Health,
    Ready,
    Metrics,
    Status,
    Tools,
    Aggregated,
    Transparent,
    /// The aggregated endpoint with the names of a profile.
    InProfile,
    ToolCall,
    Vfs,
    Servers,
    Server,
    ServerEntry,
    Disable,
    Enable,
    Reconnect,
    Test,
    Logs,
    Reload,
    Files,
    Profiles,
    Profile,
    Events,
    Runs,
    Run,
    Sessions,
    Session,
    Happening(EventTarget),
    Watched(WatchTarget),
    Principals,
    PrincipalCreate,
    Principal,
    PrincipalChange,
    Me,
    OpenApi,
    LinkCreate,
    Passkeys,
    PasskeyRemove,
    SignIn(SignInTarget),
    /// A program at the authorization server of the door.
    Program(ProgramTarget),
    /// The sign-in to a server of the configuration.
    ServerSignIn(ServerSignInTarget),
    /// The connections of humans to servers of the catalog.
    Connection(ConnectionTarget),
    Clients,
    Client,
    Secrets,
    Secret,
    RotateKey,
    /// The daemon, the use of workspaces, and the master keys.
    Installation(InstallationTarget),
    Grants(GrantTarget),
    Shares(ShareTarget),
    Outbound(OutboundTarget),
    Policy,
    PolicyCheck,
    EnvBindings,
    EnvBinding,
    Objects(CatalogKind),
    Object(CatalogKind),
    /// The definitions of a server, or a verdict on some of them.
    Definitions(Option<DefinitionVerdict>),
    PublicRegistry(RegistryTarget),
    /// Workspaces, their members, and the tokens of services.
    Access(AccessTarget),
    Attachments,
    Connections,
    Attachment,
    Export,
    Import,
    Limits,
    Usage,
    Validate,
    Preview,
    Audit,
    AuditSettings,
}

/// The proof of a request by a browser that has signed in or is signing in (D4).
const SESSION: &str = "the session's cookie, and the token in its page";
/// The proof of a browser on the page of consent.
const BROWSER: &str = "the session's cookie, or on loopback that of the page; and the token in it";
const PUBLIC: &str = "none: it is public";
const METADATA: Target = Target::Program(ProgramTarget::Metadata);
const STATE: &str = "the code, the state, and the cookie of the browser that started the sign-in";

/// The proof of the redirect of an authorization server, which a browser follows.
const ATTEMPT: &str = "the state of an open sign-in, once, in the browser of the login session \
                       that began it, if one did";

const READ: &str = "GET, HEAD";
const WRITE: &str = "GET, HEAD, POST";
const CHANGE: &str = "PUT, PATCH, DELETE";
const ALL: &str = "GET, HEAD, PUT, PATCH, DELETE";

const GRANT: &str = "/api/workspaces/{workspace}/grants/{id}";
const POLICY: &str = "/api/workspaces/{workspace}/policy";
const CHECK: &str = "/api/workspaces/{workspace}/policy/check";
const LINKS: &str = "/api/principals/{principal}/sign-in-links";
/// The connections of a human to servers of the catalog; `me` is the caller.
const TOKENS: &str = "/api/workspaces/{workspace}/users/{user}/mcp-tokens";
const TOKEN: &str = "/api/workspaces/{workspace}/users/{user}/mcp-tokens/{server}";
const CONNECT: &str = "/api/workspaces/{workspace}/users/{user}/mcp-tokens/{server}/connect";
/// The page of one connection of the signed-in human.
const CONNECTION: &str = "/workspaces/{workspace}/connections/{server}";
const REQUESTS: &str = "/api/workspaces/{workspace}/grant-requests";
/// The page of one grant request.
const DECIDE: &str = "/workspaces/{workspace}/grant-requests/{id}";
const APPROVE: &str = "/api/workspaces/{workspace}/grant-requests/{id}/approve";
const DENY: &str = "/api/workspaces/{workspace}/grant-requests/{id}/deny";
const MESSAGES: &str = "/api/workspaces/{workspace}/sessions/{id}/messages";
const CHANNELS: &str = "/api/workspaces/{workspace}/channels";
const CHANNEL: &str = "/api/workspaces/{workspace}/channels/{name}";
const WEBHOOKS: &str = "/api/workspaces/{workspace}/webhooks";
const WEBHOOK: &str = "/api/workspaces/{workspace}/webhooks/{name}";
const DELIVERIES: &str = "/api/workspaces/{workspace}/webhooks/{name}/deliveries";
const SHARE: &str = "/api/workspaces/{workspace}/shares/{id}";
const CONTENT: &str = "/api/workspaces/{workspace}/shares/{id}/content";
const COMMENTS: &str = "/api/workspaces/{workspace}/shares/{id}/comments";
const THREAD: &str = "/api/workspaces/{workspace}/shares/{id}/comments/{thread}";
const TRACE: &str = "/api/workspaces/{workspace}/runs/{id}/trace";
const DEFINITIONS: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions";
const ACCEPT: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions/accept";
const REJECT: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions/reject";
/// The registry API of the protocol, whose paths are not ours to choose.
const VERSIONS: &str = "/v0.1/servers/{name}/versions";
const VERSION: &str = "/v0.1/servers/{name}/versions/{version}";

/// All routes. Rows with the same path are next to each other.
pub const ROUTES: &[Route] = &[
    route("/mcp", "GET, POST, DELETE", Access::Client, Target::Aggregated),
    route("/mcp/{alias}", "GET, POST, DELETE", Access::Client, Target::Transparent),
    route("/mcp/p/{profile}", "GET, POST, DELETE", Access::Client, Target::InProfile),
    // The same endpoints for runs of one workspace, so that an address leads nowhere else. No
    // server is called `w`.
    route("/mcp/w/{workspace}", "GET, POST, DELETE", Access::Client, Target::Aggregated),
    route("/mcp/w/{workspace}/{alias}", "GET, POST, DELETE", Access::Client, Target::Transparent),
    route("/mcp/w/{workspace}/p/{profile}", "GET, POST, DELETE", Access::Client, Target::InProfile),
    route("/mcp/w/{workspace}/{alias}/tools/{tool}", "POST", Access::Client, Target::ToolCall),
    route("/mcp/{alias}/tools/{tool}", "POST", Access::Client, Target::ToolCall),
    route("/vfs/{path}", "GET, POST", Access::Client, Target::Vfs),
    route("/healthz", READ, Access::Open, Target::Health),
    route("/readyz", READ, Access::Open, Target::Ready),
    own("/signin", READ, "none: it shows the sign-in page", SignInTarget::Page),
    own("/signin/script.js", READ, "none: it is the same for all", SignInTarget::Script),
    own("/signin/style.css", READ, "none: it is the same for all", SignInTarget::Style),
    own("/signin/link/{token}", READ, "the token of the link", SignInTarget::Link),
    own("/signin/link/{token}", "POST", "the token of the link, once", SignInTarget::LinkUse),
    own("/signin/passkey/begin", "POST", "none: it gives a challenge", SignInTarget::PasskeyBegin),
    own("/signin/passkey/finish", "POST", "the passkey", SignInTarget::PasskeyFinish),
    own("/signin/passkeys/new", "POST", SESSION, SignInTarget::PasskeyNew),
    own("/signin/passkeys", "POST", SESSION, SignInTarget::PasskeyAdd),
    own("/signin/passkeys/{id}/remove", "POST", SESSION, SignInTarget::PasskeyRemove),
    own("/signin/links", "POST", SESSION, SignInTarget::LinkMake),
    own(
        "/signin/oidc/{provider}",
        READ,
        "none: it redirects to the provider",
        SignInTarget::OidcBegin,
    ),
    own("/signin/oidc/{provider}/callback", READ, STATE, SignInTarget::OidcCallback),
    own("/signin/clients/{id}/remove", "POST", SESSION, SignInTarget::ClientRemove),
    own("/signout", "POST", SESSION, SignInTarget::SignOut),
    document("/.well-known/oauth-protected-resource", PUBLIC, METADATA),
    document("/.well-known/oauth-protected-resource/{path}", PUBLIC, METADATA),
    document("/.well-known/oauth-authorization-server", PUBLIC, METADATA),
    document("/.well-known/oauth-authorization-server/{path}", PUBLIC, METADATA),
    document("/.well-known/openid-configuration", PUBLIC, METADATA),
    document("/.well-known/openid-configuration/{path}", PUBLIC, METADATA),
    program("/register", "POST", "none: it is open, within limits", ProgramTarget::Register),
    program(
        "/token",
        "POST",
        "the code, refresh token or assertion, and the client's",
        ProgramTarget::Token,
    ),
    program("/revoke", "POST", "the token, and the client's", ProgramTarget::Revoke),
    program(
        "/introspect",
        "POST",
        "the token of a service, or the client's secret or key",
        ProgramTarget::Introspect,
    ),
    own("/authorize", READ, "none: it shows the sign-in page", SignInTarget::Authorize),
    own("/consent/{token}", READ, "the cookie of the page", SignInTarget::Consent),
    own("/consent/{token}", "POST", BROWSER, SignInTarget::ConsentAnswer),
    own(DECIDE, READ, "the session's cookie; without it, the sign-in page", SignInTarget::Decision),
    own(DECIDE, "POST", SESSION, SignInTarget::Decide),
    own(
        CONNECTION,
        READ,
        "the session's cookie; without it, the sign-in page",
        SignInTarget::Connection,
    ),
    own(CONNECTION, "POST", SESSION, SignInTarget::ChangeConnection),
    own("/oauth/callback", "GET", ATTEMPT, SignInTarget::ServerCallback),
    own("/oauth/callback/{server}", "GET", ATTEMPT, SignInTarget::ServerCallback),
    document(
        "/oauth/client-metadata.json",
        "none: authorization servers read it",
        Target::SignIn(SignInTarget::ClientMetadata),
    ),
    route("/metrics", READ, Access::Whole, Target::Metrics),
    route("/api/status", READ, Access::Shared, Target::Status),
    route("/api/tools", READ, Access::Shared, Target::Tools),
    route("/api/servers", READ, Access::Shared, Target::Servers),
    route("/api/servers/{name}", READ, Access::Shared, Target::Server),
    route("/api/servers/{name}", "PUT, PATCH, DELETE", Access::Operator, Target::ServerEntry),
    route("/api/servers/{name}/disable", "POST", Access::Operator, Target::Disable),
    route("/api/servers/{name}/enable", "POST", Access::Operator, Target::Enable),
    route("/api/servers/{name}/reconnect", "POST", Access::Operator, Target::Reconnect),
    signed("/api/servers/{name}/reauthorize", "POST", ServerSignInTarget::Again),
    signed("/api/servers/{name}/authorize", "POST", ServerSignInTarget::Begin),
    signed("/api/servers/{name}/authorize/{id}", READ, ServerSignInTarget::Device),
    signed("/api/servers/{name}/sign-out", "POST", ServerSignInTarget::End),
    route("/api/servers/{name}/test", "POST", Access::Operator, Target::Test),
    route("/api/servers/{name}/logs", READ, Access::Operator, Target::Logs),
    route("/api/reload", "POST", Access::Operator, Target::Reload),
    route("/api/files", READ, Access::Operator, Target::Files),
    route("/api/profiles", READ, Access::Operator, Target::Profiles),
    route("/api/profiles/{profile}", READ, Access::Operator, Target::Profile),
    route("/api/events", READ, Access::Shared, Target::Events),
    route("/api/openapi.json", READ, Access::Known, Target::OpenApi),
    route("/api/me", READ, Access::Known, Target::Me),
    route(
        "/api/users/me/mcp-tokens",
        READ,
        Access::Known,
        Target::Connection(ConnectionTarget::Mine),
    ),
    // Only the human themselves connects, and admins may also see and end connections.
    member(TOKENS, READ, EVERY, Target::Connection(ConnectionTarget::All)),
    member(TOKEN, "DELETE", EVERY, Target::Connection(ConnectionTarget::One)),
    member(CONNECT, "POST", EVERY, Target::Connection(ConnectionTarget::Connect)),
    route("/api/principals", READ, Access::Operator, Target::Principals),
    route("/api/principals", "POST", Access::Operator, Target::PrincipalCreate),
    route("/api/principals/{principal}", READ, Access::Operator, Target::Principal),
    route("/api/principals/{principal}", "PATCH", Access::Operator, Target::PrincipalChange),
    route(LINKS, "POST", Access::Operator, Target::LinkCreate),
    route("/api/principals/{principal}/passkeys", READ, Access::Operator, Target::Passkeys),
    route(
        "/api/principals/{principal}/passkeys/{id}",
        "DELETE",
        Access::Operator,
        Target::PasskeyRemove,
    ),
    route("/api/secrets/rotate-key", "POST", Access::Operator, Target::RotateKey),
    installation("/api/secrets/keys", InstallationTarget::MasterKeys),
    installation("/api/daemon", InstallationTarget::Daemon),
    installation("/api/daemon/workspaces", InstallationTarget::WorkspaceUses),
    route("/api/workspaces", READ, Access::Known, Target::Access(AccessTarget::Workspaces)),
    route(
        "/api/workspaces",
        "POST",
        Access::Operator,
        Target::Access(AccessTarget::WorkspaceCreate),
    ),
    member(
        "/api/workspaces/{workspace}",
        READ,
        &Role::ALL,
        Target::Access(AccessTarget::Workspace),
    ),
    member(
        "/api/workspaces/{workspace}",
        "PATCH",
        ADMIN,
        Target::Access(AccessTarget::WorkspaceChange),
    ),
    route(
        "/api/workspaces/{workspace}",
        "DELETE",
        Access::Operator,
        Target::Access(AccessTarget::WorkspaceDelete),
    ),
    member(
        "/api/workspaces/{workspace}/members",
        READ,
        AUDIT,
        Target::Access(AccessTarget::Members),
    ),
    member(
        "/api/workspaces/{workspace}/members/{principal}",
        "PUT",
        ADMIN,
        Target::Access(AccessTarget::MemberSet),
    ),
    member(
        "/api/workspaces/{workspace}/members/{principal}",
        "DELETE",
        ADMIN,
        Target::Access(AccessTarget::MemberRemove),
    ),
    member(
        "/api/workspaces/{workspace}/service-tokens",
        READ,
        AUDIT,
        Target::Access(AccessTarget::Tokens),
    ),
    member(
        "/api/workspaces/{workspace}/service-tokens",
        "POST",
        ADMIN,
        Target::Access(AccessTarget::TokenCreate),
    ),
    member(
        "/api/workspaces/{workspace}/service-tokens/{id}",
        "DELETE",
        ADMIN,
        Target::Access(AccessTarget::TokenRevoke),
    ),
    member("/api/workspaces/{workspace}/mcp-clients", READ, AUDIT, Target::Clients),
    member("/api/workspaces/{workspace}/mcp-clients", "POST", ADMIN, Target::Clients),
    member("/api/workspaces/{workspace}/mcp-clients/{id}", READ, AUDIT, Target::Client),
    member("/api/workspaces/{workspace}/mcp-clients/{id}", "DELETE", ADMIN, Target::Client),
    member("/api/workspaces/{workspace}/secrets", READ, NAMES, Target::Secrets),
    // No route reads a secret's value (X-M21).
    member("/api/workspaces/{workspace}/secrets/{name}", "PUT, DELETE", ADMIN, Target::Secret),
    // Only admins bind a secret to an environment: its value leaves the gateway (X-M32).
    member("/api/workspaces/{workspace}/env-bindings", READ, NAMES, Target::EnvBindings),
    member("/api/workspaces/{workspace}/env-bindings", "POST", ADMIN, Target::EnvBindings),
    member(
        "/api/workspaces/{workspace}/env-bindings/{id}",
        "PUT, DELETE",
        ADMIN,
        Target::EnvBinding,
    ),
    member("/api/workspaces/{workspace}/grants", READ, SEE_RUNS, Target::Grants(GrantTarget::All)),
    // Only humans may use these routes (X-M58).
    member("/api/workspaces/{workspace}/grants", "POST", ADMIN, Target::Grants(GrantTarget::All)),
    member(GRANT, READ, SEE_RUNS, Target::Grants(GrantTarget::One)),
    member(GRANT, "DELETE", ADMIN, Target::Grants(GrantTarget::One)),
    member(REQUESTS, READ, SEE_RUNS, Target::Grants(GrantTarget::Requests(None))),
    member(APPROVE, "POST", ADMIN, Target::Grants(GrantTarget::Requests(Some(true)))),
    member(DENY, "POST", ADMIN, Target::Grants(GrantTarget::Requests(Some(false)))),
    member(POLICY, READ, NAMES, Target::Policy),
    member(POLICY, "PUT, DELETE", ADMIN, Target::Policy),
    member(CHECK, "POST", NAMES, Target::PolicyCheck),
    // A list of servers reveals much of a workspace (X-E14). Authors read only the parts that they
    // need to attach a server (X-D12), and change none (X-M7).
    objects("/api/workspaces/{workspace}/mcp-servers", READ, AUTHOR, CatalogKind::Server),
    objects("/api/workspaces/{workspace}/mcp-servers", "POST", ADMIN, CatalogKind::Server),
    object("/api/workspaces/{workspace}/mcp-servers/{id}", READ, AUTHOR, CatalogKind::Server),
    object("/api/workspaces/{workspace}/mcp-servers/{id}", CHANGE, ADMIN, CatalogKind::Server),
    member(DEFINITIONS, READ, SEE_CATALOG, Target::Definitions(None)),
    // Only humans may use these routes (D10).
    member(ACCEPT, "POST", ADMIN, Target::Definitions(Some(DefinitionVerdict::Accept))),
    member(REJECT, "POST", ADMIN, Target::Definitions(Some(DefinitionVerdict::Reject))),
    // The catalogs of all workspaces whose servers the caller may list.
    route("/v0.1/servers", READ, Access::Known, Target::PublicRegistry(RegistryTarget::Servers)),
    route(VERSIONS, READ, Access::Known, Target::PublicRegistry(RegistryTarget::Versions)),
    route(VERSION, READ, Access::Known, Target::PublicRegistry(RegistryTarget::Version)),
    objects("/api/workspaces/{workspace}/capabilities", WRITE, AUTHOR, CatalogKind::Capability),
    object("/api/workspaces/{workspace}/capabilities/{id}", ALL, AUTHOR, CatalogKind::Capability),
    // A runner reads the parts of an agent that the models of its runs receive, and no value of a
    // server.
    objects("/api/workspaces/{workspace}/agents", READ, READER, CatalogKind::Agent),
    objects("/api/workspaces/{workspace}/agents", "POST", AUTHOR, CatalogKind::Agent),
    object("/api/workspaces/{workspace}/agents/{id}", READ, READER, CatalogKind::Agent),
    object("/api/workspaces/{workspace}/agents/{id}", CHANGE, AUTHOR, CatalogKind::Agent),
    member(
        "/api/workspaces/{workspace}/agents/{id}/mcp-attachments",
        "GET, HEAD, PUT",
        AUTHOR,
        Target::Attachments,
    ),
    // An attachment with the alias `connection-status` can be read only in the list of all
    // attachments.
    member(
        "/api/workspaces/{workspace}/agents/{id}/mcp-attachments/connection-status",
        READ,
        AUTHOR,
        Target::Connections,
    ),
    member(
        "/api/workspaces/{workspace}/agents/{id}/mcp-attachments/{alias}",
        "GET, HEAD, PUT, DELETE",
        AUTHOR,
        Target::Attachment,
    ),
    member("/api/workspaces/{workspace}/export", READ, ADMIN, Target::Export),
    member("/api/workspaces/{workspace}/import", "POST", AUTHOR, Target::Import),
    member("/api/workspaces/{workspace}/validate", "POST", AUTHOR, Target::Validate),
    member("/api/workspaces/{workspace}/preview", "POST", AUTHOR, Target::Preview),
    // A run creates its children here, and cannot list runs.
    route("/api/workspaces/{workspace}/runs", "POST", Access::Starter(RUN), Target::Runs),
    member("/api/workspaces/{workspace}/runs", READ, SEE_RUNS, Target::Runs),
    member("/api/workspaces/{workspace}/runs/{id}", READ, SEE_RUNS, Target::Run),
    member("/api/workspaces/{workspace}/runs/{id}", "DELETE", RUN, Target::Run),
    member("/api/workspaces/{workspace}/runs/{id}/claim", "POST", RUN, Target::Run),
    // A run may watch its own operations.
    route(TRACE, READ, Access::Starter(SEE_RUNS), Target::Watched(WatchTarget::Trace)),
    member("/api/workspaces/{workspace}/top", READ, SEE_RUNS, Target::Watched(WatchTarget::Top)),
    member("/api/workspaces/{workspace}/sessions", READ, SEE_RUNS, Target::Sessions),
    member("/api/workspaces/{workspace}/sessions/{id}", READ, SEE_RUNS, Target::Session),
    member("/api/workspaces/{workspace}/sessions/{id}", "DELETE", RUN, Target::Session),
    member("/api/workspaces/{workspace}/sessions/{id}/suspend", "POST", RUN, Target::Session),
    member("/api/workspaces/{workspace}/sessions/{id}/resume", "POST", RUN, Target::Session),
    member("/api/workspaces/{workspace}/sessions/{id}/usage", "POST", RUN, Target::Session),
    // A run may read the events and messages of its own session.
    route(
        "/api/workspaces/{workspace}/sessions/{id}/events",
        READ,
        Access::Starter(EVERY),
        Target::Happening(EventTarget::Session),
    ),
    member(MESSAGES, "POST", ANSWER, Target::Happening(EventTarget::Messages)),
    // Only the executor of the session knows which messages it has read.
    route(
        "/api/workspaces/{workspace}/sessions/{id}/messages/acknowledgement",
        "POST",
        Access::OwnRun,
        Target::Happening(EventTarget::Acknowledgement),
    ),
    member(
        "/api/workspaces/{workspace}/events",
        READ,
        EVERY,
        Target::Happening(EventTarget::Workspace),
    ),
    // Agents may name a channel, but never read its address, which is a secret.
    member(CHANNELS, READ, NAMES, Target::Outbound(OutboundTarget::Channels)),
    member(CHANNEL, READ, NAMES, Target::Outbound(OutboundTarget::Channel)),
    member(CHANNEL, "PUT, DELETE", ADMIN, Target::Outbound(OutboundTarget::Channel)),
    member(WEBHOOKS, READ, AUDIT, Target::Outbound(OutboundTarget::Webhooks)),
    member(WEBHOOK, READ, AUDIT, Target::Outbound(OutboundTarget::Webhook)),
    member(WEBHOOK, "PUT, DELETE", ADMIN, Target::Outbound(OutboundTarget::Webhook)),
    member(DELIVERIES, READ, AUDIT, Target::Outbound(OutboundTarget::Deliveries)),
    member("/api/workspaces/{workspace}/shares", READ, EVERY, Target::Shares(ShareTarget::All)),
    member(SHARE, READ, EVERY, Target::Shares(ShareTarget::One)),
    member(SHARE, "DELETE", RUN, Target::Shares(ShareTarget::One)),
    member(CONTENT, READ, EVERY, Target::Shares(ShareTarget::Content)),
    member(COMMENTS, READ, EVERY, Target::Shares(ShareTarget::Comments)),
    member(COMMENTS, "POST", ANSWER, Target::Shares(ShareTarget::Comments)),
    member(THREAD, "PATCH", ANSWER, Target::Shares(ShareTarget::Thread)),
    member("/api/workspaces/{workspace}/audit", READ, AUDIT, Target::Audit),
    member("/api/workspaces/{workspace}/audit/settings", READ, AUDIT, Target::AuditSettings),
    member("/api/workspaces/{workspace}/audit/settings", "PUT", ADMIN, Target::AuditSettings),
    // Audit events and settings that belong to no workspace.
    route("/api/audit", READ, Access::Operator, Target::Audit),
    route("/api/audit/settings", "GET, HEAD, PUT", Access::Operator, Target::AuditSettings),
    member("/api/workspaces/{workspace}/limits", READ, EVERY, Target::Limits),
    member("/api/workspaces/{workspace}/limits", "PUT", ADMIN, Target::Limits),
    member("/api/workspaces/{workspace}/usage", READ, EVERY, Target::Usage),
];

const fn route(
    template: &'static str,
    methods: &'static str,
    access: Access,
    target: Target,
) -> Route {
    Route { template, methods, access, caching: Caching::Never, target }
}

/// A public document, which any cache may store.
const fn document(template: &'static str, proof: &'static str, target: Target) -> Route {
    let access = Access::Own(proof);
    Route { template, methods: READ, access, caching: Caching::PublicDocument, target }
}

const fn own(
    template: &'static str,
    methods: &'static str,
    proof: &'static str,
    target: SignInTarget,
) -> Route {
    route(template, methods, Access::Own(proof), Target::SignIn(target))
}

const fn program(
    template: &'static str,
    methods: &'static str,
    proof: &'static str,
    target: ProgramTarget,
) -> Route {
    route(template, methods, Access::Own(proof), Target::Program(target))
}

const fn signed(
    template: &'static str,
    methods: &'static str,
    target: ServerSignInTarget,
) -> Route {
    route(template, methods, Access::Operator, Target::ServerSignIn(target))
}

const fn installation(template: &'static str, target: InstallationTarget) -> Route {
    route(template, READ, Access::Operator, Target::Installation(target))
}

const fn member(
    template: &'static str,
    methods: &'static str,
    roles: &'static [Role],
    target: Target,
) -> Route {
    route(template, methods, Access::Member(roles), target)
}

const fn objects(
    template: &'static str,
    methods: &'static str,
    roles: &'static [Role],
    kind: CatalogKind,
) -> Route {
    member(template, methods, roles, Target::Objects(kind))
}

const fn object(
    template: &'static str,
    methods: &'static str,
    roles: &'static [Role],
    kind: CatalogKind,
) -> Route {
    member(template, methods, roles, Target::Object(kind))
}
