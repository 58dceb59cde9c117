//! Streams of the daemon, which are resumed when they break off.

use std::time::Duration;

use http::Method;
use narthex_model::ErrorKind;
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    Failure, FailureKind,
    daemon_client::{DaemonClient, EventReader},
    output,
};

const UNAVAILABLE: FailureKind = FailureKind::Operation(ErrorKind::Unavailable);
/// The pause before a daemon that is away is tried again, at first and at most.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Logs that a stream broke off: the caller opens it again.
pub(super) fn cut_off(failure: Failure) -> Option<Value> {
    tracing::info!("the stream ended early: {failure}");
    None
}

/// The stream anew, also of a daemon that was started again meanwhile.
pub(super) async fn again(client: &DaemonClient, path: &str) -> Result<EventReader, Failure> {
    let mut pause = PAUSE;
    loop {
        match client.api_events(Method::GET, path.to_owned()).await {
            Err(failure) if failure.kind == UNAVAILABLE => {
                output::notice(&format!("{failure}; trying again"));
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            done => return done,
        }
    }
}
