//! Waits, with a notice when the wait is longer than a person expects.

use std::{pin::pin, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::timeout;

use crate::{
    Context,
    output::{self, harmless},
};

/// Work that takes no longer needs no word.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two frames of a line that moves.
const FRAME: Duration = Duration::from_millis(120);

/// Waits for `work`. After a second, standard error names `what`.
pub async fn waiting<T>(what: &str, context: &Context, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = timeout(PATIENCE, &mut work).await {
        return done;
    }
    if context.format.is_quiet() {
        return work.await;
    }
    let dots = ellipsis(context);
    let bar = spinner();
    match &bar {
        Some(bar) => bar.set_message(harmless(&format!("{what} {dots}"))),
        None => output::notice(&format!("{what} {dots}")),
    }
    let done = work.await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    done
}

/// The mark of work that is not done yet.
pub(super) fn ellipsis(context: &Context) -> &'static str {
    if context.is_ascii { "..." } else { "…" }
}

/// A moving line on standard error; `None` without a terminal.
pub fn spinner() -> Option<ProgressBar> {
    output::is_error_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(FRAME);
        bar
    })
}
