//! The source of runs that this process has not seen.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
};

use narthex_model::{Alias, RunToken};
use narthex_upstream::Inventory;

use crate::RunView;

/// The future of a search for a run.
pub type FindingRun<'a> = Pin<Box<dyn Future<Output = Option<Arc<RunView>>> + Send + 'a>>;

/// The source of live runs that this process has not seen since its start.
pub trait RunSource: Send + Sync + std::fmt::Debug {
    /// Starts the run that a token opens, and returns the run; `None` if there is no such run, or
    /// it cannot start now.
    fn find<'a>(&'a self, token: &'a RunToken) -> FindingRun<'a>;

    /// Stores the first lists of a run's servers ([`RunView::first_lists`], and
    /// [`RunView::further_lists`] on links besides the shared ones), after a new list was added.
    /// Returns without a wait.
    fn keep_lists(&self, run: &Arc<RunView>);

    /// Reviews a server's first lists on a link besides the shared one, or on the shared one if it
    /// listed nothing when the run began.
    ///
    /// Returns the part that the run may have. The rest is under review. `None` if the review
    /// fails.
    fn look_at<'a>(
        &'a self,
        run: &'a Arc<RunView>,
        alias: &'a Alias,
        listed: &'a Arc<Inventory>,
    ) -> LookingAt<'a>;
}

/// The future of a review of a server's lists.
pub type LookingAt<'a> = Pin<Box<dyn Future<Output = Option<Arc<Inventory>>> + Send + 'a>>;

/// The source of runs, once it is set. Without it, runs are only those of this process.
#[derive(Debug, Default)]
pub(crate) struct Source(OnceLock<Arc<dyn RunSource>>);

impl Source {
    /// Sets the source; `false` if there is one already.
    pub(crate) fn set(&self, source: Arc<dyn RunSource>) -> bool {
        self.0.set(source).is_ok()
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn RunSource>> {
        self.0.get()
    }
}
