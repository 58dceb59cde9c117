//! Tells what a starting server is busy with, on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use narthex_model::{ServerState, Target};
use narthex_registry::ServerRow;

use crate::output;

const FRAME: Duration = Duration::from_millis(120);

/// A line that moves on a terminal, plain lines elsewhere.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    said: Option<String>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = output::is_error_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(FRAME);
            bar
        });
        Self { bar, said: None }
    }

    /// Shows a row if it says something new.
    pub(crate) fn show(&mut self, row: &ServerRow) {
        let Some(text) = describe(row) else { return };
        if self.said.as_ref() == Some(&text) {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(text.clone()),
            None => output::notice(&text),
        }
        self.said = Some(text);
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

/// Such as `starting or installing everything (npx …)…`.
fn describe(row: &ServerRow) -> Option<String> {
    if row.state != ServerState::Connecting {
        return None;
    }
    let activity = row.activity?;
    let how = match row.definition.as_ref().map(|definition| &definition.target) {
        Some(Target::Stdio(target)) => {
            let program = target.command.rsplit('/').next().unwrap_or_default();
            let rest = if target.args.is_empty() { "" } else { " …" };
            format!(" ({program}{rest})")
        }
        Some(Target::Http(_)) | None => String::new(),
    };
    Some(format!("{activity} {}{how}…", row.name))
}
