//! Writes events as lines in chains.

use std::{borrow::Cow, collections::BTreeMap};

use narthex_model::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::{Actor, AuditEvent, Resource, canonical::digest, kind};

/// The version of the lines' shape. Readers ignore members that they do not know.
const VERSION: u32 = 2;
/// The hash in place of a line before the first.
pub(crate) const NOTHING_BEFORE: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// The last line of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The writer of the line.
    pub writer: String,
    /// Number of the line, from 1.
    pub seq: u64,
    /// Hash of the line.
    pub hash: String,
}

/// The place of a line in its chain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Link {
    /// The owner of the chain: a workspace, or empty for the installation.
    #[serde(default)]
    pub(crate) workspace: String,
    /// The writer of the chain.
    pub(crate) writer: String,
    /// The line's number in it.
    pub(crate) seq: u64,
    /// The hash of the line before it.
    pub(crate) prev: String,
    /// Its own.
    #[serde(default)]
    pub(crate) hash: String,
}

/// The chains of one writer, one per workspace.
#[derive(Debug, Clone)]
pub struct Chains {
    writer: String,
    heads: BTreeMap<String, Head>,
}

/// The members in the order of the canonical form.
#[derive(Serialize)]
struct Line<'a> {
    actor: &'a Actor<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    details: &'a BTreeMap<Cow<'a, str>, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<Millis>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'a [Cow<'a, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_via: Option<&'a str>,
    kind: &'a str,
    outcome: &'a str,
    prev: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'a Resource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<&'a str>,
    writer: &'a str,
}

/// Milliseconds with up to three decimals, in the form of RFC 8785.
struct Millis(u64);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        let text = match rest {
            0 => whole.to_string(),
            rest => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
        };
        let raw = RawValue::from_string(text).expect("these digits are a number");
        raw.serialize(serializer)
    }
}

impl Chains {
    /// The chains of a new writer, with a name that no earlier writer had. `heads` has the last
    /// lines of the previous writer, by workspace. The first line of each chain names that line, so
    /// that a removal of the old chain's end is noticed.
    #[must_use]
    pub fn new(writer: String, heads: BTreeMap<String, Head>) -> Self {
        Self { writer, heads }
    }

    /// The name of the writer.
    #[must_use]
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The last line of each chain, or of its predecessor.
    #[must_use]
    pub fn heads(&self) -> &BTreeMap<String, Head> {
        &self.heads
    }

    /// Writes an event as the next line of its chain. A new chain gets an opening line first.
    /// Returns the number of written lines.
    pub fn append(&mut self, event: &AuditEvent<'_>, out: &mut Vec<u8>) -> usize {
        let workspace = event.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        // Nearly all lines continue a chain: its head changes in its place.
        if let Some(head) = self.heads.get_mut(workspace)
            && head.writer == self.writer
        {
            head.seq += 1;
            head.hash = write(&self.writer, event, head.seq, &head.hash, out);
            return 1;
        }
        let opening = self.open(event, out);
        let hash = write(&self.writer, event, 2, &opening, out);
        let head = Head { writer: self.writer.clone(), seq: 2, hash };
        self.heads.insert(workspace.to_owned(), head);
        2
    }

    fn open(&self, event: &AuditEvent<'_>, out: &mut Vec<u8>) -> String {
        let workspace = event.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let mut opened = AuditEvent::new(kind::CHAIN_OPENED, Actor::system());
        opened.workspace.clone_from(&event.workspace);
        opened.time = event.time;
        if let Some(Head { writer, seq, hash }) = self.heads.get(workspace) {
            opened = opened.with("after_writer", writer.as_str());
            opened = opened.with("after_seq", *seq).with("after_hash", hash.as_str());
        }
        write(&self.writer, &opened, 1, NOTHING_BEFORE, out)
    }
}

/// Writes a line with its number and the hash of the line before it. Returns its own hash.
fn write(writer: &str, event: &AuditEvent<'_>, seq: u64, prev: &str, out: &mut Vec<u8>) -> String {
    let line = Line {
        actor: &event.actor,
        details: &event.details,
        duration_ms: event.duration_us.map(Millis),
        fields: &event.fields,
        granted_via: event.granted_via.as_deref(),
        kind: &event.kind,
        outcome: &event.outcome,
        prev,
        resource: event.resource.as_ref(),
        run: event.run.as_deref(),
        seq,
        server: event.server.as_deref(),
        session: event.session.as_deref(),
        time: Timestamp::new(event.time).to_string(),
        tool: event.tool.as_deref(),
        v: VERSION,
        workspace: event.workspace.as_ref().map(|workspace| workspace.as_str()),
        writer,
    };
    let start = out.len();
    serde_json::to_writer(&mut *out, &line).expect("strings and numbers serialize");
    let hash = digest(&out[start..]);
    // In front of the last brace.
    out.pop();
    out.extend_from_slice(b",\"hash\":\"");
    out.extend_from_slice(hash.as_bytes());
    out.extend_from_slice(b"\"}\n");
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_the_decimals_that_they_need() {
        for (micros, text) in [
            (0, "0"),
            (7, "0.007"),
            (1_000, "1"),
            (1_250, "1.25"),
            (12_345_600, "12345.6"),
            (12_345_678, "12345.678"),
        ] {
            assert_eq!(serde_json::to_string(&Millis(micros)).unwrap(), text);
        }
    }
}
