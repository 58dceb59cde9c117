//! The memory that idle sessions add to the gateway.

use std::path::Path;

use anyhow::Result;

use super::Options;
use super::load::{Opened, open_sessions};
use super::nginx::Nginx;
use super::plan::{Era, Way};
use super::report::bytes;
use super::results::Idle;
use super::stage::Stage;

const SESSIONS: usize = 1000;
const QUICK_SESSIONS: usize = 200;

/// Each case has a gateway of its own: one that has been busy would take the sessions' memory from
/// what it has freed, and they would seem to cost nothing.
pub(super) fn measure(nginx: &Nginx, options: &Options, dir: &Path) -> Result<Vec<Idle>> {
    let sessions = if options.quick { QUICK_SESSIONS } else { SESSIONS };
    let mut found = Vec::new();
    for way in [Way::Transparent, Way::Aggregated] {
        for has_streams in [false, true] {
            let stage = Stage::start(Era::Legacy, nginx, &options.profile, dir)?;
            let opened = open_sessions(&stage, way, sessions, has_streams)?;
            stage.stop()?;
            let Opened { sessions, before_bytes, after_bytes } = opened;
            let daemon_bytes = bytes(before_bytes);
            let added = bytes(after_bytes) - daemon_bytes;
            let bytes_per_session = added / bytes(sessions);
            let kib = bytes_per_session / 1024.0;
            eprintln!("idle {:<11} streams {has_streams}: {kib:.1} KiB each", way.name());
            found.push(Idle { way, has_streams, sessions, bytes_per_session, daemon_bytes });
        }
    }
    Ok(found)
}
