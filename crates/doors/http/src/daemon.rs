//! The daemon as operators see it: its program, its store, and its numbers.

use narthex_control::Control;

use crate::{
    door::Door,
    shapes::{Daemon, DaemonAudit, DaemonOpen, DaemonProcess, DaemonStore},
};

/// The path of the metrics.
const METRICS: &str = "/metrics";

/// The facts of the daemon, as they are now.
pub(crate) fn facts(door: &Door) -> Daemon {
    let (options, gateway) = (&door.options, &door.gateway);
    let scheme = if options.is_tls { "https" } else { "http" };
    let numbers = gateway.metrics().numbers();
    let control = options.control.as_ref();
    let store = control.and_then(Control::store).map(|store| DaemonStore {
        engine: store.engine(),
        place: store.place().to_owned(),
        schema: store.schema_version(),
    });
    Daemon {
        version: env!("CARGO_PKG_VERSION"),
        system: std::env::consts::OS,
        architecture: std::env::consts::ARCH,
        process: std::process::id(),
        node: gateway.node_id().to_owned(),
        started_at: door.started_at.into(),
        listens_at: format!("{scheme}://{}", options.listen),
        public_origin: control.and_then(Control::sign_in_origin).map(ToString::to_string),
        store,
        open: DaemonOpen {
            sessions: numbers.sessions_open,
            streams: numbers.streams_open,
            page_streams: u64::try_from(door.page_streams.count()).unwrap_or(u64::MAX),
            parked_calls: numbers.calls_parked,
        },
        process_use: numbers.process.map(|process| DaemonProcess {
            resident_bytes: process.resident_bytes,
            threads: process.threads,
            open_files: process.open_files,
        }),
        audit_waiting: numbers
            .audit_waiting_bytes
            .map(|bytes| DaemonAudit { bytes, is_stuck: numbers.audit_is_stuck }),
        metrics: METRICS,
    }
}
