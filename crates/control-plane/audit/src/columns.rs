//! Reads the members of a line by which a store orders and finds events.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};

/// The members of a line that have columns in the store. The rest of the line is skipped.
///
/// It is read here and not in the crate of the store's rows, since each call's records pass through
/// it, and this crate is built for speed.
#[derive(Debug, Deserialize)]
pub struct LineColumns<'a> {
    /// Time of the event, in RFC 3339.
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    /// Kind of the event: `tool.call`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// The actor.
    #[serde(borrow)]
    pub actor: LineName<'a>,
    /// The resource; its id is empty if there is none.
    #[serde(borrow, default)]
    pub resource: LineName<'a>,
    /// Id of the run; empty outside of runs.
    #[serde(borrow, default)]
    pub run: Cow<'a, str>,
    /// Name of the workspace; empty for the installation.
    #[serde(borrow, default)]
    pub workspace: Cow<'a, str>,
    /// Writer of the chain.
    #[serde(borrow)]
    pub writer: Cow<'a, str>,
    /// The line's number in its chain.
    pub seq: u64,
    /// Required, since each line is chained to the one before it.
    #[serde(rename = "prev")]
    _prev: IgnoredAny,
    /// Hash of the line; empty if it has none.
    #[serde(borrow, default)]
    pub hash: Cow<'a, str>,
}

/// The id of an actor or a resource.
#[derive(Debug, Default, Deserialize)]
pub struct LineName<'a> {
    /// The id; empty if there is none.
    #[serde(borrow, default)]
    pub id: Cow<'a, str>,
}

impl<'a> LineColumns<'a> {
    /// The columns of a line; `None` if the line is no event of the audit.
    #[must_use]
    pub fn read(line: &'a str) -> Option<Self> {
        // `serde` would read an array as the members in order.
        line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
    }
}
