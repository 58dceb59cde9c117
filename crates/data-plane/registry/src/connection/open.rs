//! Opens a connection: the handshake, the subscription to changes, and the lists.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
};

use narthex_model::{CallErrorKind, ServerState, WantedSignIn};
use narthex_upstream::{
    ConnectError, Deadlines, Dialect, Inventory, Link, LinkError, LinkEvent, Phase,
};
use narthex_wire::Notification;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Duration, Instant, timeout},
};

use super::{
    Connection, changes,
    pins::{Seen, Turn},
};
use crate::{Found, registry::Shared};

/// Time that a modern server may take to acknowledge that it will announce changes.
const ACKNOWLEDGE_DEADLINE: Duration = Duration::from_secs(1);

/// A server that is about to be ready.
pub(super) struct Opened {
    pub(super) link: Arc<Link>,
    pub(super) dialect: Dialect,
    /// The part of the server's lists and facts that callers may see.
    pub(super) seen: Seen,
    /// The turn to review, held until `seen` is published.
    pub(super) turn: Option<Turn>,
    /// True if the lists changed while they were read.
    pub(super) is_stale: bool,
}

/// The reason why a connection could not be opened.
pub(super) struct Fault {
    pub(super) kind: CallErrorKind,
    /// The cause.
    pub(super) message: String,
    /// The action that narthex takes after the fault, if any.
    pub(super) outcome: Option<Cow<'static, str>>,
    /// True if the server refuses the credential that it got.
    pub(super) is_refused: bool,
    /// True if the server forgot the session that it had just opened: an attempt may follow at
    /// once.
    pub(super) is_forgotten: bool,
    /// True if time alone may mend the fault: the server was not reached, or reported that it
    /// cannot work now.
    pub(super) is_unreachable: bool,
    /// The sign-in of a person for which the server waits.
    pub(super) sign_in: Option<Box<WantedSignIn>>,
}

impl Fault {
    pub(super) fn new(kind: CallErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            outcome: None,
            is_refused: false,
            is_forgotten: false,
            is_unreachable: false,
            sign_in: None,
        }
    }

    /// This fault with the action that narthex takes.
    pub(super) fn and(self, outcome: impl Into<Cow<'static, str>>) -> Self {
        Self { outcome: Some(outcome.into()), ..self }
    }

    /// True if only a person can mend the fault, so that no further attempt may help.
    pub(super) fn needs_person(&self) -> bool {
        self.kind == CallErrorKind::AuthUnavailable && !self.is_unreachable
    }

    /// The cause with narthex's action.
    pub(super) fn text(&self) -> String {
        match &self.outcome {
            Some(outcome) => format!("{}; {outcome}", self.message),
            None => self.message.clone(),
        }
    }

    /// The fault of a server that did not answer a request of narthex.
    pub(super) fn of(error: &LinkError, message: String) -> Self {
        Self {
            is_unreachable: error.is_unreachable(),
            is_refused: matches!(error, LinkError::AuthRejected { .. }),
            sign_in: error.wanted_sign_in().map(Box::new),
            ..Self::new(error.call_kind(), message)
        }
    }

    fn unreachable(kind: CallErrorKind, message: String) -> Self {
        Self { is_unreachable: true, ..Self::new(kind, message) }
    }
}

impl From<ConnectError> for Fault {
    fn from(error: ConnectError) -> Self {
        Self {
            is_forgotten: error.is_forgotten(),
            is_unreachable: error.is_unreachable(),
            is_refused: error.is_refused_credential(),
            sign_in: error.wanted_sign_in().map(Box::new),
            ..Self::new(error.call_kind(), error.to_string())
        }
    }
}

impl Connection {
    pub(super) async fn open(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        dialect: Option<Dialect>,
        events: mpsc::Sender<LinkEvent>,
        received: &mut mpsc::Receiver<LinkEvent>,
    ) -> Result<Opened, Fault> {
        let found = self.found();
        let of = (&found.log, &found.health);
        let mut context = shared.context(events, self.settings.deadlines, of);
        context.dialect = dialect;
        self.equip(&mut context);
        let (observer, connection) = (shared.clone(), self.clone());
        context.on_phase = Some(Arc::new(move |phase| {
            let activity = match phase {
                Phase::Installing => "installing",
                Phase::Connecting => "connecting",
            };
            connection.busy(&observer, activity);
        }));
        self.is_connecting.store(true, Ordering::Release);
        let connected = narthex_upstream::connect(&self.definition, &context).await;
        self.is_connecting.store(false, Ordering::Release);
        let (link, dialect) = connected?;
        let link = Arc::new(link);
        self.has_at_hand(&link);
        if self.is_ending() {
            link.stop().await;
            let why = "no client needs it any more".to_owned();
            return Err(Fault::new(CallErrorKind::TransportError, why));
        }
        self.update(shared, |found| found.dialect = Some(dialect));
        self.busy(shared, "listing");
        let since = Instant::now();
        let spent = |link: &Link| link.connected_in() + since.elapsed();
        if link.facts().revision.is_modern() {
            let (acknowledged, acknowledgement) = oneshot::channel();
            let hearing = changes::hear(shared.clone(), self.clone(), link.clone(), acknowledged);
            shared.tasks.spawn(hearing);
            // Lists that are read after the acknowledgement miss no change. A silent server must
            // not delay the lists.
            let within = self.settings.deadlines.left(ACKNOWLEDGE_DEADLINE, spent(&link));
            if timeout(within, acknowledgement).await.is_err() {
                tracing::debug!(server.name = link.name(), "has not acknowledged its subscription");
            }
        }
        let listed = match self.list(shared, &link, received, spent(&link)).await {
            Ok((inventory, is_stale)) => {
                let seen = self.seen_first(shared, inventory, &link).await;
                seen.map(|(seen, turn)| Opened {
                    link: link.clone(),
                    dialect,
                    seen,
                    turn,
                    is_stale,
                })
            }
            Err(fault) => Err(fault),
        };
        match listed {
            Ok(opened) => Ok(opened),
            Err(fault) => {
                let is_forgotten = link.is_session_over();
                link.stop().await;
                Err(Fault { is_forgotten, ..fault })
            }
        }
    }

    /// Shows the activity of a server that is not ready yet.
    pub(super) fn busy(&self, shared: &Shared, activity: &'static str) {
        let is_new = |found: &Found| {
            found.state == ServerState::Connecting && found.activity != Some(activity)
        };
        if is_new(&self.found()) {
            self.update(shared, |found| {
                if is_new(found) {
                    found.activity = Some(activity);
                }
            });
        }
    }

    /// Reads all lists, while the server may already ask and send notifications. The flag is true
    /// if the lists changed meanwhile.
    async fn list(
        &self,
        shared: &Shared,
        link: &Arc<Link>,
        received: &mut mpsc::Receiver<LinkEvent>,
        spent: Duration,
    ) -> Result<(Inventory, bool), Fault> {
        let Deadlines { list, mount, .. } = self.settings.deadlines;
        let within = self.settings.deadlines.left(list, spent);
        let mut is_stale = false;
        let fetching = timeout(within, Box::pin(Inventory::fetch(link, within)));
        tokio::pin!(fetching);
        let fetched = loop {
            let event = tokio::select! {
                biased;
                fetched = &mut fetching => break fetched,
                Some(event) = received.recv() => event,
            };
            match event {
                LinkEvent::Request(request) => link.refuse_undeclared(&request).await,
                LinkEvent::Notification(message) => {
                    is_stale |= Notification::is_list_change(message.method());
                    shared.notice(self, message);
                }
                LinkEvent::Closed(why) => {
                    let message = format!("listing failed: {why}");
                    return Err(Fault::unreachable(CallErrorKind::TransportError, message));
                }
            }
        };
        match fetched {
            Ok(Ok(inventory)) => Ok((inventory, is_stale)),
            Ok(Err(failed)) => {
                let message = failed.to_string();
                let fault = Fault::of(&failed.error, message);
                // The credential was good enough for the handshake.
                Err(Fault { is_refused: false, ..fault })
            }
            Err(_) => Err(Fault::unreachable(
                CallErrorKind::Timeout,
                match mount {
                    Some(mount) => format!("mounting took longer than {} ms", mount.as_millis()),
                    None => format!("listing took longer than {} s", list.as_secs()),
                },
            )),
        }
    }
}
