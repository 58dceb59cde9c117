//! Shapes of shares, and of comments on them.

use narthex_runs::ShareKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    ids::{RunId, SessionId, ShareId, ThreadId, Time},
    page::Listed,
};

/// A share: files that an agent has copied out of its folder.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "share_id": "shr_0a1b2c3d4e5f",
    "session_id": "ses_0a1b2c3d4e5f",
    "run_id": "run_0a1b2c3d4e5f",
    "title": "Report",
    "share_type": "document",
    "entry_point": "report.md",
    "total_size": 1204,
    "revision": 2,
    "created_at": "2026-11-23T10:00:00.000Z",
    "updated_at": "2026-11-23T10:05:00.000Z"
}))]
pub(crate) struct Share {
    pub(crate) share_id: ShareId,
    /// The session that the share belongs to.
    pub(crate) session_id: SessionId,
    /// The run that updated the share last.
    pub(crate) run_id: RunId,
    pub(crate) title: String,
    /// Kind of display.
    #[schemars(extend("enum" = ShareKind::ALL.map(ShareKind::as_str)))]
    pub(crate) share_type: String,
    /// Path of the file to show first. Null if there is none.
    pub(crate) entry_point: Option<String>,
    /// Bytes of all files together.
    pub(crate) total_size: u64,
    /// Number of times that an agent has set the share.
    #[schemars(extend("minimum" = 1))]
    pub(crate) revision: u64,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
}

impl Listed for Share {
    const PAGE: &str = "SharePage";
    const ABOUT: &str = "The shares of a workspace, in the order of their ids.";
}

/// A share with its files.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "share_id": "shr_0a1b2c3d4e5f",
    "session_id": "ses_0a1b2c3d4e5f",
    "run_id": "run_0a1b2c3d4e5f",
    "title": "Report",
    "share_type": "document",
    "entry_point": "report.md",
    "total_size": 1204,
    "revision": 2,
    "created_at": "2026-11-23T10:00:00.000Z",
    "updated_at": "2026-11-23T10:05:00.000Z",
    "files": [{
        "path": "report.md",
        "size": 1204,
        "content_type": "text/markdown",
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    }]
}))]
pub(crate) struct ShareWhole {
    #[serde(flatten)]
    pub(crate) share: Share,
    pub(crate) files: Vec<ShareFile>,
}

/// A file of a share.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShareFile {
    /// Path within the share.
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) content_type: String,
    #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
    pub(crate) sha256: String,
}

/// A comment on a share.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShareComment {
    /// Number of the comment in its thread, from 1.
    #[schemars(extend("minimum" = 1))]
    pub(crate) number: u64,
    /// The id of a run, or the name of another author.
    pub(crate) author: String,
    pub(crate) text: String,
    pub(crate) created_at: Time,
}

/// A thread of comments on a share, or on a passage of the share.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShareThread {
    pub(crate) thread_id: ThreadId,
    pub(crate) share_id: ShareId,
    /// The passage of the thread. Null for the whole share.
    pub(crate) anchor: Option<String>,
    pub(crate) created_at: Time,
    pub(crate) resolved_at: Option<Time>,
    pub(crate) resolved_by: Option<String>,
    pub(crate) comments: Vec<ShareComment>,
}

impl Listed for ShareThread {
    const PAGE: &str = "ShareThreads";
    const ABOUT: &str = "The threads of a share, the oldest first.";
}

/// The comment to write.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({
    "text": "Is the last row a total?",
    "anchor": "row 12"
}))]
pub(crate) struct ShareCommentNew {
    #[schemars(extend("minLength" = 1, "maxLength" = Self::TEXT_MAX))]
    pub(crate) text: String,
    /// The thread to continue. Without it, the comment starts a thread.
    #[schemars(default, with = "ThreadId")]
    pub(crate) thread_id: Option<String>,
    /// The passage of a new thread, such as a line or its words.
    #[schemars(default, with = "String")]
    #[schemars(extend("minLength" = 1, "maxLength" = Self::ANCHOR_MAX))]
    pub(crate) anchor: Option<String>,
}

impl ShareCommentNew {
    /// The longest comment, in characters.
    pub(crate) const TEXT_MAX: usize = 10_000;
    /// The longest passage of a thread, in characters.
    pub(crate) const ANCHOR_MAX: usize = 2000;
}

/// The members of a thread to change.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({
    "resolved": true
}))]
pub(crate) struct ShareThreadChange {
    /// True to resolve the thread, false to reopen it.
    pub(crate) resolved: bool,
}
