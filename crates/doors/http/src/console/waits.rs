//! What waits for the human: one projection for the number in the frame and for the first page.

use narthex_console::{Waiting, html};
use narthex_control::{GrantRequestRow, GrantRequestStatus};
use narthex_model::ServerState;

use super::{
    live::{Follows, Fragment, Topic},
    viewer::Viewer,
};
use crate::{
    Access,
    problem::Problem,
    routes::{ADMIN, EVERY},
};

/// Maximum number of requests that are counted.
const COUNTED: u32 = 100;

/// The number in the frame, live.
pub(super) const TOPIC: Topic = Topic {
    name: "waits",
    access: Access::Member(EVERY),
    params: &[],
    follows: Follows::Requests,
    parts: |viewer, _| Box::pin(parts(viewer)),
};

/// What waits for a human.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The requests that the human may decide, the oldest first.
    pub(super) requests: Vec<GrantRequestRow>,
    /// True if more requests wait.
    pub(super) has_more: bool,
    /// Servers with definitions under review, and their number.
    pub(super) held_back: Vec<(String, usize)>,
    /// Number of servers that wait for a sign-in.
    pub(super) signing_in: usize,
}

impl Waits {
    /// Reads what waits.
    pub(super) async fn read(viewer: &Viewer<'_>) -> Result<Self, Problem> {
        let mut waits = Self::default();
        if viewer.may(Access::Member(ADMIN)) {
            let pending = Some(GrantRequestStatus::Pending);
            let control = viewer.control();
            let page = control.grant_requests(&viewer.workspace, pending, "", COUNTED).await?;
            (waits.requests, waits.has_more) = (page.items, page.next.is_some());
        }
        if viewer.sees_servers() {
            for row in &viewer.door.gateway.registry().snapshot().servers {
                let held = row.pinned.as_ref().map_or(0, |said| said.held().count());
                if held > 0 {
                    waits.held_back.push((row.name.clone(), held));
                }
                waits.signing_in += usize::from(row.state == ServerState::Authenticating);
            }
        }
        Ok(waits)
    }

    /// The number in the frame.
    pub(super) fn shown(&self, viewer: &Viewer<'_>) -> Waiting {
        Waiting { href: viewer.path("#waiting"), count: Some(self.count()) }
    }

    /// The number of things that wait.
    pub(super) fn count(&self) -> usize {
        self.requests.len() + self.held_back.len() + self.signing_in
    }
}

async fn parts(viewer: &Viewer<'_>) -> Result<Vec<Fragment>, Problem> {
    let waits = Waits::read(viewer).await?;
    Ok(vec![Fragment::new("waits", html(&waits.shown(viewer)))])
}
