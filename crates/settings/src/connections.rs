//! Limits of the connections to servers.

use std::time::Duration;

use narthex_upstream::Deadlines;

use crate::layers::Layers;

/// Limits of the connections to servers.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionOptions {
    /// Of the steps of connecting.
    pub deadlines: Deadlines,
    /// The whole of mounting a server of a run, from its start to its last list.
    pub mount: Duration,
    /// After how long without a call a program is stopped until the next one; `None`: never.
    pub idle_stop: Option<Duration>,
    /// The most processes of one server at a time.
    pub processes_max: usize,
    /// Whether programs whose entry does not say are confined strictly.
    pub is_strict: bool,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            mount: Duration::from_secs(5),
            idle_stop: None,
            processes_max: 64,
            is_strict: false,
        }
    }
}

/// Reads them.
pub(crate) fn read(layers: &Layers) -> ConnectionOptions {
    let text = |path: &str| layers.get(path)?.value.as_str();
    let duration = |path: &str| narthex_cli::duration(text(path)?).ok();
    let processes = layers.get("limits.processes").and_then(|given| given.value.as_integer());
    let usual = ConnectionOptions::default();
    let Deadlines { probe, connect, list, install, mount } = usual.deadlines;
    ConnectionOptions {
        deadlines: Deadlines {
            probe: duration("timeouts.probe").unwrap_or(probe),
            connect: duration("timeouts.connect").unwrap_or(connect),
            list: duration("timeouts.list").unwrap_or(list),
            install: duration("timeouts.install").unwrap_or(install),
            mount,
        },
        mount: duration("timeouts.mount").unwrap_or(usual.mount),
        idle_stop: duration("timeouts.idle_stop"),
        processes_max: processes
            .and_then(|most| usize::try_from(most).ok())
            .unwrap_or(usual.processes_max),
        is_strict: text("confinement") == Some("strict"),
    }
}
