//! The workspaces whose calls' contents are recorded (X-M64), and a limit on contents in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use narthex_model::WorkspaceId;

use super::{Audit, AuditSlot};
use crate::{ContentsSwitch, Excerpt};

/// Most bytes of calls' contents in memory until they are written. Further calls are recorded
/// without their text: the call itself never waits for it, nor fails.
const HELD_BYTES: usize = 64 << 20;

/// The switches, and the room for contents that they let through.
#[derive(Debug)]
pub(super) struct Keeping {
    /// Locked when a run starts or a switch is turned, never by a call.
    switches: Mutex<BTreeMap<WorkspaceId, ContentsSwitch>>,
    free: AtomicUsize,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { switches: Mutex::default(), free: AtomicUsize::new(HELD_BYTES) }
    }
}

impl Keeping {
    fn switch(&self, workspace: &WorkspaceId) -> ContentsSwitch {
        let mut switches = self.switches.lock().unwrap_or_else(PoisonError::into_inner);
        switches.entry(workspace.clone()).or_default().clone()
    }

    fn set(&self, on: &BTreeSet<WorkspaceId>) {
        let mut switches = self.switches.lock().unwrap_or_else(PoisonError::into_inner);
        for workspace in on {
            switches.entry(workspace.clone()).or_default();
        }
        switches.retain(|workspace, switch| {
            switch.set(on.contains(workspace));
            switch.is_on() || switch.is_used()
        });
    }

    /// Returns the excerpt, or only its size and digest where there is no room.
    fn admit(&self, excerpt: Excerpt) -> Excerpt {
        let less = |free: usize| free.checked_sub(excerpt.held());
        match self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => excerpt,
            Err(_) => excerpt.without_text(),
        }
    }

    pub(super) fn release(&self, bytes: usize) {
        self.free.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes of room that are left.
    #[cfg(test)]
    pub(super) fn free(&self) -> &AtomicUsize {
        &self.free
    }
}

impl Audit {
    /// Returns the switch of a workspace, for callers that read it at each call.
    #[must_use]
    pub fn contents_switch(&self, workspace: &WorkspaceId) -> ContentsSwitch {
        let queue = self.queue.as_ref();
        queue.map(|queue| queue.state.keeping.switch(workspace)).unwrap_or_default()
    }

    /// Turns the switches of these workspaces on, and all others off.
    pub fn keep_contents_of(&self, workspaces: &BTreeSet<WorkspaceId>) {
        if let Some(queue) = &self.queue {
            queue.state.keeping.set(workspaces);
        }
    }
}

impl AuditSlot {
    /// Adds the request to the record.
    pub fn keep_request(&mut self, request: Excerpt) {
        self.keep(request, |contents, request| contents.request = Some(request));
    }

    /// Adds the answer to the record.
    pub fn keep_answer(&mut self, answer: Excerpt) {
        self.keep(answer, |contents, answer| contents.answer = Some(answer));
    }

    /// Removes the call's contents from the record.
    pub fn forget_contents(&mut self) {
        if let (Some(entry), Some(queue)) = (&mut self.entry, &self.queue)
            && let Some(contents) = entry.contents.take()
        {
            queue.state.keeping.release(contents.held());
        }
    }

    fn keep(
        &mut self,
        excerpt: Excerpt,
        put: impl FnOnce(&mut crate::contents::Contents, Excerpt),
    ) {
        if let (Some(entry), Some(queue)) = (&mut self.entry, &self.queue) {
            let excerpt = queue.state.keeping.admit(excerpt);
            put(entry.contents.get_or_insert_default(), excerpt);
        }
    }
}
