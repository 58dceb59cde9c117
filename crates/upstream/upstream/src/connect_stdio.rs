//! The handshake with a child process, whose program may have to be downloaded first.

mod patience;

use std::{borrow::Cow, sync::Arc, time::Duration};

use narthex_model::{ServerDefinition, StdioTarget, Target};
use narthex_supervisor::Redact;
use narthex_wire::Redactor;

use self::patience::{Late, Patience};
use crate::{
    ConnectError, Dialect, LinkError, Phase,
    cause::cause,
    connect::{Setup, Shaken},
    handshake::{ask_duplex, discover, initialize_duplex, modern_facts},
    link::{Inner, ServerFacts},
    stdio::{StdioContext, StdioLink},
};

/// Programs that download other programs and run them.
const PACKAGE_RUNNERS: [&str; 10] =
    ["npx", "bunx", "pnpm", "yarn", "uvx", "uv", "pipx", "docker", "podman", "dnx"];

/// True if the program of a definition may need a download before it answers.
#[must_use]
pub fn may_install(definition: &ServerDefinition) -> bool {
    match &definition.target {
        Target::Stdio(target) => is_package_runner(target),
        Target::Http(_) => false,
    }
}

fn is_package_runner(target: &StdioTarget) -> bool {
    let file = target.command.rsplit(['/', '\\']).next().unwrap_or_default();
    PACKAGE_RUNNERS.contains(&file)
}

/// Starts a program and completes the handshake with it. Stores the time that this took, without a
/// download, in `spent`.
pub(crate) async fn shake(
    setup: &Setup<'_>,
    target: &StdioTarget,
    spent: &mut Option<Duration>,
) -> Result<Shaken, ConnectError> {
    let mut patience = Patience::new(setup);
    let mut stdio = start(setup, target, &mut patience).await?;
    match shake_hands(&mut stdio, setup, target, &mut patience).await {
        Ok((facts, dialect)) => {
            *spent = Some(patience.spent());
            Ok((Inner::Stdio(stdio), facts, dialect))
        }
        Err(error) => {
            // A server that does not answer does not react to the end of its input, either.
            match &error {
                ConnectError::Deadline { .. } => stdio.end().await,
                _ => stdio.stop().await,
            };
            Err(error)
        }
    }
}

async fn shake_hands(
    stdio: &mut StdioLink,
    setup: &Setup<'_>,
    target: &StdioTarget,
    patience: &mut Patience<'_>,
) -> Result<(ServerFacts, Dialect), ConnectError> {
    let context = setup.context;
    if matches!(context.dialect, None | Some(Dialect::Modern)) {
        let probing = probe(stdio, setup);
        // If the server did not answer the probe in time, the handshake reports its fault.
        let probed = patience.wait(probing, context.deadlines.probe).await.unwrap_or(Ok(None));
        if let Some(facts) = probed? {
            return Ok((facts, Dialect::Modern));
        }
        if stdio.duplex.closed().is_cancelled() {
            if stdio.duplex.has_read_nothing() {
                // The server ended before it read a byte, so any request would fail.
                return Err(stdio.duplex.outlet().end().into());
            }
            // Some old servers exit on a method that they do not know.
            *stdio = start(setup, target, patience).await?;
        }
    }
    let shaking = initialize_duplex(&stdio.duplex, &context.identity);
    match patience.wait(shaking, context.deadlines.connect).await {
        Ok(facts) => Ok((facts?, Dialect::Legacy)),
        Err(late) => Err(deadline(late, Some(stdio))),
    }
}

/// Asks for revision 2026-07-28; `None` if the server does not speak it.
async fn probe(stdio: &StdioLink, setup: &Setup<'_>) -> Result<Option<ServerFacts>, ConnectError> {
    let (id, body) = discover(stdio.duplex.next_id(), &setup.context.identity);
    match ask_duplex(&stdio.duplex, id, body).await {
        Ok(message) => Ok(modern_facts(&message)),
        // A server of an older revision may give any answer: the handshake that follows reports the
        // real fault.
        Err(LinkError::Closed(_) | LinkError::Unread(_) | LinkError::Protocol(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Starts the program. Even the start may hang: on a dead network disk, for example.
async fn start(
    setup: &Setup<'_>,
    target: &StdioTarget,
    patience: &mut Patience<'_>,
) -> Result<StdioLink, ConnectError> {
    let context = setup.context;
    setup.phase(if is_package_runner(target) { Phase::Installing } else { Phase::Connecting });
    let stdio = StdioContext {
        name: setup.definition.alias.to_string(),
        environment: context.environment.clone(),
        redact: setup.redaction.fixed().cloned().map(redact_lines),
        log: context.log.clone(),
        supervision: context.supervision.clone(),
        limits: context.limits,
        tasks: context.tasks.clone(),
    };
    let starting = StdioLink::start(target, &stdio, setup.outlet());
    match patience.start(starting, context.deadlines.connect).await {
        Ok(Ok(started)) => {
            patience.started(is_package_runner(target).then(|| started.process_id()));
            Ok(started)
        }
        Ok(Err(error)) => Err(ConnectError::Spawn(error)),
        Err(late) => Err(deadline(late, None)),
    }
}

fn redact_lines(redactor: Arc<Redactor>) -> Redact {
    fn of<F: for<'t> Fn(&'t str) -> Cow<'t, str>>(redact: F) -> F {
        redact
    }
    Arc::new(of(move |line| redactor.text(line)))
}

fn deadline(late: Late, stdio: Option<&StdioLink>) -> ConnectError {
    let tail = stdio.map(StdioLink::log_tail).unwrap_or_default();
    let hint = cause(&tail).map_or_else(String::new, |line| format!("; it wrote: {line}"));
    ConnectError::Deadline { after: late.after, hint }
}
