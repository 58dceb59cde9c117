//! The steps of the daemon's life as lines for a person: it listens, stops, and has stopped.

use std::time::SystemTime;

use narthex_model::Timestamp;

use crate::{
    App,
    data_dir::DaemonState,
    output,
    stop::{Hangup, stop_signal_with},
};

/// Prints the steps. In the background they are lines of a log, with their times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub(super) is_background: bool,
}

impl Steps {
    /// The daemon listens. Elsewhere than in the background, the results have this.
    pub(super) fn listening(self, version: &str, state: &DaemonState) {
        if self.is_background {
            let DaemonState { url, pid, .. } = state;
            self.tell(&format!("narthex {version} listens at {url}, process {pid}"));
        }
    }

    /// Drains; a second signal ends the wait, and remaining programs end when their handles are
    /// dropped. Returns false then.
    pub(super) async fn drain(self, app: &App, hangup: Hangup) -> bool {
        let Ok(again) = stop_signal_with(hangup) else {
            app.drain().await;
            return true;
        };
        self.tell(match self.is_background {
            true => "stopping: open calls finish",
            false => "stopping; press Ctrl-C again, or send the signal again, to stop at once",
        });
        tokio::select! {
            () = app.drain() => true,
            () = again => {
                self.tell("stopped at once");
                false
            }
        }
    }

    pub(super) fn tell(self, text: &str) {
        match self.is_background {
            true => output::notice(&line(SystemTime::now(), text)),
            false => output::notice(text),
        }
    }
}

/// A line as the other ones of the log.
fn line(time: SystemTime, text: &str) -> String {
    format!("{}  INFO {text}", Timestamp::new(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_in_a_log_has_its_time() {
        let told = line(SystemTime::UNIX_EPOCH, "stopped");
        assert_eq!(told, "1970-01-01T00:00:00.000Z  INFO stopped");
    }
}
