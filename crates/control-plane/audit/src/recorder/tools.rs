//! The line that lists the tools of a run (E20).

use std::{sync::Arc, time::SystemTime};

use narthex_model::{RunId, WorkspaceId};
use serde::Serialize;
use serde_json::json;

use crate::{Actor, ActorKind, AuditEvent, ToolSet, kind};

/// The most that the tools of one line may take, in bytes; further ones are only counted, and are
/// in the digest.
const TOOLS_BYTES: usize = 64 * 1024;

/// The entry for a run's tools.
#[derive(Debug)]
pub(super) struct ToolsEntry {
    pub(super) workspace: WorkspaceId,
    pub(super) run: RunId,
    pub(super) tools: Arc<ToolSet>,
    pub(super) time: SystemTime,
}

#[derive(Serialize)]
struct LineTool<'a> {
    name: &'a str,
    server: &'a str,
    digest: String,
}

impl ToolsEntry {
    pub(super) fn event(&self) -> AuditEvent<'static> {
        let mut tools = Vec::new();
        let mut room = TOOLS_BYTES;
        for tool in &self.tools.tools {
            let (name, server) = (&*tool.name, tool.server.as_str());
            let shown = LineTool { name, server, digest: tool.digest.to_string() };
            // Names and aliases need no escapes; the JSON around them has a fixed length.
            let length = name.len() + server.len() + shown.digest.len() + 36;
            let Some(left) = room.checked_sub(length) else { break };
            room = left;
            tools.push(shown);
        }
        let count = self.tools.tools.len();
        let run = self.run.to_text();
        let actor = Actor::new(ActorKind::Run, run.clone());
        let mut event = AuditEvent::new(kind::TOOLS_SEEN, actor).in_workspace(&self.workspace);
        event = event.on("run", run.clone()).of_run(run).with("count", count);
        event = event.with("digest", self.tools.digest.to_string());
        if tools.len() < count {
            event = event.with("truncated", true);
        }
        event.time = self.time;
        event.with("tools", json!(tools))
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::Alias;

    use super::*;
    use crate::SeenTool;

    fn line(count: usize) -> (serde_json::Value, usize) {
        let server = Alias::new("server").unwrap();
        let seen = |n| SeenTool::new(format!("mcp__server__{n}").into(), server.clone(), b"{}");
        let tools = Arc::new(ToolSet::new((0..count).map(seen).collect()));
        let run = RunId::new([7; RunId::BYTES]);
        let workspace = WorkspaceId::default();
        let event = ToolsEntry { workspace, run, tools, time: SystemTime::UNIX_EPOCH }.event();
        (json!(event.details), json!(event.details).to_string().len())
    }

    /// E20: a set is written whole, unless it is very large: then the line is cut and marked.
    #[test]
    fn e20_the_line_is_bounded() {
        let (small, _) = line(3);
        assert_eq!(small["count"], 3);
        assert_eq!(small["tools"].as_array().unwrap().len(), 3);
        assert_eq!(small["tools"][2]["name"], "mcp__server__2");
        assert_eq!(small.get("truncated"), None);
        let (large, length) = line(5000);
        assert_eq!((&large["count"], &large["truncated"]), (&5000.into(), &true.into()));
        assert!(large["tools"].as_array().unwrap().len() > 100);
        assert!(length < TOOLS_BYTES + 1024, "{length}");
    }
}
