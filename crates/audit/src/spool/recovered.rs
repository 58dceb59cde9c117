//! What a file of the spool tells the process that comes after its writer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AuditEvent, Head, Link};

/// The version of the files' shape.
const VERSION: u32 = 2;
/// The member of an event's details that names the change it ends.
pub(crate) const CHANGE: &str = "change";

/// Where chains stand, and what is under way.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// The last line of each chain, by workspace.
    pub(crate) heads: BTreeMap<String, Head>,
    /// What nobody has said the end of, by id.
    pub(crate) intents: BTreeMap<String, AuditEvent<'static>>,
}

/// A change that is about to be made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// Unlike that of any other.
    pub(crate) id: String,
    /// What will be recorded.
    pub(crate) event: AuditEvent<'static>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    spool: u32,
    heads: BTreeMap<String, Head>,
    intents: BTreeMap<String, AuditEvent<'static>>,
}

#[derive(Serialize, Deserialize)]
struct IntentLine {
    intent: Intent,
}

impl Standing {
    /// What a file says in the end; `None` if it does not even begin. What follows the last line
    /// end was cut off when its writer was, and counts for nothing.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|byte| *byte == b'\n')?;
        let mut lines = text[..end].split(|byte| *byte == b'\n');
        let header: Header = serde_json::from_slice(lines.next()?).ok()?;
        let Header { spool: _, heads, intents } = header;
        let mut standing = Self { heads, intents };
        lines.for_each(|line| standing.take(line));
        Some(standing)
    }

    fn take(&mut self, line: &[u8]) {
        if line.starts_with(b"{\"intent\"") {
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

    /// What a further file begins with.
    pub(crate) fn header(&self) -> Vec<u8> {
        header(&self.heads, &self.intents)
    }
}

impl Intent {
    /// Writes it as a line.
    #[must_use]
    pub(crate) fn write(self, out: &mut Vec<u8>) -> Self {
        let line = IntentLine { intent: self };
        serde_json::to_writer(&mut *out, &line).expect("strings and numbers serialize");
        out.push(b'\n');
        line.intent
    }
}

/// The first line of a file.
#[must_use]
pub(crate) fn header(
    heads: &BTreeMap<String, Head>,
    intents: &BTreeMap<String, AuditEvent<'static>>,
) -> Vec<u8> {
    let (heads, intents) = (heads.clone(), intents.clone());
    let header = Header { spool: VERSION, heads, intents };
    let mut line = serde_json::to_vec(&header).expect("strings and numbers serialize");
    line.push(b'\n');
    line
}
