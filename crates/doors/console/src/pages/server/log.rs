//! The standard error of a server, line after line.

use askama::Template;

use super::ServerTabs;
use crate::{Frame, filters, parts::Words};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_log.html")]
pub struct ServerLogPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The live part.
    pub log: Log,
    /// The path of the file with all stored lines.
    pub file: String,
}

/// The last lines. The event stream sends it again when another block begins.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_log_lines.html")]
pub struct Log {
    /// The lines in blocks, the oldest first.
    pub blocks: Vec<LogBlock>,
    /// Number of stored lines that are not shown.
    pub left_out: usize,
    /// The reason why there are none.
    pub none: &'static str,
}

/// Some lines that follow each other, as the event stream sends them.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_log_block.html")]
pub struct LogBlock {
    /// The number of the block, counted from the first line ever.
    pub number: u64,
    /// The lines.
    pub lines: Vec<Words>,
}
