//! The state in a file of the spool for the process after its writer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AuditEvent, Head, Link};

/// The version of the files' shape. Version 2 had all heads and intents in its first line, which
/// is still read.
const VERSION: u32 = 3;
/// The beginnings of lines that are no events.
pub(super) const NO_EVENTS: [&[u8]; 3] = [b"{\"spool\"", HEAD, INTENT];
const HEAD: &[u8] = b"{\"head\"";
const INTENT: &[u8] = b"{\"intent\"";
/// The member of an event's details that names the change it ends.
pub(crate) const CHANGE: &str = "change";

/// The ends of the chains, and the changes under way.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// The last line of each chain, by workspace.
    pub(crate) heads: BTreeMap<String, Head>,
    /// Changes without a reported end, by id.
    pub(crate) intents: BTreeMap<String, AuditEvent<'static>>,
}

/// A change that is about to be made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// Unlike that of any other.
    pub(crate) id: String,
    /// The event to be recorded.
    pub(crate) event: AuditEvent<'static>,
}

/// The first line of a file.
#[derive(Deserialize)]
struct Header {
    #[expect(dead_code, reason = "tells a file of ours, and is not told apart otherwise")]
    spool: u32,
    #[serde(default)]
    heads: BTreeMap<String, Head>,
    #[serde(default)]
    intents: BTreeMap<String, AuditEvent<'static>>,
}

/// The end of a chain at the time when the file was created.
#[derive(Serialize, Deserialize)]
struct HeadLine {
    head: ChainHead,
}

#[derive(Serialize, Deserialize)]
struct ChainHead {
    workspace: String,
    #[serde(flatten)]
    head: Head,
}

#[derive(Serialize, Deserialize)]
struct IntentLine {
    intent: Intent,
}

impl Standing {
    /// Returns the state at the end of a file; `None` if the file has no header. An incomplete last
    /// line was torn when its writer died, and counts for nothing.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|byte| *byte == b'\n')?;
        let mut lines = text[..end].split(|byte| *byte == b'\n');
        let header: Header = serde_json::from_slice(lines.next()?).ok()?;
        let Header { heads, intents, .. } = header;
        let mut standing = Self { heads, intents };
        lines.for_each(|line| standing.take(line));
        Some(standing)
    }

    fn take(&mut self, line: &[u8]) {
        if line.starts_with(HEAD) {
            if let Ok(HeadLine { head: ChainHead { workspace, head } }) =
                serde_json::from_slice(line)
            {
                self.heads.insert(workspace, head);
            }
            return;
        }
        if line.starts_with(INTENT) {
            if let Ok(IntentLine { intent }) = serde_json::from_slice(line) {
                self.intents.insert(intent.id, intent.event);
            }
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(line) else { return };
        if let Some(change) = value["details"][CHANGE].as_str() {
            self.intents.remove(change);
        }
        if let Ok(Link { workspace, writer, seq, prev: _, hash }) = serde_json::from_value(value) {
            self.heads.insert(workspace, Head { writer, seq, hash });
        }
    }

    /// The header of a further file.
    pub(crate) fn header(&self) -> Vec<u8> {
        header(&self.heads, &self.intents)
    }
}

impl Intent {
    /// Writes it as a line.
    pub(crate) fn write(self, out: &mut Vec<u8>) -> Self {
        let line = IntentLine { intent: self };
        serde_json::to_writer(&mut *out, &line).expect("strings and numbers serialize");
        out.push(b'\n');
        line.intent
    }
}

/// The first lines of a file: its version, and one line for each head and each intent, so that no
/// line is longer than its content.
#[must_use]
pub(crate) fn header(
    heads: &BTreeMap<String, Head>,
    intents: &BTreeMap<String, AuditEvent<'static>>,
) -> Vec<u8> {
    let mut lines = format!("{{\"spool\":{VERSION}}}\n").into_bytes();
    for (workspace, head) in heads {
        let head = ChainHead { workspace: workspace.clone(), head: head.clone() };
        let line = serde_json::to_writer(&mut lines, &HeadLine { head });
        line.expect("strings and numbers serialize");
        lines.push(b'\n');
    }
    for (id, event) in intents {
        Intent { id: id.clone(), event: event.clone() }.write(&mut lines);
    }
    lines
}
