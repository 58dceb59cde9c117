//! Progress of starting servers, on standard error.

use std::{collections::HashSet, sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use narthex_model::{ServerState, Target};
use narthex_registry::ServerRow;

use crate::output::{self, harmless};

const FRAME: Duration = Duration::from_millis(120);

/// A line that moves on a terminal, plain lines elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// The texts that plain lines have shown already.
    said: HashSet<String>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { bar: spinner(), said: HashSet::new() }
    }

    pub(super) fn show(&mut self, rows: &[Arc<ServerRow>]) {
        let texts: Vec<_> = rows.iter().filter_map(|row| describe(row)).collect();
        match &self.bar {
            Some(bar) => bar.set_message(harmless(&texts.join(", "))),
            None => {
                for text in texts {
                    if self.said.insert(text.clone()) {
                        output::notice(&text);
                    }
                }
            }
        }
    }
}

/// A line that moves; `None` where there is no terminal.
pub(super) fn spinner() -> Option<ProgressBar> {
    output::is_error_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(FRAME);
        bar
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Such as `starting or installing everything (npx …)…`. Not every step is worth a word.
fn describe(row: &ServerRow) -> Option<String> {
    let activity = row.activity.filter(|_| row.state == ServerState::Connecting)?;
    let Target::Stdio(target) = &row.definition.as_ref()?.target else { return None };
    let program = target.command.rsplit('/').next().unwrap_or_default();
    let rest = if target.args.is_empty() { "" } else { " …" };
    Some(format!("{activity} {} ({program}{rest})…", row.name))
}
