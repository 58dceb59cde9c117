//! Callers that were refused before their identity was known (S32).

use crate::{Actor, ActorKind, AuditEvent, kind};

/// The reason for a refusal. It contains no text of the caller: any stranger could fill the record
/// with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The door: `http` or `socket`.
    pub door: &'static str,
    /// The fault, such as `token` or `host_or_origin`.
    pub reason: &'static str,
}

impl Refused {
    pub(super) fn event(self, count: u64) -> AuditEvent<'static> {
        let actor = Actor::new(ActorKind::Anonymous, "");
        let mut event = AuditEvent::new(kind::AUTH_REFUSED, actor).on("door", self.door);
        event.outcome = "denied".into();
        event.with("reason", self.reason).with("count", count)
    }
}
