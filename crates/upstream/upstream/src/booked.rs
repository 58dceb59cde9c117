//! Proof that a message has its place in the record and was counted.

use narthex_audit::AuditSlot;
use narthex_traffic::Admission;

/// Proof that one message has an open place in the audit record and was counted by the limits.
///
/// Each message that a client sends to a server needs one: see [`crate::Link::forward`] and
/// [`crate::Link::notify`].
#[derive(Debug)]
pub struct Booked(());

impl Booked {
    /// Proof that a message has this open place, and that these limits have admitted the message. A
    /// committed place no longer exists, so it can prove nothing.
    #[must_use]
    pub fn new(_slot: &AuditSlot, _admission: &Admission) -> Self {
        Self(())
    }
}
