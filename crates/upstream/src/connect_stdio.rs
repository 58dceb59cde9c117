//! The handshake with a child process, which may have to be downloaded first.

use std::time::Duration;

use narthex_model::{ServerDefinition, Target};
use tokio::time::timeout;

use crate::{
    ConnectContext, ConnectError, Dialect, LinkError,
    connect::{ask_duplex, discover, initialize_duplex, modern_facts, start},
    link::{Inner, Link, ServerFacts},
    stdio::StdioLink,
};

/// Programs that download what they run.
const PACKAGE_RUNNERS: [&str; 10] =
    ["npx", "bunx", "pnpm", "yarn", "uvx", "uv", "pipx", "docker", "podman", "dnx"];

/// Whether a definition's program may need a download before it speaks.
#[must_use]
pub fn may_install(definition: &ServerDefinition) -> bool {
    let Target::Stdio(target) = &definition.target else { return false };
    let file = target.command.rsplit(['/', '\\']).next().unwrap_or_default();
    PACKAGE_RUNNERS.contains(&file)
}

pub(crate) async fn connect(
    definition: &ServerDefinition,
    context: &ConnectContext,
) -> Result<(Link, Dialect), ConnectError> {
    // Starting may hang on a dead network disk.
    let within = context.deadlines.connect;
    let starting = timeout(within, start(definition, context)).await;
    let mut stdio = starting.map_err(|_elapsed| late(within, None))??;
    match shake(&mut stdio, definition, context).await {
        Ok((facts, dialect)) => {
            let alias = definition.alias.clone();
            let identity = context.identity.clone();
            Ok((Link { inner: Inner::Stdio(stdio), facts, identity, alias }, dialect))
        }
        Err(error) => {
            stdio.stop().await;
            Err(error)
        }
    }
}

async fn shake(
    stdio: &mut StdioLink,
    definition: &ServerDefinition,
    context: &ConnectContext,
) -> Result<(ServerFacts, Dialect), ConnectError> {
    let is_installing = may_install(definition);
    if matches!(context.dialect, None | Some(Dialect::Modern)) {
        // A package runner is silent while it downloads; that is not the server's silence.
        let within =
            if is_installing { context.deadlines.install } else { context.deadlines.probe };
        if let Some(facts) = probe(stdio, context, within).await? {
            return Ok((facts, Dialect::Modern));
        }
        if stdio.duplex.closed().is_cancelled() {
            // Some old servers exit on a method that they do not know.
            *stdio = start(definition, context).await?;
        }
    }
    let is_first = context.dialect.is_some() && is_installing;
    let within = if is_first { context.deadlines.install } else { context.deadlines.connect };
    let shaking = initialize_duplex(&stdio.duplex, &context.identity);
    let facts = timeout(within, shaking).await.map_err(|_elapsed| late(within, Some(stdio)))??;
    Ok((facts, Dialect::Legacy))
}

/// Asks for revision 2026-07-28; `None` if the server does not speak it or does not answer.
async fn probe(
    stdio: &StdioLink,
    context: &ConnectContext,
    within: Duration,
) -> Result<Option<ServerFacts>, ConnectError> {
    let (id, body) = discover(stdio.duplex.next_id(), &context.identity);
    match timeout(within, ask_duplex(&stdio.duplex, id, body)).await {
        Ok(Ok(message)) => Ok(modern_facts(&message)),
        Ok(Err(LinkError::Closed(_))) | Err(_) => Ok(None),
        Ok(Err(error)) => Err(error.into()),
    }
}

fn late(after: Duration, stdio: Option<&StdioLink>) -> ConnectError {
    let tail = stdio.map(StdioLink::log_tail).unwrap_or_default();
    let last = tail.iter().rev().find(|line| !line.trim().is_empty());
    let hint = last.map_or_else(String::new, |line| format!("; its last words: {}", line.trim()));
    ConnectError::Deadline { after, hint }
}
