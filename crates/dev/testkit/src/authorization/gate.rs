//! Gates at endpoints: requests wait at them until a test opens them.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::kinds::Endpoint;
use crate::fixture::lock;

/// The moment at which a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The request has arrived, and nothing has come of it.
    Before,
    /// Its work is done: a code is used, a token is rotated. Only its answer is not sent.
    After,
}

/// A closed gate. Dropping it opens it.
#[derive(Debug)]
#[must_use = "the gate opens when this is dropped"]
pub struct Gate(Arc<Held>);

#[derive(Debug)]
struct Held {
    endpoint: Endpoint,
    moment: Moment,
    is_open: watch::Sender<bool>,
    arrived: watch::Sender<usize>,
}

impl Gate {
    /// Number of requests that came to the gate so far.
    #[must_use]
    pub fn arrived(&self) -> usize {
        *self.0.arrived.borrow()
    }

    /// Waits until this many requests came to the gate.
    ///
    /// # Panics
    /// Never.
    pub async fn until(&self, arrived: usize) {
        let mut number = self.0.arrived.subscribe();
        number.wait_for(|number| *number >= arrived).await.expect("the gate lives");
    }

    /// Lets all requests pass, those too that come later.
    pub fn open(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.is_open.send_replace(true);
    }
}

/// All gates of a fixture.
#[derive(Debug, Default)]
pub(super) struct Gates(Mutex<Vec<Arc<Held>>>);

impl Gates {
    pub(super) fn close(&self, endpoint: Endpoint, moment: Moment) -> Gate {
        let (is_open, arrived) = (watch::Sender::new(false), watch::Sender::new(0));
        let held = Arc::new(Held { endpoint, moment, is_open, arrived });
        let mut all = lock(&self.0);
        all.retain(|held| !*held.is_open.borrow());
        all.push(Arc::clone(&held));
        Gate(held)
    }

    /// Waits at all gates that are closed for this.
    pub(super) async fn pass(&self, endpoint: Endpoint, moment: Moment) {
        let held = lock(&self.0).clone();
        for held in held.iter().filter(|one| one.endpoint == endpoint && one.moment == moment) {
            let mut is_open = held.is_open.subscribe();
            held.arrived.send_modify(|number| *number += 1);
            is_open.wait_for(|is_open| *is_open).await.expect("this holds the gate");
        }
    }
}
