//! What idle sessions add to the gateway's memory.

use anyhow::Result;

use super::load::{Opened, open_sessions};
use super::plan::Way;
use super::report::bytes;
use super::results::Idle;
use super::stage::Stage;

const SESSIONS: usize = 1000;
const QUICK_SESSIONS: usize = 200;

pub(super) fn measure(stage: &Stage, is_quick: bool) -> Result<Vec<Idle>> {
    let sessions = if is_quick { QUICK_SESSIONS } else { SESSIONS };
    let mut found = Vec::new();
    for way in [Way::Transparent, Way::Aggregated] {
        for has_streams in [false, true] {
            let opened = open_sessions(stage, way, sessions, has_streams)?;
            let Opened { sessions, before_bytes, after_bytes } = opened;
            let added = bytes(after_bytes) - bytes(before_bytes);
            let bytes_per_session = added / bytes(sessions);
            eprintln!(
                "idle {:<11} streams {has_streams}: {:.1} KiB each",
                way.name(),
                bytes_per_session / 1024.0
            );
            found.push(Idle { way, has_streams, sessions, bytes_per_session });
        }
    }
    Ok(found)
}
