//! The agent whose manifest has made a server of the catalog.

use narthex_model::AgentName;
use serde::Serialize;

use crate::reader::{Object, Reader};

/// The author of a server: an agent, by the manifest that contained the server (R-M4).
///
/// A manifest replaces and deletes only servers with the mark of its own agent. A person who edits
/// the server may keep the mark or leave it out; without the mark, no manifest changes the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MadeBy {
    /// The agent, which may no longer exist.
    pub agent: AgentName,
}

/// Reads `{"agent": "NAME"}`, if it is there.
pub(super) fn read(reader: &mut Reader, object: &Object<'_>) -> Option<MadeBy> {
    let inner = reader.object(object, "made_by")?;
    reader.only(&inner, &["agent"]);
    if inner.get("agent").is_none() {
        reader.missing(&inner, "agent", "the name of the agent, or leave `made_by` out");
    }
    let text = reader.text(&inner, "agent")?;
    let agent = reader.name(&inner.at.key("agent"), text, AgentName::new)?;
    Some(MadeBy { agent })
}
