//! Grants and requests as people look for them: by their state and their agent, in the order of
//! time.

use narthex_store::{GrantPlace, GrantRequestRow, GrantRow, RequestPlace};

/// Requests of one page.
#[derive(Debug, Clone)]
pub struct RequestsFound {
    /// The requests, in the order of their state.
    pub items: Vec<GrantRequestRow>,
    /// The place after which the next page begins; `None` if there is no next page.
    pub next: Option<RequestPlace>,
}

/// Grants of one page.
#[derive(Debug, Clone)]
pub struct GrantsFound {
    /// The grants, the newest first.
    pub items: Vec<GrantRow>,
    /// The place after which the next page begins; `None` if there is no next page.
    pub next: Option<GrantPlace>,
}

/// Cuts rows to a page. Returns true if there were more.
pub(super) fn cut<T>(rows: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    has_more
}
