//! The life of one server's shared link: connect, list, listen, reconnect, end.

use std::{sync::Arc, time::Duration};

use narthex_model::{Alias, CallErrorKind, ServerDefinition, ServerState};
use narthex_upstream::{Dialect, Inventory, Link, LinkError, LinkEvent};
use narthex_wire::{Message, Raw, method, rpc};
use tokio::{sync::mpsc, time::timeout};

use crate::registry::{EVENT_QUEUE, Notice, Shared};

/// The pauses before a server that was ready is connected again (D17).
const BACKOFF: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// Why the life of a link came to its end.
enum End {
    Shutdown,
    Lost(Arc<str>),
}

/// Connects a server and keeps it connected until the registry closes or it fails for good.
pub(crate) async fn run(shared: Arc<Shared>, definition: Arc<ServerDefinition>) {
    let alias = definition.alias.clone();
    let mut dialect = None;
    let mut failures = 0;
    let mut lost: Option<Arc<str>> = None;
    loop {
        if let Some(why) = &lost {
            let Some(pause) = BACKOFF.get(failures) else {
                let text = format!("{why}; gave up after {failures} attempts to reconnect");
                return shared.failed(&alias, CallErrorKind::TransportError, text);
            };
            tokio::select! {
                biased;
                () = shared.shutdown.cancelled() => return,
                () = tokio::time::sleep(*pause) => {}
            }
        }
        let (events, mut received) = mpsc::channel(EVENT_QUEUE);
        let connecting = open(&shared, &definition, dialect, events);
        let opened = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            opened = connecting => opened,
        };
        let (link, inventory) = match opened {
            Ok((link, found, inventory)) => {
                dialect = Some(found);
                (link, inventory)
            }
            Err((kind, message)) if lost.is_none() => {
                return shared.failed(&alias, kind, message);
            }
            Err((_, message)) => {
                lost = Some(message.into());
                failures += 1;
                // What it spoke before may have changed with its new start.
                dialect = None;
                continue;
            }
        };
        shared.ready(&alias, link.clone(), inventory);
        failures = 0;
        if link.facts().revision.is_modern() {
            shared.tasks.spawn(hear_changes(shared.clone(), link.clone()));
        }
        let end = live(&shared, &alias, &link, &mut received).await;
        link.stop().await;
        match end {
            End::Shutdown => return,
            End::Lost(why) => {
                tracing::info!(server.name = %alias, "connection lost: {why}");
                shared.update(&alias, |row| {
                    row.state = ServerState::Connecting;
                    row.activity = Some("reconnecting");
                    row.link = None;
                });
                lost = Some(why);
            }
        }
    }
}

type Opened = (Arc<Link>, Dialect, Inventory);

async fn open(
    shared: &Arc<Shared>,
    definition: &ServerDefinition,
    dialect: Option<Dialect>,
    events: mpsc::Sender<LinkEvent>,
) -> Result<Opened, (CallErrorKind, String)> {
    let mut context = shared.context(events);
    context.dialect = dialect;
    if narthex_upstream::may_install(definition) {
        shared.update(&definition.alias, |row| row.activity = Some("starting or installing"));
    }
    let (link, dialect) = narthex_upstream::connect(definition, &context)
        .await
        .map_err(|error| (error.call_kind(), error.to_string()))?;
    shared.update(&definition.alias, |row| {
        row.activity = Some("listing");
        row.dialect = Some(dialect);
    });
    let within = shared.options.deadlines.connect;
    let listed = match timeout(within, Inventory::fetch(&link)).await {
        Ok(Ok(inventory)) => Ok(inventory),
        Ok(Err(error)) => Err((error.call_kind(), format!("listing failed: {error}"))),
        Err(_) => Err((
            CallErrorKind::Timeout,
            format!("listing took longer than {} s", within.as_secs()),
        )),
    };
    match listed {
        Ok(inventory) => Ok((Arc::new(link), dialect, inventory)),
        Err(error) => {
            link.stop().await;
            Err(error)
        }
    }
}

/// Handles what the server says by itself, until the link ends.
async fn live(
    shared: &Arc<Shared>,
    alias: &Alias,
    link: &Arc<Link>,
    events: &mut mpsc::Receiver<LinkEvent>,
) -> End {
    loop {
        let event = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return End::Shutdown,
            event = events.recv() => event,
        };
        match event {
            None => return End::Lost("the connection ended".into()),
            Some(LinkEvent::Closed(why)) => return End::Lost(why),
            Some(LinkEvent::Request(request)) => refuse(link, &request).await,
            Some(LinkEvent::Notification(message)) => {
                if is_list_change(message.method()) {
                    tokio::select! {
                        biased;
                        () = shared.shutdown.cancelled() => return End::Shutdown,
                        () = relist(shared, alias, link) => {}
                    }
                }
                let notice = Notice { alias: alias.clone(), message };
                if shared.notices.send(notice).is_err() {
                    tracing::trace!("nobody listens to notices");
                }
            }
        }
    }
}

/// Keeps a modern server's stream of list changes open as long as the link lives.
async fn hear_changes(shared: Arc<Shared>, link: Arc<Link>) {
    let filter = br#""notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
    for pause in BACKOFF.into_iter().cycle() {
        let ended = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = link.closed().cancelled() => return,
            ended = link.listen(filter) => ended,
        };
        match ended {
            Err(LinkError::Protocol(why)) => {
                tracing::debug!(server.name = link.name(), "does not announce changes: {why}");
                return;
            }
            Err(error) => tracing::debug!(server.name = link.name(), %error, "stream lost"),
            Ok(()) => {}
        }
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = link.closed().cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        // What happened meanwhile was not heard.
        relist(&shared, link.alias(), &link).await;
    }
}

fn is_list_change(name: &str) -> bool {
    matches!(
        name,
        method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED
    )
}

async fn relist(shared: &Arc<Shared>, alias: &Alias, link: &Arc<Link>) {
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
    if let Err(error) = link.respond(answer).await {
        tracing::debug!(%error, id = ?request.id().map(Raw::as_bytes), "could not refuse");
    }
}
