//! The steps of an app's start, in order.

use std::{sync::Arc, time::Duration};

use narthex_audit::Audit;
use narthex_builtin::{Platform, Tools};
use narthex_control::Control;
use narthex_gateway::{Gateway, RunView};
use narthex_model::{ErrorKind, Provenance};
use narthex_outbound::Outbound;
use narthex_registry::{Layer, Registry, layers};
use narthex_runs::Runs;

use super::{Doors, Servers, sign_ins::Opened};
use crate::Failure;
use narthex_model::with_causes;

/// The longest delay after which webhooks get an event that this or another daemon has seen.
const POLL: Duration = Duration::from_secs(2);

/// Gives the built-in server its tools, and resumes the runs that are active.
pub(super) async fn begin_runs(
    gateway: &Gateway,
    control: &Control,
    runs: &Runs,
    outbound: Option<Outbound>,
) -> Result<(), Failure> {
    let (control, runs) = (control.clone(), runs.clone());
    let tools = Tools::new(Platform { control, runs: runs.clone(), outbound });
    let tools = tools.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    gateway.set_built_in_tools(Arc::new(tools));
    let started = runs.start().await;
    started.map_err(|error| Failure::new(error.kind(), with_causes(&error)))
}

/// Lets the run of this process begin.
pub(super) fn begin_run(gateway: &Gateway, local: &Arc<RunView>) -> Result<(), Failure> {
    let begun = gateway.begin_run(local);
    begun.map_err(|error| Failure::new(error.kind(), with_causes(&error)))
}

/// Has the servers start.
pub(super) async fn begin(
    registry: Registry,
    servers: Servers,
    sign_ins: Option<&Opened>,
    audit: Audit,
) -> Result<Option<Control>, Failure> {
    match servers {
        Servers::Fixed(config) => {
            let (provenance, entries) = (Provenance::Workspace, config.entries);
            let set = layers::compose(&[Layer { provenance, file: None, entries }]);
            let applied = registry.apply(set);
            applied.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
            Ok(None)
        }
        Servers::Followed(mut options) => {
            options.audit = audit;
            options.sign_ins = sign_ins.map(|opened| opened.all.clone());
            let control = Control::start(registry, *options).await;
            let control =
                control.map_err(|error| Failure::new(error.kind(), with_causes(&error)))?;
            Ok(Some(control))
        }
    }
}

/// Posts to others from now on, and counts it.
pub(super) fn post(gateway: &Gateway, control: &Control, doors: &Doors) -> Outbound {
    let outbound = Outbound::new(control.clone(), doors.post_hosts.clone());
    let told = [
        ("webhook_deliveries", "Events delivered to webhooks"),
        ("webhook_attempts_failed", "Failed attempts to deliver an event to a webhook"),
        (
            "webhook_events_given_up",
            "Events that were given up after the last attempt to deliver them to a webhook",
        ),
    ];
    for (index, (name, help)) in told.into_iter().enumerate() {
        let outbound = outbound.clone();
        gateway.metrics().count(name, help, move || outbound.counts()[index]);
    }
    outbound.start(POLL);
    outbound
}
