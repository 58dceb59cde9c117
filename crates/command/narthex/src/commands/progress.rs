//! Progress of starting servers, on standard error.

use std::{collections::HashSet, sync::Arc};

use indicatif::ProgressBar;
use narthex_model::{ServerState, Target};
use narthex_registry::ServerRow;

use super::waiting::spinner;
use crate::output::{self, harmless};

/// A line that moves on a terminal, plain lines elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// The texts that were already shown as plain lines.
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
