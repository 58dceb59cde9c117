//! The measurements of the console.

use serde::Serialize;

/// The cost of the console of a large site.
#[derive(Serialize)]
pub(in crate::bench) struct ConsoleCost {
    pub(super) size: Filled,
    pub(super) pages: Vec<PageCost>,
    pub(super) live: LiveCost,
    pub(super) idle: IdleCost,
    /// `None` if instructions could not be counted.
    pub(super) calls: Option<CallsBesidePages>,
}

/// Numbers of things in the site.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Filled {
    pub(super) servers: usize,
    pub(super) tools: usize,
    pub(super) runs: usize,
    /// Number of calls in the audit.
    pub(super) calls: u64,
}

/// A page, and the request of the API that the page names as the same.
#[derive(Debug, Serialize)]
pub(super) struct PageCost {
    pub(super) path: String,
    pub(super) page: Loaded,
    /// The request and its cost; `None` for a page that names none.
    pub(super) api: Option<(String, Loaded)>,
}

/// The cost of loading an address.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Loaded {
    /// Time to the first byte in milliseconds: the median, and the greatest.
    pub(super) first_ms: f64,
    pub(super) slowest_ms: f64,
    pub(super) bytes: usize,
}

/// A page that shows calls while they are made.
#[derive(Debug, Serialize)]
pub(super) struct LiveCost {
    pub(super) per_second: u32,
    pub(super) calls: usize,
    /// Number of calls that the stream has shown.
    pub(super) shown: usize,
    pub(super) events: usize,
    pub(super) bytes: usize,
    /// Time from the end of a call to its row in milliseconds: the median, and the greatest.
    pub(super) delay_ms: f64,
    pub(super) longest_ms: f64,
    /// Processor time of the daemon with the same calls, without the page and with it.
    pub(super) cpu_without_ms: u64,
    pub(super) cpu_with_ms: u64,
}

/// Processor time of the daemon while nothing happens.
#[derive(Debug, Serialize)]
pub(super) struct IdleCost {
    pub(super) pages: usize,
    pub(super) seconds: u64,
    pub(super) without_ms: u64,
    pub(super) with_ms: u64,
}

/// Instructions of a small call beside open pages.
#[derive(Debug, Serialize)]
pub(super) struct CallsBesidePages {
    pub(super) pages: usize,
    /// Without any page, and beside pages that show other things.
    pub(super) without: f64,
    pub(super) beside: f64,
    /// Beside the page that shows the calls of the very run, while it is counted, too.
    pub(super) shown: f64,
}

impl CallsBesidePages {
    /// The growth by pages that show other things, as part of the whole.
    pub(super) fn growth(&self) -> f64 {
        self.beside / self.without - 1.0
    }
}
