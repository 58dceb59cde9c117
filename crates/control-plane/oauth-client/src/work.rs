//! The one running task of a credential, and those who wait for it.

use std::{
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use tokio::sync::watch;

use crate::{SignInError, options::SignInOptions};

/// The result of a task.
pub(crate) type Outcome = Result<(), SignInError>;
/// A task of a credential.
pub(crate) type Task = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkKind {
    Load,
    Renew,
    Request,
    Consent,
}

/// A task that runs, for those who wait for it.
#[derive(Debug)]
pub(crate) struct Started {
    outcome: watch::Receiver<Option<Outcome>>,
    /// True if it is of the wanted kind.
    pub(crate) is_same: bool,
    /// True if the caller has started it.
    pub(crate) is_own: bool,
}

impl Started {
    /// Waits for the end. A caller that stops waiting stops nothing.
    pub(crate) async fn wait(mut self) -> Outcome {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_ended) => Err(SignInError::Stopped),
        }
    }
}

/// The place of the task that runs.
#[derive(Debug, Default)]
pub(crate) struct Work(Mutex<Option<Running>>);

#[derive(Debug)]
struct Running {
    kind: WorkKind,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl Work {
    /// Starts a task on the shared runtime, or gives the one that runs.
    pub(crate) fn start(&self, options: &SignInOptions, kind: WorkKind, task: Task) -> Started {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*slot
            && is_running(&running.outcome)
        {
            let outcome = running.outcome.clone();
            return Started { outcome, is_same: running.kind == kind, is_own: false };
        }
        let (sender, outcome) = watch::channel(None);
        *slot = Some(Running { kind, outcome: outcome.clone() });
        drop(slot);
        let task = async move {
            let result = task.await;
            sender.send_replace(Some(result));
        };
        drop(options.tasks.spawn_on(task, &options.runtime));
        Started { outcome, is_same: true, is_own: true }
    }

    /// The task that runs, if there is one.
    pub(crate) fn running(&self) -> Option<Started> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = slot.as_ref().filter(|running| is_running(&running.outcome))?;
        let outcome = running.outcome.clone();
        Some(Started { outcome, is_same: true, is_own: false })
    }
}

/// True if a task has not ended.
fn is_running(outcome: &watch::Receiver<Option<Outcome>>) -> bool {
    let is_open = outcome.has_changed().is_ok();
    is_open && outcome.borrow().is_none()
}
