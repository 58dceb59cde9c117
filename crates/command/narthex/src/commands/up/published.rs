//! The state of this daemon as other processes read it: one value, which is published with each
//! change.

use std::sync::{Mutex, PoisonError};

use crate::{
    Failure,
    data_dir::{DaemonState, DataDir},
};

/// The published state of this daemon.
pub(super) struct Published<'a> {
    data: &'a DataDir,
    state: Mutex<DaemonState>,
}

impl<'a> Published<'a> {
    /// Publishes the first state.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn begin(data: &'a DataDir, state: DaemonState) -> Result<Self, Failure> {
        data.publish(&state)?;
        Ok(Self { data, state: Mutex::new(state) })
    }

    /// The present state.
    pub(super) fn state(&self) -> DaemonState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the state, and publishes it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn change(&self, change: impl FnOnce(&mut DaemonState)) -> Result<(), Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.data.publish(&state)
    }

    /// Removes the state: the daemon serves no longer.
    pub(super) fn retract(&self) {
        self.data.retract();
    }
}
