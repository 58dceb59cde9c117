//! Those who were turned away before it was known who they are (S32).

use crate::{Actor, ActorKind, AuditEvent, kind};

/// Why somebody was turned away. Nothing that they sent is in it: it would fill the record with
/// what anybody may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The door: `http` or `socket`.
    pub door: &'static str,
    /// What was wrong, such as `token` or `host_or_origin`.
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
