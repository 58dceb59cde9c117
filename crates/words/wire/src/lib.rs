//! MCP on the wire as raw JSON: envelopes, both protocol eras, headers, SSE, framing and limits.
//!
//! Messages stay bytes. This crate checks them, locates their parts, and writes changed copies. The
//! crate does no I/O, and holds no state beyond a parser's buffer.

pub mod headers;
pub mod json;
pub mod method;
pub mod notification;
pub mod rpc;
pub mod translate;

mod cut;
mod era;
mod lines;
mod list_kind;
mod log_level;
mod message;
mod pages;
mod payload;
mod questions;
mod readable;
mod redact;
mod rewrite;
mod schema;
mod sse;
mod template;

pub use cut::{CutResult, cut_result, estimated_tokens};
pub use era::{
    Era, Revision, StampFault, check_stamps, classify_downstream, meta_key, supported_versions,
};
pub use lines::{LineError, LineParser, line_frames};
pub use list_kind::ListKind;
pub use log_level::LogLevel;
pub use message::{Message, MessageError, MessageKind, Raw};
pub use notification::Notification;
pub use pages::{Pages, PagesError};
pub use payload::{Payload, PayloadBuilder};
pub use questions::{Answerable, embedded, unanswered, wanted_urls};
pub use readable::{DefinitionKind, Readable, readable};
pub use redact::{REDACTED, Redactor, is_redactable};
pub use rewrite::{Patch, Rewrite};
pub use schema::{with_member, with_object_schema, with_text_member};
pub use sse::{SseError, SseEvent, SseParser, sse_event, write_sse_event};
pub use template::Template;

/// Sizes above which a message is refused before it is buffered or indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a message in bytes. Never above 1 GiB.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes: 64 * 1024 * 1024 }
    }
}
