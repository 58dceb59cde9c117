//! The last calls of tools, as the audit has them.

use std::{collections::HashMap, time::SystemTime};

use narthex_audit::kind;
use narthex_control::{AuditItem, AuditQuery};
use serde_json::Value;

use crate::{Access, console::viewer::Viewer, routes::AUDIT};

/// Number of calls that are looked at.
const CALLS: u32 = 200;

/// The last calls of a workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    /// Number of calls that were read.
    pub(super) count: usize,
    /// The time of the last call of each tool, by server and tool.
    last: HashMap<(String, String), SystemTime>,
}

impl Calls {
    /// Reads the last calls; `None` for a human who may not read the audit, and without one.
    pub(super) async fn read(viewer: &Viewer<'_>) -> Option<Self> {
        if !viewer.may(Access::Member(AUDIT)) {
            return None;
        }
        let query = AuditQuery {
            kind: kind::TOOL_CALLED.to_owned(),
            ..AuditQuery::newest(Some(viewer.workspace.clone()), CALLS)
        };
        match viewer.control().audit_list(&query).await {
            Ok(page) => Some(Self::of(&page.items)),
            Err(error) => {
                tracing::debug!("the last calls of tools are unknown: {error}");
                None
            }
        }
    }

    /// The calls of events, the newest first.
    fn of(items: &[AuditItem]) -> Self {
        let mut last = HashMap::new();
        for item in items {
            let text = |name| item.event.get(name).and_then(Value::as_str);
            if let (Some(server), Some(tool)) = (text("server"), text("tool")) {
                let key = (server.to_owned(), tool.to_owned());
                last.entry(key).or_insert(item.place.happened_at);
            }
        }
        Self { count: items.len(), last }
    }

    /// The time of the last call of a tool.
    pub(super) fn last_of(&self, server: &str, tool: &str) -> Option<SystemTime> {
        self.last.get(&(server.to_owned(), tool.to_owned())).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narthex_control::AuditPlace;
    use serde_json::json;

    use super::*;

    /// The newest call of a tool counts, and events without a tool count for none.
    #[test]
    fn the_newest_call_of_a_tool_counts() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let item = |event, seconds| {
            let (happened_at, writer) = (at(seconds), "w".to_owned());
            AuditItem { event, place: AuditPlace { happened_at, writer, seq: seconds } }
        };
        let call = || json!({ "server": "git", "tool": "log" });
        let calls = Calls::of(&[item(call(), 9), item(call(), 5), item(json!({}), 3)]);
        assert_eq!((calls.count, calls.last_of("git", "log")), (3, Some(at(9))));
        assert_eq!(calls.last_of("git", "push"), None);
    }
}
