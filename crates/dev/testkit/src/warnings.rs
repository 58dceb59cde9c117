//! The warnings that a test's thread logs.

use std::{
    fmt,
    mem::take,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};

use crate::fixture::lock;

/// The warnings that a thread has logged since [`follow`](Self::follow), in order.
#[derive(Debug)]
pub struct Warnings {
    kept: Kept,
    _guard: DefaultGuard,
}

impl Warnings {
    /// Keeps the warnings of this thread until the value is dropped. A test whose runtime has one
    /// thread gets those of all its tasks.
    #[must_use]
    pub fn follow() -> Self {
        let kept = Kept::default();
        let guard = tracing::subscriber::set_default(kept.clone());
        Self { kept, _guard: guard }
    }

    /// The messages since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        take(&mut *lock(&self.kept.0))
    }
}

#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        lock(&self.0).push(message.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
