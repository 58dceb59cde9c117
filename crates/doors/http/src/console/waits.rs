//! The things that wait for the human: one projection for the frame and for the first page.

use narthex_console::Waiting;
use narthex_control::{GrantRequestRow, RequestSearch, RequestState};
use narthex_model::ServerState;

use super::viewer::Viewer;
use crate::{Access, problem::Problem, routes::ADMIN};

/// Maximum number of requests that are counted.
const COUNTED: u32 = 100;

/// The things that wait for a human.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The requests that the human may decide, the oldest first.
    pub(super) requests: Vec<GrantRequestRow>,
    /// True if more requests wait.
    pub(super) has_more: bool,
    /// Servers with definitions under review.
    pub(super) reviews: Vec<Review>,
    /// Number of servers that wait for a sign-in.
    pub(super) signing_in: usize,
}

/// A server with definitions under review.
#[derive(Debug)]
pub(super) struct Review {
    pub(super) server: String,
    pub(super) count: usize,
}

impl Waits {
    /// Reads what waits.
    pub(super) async fn read(viewer: &Viewer<'_>) -> Result<Self, Problem> {
        let mut waits = Self::default();
        if viewer.may(Access::Member(ADMIN)) {
            let (state, control) = (RequestState::Open, viewer.control());
            let open = RequestSearch { state, agent: None, after: None, limit: COUNTED };
            let found = control.grant_requests_search(&viewer.workspace, &open).await?;
            (waits.requests, waits.has_more) = (found.items, found.next.is_some());
        }
        if viewer.sees_servers() {
            for row in &viewer.door.gateway.registry().snapshot().servers {
                let count = row.pinned.as_ref().map_or(0, |said| said.held().count());
                if count > 0 {
                    waits.reviews.push(Review { server: row.name.clone(), count });
                }
                waits.signing_in += usize::from(row.state == ServerState::Authenticating);
            }
        }
        Ok(waits)
    }

    /// The number in the frame.
    pub(super) fn shown(&self, viewer: &Viewer<'_>) -> Waiting {
        let count = self.requests.len() + self.reviews.len() + self.signing_in;
        Waiting { href: viewer.in_workspace("approvals"), count: Some(count) }
    }
}
