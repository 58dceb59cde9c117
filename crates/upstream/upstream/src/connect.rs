//! Connecting to a server: parameters, outcome and failures.

use std::{fmt, sync::Arc, time::Duration};

use narthex_http_client::{ClientError, Proxies, without_secrets};
use narthex_model::{Confinement, ServerDefinition, Target, WantedSignIn};
use narthex_supervisor::{BaseEnvironment, LogRing, Shim, SpawnError};
use narthex_wire::{Limits, Redactor};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::task::TaskTracker;

use crate::{
    CredentialFault, Credentials, Health, LinkError, LinkEvent,
    link::{ClientIdentity, Inner, Link, ServerFacts, UseCount},
    outlet::Outlet,
    redaction::Redaction,
    secrets,
};

/// The dialect that a server understands. The registry stores the dialect, so that later links
/// probe less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Revision 2026-07-28.
    Modern,
    /// The `initialize` handshake.
    Legacy,
    /// The `initialize` handshake over HTTP+SSE.
    Sse,
}

/// Limits on the steps of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Longest time for which a silent server may leave the era probe unanswered.
    pub probe: Duration,
    /// Longest time of the handshake, once the program runs.
    pub connect: Duration,
    /// Longest time of reading all lists, once the server is connected.
    pub list: Duration,
    /// Longest time until the first answer of a program that a package runner may have to download.
    pub install: Duration,
    /// Longest time from the start to the last list, without such a download. `None` if only the
    /// steps have limits.
    pub mount: Option<Duration>,
}

impl Deadlines {
    /// The deadlines for a server whose mounting may take `mount` in all. The era probe gets at
    /// most half of that; after a silent probe, the legacy handshake follows.
    #[must_use]
    pub fn within(self, mount: Duration) -> Self {
        let probe = self.probe.min(mount / 2);
        Self { probe, connect: mount, list: mount, mount: Some(mount), ..self }
    }

    /// The time left for a step that may take `limit`, after `spent` of the mounting.
    #[must_use]
    pub fn left(&self, limit: Duration, spent: Duration) -> Duration {
        self.mount.map_or(limit, |mount| limit.min(mount.saturating_sub(spent)))
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(5),
            connect: Duration::from_secs(30),
            list: Duration::from_secs(30),
            install: Duration::from_secs(300),
            mount: None,
        }
    }
}

/// The parts that connecting needs besides the definition.
#[derive(Clone)]
pub struct ConnectContext {
    /// The client's description of itself for the server.
    pub identity: ClientIdentity,
    /// The dialect that an earlier link found.
    pub dialect: Option<Dialect>,
    /// Limits on the steps.
    pub deadlines: Deadlines,
    /// The receiver of the server's own messages.
    pub events: mpsc::Sender<LinkEvent>,
    /// The owner of the link's tasks.
    pub tasks: TaskTracker,
    /// Limits of single messages.
    pub limits: Limits,
    /// The environment that every child gets.
    pub environment: BaseEnvironment,
    /// Stores the program's stderr over all its starts, and the log lines about the server. `None`
    /// if each start has its own log.
    pub log: Option<LogRing>,
    /// The supervision of the server's program.
    pub supervision: Supervision,
    /// The proxies for servers over HTTP.
    pub proxies: Arc<Proxies>,
    /// Receives the current step of the connection.
    pub on_phase: Option<OnPhase>,
    /// The state of the server's health, on all links to it.
    pub health: Arc<Health>,
    /// The credential of a server over HTTP that can change while a link is open. It replaces an
    /// `Authorization` header of the definition.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// True if that credential is the grant of one human, who drives the callers of the link.
    pub has_holder: bool,
}

/// The supervision of servers' programs, shared by all servers.
#[derive(Debug, Clone, Default)]
pub struct Supervision {
    /// The shim between the daemon and a server's program.
    pub shim: Shim,
    /// The confinement of programs whose definition sets none.
    pub confinement: Option<Confinement>,
}

/// Callback for the current step of a connection. Must not block.
pub type OnPhase = Arc<dyn Fn(Phase) + Send + Sync>;

/// The current step of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A package runner may be downloading the server's program.
    Installing,
    /// The server runs, or is reached, and the handshake is under way.
    Connecting,
}

impl fmt::Debug for ConnectContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectContext")
            .field("dialect", &self.dialect)
            .field("deadlines", &self.deadlines)
            .finish_non_exhaustive()
    }
}

/// The reason why a server could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The program could not be started.
    #[error("{0}")]
    Spawn(#[source] SpawnError),
    /// The HTTP client refuses the URL.
    #[error("{0}")]
    Client(#[source] ClientError),
    /// The text is no URL. The error does not repeat it: the faulty part may come before a secret.
    #[error("the URL cannot be used: {0}; write it like https://host/mcp")]
    Url(String),
    /// The handshake failed.
    #[error("{0}")]
    Link(#[source] LinkError),
    /// A message of the handshake failed.
    #[error("`{message}` failed: {error}")]
    Message {
        /// The message's method.
        message: &'static str,
        /// The failure.
        error: LinkError,
    },
    /// The server answered the handshake with an error.
    #[error("the server refuses the handshake: {0}")]
    Refused(String),
    /// A header of the configuration is not valid.
    #[error("`{0}` is not a valid header name or value")]
    Header(String),
    /// The configured authentication cannot work.
    #[error("{0}")]
    Auth(String),
    /// The server did not answer in time.
    #[error("no answer to the handshake within {}{hint}", in_words(*.after))]
    Deadline {
        /// The limit.
        after: Duration,
        /// The last line of the program's stderr, if there is one.
        hint: String,
    },
}

/// True if no server was reached.
fn is_on_the_way(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Dns { .. }
            | ClientError::Refused { .. }
            | ClientError::Connect { .. }
            | ClientError::ConnectTimeout { .. }
            | ClientError::Proxy { .. }
            | ClientError::Tls { .. }
    )
}

/// A limit as people write it.
fn in_words(limit: Duration) -> String {
    match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{} ms", limit.as_millis()),
    }
}

impl ConnectError {
    /// The error kind for the server's row (E62, E63).
    #[must_use]
    pub fn call_kind(&self) -> narthex_model::CallErrorKind {
        use narthex_model::CallErrorKind as Kind;
        if self.is_refused_credential() || self.credential_fault().is_some() {
            return Kind::AuthUnavailable;
        }
        match self {
            Self::Auth(_) => Kind::AuthUnavailable,
            Self::Deadline { .. } => Kind::Timeout,
            Self::Spawn(_)
            | Self::Client(_)
            | Self::Url(_)
            | Self::Link(_)
            | Self::Message { .. }
            | Self::Refused(_)
            | Self::Header(_) => Kind::TransportError,
        }
    }

    /// Returns a conversion of a failure to an error that names this message of the handshake.
    pub(crate) fn at(message: &'static str) -> impl FnOnce(LinkError) -> Self {
        move |error| {
            // No message arrived then, so the name of one explains nothing.
            let is_plain = match &error {
                LinkError::Client(cause) => is_on_the_way(cause),
                // No message of the handshake was carried out.
                LinkError::SignIn { .. } => true,
                _ => false,
            };
            if is_plain { Self::Link(error) } else { Self::Message { message, error } }
        }
    }

    /// The link's failure; `None` for an error of another kind.
    pub(crate) fn link(&self) -> Option<&LinkError> {
        match self {
            Self::Link(error) | Self::Message { error, .. } => Some(error),
            Self::Spawn(_)
            | Self::Client(_)
            | Self::Url(_)
            | Self::Refused(_)
            | Self::Header(_)
            | Self::Auth(_)
            | Self::Deadline { .. } => None,
        }
    }

    /// True if the server forgot the session that the server had just opened: one immediate retry
    /// may help.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        matches!(self.link(), Some(LinkError::SessionEnded))
    }

    /// The reason why no credential could be had; `None` for an error of another kind.
    #[must_use]
    pub fn credential_fault(&self) -> Option<&CredentialFault> {
        self.link().and_then(LinkError::credential_fault)
    }

    /// The sign-in of a person for which the server waits.
    #[must_use]
    pub fn wanted_sign_in(&self) -> Option<WantedSignIn> {
        self.link().and_then(LinkError::wanted_sign_in)
    }

    /// True if the server refuses the client's credential.
    #[must_use]
    pub fn is_refused_credential(&self) -> bool {
        matches!(self.link(), Some(LinkError::AuthRejected { .. }))
    }

    /// True if a later attempt may succeed without a change: the server was not reached, or
    /// answered that it cannot work now.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Link(error) | Self::Message { error, .. } => error.is_unreachable(),
            Self::Deadline { .. } => true,
            Self::Spawn(_)
            | Self::Client(_)
            | Self::Url(_)
            | Self::Refused(_)
            | Self::Header(_)
            | Self::Auth(_) => false,
        }
    }

    /// True if the server itself refused the handshake, by an answer or by closing: the next
    /// attempt would end in the same way.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        if matches!(self, Self::Refused(_)) {
            return true;
        }
        match self.link() {
            Some(
                LinkError::Closed(_)
                | LinkError::Unread(_)
                | LinkError::Protocol(_)
                | LinkError::Refused { .. },
            ) => true,
            Some(LinkError::Status { status, .. }) => {
                (400..500).contains(status) && !matches!(status, 408 | 425 | 429)
            }
            Some(
                LinkError::Cut(_)
                | LinkError::SessionEnded
                | LinkError::BrokenOff(_)
                | LinkError::Client(_)
                | LinkError::AuthRejected { .. }
                | LinkError::SignIn { .. }
                | LinkError::Deadline(_)
                | LinkError::Request(_),
            )
            | None => false,
        }
    }

    /// The error without known secrets: servers often repeat secrets that they refuse.
    fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.text(&text).into_owned();
        match self {
            Self::Refused(text) => Self::Refused(clean(text)),
            Self::Url(text) => Self::Url(clean(text)),
            Self::Link(error) => Self::Link(error.redacted(redactor)),
            Self::Message { message, error } => {
                Self::Message { message, error: error.redacted(redactor) }
            }
            Self::Deadline { after, hint } => Self::Deadline { after, hint: clean(hint) },
            Self::Client(error) => Self::Client(error.redacted(redactor).unwrap_or(error)),
            Self::Spawn(error) => Self::Spawn(match without_secrets(&error, redactor) {
                Some(text) => SpawnError::Redacted { text, kind: error.kind() },
                None => error,
            }),
            Self::Header(name) => Self::Header(clean(name)),
            Self::Auth(text) => Self::Auth(clean(text)),
        }
    }
}

impl From<LinkError> for ConnectError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// The parameters of one connection.
pub(crate) struct Setup<'a> {
    pub(crate) definition: &'a ServerDefinition,
    pub(crate) context: &'a ConnectContext,
    pub(crate) redaction: Redaction,
}

impl Setup<'_> {
    /// The outlet for the events of one link.
    pub(crate) fn outlet(&self) -> Outlet {
        let (events, redaction) = (self.context.events.clone(), self.redaction.clone());
        let (server, health) = (self.definition.alias.clone(), self.context.health.clone());
        Outlet::new(server, events, redaction, health)
    }

    pub(crate) fn phase(&self, phase: Phase) {
        if let Some(on_phase) = &self.context.on_phase {
            on_phase(phase);
        }
    }
}

/// A handshake that succeeded.
pub(crate) type Shaken = (Inner, ServerFacts, Dialect);

/// Connects to a server; returns the link, and the dialect that the server understands.
///
/// # Errors
/// When the server cannot be reached or does not complete a handshake in time, or names secrets
/// that are not filled in. No error contains a secret of the definition.
pub async fn connect(
    definition: &ServerDefinition,
    context: &ConnectContext,
) -> Result<(Link, Dialect), ConnectError> {
    secrets::are_opened(definition).map_err(ConnectError::Auth)?;
    let identity = context.identity.declaring(&definition.target);
    let context = &ConnectContext { identity, ..context.clone() };
    let redaction = secrets::redaction(definition, context.credentials.is_some());
    let setup = Setup { definition, context, redaction };
    let began = Instant::now();
    let mut spent = None;
    let shaken = match &definition.target {
        Target::Stdio(target) => {
            Box::pin(crate::connect_stdio::shake(&setup, target, &mut spent)).await
        }
        Target::Http(target) => {
            let within = context.deadlines.connect;
            setup.phase(Phase::Connecting);
            let connecting = Box::pin(crate::connect_http::shake(&setup, target));
            tokio::time::timeout(within, connecting).await.unwrap_or_else(|_elapsed| {
                Err(ConnectError::Deadline { after: within, hint: String::new() })
            })
        }
    };
    let redaction = setup.redaction.clone();
    match shaken {
        Ok((inner, mut facts, dialect)) => {
            let clean = redaction.with(|all| all.and_then(|all| all.json(&facts.result)));
            if let Some(clean) = clean {
                facts.result = clean.into();
            }
            let (identity, alias) = (context.identity.clone(), definition.alias.clone());
            let uses = UseCount::new();
            let log = match &inner {
                Inner::Stdio(stdio) => stdio.log().clone(),
                Inner::Http(_) | Inner::Sse(_) => context.log.clone().unwrap_or_default(),
            };
            let connected_in = spent.unwrap_or_else(|| began.elapsed());
            let link = Link { inner, facts, identity, alias, redaction, uses, log, connected_in };
            link.outlet().establish();
            Ok((link, dialect))
        }
        Err(error) => Err(redaction.with(|redactor| match redactor {
            Some(redactor) => error.redacted(redactor),
            None => error,
        })),
    }
}
