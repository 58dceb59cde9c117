//! The life of one server's shared link: connect, list, listen, reconnect, end.

mod changes;

use std::{sync::Arc, time::Duration};

use narthex_model::{Alias, CallErrorKind, ServerDefinition, ServerState};
use narthex_upstream::{Dialect, Inventory, Link, LinkEvent, Phase};
use narthex_wire::{Message, method, rpc};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use crate::registry::{EVENT_QUEUE, Shared};

/// The pauses before a server that was ready is connected again (D17).
const BACKOFF: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// A server that lives this long has recovered: the next loss begins with the shortest pause.
const STABLE_AFTER: Duration = Duration::from_secs(30);
/// How long a modern server may take to acknowledge that it will announce changes.
const ACKNOWLEDGE_DEADLINE: Duration = Duration::from_secs(1);
/// How long a server may take to hear that its question is refused.
const REFUSE_DEADLINE: Duration = Duration::from_secs(5);

/// Why the life of a link came to its end.
enum End {
    Shutdown,
    Lost(Arc<str>),
}

/// How often a server was lost lately.
#[derive(Default)]
struct Losses {
    /// Losses without a stable life in between.
    in_a_row: usize,
    /// Attempts to connect since the last loss that failed.
    failures: usize,
}

impl Losses {
    /// The pause before the next attempt; `None` when enough were made.
    fn pause(&self) -> Option<Duration> {
        if self.failures >= BACKOFF.len() {
            return None;
        }
        let step = (self.in_a_row.saturating_sub(1) + self.failures).min(BACKOFF.len() - 1);
        Some(BACKOFF[step])
    }

    fn lost(&mut self, lived: Duration) {
        self.in_a_row = if lived >= STABLE_AFTER { 1 } else { self.in_a_row + 1 };
        self.failures = 0;
    }
}

/// Connects a server and keeps it connected until the registry closes or it fails for good.
pub(crate) async fn run(shared: Arc<Shared>, definition: Arc<ServerDefinition>) {
    let alias = definition.alias.clone();
    let mut dialect = None;
    let mut losses = Losses::default();
    loop {
        let (events, mut received) = mpsc::channel(EVENT_QUEUE);
        let connecting = open(&shared, &definition, dialect, events, &mut received);
        let opened = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            opened = Box::pin(connecting) => opened,
        };
        let mut pauses = true;
        match opened {
            Ok(opened) => {
                dialect = Some(opened.dialect);
                let link = opened.link.clone();
                let since = Instant::now();
                let end = live(&shared, &alias, opened, &mut received).await;
                link.stop().await;
                let End::Lost(why) = end else { return };
                losses.lost(since.elapsed());
                // A session that the server forgot is no failure, unless it makes a habit of it.
                pauses = !(link.is_session_over() && losses.in_a_row == 1);
                tracing::info!(server.name = %alias, "connection lost: {why}");
                shared.update(&alias, |row| {
                    row.state = ServerState::Connecting;
                    row.activity = Some("reconnecting");
                    row.link = None;
                });
            }
            Err((kind, message)) if losses.in_a_row == 0 => {
                return shared.failed(&alias, kind, message);
            }
            Err((kind, message)) => {
                losses.failures += 1;
                // What it spoke before may have changed with its new start.
                dialect = None;
                if losses.pause().is_none() {
                    let text = format!(
                        "{message}; gave up after {} attempts to reconnect",
                        losses.failures
                    );
                    return shared.failed(&alias, kind, text);
                }
            }
        }
        let pause = losses.pause().filter(|_| pauses).unwrap_or_default();
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// A server that is about to be ready.
struct Opened {
    link: Arc<Link>,
    dialect: Dialect,
    inventory: Inventory,
    /// The lists changed while they were read.
    is_stale: bool,
}

async fn open(
    shared: &Arc<Shared>,
    definition: &ServerDefinition,
    dialect: Option<Dialect>,
    events: mpsc::Sender<LinkEvent>,
    received: &mut mpsc::Receiver<LinkEvent>,
) -> Result<Opened, (CallErrorKind, String)> {
    let mut context = shared.context(events);
    context.dialect = dialect;
    let (observer, alias) = (shared.clone(), definition.alias.clone());
    context.on_phase = Some(Arc::new(move |phase| {
        let activity = match phase {
            Phase::Installing => "installing",
            Phase::Connecting => "connecting",
        };
        observer.update(&alias, |row| row.activity = Some(activity));
    }));
    let (link, dialect) = narthex_upstream::connect(definition, &context)
        .await
        .map_err(|error| (error.call_kind(), error.to_string()))?;
    let link = Arc::new(link);
    shared.update(&definition.alias, |row| {
        row.activity = Some("listing");
        row.dialect = Some(dialect);
    });
    if link.facts().revision.is_modern() {
        let (acknowledged, acknowledgement) = oneshot::channel();
        shared.tasks.spawn(changes::hear(shared.clone(), link.clone(), acknowledged));
        // Lists that are read after it cannot miss a change. Silence must not hold them up.
        if timeout(ACKNOWLEDGE_DEADLINE, acknowledgement).await.is_err() {
            tracing::debug!(server.name = link.name(), "has not acknowledged its subscription");
        }
    }
    match list(shared, &link, received).await {
        Ok((inventory, is_stale)) => Ok(Opened { link, dialect, inventory, is_stale }),
        Err(error) => {
            link.stop().await;
            Err(error)
        }
    }
}

/// Reads all lists, while the server may already ask and tell things; whether they changed
/// meanwhile comes with them.
async fn list(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    received: &mut mpsc::Receiver<LinkEvent>,
) -> Result<(Inventory, bool), (CallErrorKind, String)> {
    let within = shared.options.deadlines.connect;
    let mut is_stale = false;
    let fetching = timeout(within, Box::pin(Inventory::fetch(link)));
    tokio::pin!(fetching);
    let fetched = loop {
        let event = tokio::select! {
            biased;
            fetched = &mut fetching => break fetched,
            Some(event) = received.recv() => event,
        };
        match event {
            LinkEvent::Request(request) => refuse(link, &request).await,
            LinkEvent::Notification(message) => {
                is_stale |= is_list_change(message.method());
                shared.notice(link.alias(), message);
            }
            LinkEvent::Closed(why) => {
                return Err((CallErrorKind::TransportError, format!("listing failed: {why}")));
            }
        }
    };
    match fetched {
        Ok(Ok(inventory)) => Ok((inventory, is_stale)),
        Ok(Err(error)) => Err((error.call_kind(), format!("listing failed: {error}"))),
        Err(_) => Err((
            CallErrorKind::Timeout,
            format!("listing took longer than {} s", within.as_secs()),
        )),
    }
}

/// Shows a server as ready and handles what it says by itself, until the link ends.
async fn live(
    shared: &Arc<Shared>,
    alias: &Alias,
    opened: Opened,
    events: &mut mpsc::Receiver<LinkEvent>,
) -> End {
    let Opened { link, dialect: _, inventory, is_stale } = opened;
    shared.ready(alias, link.clone(), inventory);
    let handling = async {
        if is_stale {
            relist(shared, alias, &link).await;
        }
        loop {
            match events.recv().await {
                None => return End::Lost("the connection ended".into()),
                Some(LinkEvent::Closed(why)) => return End::Lost(why),
                Some(LinkEvent::Request(request)) => refuse(&link, &request).await,
                Some(LinkEvent::Notification(message)) => {
                    if is_list_change(message.method()) {
                        relist(shared, alias, &link).await;
                    }
                    shared.notice(alias, message);
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => End::Shutdown,
        end = Box::pin(handling) => end,
    }
}

fn is_list_change(name: &str) -> bool {
    matches!(
        name,
        method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED
    )
}

pub(crate) async fn relist(shared: &Arc<Shared>, alias: &Alias, link: &Arc<Link>) {
    match timeout(shared.options.deadlines.connect, Inventory::fetch(link)).await {
        Ok(Ok(inventory)) => shared.update(alias, |row| {
            row.inventory = Arc::new(inventory);
            row.inventory_version += 1;
        }),
        Ok(Err(error)) => tracing::warn!(server.name = %alias, %error, "listing anew failed"),
        Err(_) => tracing::warn!(server.name = %alias, "listing anew took too long"),
    }
}

/// The shared link declares no client capabilities, so no server may ask anything on it.
async fn refuse(link: &Link, request: &Message) {
    let text = "this client declared no such capability";
    let answer = rpc::error_response(request.id(), rpc::code::METHOD_NOT_FOUND, text, None);
    match timeout(REFUSE_DEADLINE, link.respond(answer)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, method = request.method(), "could not refuse"),
        Err(_) => tracing::debug!(method = request.method(), "could not refuse in time"),
    }
}
