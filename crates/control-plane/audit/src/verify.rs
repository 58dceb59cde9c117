//! Reads lines again, and reports the first changed or missing one.
//!
//! A text to verify has, for each chain, a line `{"chain": …}` with the ends of the chain, the
//! lines of the chain in their order, and one line `{"end": …}` after all chains. The last line may
//! name events that must be there, as other sources know them.

mod report;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::report::{Broken, ChainReport, Fault, Report, Waiting};
use crate::{Head, Link, canonical::line_hash, chain::NOTHING_BEFORE, kind};

/// The two ends of a chain, as the store declares them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredChain {
    /// The owner of the chain: a workspace, or empty for the installation.
    #[serde(default)]
    pub workspace: String,
    /// The writer of the chain.
    pub writer: String,
    /// Number of the last line that was removed by retention; 0 if none was.
    pub base_seq: u64,
    /// Hash of that line.
    pub base_hash: String,
    /// Number of the last line.
    pub head_seq: u64,
    /// Hash of the last line.
    pub head_hash: String,
    /// True if a key of this installation vouches for the ends; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_vouched: Option<bool>,
}

/// An event that must be in the store, as the task that moved it reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownHead {
    /// The owner of the chain: a workspace, or empty for the installation.
    pub workspace: String,
    /// Number and hash of the event.
    #[serde(flatten)]
    pub head: Head,
}

/// Verifies lines, one by one. Its memory holds one place per chain, however long the chains are.
#[derive(Debug, Default)]
pub struct Verifier {
    chains: BTreeMap<(String, String), Chain>,
    strays: Vec<Broken>,
    events: u64,
    line: u64,
    end: Option<u64>,
    known: Vec<KnownHead>,
    waiting: Option<Waiting>,
    is_beyond_end: bool,
}

#[derive(Debug, Default)]
struct Chain {
    declared: Option<DeclaredChain>,
    seq: u64,
    hash: String,
    line: u64,
    events: u64,
    after: Option<After>,
    broken: Option<Broken>,
    /// The missing numbers at the break.
    gap: Option<(u64, u64)>,
}

#[derive(Debug)]
struct After {
    writer: String,
    seq: u64,
    hash: String,
}

impl Verifier {
    /// A verifier that has read no line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Verifies the next line.
    pub fn line(&mut self, text: &str) {
        self.line += 1;
        self.is_beyond_end |= self.end.is_some();
        let Ok(value) = serde_json::from_str::<Value>(text) else { return self.stray() };
        if let Some(declared) = value.get("chain") {
            return match serde_json::from_value::<DeclaredChain>(declared.clone()) {
                Ok(declared) => self.declare(declared),
                Err(_) => self.stray(),
            };
        }
        if let Some(events) = value.get("end").and_then(|end| end["events"].as_u64()) {
            self.end = Some(events);
            self.waiting = Waiting::at_end(&value);
            return match Option::deserialize(&value["end"]["known"]) {
                Ok(known) => self.known = known.unwrap_or_default(),
                Err(_) => self.stray(),
            };
        }
        self.events += 1;
        match serde_json::from_value::<Link>(value.clone()) {
            Ok(link) => self.event(text, &value, link),
            Err(_) => self.stray(),
        }
    }

    /// Ends the text, and returns the report.
    #[must_use]
    pub fn finish(mut self) -> Report {
        let names: Vec<_> = self.chains.keys().cloned().collect();
        for name in &names {
            self.end_chain(name);
        }
        for known in std::mem::take(&mut self.known) {
            self.is_there(known);
        }
        let mut broken = std::mem::take(&mut self.strays);
        broken.extend(self.chains.values().filter_map(|chain| chain.broken.clone()));
        if self.end != Some(self.events) || self.is_beyond_end {
            let (workspace, writer) = (String::new(), String::new());
            let line = self.line + 1;
            broken.push(Broken { workspace, writer, seq: 0, line, fault: Fault::TextCut });
        }
        broken.sort_by_key(|broken| broken.line);
        let chains = self.chains.into_values().filter_map(|chain| {
            Some(ChainReport { declared: chain.declared?, events: chain.events })
        });
        let waiting = self.waiting.into_iter().collect();
        Report { events: self.events, chains: chains.collect(), broken, waiting }
    }

    /// Notes a fault that belongs to no chain.
    fn stray(&mut self) {
        let (workspace, writer) = (String::new(), String::new());
        let line = self.line;
        self.strays.push(Broken { workspace, writer, seq: 0, line, fault: Fault::Unreadable });
    }

    fn declare(&mut self, declared: DeclaredChain) {
        let name = (declared.workspace.clone(), declared.writer.clone());
        let is_new = !self.chains.contains_key(&name);
        let line = self.line;
        let chain = self.chains.entry(name).or_default();
        chain.line = line;
        if !is_new {
            chain.breaks(
                &declared.workspace,
                &declared.writer,
                declared.base_seq,
                line,
                Fault::Doubled,
            );
            return;
        }
        (chain.seq, chain.hash) = (declared.base_seq, declared.base_hash.clone());
        if declared.base_seq == 0 {
            chain.hash = NOTHING_BEFORE.to_owned();
        }
        if declared.is_vouched == Some(false) {
            let (workspace, writer) = (&declared.workspace, &declared.writer);
            chain.breaks(workspace, writer, declared.head_seq, line, Fault::Forged);
        }
        chain.declared = Some(declared);
    }

    fn event(&mut self, text: &str, value: &Value, link: Link) {
        let line = self.line;
        let name = (link.workspace.clone(), link.writer.clone());
        let chain = self.chains.entry(name).or_default();
        chain.events += 1;
        if chain.declared.is_none() && chain.broken.is_none() {
            chain.breaks(&link.workspace, &link.writer, link.seq, line, Fault::Undeclared);
        }
        chain.reclassify(link.seq);
        let is_whole = line_hash(text).is_ok_and(|(made, stated)| stated.as_ref() == Some(&made));
        let next = chain.seq + 1;
        let last = chain.declared.as_ref().map_or(u64::MAX, |declared| declared.head_seq);
        let fault = if !is_whole {
            Some(Fault::Edited)
        } else if link.seq > next {
            chain.gap = chain.gap.or(Some((next, link.seq)));
            Some(Fault::Removed { count: link.seq - next })
        } else if link.seq < next {
            Some(Fault::Doubled)
        } else if link.prev != chain.hash {
            Some(Fault::Unlinked)
        } else if link.seq > last {
            Some(Fault::Surplus)
        } else {
            None
        };
        if let Some(fault) = fault {
            chain.breaks(&link.workspace, &link.writer, link.seq, line, fault);
        }
        chain.note_after(value);
        if link.seq >= next {
            (chain.seq, chain.hash, chain.line) = (link.seq, link.hash, line);
        }
    }

    /// Checks that a known event is in its chain, or was removed because of its age.
    fn is_there(&mut self, known: KnownHead) {
        let KnownHead { workspace, head: Head { writer, seq, hash } } = known;
        let line = self.line;
        let chain = self.chains.get_mut(&(workspace.clone(), writer.clone()));
        let declared = chain.as_ref().and_then(|chain| chain.declared.as_ref());
        let fault = match declared {
            Some(declared) if declared.head_seq > seq => return,
            Some(declared) if declared.head_seq == seq && declared.head_hash == hash => return,
            Some(declared) if declared.head_seq == seq => Fault::Rewritten,
            _ => Fault::KnownGone,
        };
        match chain {
            Some(chain) => chain.breaks(&workspace, &writer, seq, line, fault),
            None => self.strays.push(Broken { workspace, writer, seq, line, fault }),
        }
    }

    fn end_chain(&mut self, name: &(String, String)) {
        let predecessor = self.chains[name].after.as_ref().map(|after| {
            let before = self.chains.get(&(name.0.clone(), after.writer.clone()));
            let declared = before.and_then(|before| before.declared.as_ref());
            declared.is_some_and(|declared| {
                declared.head_seq > after.seq
                    || (declared.head_seq == after.seq && declared.head_hash == after.hash)
            })
        });
        let Some(chain) = self.chains.get_mut(name) else { return };
        let (seq, line) = (chain.seq, chain.line);
        let fault = match &chain.declared {
            Some(declared) if seq < declared.head_seq => {
                Some(Fault::TailCut { count: declared.head_seq - seq })
            }
            Some(declared) if seq == declared.head_seq && chain.hash != declared.head_hash => {
                Some(Fault::Rewritten)
            }
            _ if predecessor == Some(false) => Some(Fault::PredecessorGone),
            _ => None,
        };
        if let Some(fault) = fault {
            chain.breaks(&name.0, &name.1, seq, line, fault);
        }
    }
}

impl Chain {
    /// Only the first fault counts: later ones are its consequences.
    fn breaks(&mut self, workspace: &str, writer: &str, seq: u64, line: u64, fault: Fault) {
        let (workspace, writer) = (workspace.to_owned(), writer.to_owned());
        self.broken.get_or_insert(Broken { workspace, writer, seq, line, fault });
    }

    /// Corrects a fault: an event that counted as removed is there after all.
    fn reclassify(&mut self, seq: u64) {
        let is_in_gap = self.gap.is_some_and(|(from, to)| (from..to).contains(&seq));
        if let Some(broken) = self.broken.as_mut().filter(|_| is_in_gap)
            && matches!(broken.fault, Fault::Removed { .. })
        {
            broken.fault = Fault::Reordered;
        }
    }

    fn note_after(&mut self, value: &Value) {
        let details = &value["details"];
        if value["kind"] != kind::CHAIN_OPENED || value["seq"] != 1 {
            return;
        }
        let (writer, seq) = (details["after_writer"].as_str(), details["after_seq"].as_u64());
        if let (Some(writer), Some(seq), Some(hash)) = (writer, seq, details["after_hash"].as_str())
        {
            let (writer, hash) = (writer.to_owned(), hash.to_owned());
            self.after = Some(After { writer, seq, hash });
        }
    }
}
